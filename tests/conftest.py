"""The settings that all tests share."""

from __future__ import annotations

import gc
import os
import re
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

# Tests run on the sources, not on an old build, unless WBSIM_ENGINE is set.
os.environ.setdefault("WBSIM_ENGINE", "light")

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import engine, providers

from wbsim.sim import COMPILED

# Tests raise these signals, which a shell or nohup may ignore for processes in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
# Few objects are in reference cycles, and to look for them as often as Python does takes a tenth of the time.
gc.set_threshold(100_000, 50, 1_000)
# The first example of a test may wait for Numba, and the machine may be shared: no test is timed.
settings.register_profile("untimed", deadline=None, report_multiple_bugs=False, print_blob=True)
# The gate draws the same examples in each run; `make fuzz` explores (``--hypothesis-profile=untimed``).
# Its verdict does not depend on the time of a run, so no test is too slow.
settings.register_profile(
    "gate", settings.get_profile("untimed"), derandomize=True, database=None,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
# For `make mutants`, which only needs to know whether a test fails: fixed examples and no shrinking.
settings.register_profile(
    "mutants", settings.get_profile("untimed"), derandomize=True, database=None,
    phases=(Phase.explicit, Phase.generate),
)  # fmt: skip
# The search for a smaller example ends after this time (s), so that a failure is reported soon.
assert engine.MAX_SHRINKING_SECONDS == 300, "hypothesis changed MAX_SHRINKING_SECONDS; set a new bound here"
engine.MAX_SHRINKING_SECONDS = 5
# Hypothesis also draws constants of the modules that are loaded, so the draws of a test would depend on the
# tests that ran before it in its process.
assert callable(providers._get_local_constants), "hypothesis has no _get_local_constants; adapt this line"
providers._get_local_constants = lambda: providers._local_constants
settings.load_profile("mutants" if "WBSIM_MUTANTS" in os.environ else "gate")


ONCE: Final = (
    "documents", "experiments/commands", "experiments/config", "experiments/formats", "experiments/machines",
    "experiments/pictures", "experiments/results", "experiments/sweeps", "measures/test_english.py",
    "measures/test_lines.py", "measures/test_markdown.py", "measures/test_prose.py", "models/catalogue",
    "test_architecture.py", "test_mutants.py",
)  # fmt: skip
"""Tests of code that the compiled engine lacks: `make test` has run all but the `long` and full-size ones."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, on the compiled engine, what the source has answered."""
    if not COMPILED:
        return
    tests = Path(__file__).parent
    answered = [item for item in items if item.path.relative_to(tests).as_posix().startswith(ONCE)]
    only_here = ("long", "fullsize")
    answered = [item for item in answered if not any(map(item.get_closest_marker, only_here))]
    config.hook.pytest_deselected(items=answered)
    left_out = set(answered)
    items[:] = [item for item in items if item not in left_out]


_STAND_IN: Final = re.compile(r"object expected; got (types\.SimpleNamespace|tests\.|tuple\[types\.)")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    """Skip a test in which a compiled part refuses a stand-in for another part; it tests the source alone."""
    try:
        return (yield)
    except TypeError as error:
        if COMPILED and _STAND_IN.search(str(error)):
            pytest.skip("a compiled part refuses the stand-in of this test")
        raise
