"""Little's law for each queue and each device: the waits of requests are those of diskstats."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.laws.test_any_scenario import EXAMPLES, PHASES
from tests.strategies import scenarios, step_lengths
from tests.waits import Waits
from wbsim.experiments.config.experiment import parse
from wbsim.models.machine import build
from wbsim.models.step_lengths import StepLengths
from wbsim.models.tracepoints import Signals


@settings(max_examples=EXAMPLES, phases=PHASES, deadline=None, suppress_health_check=list(HealthCheck))
@given(scenarios(), st.integers(1, 9), step_lengths())
def test_littles_law_holds_in_any_scenario(text: str, seed: int, lengths: StepLengths) -> None:
    """The summed waits of reads and of writes are the integral of the number of requests."""
    (case,) = parse(text, "x.toml").cases
    signals = Signals()
    machine = build(case.scenario, seed, signals=signals, lengths=lengths)
    waits = Waits(signals, machine.env)
    machine.run()
    waits.check(machine.queues)
