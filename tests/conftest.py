"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# The first example of a test may wait for Numba, and the machine may be shared: no test is timed.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
