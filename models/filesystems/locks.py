"""The locks of allocation groups and of inodes, as events use them.

Stands for the buffer lock of an AGF (struct semaphore), and for ILOCK and i_data_sem (struct rw_semaphore).
What they are held for lies in the `Locks` of `models.filesystems.lock_table`, which compiled steps use, too.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from wbsim.models.filesystems.lock_table import (
    ACQUISITIONS,
    ALONE,
    ASKED,
    BEGINS,
    CONTENTIONS,
    FAR,
    GROUP,
    HANDOFF_NS,
    HOLD,
    LOCK_COLUMNS,
    NO_ROW,
    SQUARES,
    UNTIL,
    WAIT,
    WAIT_MAX,
    WORKER,
    Locks,
    advance,
    end_open,
    give_inode,
    has_room,
    hold,
    is_free,
    new_locks,
    park,
    take_inode,
)
from wbsim.models.scheduler.cpu import sleep
from wbsim.models.seams import Thread
from wbsim.models.site import Site
from wbsim.sim.engine import PARK, Park, Steps, Task
from wbsim.sim.sync import LockStat, LockStats, spins, waiting_for


class LockTable:
    """All such locks of one mounted filesystem: of *groups* groups, and of inodes as they come.

    *group_lock* and *inode_lock* name their classes, as /proc/lock_stat does; *workers* convert.  Without
    a name, groups have no lock.
    """

    def __init__(self, site: Site, groups: int, workers: int, group_lock: str, inode_lock: str) -> None:
        self.env = site.env
        self.locks = new_locks(groups, workers, site.wake_ns, site.lengths.stretches)
        self._relay_ns = site.relay_ns
        self.at_work = 0
        """How many workers are converting something."""
        self.shared = False
        """Whether compiled steps use these locks, too: before the first, an event need not tell them."""
        self._inodes = 0
        self.inode_lock_name = inode_lock
        self.group_cause, self.inode_cause = waiting_for(group_lock), waiting_for(inode_lock)
        self.groups = [GroupLock(self, group) for group in range(groups)]
        if group_lock:
            site.count_lock(group_lock, self._group_stats)
        site.count_lock(inode_lock, self._inode_stats)

    def share(self) -> Locks:
        """For a compiled step: the record, in which all that events have is, from now on."""
        if not self.shared:
            self.shared = True
            for lock in self.groups:
                lock.tell()
        relay_ns = self._relay_ns()
        if relay_ns != self.locks.relay_ns:
            self.locks = self.locks._replace(relay_ns=relay_ns)
        return self.locks

    def _group_stats(self) -> LockStats:
        stat, _ = _stats(self.locks.groups)
        for lock in self.groups:
            lock.add_to(stat)
        return stat, max(lock.held_ns for lock in self.groups)

    def _inode_stats(self) -> LockStats:
        return _stats(self.locks.inodes)

    def inode_lock(self) -> InodeLock:
        """The lock of one inode more."""
        row, locks = self._inodes, self.locks
        if row == len(locks.inodes):
            more = np.zeros((max(16, 2 * row), LOCK_COLUMNS), np.int64)
            more[:row], more[row:, WORKER] = locks.inodes, NO_ROW
            self.locks = locks._replace(inodes=more)
        self._inodes += 1
        return InodeLock(self, row)


def _stats(locks: NDArray[np.int64]) -> LockStats:
    """Of the locks with these rows."""
    acquisitions, contentions, wait_ns, _, hold_ns = locks[:, ACQUISITIONS:].sum(axis=0).tolist()
    wait_max_ns, longest_ns = (int(locks[:, column].max(initial=0)) for column in (WAIT_MAX, HOLD))
    return LockStat(acquisitions, contentions, wait_ns, wait_max_ns, hold_ns), longest_ns


class GroupLock:
    """A semaphore: ``if not l.try_down(task, ns): yield from l.down(thread, ns)`` ... ``l.up(task)``.

    An event that finds it free, and not given away for later, has it until `up`.  One that comes between
    stretches for which compiled steps have it gets a stretch of *hold_ns*, its expected time.
    """

    __slots__ = (
        "_acquisitions", "_contentions", "_env", "_hold_ns", "_looking", "_owner", "_table", "_taken_ns",
        "_until", "_wait_max_ns", "_wait_ns", "_waiters", "group",
    )  # fmt: skip

    def __init__(self, table: LockTable, group: int) -> None:
        self._env = table.env
        self._table = table
        self.group = group
        self._until = memoryview(table.locks.groups[group])  # an element of an array is slow to read
        self._owner: Task | None = None
        self._taken_ns = 0
        self._waiters: deque[tuple[Task, int, int]] = deque()
        self._looking: list[Task] = []
        self._acquisitions = self._contentions = self._wait_ns = self._wait_max_ns = self._hold_ns = 0

    @property
    def held_ns(self) -> int:
        """For how long somebody has had the lock."""
        return self._hold_ns + int(self._until[HOLD])

    def add_to(self, stat: LockStat) -> None:
        """Add to *stat* what events without end have had of it."""
        stat.acquisitions += self._acquisitions
        stat.contentions += self._contentions
        stat.wait_ns += self._wait_ns
        stat.wait_max_ns = max(stat.wait_max_ns, self._wait_max_ns)
        stat.hold_ns += self._hold_ns

    def tell(self) -> None:
        """Let compiled steps know whether an event has the lock."""
        self._until[UNTIL] = self._env.now if self._owner is None else FAR

    def is_free(self) -> bool:
        """Whether nobody has the lock now."""
        table, now = self._table, self._env.now
        if not table.shared:
            return self._owner is None
        if table.at_work:
            advance(table.locks, self.group, now)
        return self._until[UNTIL] <= now or is_free(table.locks, self.group, now)

    def try_down(self, task: Task, hold_ns: int) -> bool:
        """down_trylock: take the lock if it is free."""
        if self._owner is not None:
            return False
        table = self._table
        if table.shared:
            now = self._env.now
            if table.at_work:
                advance(table.locks, self.group, now)
            if self._until[UNTIL] > now:
                if not has_room(table.locks, self.group, now, hold_ns):
                    return False
                hold(table.locks, self.group, now, hold_ns)
                return True
        self._open(task)
        return True

    def down(self, thread: Thread, hold_ns: int) -> Steps:
        """Sleep until the lock is the thread's; to be delegated to after a failed `try_down`."""
        thread.before_sleep()
        task, table, now = thread.task, self._table, self._env.now
        if self._owner is not None:
            self._waiters.append((task, now, hold_ns))
            task.waits_for = table.group_cause
            yield PARK
        else:
            begins_ns = hold(table.locks, self.group, now, hold_ns) - hold_ns
            yield from sleep(task, begins_ns - now, table.group_cause)

    def up(self, task: Task) -> None:
        """Give up the lock, if *task* has it without end: those who asked first get it."""
        if self._owner is task:
            self._give_up()
            if self._waiters or self._looking:
                self.hand_on()

    def lend(self, task: Task) -> None:
        """The next compiled step of *task*, whose turn it is, books the lock from now on; then `hand_on` is
        due.

        One that came between stretches has asked for no time of its own (*hold_ns* is 0): its step does, and
        goes on without, if an event has the lock by then.
        """
        if self._owner is task:
            self._give_up()

    def _give_up(self) -> None:
        table, now = self._table, self._env.now
        self._owner = None
        self._hold_ns += now - self._taken_ns
        if table.shared:
            if table.at_work or self._waiters:
                end_open(table.locks, self.group, self._taken_ns, now)
            else:
                self._until[UNTIL] = now

    def hand_on(self) -> None:
        """Those that wait for the lock get it, workers and events in the order of asking."""
        table, env, group, now = self._table, self._env, self.group, self._env.now
        locks = table.locks
        if self._owner is not None:
            return  # an event has it, and hands it on in the end
        while self._waiters:
            task, since_ns, hold_ns = self._waiters.popleft()
            if table.shared:
                advance(locks, group, since_ns)
            if not table.shared or self._until[UNTIL] <= now:  # nobody has asked before, nor has it for later
                wait_ns = now - since_ns
                self._contentions += 1
                self._wait_ns += wait_ns
                self._wait_max_ns = max(self._wait_max_ns, wait_ns)
                self._open(task)
                env.wake(task, locks.wake_ns)
                break
            begins_ns = hold(locks, group, since_ns, hold_ns) - hold_ns
            env.wake(task, begins_ns - now)
        for task in self._looking:
            env.wake(task)
        self._looking.clear()

    def look_again(self, task: Task) -> Park:
        """*task* sleeps until an event has given the lock up; to be yielded."""
        self._looking.append(task)
        task.waits_for = self._table.group_cause
        return PARK

    def _open(self, task: Task) -> None:
        """*task* has the lock from now on."""
        self._owner = task
        self._taken_ns = self._env.now
        self._acquisitions += 1
        if self._table.shared:
            self._until[UNTIL] = FAR


