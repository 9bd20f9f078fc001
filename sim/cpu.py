"""Processors: who runs, and whom interrupts take time from.

Who spins is told by the locks, and all of it by each `Task`'s accounts.  Free processors cost no event.
With more runnable tasks than processors the surplus waits first come, first served, and a running
task gives its processor up at the end of an operation once its time slice is over.  Left out:
preemption inside an operation, hence of lock holders; kernel threads, which find a processor at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from sim.engine import PARK, Environment, Park, Steps, Task
from sim.laws import require


class Processors:
    """*count* identical processors with a time slice of *slice_ns*; *dice* are uniform in [0, 1)."""

    def __init__(self, env: Environment, count: int, slice_ns: int, dice: Callable[[], float]) -> None:
        self._env = env
        self._count = count
        self._slice_ns = slice_ns
        self._dice = dice
        self._running: list[Task | None] = [None] * count
        self._free = list(range(count - 1, -1, -1))
        self._ready: deque[Task] = deque()
        self._place: dict[Task, tuple[int, int]] = {}  # task -> its processor, and since when (ns)
        self.interrupted_ns = 0  # what tasks were charged for interrupts

    @property
    def count(self) -> int:
        """How many processors there are."""
        return self._count

    def enter(self, task: Task) -> Park | None:
        """*task* wants to run; a returned wait is to be yielded first."""
        if self._free:
            self._put(task, self._free.pop())
            return None
        self._ready.append(task)
        return PARK

    def leave(self, task: Task) -> None:
        """*task* sleeps or ends; the longest ready task takes its processor."""
        processor, _ = self._place.pop(task)
        if self._ready:
            successor = self._ready.popleft()
            self._put(successor, processor)
            self._env.wake(successor)
        else:
            self._running[processor] = None
            self._free.append(processor)

    def sleep(self, task: Task, ns: int) -> Steps:
        """*task* gives its processor up, and wants one again *ns* from now."""
        self.leave(task)
        yield ns
        ready = self.enter(task)
        if ready is not None:
            yield ready

    def reschedule(self, task: Task) -> Park | None:
        """Between two operations: give way if others are ready and the slice is over."""
        if not self._ready or self._env.now - self._place[task][1] < self._slice_ns:
            return None
        self.leave(task)
        return self.enter(task)

    def interrupt(self, cost_ns: int) -> None:
        """An interrupt of *cost_ns* hits any processor: its task is charged, and owes the time."""
        task = self._running[int(self._dice() * self._count)]
        if task is not None:
            task.system_ns += cost_ns
            task.owed_ns += cost_ns
            self.interrupted_ns += cost_ns

    def check(self) -> None:
        """Each processor is free or runs one task, and nobody waits for a free one.

        Raises:
            LawBroken: a processor was lost, or is given twice.
        """
        running = {task: at for at, task in enumerate(self._running) if task is not None}
        require(
            len(running) + len(set(self._free)) == self._count,
            f"processors: each of {self._count} is free or runs a task: {running}, {self._free}",
        )
        require(
            {task: at for task, (at, _) in self._place.items()} == running,
            f"processors: who runs has its place: {running}",
        )
        require(
            not (self._free and self._ready), f"processors: nobody waits beside a free one: {self._ready}"
        )

    def _put(self, task: Task, processor: int) -> None:
        self._running[processor] = task
        self._place[task] = (processor, self._env.now)
