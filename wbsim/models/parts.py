"""The parts that components are made of: threads, locks and random numbers, under their owner's name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from wbsim.models.congestion import Congestion
from wbsim.models.interfaces import Thread
from wbsim.models.step_lengths import StepLengths
from wbsim.models.tracepoints import Signals
from wbsim.sim.engine import URGENT, Environment, Steps, Task
from wbsim.sim.streams import Draws, Streams
from wbsim.sim.sync import (
    HandOff,
    Line,
    LockClass,
    LockStats,
    Mutex,
    RwSemaphore,
    RwSemaphoreRules,
    Semaphore,
    SpinLock,
    WakeUps,
)
from wbsim.sim.units import MS

AnyLock = SpinLock | Mutex | LockClass
LockT = TypeVar("LockT", SpinLock, Mutex, LockClass)


@dataclass(frozen=True)
class LockTimes:
    """The times of locks (ns), and the rules of the kernel for them.

    * ``hand_off``: the times of a spinlock.
    * ``wake_ns``: the time from a wake-up until the waiting task runs, and ``waker_ns`` that of its waker.
    * ``line_ns``: the time to get the cache line of a mutex or a semaphore from another processor.
    * ``line_own_ns`` and ``line_far_ns``: the time to write a line that the processor itself has, and one
      that another processor has.
    """

    hand_off: HandOff
    rw_semaphore: RwSemaphoreRules
    wake_ns: int
    waker_ns: int
    line_ns: int
    line_own_ns: int
    line_far_ns: int


@dataclass
class Supply:
    """The things that all components of one machine share.

    * ``cv``: the coefficient of variation of processor times.
    * ``make_thread``: takes a name, and whether the thread belongs to a process, which keeps its processor
      while it sleeps.
    * ``inode_lock``: the lock of all lists of inodes; None: the era has no such lock.
    * ``locks``: all locks that were made.
    * ``tick_ns``: the resolution of the time stamps of files.
    """

    env: Environment
    processors: int
    times: LockTimes
    streams: Streams
    cv: float
    make_thread: Callable[[str, bool], Thread]
    congestion: Congestion
    signals: Signals = field(default_factory=Signals)
    lengths: StepLengths = field(default_factory=StepLengths)
    spin_lock: Callable[[Environment, str, HandOff, int], SpinLock] = SpinLock
    inode_lock: SpinLock | None = None
    locks: list[AnyLock] = field(default_factory=list)
    tick_ns: int = 4 * MS


class Parts:
    """Makes the parts of the components of *owner* from the machine's *supply*.

    *urgent* is the rank of their timers, and of events that end something, such as a lock's release.

    The name of a part lies below the owner's name.  Results keep threads and locks by their names, so an
    owner may use a name only once for each.  A name of random numbers or of wake-ups that is taken raises
    ValueError.  With a ``cv`` of 0, processor times do not vary: each factor is 1, and its name stays free.
    """

    def __init__(self, supply: Supply, owner: str = "", urgent: int = URGENT) -> None:
        self._supply = supply
        self._owner = owner
        self.urgent = urgent
        self.env = supply.env
        self.processors = supply.processors
        self.signals = supply.signals
        self.congestion = supply.congestion
        self.lengths = supply.lengths
        self.inode_lock = supply.inode_lock
        self.tick_ns = supply.tick_ns
        self._held_back: list[tuple[Task, Steps, int]] | None = None
        times = supply.times
        self.line_ns = times.line_own_ns, times.line_far_ns
        self.hand_off = times.hand_off

    def for_part(self, owner: str) -> Parts:
        """Return the maker of parts for *owner*, whose names lie below this owner's; "": this maker."""
        return Parts(self._supply, self._full_name(owner), self.urgent) if owner else self

    def _full_name(self, name: str) -> str:
        return f"{self._owner}/{name}" if self._owner else name

    def hold_back(self) -> None:
        """Let no program of these parts begin before `release`: it follows another program."""
        self._held_back = []

    def release(self) -> None:
        """Let the programs begin that were held back."""
        held_back, self._held_back = self._held_back or [], None
        for task, steps, delay_ns in held_back:
            self.env.start(task, steps, delay_ns)

    def begin(self, task: Task, steps: Steps, delay_ns: int) -> None:
        """Start *task*, the parent of a program, with *steps*, *delay_ns* from now.

        After `hold_back` it starts so long after `release`.
        """
        if self._held_back is None:
            self.env.start(task, steps, delay_ns)
        else:
            self._held_back.append((task, steps, delay_ns))

    def thread(self, name: str) -> Thread:
        """Return a thread without a seat, called *name* behind its owner's name; it has not begun.

        Kernel threads, parents of programs and workers of io_uring are such threads.  Asleep, they are
        charged no interrupts (`models.scheduler.cpu`).
        """
        return self._supply.make_thread(self._full_name(name), False)

    def process(self, name: str) -> Thread:
        """Return the thread of a process called *name*, which keeps a seat while it sleeps.

        With the seat, it may be charged interrupts then.  A seat binds it to no processor: see
        `models.scheduler.cpu`.
        """
        return self._supply.make_thread(self._full_name(name), True)

    def spin_lock(self, name: str) -> SpinLock:
        """Return a spinlock that the machine counts under *name*, which no other lock of this owner has."""
        supply = self._supply
        return self._register(
            supply.spin_lock(supply.env, self._full_name(name), supply.times.hand_off, self.urgent)
        )

    def line(self, name: str) -> Line:
        """Return a cache line that all processors write; the queue for it is a lock counted under *name*."""
        supply = self._supply
        lock = supply.spin_lock(supply.env, self._full_name(name), HandOff(0, 0), self.urgent)
        return self.lines(self._register(lock))

    def lines(self, lock: SpinLock) -> Line:
        """Return the cache lines that are written under *lock*.

        Lists of inodes and the inode hash have such lines.
        """
        return Line(lock, self._supply.times.hand_off, self._supply.times.line_own_ns)

    def mutex(self, name: str) -> Mutex:
        """Return a mutex that the machine counts under *name*, which no other lock of this owner has."""
        line_ns = self._supply.times.line_ns
        return self._register(Mutex(self.env, self._full_name(name), self.wake_ups(name), line_ns))

    def semaphores(self, name: str) -> Callable[[], Semaphore]:
        """Return a maker of semaphores called *name*, each owned by one task at a time.

        Call `count_lock` to have them counted.
        """
        wakes = self.wake_ups(name)
        return lambda: Semaphore(self.env, name, wakes)

    def rw_semaphores(self, name: str) -> Callable[[], RwSemaphore]:
        """Return a maker of semaphores of readers and writers, called *name*.

        Call `count_lock` to have them counted.
        """
        times, wakes = self._supply.times, self.wake_ups(name)
        return lambda: RwSemaphore(self.env, name, times.rw_semaphore, wakes, times.line_ns)

    def wake_ups(self, name: str) -> WakeUps:
        """Return the wake-ups of the tasks that wait for *name*, such as a class of locks.

        `mutex`, `semaphores` and `rw_semaphores` make those of their name, which must not be made again.
        Each class draws its own numbers, so a new class changes none of the others.
        """
        supply = self._supply
        excess = supply.streams.exponentials(self._full_name(f"wake-ups of {name}")) if supply.cv else None
        return WakeUps(supply.times.wake_ns, supply.times.waker_ns, excess)

    def count_lock(self, name: str, stats: Callable[[], LockStats]) -> None:
        """Let the machine count a class of locks under *name*, which no other lock of this owner has.

        *stats* returns the counters of the class.
        """
        self._register(LockClass(self._full_name(name), stats))

    def _register(self, lock: LockT) -> LockT:
        self._supply.locks.append(lock)
        return lock

    def variation(self, name: str) -> Draws:
        """Return factors of processor times, of mean 1, one at a time; *name* as in `random`."""
        return self._supply.streams.service_times(self._full_name(name), self._supply.cv)

    def variations(self, name: str) -> Callable[[int], NDArray[np.float64]]:
        """Return a function that takes a length and draws an array of factors, as `variation` has them.

        *name* as in `random`.
        """
        return self._supply.streams.service_time_arrays(self._full_name(name), self._supply.cv)

    def uniforms(self, name: str) -> Draws:
        """Return numbers uniform in [0, 1), one at a time; *name* as in `random`."""
        return self._supply.streams.uniforms(self._full_name(name))

    def random(self, name: str) -> np.random.Generator:
        """Return the generator of random numbers called *name* behind the owner's name.

        Raises:
            ValueError: another caller has the generator of this name.
        """
        return self._supply.streams.generator(self._full_name(name))
