"""What XFS logs of file pages, and what follows the end of I/O.

Stands for the log items of inodes and their block mappings, xfs_end_io, xfs_setfilesize and
xfs_iomap_write_unwritten.
"""

from __future__ import annotations

from wbsim.models.filesystems.map_costs import MapCosts
from wbsim.models.filesystems.policies import Metadata
from wbsim.models.filesystems.xfs.groups import Group
from wbsim.models.filesystems.xfs.inodes import XfsInode
from wbsim.models.filesystems.xfs.log import XfsLog
from wbsim.models.filesystems.xfs.spec import XfsFlusherCosts, XfsSpec
from wbsim.models.seams import Thread
from wbsim.sim.engine import Steps, Wait
from wbsim.sim.units import PAGE_BYTES


class XfsMetadata(Metadata):
    """That of one mounted XFS, in its ``log``."""

    gives_way: bool

    def __init__(
        self,
        log: XfsLog,
        spec: XfsSpec,
        flusher_costs: XfsFlusherCosts,
        costs: MapCosts,
        groups: list[Group],
        unwritten: bool,
    ) -> None:
        self.log = log
        self._groups = groups
        self._group_blocks = spec.size // PAGE_BYTES // spec.agcount
        self._rmap_ns = costs.group_ns if unwritten else 0
        self.gives_way = True
        # Copies of what the hot paths read: a spec's own attributes are slow to read.
        self._commit_ns = log.commit_ns(spec.extent_items)
        self._ioend_ns = flusher_costs.ioend_ns
        self._inode_bytes = spec.inode_log_bytes
        self._extent_bytes = spec.extent_log_bytes
        self._costs = costs

    @property
    def log_bytes(self) -> int:
        """See `Metadata.log_bytes`."""
        return self.log.written_bytes

    def is_full(self) -> bool:
        """See `Metadata.is_full`."""
        return self.log.full

    def wait_for_space(self, thread: Thread) -> Steps:
        """See `Metadata.wait_for_space`."""
        return self.log.wait_for_space(thread)

    def mapped(self, inode: XfsInode, extents: int, page: int) -> None:
        """See `Metadata.mapped`."""
        log, size_bytes = self.log, extents * self._extent_bytes
        if inode.checkpoint != log.checkpoint:
            inode.checkpoint = log.checkpoint
            size_bytes += self._inode_bytes
        log.commit_many(extents, size_bytes, self._commit_ns, inode.cluster)

    def converted(self, inode: XfsInode, ranges: int) -> None:
        """See `Metadata.converted`: xfs_iomap_write_unwritten for each of them."""
        self.mapped(inode, ranges, 0)

    def end_run(self, worker: Thread, block: int, folios: int) -> Wait:
        """See `Metadata.end_run`: xfs_end_io; a conversion updates the reverse mapping, too."""
        ends_ns = self._ioend_ns + (folios - 1) * self._costs.end_folio_ns
        worker.spent.commit += self._commit_ns
        worker.spent.complete += ends_ns
        ended = self.log.cil_section(worker.task, self._commit_ns, ends_ns)
        return ended if not self._rmap_ns else self._convert_run(worker, block, ended)

    def _convert_run(self, worker: Thread, block: int, ended: Wait) -> Steps:
        yield ended
        worker.spent.complete += self._rmap_ns
        yield from self._groups[block // self._group_blocks].update_rmap(worker, self._rmap_ns)

    def run_ended(self, inode: XfsInode) -> None:
        """See `Metadata.run_ended`: xfs_setfilesize."""
        self.log_extent(inode)

    def log_extent(self, inode: XfsInode) -> None:
        """Log an extent item, and the inode unless the growing checkpoint holds it already."""
        log, size_bytes = self.log, self._extent_bytes
        if inode.checkpoint != log.checkpoint:
            inode.checkpoint = log.checkpoint
            size_bytes += self._inode_bytes
        log.insert_item(inode.cluster)
        log.commit(size_bytes)

    def sync_fs(self, thread: Thread) -> Steps:
        """See `Metadata.sync_fs`: force the log."""
        yield from self.log.force(thread.task)

    def commit_log(self, thread: Thread) -> Steps:
        """See `Metadata.commit_log`."""
        return self.log.force(thread.task)

    def check(self) -> None:
        """See `Metadata.check`."""
        self.log.check()
