"""The environment of a run: an integer-nanosecond clock, and light waits.

A *task* is a generator that the environment resumes.  It may yield

* a bare ``int``: let that many nanoseconds pass.  The task itself is put on the agenda, so no event object
  is made;
* ``PARK``: sleep until ``env.wake(task)`` is called;
* ``SPIN``: keep the processor and wait until ``env.resume(task)`` is called;
* a generator: run it first, as ``yield from`` would, but resume it directly.  Use this for a callee that
  waits often, because each ``yield from`` in between costs time on every wait.  A `CallError` that it raises
  comes up in its caller, as with ``yield from``;
* any SimPy event of ``env.simpy``, as an ordinary SimPy process would.

Ties are broken by rank and never by the history of scheduling.  The key of the agenda is
``(time, rank, number)``, and no two tasks have the same rank.  Events that end something at an instant come
before events that start something.  A release of a lock, for example, has the rank ``URGENT`` or below.
`sim.stock_simpy` offers the same interface on stock SimPy events, and gives bit-identical results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable
from typing import Any, Final, TypeGuard

import simpy
from mypy_extensions import i64, mypyc_attr
from simpy.events import Event

from wbsim.sim import COMPILED
from wbsim.sim.entry import FAR_NS, Entry
from wbsim.sim.simpy_bridge import Beside

if COMPILED:
    from wbsim.sim.heap import Agenda
else:
    from wbsim.sim.agenda import Agenda

URGENT: Final = 0
MOST_AT_ONCE: Final = 10_000_000
"""The number of events at one instant after which a run fails with `Standstill`.

