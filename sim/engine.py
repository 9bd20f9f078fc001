"""The SimPy environment on an integer-nanosecond clock, and its two light waits.

A *task* is a generator that the environment resumes.  It may yield

* a bare ``int``: let that many nanoseconds pass.  The task itself waits on SimPy's own queue, so
  no event object is made;
* ``PARK``: sleep until somebody calls ``env.wake(task)``;
* a generator: run it first, as ``yield from`` would, but resume it directly: for a callee that waits
  often, since each ``yield from`` in between costs on every wait;
* any SimPy event, as an ordinary SimPy process would.

Ties are broken by rank and never by the history of scheduling: the queue's key is ``(time, rank,
sequence)``, every task has a rank of its own, and what ends at an instant (a lock's release, rank
``URGENT`` or below) comes before what starts at it.  `sim.stock` offers the same interface on stock
SimPy events, and gives bit-identical results.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator
from heapq import heappop, heappush, heappushpop
from types import GeneratorType
from typing import Any, Final

import simpy
from simpy.events import Event

URGENT: Final = 0
FAR_NS: Final = 1 << 62
"""Later than any run."""
_FIRST_RANK: Final = 2  # SimPy's own events use 0 and 1


class Park:
    """The type of the token that a sleeping task yields."""

    def __repr__(self) -> str:
        return "PARK"


PARK: Final = Park()
Wait = int | Park | Event | Generator[Any, None, None]
"""What a task may yield."""
Steps = Generator[Wait, None, None]
"""The body of a task, or a part of it."""


class GiveUp(Exception):
    """A run still had events to come at its give-up time."""


class Task:
    """One thread of execution and the processor time it has used (ns)."""

    __slots__ = (
        "advance",
        "callers",
        "name",
        "on_exit",
        "owed_ns",
        "rank",
        "spin_ns",
        "system_ns",
        "user_ns",
        "wakeup",
    )

    def __init__(self, name: str, rank: int) -> None:
        self.name = name
        self.rank = rank
        self.advance: Callable[[], Wait] = _unstarted
        self.callers: list[Callable[[], Wait]] = []
        self.user_ns = 0
        self.system_ns = 0
        self.spin_ns = 0
        self.owed_ns = 0  # taken by interrupts; the task adds it to its next work
        self.on_exit: Callable[[], None] | None = None
        self.wakeup: Any = None

    def __repr__(self) -> str:
        return f"<Task {self.name}>"


def _unstarted() -> Wait:
    raise RuntimeError("the task has no body yet: env.start(task, steps)")


class Environment(simpy.Environment):
    """SimPy's environment with an ``int`` clock in nanoseconds and light tasks."""

    now: int = 0  # a plain attribute: SimPy's property costs a call on every read

    @property
    def _now(self) -> int:
        """What SimPy itself reads and, once, writes."""
        return self.now

    @_now.setter
    def _now(self, now_ns: int) -> None:
        self.now = now_ns

    def __init__(self) -> None:
        super().__init__(0)
        self._entries: list[Any] = self._queue  # SimPy's own list, open to tasks and calls
        self._ranks = _FIRST_RANK
        self.live_tasks = 0

    def next_rank(self) -> int:
        """A rank of one's own, in order of asking; lower ranks go first in a tie."""
        rank = self._ranks
        self._ranks += 1
        return rank

    def task(self, name: str) -> Task:
        """A task without a body; `start` gives it one."""
        return Task(name, self.next_rank())

    def start(self, task: Task, steps: Steps, delay_ns: int = 0) -> Task:
        """Let *task* run *steps*, first resumed *delay_ns* from now."""
        task.advance = steps.__next__
        self.live_tasks += 1
        self.wake(task, delay_ns)
        return task

    def next_event_ns(self, but: Container[int] = ()) -> int:
        """When the next entry is due (ns) whose rank is not in *but*; `FAR_NS` if there is none.

        Until then, nothing else changes what the owners of those ranks leave alone.
        """
        entries = self._entries
        if not entries or not but:
            return int(entries[0][0]) if entries else FAR_NS
        # Down the heap, in order of time, and no farther than the first that counts.
        ahead = [(entries[0][0], 0)]
        while ahead:
            when, at = heappop(ahead)
            if entries[at][1] not in but:
                return int(when)
            for below in (2 * at + 1, 2 * at + 2):
                if below < len(entries):
                    heappush(ahead, (entries[below][0], below))
        return FAR_NS

    def wake(self, task: Task, delay_ns: int = 0) -> None:
        """Resume a parked task *delay_ns* from now.  A task is woken once per park."""
        heappush(self._entries, (self.now + delay_ns, task.rank, next(self._eid), task))

    def call_at(self, when_ns: int, rank: int, act: Callable[[], object]) -> None:
        """Call *act* at *when_ns*."""
        heappush(self._entries, (when_ns, rank, next(self._eid), act))

    def halt(self) -> None:
        """Forget all that is to come, so that `run` returns: what was measured is over."""
        self._queue.clear()

    def run(self, until: Any = None) -> None:
        """Run until nothing is left to do.

        *until* (ns) is the give-up time: the run is refused there, since a deadlocked model's
        timers tick on for ever.

        Raises:
            GiveUp: work was left at *until*.
            TypeError: a task yielded something that is no wait (a float, None).
        """
        give_up_ns = until if until is not None else FAR_NS
        queue, task_class = self._entries, Task
        # A task that goes on waiting is pushed and the next entry popped in one step.
        entry = heappop(queue) if queue else None
        while entry is not None:
            when, rank, number, item = entry
            if when > give_up_ns:
                raise GiveUp(f"still {len(queue) + 1} events to come at {give_up_ns / 1e9:g} s")
            self.now = when
            if item.__class__ is task_class:
                try:
                    wait = item.advance()
                except StopIteration:
                    wait = self._return(item)
                if wait.__class__ is int or (wait := self._settle(item, wait)) is not PARK:
                    # Its rank is its own: the number decides nothing, and serves again.
                    entry = heappushpop(queue, (when + wait, rank, number, item))
                    continue
            elif isinstance(item, Event):
                self._fire(item)
            else:
                item()
            entry = heappop(queue) if queue else None

    def _settle(self, task: Task, wait: Wait) -> int | Park:
        """What *task* has to do before it can wait for it: a time, or PARK."""
        if wait.__class__ is GeneratorType:
            wait = self._call(task, wait)
        if wait.__class__ is int or wait is PARK:
            return wait
        self._await(task, wait)
        return PARK

    def _call(self, task: Task, callee: Any) -> Wait:
        """Go down into *callee*, and on until something is to be waited for."""
        while True:
            task.callers.append(task.advance)
            task.advance = callee.__next__
            try:
                wait = task.advance()
            except StopIteration:
                return self._return(task)
            if wait.__class__ is not GeneratorType:
                return wait
            callee = wait

    def _return(self, task: Task) -> Wait:
        """The innermost part of *task* has ended: go on with its caller, if it has one."""
        while task.callers:
            task.advance = task.callers.pop()
            try:
                wait = task.advance()
            except StopIteration:
                continue
            return self._call(task, wait) if wait.__class__ is GeneratorType else wait
        self.live_tasks -= 1
        if task.on_exit is not None:
            task.on_exit()
        return PARK

    def _await(self, task: Task, wait: Wait) -> None:
        if not isinstance(wait, Event):
            raise TypeError(
                f"{task.name} yielded {wait!r}: yield a whole number of ns, PARK, an event or a generator"
            )
        if wait.callbacks is None:
            self.wake(task)
        else:
            wait.callbacks.append(lambda _: self.wake(task))

    @staticmethod
    def _fire(event: Event) -> None:
        callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment]
        for callback in callbacks:
            callback(event)
        if not event._ok and not event._defused:
            raise event._value
