"""SpinLock and Mutex: waiting, and what waiting costs.

A lock costs no event while it is free.  A spinlock's section is declared with its length, so that
one wait carries a task through the section and on to whatever follows it; only a waiter makes
the release an event.  Waiters are served first come, first served.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from sim.engine import PARK, SPIN, URGENT, Environment, Park, Steps, Task


@dataclass(frozen=True)
class HandOff:
    """How long a released lock takes to reach its next owner.

    With *k* tasks spinning at the release it is ``line_ns + per_waiter_ns * k // 2``.  A ticket
    lock's waiters all fetch the head word again and the next owner is on average in the middle
    of them (Boyd-Wickizer et al., OLS 2012); a queued lock's next owner spins on a line of
    its own, so ``per_waiter_ns`` is 0.
    """

    line_ns: int
    per_waiter_ns: int

    def after(self, waiters: int) -> int:
        """The hand-off time (ns) with *waiters* tasks spinning, the next owner among them."""
        return self.line_ns + self.per_waiter_ns * waiters // 2


@dataclass
class LockStat:
    """The counters of /proc/lock_stat, and ``hand_off_ns``, from one owner to the next; times in ns."""

    acquisitions: int = 0
    contentions: int = 0
    wait_ns: int = 0
    wait_max_ns: int = 0
    hold_ns: int = 0
    hand_off_ns: int = 0

    @property
    def used_ns(self) -> int:
        """How long the lock was held or handed on."""
        return self.hold_ns + self.hand_off_ns

    def waited(self, wait_ns: int) -> None:
        """Count one contended acquisition."""
        self.contentions += 1
        self.wait_ns += wait_ns
        self.wait_max_ns = max(self.wait_max_ns, wait_ns)


LockStats = tuple[LockStat, int]
"""The sums of a class of locks, and how long the one of them that was held longest was (ns)."""


class LockClass:
    """Locks that are counted together under *name*; *stats* says how."""

    __slots__ = ("_stats", "name")

    def __init__(self, name: str, stats: Callable[[], LockStats]) -> None:
        self.name = name
        self._stats = stats

    @property
    def stat(self) -> LockStat:
        """Of all of them, up to now."""
        return self._stats()[0]

    @property
    def used_ns(self) -> int:
        """How long the busiest of them was in use."""
        return self._stats()[1]


def spins(task: Task, lock: str, spun_ns: int) -> None:
    """*task* has spun for *lock*."""
    task.spin_ns += spun_ns
    task.spun_ns[lock] = task.spun_ns.get(lock, 0) + spun_ns


def waiting_for(lock: str) -> str:
    """What a task waits for that sleeps until it has *lock*: the kind of it, which its name begins with."""
    return f"lock {lock.rsplit('/', 1)[-1].split(' ')[0]}"


class SpinLock:
    """A lock whose waiters burn processor time; see `HandOff` for ticket and queued ones.

    Its releases, where they are events, are of rank *urgent*.
    """

    __slots__ = ("_env", "_free_at_ns", "_hand_off", "_urgent", "_waiters", "name", "stat")

    def __init__(self, env: Environment, name: str, hand_off: HandOff, urgent: int = URGENT) -> None:
        self._env = env
        self._hand_off = hand_off
        self._urgent = urgent
        self._free_at_ns = 0
        self._waiters: deque[tuple[Task, int, int, int]] = deque()
        self.name = name
        self.stat = LockStat()

    def section(self, task: Task, hold_ns: int, then_ns: int = 0) -> int | Park:
        """Wait for the lock, hold it *hold_ns*, release it, go on for *then_ns*: to be yielded.

        The task is told how long it spun; the caller accounts for its own work.
        """
        now = self._env.now
        stat = self.stat
        stat.acquisitions += 1
        stat.hold_ns += hold_ns
        if now >= self._free_at_ns:
            self._free_at_ns = now + hold_ns
            return hold_ns + then_ns
        if not self._waiters:
            self._env.call_at(self._free_at_ns, self._urgent, self._release)
        self._waiters.append((task, now, hold_ns, then_ns))
        return SPIN

    def _release(self) -> None:
        waiters = self._waiters
        hand_off_ns = self._hand_off.after(len(waiters))
        task, since_ns, hold_ns, then_ns = waiters.popleft()
        now = self._env.now
        spun_ns = now + hand_off_ns - since_ns
        spins(task, self.name, spun_ns)
        self.stat.waited(spun_ns)
        self.stat.hand_off_ns += hand_off_ns
        self._free_at_ns = now + hand_off_ns + hold_ns
        self._env.resume(task, hand_off_ns + hold_ns + then_ns)
        if waiters:
            self._env.call_at(self._free_at_ns, self._urgent, self._release)


class Mutex:
    """A sleeping lock: ``if not m.try_acquire(t): yield m.wait(t)`` ... ``m.release()``."""

    __slots__ = ("_env", "_owner", "_waited", "_waiters", "name", "stat", "wake_ns")

    def __init__(self, env: Environment, name: str, wake_ns: int) -> None:
        self._env = env
        self.wake_ns = wake_ns
        self._waited = waiting_for(name)
        self._owner: Task | None = None
        self._waiters: deque[tuple[Task, int]] = deque()
        self.name = name
        self.stat = LockStat()

    @property
    def free(self) -> bool:
        """Whether nobody has the lock."""
        return self._owner is None

    def try_acquire(self, task: Task) -> bool:
        """Take the lock if it is free."""
        if self._owner is not None:
            return False
        self._owner = task
        self.stat.acquisitions += 1
        return True

    def wait(self, task: Task) -> Park:
        """Sleep until the lock is ours; to be yielded after a failed `try_acquire`."""
        assert self._owner is not None, f"{self.name}: wait() without a failed try_acquire()"
        self._waiters.append((task, self._env.now))
        task.waits_for = self._waited
        return PARK

    def release(self) -> None:
        """Give the lock to the longest waiter, who wakes ``wake_ns`` later as its owner."""
        assert self._owner is not None, f"{self.name}: released but not held"
        if not self._waiters:
            self._owner = None
            return
        task, since_ns = self._waiters.popleft()
        self._owner = task
        self.stat.acquisitions += 1
        self.stat.waited(self._env.now - since_ns)
        self._env.wake(task, self.wake_ns)


class Completion:
    """struct completion: several tasks may wait for one event, which happens once; *of* says for what."""

    __slots__ = ("_env", "_of", "_waiters", "done")

    def __init__(self, env: Environment, of: str) -> None:
        self._env = env
        self._of = of
        self._waiters: list[Task] = []
        self.done = False

    def wait(self, task: Task) -> Steps:
        """wait_for_completion: *task* sleeps until it is done; to be delegated to."""
        if not self.done:
            self._waiters.append(task)
            task.waits_for = self._of
            yield PARK

    def complete(self) -> None:
        """complete_all: it is done, and everybody wakes."""
        assert not self.done, "a completion is completed once"
        self.done = True
        for task in self._waiters:
            self._env.wake(task)
        self._waiters.clear()
