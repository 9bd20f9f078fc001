"""XFS for files of many pages: where their blocks lie.

Stands for xfs_bmapi_convert_delalloc and xfs_iomap_write_allocate, xfs_alloc_vextent_start_ag, xfs_release, and for the
timed part of iomap_writepages and xfs_vm_writepages; the decisions are in `extents/xfs_layout.py`.  `xfs.py` models
small files and their metadata; left out here are the log and all metadata traffic, the conversion of unwritten
extents after writing, the stripe's width, extent size hints.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from models.extents.file_pages import FilePages, delayed_extent, is_delayed
from models.extents.free_space import FreeSpace
from models.extents.xfs_layout import (
    BIOS,
    CALLS,
    CONVERT,
    DICE,
    DONE,
    ELAPSED,
    LEFT,
    MAX_EXTENT_PAGES,
    NOWHERE,
    PAGE,
    START,
    STATE,
    UNTIL,
    WROTE,
    Terms,
    XfsRules,
    convert,
    prealloc,
    target_of,
    walk,
    write_all,
)
from models.inode import Inode
from models.page_cache import PageCache
from models.seams import UNLIMITED_PAGES, NoSpace, Site, Submitter
from sim.engine import Steps, Wait
from sim.param import Bytes, Count, Spec
from sim.sync import Mutex
from sim.units import GIB, PAGE_BYTES

MAX_GROUP_BYTES: Final = GIB << 10  # XFS_AG_MAX_BYTES
_DICE = 4_096
_BIOS = 1_024
_CONVERSIONS = 4_096
"""The most that one compiled call converts: as many allocations as the tables are given room for."""


class XfsExtentsSpec(Spec):
    """``group_head``: what mkfs keeps at the start of each of the ``agcount`` groups; ``stripe_unit``: mkfs's su, and
    ``allocsize``: the mount option, where they are given.
    """

    kind: Literal["xfs_extents"] = "xfs_extents"
    size: Bytes
    agcount: Count
    group_head: Bytes
    stripe_unit: Bytes | None = None
    allocsize: Bytes | None = None

    @model_validator(mode="after")
    def _check(self) -> XfsExtentsSpec:
        size, group = self.allocsize, self.size // self.agcount
        if size is not None and (not 16 * PAGE_BYTES <= size <= GIB or size & (size - 1)):
            raise ValueError(f"allocsize {size} B has to be a power of two from 64 KiB to 1 GiB")
        unit = self.stripe_unit
        if unit is not None and (not unit or unit % PAGE_BYTES):
            raise ValueError(f"stripe_unit {unit} B has to be whole pages of {PAGE_BYTES} B, one at least")
        if not self.group_head < group <= MAX_GROUP_BYTES:
            raise ValueError(
                f"the groups are of {group} B; they have to be larger than group_head and at most 1 TiB:"
                " change size or agcount"
            )
        return self

    @property
    def by_page(self) -> bool:
        """Whether it keeps the single pages of a file."""
        return True

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
    """A file: its pages, its directory's group, where the next writeback call starts; ILOCK is held by conversions."""

    __slots__ = ("file", "group", "ilock", "writeback_index")

    def __init__(self, group: Group, pages: int, ilock: Mutex) -> None:
        super().__init__()
        self.group = group
        self.ilock = ilock
        self.file = FilePages(pages, base=group.first_block)
        self.writeback_index = 0


