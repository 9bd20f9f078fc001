"""A clock with a heap of events, tasks that are generators, and the kernel's locks for tasks that sleep."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from heapq import heappop, heappush
from itertools import count
from typing import Final

SLEEP: Final = -1
"""The value that a task yields to sleep until it is woken."""
SPIN: Final = -2
"""The value that a task yields to spin, on its processor, until it is resumed."""
HANDOFF_NS: Final = 4_000_000
"""RWSEM_WAIT_TIMEOUT: a writer that has slept for this time cannot be overtaken any more."""
Steps = Generator[int, None, None]
"""The body of a task: it yields times of work (ns), `SLEEP` and `SPIN`."""


class Clock:
    """The time (ns) and the future events; at one instant, the event of the lowest rank comes first."""

    def __init__(self, now_ns: int) -> None:
        self.now = now_ns
        self._heap: list[tuple[int, int, int, Callable[[], None]]] = []
        self._numbers = count()

    def at(self, when_ns: int, rank: int, act: Callable[[], None]) -> None:
        """Call *act* at *when_ns*."""
        heappush(self._heap, (when_ns, rank, next(self._numbers), act))

    def run(self) -> None:
        """Carry out all events."""
        while self._heap:
            self.now, _, _, act = heappop(self._heap)
            act()


class Task:
    """A thread of the kernel, which has a processor whenever it wants one."""

    def __init__(self, clock: Clock, rank: int) -> None:
        self._clock = clock
        self._rank = rank
        self._steps: Steps | None = None
        self.running = False
        self.owns: list[RwSemaphore] = []
        self.before_sleep: Callable[[], None] = lambda: None

    def start(self, steps: Steps) -> None:
        """Begin *steps* now."""
        self._steps = steps
        self.wake(0)

    def wake(self, after_ns: int) -> None:
        """Continue the task *after_ns* from now."""
        self._clock.at(self._clock.now + after_ns, self._rank, self._step)

    def _step(self) -> None:
        assert self._steps is not None, "the task must have begun"
        self.running = True
        ns = next(self._steps, None)
        if ns is None:
            self.running = False
        elif ns >= 0:
            self.wake(ns)
        elif ns == SLEEP:
            self.running = False
            self.before_sleep()
            for lock in self.owns:
                lock.owner_sleeps()


class LockCounts:
    """The acquisitions of a class of locks, the contended ones, and the times held and waited (ns)."""

    def __init__(self) -> None:
        self.acquisitions = self.contentions = self.hold_ns = self.wait_ns = 0


class Semaphore:
    """struct semaphore (of a buffer): the owner hands it to the first task that asked, and wakes the task.

    The wake-up takes *waker_ns* of the owner, which it yields.
    """

    def __init__(self, clock: Clock, counts: LockCounts, wake_ns: int, waker_ns: int = 0) -> None:
        self._clock = clock
        self._counts = counts
        self._wake_ns = wake_ns
        self._waker_ns = waker_ns
        self._owner: Task | None = None
        self._since_ns = 0
        self._waiters: deque[tuple[Task, int]] = deque()

    def try_down(self, task: Task) -> bool:
        """Take the semaphore if it is free; return whether it was."""
        if self._owner is not None:
            return False
        self._take(task)
        return True

    def down(self, task: Task) -> Steps:
        """Take the semaphore, or sleep until it is handed over."""
        if not self.try_down(task):
            self._counts.contentions += 1
            self._waiters.append((task, self._clock.now))
            yield SLEEP

    def up(self) -> int:
        """Give the semaphore to the next task, which owns it from now on and wakes up."""
        self._counts.hold_ns += self._clock.now - self._since_ns
        self._owner = None
        if not self._waiters:
            return 0
        task, since_ns = self._waiters.popleft()
        self._counts.wait_ns += self._clock.now - since_ns
        self._take(task)
        task.wake(self._wake_ns)
        return self._waker_ns

    def _take(self, task: Task) -> None:
        self._owner = task
        self._since_ns = self._clock.now
        self._counts.acquisitions += 1


class Waiter:
    """A task that sleeps for an `RwSemaphore` since ``since_ns``; ``woken``: it tries again when it runs."""

    def __init__(self, task: Task, reads: bool, since_ns: int) -> None:
        self.task = task
        self.reads = reads
        self.since_ns = since_ns
        self.woken = False


class RwSemaphore:
    """struct rw_semaphore as of 5.12 and later: readers sleep, writers spin while the owner runs.

    A spinning writer takes the lock before tasks that sleep, and before the task that gives the lock up can
    ask again.  A reader that sleeps owns the lock from its wake-up on.  A writer that sleeps is only woken,
    and may be overtaken for `HANDOFF_NS`.  A writer spins for *spin_ns* while readers own the lock.  Then all
    writers that spin go to sleep, and no writer spins until the last reader has given the lock up.

    To give the lock up takes *waker_ns* for each task that is woken, which the task yields.
    """

    def __init__(
        self, clock: Clock, counts: LockCounts, wake_ns: int, line_ns: int, spin_ns: int, waker_ns: int = 0
    ) -> None:
        self._clock = clock
        self._counts = counts
        self._wake_ns = wake_ns
        self._waker_ns = waker_ns
        self._line_ns = line_ns
        self._spin_ns = spin_ns
        self._writer: Task | None = None
        self._readers = 0
        self._since_ns = 0
        self._spinning: deque[Task] = deque()
        self._sleeping: list[Waiter] = []
        self._handed_off = False
        self._readers_stayed = False
        self._timer = 0  # only the last timer counts
        self._asked_ns: dict[Task, int] = {}  # since when each writer waits

    def down_read(self, task: Task) -> Steps:
        """Take the lock for reading."""
        if self._writer is not None or self._handed_off or (self._readers and self._sleeping):
            self._sleeping.append(Waiter(task, True, self._clock.now))
            yield SLEEP
        else:
            self._readers += 1

    def up_read(self) -> int:
        """Give up the lock of one reader."""
        self._readers -= 1
        if self._readers:
            return 0
        self._timer += 1
        self._readers_stayed = False
        return self._next() * self._waker_ns

    def down_write(self, task: Task) -> Steps:
        """Take the lock for writing."""
        since_ns = self._clock.now
        if not self._free or self._handed_off:
            self._counts.contentions += 1
            self._asked_ns[task] = since_ns
            if self._may_spin():
                self._spinning.append(task)
                yield SPIN
            else:
                self._sleeping.append(Waiter(task, False, since_ns))
                yield SLEEP
        while self._writer is not task:
            queued = [waiter for waiter in self._sleeping if waiter.task is task]
            if self._free:
                if queued:
                    self._sleeping.remove(queued[0])
                self._own(task)
                break
            queued[0].woken = False
            self._handed_off = self._clock.now - since_ns >= HANDOFF_NS
            yield SLEEP

    def up_write(self, task: Task) -> int:
        """Give up the lock of the writer."""
        self._counts.hold_ns += self._clock.now - self._since_ns
        self._writer = None
        task.owns.remove(self)
        return self._next() * self._waker_ns

    def owner_sleeps(self) -> None:
        """Send the writers that spin for the lock to sleep."""
        while self._spinning:
            task = self._spinning.popleft()
            task.running = False
            task.before_sleep()
            self._sleeping.append(Waiter(task, False, self._clock.now))

    @property
    def _free(self) -> bool:
        return self._writer is None and not self._readers

    def _may_spin(self) -> bool:
        if self._handed_off:
            return False
        if self._writer is not None:
            return self._writer.running
        if self._readers_stayed or not self._spin_ns:
            return False
        if not self._spinning:
            self._timer += 1
            timer = self._timer
            self._clock.at(self._clock.now + self._spin_ns, -1, lambda: self._time_is_over(timer))
        return True

    def _time_is_over(self, timer: int) -> None:
        if timer == self._timer:
            self._readers_stayed = True
            self.owner_sleeps()

    def _own(self, task: Task) -> None:
        self._writer = task
        self._since_ns = self._clock.now
        self._counts.acquisitions += 1
        self._counts.wait_ns += self._clock.now - self._asked_ns.pop(task, self._clock.now)
        task.owns.append(self)

    def _next(self) -> int:
        """rwsem_wake, after the writers that spin; return how many tasks are woken."""
        woken = 0
        if self._spinning and not self._handed_off:
            task = self._spinning.popleft()
            self._own(task)
            self._since_ns += self._line_ns
            self._counts.wait_ns += self._line_ns
            task.wake(self._line_ns)
        elif self._sleeping and self._sleeping[0].reads:
            while self._sleeping and self._sleeping[0].reads:
                self._readers += 1
                self._sleeping.pop(0).task.wake(self._wake_ns)
                woken += 1
        elif self._sleeping and self._handed_off:
            self._handed_off = False
            self._own(task := self._sleeping.pop(0).task)
            task.wake(self._wake_ns)
            woken = 1
        elif self._sleeping and not self._sleeping[0].woken:
            self._sleeping[0].woken = True
            self._sleeping[0].task.wake(self._wake_ns)
            woken = 1
        return woken
