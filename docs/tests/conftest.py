"""Settings of the tests of the pages, which need all three distributions."""

import pairlearn_bench.data  # noqa: F401 - whose registry `forgetful` restores
from registries import forgetful as forgetful
from sessions import same_draws as same_draws
