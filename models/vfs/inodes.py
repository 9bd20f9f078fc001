"""The inodes of one superblock: how they come into being for the virtual filesystem.

Stands for new_inode and inode_sb_list_add (fs/inode.c), inode_attach_wb, and the count of cached inodes.
What a filesystem knows of an inode it makes itself, around these.
"""

from __future__ import annotations

from models.page_cache.accounting import PageCache
from models.seams import Wb
from models.writeback.wb import BackingDevice
from sim.engine import Task, Wait
from sim.sync import SpinLock


class SuperblockInodes:
    """s_inodes, the list of a superblock's cached inodes on *bdi*, under *lock*.

    To add one takes *add_ns* with the lock held.  ``add_ns`` is to be left out of what a filesystem's own
    work takes.
    """

    __slots__ = ("_bdi", "_cache", "_lock", "add_ns")

    def __init__(self, bdi: BackingDevice, lock: SpinLock, add_ns: int, cache: PageCache) -> None:
        self._bdi = bdi
        self._lock = lock
        self._cache = cache
        self.add_ns = add_ns

    def sb_list_add(self, task: Task, then_ns: int = 0) -> Wait:
        """inode_sb_list_add by *task*, which goes on for *then_ns*: to be yielded."""
        return self._lock.section(task, self.add_ns, then_ns)

    def new(self, task: Task, group: int, number: int) -> Wb:
        """*task* has made inode *number* in that *group*: it is cached; returns its writeback context."""
        self._cache.cached_inodes += 1
        return self._bdi.wb_of(group, number, task.cpu)
