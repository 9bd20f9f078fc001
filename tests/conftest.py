"""What all tests share."""

from __future__ import annotations

import gc
import os
import re
import signal
from collections.abc import Generator
from typing import Any, Final

# What stands in the sources is tested, unless told otherwise, and not what was once built of them.
os.environ.setdefault("WBSIM_ENGINE", "light")

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import engine, providers

from wbsim.sim import COMPILED

# Whatever a shell, or nohup, does with the signals of what it runs in the background: tests raise them.
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
# Nothing lives in cycles for long; to look for them as often as Python does takes a tenth of the time.
gc.set_threshold(100_000, 50, 1_000)
# The first example of a test may wait for Numba, and the machine may be shared: no test is timed.
settings.register_profile("untimed", deadline=None, report_multiple_bugs=False, print_blob=True)
# The gate draws the same examples in each run; `make fuzz` explores (``--hypothesis-profile=untimed``).
# Its verdict does not depend on the time of a run, so no test is too slow.
settings.register_profile(
    "gate", settings.get_profile("untimed"), derandomize=True, database=None,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
# For `make mutants`, where only counts whether a test fails: the same examples each time, none made smaller.
settings.register_profile(
    "mutants", settings.get_profile("untimed"), derandomize=True, database=None,
    phases=(Phase.explicit, Phase.generate),
)  # fmt: skip
# A failure is told within seconds: a smaller example is looked for so long and no longer (s).
assert engine.MAX_SHRINKING_SECONDS == 300, "hypothesis has another bound now"
engine.MAX_SHRINKING_SECONDS = 5
# Hypothesis also draws constants of the modules that are loaded, so the draws of a test would depend on the
# tests that ran before it in its process.
assert callable(providers._get_local_constants), "hypothesis keeps the constants of modules elsewhere now"
providers._get_local_constants = lambda: providers._local_constants
settings.load_profile("mutants" if "WBSIM_MUTANTS" in os.environ else "gate")


_STAND_IN: Final = re.compile(r"object expected; got (types\.SimpleNamespace|tests\.|tuple\[types\.)")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    """Compiled parts take no stand-ins for each other; tests that need one test the source alone."""
    try:
        return (yield)
    except TypeError as error:
        if COMPILED and _STAND_IN.search(str(error)):
            pytest.skip("a stand-in for a compiled part")
        raise
