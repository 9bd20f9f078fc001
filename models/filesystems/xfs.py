"""XFS for small files: one allocation group per directory, consecutive blocks, delayed allocation.

Stands for xfs_dialloc and xfs_ialloc_ag_alloc (inode chunks), xfs_create, xfs_iomap_write_allocate,
xfs_vm_writepage and xfs_setfilesize (fs/xfs of 3.11).  New directories take the groups in rotation; a
group's blocks are given out in order, which is what near allocation does on a fresh disk.  Left out: the
free-space trees as such, fragmentation, speculative preallocation (none below 64 KiB),
alignment of inode chunks, quota, reads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from typing import ClassVar, Final, Literal

from pydantic import model_validator

from models.block.bio import Bio
from models.extents.xfs_layout import XfsRules
from models.inode import Inode
from models.page_cache import PageCache
from models.seams import Site, Submitter
from models.xfs_log import LogCosts, LogSpec, MetaBuffer, XfsLog
from sim.engine import PARK, Steps, Wait
from sim.param import Bytes, Count, Ns, Spec
from sim.sync import Mutex
from sim.units import PAGE_BYTES, PAGE_SECTORS, SECTOR_BYTES

CHUNK_INODES: Final = 64  # XFS_INODES_PER_CHUNK


class XfsSpec(Spec):
    """What mkfs.xfs and mount decide, and how many bytes one operation logs.

    ``cluster_bytes``: the buffer in which inodes are written; ``dirent_bytes``: a directory's growth
    per name on disk; ``inode_log_bytes``: the log item of an inode, headers included;
    ``extent_log_bytes``: what the block mapping adds; ``dirent_log_bytes``: what a new name logs in
    the directory's data and leaf blocks.
    """

    FAMILY: ClassVar = "xfs"
    kind: Literal["xfs"] = "xfs"
    size: Bytes
    agcount: Count
    inode_bytes: Bytes
    cluster_bytes: Bytes
    dirent_bytes: Bytes
    inode_log_bytes: Bytes
    extent_log_bytes: Bytes
    dirent_log_bytes: Bytes
    log: LogSpec

    @model_validator(mode="after")
    def _check(self) -> XfsSpec:
        if self.cluster_bytes % self.inode_bytes or CHUNK_INODES * self.inode_bytes % self.cluster_bytes:
            raise ValueError("cluster_bytes has to hold whole inodes and to divide a chunk of 64 inodes")
        if self.log.size >= self.size // self.agcount:
            raise ValueError("the log has to fit into one allocation group; give a smaller log or fewer groups")
        return self

    @property
    def by_page(self) -> bool:
        """Whether it keeps the single pages of a file; it does not: its files are small and written whole, once."""
        return False

    @property
    def room(self) -> int:
        """What files can take (bytes)."""
        return self.size - self.log.size

    def bytes_of(self, files: int, file_size: int) -> int:
        """What *files* of *file_size* take on disk, with their inodes and names."""
        blocks = -(-file_size // PAGE_BYTES)
        return files * (blocks * PAGE_BYTES + self.inode_bytes + self.dirent_bytes)


class XfsWriterCosts(Spec):
    """What writers pay: ``create_ns`` per creat(2); ``sb_list_ns`` under inode_sb_list_lock;
    ``chunk_ns`` and ``dir_block_ns`` per allocation of one under the AGF; ``mkdir_ns``.
    """

    create_ns: Ns
    sb_list_ns: Ns
    chunk_ns: Ns
    dir_block_ns: Ns
    mkdir_ns: Ns


class XfsFlusherCosts(Spec):
    """What writeback pays: ``map_ns`` per extent under the AGF; ``page_ns`` per page walked and added to
    a bio; ``ioend_ns`` per completed file, by the completion worker; and the log's.
    """

    map_ns: Ns
    page_ns: Ns
    ioend_ns: Ns
    log: LogCosts


class AllocationGroup:
    """A group: the sector of its next free block, and the lock on its free space (AGF)."""

    __slots__ = ("agf", "end_sector", "next_sector", "number")

    def __init__(self, number: int, start_sector: int, end_sector: int, agf: Mutex) -> None:
        self.number = number
        self.next_sector = start_sector
        self.end_sector = end_sector
        self.agf = agf

    def take(self, sectors: int) -> int:
        """Give out the next *sectors*; where they start.

        Raises:
            RuntimeError: the group is full.
        """
        start = self.next_sector
        if start + sectors > self.end_sector:
            raise RuntimeError(f"allocation group {self.number} is full")
        self.next_sector = start + sectors
        return start


class Directory:
    """A directory and the inodes that its group has ready for it."""

    __slots__ = ("block", "cluster", "cluster_left", "group", "inodes_left", "names_left")

    def __init__(self, group: AllocationGroup) -> None:
        self.group = group
        self.inodes_left = 0
        self.cluster_left = 0
        self.names_left = 0
        self.cluster = _NOWHERE
        self.block = _NOWHERE


class XfsInode(Inode):
    """An inode: its directory's group, the buffer that holds it, the checkpoint that last logged it."""

    __slots__ = ("checkpoint", "cluster", "group")

    def __init__(self, group: AllocationGroup, cluster: MetaBuffer, checkpoint: int) -> None:
        self.dirtied_when = 0
        self.dirty_pages = 0
        self.syncing = False
        self.group = group
        self.cluster = cluster
        self.checkpoint = checkpoint


