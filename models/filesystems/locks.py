"""The locks of ext4's inodes (i_data_sem, a struct rw_semaphore), as events use them.

The times of their holds lie in the `Locks` of `models.filesystems.lock_table`, which compiled steps use, too.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from wbsim.models.filesystems.lock_table import (
    ACQUISITIONS,
    BEGINS,
    CONTENTIONS,
    FAR,
    HANDOFF_NS,
    HOLD,
    HOLDS,
    LOCK_COLUMNS,
    NO_ROW,
    SQUARES,
    UNTIL,
    WAIT,
    WAIT_MAX,
    WORKER,
    Locks,
    advance,
    give_inode,
    new_locks,
    park,
    take_inode,
)
from wbsim.models.scheduler.cpu import sleep
from wbsim.models.seams import Thread
from wbsim.models.site import Site
from wbsim.sim.engine import PARK, Steps, Task
from wbsim.sim.sync import LockStat, LockStats, spins, waiting_for


class LockTable:
    """The locks of all inodes of one mounted filesystem, which *workers* workers convert.

    *inode_lock* names their class, as /proc/lock_stat does.
    """

    def __init__(self, site: Site, workers: int, inode_lock: str) -> None:
        self.env = site.env
        self.locks = new_locks(workers, site.wake_ns)
        self._relay_ns = site.relay_ns
        self._inodes = 0
        self.inode_lock_name = inode_lock
        self.inode_cause = waiting_for(inode_lock)
        site.count_lock(inode_lock, self._inode_stats)

    def share(self) -> Locks:
        """Return the record for a compiled step."""
        relay_ns = self._relay_ns()
        if relay_ns != self.locks.relay_ns:
            self.locks = self.locks._replace(relay_ns=relay_ns)
        return self.locks

    def _inode_stats(self) -> LockStats:
        locks = self.locks.inodes
        acquisitions, contentions, wait_ns, _, hold_ns = locks[:, ACQUISITIONS:].sum(axis=0).tolist()
        wait_max_ns, longest_ns = (int(locks[:, column].max(initial=0)) for column in (WAIT_MAX, HOLD))
        return LockStat(acquisitions, contentions, wait_ns, wait_max_ns, hold_ns), longest_ns

    def inode_lock(self) -> InodeLock:
        """Return the lock of one inode more."""
        row, locks = self._inodes, self.locks
        if row == len(locks.inodes):
            more = np.zeros((max(16, 2 * row), LOCK_COLUMNS), np.int64)
            more[:row], more[row:, WORKER] = locks.inodes, NO_ROW
            self.locks = locks._replace(inodes=more)
        self._inodes += 1
        return InodeLock(self, row)


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
            self._waiters.append((task, since_ns))
            task.waits_for = table.inode_cause
            yield PARK
        self._promised = None
        self._asked_ns, self._from_ns = since_ns, env.now

    def up(self) -> None:
        """up_write: the next may try; one that has waited for too long has the lock already."""
        give_inode(self._table.locks, self.row, self._asked_ns, self._from_ns, self._env.now)
        self._hand_on()

    def _hand_on(self) -> None:
        """Wake the tasks that wait for the lock."""
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

    def begin(self, worker: int, ranges: int, range_ns: int) -> None:
        """*worker* begins to convert *ranges* ranges, each in a transaction of *range_ns*."""
        table, now = self._table, self._env.now
        locks = table.locks
        until_ns, begins_ns, asked_ns = int(locks.inodes[self.row, UNTIL]), now, FAR
        if until_ns > now:
            begins_ns, asked_ns = min(until_ns + locks.relay_ns, FAR), now
        locks.workers[worker] = self.row, begins_ns, ranges, range_ns, asked_ns
        locks.inodes[self.row, WORKER] = worker

    def finish(self, thread: Thread, worker: int) -> Steps:
        """The *thread* of that worker spins or sleeps for as long as the lock delays it."""
        table, env, task = self._table, self._env, thread.task
        while True:
            locks, now = table.locks, env.now
            advance(locks, worker, now)
            begins_ns, left, range_ns = locks.workers[worker, BEGINS : HOLDS + 1].tolist()
            if begins_ns == FAR:  # an event has the lock
                self._looking = task
                task.waits_for = table.inode_cause
                yield PARK
            elif (ends_ns := begins_ns + left * range_ns) > now:
                if locks.relay_ns < locks.wake_ns:
                    spins(task, table.inode_lock_name, ends_ns - now)
                    yield ends_ns - now
                else:
                    yield from sleep(task, ends_ns - now, table.inode_cause)
            else:
                break
        table.locks.inodes[self.row, WORKER] = NO_ROW

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
            advance(locks, int(lock[WORKER]), now)
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
