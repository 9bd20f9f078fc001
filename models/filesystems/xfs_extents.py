"""XFS for files of many pages: where their blocks lie.

Stands for xfs_bmapi_convert_delalloc, xfs_bmap_adjacent, xfs_bmap_btalloc, xfs_alloc_vextent_start_ag and
xfs_iomap_prealloc_size (fs/xfs of 6.x), and for iomap_writepages with range_cyclic, which ends a call at the end of the
file.  `xfs.py` models small files and their metadata; left out here are the log and all metadata traffic,
the conversion of unwritten extents after writing, stripe alignment, extent size hints.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final, Literal

from models.block.bio import Bio
from models.file_pages import FilePages
from models.free_space import FreeSpace
from models.inode import Inode
from models.page_cache import PageCache
from models.seams import UNLIMITED_PAGES, Site, Submitter
from sim.engine import Steps, Wait
from sim.param import Bytes, Count, Spec
from sim.sync import Mutex
from sim.units import PAGE_BYTES, PAGE_SECTORS

GAP_UNITS: Final = 4  # XFS_ALLOC_GAP_UNITS
PREALLOC_MIN_PAGES: Final = 16  # 64 KiB: m_allocsize_blocks


class XfsExtentsSpec(Spec):
    """``group_head``: what mkfs keeps at the start of each of the ``agcount`` groups; ``max_file``: the
    largest file that is written.
    """

    kind: Literal["xfs_extents"] = "xfs_extents"
    size: Bytes
    agcount: Count
    group_head: Bytes
    max_file: Bytes

    @property
    def room(self) -> int:
        """What files can take (bytes)."""
        return self.size - self.agcount * self.group_head

    def bytes_of(self, files: int, file_size: int) -> int:
        """What *files* of *file_size* take on disk."""
        return files * -(-file_size // PAGE_BYTES) * PAGE_BYTES


class Group:
    """An allocation group: its first block on the disk, its free space, and the lock on that (AGF)."""

    __slots__ = ("agf", "first_block", "free", "number")

    def __init__(self, number: int, first_block: int, free: FreeSpace, agf: Mutex) -> None:
        self.number = number
        self.first_block = first_block
        self.free = free
        self.agf = agf


class ExtentInode(Inode):
    """A file: its pages, its directory's group, and where the next writeback call starts."""

    __slots__ = ("group", "pages", "writeback_index")

    def __init__(self, group: Group, pages: int) -> None:
        super().__init__()
        self.group = group
        self.pages = FilePages(pages)
        self.writeback_index = 0