_NOWHERE = MetaBuffer(0, 0)


class Xfs:
    """One mounted XFS."""

    def __init__(
        self,
        *,
        site: Site,
        spec: XfsSpec,
        rules: XfsRules,
        largest_file: int,
        writer_costs: XfsWriterCosts,
        flusher_costs: XfsFlusherCosts,
        cache: PageCache,
    ) -> None:
        self._env = site.env
        self._spec = spec
        self._writer_costs = writer_costs
        self._cache = cache
        self._sb_list_lock = site.spin_lock("inode_sb_list_lock")
        self._ioend_worker = site.thread("kworker/xfs-data")
        self._variation = site.variation("xfs flusher")
        group_sectors = spec.size // SECTOR_BYTES // spec.agcount
        self._groups = [
            AllocationGroup(i, i * group_sectors, (i + 1) * group_sectors, site.mutex(f"AGF {i}"))
            for i in range(spec.agcount)
        ]
        middle = self._groups[spec.agcount // 2]  # where mkfs puts the log
        self._log = XfsLog(
            site=site,
            spec=spec.log,
            costs=flusher_costs.log,
            start_sector=middle.take(spec.log.size // SECTOR_BYTES),
            cache=cache,
        )
        self._rotor = 0
        # Copies of what the two hot paths read: a spec's own attributes are slow to read.
        self._commit_ns = flusher_costs.log.commit_ns
        self._create_ns = writer_costs.create_ns
        self._sb_list_ns = writer_costs.sb_list_ns
        self._map_ns = flusher_costs.map_ns
        self._page_ns = flusher_costs.page_ns
        self._ioend_ns = flusher_costs.ioend_ns
        self._create_bytes = spec.inode_log_bytes + spec.dirent_log_bytes
        self._inode_bytes = spec.inode_log_bytes
        self._extent_bytes = spec.extent_log_bytes
        limits = self._ioend_worker.limits
        self._bio_pages = min(limits.max_sectors_bytes // PAGE_BYTES, limits.max_segments)
        self._clusters_per_chunk = max(1, CHUNK_INODES * spec.inode_bytes // spec.cluster_bytes)
        self._ioends: deque[XfsInode] = deque()
        self._ioend_asleep = True
        site.env.start(self._ioend_worker.task, self._end_ios())

    @property
    def log_bytes(self) -> int:
        """See `Filesystem.log_bytes`."""
        return self._log.written_bytes

    def extents_per_file(self) -> tuple[int, ...]:
        """See `Filesystem.extents_per_file`; small files lie in one each, and are not kept."""
        return ()

    def mkdir(self, submitter: Submitter) -> Generator[Wait, None, Directory]:
        """A new directory, in the next group in rotation."""
        group = self._groups[self._rotor]
        self._rotor = (self._rotor + 1) % len(self._groups)
        yield self._writer_costs.mkdir_ns
        submitter.task.system_ns += self._writer_costs.mkdir_ns
        return Directory(group)

    def create(
        self, submitter: Submitter, directory: Directory, lead_ns: int, factor: float, then_ns: int
    ) -> Generator[Wait, None, XfsInode]:
        """See `Filesystem.create`."""
        log, task, commit_ns, sb_list_ns = self._log, submitter.task, self._commit_ns, self._sb_list_ns
        if directory.inodes_left == 0 or directory.names_left == 0:
            yield from self._grow(submitter, directory)
        if log.full:
            yield from log.wait_for_space(submitter)
        directory.inodes_left -= 1
        directory.names_left -= 1
        if directory.cluster_left == 0:
            self._next_cluster(directory)
        directory.cluster_left -= 1
        cluster, block = directory.cluster, directory.block
        create_ns = int(self._create_ns * factor)
        yield lead_ns + create_ns
        yield self._sb_list_lock.section(task, sb_list_ns)
        yield log.lock.section(task, commit_ns, then_ns)
        task.system_ns += create_ns + sb_list_ns + commit_ns + then_ns
        log.commit(self._create_bytes, cluster, block)
        self._cache.cached_inodes += 1
        return XfsInode(directory.group, cluster, log.checkpoint)

    def write_pages(self, submitter: Submitter, inode: Inode, budget_pages: int) -> Generator[Wait, None, int]:
        """xfs_vm_writepages: give the inode's delayed extent its blocks and submit it.

        The extent is converted as a whole; pages beyond *budget_pages* stay dirty.
        """
        assert isinstance(inode, XfsInode)
        log, task, group = self._log, submitter.task, inode.group
        if log.full:
            yield from log.wait_for_space(submitter)
        written = pages = min(inode.dirty_pages, budget_pages)
        if not group.agf.try_acquire(task):
            group = yield from self._lock_other_group(submitter, group)
        yield int(self._map_ns * self._variation())
        start = group.take(pages * PAGE_SECTORS)
        yield log.lock.section(task, self._commit_ns, pages * self._page_ns)
        group.agf.release()
        self._log_inode(inode)
        inode.dirty_pages -= pages
        self._cache.start_writeback(pages)
        owner, bio_pages = submitter.owner, self._bio_pages
        while pages > 0:
            size = pages if pages < bio_pages else bio_pages
            bio = Bio(
                start, size * PAGE_SECTORS, segments=size, owner=owner, end_io=self._end_io, context=(inode, size)
            )
            if not submitter.merge(bio):
                yield from submitter.make_request(bio)
            start += size * PAGE_SECTORS
            pages -= size
        return written

    def _lock_other_group(
        self, submitter: Submitter, target: AllocationGroup
    ) -> Generator[Wait, None, AllocationGroup]:
        """The next group whose AGF is free (try-lock): contention spills data.  If none is, wait."""
        groups = self._groups
        for i in range(target.number + 1, target.number + len(groups)):
            group = groups[i % len(groups)]
            if group.agf.try_acquire(submitter.task):
                return group
        submitter.before_sleep()
        yield target.agf.wait(submitter.task)
        return target

    def _grow(self, submitter: Submitter, directory: Directory) -> Steps:
        """Allocate what the next name needs: an inode chunk, a directory block."""
        costs, spec, task, group = self._writer_costs, self._spec, submitter.task, directory.group
        if not group.agf.try_acquire(task):
            submitter.before_sleep()
            yield group.agf.wait(task)
        work_ns = 0
        if directory.inodes_left == 0:
            work_ns += costs.chunk_ns
            sectors = CHUNK_INODES * spec.inode_bytes // SECTOR_BYTES
            directory.cluster = MetaBuffer(group.take(sectors), 0)
            directory.cluster_left = 0
            directory.inodes_left = CHUNK_INODES
        if directory.names_left == 0:
            work_ns += costs.dir_block_ns
            directory.block = MetaBuffer(group.take(PAGE_SECTORS), PAGE_SECTORS)
            directory.names_left = PAGE_BYTES // spec.dirent_bytes
        yield work_ns
        task.system_ns += work_ns
        group.agf.release()

    def _next_cluster(self, directory: Directory) -> None:
        """Go on to the next cluster buffer of the current inode chunk."""
        previous = directory.cluster
        sectors = CHUNK_INODES * self._spec.inode_bytes // SECTOR_BYTES // self._clusters_per_chunk
        directory.cluster = MetaBuffer(previous.start_sector + previous.sectors, sectors)
        directory.cluster_left = CHUNK_INODES // self._clusters_per_chunk

    def _log_inode(self, inode: XfsInode) -> None:
        log = self._log
        size_bytes = self._extent_bytes
        if inode.checkpoint != log.checkpoint:
            inode.checkpoint = log.checkpoint
            size_bytes += self._inode_bytes
        log.commit(size_bytes, inode.cluster)

    def _end_io(self, context: tuple[XfsInode, int]) -> None:
        """The bio is on the device: its pages are clean, and the file's size is to be logged."""
        inode, pages = context
        self._cache.end_writeback(pages)
        self._ioends.append(inode)
        if self._ioend_asleep:
            self._ioend_asleep = False
            self._env.wake(self._ioend_worker.task)

    def _end_ios(self) -> Steps:
        """The xfs-data workqueue: one xfs_setfilesize transaction per ioend."""
        ioends, log, task = self._ioends, self._log, self._ioend_worker.task
        commit_ns, ioend_ns = self._commit_ns, self._ioend_ns
        while True:
            self._ioend_asleep = True
            yield PARK
            while ioends:
                inode = ioends.popleft()
                yield log.lock.section(task, commit_ns, ioend_ns)
                self._log_inode(inode)


SPEC, COMPONENT = XfsSpec, Xfs