class XfsExtents:
    """One mounted XFS."""

    def __init__(
        self,
        *,
        site: Site,
        spec: XfsExtentsSpec,
        rules: XfsRules,
        largest_file: int,
        writer_costs: Any,
        flusher_costs: Any,
        cache: PageCache,
    ) -> None:
        self._site = site
        self._env = site.env
        self._cache = cache
        self._create_ns = writer_costs.create_ns
        self._mkdir_ns = writer_costs.mkdir_ns
        self._map_ns = flusher_costs.map_ns
        self._page_ns = flusher_costs.page_ns
        self._wraps = rules.wraps
        self._calls_x4 = rules.quota == "calls_x4"
        allocsize = None if spec.allocsize is None else spec.allocsize // PAGE_BYTES
        self._stripe = 1 if spec.stripe_unit is None else spec.stripe_unit // PAGE_BYTES
        self._prealloc = prealloc(rules, allocsize, self._stripe)
        file_pages = -(-largest_file // PAGE_BYTES)
        self._pages_with_prealloc = file_pages + max(min(2 * file_pages, MAX_EXTENT_PAGES + 1), self._prealloc.unit)
        blocks, head = spec.size // PAGE_BYTES // spec.agcount, spec.group_head // PAGE_BYTES
        self.group_blocks = blocks
        self.groups = [
            Group(i, i * blocks, FreeSpace(head, blocks - head), site.mutex(f"AGF {i}")) for i in range(spec.agcount)
        ]
        self._rotor = 0
        self._variations = site.variations("xfs flusher")
        self._dice: NDArray[np.float64] = np.empty(0)
        self._die = 0
        self.inodes: list[ExtentInode] = []

    @property
    def log_bytes(self) -> int:
        """See `Filesystem.log_bytes`; the log is left out."""
        return 0

    def extents_per_file(self) -> tuple[int, ...]:
        """See `Filesystem.extents_per_file`."""
        return tuple(inode.file.extent_count() for inode in self.inodes)

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
        ilock = self._site.mutex(f"ILOCK {len(self.inodes)}")
        self.inodes.append(ExtentInode(directory, self._pages_with_prealloc, ilock))
        return self.inodes[-1]

    def write(self, inode: ExtentInode, indices: NDArray[np.int64], call_pages: int) -> tuple[int, int]:
        """The pages at *indices* are written to, *call_pages* with each write(2).

        Returns how many of these were done, and how many pages were clean.

        Before the next one, the caller has to have `zero_end` done.
        """
        done, were_clean = write_all(inode.file.pages, indices, call_pages, self._prealloc)
        return int(done), int(were_clean)

    def zero_end(self, submitter: Submitter, inode: ExtentInode) -> Steps:
        """xfs_file_write_zero_eof: the delayed extent behind the end of the file becomes an unwritten one."""
        yield from self._convert(submitter, inode, inode.file.size)

    def close(self, inode: ExtentInode) -> None:
        """The last close frees the blocks behind the end of the file (xfs_release)."""
        for block, pages in inode.file.trim():
            group = self.groups[block // self.group_blocks]
            group.free.give_back(block - group.first_block, pages)

    def write_pages(self, submitter: Submitter, inode: Inode, budget_pages: int) -> Generator[Wait, None, int]:
        """See `Filesystem.write_pages`: from the writeback index to the file's end, or until the budget is used up.

        With an unlimited budget, a sync's, the whole file is written (range_cyclic 0).
        """
        assert isinstance(inode, ExtentInode)
        calls_x4 = self._calls_x4
        if budget_pages == UNLIMITED_PAGES:
            inode.writeback_index, calls_x4 = 0, False
        at = np.zeros(STATE, np.int64)
        at[PAGE], at[LEFT], at[CALLS] = inode.writeback_index, budget_pages, UNLIMITED_PAGES
        at[START], at[UNTIL] = inode.writeback_index, -1
        if calls_x4:
            at[CALLS] = budget_pages
        bios = np.empty((_BIOS, 2), np.int64)
        limits = submitter.limits
        bio_pages = min(limits.max_sectors_bytes // PAGE_BYTES, limits.max_segments)
        file, group, ended = inode.file, inode.group, CONVERT
        while ended != DONE:
            at[DICE] = self._throw()
            terms = Terms(
                self._map_ns, self._page_ns, bio_pages, calls_x4, self._wraps, self._stripe,
                file.reach(group.first_block, self.group_blocks), self.group_blocks,
                group is inode.group, group.agf.free and inode.ilock.free,
            )  # fmt: skip
            space, horizon_ns = group.free.with_room(_CONVERSIONS), self._env.next_event_ns() - self._env.now
            ended = walk(file.pages, space, terms, at, horizon_ns, self._dice, bios)
            self._die = int(at[DICE])
            yield from self._submit(submitter, inode, bios[: at[BIOS]], int(at[ELAPSED]))
            if ended == CONVERT:
                group = yield from self._convert(submitter, inode, int(at[PAGE]))
        inode.writeback_index = int(at[PAGE])
        return int(budget_pages - at[CALLS] if calls_x4 else at[WROTE])

    def _submit(self, submitter: Submitter, inode: ExtentInode, bios: NDArray[np.int64], elapsed_ns: int) -> Steps:
        """The pages of *bios* go under writeback; *elapsed_ns* later they are submitted."""
        pages = int(bios[:, 1].sum())
        inode.dirty_pages -= pages
        self._cache.start_writeback(pages)
        if elapsed_ns:
            yield elapsed_ns
        if pages:
            on_disk = bios + np.array([inode.file.base, 0])
            yield from submitter.submit_runs(on_disk, self._cache.end_writeback)

    def _convert(self, submitter: Submitter, inode: ExtentInode, page: int) -> Generator[Wait, None, Group]:
        """Give the whole delayed extent around *page* its blocks, or as many as lie together; from which group.

        If somebody else has converted it meanwhile, nothing is left to be done.
        """
        if not inode.ilock.try_acquire(submitter.task):
            submitter.before_sleep()
            yield inode.ilock.wait(submitter.task)
        file, group = inode.file, inode.group
        if is_delayed(int(file.pages.states[page])):
            target = target_of(file.pages, page, self.group_blocks)
            wanted = inode.group if target == NOWHERE else self.groups[(target + file.base) // self.group_blocks]
            length = min(delayed_extent(file.pages, page)[1], MAX_EXTENT_PAGES)
            group = yield from self._lock_group(submitter, wanted, length)
            at = self._throw()
            self._die += 1
            yield int(self._map_ns * self._dice[at])
            first_block = file.reach(group.first_block, self.group_blocks)
            near = target - first_block if group is wanted and target != NOWHERE else 0
            convert(file.pages, group.free.with_room(1), page, near, first_block, self._stripe)
            group.agf.release()
        inode.ilock.release()
        return group

    def _lock_group(self, submitter: Submitter, target: Group, length: int) -> Generator[Wait, None, Group]:
        """The first group from *target* on with *length* free blocks together whose AGF is free (try-lock).

        If all that have them are locked, the first of them is waited for; if none has as many, the longest
        free extent of all counts.
        """
        if target.free.longest >= length and target.agf.try_acquire(submitter.task):
            return target
        order = self.groups[target.number :] + self.groups[: target.number]
        while True:
            length = min(length, max(group.free.longest for group in order))
            if not length:
                raise NoSpace("the filesystem is full; give a larger one, or fewer or smaller files")
            fitting = [group for group in order if group.free.longest >= length]
            for group in fitting:
                if group.agf.try_acquire(submitter.task):
                    return group
            submitter.before_sleep()
            yield fitting[0].agf.wait(submitter.task)
            if fitting[0].free.longest >= length:
                return fitting[0]
            fitting[0].agf.release()

    def _throw(self) -> int:
        """The place of the next of the dice, which vary the time of conversions."""
        if self._die == len(self._dice):
            self._dice = self._variations(_DICE)
            self._die = 0
        return self._die


SPEC, COMPONENT = XfsExtentsSpec, XfsExtents
