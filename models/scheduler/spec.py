"""What is configured of the scheduler: how an era shares processors among those who want one."""

from __future__ import annotations

from sim.param import Count, Ns, Spec
from sim.runqueue import SchedulerRules
from sim.units import S

_MOST_PROCESSORS = 8
"""No more of them count."""


class SchedulerSpec(Spec):
    """The fair class, CFS or EEVDF; times as for one processor (with n, they are 1 + log2(n) times as long).

    ``slice_time``: sysctl_sched_min_granularity, or base_slice; ``ahead_time``: how much before the others
    one that wakes may come (CFS: half of sched_latency; EEVDF: its lag); ``granularity``:
    sysctl_sched_wakeup_granularity; ``hz``: CONFIG_HZ, since the end of a slice is noticed on ticks.
    """

    slice_time: Ns
    ahead_time: Ns
    granularity: Ns
    hz: Count

    def rules(self, processors: int) -> SchedulerRules:
        """On a machine of so many *processors* (SCHED_TUNABLESCALING_LOG)."""
        factor = min(processors, _MOST_PROCESSORS).bit_length()
        return SchedulerRules(
            slice_ns=self.slice_time * factor,
            tick_ns=S // self.hz,
            ahead_ns=self.ahead_time * factor,
            granularity_ns=self.granularity * factor,
        )
