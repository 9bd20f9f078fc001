"""Load balancing: which task moves to another processor, and when.

Stands for load_balance, sched_balance_newidle and nohz_idle_balance (kernel/sched/fair.c), with one domain of
all processors:

* A processor that becomes idle takes a waiting task at once, unless the task is hot: it ran a moment ago.
* While tasks wait, the idle processors try again every ``ask_ns``.  The third try takes a hot task, too.
* If the only waiting tasks are bound, the fourth try takes the task that runs (active_load_balance_cpu_stop).
* While no processor is idle, a task moves from the longest queue to the shortest one from time to time.

So a flusher shares a processor with the bound worker that it wakes for many ticks (docs/measurements.md V).

Left out: the topology of caches, the longer intervals of larger domains, tasks that sleep and still count
(DELAY_DEQUEUE).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wbsim.models.scheduler.runqueue import RunQueue, SchedulerRules
from wbsim.sim.engine import Environment, Task
from wbsim.sim.entry import FAR_NS

HOT_TRIES: Final = 1
"""The failed tries up to which a hot task stays where it is (sd->cache_nice_tries)."""
PUSH_TRIES: Final = HOT_TRIES + 2
"""The failed tries from which on an idle processor takes a task that runs (need_active_balance)."""


class LoadBalance:
    """Moves tasks between *queues*; *runs* has the task that each processor runs.

    *idle_takes* lets an idle processor run the first task of its queue.  *push* moves a running task to an
    idle processor as soon as it can be interrupted.  *queued* is called after each balance of busy
    processors.
    """

    def __init__(
        self,
        env: Environment,
        rank: int,
        rules: SchedulerRules,
        queues: list[RunQueue],
        runs: list[Task | None],
        idle_takes: Callable[[int], None],
        push: Callable[[Task], None],
        queued: Callable[[], None],
    ) -> None:
        self._env = env
        self._rules = rules
        self._rank = rank
        self._queues = queues
        self._runs = runs
        self._idle_takes = idle_takes
        self._push = push
        self._queued = queued
        self._tries = [0] * len(queues)  # the failed tries in a row, by the processor that was asked
        self._balances = self.asks = False

    def tasks_wait(self) -> None:
        """Begin to move tasks between busy processors at intervals, because a task waits.

        Further calls change nothing until no task waits.
        """
        if not self._balances and self._rules.balance_ns < FAR_NS:
            self._balances = True
            self._env.call_at(self._env.now + self._rules.balance_ns, self._rank, self._balance)

    def processor_is_idle(self) -> None:
        """Let the idle processors ask for tasks from the next tick on, until none waits.

        A processor became idle, or a task waits although one is idle.
        """
        ask_ns = self._rules.ask_ns
        if not self.asks and ask_ns:
            self.asks = True
            self._env.call_at((self._env.now // ask_ns + 1) * ask_ns, self._rank, self._ask)

    def take(self, cpu: int) -> bool:
        """Move a waiting task that is not hot to the empty queue of *cpu*; return whether there was one.

        Only a task that is not bound moves, from the queue with the most such tasks.  The caller then lets
        the task run there.
        """
        return self._move(_longest(self._queues), cpu, self._env.now - self._rules.hot_ns)

    def _balance(self) -> None:
        """Move a task from the longest to the shortest queue, if that has fewer tasks."""
        self._balances = False
        if not any(map(len, self._queues)):
            return
        if None not in self._runs:
            most, least = _longest(self._queues), shortest(self._queues)
            if self._queues[most].movable and len(self._queues[most]) > len(self._queues[least]):
                self._move(most, least, FAR_NS)
        self.tasks_wait()
        self._queued()

    def _ask(self) -> None:
        """Let the idle processors ask each queue for a task."""
        self.asks = False
        waits = False
        for cpu, queue in enumerate(self._queues):
            if len(queue):
                waits = True
                if None in self._runs:
                    self._ask_queue(cpu, self._runs.index(None))
        if waits and None in self._runs:
            self.processor_is_idle()

    def _ask_queue(self, cpu: int, idle: int) -> None:
        """Let the processor *idle* try to take a task of *cpu*."""
        tries, current = self._tries[cpu], self._runs[cpu]
        self._tries[cpu] = 0
        if self._move(cpu, idle, FAR_NS if tries > HOT_TRIES else self._env.now - self._rules.hot_ns):
            self._idle_takes(idle)
        elif tries >= PUSH_TRIES and current is not None and current.bound < 0:
            self._push(current)
        else:
            self._tries[cpu] = tries + 1

    def _move(self, cpu: int, target: int, stopped_by_ns: int) -> bool:
        """Let a task that waits for *cpu*, and stopped by *stopped_by_ns*, wait for *target* instead."""
        for number in (cpu, target):
            current = self._runs[number]
            if current is not None:
                self._queues[number].go_on(current, self._env.now)
        return self._queues[cpu].give(self._queues[target], stopped_by_ns)


def _longest(queues: list[RunQueue]) -> int:
    """Return the first processor for which the most tasks wait that may run on another processor."""
    return max(range(len(queues)), key=lambda cpu: queues[cpu].movable)


def shortest(queues: list[RunQueue]) -> int:
    """Return the number (from 0) of the first processor for which the fewest tasks wait."""
    return min(range(len(queues)), key=lambda cpu: len(queues[cpu]))
