"""What all tests share."""

from __future__ import annotations

import os

from hypothesis import Phase, settings

# The first example of a test may wait for Numba, and the machine may be shared: no test is timed.
settings.register_profile("untimed", deadline=None)
# For `make mutants`, where only counts whether a test fails: the same examples each time, none made smaller.
settings.register_profile(
    "mutants", settings.get_profile("untimed"), derandomize=True, database=None,
    phases=(Phase.explicit, Phase.generate),
)  # fmt: skip
settings.load_profile("mutants" if "WBSIM_MUTANTS" in os.environ else "untimed")
