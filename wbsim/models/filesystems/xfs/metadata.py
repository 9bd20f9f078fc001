"""The log items of XFS for file pages, and the work after the end of I/O.

Stands for the log items of inodes and their block mappings, xfs_end_io, xfs_setfilesize and
xfs_iomap_write_unwritten.
"""

from __future__ import annotations

from wbsim.models.filesystems.costs import MapCosts
from wbsim.models.filesystems.delalloc_parts import Metadata
from wbsim.models.filesystems.files import PagedFile
from wbsim.models.filesystems.ioends import IoEnd
from wbsim.models.filesystems.xfs.groups import Group
from wbsim.models.filesystems.xfs.log import XfsLog
from wbsim.models.filesystems.xfs.names import XfsInode
from wbsim.models.filesystems.xfs.spec import XfsFlusherCosts, XfsSpec
from wbsim.models.interfaces import Thread
from wbsim.models.page_cache.pages import mark_written
from wbsim.models.vfs.superblock import MountedSuperblock
from wbsim.sim.engine import Steps, Wait
from wbsim.sim.units import PAGE_BYTES


class XfsMetadata(Metadata[XfsInode]):
    """The metadata of one mounted XFS, in its ``log``.

    The methods add the processor time that they take to ``spent`` of their thread.  Only `change_extent` and
    `wait_for_space` wait for log space; conversions and ends of I/O do not.
    """

    gives_way: bool

    def __init__(
        self,
        sb: MountedSuperblock,
        log: XfsLog,
        spec: XfsSpec,
        flusher_costs: XfsFlusherCosts,
        costs: MapCosts,
        groups: list[Group],
        unwritten: bool,
    ) -> None:
        self._sb = sb
        self.log = log
        self._groups = groups
        self._group_blocks = spec.size // PAGE_BYTES // spec.agcount
        self._rmap_ns = flusher_costs.rmap_ioend_ns if spec.rmapbt and unwritten else 0
        self.gives_way = True
        # Copies of what the hot paths read: a spec's own attributes are slow to read.
        self._commit_ns = log.commit_ns(spec.extent_items)
        self._ioend_ns = flusher_costs.ioend_ns
        self._reserve_ns = flusher_costs.reserve_ns or 0
        self._inode_bytes = spec.inode_log_bytes
        self._extent_bytes = spec.extent_log_bytes
        self._costs = costs

    @property
    def log_bytes(self) -> int:
        """See `Filesystem.log_bytes`: `XfsLog.written_bytes`."""
        return self.log.written_bytes

    def is_full(self) -> bool:
        """See `Metadata.is_full`: ``full`` of the log."""
        return self.log.full

    def wait_for_space(self, thread: Thread) -> Steps:
        """See `Metadata.wait_for_space`: `XfsLog.wait_for_space`."""
        return self.log.wait_for_space(thread)

    def convert_delalloc(
        self, thread: Thread, inode: XfsInode, group: Group, map_ns: int, rmap_ns: int, then_ns: int = 0
    ) -> Steps:  # fmt: skip
        """Run the transaction that gives *inode* blocks of *group*, whose AGF *thread* owns.

        Use: `yield from`.  Only time and the log change; the caller has waited for log space and has taken
        the blocks.  The transaction takes *map_ns* and the commit; the AGF is free after that.  The update of
        the reverse mapping, if it takes time (*rmap_ns*), follows when the transaction rolls.  Then *thread*
        adds pages to bios for *then_ns*.
        """
        log, spent = self.log, thread.spent
        spent.allocate += map_ns
        spent.commit += self._commit_ns
        if log.commits_alone:
            yield map_ns + self._commit_ns
            waker_ns = group.agf.up(thread.task)
        else:
            yield map_ns
            if not rmap_ns and log.commits_at_once:  # the end of the commit needs no event
                spent.pages += then_ns
                then_ns += group.agf.up_after(self._commit_ns, thread.task)
                yield log.cil_section(thread.task, self._commit_ns, then_ns)
                then_ns = waker_ns = 0
            else:
                yield log.cil_section(thread.task, self._commit_ns, 0)
                waker_ns = group.agf.up(thread.task)
        if waker_ns:
            yield waker_ns
        if rmap_ns:
            yield from group.update_rmap(thread, rmap_ns, completes=False)
        self.log_extent(inode)
        if then_ns:
            spent.pages += then_ns  # only now, because the update of the reverse mapping may sleep
            yield then_ns

    def convert(self, worker: Thread, inode: XfsInode, ioend: IoEnd) -> Steps:
        """See `Metadata.convert`: under the ILOCK; with reverse mapping, the last part under the AGF, too.

        The file of *inode* is a `PagedFile`.  Stands for xfs_iomap_write_unwritten.
        """
        file, costs, task = inode.file, self._costs, worker.task
        assert isinstance(file, PagedFile), "an ioend needs a file whose pages are kept one by one"
        if self._reserve_ns:
            worker.spent.complete += self._reserve_ns
            yield self._reserve_ns
        if not file.lock.try_write(task):
            yield from file.lock.down_write(task)
        range_ns = max(0, costs.range_ns(file.allocations) - self._reserve_ns)
        range_ns += costs.lines_ns(file, task, range_ns + self._rmap_ns) + costs.moved_range_ns(file, task)
        worker.spent.complete += range_ns
        yield range_ns
        if self._rmap_ns:
            group = self._groups[(file.base + ioend.block) // self._group_blocks]
            yield from group.update_rmap(worker, self._rmap_ns, completes=True)
        mark_written(file.pages.states, ioend.page, ioend.pages)
        waker_ns = file.lock.up_write()
        self.log_extent(inode)
        if waker_ns:
            yield waker_ns

    def end_run(self, worker: Thread, block: int, folios: int) -> Wait:
        """See `Metadata.end_run`: xfs_end_io.

        If the blocks were unwritten and the filesystem has reverse mapping, the update of the mapping
        follows, under the AGF of the group of *block*.
        """
        ends_ns = self._ioend_ns + (folios - 1) * self._costs.end_folio_ns
        worker.spent.commit += self._commit_ns
        worker.spent.complete += ends_ns
        wait = self.log.cil_section(worker.task, self._commit_ns, ends_ns)
        return wait if not self._rmap_ns else self._convert_run(worker, block, wait)

    def _convert_run(self, worker: Thread, block: int, wait: Wait) -> Steps:
        yield wait
        group = self._groups[block // self._group_blocks]
        yield from group.update_rmap(worker, self._rmap_ns, completes=True)

    def run_ended(self, inode: XfsInode) -> None:
        """See `Metadata.run_ended`: xfs_setfilesize, which logs an extent (`log_extent`)."""
        self.log_extent(inode)

    def log_extent(self, inode: XfsInode) -> None:
        """Log an extent item of *inode*, and the inode unless the growing checkpoint holds it already.

        This takes no time; the caller has waited for the commit.  ``checkpoint`` of *inode* becomes the
        growing one, and the time stamps of a `PagedFile` count as logged (``stamp_ns``).
        """
        log, file, size_bytes = self.log, inode.file, self._extent_bytes
        if isinstance(file, PagedFile):
            file.stamp_ns = file.written_ns  # the inode is logged as it is now
        if inode.checkpoint != log.checkpoint:
            inode.checkpoint = log.checkpoint
            size_bytes += self._inode_bytes
        log.insert_item(inode.cluster)
        log.commit(size_bytes)

    def log_times(self, inode: XfsInode) -> None:
        """See `Metadata.log_times`: xfs_vn_update_time, in no time.

        Nothing is logged if the growing checkpoint has the inode or its time stamps already.
        """
        log, file = self.log, inode.file
        assert isinstance(file, PagedFile), "only a file whose pages are kept one by one has time stamps"
        if inode.checkpoint != log.checkpoint != file.times_logged:
            log.insert_item(inode.cluster)
            log.commit(self._inode_bytes)
        file.times_logged = log.checkpoint

    def change_extent(self, thread: Thread, inode: XfsInode) -> Steps:
        """See `Metadata.change_extent`: one extent of xfs_alloc_file_space or xfs_itruncate_extents.

        *thread* first waits for log space.  Neither the ILOCK nor the AGF is taken.
        """
        file = inode.file
        extents = file.allocations if isinstance(file, PagedFile) else 0
        map_ns, rmap_ns = self._costs.varied_map_ns(extents)
        if self.log.full:
            yield from self.log.wait_for_space(thread)
        thread.spent.allocate += map_ns + rmap_ns
        thread.spent.commit += self._commit_ns
        yield map_ns + rmap_ns
        yield self.log.cil_section(thread.task, self._commit_ns, 0)
        self.log_extent(inode)

    def sync_fs(self, thread: Thread) -> Steps:
        """See `Filesystem.sync_fs`: `XfsLog.force`."""
        yield from self.log.force(thread.task)

    def commit_inode(self, thread: Thread, inode: XfsInode, datasync: bool) -> Steps:
        """See `Filesystem.commit_inode`: xfs_fsync_flush_log, or else a flush of the disk.

        A change that the log has on disk already needs only the flush.
        """
        log, file, checkpoint = self.log, inode.file, inode.checkpoint
        if not datasync and isinstance(file, PagedFile):
            checkpoint = max(checkpoint, file.times_logged)
        if checkpoint <= log.on_disk:
            yield from self._sb.flush(thread)
        else:
            yield from log.force_to(thread.task, checkpoint)

    def check(self) -> None:
        """See `Metadata.check`: `XfsLog.check`."""
        self.log.check()
