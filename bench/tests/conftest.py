"""Settings of the bench's tests."""

import multiprocessing

from sessions import same_draws as same_draws

# Processes are forked from one that has everything imported, so that they start at once.
multiprocessing.set_forkserver_preload(["pairlearn_bench"])
