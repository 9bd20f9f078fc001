"""The tasks that wait for a processor, and in which order they get one.

Stands for the run queues of the fair class: CFS (kernel/sched/fair.c from 2.6.23) and EEVDF (6.6).  Each
task has a virtual time, which runs slower the heavier it weighs; the first is who has the earliest virtual
deadline, a slice from its virtual time.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from sim.engine import NICE_0_LOAD, READY, Task

_STEP: Final = 1.25


def weight_of(nice: int) -> int:
    """The load of a task of that *nice* value: a quarter more or less with each step (sched_prio_to_weight,
    to 3 %).
    """
    return round(NICE_0_LOAD / _STEP**nice)


def virtual(ran_ns: int, weight: int) -> int:
    """*ran_ns* in the virtual time of a task of that *weight*."""
    return ran_ns if weight == NICE_0_LOAD else ran_ns * NICE_0_LOAD // weight


@dataclass(frozen=True)
class SchedulerRules:
    """How long a task keeps its processor while others wait.

    ``slice_ns``; that a slice is over is noticed at multiples of ``tick_ns`` (0: at once).  ``ahead_ns``: who
    wakes comes up to so much before the others (CFS: half of sched_latency; EEVDF: its lag, a slice at most).
    At once it takes the processor of one that is more than ``granularity_ns`` behind it.
    """

    slice_ns: int
    tick_ns: int = 0
    ahead_ns: int = 0
    granularity_ns: int = 0

    def over_ns(self, since_ns: int) -> int:
        """When the slice of who runs since then is noticed to be over."""
        end_ns = since_ns + self.slice_ns
        return -(-end_ns // self.tick_ns) * self.tick_ns if self.tick_ns else end_ns


class RunQueue:
    """Those who wait.  Nobody is more than a little behind or ahead of the others when it comes."""

    def __init__(self, rules: SchedulerRules) -> None:
        self._rules = rules
        self._waiting: list[tuple[int, int, bool, Task]] = []
        self._floor_ns = 0  # where the virtual times of all are about: it only grows
        self._number = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, task: Task, now_ns: int, woke: bool, least_ns: int) -> None:
        """*task* waits from *now_ns* on, as it *woke* or was made to; who runs is at a virtual time of
        *least_ns* or later.
        """
        task.since_ns, task.waits_for = now_ns, READY
        rules = self._rules
        floor_ns = self._floor_ns = max(self._floor_ns, least_ns)
        most_ns = floor_ns + virtual(2 * (rules.slice_ns + rules.tick_ns), task.weight)
        task.virtual_ns = min(max(task.virtual_ns, floor_ns - rules.ahead_ns), most_ns)
        deadline_ns = task.virtual_ns + virtual(rules.slice_ns, task.weight)
        self._number += 1
        heappush(self._waiting, (deadline_ns, self._number, woke, task))

    def pop(self) -> Task:
        """The first gets a processor."""
        *_, task = heappop(self._waiting)
        self._floor_ns = max(self._floor_ns, task.virtual_ns)
        return task

    def takes_over(self, task: Task) -> bool:
        """check_preempt_wakeup: whether the first takes the processor of *task*, which was far enough ahead
        when it woke.
        """
        _, _, woke, first = self._waiting[0]
        ran_ns = first.since_ns - task.since_ns
        if not woke or ran_ns < 0:
            return False
        virtual_ns = task.virtual_ns + virtual(ran_ns, task.weight)
        return first.virtual_ns + self._rules.granularity_ns < virtual_ns
