"""The rules that the scheduler numbers of a kernel give on a machine."""

from __future__ import annotations

import pytest

from wbsim.models.catalogue.kernels import KERNELS
from wbsim.models.scheduler.runqueue import SchedulerRules
from wbsim.models.scheduler.spec import SchedulerSpec
from wbsim.sim.units import MS, US


@pytest.mark.parametrize(("processors", "factor"), [(1, 1), (2, 2), (3, 2), (4, 3), (8, 4), (128, 4)])
def test_times_grow_with_log2_of_up_to_eight_processors(processors: int, factor: int) -> None:
    """The times of the scheduler grow, and the tick does not."""
    spec = SchedulerSpec(
        algorithm="CFS", slice_time=700, ahead_time=300, granularity=100, stacks=False, hz=250
    )
    balance_ns = (4 * processors - 1) * 4 * MS
    assert spec.rules(processors) == SchedulerRules(
        700 * factor, 4 * MS, 300 * factor, 100 * factor,
        balance_ns=balance_ns, ask_ns=4 * MS, hot_ns=500 * US, stacks=False,
    )  # fmt: skip


def test_eevdf_came_with_6_6() -> None:
    """6.18, the measured kernel, has EEVDF (on two processors here); 6.1 has CFS (on sixteen)."""
    assert KERNELS["6.18"].sched.rules(2) == SchedulerRules(
        1_400 * US, 4 * MS, keeps_lag=True, balance_ns=28 * MS, ask_ns=4 * MS, hot_ns=500 * US, stacks=True
    )
    assert KERNELS["6.1"].sched.rules(16) == SchedulerRules(
        3 * MS, MS, 12 * MS, 4 * MS, balance_ns=255 * MS, ask_ns=2 * MS, hot_ns=500 * US, stacks=True
    )
    assert KERNELS["5.4"].sched == KERNELS["2.6.34"].sched


def test_only_cfs_has_ahead_time_and_granularity() -> None:
    """CFS needs both ahead_time and granularity; EEVDF refuses them."""
    for algorithm, more in (
        ("CFS", {}),
        ("CFS", {"ahead_time": 1}),
        ("EEVDF", {"ahead_time": 1, "granularity": 1}),
    ):
        with pytest.raises(ValueError, match=f"ahead_time and granularity do not fit {algorithm}"):
            SchedulerSpec.model_validate(
                {"algorithm": algorithm, "slice_time": 1, "stacks": True, "hz": 250, **more}
            )
