"""The locks of inodes under writeback: ILOCK of XFS, i_data_sem of ext4."""

from __future__ import annotations

from wbsim.models.filesystems.files import PagedFile
from wbsim.models.interfaces import Thread
from wbsim.models.parts import Parts
from wbsim.models.scheduler.cpu import sleep
from wbsim.sim.engine import Steps
from wbsim.sim.sync import RwSemaphore, lock_stats_of


class InodeLocks:
    """The locks of all files of one mounted filesystem, each a struct rw_semaphore of the class *name*.

    Only a file whose pages are kept one by one has a lock: no task waits for the lock of another file.
    """

    def __init__(self, parts: Parts, name: str) -> None:
        self._parts = parts
        self._name = name
        self._locks: list[RwSemaphore] = []
        parts.count_lock(name, lambda: lock_stats_of(lock.stat for lock in self._locks))

    def new(self) -> RwSemaphore:
        """Return a new lock, for another inode."""
        lock = self._parts.rw_semaphore(self._name)
        self._locks.append(lock)
        return lock

    def write(self, thread: Thread, file: PagedFile, calls: int) -> Steps | None:
        """See `Filesystem.write_lock`: each of *calls* calls of write(2) takes the lock for a moment.

        NOTE: a burst of calls is one event, and the lock is looked at when the burst is over.  The lock was
        held for a part of the time since the last look.  A call that meets a hold waits for the rest of the
        hold and for its own wake-up.  The mean rest is half of the mean hold, weighted with its length.
        """
        lock, now = file.lock, self._parts.env.now
        last_ns, last_held_ns, last_squares = file.looked
        held_ns, squares = lock.stat.hold_ns, lock.hold_squares
        file.looked = now, held_ns, squares
        if held_ns == last_held_ns or now == last_ns:
            return None
        meets = calls * min((held_ns - last_held_ns) / (now - last_ns), 1.0)
        rest_ns = (squares - last_squares) / (held_ns - last_held_ns) / 2
        wait_ns = int(meets * (rest_ns + self._parts.wake_ns))
        lock.stat.acquisitions += calls
        lock.stat.contentions += int(meets)
        lock.stat.wait_ns += wait_ns
        return sleep(thread.task, wait_ns, lock.waited) if wait_ns else None
