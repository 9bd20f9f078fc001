"""struct bdi_writeback and struct backing_dev_info: a writeback context, and its device."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from wbsim.models.block.gendisk import GenDisk
from wbsim.models.interfaces import Bandwidth, Inode, InodeSync, Superblock, Wb, Work
from wbsim.models.page_cache.accounting import PageCache
from wbsim.models.page_cache.estimates import WriteBandwidth
from wbsim.models.parts import Parts
from wbsim.sim.entry import FAR_NS
from wbsim.sim.invariants import require
from wbsim.sim.sync import SpinLock


class WritebackContext(Wb):
    """See `models.interfaces.Wb`: the lists b_dirty, b_io and b_more_io, and the page counts.

    b_dirty has its oldest inode first, and the others the inode that is visited next.

    One list_lock protects the lists.

    *per_superblock*: each superblock has separate lists (s_dirty, s_io, s_more_io, to 2.6.31).  The model
    keeps their inodes together, and work on one superblock leaves the inodes of the others in their place.
    """

    __slots__ = (
        "_append_dirty",
        "b_dirty",
        "b_io",
        "b_more_io",
        "bandwidth",
        "cancelled_pages",
        "dirty",
        "dirty_and_writeback",
        "dirty_exceeded",
        "flushed_inodes",
        "flushed_pages",
        "given_back",
        "held_back_ns",
        "i_syncs",
        "lock",
        "name",
        "per_superblock",
        "work_list",
        "written_pages",
    )

    def __init__(self, name: str, lock: SpinLock, cache: PageCache, *, per_superblock: bool = False) -> None:
        self.name = name
        self.per_superblock = per_superblock
        self.lock = lock
        self.b_dirty: deque[Inode] = deque()
        self.b_io: deque[Inode] = deque()
        self.b_more_io: deque[Inode] = deque()
        self._append_dirty = self.b_dirty.append  # a method of a deque is looked up by name at each call
        self.work_list: deque[Work] = deque()
        self.i_syncs: list[InodeSync] = []
        self.bandwidth: Bandwidth = WriteBandwidth()
        self.dirty = 0
        self.dirty_and_writeback = 0
        self.written_pages = self.cancelled_pages = 0
        self.flushed_inodes = 0
        self.flushed_pages = 0
        self.given_back = 0
        self.dirty_exceeded = False
        self.held_back_ns = -FAR_NS
        cache.wbs.append(self)

    @property
    def dirtied(self) -> int:
        """See `Wb.dirtied`."""
        return self.dirty_and_writeback + self.written_pages + self.cancelled_pages

    @property
    def submitted_pages(self) -> int:
        """See `Wb.submitted_pages`."""
        return self.dirty_and_writeback - self.dirty + self.written_pages

    def account_dirtied(self, pages: int) -> None:
        """See `Wb.account_dirtied`."""
        self.dirty += pages
        self.dirty_and_writeback += pages

    def account_writeback(self, pages: int) -> None:
        """See `Wb.account_writeback`."""
        self.dirty -= pages

    def account_clean(self, pages: int) -> None:
        """See `Wb.account_clean`."""
        self.dirty_and_writeback -= pages
        self.written_pages += pages

    def account_cancelled(self, pages: int) -> None:
        """See `Wb.account_cancelled`."""
        self.dirty -= pages
        self.dirty_and_writeback -= pages
        self.cancelled_pages += pages

    def add(self, inode: Inode, now_ns: int) -> None:
        """See `Wb.add`; also redirty_tail."""
        inode.dirtied_when = now_ns
        self._append_dirty(inode)

    def give_back(self, inode: Inode) -> None:
        """See `Wb.give_back`."""
        younger = 0
        for entry in reversed(self.b_dirty):
            if entry.dirtied_when <= inode.dirtied_when:
                break
            younger += 1
        self.b_dirty.insert(len(self.b_dirty) - younger, inode)

    def take_off(self, inode: Inode) -> None:
        """See `Wb.take_off`."""
        for inodes in (self.b_dirty, self.b_io, self.b_more_io):
            if inode in inodes:
                inodes.remove(inode)

    def queue_io(self, older_than_ns: int, superblock: Superblock | None = None) -> int:
        """See `Wb.queue_io`."""
        if superblock is not None and self.per_superblock:
            return self._queue_io_of(superblock, older_than_ns)
        io, dirty = self.b_io, self.b_dirty
        length = len(io)
        io.extend(self.b_more_io)
        self.b_more_io.clear()
        if dirty and dirty[-1].dirtied_when <= older_than_ns:
            expired = list(dirty)
            dirty.clear()
        else:
            expired = []
            while dirty and dirty[0].dirtied_when <= older_than_ns:
                expired.append(dirty.popleft())
        io.extend(_by_superblock(expired))
        return len(io) - length

    def _queue_io_of(self, sb: Superblock, older_than_ns: int) -> int:
        """Refill b_io with inodes of the superblock *sb*; return how many moved."""
        length = len(self.b_io)
        for inodes, latest_ns in ((self.b_more_io, FAR_NS), (self.b_dirty, older_than_ns)):
            rest: list[Inode] = []
            for inode in inodes:
                due = inode.sb is sb and inode.dirtied_when <= latest_ns
                (self.b_io if due else rest).append(inode)
            inodes.clear()
            inodes.extend(rest)
        return len(self.b_io) - length

    def holds(self, inodes: deque[Inode], superblock: Superblock | None) -> bool:
        """See `Wb.holds`."""
        if superblock is None or not self.per_superblock:
            return len(inodes) > 0
        return any(inode.sb is superblock for inode in inodes)

    def take(self, superblock: Superblock, now_ns: int) -> Inode | None:
        """See `Wb.take`."""
        io = self.b_io
        for _ in range(len(io)):
            inode = io.popleft()
            if inode.sb is superblock:
                return inode
            if self.per_superblock:
                io.append(inode)  # to the end, so that each inode is passed once and not at every call
            else:
                self.add(inode, now_ns)
        return None

    def requeue_io(self, inode: Inode) -> None:
        """See `Wb.requeue_io`."""
        self.b_more_io.append(inode)

    def __len__(self) -> int:
        return len(self.b_dirty) + len(self.b_io) + len(self.b_more_io)

    def check(self) -> None:
        """See `Wb.check`.

        Raises:
            LawBroken: a listed inode is on two lists, is clean, is being written back, or belongs to another
                context.  Or the lists have more dirty pages than ``dirty``, or ``dirty`` is more than
                ``dirty_and_writeback``.
        """
        inodes, name = [*self.b_dirty, *self.b_io, *self.b_more_io], self.name
        require(len({id(inode) for inode in inodes}) == len(inodes), f"{name}: an inode is listed twice")
        for inode in inodes:
            if inode.wb is self and inode.dirty_pages > 0 and inode.i_sync is None:
                continue
            require(inode.wb is self, f"{name}: lists an inode of {inode.wb.name}")
            require(inode.dirty_pages > 0, f"{name}: lists a clean inode")
            require(inode.i_sync is None, f"{name}: lists an inode that is being written back")
        pages = sum(inode.dirty_pages for inode in inodes)
        require(
            pages <= self.dirty <= self.dirty_and_writeback,
            f"{name}: {pages} listed pages, {self.dirty} dirty pages and {self.dirty_and_writeback} dirty or"
            " under writeback must not decrease",
        )


def _by_superblock(inodes: list[Inode]) -> list[Inode]:
    """Return *inodes* with the inodes of each superblock next to each other (move_expired_inodes)."""
    if not inodes:
        return inodes
    first = inodes[0].sb
    for inode in inodes:
        if inode.sb is not first:
            break
    else:
        return inodes
    superblocks = dict.fromkeys([inode.sb for inode in inodes])
    return [inode for sb in superblocks for inode in inodes if inode.sb is sb]


Places = Callable[[int, int, int], int]
"""Called with the allocation group of a new inode, its number and the processor that creates it.

Returns the number of the inode's context, which the caller takes modulo the number of contexts.
"""


def first_context(group: int, number: int, cpu: int) -> int:
    """Return 0 whatever the arguments: all inodes belong to the first context of their device."""
    return 0


class BackingDevice:
    """backing_dev_info: a queue and its writeback contexts.

    *parts* makes its threads and locks.  ``groups``: the largest number of allocation groups of a filesystem
    on the device.  ``places`` chooses the context of a new inode.
    """

    def __init__(self, name: str, queue: GenDisk, parts: Parts) -> None:
        self.name = name
        self.queue = queue
        self.parts = parts
        self.groups = 1
        self.wbs: list[Wb] = []
        self.places: Places = first_context
        if queue.wbt is not None:
            queue.wbt.wbs = self.wbs

    def wb_of(self, group: int, number: int, cpu: int) -> Wb:
        """Return the context of a new inode, as ``places`` chooses it (inode_attach_wb).

        *group* is the allocation group of the inode, *number* its number, and *cpu* the processor that
        creates it.
        """
        wbs = self.wbs
        return wbs[0] if len(wbs) == 1 else wbs[self.places(group, number, cpu) % len(wbs)]
