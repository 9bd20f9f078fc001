"""The locks of inodes under writeback, and how write(2) takes them: ILOCK of XFS, i_data_sem of ext4.

write(2) takes the lock to look for the blocks of its pages, and to delay the blocks that it does not find:

* XFS from 4.8 on takes ILOCK for writing, once for each call (xfs_buffered_write_iomap_begin [V 6.1, 6.12];
  xfs_file_iomap_begin_delay).
* XFS to 4.7 takes it for writing, for each page that has no mapped buffer in the cache (__xfs_get_blocks).
* ext4 takes i_data_sem for each such page, for reading or, from 6.10 on, for writing (ext4_da_map_blocks
  [V 6.1.192, 6.12]).  A page that the extent status tree knows as delayed or mapped takes none.

The hold itself is a part of the time of a call, which ends at that moment.  Left out: a call that copies
several pages looks once, after the last page of its step, and not before each page.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wbsim.models.filesystems.files import PagedFile
from wbsim.models.interfaces import Thread
from wbsim.models.parts import Parts
from wbsim.sim.engine import Steps
from wbsim.sim.sync import RwSemaphore, lock_stats_of


class InodeLocks:
    """The locks of all files of one mounted filesystem, each a struct rw_semaphore of the class *name*.

    No other lock that *parts* counts has this name.
    Only a file whose pages are kept one by one has a lock: no task waits for the lock of another file.
    *reads*: write(2) takes the lock for reading.  *each_hole*: it takes the lock for each page that has no
    block and is not delayed, and not once for a call.
    """

    def __init__(self, parts: Parts, name: str, *, reads: bool, each_hole: bool) -> None:
        self._make = parts.rw_semaphores(name)
        self._reads = reads
        self._each_hole = each_hole
        self._locks: list[RwSemaphore] = []
        parts.count_lock(name, lambda: lock_stats_of(lock.stat for lock in self._locks))

    def new(self) -> RwSemaphore:
        """Return a new lock, for another inode, whose acquisitions count in the class."""
        lock = self._make()
        self._locks.append(lock)
        return lock

    def write(self, thread: Thread, file: PagedFile, pages: NDArray[np.int64], calls: int) -> Steps | None:
        """Take the lock of *file* for a moment, as write(2) does before *thread* writes to *pages* (numbers).

        *calls* calls begin with these pages.  Each call or, with *each_hole*, each hole counts as an
        acquisition; without a hole, the lock is not taken.  Returns None if no wait was necessary.
        Otherwise, use `yield from` on the result; the lock is free again then.
        """
        takes, lock = file.holes(pages) if self._each_hole else calls, file.lock
        if not takes or lock.pass_through(takes, self._reads):
            return None
        if self._reads:
            lock.read_stat.acquisitions += takes - 1
            if not lock.try_read():
                return _wait_to_read(thread, lock)
            lock.up_read(thread.task)
        else:
            lock.stat.acquisitions += takes - 1
            if not lock.try_write(thread.task):
                return _wait_to_write(thread, lock)
            lock.up_write()
        return None  # a task that waits for a free lock was woken before


def _wait_to_read(thread: Thread, lock: RwSemaphore) -> Steps:
    thread.before_sleep()
    yield lock.down_read(thread.task)
    if waker_ns := lock.up_read(thread.task):
        yield waker_ns


def _wait_to_write(thread: Thread, lock: RwSemaphore) -> Steps:
    yield from lock.down_write(thread.task, thread.before_sleep)
    if waker_ns := lock.up_write():
        yield waker_ns
