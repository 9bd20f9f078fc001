"""Directories and inodes of an XFS: making files and directories, looking them up, removing them.

Stands for xfs_create, xfs_dialloc, xfs_ialloc_ag_alloc and xfs_dir_createname; xfs_iget, xfs_bulkstat;
xfs_remove and xfs_inactive.  New directories take the groups in rotation, files the group of their directory.
The root directory is in group 0.
Left out: alignment of inode chunks, directories that spill into another group.
"""

from __future__ import annotations

from collections.abc import Generator

from wbsim.models.filesystems.blocks import Space
from wbsim.models.filesystems.files import OPEN, FileInode
from wbsim.models.filesystems.xfs.groups import Group, InodeCluster
from wbsim.models.filesystems.xfs.log import NO_BUFFER, MetaBuffer, XfsLog
from wbsim.models.filesystems.xfs.spec import CHUNK_INODES, XfsSpec, XfsWriterCosts
from wbsim.models.interfaces import Caller, Names, Superblock, Thread, Wb
from wbsim.models.vfs.inodes import BATCH
from wbsim.models.vfs.superblock import MountedSuperblock
from wbsim.sim.engine import Steps, Task, Wait
from wbsim.sim.units import PAGE_BYTES, PAGE_SECTORS, SECTOR_BYTES


class Directory:
    """A directory: its group, the block for its next names, and how many names that block has room for."""

    __slots__ = ("block", "group", "names_left")

    def __init__(self, group: Group) -> None:
        self.group = group
        self.names_left = 0
        self.block = NO_BUFFER


class XfsInode(FileInode):
    """An inode: its cluster buffer, and the number of the checkpoint that last logged it (0: none).

    The group of an inode is the group of its directory.
    """

    __slots__ = ("checkpoint", "cluster")

    def __init__(self, sb: Superblock, wb: Wb, cluster: InodeCluster, checkpoint: int) -> None:
        # The base classes do the same; this saves a call for each of millions of inodes.
        self.sb = sb
        self.wb = wb
        self.dirtied_when = 0
        self.dirty_pages = 0
        self.i_sync = None
        self.file = OPEN
        self.folio_pages = 1
        self.cluster = cluster
        self.checkpoint = checkpoint

    @property
    def group(self) -> Group:
        """The inode's allocation group.

        Only the cluster buffer has it, to save memory: half a million inodes are dirty at once.
        """
        return self.cluster.group