class InodeLock:
    """The lock of one inode: ``from_ns = yield from l.down(thread)`` ... ``l.up()``.

    A flusher has it without end until `up`.  A task that finds it taken sleeps, and asks again once it is
    awake: a running one may have taken the lock meanwhile, up to `HANDOFF_NS` after the sleeping one asked.
    """

    __slots__ = (
        "_asked_ns", "_env", "_from_ns", "_looked", "_looking", "_promised", "_table", "_waiters", "row",
    )  # fmt: skip

    def __init__(self, table: LockTable, row: int) -> None:
        self._env = table.env
        self._table = table
        self.row = row
        self._asked_ns = self._from_ns = 0
        self._waiters: deque[tuple[Task, int]] = deque()
        self._promised: Task | None = None
        self._looking: Task | None = None
        self._looked = (table.env.now, 0, 0)

    def down(self, thread: Thread) -> Steps:
        """down_write: *thread* has the lock from when it goes on."""
        table, env, task, since_ns = self._table, self._env, thread.task, self._env.now
        while self._promised is not task:
            locks, now = table.locks, env.now
            from_ns = take_inode(locks, self.row, now)
            if from_ns < FAR:
                locks.inodes[self.row, UNTIL] = FAR
                if from_ns > now:
                    thread.before_sleep()
                    yield from sleep(task, from_ns - now, table.inode_cause)
                break
            thread.before_sleep()
            if locks.inodes[self.row, UNTIL] < FAR:  # its worker waits for a group's lock, which an event has
                yield table.groups[locks.workers[locks.inodes[self.row, WORKER], GROUP]].look_again(task)
            else:
                self._waiters.append((task, since_ns))
                task.waits_for = table.inode_cause
                yield PARK
        self._promised = None
        self._asked_ns, self._from_ns = since_ns, env.now

    def up(self) -> None:
        """up_write: the next may try; one that has waited for too long has the lock already."""
        give_inode(self._table.locks, self.row, self._asked_ns, self._from_ns, self._env.now)
        self.hand_on()

    def lend(self) -> None:
        """The owner's next compiled step has the lock from now on; then `hand_on` is due."""
        self._table.locks.inodes[self.row, UNTIL] = self._env.now

    def hand_on(self) -> None:
        """Wake those that wait for the lock."""
        locks, env, row, now = self._table.locks, self._env, self.row, self._env.now
        if self._waiters:
            task, since_ns = self._waiters.popleft()
            until_ns = max(int(locks.inodes[row, UNTIL]), now)
            if until_ns - since_ns >= HANDOFF_NS:
                self._promised = task
                park(locks, row, now)
                locks.inodes[row, UNTIL] = FAR
            env.wake(task, until_ns - now + locks.wake_ns)
        if self._looking is not None:
            env.wake(self._looking)
            self._looking = None

    def begin(self, worker: int, group: int, ranges: int, alone_ns: int, both_ns: int) -> None:
        """*worker* begins to convert *ranges* ranges in *group*, each in a transaction of its own."""
        table, now = self._table, self._env.now
        locks = table.locks
        advance(locks, group, now)
        until_ns, begins_ns, asked_ns = int(locks.inodes[self.row, UNTIL]), now, FAR
        if until_ns > now:
            begins_ns, asked_ns = min(until_ns + locks.relay_ns, FAR), now
        locks.workers[worker] = self.row, group, begins_ns, ranges, alone_ns, both_ns, asked_ns
        locks.inodes[self.row, WORKER] = worker
        table.at_work += 1

    def finish(self, thread: Thread, worker: int) -> Steps:
        """The *thread* of that worker spins or sleeps for as long as the locks delay it."""
        table, env, task = self._table, self._env, thread.task
        group, _, _, alone_ns, both_ns = table.locks.workers[worker, GROUP:ASKED].tolist()
        cause = table.group_cause if both_ns else table.inode_cause
        while True:
            locks, now = table.locks, env.now
            advance(locks, group, now)
            begins_ns, left = locks.workers[worker, BEGINS:ALONE].tolist()
            if begins_ns == FAR:  # an event has the inode's lock
                self._looking = task
                task.waits_for = table.inode_cause
                yield PARK
            elif left and begins_ns + alone_ns <= now:
                yield table.groups[group].look_again(task)
            elif (ends_ns := begins_ns + left * (alone_ns + both_ns)) > now:
                if locks.relay_ns < locks.wake_ns:
                    spins(task, table.inode_lock_name, ends_ns - now)
                    yield ends_ns - now
                else:
                    yield from sleep(task, ends_ns - now, cause)
            else:
                break
        table.locks.inodes[self.row, WORKER] = NO_ROW
        table.at_work -= 1

    def wait_ns(self, calls: int) -> int:
        """How long *calls* calls of write(2) have waited for the lock, which each takes for a moment.

        NOTE: a burst of calls is one event, and the lock is looked at when it is over: of the time since the
        last look, this share was held, and who comes into the midst of a hold waits for the rest of it (half
        of its mean, by the squares, since one meets the long ones) and for the wake-up.
        """
        table, now = self._table, self._env.now
        locks = table.locks
        lock = locks.inodes[self.row]
        if lock[WORKER] != NO_ROW:
            advance(locks, int(locks.workers[lock[WORKER], GROUP]), now)
        last_ns, last_held_ns, last_squares = self._looked
        held_ns, squares = int(lock[HOLD]), int(lock[SQUARES])
        self._looked = now, held_ns, squares
        if held_ns == last_held_ns or now == last_ns:
            return 0
        meets = calls * min((held_ns - last_held_ns) / (now - last_ns), 1.0)
        wait_ns = int(meets * ((squares - last_squares) / (held_ns - last_held_ns) / 2 + locks.wake_ns))
        lock[ACQUISITIONS] += calls
        lock[CONTENTIONS] += int(meets)
        lock[WAIT] += wait_ns
        return wait_ns
