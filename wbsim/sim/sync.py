"""SpinLock, Mutex, Semaphore and RwSemaphore: the kernel's locks, and the time that waiting for them takes.

A lock costs no event while it is free.  The section of a spinlock is declared with its length, so one wait
covers the section and the work after it.  A release is an event only if a task waits for the lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from mypy_extensions import i64

from wbsim.sim.engine import PARK, SPIN, URGENT, Environment, Park, Steps, Task
from wbsim.sim.streams import Draws


@dataclass(frozen=True)
class HandOff:
    """The time that a cache line, and a released lock with it, takes to the next processor.

    It is ``line_ns`` within a node of *node_cpus* processors, and ``far_ns`` between two nodes.  The waiters
    of a ``ticket`` lock all fetch the head word again, one after another.  The next owner is on average in
    the middle of them (Boyd-Wickizer et al., OLS 2012).  The next owner of a queued lock spins on a separate
    line.
    """

    line_ns: int
    far_ns: int
    ticket: bool = False
    node_cpus: int = 1 << 30

    def node(self, cpu: int) -> int:
        """Return the node of processor *cpu*; no processor (-1) counts as the first node.

        >>> HandOff(line_ns=100, far_ns=300, node_cpus=8).node(9)
        1
        """
        return cpu // self.node_cpus if cpu > 0 else 0

    def line(self, node: int, target: int) -> int:
        """Return the time (ns) in which a cache line moves from *node* to the node *target*."""
        return self.line_ns if node == target else self.far_ns

    def hand_off_ns(self, node: int, target: int, waiters: int, local_waiters: int) -> int:
        """Return the time (ns) from a release until the next owner, a task on node *target*, has the lock.

        *waiters* tasks spin at the release, including that task.  *local_waiters* of them are on *node*,
        where the lock was.  Both count for a ticket lock only.

        >>> HandOff(line_ns=100, far_ns=300, ticket=True).hand_off_ns(0, 0, 6, 4)
        600
        """
        line_ns = self.line_ns if node == target else self.far_ns
        if not self.ticket:
            return line_ns
        return line_ns + (local_waiters * self.line_ns + (waiters - local_waiters) * self.far_ns) // 2


@dataclass
class LockStat:
    """The counters of /proc/lock_stat, and ``hand_off_ns``, the time between two owners; times in ns.

    ``bounces`` counts acquisitions by another processor than the last owner's.  ``con_bounces`` counts the
    bounces for which a task waited.
    """

    acquisitions: i64 = 0
    contentions: i64 = 0
    wait_ns: i64 = 0
    wait_max_ns: i64 = 0
    hold_ns: i64 = 0
    hand_off_ns: i64 = 0
    bounces: i64 = 0
    con_bounces: i64 = 0
    wait_min_ns: i64 = 0
    hold_max_ns: i64 = 0
    hold_min_ns: i64 = 0

    @property
    def used_ns(self) -> int:
        """The time for which the lock was held or handed over (ns)."""
        return self.hold_ns + self.hand_off_ns

    def count_wait(self, wait_ns: i64) -> None:
        """Count the wait of one contended acquisition, *wait_ns*, in the sum and the extremes of waits.

        ``contentions`` stays as it is: the lock counts a contention when its wait begins.
        """
        if wait_ns < self.wait_min_ns or not self.wait_ns:
            self.wait_min_ns = wait_ns
        self.wait_ns += wait_ns
        if wait_ns > self.wait_max_ns:
            self.wait_max_ns = wait_ns

    def count_hold(self, hold_ns: i64) -> None:
        """Count one acquisition, and its *hold_ns* in the sum and the extremes of holds."""
        if hold_ns > self.hold_max_ns:
            self.hold_max_ns = hold_ns
        if hold_ns < self.hold_min_ns or not self.acquisitions:
            self.hold_min_ns = hold_ns
        self.acquisitions += 1
        self.hold_ns += hold_ns


LockStats = tuple[LockStat, int]
"""The counters of a class of locks, and the time for which its busiest lock was held (ns)."""


class LockClass:
    """Locks that are counted together under *name*; *stats* returns their `LockStats`."""

    __slots__ = ("_stats", "name")

    def __init__(self, name: str, stats: Callable[[], LockStats]) -> None:
        self.name = name
        self._stats = stats

    @property
    def stat(self) -> LockStat:
        """The counters of all locks of the class, up to now."""
        return self._stats()[0]

    @property
    def used_ns(self) -> int:
        """The time for which the busiest lock of the class was in use (ns)."""
        return self._stats()[1]


def spins(task: Task, lock: str, cause: str, spun_ns: int) -> None:
    """Account that *task* has spun *spun_ns* for the lock with the name *lock*, in the times of *task*.

    The times are ``spin_ns``, ``spun_ns``, ``waited_ns`` and, if this wait is the longest one,
    ``longest_wait_ns``.  Then *cause*, which is `waiting_for` the lock, becomes ``longest_wait``.
    """
    task.spin_ns += spun_ns
    task.spun_ns[lock] = task.spun_ns.get(lock, 0) + spun_ns
    task.waited_ns += spun_ns
    if spun_ns > task.longest_wait_ns:
        task.longest_wait_ns, task.longest_wait = spun_ns, cause


def waiting_for(lock: str) -> str:
    """Return the ``waits_for`` of a task that sleeps for the lock with the name *lock*.

    The result has the kind of the lock: the first word behind the last slash of the name.

    >>> waiting_for("sda/list_lock"), waiting_for("sda/agf 3")
    ('lock list_lock', 'lock agf')
    """
    return f"lock {lock.rsplit('/', 1)[-1].split(' ')[0]}"


_SHORTEST: Final = 0.9
_EXCESS: Final = 0.15
"""The shortest wake-up, and the mean excess over it, as shares of the median (docs/measurements.md T)."""


class WakeUps:
    """The times of wake-ups on idle processors: *wake_ns* in the median, and *waker_ns* for the waker.

    A wake-up is a tenth shorter at most.  What it takes longer than that is exponential: *excess* are draws
    of mean 1.  Without draws, all wake-ups take *wake_ns*.
    """

    __slots__ = ("_excess", "_wake_ns", "waker_ns")

    def __init__(self, wake_ns: int, waker_ns: int = 0, excess: Draws | None = None) -> None:
        self._wake_ns = wake_ns
        self.waker_ns = waker_ns
        self._excess = excess

    def wake(self, env: Environment, task: Task, waker: Task | None = None) -> int:
        """Wake *task*, which runs after the time of one wake-up; return the time that this takes its waker.

        The caller must wait for that time (ns), and account for it, as locks do in ``waking_ns``.  The time
        is 0 if *task* has no processor yet, because only an idle processor needs an interrupt.  *waker*: the
        task that wakes *task*, if any.
        """
        env.wake(task, self.next_ns(), waker)
        return self.waker_ns if task.on_cpu else 0

    def next_ns(self) -> int:
        """Draw the time (ns) of one wake-up, from the wake-up until its task runs on an idle processor."""
        if self._excess is None:
            return self._wake_ns
        return int(self._wake_ns * (_SHORTEST + _EXCESS * self._excess.next()))


def _forget(owner: Task, stop: Callable[[], object]) -> None:
    """Do not call *stop* any more when *owner* gives up its processor."""
    if stop in owner.on_sleep:
        owner.on_sleep.remove(stop)


class SpinLock:
    """A lock whose waiters use processor time; see `HandOff` for ticket locks and queued locks.

    A release that is an event has the rank *urgent*.  Waits are counted under *name*.
    """

    __slots__ = (
        "_cause", "_cpu", "_env", "_free_at_ns", "_hand_off", "_on_release", "_spinning", "_urgent",
        "_waiters", "name", "stat",
    )  # fmt: skip

    def __init__(self, env: Environment, name: str, hand_off: HandOff, urgent: int = URGENT) -> None:
        self._env = env
        self._hand_off = hand_off
        self._urgent = urgent
        self._free_at_ns: i64 = 0
        self._cpu = -1  # the processor of the last owner
        # A list, because the waiters are few: mypyc calls methods of a list directly, but of a deque by name.
        self._waiters: list[Task] = []
        self._spinning: list[int] = []  # the number of waiters by node
        self._on_release: Callable[[], None] = self._release  # a bound method that is made once
        self._cause = waiting_for(name)
        self.name = name
        self.stat = LockStat()

    @property
    def free(self) -> bool:
        """True if no task has the lock or waits for it."""
        return self._env.now >= self._free_at_ns and not self._waiters

    def section(self, task: Task, hold_ns: int, then_ns: int = 0) -> int | Park:
        """Wait for the lock, hold it for *hold_ns*, release it, and work for *then_ns*.  Yield the result.

        The result is a time (ns) if the lock is free, else SPIN.  The lock adds the spinning to the times of
        *task*; the caller adds *hold_ns* and *then_ns*.
        """
        now: i64 = self._env.now
        stat = self.stat
        stat.count_hold(hold_ns)
        if now >= self._free_at_ns:
            if task.cpu != self._cpu:
                stat.bounces += 1
                self._cpu = task.cpu
            self._free_at_ns = now + hold_ns
            return hold_ns + then_ns
        if not self._waiters:
            self._env.call_at(self._free_at_ns, self._urgent, self._on_release)
        stat.contentions += 1
        task.spins_since_ns, task.hold_ns, task.then_ns = now, hold_ns, then_ns
        self._waiters.append(task)
        node = self._hand_off.node(task.cpu)
        while node >= len(self._spinning):
            self._spinning.append(0)
        self._spinning[node] += 1
        return SPIN

    def _release(self) -> None:
        waiters, spinning, hand_off = self._waiters, self._spinning, self._hand_off
        task = waiters[0]
        node, target = hand_off.node(self._cpu), hand_off.node(task.cpu)
        local_waiters = spinning[node] if node < len(spinning) else 0
        hand_off_ns = hand_off.hand_off_ns(node, target, len(waiters), local_waiters)
        waiters.pop(0)
        spinning[target] -= 1
        now: i64 = self._env.now
        spun_ns = now + hand_off_ns - task.spins_since_ns
        spins(task, self.name, self._cause, spun_ns)
        self.stat.count_wait(spun_ns)
        self.stat.hand_off_ns += hand_off_ns
        if task.cpu != self._cpu:
            self.stat.bounces += 1
            self.stat.con_bounces += 1
            self._cpu = task.cpu
        held_ns = hand_off_ns + task.hold_ns
        self._free_at_ns = now + held_ns
        self._env.resume(task, held_ns + task.then_ns)
        if waiters:
            self._env.call_at(self._free_at_ns, self._urgent, self._on_release)


class Line:
    """Cache lines that all processors write under *lock*: the heads of a list, a counter, the head of a log.

    A task fetches a line before it writes to it.  The line comes from the processor that wrote last.  If that
    is the processor of the task, this takes *own_ns*.  If the kernel has no lock there, *lock* stands for the
    queue for the line.
    """

    __slots__ = ("_hand_off", "_last_cpu", "_own_ns", "lock")

    def __init__(self, lock: SpinLock, hand_off: HandOff, own_ns: int) -> None:
        self.lock = lock
        self._hand_off = hand_off
        self._own_ns = own_ns
        self._last_cpu = -1

    def fetch_ns(self, task: Task) -> int:
        """Return the time (ns) in which a line moves to the processor of *task*, which writes it next.

        The line counts as moved.  No time passes and no lock is taken: the caller adds the time to the hold
        of `lock`.
        """
        last, cpu, hand_off = self._last_cpu, task.cpu, self._hand_off
        self._last_cpu = cpu
        return self._own_ns if cpu == last else hand_off.line(hand_off.node(last), hand_off.node(cpu))

    def write(self, task: Task, writes: int, then_ns: int = 0) -> int | Park:
        """Take the lock, write to one line *writes* times, and work for *then_ns*.  Yield the result.

        The result is a time (ns) if the lock is free, else SPIN.  The writes take place under the lock.  If
        other tasks write too, each write must fetch the line; otherwise only the first write must.  *writes*
        is at least 1.
        """
        fetch_ns = self.fetch_ns(task)
        hold_ns = fetch_ns + (writes - 1) * self._own_ns if self.lock.free else writes * fetch_ns
        return self.lock.section(task, hold_ns, then_ns)


class Mutex:
    """struct mutex: ``if not m.try_acquire(t): yield m.wait(t)`` ... ``m.release()``.

    A task that waits spins while the owner runs, and sleeps as soon as the owner sleeps.  Spinning tasks come
    first, then sleeping tasks, each in the order of asking.  Left out: a spinning task sleeps when another
    task wants its processor.

    A release returns the time (ns) that its wake-up takes the owner, which the owner must wait.  The release
    adds this time to the owner's ``waking_ns``.
    """

    __slots__ = (
        "_cause",
        "_env",
        "_hand_off_ns",
        "_on_owner_sleeps",
        "_owner",
        "_sleeping",
        "_spinning",
        "_wakes",
        "name",
        "stat",
    )

    def __init__(self, env: Environment, name: str, wakes: WakeUps, hand_off_ns: int = 0) -> None:
        self._env = env
        self._wakes = wakes
        self._hand_off_ns = hand_off_ns
        self._cause = waiting_for(name)
        self._owner: Task | None = None
        self._spinning: deque[tuple[Task, int]] = deque()
        self._sleeping: deque[tuple[Task, int]] = deque()
        self._on_owner_sleeps: Callable[[], None] = self._owner_sleeps  # a bound method that is made once
        self.name = name
        self.stat = LockStat()

    @property
    def free(self) -> bool:
        """True if no task has the lock."""
        return self._owner is None

    def try_acquire(self, task: Task) -> bool:
        """Take the lock for *task* if it is free; return whether *task* has it now."""
        if self._owner is not None:
            return False
        self._owner = task
        self.stat.acquisitions += 1
        return True

    def wait(self, task: Task) -> Park:
        """Let *task* wait for the lock, after a failed `try_acquire`.  Yield the result: then *task* owns it.

        *task* spins if the owner runs now, and otherwise sleeps.  The lock counts the time that *task* spins,
        and the scheduler the time that it sleeps.
        """
        owner = self._owner
        assert owner is not None, f"{self.name}: wait() needs a failed try_acquire() before"
        self.stat.contentions += 1
        if owner.on_cpu:
            if not self._spinning:
                owner.on_sleep.append(self._on_owner_sleeps)
            self._spinning.append((task, self._env.now))
            return SPIN
        self._sleeping.append((task, self._env.now))
        task.waits_for = self._cause
        return PARK

    def _owner_sleeps(self) -> None:
        """Let the spinning tasks sleep, because the owner sleeps."""
        spinning = list(self._spinning)
        self._spinning.clear()
        for task, since_ns in spinning:
            spins(task, self.name, self._cause, self._env.now - since_ns)
            self._sleeping.append((task, since_ns))
            task.waits_for = self._cause
            assert task.scheduler is not None, "a task that spins must have a scheduler"
            task.scheduler.sleeps(task)

    def release(self) -> int:
        """Give the lock to the next task, if one waits; return the time (ns) for which the owner must wait.

        This is the time to wake a sleeping task, and 0 for a spinning one or for none.  A spinning task has
        the lock after the hand-off; a sleeping task wakes up as its owner.
        """
        owner = self._owner
        assert owner is not None, f"{self.name}: release() of a lock that is not held"
        self._owner = None
        _forget(owner, self._on_owner_sleeps)
        if not self._spinning and not self._sleeping:
            return 0
        waker_ns = 0
        spun = bool(self._spinning)
        task, since_ns = (self._spinning if spun else self._sleeping).popleft()
        self._owner = task
        self.stat.acquisitions += 1
        waited_ns = self._env.now - since_ns
        if spun:
            waited_ns += self._hand_off_ns
            spins(task, self.name, self._cause, waited_ns)
            self._env.resume(task, self._hand_off_ns)
        else:
            waker_ns = self._wakes.wake(self._env, task, owner)
            owner.waking_ns += waker_ns
        if self._spinning:
            task.on_sleep.append(self._on_owner_sleeps)
        self.stat.count_wait(waited_ns)
        return waker_ns


class Semaphore:
    """struct semaphore for one task: ``if not s.try_down(): yield s.down(t)`` ... ``s.up(t)``.

    A task that waits sleeps.  `up` gives the semaphore to the task that has waited longest.  That task owns
    the semaphore while it wakes up, so running tasks must wait for it.

    `up_after` announces a release in advance, which costs no event unless a task waits.  Both return the time
    (ns) that the wake-up of a task that waits already takes the owner, which the owner must wait.  Both
    add this time to the owner's ``waking_ns``.
    """

    __slots__ = ("_cause", "_env", "_owned", "_taken_ns", "_until_ns", "_waiters", "_wakes", "stat")

    def __init__(self, env: Environment, name: str, wakes: WakeUps) -> None:
        self._env = env
        self._wakes = wakes
        self._cause = waiting_for(name)
        self._owned = False
        self._taken_ns = 0
        self._until_ns = 0  # the time of the release that `up_after` announced
        self._waiters: deque[tuple[Task, int]] = deque()
        self.stat = LockStat()

    @property
    def free(self) -> bool:
        """True if no task owns the semaphore, and no announced release (`up_after`) is still to come."""
        return not self._owned and self._env.now >= self._until_ns

    def try_down(self) -> bool:
        """Take the semaphore if it is free; return whether the caller has it now."""
        if self._owned or self._env.now < self._until_ns:
            return False
        self._owned = True
        self._taken_ns = self._env.now
        return True

    def down(self, task: Task) -> Park:
        """Let *task* sleep until it owns the semaphore, after a failed `try_down`.  Yield the result."""
        if not self._owned:
            assert self._env.now < self._until_ns, "down() without a failed try_down()"
            self._owned = True
            self._env.call_at(self._until_ns, URGENT, self._hand_over)
        self.stat.contentions += 1
        self._waiters.append((task, self._env.now))
        task.waits_for = self._cause
        return PARK

    def up(self, owner: Task) -> int:
        """Let *owner* give the semaphore to the next task, or leave it free.

        Return the time (ns) that the wake-up takes *owner*, which must wait for it; 0 if no task waits.
        """
        assert self._owned, "up() without down()"
        self.stat.count_hold(self._env.now - self._taken_ns)
        waker_ns = self._hand_over(owner)
        owner.waking_ns += waker_ns
        return waker_ns

    def up_after(self, ns: int, owner: Task) -> int:
        """Announce that *owner* will release the semaphore *ns* from now; call it in place of `up`.

        Return the time (ns) that *owner* must wait for the wake-up of a task that waits already, or 0.
        """
        assert self._owned, "up_after() without down()"
        self._until_ns = self._env.now + ns
        self.stat.count_hold(self._until_ns - self._taken_ns)
        if not self._waiters:
            self._owned = False
            return 0
        self._env.call_at(self._until_ns, URGENT, lambda: self._hand_over(owner))
        owner.waking_ns += self._wakes.waker_ns
        return self._wakes.waker_ns

    def _hand_over(self, owner: Task | None = None) -> int:
        now = self._taken_ns = self._env.now
        if not self._waiters:
            self._owned = False
            return 0
        task, since_ns = self._waiters.popleft()
        self.stat.count_wait(now - since_ns)
        return self._wakes.wake(self._env, task, owner)


@dataclass(frozen=True)
class RwSemaphoreRules:
    """The rules of an era for the waiters of a `RwSemaphore`.

    * ``steals`` (from 3.9 on): a writer takes a free lock before tasks that sleep for it.  Without it, the
      task that has slept longest gets the lock.
    * ``spins`` (from 3.16 on): a writer spins while the writer that owns the lock runs.
    * ``reader_spin_ns`` (rwsem_rspin_threshold, from 5.3 on): a writer spins for this time while readers own
      the lock; 0: it sleeps.
    * ``hand_off_ns`` (RWSEM_WAIT_TIMEOUT, from 5.3 on): a writer that has slept for this time gets the lock
      next; 0: never.
    """

    steals: bool
    spins: bool
    reader_spin_ns: int
    hand_off_ns: int


class _Waiter:
    """A task that waits for a `RwSemaphore`; ``woken``: it may take the lock when it runs."""

    __slots__ = ("before_sleep", "reads", "since_ns", "task", "woken")

    def __init__(self, task: Task, reads: bool, since_ns: int, before_sleep: Callable[[], object]) -> None:
        self.task = task
        self.reads = reads
        self.since_ns = since_ns
        self.before_sleep = before_sleep
        self.woken = False


class RwSemaphore:
    """struct rw_semaphore, for many readers or one writer.

    Use: ``if not s.try_read(): yield s.down_read(task)`` ... ``s.up_read(task)``, and
    ``if not s.try_write(task): yield from s.down_write(task)`` ... ``s.up_write()``.

    * A reader that waits sleeps.  Readers that are woken own the lock while they wake up.
    * A writer that waits spins as `RwSemaphoreRules` say, else it sleeps.  A writer that spins takes the lock
      before the tasks that sleep, *line_ns* after the release.
    * A writer that is woken does not own the lock yet (with ``steals``): another task may take it first.
    * Tasks that spin leave the processor when the owner does.
    * A release returns the time (ns) that its wake-ups take the task, which the task must wait.  The release
      adds this time to the task's ``waking_ns``.

    ``stat`` counts writers, and ``read_stat`` readers.  While several readers hold the lock, its time counts
    once.  ``cause`` is the ``waits_for`` of tasks that sleep for the lock.

    Left out: readers that spin (5.3 to 5.10), and the useless wake-up of a sleeping writer that a spinning
    writer has overtaken.
    """

    __slots__ = (
        "_env",
        "_handing_off",
        "_line_ns",
        "_nonspinnable",
        "_on_owner_sleeps",
        "_phase",
        "_readers",
        "_rules",
        "_since_ns",
        "_sleeping",
        "_spinning",
        "_wakes",
        "_writer",
        "cause",
        "name",
        "read_stat",
        "stat",
    )  # fmt: skip

    def __init__(
        self, env: Environment, name: str, rules: RwSemaphoreRules, wakes: WakeUps, line_ns: int
    ) -> None:
        self._env = env
        self._rules = rules
        self._wakes = wakes
        self._line_ns = line_ns
        self.cause = waiting_for(name)
        self._writer: Task | None = None
        self._readers = 0
        self._since_ns = 0  # when the owner or the first reader got the lock
        self._phase = 0  # the number of times that the last reader released the lock
        self._nonspinnable = False
        self._handing_off = False
        self._spinning: deque[_Waiter] = deque()
        self._sleeping: deque[_Waiter] = deque()
        self._on_owner_sleeps: Callable[[], None] = self._stop_spinning  # a bound method that is made once
        self.name = name
        self.stat = LockStat()
        self.read_stat = LockStat()

    @property
    def free(self) -> bool:
        """True if no task owns the lock."""
        return self._writer is None and not self._readers

    def try_read(self) -> bool:
        """Take the lock for reading, unless a writer owns it or a waiting task comes first.

        Return whether the lock was taken.
        """
        if self._writer is not None or self._handing_off:
            return False
        if self._sleeping and (self._readers or not self._rules.steals):
            return False
        if not self._readers:
            self._since_ns = self._env.now
        self._readers += 1
        return True

    def down_read(self, task: Task) -> Park:
        """Let *task* sleep until it owns the lock, after a failed `try_read`.  Yield the result."""
        self.read_stat.contentions += 1
        self._sleeping.append(_Waiter(task, True, self._env.now, lambda: None))
        task.waits_for = self.cause
        return PARK

    def up_read(self, task: Task) -> int:
        """Release the lock for the reader *task*; after the last reader the next task gets it.

        Return the time (ns) that the wake-ups take *task*, which must wait for it; 0: none.
        """
        assert self._readers, "up_read() without try_read() or down_read()"
        self._readers -= 1
        if self._readers:
            self.read_stat.acquisitions += 1
            return 0
        self.read_stat.count_hold(self._env.now - self._since_ns)
        self._phase += 1
        self._nonspinnable = False
        return self._give_up(task)

    @property
    def idle(self) -> bool:
        """True if no task owns the lock or waits for it."""
        return self._writer is None and not (self._readers or self._sleeping or self._handing_off)

    def pass_through(self, times: int, reads: bool = False) -> bool:
        """Count *times* acquisitions that take no time, if the lock is `idle`; return whether it is.

        The lock is not held afterwards.  *reads*: they are those of readers, otherwise of writers.
        `InodeLocks` counts the holds of many joined calls this way.
        """
        if not self.idle:
            return False
        stat = self.read_stat if reads else self.stat
        stat.acquisitions += times
        return True

    def try_write(self, task: Task) -> bool:
        """Take the lock for writing, if it is free and no waiting task comes first.

        Return whether the lock was taken.
        """
        if not self.free or self._handing_off or (self._sleeping and not self._rules.steals):
            return False
        self._own(task, self._env.now)
        return True

    def down_write(self, task: Task, before_sleep: Callable[[], object] = lambda: None) -> Steps:
        """Wait until *task* owns the lock; use: `yield from` after a failed `try_write`.

        *before_sleep* is called each time that the task goes to sleep (sched_submit_work).
        """
        self.stat.contentions += 1
        waiter = _Waiter(task, False, self._env.now, before_sleep)
        if self._may_spin(task):
            self._spin(waiter)
            yield SPIN
        else:
            self._enqueue(waiter)
            yield PARK
        while self._writer is not task:
            waiter.woken = False
            waited_ns = self._env.now - waiter.since_ns
            if self.free:
                self._sleeping.remove(waiter)
                self._own(task, self._env.now)
                self.stat.count_wait(waited_ns)
                return
            self._handing_off = bool(self._rules.hand_off_ns) and waited_ns >= self._rules.hand_off_ns
            before_sleep()
            task.waits_for = self.cause
            yield PARK

    def own_for(self, task: Task, call: Steps, before_sleep: Callable[[], object]) -> Steps:
        """Let *task* own the lock for writing while it runs *call*, and release it after.  Yield the result.

        The lock is released also if *call* raises an error.  *before_sleep* is called each time that *task*
        goes to sleep for the lock.  A call of write(2), fallocate(2) or ftruncate(2) owns the i_rwsem this
        way.
        """
        if not self.try_write(task):
            yield from self.down_write(task, before_sleep)
        try:
            yield from call
        finally:
            waker_ns = self.up_write()
        if waker_ns:
            yield waker_ns

    def up_write(self) -> int:
        """Release the lock for its writer; the next task gets it, or is woken to take it.

        Return the time (ns) that the wake-ups take that writer, which must wait for it; 0: none.
        """
        writer = self._writer
        assert writer is not None, "up_write() without try_write() or down_write()"
        self._writer = None
        self.stat.count_hold(self._env.now - self._since_ns)
        _forget(writer, self._on_owner_sleeps)
        return self._give_up(writer)

    def _may_spin(self, task: Task) -> bool:
        """rwsem_can_spin_on_owner; False also if another task should get the processor (need_resched)."""
        if self._handing_off or not self._rules.spins or not task.on_cpu:
            return False
        if task.scheduler is not None and task.scheduler.need_resched(task):
            return False
        if self._writer is not None:
            return self._writer.on_cpu
        return bool(self._readers and self._rules.reader_spin_ns and not self._nonspinnable)

    def _spin(self, waiter: _Waiter) -> None:
        if not self._spinning:
            if self._writer is not None:
                self._writer.on_sleep.append(self._on_owner_sleeps)
            else:
                phase, until_ns = self._phase, self._env.now + self._rules.reader_spin_ns
                self._env.call_at(until_ns, URGENT, lambda: self._readers_stay(phase))
        self._spinning.append(waiter)

    def _readers_stay(self, phase: int) -> None:
        """rwsem_set_nonspinnable, if the readers that owned the lock in *phase* still own it."""
        if phase == self._phase and self._readers and self._spinning:
            self._nonspinnable = True
            self._stop_spinning()

    def _stop_spinning(self) -> None:
        """Let the spinning tasks sleep, in the order in which they came."""
        while self._spinning:
            waiter = self._spinning.popleft()
            spins(waiter.task, self.name, self.cause, self._env.now - waiter.since_ns)
            self._enqueue(waiter)
            assert waiter.task.scheduler is not None, "a task that spins must have a scheduler"
            waiter.task.scheduler.sleeps(waiter.task)

    def _enqueue(self, waiter: _Waiter) -> None:
        waiter.before_sleep()
        waiter.task.waits_for = self.cause
        self._sleeping.append(waiter)

    def _own(self, task: Task, since_ns: int) -> None:
        self._writer = task
        self._since_ns = since_ns
        if self._spinning:
            task.on_sleep.append(self._on_owner_sleeps)

    def _give_up(self, task: Task) -> int:
        """Pass the lock on: to a spinning task, unless a hand-off is due, otherwise as rwsem_wake does.

        Return the time (ns) that *task* needs to wake other tasks.
        """
        now, waker_ns = self._env.now, 0
        if self._spinning and not self._handing_off:
            waiter = self._spinning.popleft()
            waited_ns = now + self._line_ns - waiter.since_ns
            spins(waiter.task, self.name, self.cause, waited_ns)
            self.stat.count_wait(waited_ns)
            self._own(waiter.task, now + self._line_ns)
            self._env.resume(waiter.task, self._line_ns)
        elif self._sleeping and self._sleeping[0].reads:
            waker_ns = self._wake_readers(task)
        elif self._sleeping:
            waker_ns = self._wake_writer(self._sleeping[0], task)
        task.waking_ns += waker_ns
        return waker_ns

    def _wake_readers(self, waker: Task) -> int:
        """Let *waker* give the lock to the readers at the head of the queue, who wake up as its owners.

        Return the time (ns) of their waker.
        """
        waker_ns = 0
        self._since_ns = self._env.now
        while self._sleeping and self._sleeping[0].reads:
            waiter = self._sleeping.popleft()
            self._readers += 1
            self.read_stat.count_wait(self._env.now - waiter.since_ns)
            waker_ns += self._wakes.wake(self._env, waiter.task, waker)
        return waker_ns

    def _wake_writer(self, waiter: _Waiter, waker: Task) -> int:
        """Let *waker* wake *waiter*, unless it is awake already; return the time (ns) of its waker."""
        if self._handing_off or not self._rules.steals:
            self._sleeping.popleft()
            self._handing_off = False
            self._own(waiter.task, self._env.now)
            self.stat.count_wait(self._env.now - waiter.since_ns)
        elif waiter.woken:
            return 0
        waiter.woken = True
        return self._wakes.wake(self._env, waiter.task, waker)


def lock_stats_of(locks: Iterable[LockStat]) -> LockStats:
    """Return the counters of *locks* as one class, and the time (ns) for which its busiest lock was held.

    The counters are sums, and the minima and maxima over all locks.  Bounces and hand-offs, which only
    spinlocks count, stay 0.  A machine has a lock for each of many inodes or groups, and reports one line for
    them.
    """
    used_locks = [lock for lock in locks if lock.acquisitions]
    contended_locks = [lock for lock in used_locks if lock.wait_ns]
    total = LockStat(
        acquisitions=sum(lock.acquisitions for lock in used_locks),
        contentions=sum(lock.contentions for lock in used_locks),
        wait_ns=sum(lock.wait_ns for lock in used_locks),
        wait_max_ns=max((lock.wait_max_ns for lock in used_locks), default=0),
        hold_ns=sum(lock.hold_ns for lock in used_locks),
        wait_min_ns=min((lock.wait_min_ns for lock in contended_locks), default=0),
        hold_max_ns=max((lock.hold_max_ns for lock in used_locks), default=0),
        hold_min_ns=min((lock.hold_min_ns for lock in used_locks), default=0),
    )
    return total, max((lock.hold_ns for lock in used_locks), default=0)


class Completion:
    """struct completion: several tasks may wait for one event, which happens once.

    *cause* is the ``waits_for`` of these tasks.
    """

    __slots__ = ("_cause", "_env", "_waiters", "done")

    def __init__(self, env: Environment, cause: str) -> None:
        self._env = env
        self._cause = cause
        self._waiters: list[Task] = []
        self.done = False

    def wait(self, task: Task) -> Steps:
        """Let *task* sleep until the event has happened; after the event, do nothing.  Use: `yield from`."""
        if not self.done:
            self._waiters.append(task)
            task.waits_for = self._cause
            yield PARK

    def complete(self) -> None:
        """Let the event happen, and wake all tasks that wait; call it once."""
        assert not self.done, "a completion completes only once"
        self.done = True
        for task in self._waiters:
            self._env.wake(task)
        self._waiters.clear()