class XfsExtents:
    """One mounted XFS."""

    def __init__(
        self, *, site: Site, spec: XfsExtentsSpec, writer_costs: Any, flusher_costs: Any, cache: PageCache
    ) -> None:
        self._cache = cache
        self._create_ns = writer_costs.create_ns
        self._mkdir_ns = writer_costs.mkdir_ns
        self._map_ns = flusher_costs.map_ns
        self._page_ns = flusher_costs.page_ns
        self._variation = site.variation("xfs flusher")
        self._file_pages = -(-spec.max_file // PAGE_BYTES)
        blocks, head = spec.size // PAGE_BYTES // spec.agcount, spec.group_head // PAGE_BYTES
        self._group_blocks = blocks
        self.groups = [
            Group(i, i * blocks, FreeSpace(head, blocks - head), site.mutex(f"AGF {i}")) for i in range(spec.agcount)
        ]
        self._rotor = 0
        self.inodes: list[ExtentInode] = []

    @property
    def log_bytes(self) -> int:
        """See `Filesystem.log_bytes`; the log is left out."""
        return 0

    def mkdir(self, submitter: Submitter) -> Generator[Wait, None, Group]:
        """A new directory, in the next group in rotation."""
        group = self.groups[self._rotor]
        self._rotor = (self._rotor + 1) % len(self.groups)
        yield self._mkdir_ns
        submitter.task.system_ns += self._mkdir_ns
        return group

    def create(
        self, submitter: Submitter, directory: Group, lead_ns: int, factor: float, then_ns: int
    ) -> Generator[Wait, None, ExtentInode]:
        """See `Filesystem.create`."""
        create_ns = int(self._create_ns * factor)
        yield lead_ns + create_ns + then_ns
        submitter.task.system_ns += create_ns + then_ns
        self._cache.cached_inodes += 1
        self.inodes.append(ExtentInode(directory, self._file_pages))
        return self.inodes[-1]

    def close(self, inode: ExtentInode) -> None:
        """The last close frees the blocks behind the end of the file (xfs_release)."""
        for block, pages in inode.pages.trim():
            self._group_of(block).free.give_back(block - self._group_of(block).first_block, pages)

    def write_pages(self, submitter: Submitter, inode: Inode, budget_pages: int) -> Generator[Wait, None, int]:
        """iomap_writepages: from the writeback index to the end of the file, or until the budget is used up.

        With an unlimited budget, a sync's, the whole file is written (range_cyclic 0).
        """
        assert isinstance(inode, ExtentInode)
        if budget_pages == UNLIMITED_PAGES:
            inode.writeback_index = 0
        pages, left, limits = inode.pages, budget_pages, submitter.limits
        bio_pages = min(limits.max_sectors_bytes // PAGE_BYTES, limits.max_segments)
        page = pages.next_dirty(inode.writeback_index)
        while page is not None and left > 0:
            while pages.is_delayed(page):
                yield from self._convert(submitter, inode, page)
            block, run = pages.block_run(page, min(left, bio_pages))
            pages.clean(page, run)
            inode.dirty_pages -= run
            self._cache.start_writeback(run)
            bio = Bio(
                block * PAGE_SECTORS, run * PAGE_SECTORS, segments=run, owner=submitter.owner,
                end_io=self._cache.end_writeback, context=run,
            )  # fmt: skip
            yield run * self._page_ns
            if not submitter.merge(bio):
                yield from submitter.make_request(bio)
            left -= run
            inode.writeback_index = page + run
            page = pages.next_dirty(page + run)
        if page is None:
            inode.writeback_index = 0
        return budget_pages - left

    def _convert(self, submitter: Submitter, inode: ExtentInode, page: int) -> Steps:
        """Give the whole delayed extent around *page* its blocks, or as many as lie together."""
        target = self._target(inode, page)
        wanted = inode.group if target is None else self._group_of(target)
        group = yield from self._lock_group(submitter, wanted)
        start, length = inode.pages.delayed_extent(page)
        yield int(self._map_ns * self._variation())
        extra = self._prealloc_pages(inode, start, length)
        first = group.first_block
        near = target - first if target is not None and group is wanted else 0
        taken = group.free.take_near(near, length + extra)
        group.agf.release()
        if taken is None:
            raise RuntimeError(f"allocation group {group.number} is full")
        block, got = taken
        inode.pages.map(start, first + block, got)

    def _target(self, inode: ExtentInode, page: int) -> int | None:
        """xfs_bmap_adjacent: behind the extent in front, with the gap kept on disk if it is not too wide."""
        start, length = inode.pages.delayed_extent(page)
        before = inode.pages.before(start)
        if before is None or before[1] < 0:
            return None
        last, block = before
        gap = start - last - 1
        target = block + 1
        if gap <= GAP_UNITS * length and self._group_of(block) is self._group_of(target + gap):
            return target + gap
        return target if self._group_of(block) is self._group_of(target) else block

    def _prealloc_pages(self, inode: ExtentInode, start: int, length: int) -> int:
        """xfs_iomap_prealloc_size, at conversion: how many pages behind the end of the file come along."""
        pages = inode.pages
        room = self._file_pages - start - length
        if start + length < pages.size or pages.size < PREALLOC_MIN_PAGES or not room:
            return 0
        before = pages.before(start)
        after_hole = start > 0 and (before is None or before[0] != start - 1)
        preceding = 0 if after_hole else start + length
        doubled = 1 << max(0, (2 * preceding).bit_length() - 1)
        return min(max(PREALLOC_MIN_PAGES, doubled), room)

    def _lock_group(self, submitter: Submitter, target: Group) -> Generator[Wait, None, Group]:
        """The first group from *target* on whose AGF is free (try-lock); if none is, wait."""
        for i in range(target.number, target.number + len(self.groups)):
            group = self.groups[i % len(self.groups)]
            if group.free.longest and group.agf.try_acquire(submitter.task):
                return group
        submitter.before_sleep()
        yield target.agf.wait(submitter.task)
        return target

    def _group_of(self, block: int) -> Group:
        return self.groups[min(block // self._group_blocks, len(self.groups) - 1)]


SPEC, COMPONENT = XfsExtentsSpec, XfsExtents
