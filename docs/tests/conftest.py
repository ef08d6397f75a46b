"""Settings of the tests of the pages, which need all three distributions."""

from sessions import same_draws as same_draws