The clock is checked once in so many events, so a run may make up to twice as many.
"""
_FIRST_RANK: Final = 2  # SimPy's own events use 0 and 1


class CallError(Exception):
    """The failure of what a task does, such as a system call; a caller in the task may catch it."""


class Park:
    """The type of the tokens that a waiting task yields."""

    __slots__ = ("_name",)

    def __init__(self, name: str = "") -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


PARK: Final = Park("PARK")
SPIN: Final = Park("SPIN")
ABSENT: Final = "absent"
"""``waits_for`` of a task that has not begun, or has ended."""
IDLE: Final = "idle"
"""``waits_for`` of a task that has nothing to do; the default while no other cause is set."""
READY: Final = "a processor"
"""``waits_for`` of a task that could run if it had a processor."""
Wait = int | Park | Event | Generator[Any, None, None]
"""The values that a task may yield."""
Steps = Generator[Wait, None, None]
"""The body of a task, or a part of the body."""


class GiveUp(Exception):
    """A run still had events to come at its give-up time."""


class Standstill(Exception):
    """A run made too many events at one instant (`MOST_AT_ONCE`)."""

    def __init__(self, now_ns: int, events: int, busy: Iterable[str]) -> None:
        names = sorted(set(busy))
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        super().__init__(
            f"{events} events at {now_ns / 1e9:.9g} s, and the clock does not advance; busy: "
            f"{', '.join(names[:_NAMED])}{more}"
        )


_NAMED: Final = 8
NICE_0_LOAD: Final = 1_024
"""The weight of a task of nice 0."""


class Scheduler(ABC):
    """Gives processors to tasks.  ``contended``: True if a task waits for a processor."""

    def __init__(self) -> None:
        self.contended = False

    @abstractmethod
    def wants(self, task: Task, waker: Task | None = None) -> bool:
        """Give *task*, which was woken, a processor; return whether it has one now.

        If it has, the caller (`Environment.wake`) resumes it.  Otherwise the scheduler resumes it when a
        processor is free.  *waker*: the task that wakes *task*, if a task does; it may decide which processor
        is chosen.  The sleep that ends now is added to ``idle_ns`` or ``slept_ns``.
        """

    @abstractmethod
    def sleeps(self, task: Task) -> None:
        """Take the processor of *task*, if it has one, until the task is woken; another task may get it.

        The engine calls this when the task yields PARK or an event, and a lock when its spinning waiters go
        to sleep.
        """

    @abstractmethod
    def leave(self, task: Task) -> None:
        """Take the processor of *task*, which ends or sleeps for a stated time, and its seat.

        A seat is the place at which a process is charged interrupts even while it sleeps
        (`models.scheduler.cpu`).
        """

    @abstractmethod
    def work(self, task: Task, ns: int) -> Steps:
        """Let *task* work for *ns* in user mode, where it can be preempted at any time.  Yield the result.

        If another task has the processor meanwhile, the work ends later by that time.  The caller charges
        *ns* to a path (`models.time_accounting`).
        """

    @abstractmethod
    def need_resched(self, task: Task) -> bool:
        """Return whether *task*, which runs, should give its processor to another task; nothing changes.

        Kernel code asks this in cond_resched, and a writer before it spins for a rwsem.
        """

    @abstractmethod
    def give_way(self, task: Task) -> Park | None:
        """Give the processor of *task* to a waiting task.  Yield the result, unless it is None.

        None: *task* has a processor at once, perhaps another one.  `cond_resched` calls this after
        `need_resched`.
        """


class Task(Entry):
    """One thread of execution and the processor time it has used (ns).

    Without a ``scheduler`` the task needs no processor.  With a scheduler it runs, is ready or sleeps, and
    has done so since ``since_ns``.  The times before ``since_ns`` are these:

    * ``ran_ns``: it ran.  Two parts are kept here: it spun for ``spun_ns``, by lock, and woke up for
      ``waking_ns``; `models.time_accounting` has the rest.
    * ``ready_ns``: it was ready, but had no processor.
    * ``idle_ns``: it had nothing to do.
    * ``slept_ns``: all other sleep, by the cause in ``waits_for``.

    ``waited_ns``: all waits since the begin of a system call, for locks, for a processor or asleep.  The
    longest of them took ``longest_wait_ns``, and had the cause ``longest_wait``.
    """

    __slots__ = (
        "awaits",
        "bound",
        "callers",
        "cpu",
        "hold_ns",
        "idle_ns",
        "interrupted_ns",
        "lag_ns",
        "longest_wait",
        "longest_wait_ns",
        "name",
        "on_cpu",
        "on_exit",
        "on_sleep",
        "owed_ns",
        "put_off_ns",
        "ran_ns",
        "ready_ns",
        "scheduler",
        "seat",
        "seated",
        "since_ns",
        "slept_ns",
        "spin_ns",
        "spins_since_ns",
        "spun_ns",
        "steps",
        "stopped_ns",
        "then_ns",
        "virtual_ns",
        "waited_ns",
        "waits_for",
        "wakeup",
        "waking_ns",
        "weight",
    )  # fmt: skip

    def __init__(self, name: str, rank: int) -> None:
        super().__init__(0, rank, 0)  # no other task has this rank, so the number decides nothing
        self.name = name
        self.steps: Steps = _unstarted()
        self.callers: list[Steps] = []
        self.spin_ns = 0
        self.spun_ns: dict[str, int] = {}
        # A spinning task waits for a section of a spinlock: it has spun since ``spins_since_ns``, will hold
        # the lock for ``hold_ns``, and then works for ``then_ns``.
        self.spins_since_ns: i64 = 0
        self.hold_ns: i64 = 0
        self.then_ns: i64 = 0
        self.interrupted_ns = 0  # taken by interrupts
        self.owed_ns = 0  # the part of interrupted_ns that the task has not yet added to its work
        self.on_exit: Callable[[], object] | None = None
        self.on_sleep: list[Callable[[], object]] = []  # called when the task gives up its processor
        self.wakeup: Any = None
        self.scheduler: Scheduler | None = None
        self.weight = NICE_0_LOAD
        self.on_cpu = False
        self.since_ns = self.ran_ns = self.virtual_ns = 0
        self.stopped_ns = -FAR_NS  # when the task last gave up a processor
        # ``put_off_ns``: how long others had the processor while the task was in `Scheduler.work`, which ends
        # later by that.  ``lag_ns``: the virtual time by which EEVDF owes the task (`RunQueue.lag_of`).
        self.ready_ns = self.put_off_ns = self.waking_ns = self.lag_ns = 0
        self.idle_ns = 0
        self.slept_ns: dict[str, int] = {}
        self.waited_ns: i64 = 0
        self.longest_wait_ns: i64 = 0
        self.longest_wait = ""
        self.waits_for = ABSENT
        self.awaits = False  # True: the task is resumed when it gets a processor
        self.seated = False
        self.seat = -1
        self.cpu = -1  # the processor that the task has, or had last
        self.bound = -1  # the only processor that may run the task; -1: all may

    def __repr__(self) -> str:
        return f"<Task {self.name}>"


_GENERATORS: Final[set[type]] = set()
"""The types of generators that came; isinstance() of an abstract class takes a microsecond."""


def _is_generator(wait: object) -> TypeGuard[Steps]:
    if wait is PARK or wait is SPIN:
        return False
    if type(wait) in _GENERATORS:
        return True
    if isinstance(wait, Generator):
        _GENERATORS.add(type(wait))
        return True
    return False


def _name_of(entry: Entry) -> str:
    if isinstance(entry, Task):
        return entry.name
    return str(getattr(entry.act, "__qualname__", entry.act)) if isinstance(entry, Call) else "a SimPy event"


def _unstarted() -> Steps:
    raise RuntimeError("the task has no body; call env.start(task, steps) first")
    yield


@mypyc_attr(free_list_len=1)
class Call(Entry):
    """A call of *act* that is due at *when* (ns)."""

    __slots__ = ("act",)

    def __init__(self, when: int, rank: int, number: int, act: Callable[[], object]) -> None:
        super().__init__(when, rank, number)
        self.act = act


class Environment:
    """The clock (``now``, ns), the agenda, and the tasks."""

    def __init__(self) -> None:
        self.now = 0
        self.agenda = Agenda()
        self._ranks = _FIRST_RANK
        self._calls = 0
        self.simpy: simpy.Environment = Beside(self)
        """The SimPy environment for user-supplied processes, resources and timeouts, on the same clock."""
        self.live_tasks = 0
        self.most_at_once = MOST_AT_ONCE

    def next_rank(self) -> int:
        """Return a rank that no task or timer has yet, one above the last.

        Of events at one instant, the one with the lowest rank comes first.
        """
        rank = self._ranks
        self._ranks += 1
        return rank

    def task(self, name: str) -> Task:
        """Return a new task called *name*, without a body and with its own rank; `start` gives it a body."""
        return Task(name, self.next_rank())

    def start(self, task: Task, steps: Steps, delay_ns: int = 0) -> Task:
        """Let *task* run *steps*, beginning *delay_ns* from now; return *task*.

        A task with a scheduler asks for a processor only then.  `live_tasks` counts *task* until *steps* end.
        *task* must not have other steps that have not ended.
        """
        task.steps = steps
        self.live_tasks += 1
        if delay_ns and task.scheduler is not None:  # the task needs no processor before
            self.call_at(self.now + delay_ns, task.rank, lambda: self.wake(task))
        else:
            self.wake(task, delay_ns)
        return task

    def next_event_ns(self) -> int:
        """Return when the next entry of the agenda is due (ns); `FAR_NS` if the agenda is empty.

        A stream of write(2)s joins its calls up to then, because no task can observe an instant between them.
        """
        return self.agenda.next_ns()

    def wake(self, task: Task, delay_ns: int = 0, waker: Task | None = None) -> None:
        """Wake *task*, which yielded PARK: it goes on *delay_ns* from now, if it gets a processor now.

        Otherwise it goes on when the scheduler gives it one, and *delay_ns* is dropped.  *delay_ns* is the
        time of the wake-up itself, which ``waking_ns`` counts.  *waker*: the task that wakes it, for the
        scheduler.  Wake a task once per PARK.
        """
        scheduler = task.scheduler
        if scheduler is None or scheduler.wants(task, waker):
            task.waking_ns += delay_ns
            self.resume(task, delay_ns)

    def resume(self, task: Task, delay_ns: int = 0) -> None:
        """Resume *task* *delay_ns* from now: it spins, needs no processor, or has just got one.

        Code that wakes a sleeping task calls `wake` instead, which asks the scheduler.
        """
        task.when = self.now + delay_ns
        self.agenda.push(task)

    def call_at(self, when_ns: int, rank: int, act: Callable[[], object]) -> None:
        """Call *act* at *when_ns*; *rank* orders it among the events of that instant, lowest first.

        *when_ns* is a time of the clock, not before ``now``.  Calls with one rank come in the order in which
        they were added.
        """
        self._calls += 1
        self.agenda.push(Call(when_ns, rank, self._calls, act))

    def halt(self) -> None:
        """Drop all entries of the agenda, so that `run` returns, whatever tasks still wait.

        The machine calls this when its last program has ended.
        """
        self.agenda.clear()

    def run(self, deadline_ns: int | None = None) -> None:
        """Run until the agenda is empty.

        *deadline_ns* is the give-up time, a time of the clock (None: none).  A run that is not over by then
        fails, because the timers of a deadlocked model would tick for ever.

        Raises:
            GiveUp: an entry is due after *deadline_ns*.
            Standstill: the clock does not move any more.
            TypeError: a task yielded a value that is not a `Wait` (a float, None).
            CallError: a task's call failed, and no generator of the task has caught the error.
        """
        give_up_ns: i64 = deadline_ns if deadline_ns is not None else FAR_NS
        agenda = self.agenda
        if not len(agenda):
            return
        # The clock is checked once in so many events.  If it has not moved since the last check, all of these
        # events were at one instant.
        events: i64 = self.most_at_once
        events_left, stood_ns = events, FAR_NS
        # If a task waits again, one step pushes the task and pops the next entry.
        entry = agenda.pop()
        while True:
            try:
                while True:
                    when: i64 = entry.when
                    if when > give_up_ns:
                        raise GiveUp(f"{len(agenda) + 1} events remain at {int(give_up_ns) / 1e9:g} s")
                    self.now = when
                    events_left -= 1
                    if events_left == 0:
                        if when == stood_ns:
                            raise self._standstill(entry)
                        events_left, stood_ns = events, when
                    if isinstance(entry, Task):
                        wait: Wait
                        # Take the next wait.  Unlike next(), a loop needs no call, and no exception at the
                        # end.
                        for wait in entry.steps:  # noqa: B007
                            break
                        else:
                            wait = self._return(entry)
                        if not isinstance(wait, int):
                            wait = self._settle(entry, wait)
                        if isinstance(wait, int):
                            entry.when = when + wait
                            entry = agenda.pushpop(entry)
                            continue
                    elif isinstance(entry, Call):
                        entry.act()
                    if not len(agenda):
                        return
                    entry = agenda.pop()
            except CallError as error:
                if not isinstance(entry, Task):
                    raise
                self._fail(entry, error)
            if not len(agenda):
                return
            entry = agenda.pop()

    def _fail(self, task: Task, error: CallError) -> None:
        """Raise *error*, which ended the innermost generator of *task*, in its caller; let *task* go on.

        Raises:
            CallError: no caller has caught it.
        """
        while task.callers:
            task.steps = task.callers.pop()
            try:
                wait = self._settle(task, self._throw(task, error))
            except CallError as again:
                error = again
                continue
            if isinstance(wait, int):
                task.when = self.now + wait
                self.agenda.push(task)
            return
        raise error

    def _throw(self, task: Task, error: CallError) -> Wait:
        """Raise *error* in the innermost generator of *task*; return the next wait."""
        try:
            wait: Wait = task.steps.throw(error)
        except StopIteration:
            return self._return(task)
        return wait

    def _standstill(self, entry: Entry) -> Standstill:
        now = self.now
        due = [event for event in (entry, *self.agenda.entries()) if event.when == now]
        return Standstill(now, self.most_at_once, map(_name_of, due))

    def _settle(self, task: Task, wait: Wait) -> int | Park:
        """Prepare *task* to wait for *wait*; return a time (ns), PARK or SPIN."""
        if _is_generator(wait):
            wait = self._call(task, wait)
        if isinstance(wait, int):
            return wait
        if wait is SPIN:
            return SPIN
        if wait is not PARK:
            task.waits_for = "an event"
        if task.scheduler is not None:
            task.scheduler.sleeps(task)
        if wait is not PARK:
            self._await(task, wait)
        return PARK

    def _call(self, task: Task, callee: Steps) -> Wait:
        """Run *callee* and the generators that it yields; return the first wait."""
        while True:
            task.callers.append(task.steps)
            task.steps = callee
            for wait in callee:  # noqa: B007
                break
            else:
                return self._return(task)
            if isinstance(wait, int) or not _is_generator(wait):
                return wait
            callee = wait

    def _return(self, task: Task) -> Wait:
        """Continue with the caller of the innermost generator of *task*, which has ended.

        If no caller is left, the task ends.
        """
        while task.callers:
            task.steps = task.callers.pop()
            for wait in task.steps:
                if isinstance(wait, int) or not _is_generator(wait):
                    return wait
                return self._call(task, wait)
        self.live_tasks -= 1
        task.waits_for = ABSENT
        if task.scheduler is not None:
            task.scheduler.leave(task)
        if task.on_exit is not None:
            task.on_exit()
        return PARK

    def _await(self, task: Task, wait: object) -> None:
        if not isinstance(wait, Event):
            raise TypeError(
                f"{task.name} yielded {wait!r}; yield a whole number of ns, PARK, an event or a generator"
            )
        if wait.callbacks is None:
            self.wake(task)
        else:
            wait.callbacks.append(lambda _: self.wake(task))
