"""The tasks that wait for one processor, and the order in which they get it.

Stands for a run queue of the fair class: CFS (kernel/sched/fair.c from 2.6.23) and EEVDF (6.6).  Each task
has a virtual time, which is slower for a larger weight.  The task with the earliest virtual deadline is the
first in the queue.  The deadline of a task is its virtual time plus a slice.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from wbsim.sim.engine import NICE_0_LOAD, READY, Task
from wbsim.sim.entry import FAR_NS


def virtual(ran_ns: int, weight: int) -> int:
    """Return *ran_ns* in the virtual time (ns) of a task with *weight*.

    >>> virtual(1_000, weight=2_048)
    500
    """
    return ran_ns if weight == NICE_0_LOAD else ran_ns * NICE_0_LOAD // weight


@dataclass(frozen=True)
class SchedulerRules:
    """The rules that decide how long a task keeps its processor while other tasks wait.

    A slice is ``slice_ns`` long.  The end of a slice is noticed at multiples of ``tick_ns`` (0: at once).
    Every ``balance_ns`` a task may move from a processor with more waiting tasks to one with fewer.
    Every ``ask_ns`` an idle processor asks for a task (0: never).
    A task is hot if it ran less than ``hot_ns`` ago (sysctl_sched_migration_cost); see `balance`.

    ``stacks``: a task that a bound worker wakes on its processor stays there, behind the worker
    (select_idle_sibling, from 5.6 on).

    CFS (``keeps_lag`` is False): a task that wakes gets a virtual time up to ``ahead_ns`` (half of
    sched_latency) earlier than the others.  The task preempts a running task whose virtual time is more than
    ``granularity_ns`` later.

    EEVDF (``keeps_lag`` is True): a task that falls asleep keeps its lag, the distance below the average
    virtual time, up to ``most_lag_ns``.  When it wakes, it gets a virtual time with the same lag.  The task
    preempts a running task that is not eligible, which means that it has run more than the average.
    """

    slice_ns: int
    tick_ns: int = 0
    ahead_ns: int = 0
    granularity_ns: int = 0
    keeps_lag: bool = False
    balance_ns: int = FAR_NS
    hot_ns: int = 0
    ask_ns: int = 0
    stacks: bool = False

    def over_ns(self, since_ns: int) -> int:
        """Return when the scheduler notices the end of a slice that began at *since_ns* (ns).

        >>> SchedulerRules(slice_ns=3_000_000, tick_ns=4_000_000).over_ns(2_000_000)
        8000000
        """
        end_ns = since_ns + self.slice_ns
        return -(-end_ns // self.tick_ns) * self.tick_ns if self.tick_ns else end_ns

    @property
    def most_lag_ns(self) -> int:
        """The largest lag of a task (entity_lag): two slices, or a tick if that is longer.

        >>> SchedulerRules(slice_ns=3_000_000, tick_ns=4_000_000).most_lag_ns
        6000000
        """
        return max(2 * self.slice_ns, self.tick_ns)


class RunQueue:
    """The tasks that wait for one processor.

    ``floor_ns`` (min_vruntime) is near the virtual times of the tasks; `go_on` never lowers it.  A task that
    is added is ready from then on: its ``since_ns`` and ``waits_for`` are set.
    """

    __slots__ = ("_heap", "_number", "_rules", "floor_ns", "movable")

    def __init__(self, rules: SchedulerRules) -> None:
        self._rules = rules
        self._heap: list[tuple[int, int, int, Task]] = []
        self._number = 0
        self.floor_ns = 0
        self.movable = 0  # the number of waiting tasks that may run on another processor

    def __len__(self) -> int:
        return len(self._heap)

    def wakes(self, task: Task, current: Task, now_ns: int) -> None:
        """Add *task*, which wakes at *now_ns* while *current* has the processor.

        The task gets the virtual time that `SchedulerRules` describe.
        """
        self.go_on(current, now_ns)
        rules, floor_ns = self._rules, self.floor_ns
        if rules.keeps_lag:
            # *task* pulls the average back.  Measured from the new average, its lag is the lag that it kept.
            average_ns, weight = self._average(virtual_now(current, now_ns), current.weight)
            average_ns -= task.lag_ns * task.weight // weight
            task.virtual_ns = average_ns - task.lag_ns
            self._push(task, now_ns, average_ns)
        else:
            most_ns = floor_ns + virtual(2 * (rules.slice_ns + rules.tick_ns), task.weight)
            task.virtual_ns = min(max(task.virtual_ns, floor_ns - rules.ahead_ns), most_ns)
            self._push(task, now_ns, task.virtual_ns + rules.granularity_ns)

    def go_on(self, current: Task, now_ns: int) -> None:
        """Move ``floor_ns`` on, after *current* has run until *now_ns* (update_min_vruntime)."""
        running_ns = virtual_now(current, now_ns)
        first_ns = min((task.virtual_ns for *_, task in self._heap), default=running_ns)
        self.floor_ns = max(self.floor_ns, min(running_ns, first_ns))

    def keep(self, task: Task, now_ns: int) -> None:
        """Add *task*, which lost the processor at *now_ns*, with its virtual time; it preempts none."""
        self._push(task, now_ns, FAR_NS)

    def lag_of(self, task: Task, now_ns: int) -> int:
        """Return the lag of *task*, which runs and falls asleep (ns).

        The kernel dequeues a task that is ahead of the average when it no longer is (DELAY_DEQUEUE), so its
        lag is 0.
        """
        own_ns = virtual_now(task, now_ns)
        average_ns, _ = self._average(own_ns, task.weight)
        return min(max(average_ns - own_ns, 0), self._rules.most_lag_ns)

    def pop(self) -> Task:
        """Remove the first task, which gets the processor, and return it; there must be one."""
        *_, task = heappop(self._heap)
        self.movable -= task.bound < 0
        return task

    def give(self, target: RunQueue, stopped_by_ns: int = FAR_NS) -> bool:
        """Move the first task that is not bound, and stopped by *stopped_by_ns*, to the queue *target*.

        Return whether there is one.  Call `go_on` on both queues first.  The task keeps its distance from
        ``floor_ns``.
        """
        first = min(
            (entry for entry in self._heap if entry[-1].bound < 0 and entry[-1].stopped_ns <= stopped_by_ns),
            default=None,
        )
        if first is None:
            return False
        self._heap.remove(first)
        heapify(self._heap)
        deadline_ns, _, _, task = first
        self.movable -= 1
        target.movable += 1
        moved_ns = target.floor_ns - self.floor_ns
        task.virtual_ns += moved_ns
        target._number += 1
        # FAR_NS: the task preempts no task of its new processor.  In the kernel it may (attach_task).
        heappush(target._heap, (deadline_ns + moved_ns, target._number, FAR_NS, task))
        return True

    def takes_over(self, task: Task) -> bool:
        """Return whether the first waiting task preempts *task*, which runs; one must wait.

        The first task does if *task* was far enough ahead in virtual time when the first task woke
        (check_preempt_wakeup).
        """
        _, _, beyond_ns, first = self._heap[0]
        ran_ns = first.since_ns - task.since_ns
        return ran_ns >= 0 and task.virtual_ns + virtual(ran_ns, task.weight) > beyond_ns

    def _average(self, running_ns: int, weight: int) -> tuple[int, int]:
        """avg_vruntime: return the mean virtual time of all tasks by weight, and the sum of their weights.

        The running task has the virtual time *running_ns* and the *weight*.
        """
        if not self._heap:
            return running_ns, weight
        whole, weights = running_ns * weight, weight
        for *_, task in self._heap:
            whole += task.virtual_ns * task.weight
            weights += task.weight
        return whole // weights, weights

    def _push(self, task: Task, now_ns: int, beyond_ns: int) -> None:
        """Add *task*, which preempts a task whose virtual time is later than *beyond_ns*."""
        task.since_ns, task.waits_for = now_ns, READY
        deadline_ns = task.virtual_ns + virtual(self._rules.slice_ns, task.weight)
        self._number += 1
        self.movable += task.bound < 0
        heappush(self._heap, (deadline_ns, self._number, beyond_ns, task))


def virtual_now(task: Task, now_ns: int) -> int:
    """Return the virtual time (ns) of *task*, which runs, at *now_ns*."""
    return task.virtual_ns + virtual(now_ns - task.since_ns, task.weight)
