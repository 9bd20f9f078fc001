"""Allocation groups: free space, the lock on it, and the choice of a group for an allocation.

Stands for struct xfs_perag, xfs_alloc_vextent_start_ag and its try-locks (fs/xfs/libxfs/xfs_alloc.c).
"""

from __future__ import annotations

from collections.abc import Generator
from itertools import chain

from wbsim.models.filesystems.xfs.free_space import FreeSpace
from wbsim.models.filesystems.xfs.log import MetaBuffer
from wbsim.models.interfaces import NoSpace, Thread
from wbsim.sim.engine import Steps, Wait
from wbsim.sim.sync import Semaphore


class InodeCluster(MetaBuffer):
    """The cluster buffer of some inodes of *group*."""

    __slots__ = ("group",)

    def __init__(self, group: Group, start_sector: int, sectors: int) -> None:
        super().__init__(start_sector, sectors)
        self.group = group


class Group:
    """A group: its first block in the filesystem, its free space with the AGF lock, and its unused inodes.

    ``agi`` is the lock of the inodes.  ``cluster`` is the buffer of the next inodes.  ``inodes_left`` inodes
    of the last chunk are unused, ``cluster_left`` of them in this buffer.
    """

    __slots__ = ("agf", "agi", "cluster", "cluster_left", "first_block", "free", "inodes_left", "number")

    def __init__(
        self, number: int, first_block: int, free: FreeSpace, agf: Semaphore, agi: Semaphore
    ) -> None:
        self.number = number
        self.first_block = first_block
        self.free = free
        self.agf = agf
        self.agi = agi
        self.inodes_left = 0
        self.cluster_left = 0
        self.cluster = InodeCluster(self, 0, 0)

    def update_rmap(self, thread: Thread, rmap_ns: int, *, completes: bool) -> Steps:
        """Let *thread* wait for the AGF, work for *rmap_ns* under it, and release it.  Use: `yield from`.

        A transaction releases the AGF when it rolls, so the update of the reverse mapping takes the AGF again
        (xfs_rmap_finish_one).  *rmap_ns* is added to what *thread* has spent: for ``complete`` if it
        *completes* writes, else for ``allocate``.
        """
        if not self.agf.try_down():
            thread.before_sleep()
            yield self.agf.down(thread.task)
        # Only now: a run may end while the thread sleeps, and then it has not spent the time.
        if completes:
            thread.spent.complete += rmap_ns
        else:
            thread.spent.allocate += rmap_ns
        yield rmap_ns
        if waker_ns := self.agf.up(thread.task):
            yield waker_ns

    def take(self, blocks: int) -> int:
        """Take *blocks* blocks that lie together, near the group's beginning, in no time; return the first.

        The result counts from the start of the group.  The log, inode chunks and directories get blocks this
        way.  The caller subtracts them from ``unclaimed`` of `Space`, and accounts for the time; the AGF is
        not touched.

        Raises:
            NoSpace: the group has no free extent of *blocks* blocks.
        """
        extent = self.free.take_near(0, blocks)
        if extent is None or extent[1] < blocks:
            raise NoSpace(f"allocation group {self.number} is full; give a larger filesystem or fewer files")
        return extent[0]


def lock_group(
    groups: list[Group], thread: Thread, target: Group, length: int
) -> Generator[Wait, None, Group]:
    """Return the first group from *target* on with a free AGF and room for *length* blocks; lock its AGF.

    Use: `yield from`.  *groups* are all groups of the filesystem; group 0 follows the last.  A group has room
    if one of its free extents has *length* blocks.  If the AGFs of all groups with room are locked, *thread*
    waits for the first of them.  If no group has room, the longest free extent of all groups counts as
    *length*; the result then has fewer blocks together.  The caller takes the blocks and releases the AGF.

    Raises:
        NoSpace: no block is free in any group.
    """
    while True:
        first = None
        for group in chain(groups[target.number :], groups[: target.number]):
            if group.free.longest() >= length:
                if group.agf.try_down():
                    return group
                first = first or group
        if first is None:
            length = max(group.free.longest() for group in groups)
            if not length:
                raise NoSpace("the filesystem is full; give a larger filesystem, or fewer or smaller files")
            continue
        thread.before_sleep()
        yield first.agf.down(thread.task)
        if first.free.longest() >= length:
            return first
        if waker_ns := first.agf.up(thread.task):
            yield waker_ns
