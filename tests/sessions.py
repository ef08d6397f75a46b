"""What every session of tests needs, of the library, the studio, the bench and the docs."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# Small products are slower on several threads and differ less on one; figures need no screen.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "agg")

# A busy machine is no reason to fail, and what passed once passes again. New examples are tried
# by `make test-long`, with --hypothesis-profile=explore.
explore = settings(deadline=None, derandomize=False, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", explore)
settings.register_profile("steady", explore, derandomize=True)
settings.load_profile("steady")


@pytest.fixture(autouse=True)
def same_draws() -> None:
    """Draw the same numbers whichever tests ran before in the same process."""
    import torch

    torch.manual_seed(0)
