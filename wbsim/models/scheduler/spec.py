"""The spec of the scheduler: how an era shares processors among tasks."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from wbsim.models.scheduler.runqueue import SchedulerRules
from wbsim.sim.param import Count, Interval, Ns, Spec
from wbsim.sim.units import MS, S

_MOST_PROCESSORS = 8
"""The largest number of processors that scales the times."""
_BUSY_FACTOR = 16
"""sd->busy_factor, which multiplies the interval of the domain: a millisecond for each processor.

A tick is subtracted, so that no interval is a multiple of another (get_sd_balance_interval).
"""

_DOMAIN_NS = 2 * MS
"""sd->min_interval of a domain of two processors, such as the two threads of a core."""
_HOT_NS = 500_000
"""sysctl_sched_migration_cost, kernel/sched/fair.c: the same in all eras from CFS on."""


class SchedulerSpec(Spec):
    """The fair class, CFS or EEVDF.

    The times are those of one processor; with n processors they are 1 + log2(n) times as long.

    * ``algorithm``: the rules of the fair class.
    * ``slice_time``: the time for which a task keeps its processor while others wait
      (sysctl_sched_min_granularity, or base_slice).
    * ``ahead_time``: the time by which a task that wakes may come before the others (half of sched_latency).
      Only CFS has it; EEVDF keeps the lag of a task instead.
    * ``granularity``: the lead that a task which wakes needs to preempt another
      (sysctl_sched_wakeup_granularity).  Only CFS has it.
    * ``stacks``: a task that a bound worker wakes stays on the worker's processor, if it was there last.
    * ``hz``: CONFIG_HZ, the ticks a second; the end of a slice is noticed on ticks.
    """

    algorithm: Literal["CFS", "EEVDF"]
    slice_time: Interval
    ahead_time: Ns | None = None
    granularity: Ns | None = None
    stacks: bool
    hz: Count

    @model_validator(mode="after")
    def _check(self) -> SchedulerSpec:
        if (self.algorithm == "CFS") == (self.ahead_time is None or self.granularity is None):
            raise ValueError(
                f"ahead_time and granularity do not fit {self.algorithm}; CFS needs both, others have neither"
            )
        return self

    def rules(self, processors: int) -> SchedulerRules:
        """Return the rules on a machine of *processors* processors (SCHED_TUNABLESCALING_LOG).

        The factor of the times, 1 + log2(*processors*), is rounded down, and 4 from 8 processors on.
        """
        factor, tick_ns = min(processors, _MOST_PROCESSORS).bit_length(), S // self.hz
        return SchedulerRules(
            slice_ns=self.slice_time * factor,
            tick_ns=tick_ns,
            ahead_ns=(self.ahead_time or 0) * factor,
            granularity_ns=(self.granularity or 0) * factor,
            keeps_lag=self.algorithm == "EEVDF",
            hot_ns=_HOT_NS,
            ask_ns=-(-_DOMAIN_NS // tick_ns) * tick_ns,
            stacks=self.stacks,
            balance_ns=max(1, _BUSY_FACTOR * processors * MS // tick_ns - 1) * tick_ns,
        )