class XfsNames(Names):
    """The directories and inodes of one XFS.

    An operation that logs something waits for log space.  Each operation adds its processor time to ``spent``
    of the thread, without ``lead_ns`` and ``then_ns`` of *caller*.
    """

    def __init__(
        self,
        *,
        sb: MountedSuperblock,
        spec: XfsSpec,
        costs: XfsWriterCosts,
        groups: list[Group],
        log: XfsLog,
        space: Space,
    ) -> None:
        self._sb = sb
        self._space = space
        self._groups = groups
        self._log = log
        self._costs = costs
        self._chunk_blocks = CHUNK_INODES * spec.inode_bytes // PAGE_BYTES
        self._clusters = max(1, CHUNK_INODES * spec.inode_bytes // spec.cluster_bytes)
        self._names_per_block = PAGE_BYTES // spec.dirent_bytes
        self._rotor = self._reads = 0
        self._in_cluster: dict[Task, int] = {}
        self._cluster_inodes = spec.cluster_bytes // spec.inode_bytes
        self._cluster_sectors = spec.cluster_bytes // SECTOR_BYTES
        # Copies of what `create` reads: a spec's own attributes are slow to read.
        self._commit_ns = log.commit_ns(spec.create_items)
        self._remove_commit_ns = log.commit_ns(spec.remove_items)
        self._inactivate_commit_ns = log.commit_ns(spec.inactivate_items)
        self._remove_bytes = 2 * spec.inode_log_bytes + spec.dirent_log_bytes
        self._create_ns = costs.create_ns
        self._agi_ns = costs.agi_ns
        self._create_bytes = spec.inode_log_bytes + spec.dirent_log_bytes

    def root(self) -> Directory:
        """See `Names.root`: the root directory lies in group 0, and takes no turn of the rotation.

        Each call makes a new object, without room for names so far, so call this once.
        """
        return Directory(self._groups[0])

    def new_directory(self) -> Directory:
        """See `Names.new_directory`; takes the next group in rotation."""
        directory = Directory(self._groups[self._rotor])
        self._rotor = (self._rotor + 1) % len(self._groups)
        return directory

    def new_inode(self, cpu: int, directory: Directory) -> XfsInode:
        """See `Names.new_inode`; an inode chunk or a directory block is added, in no time, if one is needed.

        Raises:
            NoSpace: the group has too few free blocks that lie together.
        """
        group = directory.group
        if group.inodes_left == 0:
            self._add_chunk(group)
        if directory.names_left == 0:
            self._add_block(directory)
        cluster = self._take_inode(directory)
        wb = self._sb.inodes.new(cpu, group.number, cluster.start_sector + group.cluster_left)
        return XfsInode(self._sb, wb, cluster, 0)

    def _take_inode(self, directory: Directory) -> InodeCluster:
        """Take the next inode of the group of *directory*, and a name; return the buffer of the inode."""
        group = directory.group
        group.inodes_left -= 1
        directory.names_left -= 1
        if group.cluster_left == 0:
            self._next_cluster(group)
        group.cluster_left -= 1
        return group.cluster

    def mkdir(self, thread: Thread) -> Generator[Wait, None, Directory]:
        """See `Names.mkdir`; it takes only processor time, and is not logged."""
        directory = self.new_directory()
        thread.spent.create += self._costs.mkdir_ns
        yield self._costs.mkdir_ns
        return directory

    def create(self, caller: Caller, directory: Directory) -> Generator[Wait, None, XfsInode]:
        """See `Names.create`: xfs_create, in the group of *directory*.

        An inode chunk or a directory block is added, under the AGF, if one is needed.  In direct reclaim
        (`SuperblockInodes.must_reclaim`), *caller* also evicts inodes.

        Raises:
            NoSpace: the group has too few free blocks that lie together.
        """
        create_ns = int(self._create_ns * caller.factor)
        if self._agi_ns:
            agi_ns = int(self._agi_ns * caller.factor)
            return self._create_under_agi(caller, directory, create_ns - agi_ns, agi_ns)
        return self._create(caller, directory, caller.lead_ns + create_ns, create_ns, caller.then_ns)

    def _create_under_agi(
        self, caller: Caller, directory: Directory, free_ns: int, agi_ns: int
    ) -> Generator[Wait, None, XfsInode]:
        """Create a file: work for *free_ns*, then for *agi_ns* under the lock of the group's inodes.

        xfs_dialloc locks the AGI, and the end of the transaction unlocks it.
        """
        agi = directory.group.agi
        if self._log.full:
            yield from self._log.wait_for_space(caller.thread)
        caller.spent.create += free_ns
        yield caller.lead_ns + free_ns
        if not agi.try_down():
            caller.thread.before_sleep()
            yield agi.down(caller.task)
        inode = yield from self._create(caller, directory, agi_ns, agi_ns, 0, reserved=True)
        if then_ns := agi.up(caller.task) + caller.then_ns:
            yield then_ns
        return inode

    def _create(
        self, caller: Caller, directory: Directory, first_ns: int, create_ns: int, then_ns: int,
        reserved: bool = False,
    ) -> Generator[Wait, None, XfsInode]:  # fmt: skip
        """Create a file: wait for *first_ns*, *create_ns* of it in this call; commit; wait for *then_ns*.

        *reserved*: the transaction has its log space already.
        """
        log, task, spent, thread = self._log, caller.task, caller.spent, caller.thread
        commit_ns, inodes, group = self._commit_ns, self._sb.inodes, directory.group
        if inodes.must_reclaim:
            yield from inodes.evict(thread, BATCH)
        if group.inodes_left == 0 or directory.names_left == 0:
            yield from self._grow(thread, directory)
        if log.full and not reserved:
            yield from log.wait_for_space(thread)
        cluster, block = self._take_inode(directory), directory.block
        spent.create += create_ns
        yield first_ns
        yield inodes.sb_list_add(thread)
        spent.commit += commit_ns
        yield log.cil_section(task, commit_ns, then_ns)
        log.insert_item(cluster)
        log.insert_item(block)
        log.commit(self._create_bytes)
        wb = inodes.new(task.cpu, group.number, cluster.start_sector + group.cluster_left)
        return XfsInode(self._sb, wb, cluster, log.checkpoint)

    def look_up(self, caller: Caller) -> Steps:
        """See `Names.look_up`: xfs_lookup, and xfs_iget of an inode that is not cached.

        NOTE: each thread visits inodes in the order in which they lie.  So a thread reads one cluster for all
        the inodes in it; the model chooses the place of the cluster.  Left out: directory blocks, which are
        read ahead.
        """
        inodes, thread, task = self._sb.inodes, caller.thread, caller.task
        iget_ns = int(self._costs.iget_ns * caller.factor)
        if inodes.must_reclaim:
            yield from inodes.evict(thread, BATCH)
        if self._reads_cluster(task):
            yield from self._sb.read(thread, self._next_read(), self._cluster_sectors)
        caller.spent.lookup += iget_ns
        yield caller.lead_ns + iget_ns
        yield inodes.sb_list_add(thread)
        yield inodes.lru_add(thread)
        inodes.add_cached()

    def bulkstat(self, caller: Caller) -> Steps:
        """See `Names.bulkstat`: xfs_iget with XFS_IGET_DONTCACHE, so that iput evicts the inode.

        Left out: reads of inode clusters from the device.  Only processor time and locks count.
        """
        inodes, thread, iget_ns = self._sb.inodes, caller.thread, int(self._costs.bulkstat_ns * caller.factor)
        caller.spent.lookup += iget_ns
        yield caller.lead_ns + iget_ns
        yield inodes.sb_list_add(thread)
        yield inodes.lru_del(thread)
        yield from self._evict(thread)

    def unlink(self, caller: Caller) -> Steps:
        """See `Names.unlink`: read the inode, then run xfs_remove and xfs_inactive, each in a transaction.

        Left out: the worker that inactivates inodes (5.14 and later), and chunks and directory blocks that
        become free.
        """
        inodes, log, thread, task, costs = self._sb.inodes, self._log, caller.thread, caller.task, self._costs
        remove_ns = int((costs.iget_ns + costs.remove_ns) * caller.factor)
        inactivate_ns = int(costs.inactivate_ns * caller.factor)
        if log.full:
            yield from log.wait_for_space(thread)
        if self._reads_cluster(task):
            yield from self._sb.read(thread, self._next_read(), self._cluster_sectors)
        thread.spent.unlink += remove_ns + inactivate_ns
        yield caller.lead_ns + remove_ns
        yield inodes.sb_list_add(thread)
        thread.spent.commit += self._remove_commit_ns + self._inactivate_commit_ns
        yield log.cil_section(task, self._remove_commit_ns, inactivate_ns)
        log.commit(self._remove_bytes)
        yield log.cil_section(task, self._inactivate_commit_ns, 0)
        log.commit(self._create_bytes)
        yield from self._evict(thread)

    def remove_name(self, caller: Caller, inode: XfsInode) -> Steps:
        """See `Names.remove_name`: xfs_remove."""
        return self._change_names(caller, inode, self._remove_bytes)

    def rename(self, caller: Caller, inode: XfsInode) -> Steps:
        """See `Names.rename`: xfs_rename takes as long as xfs_remove, and logs a name and an inode more."""
        return self._change_names(caller, inode, self._create_bytes + self._remove_bytes)

    def _change_names(self, caller: Caller, inode: XfsInode, size_bytes: int) -> Steps:
        """Run a transaction on a name of *inode* that logs *size_bytes*."""
        log, thread, remove_ns = self._log, caller.thread, int(self._costs.remove_ns * caller.factor)
        if log.full:
            yield from log.wait_for_space(thread)
        thread.spent.unlink += remove_ns
        yield caller.lead_ns + remove_ns
        thread.spent.commit += self._remove_commit_ns
        yield log.cil_section(caller.task, self._remove_commit_ns, 0)
        log.insert_item(inode.cluster)
        inode.checkpoint = log.checkpoint
        log.commit(size_bytes)

    def free_inode(self, thread: Thread, inode: XfsInode) -> Steps:
        """See `Names.free_inode`: xfs_inactive; the inode is then evicted, and no longer counts as cached."""
        log, inactivate_ns = self._log, self._costs.inactivate_ns
        if log.full:
            yield from log.wait_for_space(thread)
        thread.spent.unlink += inactivate_ns
        yield inactivate_ns
        thread.spent.commit += self._inactivate_commit_ns
        yield log.cil_section(thread.task, self._inactivate_commit_ns, 0)
        log.insert_item(inode.cluster)
        log.commit(self._create_bytes)
        self._sb.inodes.forget(1)
        yield from self._evict(thread)

    def _reads_cluster(self, task: Task) -> bool:
        """Return whether *task*'s next inode lies in a cluster that the task has not read."""
        inodes_left = self._in_cluster.get(task, 0)
        self._in_cluster[task] = (inodes_left or self._cluster_inodes) - 1
        return inodes_left == 0

    def _next_read(self) -> int:
        """Return the sector of the next cluster: groups take turns, and a group's clusters lie in a row."""
        self._reads += 1
        row, group = divmod(self._reads, len(self._groups))
        return self._groups[group].first_block * PAGE_SECTORS + row * self._cluster_sectors

    def _evict(self, thread: Thread) -> Steps:
        """Evict an inode: evict, and xfs_inode_mark_reclaimable."""
        inodes = self._sb.inodes
        thread.spent.reclaim += inodes.evict_ns
        yield inodes.sb_list_del(thread)
        yield inodes.unhash(thread, inodes.evict_ns)

    def _grow(self, thread: Thread, directory: Directory) -> Steps:
        """Allocate an inode chunk and a directory block, as far as the next name needs them."""
        costs, task, group, agf = self._costs, thread.task, directory.group, directory.group.agf
        if not agf.try_down():
            thread.before_sleep()
            yield agf.down(task)
        work_ns = 0
        if group.inodes_left == 0:
            work_ns += costs.chunk_ns
            self._add_chunk(group)
        if directory.names_left == 0:
            work_ns += costs.dir_block_ns
            self._add_block(directory)
        thread.spent.create += work_ns
        yield work_ns
        if waker_ns := agf.up(task):
            yield waker_ns

    def _add_chunk(self, group: Group) -> None:
        """Add a chunk of 64 inodes to *group*."""
        start_sector = (group.first_block + group.take(self._chunk_blocks)) * PAGE_SECTORS
        self._space.unclaimed -= self._chunk_blocks
        group.cluster = InodeCluster(group, start_sector, 0)
        group.cluster_left = 0
        group.inodes_left = CHUNK_INODES

    def _add_block(self, directory: Directory) -> None:
        """Add a block for names to *directory*."""
        group = directory.group
        directory.block = MetaBuffer((group.first_block + group.take(1)) * PAGE_SECTORS, PAGE_SECTORS)
        self._space.unclaimed -= 1
        directory.names_left = self._names_per_block

    def _next_cluster(self, group: Group) -> None:
        """Continue with the next cluster buffer of the current inode chunk."""
        previous = group.cluster
        sectors = self._chunk_blocks * PAGE_BYTES // SECTOR_BYTES // self._clusters
        group.cluster = InodeCluster(group, previous.start_sector + previous.sectors, sectors)
        group.cluster_left = CHUNK_INODES // self._clusters
