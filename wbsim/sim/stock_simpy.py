"""The interface of `sim.engine` and `sim.sync` on stock SimPy: `Process`, `Resource`, events.

It shows that the light primitives are correct and what time they save: the same model gives the same results
with both, bit for bit.  Here every wait is an event, and every lock is a `Resource`, held or free.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from types import GeneratorType
from typing import Any

import simpy

from wbsim.sim.engine import (
    ABSENT,
    MOST_AT_ONCE,
    PARK,
    SPIN,
    URGENT,
    CallError,
    GiveUp,
    Park,
    Standstill,
    Steps,
    Task,
)
from wbsim.sim.entry import FAR_NS
from wbsim.sim.simpy_bridge import Beside
from wbsim.sim.sync import HandOff, LockStat, spins, waiting_for


class StockEnvironment:
    """`sim.engine.Environment` without light waits: each task is a SimPy process."""

    def __init__(self) -> None:
        self._simpy = simpy.Environment(0)
        self._ranks = 2
        self.simpy = Beside(self)
        self.live_tasks = 0
        self.most_at_once = MOST_AT_ONCE

    @property
    def now(self) -> int:
        """The clock (ns)."""
        return int(self._simpy.now)

    def next_event_ns(self) -> int:
        """Return when the next event is due (ns), or `FAR_NS`; see `Environment.next_event_ns`.

        A lock takes more events here.
        """
        due = self._simpy.peek()
        return FAR_NS if due == simpy.core.Infinity else int(due)

    def next_rank(self) -> int:
        """Return a rank that no task has yet, one above the last; see `Environment.next_rank`."""
        rank = self._ranks
        self._ranks += 1
        return rank

    def task(self, name: str) -> Task:
        """Return a new task called *name*, with its own rank and without a body; see `Environment.task`."""
        task = Task(name, self.next_rank())
        task.wakeup = self._simpy.event()
        return task

    def start(self, task: Task, steps: Steps, delay_ns: int = 0) -> Task:
        """Let *task* run *steps*, beginning *delay_ns* from now; return *task* (see `Environment.start`)."""
        self.live_tasks += 1
        if delay_ns and task.scheduler is not None:
            self.call_at(self.now + delay_ns, task.rank, lambda: self.wake(task))
        else:
            self.wake(task, delay_ns)
        self._simpy.process(self._drive(task, steps))
        return task

    def wake(self, task: Task, delay_ns: int = 0, waker: Task | None = None) -> None:
        """Wake *task*, which yielded PARK: it goes on *delay_ns* from now, if it gets a processor now.

        *waker*: the task that wakes it, for the scheduler.  See `Environment.wake`.
        """
        if task.scheduler is None or task.scheduler.wants(task, waker):
            task.waking_ns += delay_ns
            self.resume(task, delay_ns)

    def resume(self, task: Task, delay_ns: int = 0) -> None:
        """Resume *task* *delay_ns* from now, without its scheduler; see `Environment.resume`."""
        self._schedule(task.wakeup, task.rank, delay_ns)

    def call_at(self, when_ns: int, rank: int, act: Callable[[], object]) -> None:
        """Call *act* at *when_ns*, in the order of *rank* (lowest first); see `Environment.call_at`."""
        event = self._simpy.event()

        def call(_: simpy.Event) -> None:
            act()

        event.callbacks.append(call)
        self._schedule(event, rank, when_ns - self.now)

    def halt(self) -> None:
        """Drop all events, so that `run` returns, whatever tasks still wait; see `Environment.halt`."""
        self._simpy._queue.clear()

    def run(self, deadline_ns: int | None = None) -> None:
        """Run until no event is left; *deadline_ns* is the give-up time (None: none).  See `Environment.run`.

        Raises:
            GiveUp: an event is due after *deadline_ns*.
            Standstill: the clock does not move any more.
            CallError: a task's call failed, and the task has not caught the error.
        """
        peek, step = self._simpy.peek, self._simpy.step
        last = FAR_NS if deadline_ns is None else deadline_ns
        events_left, stood_ns = self.most_at_once, FAR_NS
        while peek() <= last:
            step()
            events_left -= 1
            if not events_left:
                if self.now == stood_ns:
                    raise Standstill(self.now, self.most_at_once, ["stock SimPy's events"])
                events_left, stood_ns = self.most_at_once, self.now
        if peek() != simpy.core.Infinity:
            raise GiveUp(f"events remain at {last / 1e9:g} s")

    def timeout(self, delay_ns: int, rank: int) -> simpy.Event:
        """Return an event that is due *delay_ns* from now; of one instant, the lowest *rank* comes first."""
        return self._schedule(self._simpy.event(), rank, delay_ns)

    def resource(self) -> simpy.Resource:
        """Return a SimPy resource with one slot, of which a lock is made."""
        return simpy.Resource(self._simpy, capacity=1)

    def _schedule(self, event: simpy.Event, rank: int, delay_ns: int) -> simpy.Event:
        event._ok = True
        event._value = None
        self._simpy.schedule(event, priority=rank, delay=delay_ns)  # type: ignore[arg-type]
        return event

    def _drive(self, task: Task, steps: Steps) -> Generator[simpy.Event, Any, None]:
        yield from self.parked(task)
        yield from self._serve(task, steps)
        self.live_tasks -= 1
        task.waits_for = ABSENT
        if task.scheduler is not None:
            task.scheduler.leave(task)
        if task.on_exit is not None:
            task.on_exit()

    def _serve(self, task: Task, steps: Steps) -> Iterator[Any]:
        error: CallError | None = None
        while True:
            try:
                wait = next(steps) if error is None else steps.throw(error)
            except StopIteration:
                return
            error = None
            if wait.__class__ is int:
                yield self.timeout(wait, task.rank)
            elif wait is PARK:
                if task.scheduler is not None:
                    task.scheduler.sleeps(task)
                yield from self.parked(task)
            elif wait.__class__ is GeneratorType:
                try:
                    yield from self._serve(task, wait)
                except CallError as failure:
                    error = failure
            elif wait is SPIN:
                yield from self.parked(task)
            else:
                yield from wait.serve()  # type: ignore[union-attr]

    def parked(self, task: Task) -> Iterator[Any]:
        """Wait until *task* is resumed, and then give it a new event ``wakeup`` for the next time.

        Use: `yield from`, in a SimPy process.
        """
        yield task.wakeup
        task.wakeup = self._simpy.event()


@dataclass(frozen=True)
class _Section(Park):
    """A wait for a lock; *serve* yields its SimPy events."""

    serve: Callable[[], Iterator[Any]]


class StockSpinLock:
    """`sim.sync.SpinLock` as a `Resource` and timeouts."""

    def __init__(self, env: StockEnvironment, name: str, hand_off: HandOff, urgent: int = URGENT) -> None:
        self._env = env
        self._hand_off = hand_off
        self._urgent = urgent
        self._resource = env.resource()
        self._hand_off_ns = 0
        self._cpu = -1
        self._spinning: list[Task] = []
        self._cause = waiting_for(name)
        self.name = name
        self.stat = LockStat()

    @property
    def free(self) -> bool:
        """True if no task has the lock or waits for it; see `SpinLock.free`."""
        return not self._resource.count

    def section(self, task: Task, hold_ns: int, then_ns: int = 0) -> _Section:
        """Wait for the lock, hold it for *hold_ns*, release it, and work for *then_ns*.  Yield the result.

        See `SpinLock.section`; the result is always a wait for SimPy events here.
        """
        request = self._resource.request()
        free = request.triggered
        since_ns = self._env.now
        self.stat.count_hold(hold_ns)

        env = self._env
        if free:
            self._count_owner(task, False)
        else:
            self.stat.contentions += 1
            self._spinning.append(task)

        def serve() -> Iterator[Any]:
            yield request
            if free:
                yield env.timeout(hold_ns, self._urgent)
            else:  # one wait, so that a section of no length ends before another task asks at this instant
                self._count_owner(task, True)
                yield env.timeout(self._hand_off_ns + hold_ns, self._urgent)
                spun_ns = env.now - hold_ns - since_ns
                spins(task, self.name, self._cause, spun_ns)
                self.stat.count_wait(spun_ns)
                self.stat.hand_off_ns += self._hand_off_ns
            self._hand_off_ns = self._next_hand_off_ns(task)
            self._resource.release(request)
            yield env.timeout(then_ns, task.rank)

        return _Section(serve)

    def _count_owner(self, task: Task, contended: bool) -> None:
        """Count that *task* has the lock now."""
        if task.cpu != self._cpu:
            self.stat.bounces += 1
            self.stat.con_bounces += contended
            self._cpu = task.cpu
        if contended:
            self._spinning.pop(0)

    def _next_hand_off_ns(self, owner: Task) -> int:
        """Return the time that the lock takes from its *owner* to the first waiting task (ns)."""
        hand_off, spinning = self._hand_off, self._spinning
        if not spinning:
            return 0
        nodes = [hand_off.node(task.cpu) for task in spinning]
        node = hand_off.node(owner.cpu)
        return hand_off.hand_off_ns(node, nodes[0], len(nodes), nodes.count(node))
