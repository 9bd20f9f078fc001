"""The blocks that ext4 journals for file pages, and the work after the end of I/O.

Stands for the credits of ext4_map_blocks, ext4_end_io_rsv_work and ext4_convert_unwritten_extents.
"""

from __future__ import annotations

from wbsim.models.filesystems.blocks import Space
from wbsim.models.filesystems.costs import MapCosts
from wbsim.models.filesystems.delalloc_parts import Metadata
from wbsim.models.filesystems.ext4.extent_tree import NO_BLOCK
from wbsim.models.filesystems.ext4.geometry import GROUP_BLOCKS, Geometry
from wbsim.models.filesystems.ext4.inodes import Ext4File, Ext4Inode
from wbsim.models.filesystems.ext4.journal import Journal
from wbsim.models.filesystems.ext4.mballoc import Mballoc
from wbsim.models.filesystems.files import PagedFile
from wbsim.models.filesystems.ioends import IoEnd
from wbsim.models.interfaces import Thread
from wbsim.models.page_cache.pages import mark_written
from wbsim.models.vfs.superblock import MountedSuperblock
from wbsim.sim.engine import Steps, Wait


class Ext4Metadata(Metadata[Ext4Inode]):
    """The metadata of one mounted ext4, in its ``journal``.

    A handle that maps an extent asks for *map_credits*.  *mballoc* gets a block back when a tree shrinks.
    """

    gives_way: bool

    def __init__(
        self, *, journal: Journal, geometry: Geometry, map_credits: int, ioend_ns: int, unwritten: bool,
        costs: MapCosts, mballoc: Mballoc, sb: MountedSuperblock, space: Space,
    ) -> None:  # fmt: skip
        self._sb = sb
        self._space = space
        self.journal = journal
        self.gives_way = False
        self.map_credits = map_credits
        self._geometry = geometry
        self._ioend_ns = ioend_ns
        self._unwritten = unwritten
        self._costs = costs
        self._mballoc = mballoc

    @property
    def log_bytes(self) -> int:
        """See `Metadata.log_bytes`."""
        return self.journal.written_bytes

    def is_full(self) -> bool:
        """See `Metadata.is_full`."""
        return self.journal.is_full

    def wait_for_space(self, thread: Thread) -> Steps:
        """See `Metadata.wait_for_space`."""
        yield from self.journal.start_handle(thread, self.map_credits)
        self.journal.stop_handle(self.map_credits, ())

    def log_mapping(self, inode: Ext4Inode, file: Ext4File, page: int, new: bool) -> None:
        """Log the extent that was mapped at *page* of *file*, and its leaf, if any; in no time.

        A *new* one logs the blocks of `log_extent` for the inode's goal group, and one that was preallocated
        the inode alone.
        """
        if new:
            self.log_extent(inode, inode.goal_group)
        else:
            self._log_inode(inode)
        if (leaf := file.tree.leaf_of(page).block) != NO_BLOCK:
            self.journal.log((leaf,))

    def log_extent(self, inode: Ext4Inode, group: int) -> None:
        """Log the blocks of an extent of *inode* in *group*, in no time: inode, bitmap and descriptor.

        The inode's ``transaction`` becomes the running one.  A `PagedFile` gets its ``written_ns`` as
        ``stamp_ns``.
        """
        geometry = self._geometry
        self._stamp(inode)
        self.journal.log(
            (
                geometry.inode_block(inode.number), geometry.bitmap_block(group, inodes=False),
                geometry.descriptor_block(group),
            )
        )  # fmt: skip

    def convert(self, worker: Thread, inode: Ext4Inode, ioend: IoEnd) -> Steps:
        """See `Metadata.convert`: ext4_convert_unwritten_extents, in part under i_data_sem."""
        file, task = inode.file, worker.task
        assert isinstance(file, Ext4File), "an ioend needs a file whose pages are kept one by one"
        range_ns = self._costs.range_ns(file.allocations)
        locked_ns = self._costs.range_locked_ns(range_ns)
        worker.spent.complete += range_ns
        yield range_ns - locked_ns
        if not file.lock.try_write(task):
            yield from file.lock.down_write(task)
        moved_ns = self._costs.moved_range_ns(file, task)
        worker.spent.complete += moved_ns
        yield locked_ns + moved_ns
        if ioend.mapped and (leaf := file.tree.convert(ioend.page, ioend.pages)) != NO_BLOCK:
            self._mballoc.give_back(leaf, 1)
            self._space.unclaimed += 1
            self.log_extent(inode, leaf // GROUP_BLOCKS)
        mark_written(file.pages.states, ioend.page, ioend.pages)
        waker_ns = file.lock.up_write()
        self._log_inode(inode)
        if waker_ns:
            yield waker_ns

    def _log_inode(self, inode: Ext4Inode) -> None:
        self._stamp(inode)
        self.journal.log((self._geometry.inode_block(inode.number),))

    def _stamp(self, inode: Ext4Inode) -> None:
        """Note that the running transaction logs *inode* as it is now, with the time of its last write."""
        inode.transaction, file = self.journal.number, inode.file
        if isinstance(file, PagedFile):
            file.stamp_ns = file.written_ns

    def log_times(self, inode: Ext4Inode) -> None:
        """See `Metadata.log_times`: ext4_dirty_inode."""
        file = inode.file
        assert isinstance(file, PagedFile), "only a file whose pages are kept one by one has time stamps"
        self.journal.log((self._geometry.inode_block(inode.number),))
        file.times_logged = self.journal.number

    def change_extent(self, thread: Thread, inode: Ext4Inode) -> Steps:
        """See `Metadata.change_extent`: one extent of ext4_alloc_file_blocks or ext4_ext_truncate."""
        file, journal = inode.file, self.journal
        map_ns, _ = self._costs.varied_map_ns(file.allocations if isinstance(file, PagedFile) else 0)
        yield from journal.start_handle(thread, self.map_credits)
        thread.spent.allocate += map_ns
        yield map_ns
        journal.stop_handle(self.map_credits, ())
        self.log_extent(inode, inode.goal_group)

    def end_run(self, worker: Thread, block: int, folios: int) -> Wait:
        """See `Metadata.end_run`: ext4_end_io_rsv_work.

        The threads that the worker wakes do not preempt it (docs/measurements.md I).
        """
        ends_ns = self._ioend_ns + (folios - 1) * self._costs.end_folio_ns
        worker.spent.complete += ends_ns
        return ends_ns

    def run_ended(self, inode: Ext4Inode) -> None:
        """See `Metadata.run_ended`; the credits that `Ext4Placement.write_run` reserved are given back."""
        self._log_inode(inode)
        if self._unwritten:
            self.journal.release()

    def sync_fs(self, thread: Thread) -> Steps:
        """See `Metadata.sync_fs`."""
        return self.journal.force(thread)

    def commit_inode(self, thread: Thread, inode: Ext4Inode, datasync: bool) -> Steps:
        """See `Filesystem.commit_inode`: ext4_fsync_journal, or else a flush of the disk."""
        file, number = inode.file, inode.transaction
        if not datasync and isinstance(file, PagedFile):
            number = max(number, file.times_logged)
        if not (yield from self.journal.complete_transaction(thread, number)):
            yield from self._sb.flush(thread)

    def check(self) -> None:
        """See `Metadata.check`."""
        self.journal.check()
