"""Settings of the bench's tests."""

import multiprocessing

import pairlearn_bench.data  # noqa: F401 - whose registry `forgetful` restores
from registries import forgetful as forgetful
from sessions import same_draws as same_draws

# Processes are forked from one that has everything imported, so that they start at once.
multiprocessing.set_forkserver_preload(["pairlearn_bench"])
