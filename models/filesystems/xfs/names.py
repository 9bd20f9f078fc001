"""Names in an XFS: making files and directories.

Stands for xfs_create, xfs_dialloc, xfs_ialloc_ag_alloc and xfs_dir_createname.  New directories take the
groups in rotation, files the group of their directory.  Left out: alignment of inode chunks, directories that
spill into another group.
"""

from __future__ import annotations

from collections.abc import Generator

from models.filesystems.xfs.groups import Group, InodeCluster
from models.filesystems.xfs.inodes import Directory, XfsInode
from models.filesystems.xfs.log import MetaBuffer, XfsLog
from models.filesystems.xfs.spec import CHUNK_INODES, XfsSpec, XfsWriterCosts
from models.seams import Thread
from models.vfs.superblock import MountedSuperblock
from sim.engine import Steps, Wait
from sim.units import PAGE_BYTES, PAGE_SECTORS, SECTOR_BYTES


class XfsNames:
    """The directories and inodes of one XFS; each new name costs *commit_ns* under the log's lock."""

    def __init__(
        self,
        *,
        sb: MountedSuperblock,
        spec: XfsSpec,
        costs: XfsWriterCosts,
        commit_ns: int,
        groups: list[Group],
        log: XfsLog,
    ) -> None:
        self._sb = sb
        self._groups = groups
        self._log = log
        self._costs = costs
        self._chunk_blocks = CHUNK_INODES * spec.inode_bytes // PAGE_BYTES
        self._clusters = max(1, CHUNK_INODES * spec.inode_bytes // spec.cluster_bytes)
        self._names_per_block = PAGE_BYTES // spec.dirent_bytes
        self._rotor = 0
        # Copies of what `create` reads: a spec's own attributes are slow to read.
        self._commit_ns = commit_ns
        self._create_ns = costs.create_ns
        self._create_bytes = spec.inode_log_bytes + spec.dirent_log_bytes

    def mkdir(self, thread: Thread) -> Generator[Wait, None, Directory]:
        """See `Filesystem.mkdir`; in the next group in rotation."""
        directory = Directory(self._groups[self._rotor])
        self._rotor = (self._rotor + 1) % len(self._groups)
        thread.spent.create += self._costs.mkdir_ns
        yield self._costs.mkdir_ns
        return directory

    def create(
        self, thread: Thread, directory: Directory, lead_ns: int, factor: float, then_ns: int
    ) -> Generator[Wait, None, XfsInode]:
        """See `Filesystem.create`."""
        log, task, spent = self._log, thread.task, thread.spent
        commit_ns, inodes = self._commit_ns, self._sb.inodes
        create_ns = int(self._create_ns * factor)
        group = directory.group
        if group.inodes_left == 0 or directory.names_left == 0:
            yield from self._grow(thread, directory)
        if log.full:
            yield from log.wait_for_space(thread)
        group.inodes_left -= 1
        directory.names_left -= 1
        if group.cluster_left == 0:
            self._next_cluster(group)
        group.cluster_left -= 1
        cluster, block = group.cluster, directory.block
        spent.create += create_ns + inodes.add_ns
        yield lead_ns + create_ns
        yield inodes.sb_list_add(task)
        spent.commit += commit_ns
        spent.write += then_ns
        yield log.lock.section(task, commit_ns, then_ns)
        log.commit(self._create_bytes, cluster, block)
        wb = inodes.new(task, group.number, cluster.start_sector + group.cluster_left)
        return XfsInode(self._sb, wb, cluster, log.checkpoint)

    def _grow(self, thread: Thread, directory: Directory) -> Steps:
        """Allocate what the next name needs: an inode chunk, a directory block."""
        costs, task, group, agf = self._costs, thread.task, directory.group, directory.group.agf
        hold_ns = costs.chunk_ns + costs.dir_block_ns
        if not agf.try_down(task, hold_ns):
            yield from agf.down(thread, hold_ns)
        work_ns = 0
        if group.inodes_left == 0:
            work_ns += costs.chunk_ns
            self._add_chunk(group)
        if directory.names_left == 0:
            work_ns += costs.dir_block_ns
            self._add_block(directory)
        thread.spent.create += work_ns
        yield work_ns
        agf.up(task)

    def _add_chunk(self, group: Group) -> None:
        """64 more inodes in *group*."""
        start_sector = (group.first_block + group.take(self._chunk_blocks)) * PAGE_SECTORS
        group.cluster = InodeCluster(group, start_sector, 0)
        group.cluster_left = 0
        group.inodes_left = CHUNK_INODES

    def _add_block(self, directory: Directory) -> None:
        """One more block for names."""
        group = directory.group
        directory.block = MetaBuffer((group.first_block + group.take(1)) * PAGE_SECTORS, PAGE_SECTORS)
        directory.names_left = self._names_per_block

    def _next_cluster(self, group: Group) -> None:
        """Go on to the next cluster buffer of the current inode chunk."""
        previous = group.cluster
        sectors = self._chunk_blocks * PAGE_BYTES // SECTOR_BYTES // self._clusters
        group.cluster = InodeCluster(group, previous.start_sector + previous.sectors, sectors)
        group.cluster_left = CHUNK_INODES // self._clusters
