"""Processors: who runs.  Who spins is told by the locks, and both by each `Task`'s accounts.

Free processors cost no event.  With more runnable tasks than processors the surplus waits first come,
first served, and a running task gives its processor up at the end of an operation once its
time slice is over.  Left out: preemption inside an operation, hence of lock holders.
"""

from __future__ import annotations

from collections import deque

from sim.engine import PARK, Environment, Park, Task


class Processors:
    """*count* identical processors with a time slice of *slice_ns*."""

    def __init__(self, env: Environment, count: int, slice_ns: int) -> None:
        self._env = env
        self._free = count
        self._slice_ns = slice_ns
        self._ready: deque[Task] = deque()
        self._since_ns: dict[Task, int] = {}

    def enter(self, task: Task) -> Park | None:
        """*task* wants to run; a returned wait is to be yielded first."""
        if self._free:
            self._free -= 1
            self._since_ns[task] = self._env.now
            return None
        self._ready.append(task)
        return PARK

    def leave(self, task: Task) -> None:
        """*task* sleeps or ends; the longest ready task takes its processor."""
        del self._since_ns[task]
        if self._ready:
            successor = self._ready.popleft()
            self._since_ns[successor] = self._env.now
            self._env.wake(successor)
        else:
            self._free += 1

    def reschedule(self, task: Task) -> Park | None:
        """Between two operations: give way if others are ready and the slice is over."""
        if not self._ready or self._env.now - self._since_ns[task] < self._slice_ns:
            return None
        self.leave(task)
        return self.enter(task)
