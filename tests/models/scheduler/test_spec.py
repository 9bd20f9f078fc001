"""What an era's numbers become on a machine."""

from __future__ import annotations

import pytest

from models.catalogue.kernels import KERNELS
from models.scheduler.spec import SchedulerSpec
from sim.runqueue import SchedulerRules
from sim.units import MS, US


@pytest.mark.parametrize(("processors", "factor"), [(1, 1), (2, 2), (3, 2), (4, 3), (8, 4), (128, 4)])
def test_times_grow_with_the_logarithm_of_up_to_eight_processors(processors: int, factor: int) -> None:
    """Those of the scheduler, and not the tick."""
    spec = SchedulerSpec(slice_time=700, ahead_time=300, granularity=100, hz=250)
    assert spec.rules(processors) == SchedulerRules(700 * factor, 4 * MS, 300 * factor, 100 * factor)


def test_eevdf_came_with_6_6() -> None:
    """The kernel that was measured, on two processors, and CFS on sixteen."""
    assert KERNELS["6.18"].scheduler.rules(2) == SchedulerRules(1_400 * US, 4 * MS, 1_400 * US, 0)
    assert KERNELS["6.1"].scheduler.rules(16) == SchedulerRules(3 * MS, MS, 12 * MS, 4 * MS)
    assert KERNELS["6.1"].scheduler == KERNELS["2.6.34"].scheduler
