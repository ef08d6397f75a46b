"""Settings of the library's tests."""

import multiprocessing

from registries import forgetful as forgetful
from sessions import same_draws as same_draws

# Processes are forked from one that has everything imported, so that they start at once.
multiprocessing.set_forkserver_preload(["pairlearn.cli.fit", "pairlearn.estimators"])
