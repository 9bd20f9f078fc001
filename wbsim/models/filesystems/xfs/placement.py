"""The place of the pages of an XFS, and the locks that an allocation takes.

Stands for xfs_map_blocks, xfs_bmapi_convert_delalloc, xfs_iomap_write_allocate and xfs_release; the decisions
are in `layout.py`.  Left out: the stripe's width, extent size hints, quota, reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wbsim.models.filesystems.blocks import Space
from wbsim.models.filesystems.costs import MapCosts
from wbsim.models.filesystems.delalloc_parts import Placement, Runs
from wbsim.models.filesystems.files import PagedFile
from wbsim.models.filesystems.writepages import ExtentMapper
from wbsim.models.filesystems.xfs.groups import Group, lock_group
from wbsim.models.filesystems.xfs.layout import (
    BITS,
    FIRST,
    GROUP,
    LENGTH,
    MAX_EXTENT_PAGES,
    NEAR,
    NOWHERE,
    SEARCHED,
    STRIPE,
    give_blocks,
    plan_extent,
    prealloc,
    write_all,
)
from wbsim.models.filesystems.xfs.metadata import XfsMetadata
from wbsim.models.filesystems.xfs.names import XfsInode
from wbsim.models.filesystems.xfs.spec import XfsRules, XfsSpec
from wbsim.models.interfaces import NoSpace, Thread, WritebackControl
from wbsim.models.page_cache.pages import HAS_BLOCK, UNWRITTEN, mark_written, place_unwritten
from wbsim.sim.engine import Steps
from wbsim.sim.units import PAGE_BYTES


class XfsPlacement(Placement[XfsInode, PagedFile], ExtentMapper[XfsInode, PagedFile]):
    """The placement of one mounted XFS, in its *groups*.

    ``one_run_pages`` is 16 or, where reservations have a fixed size (``rule`` 0 of `Prealloc`), 0.  Only
    `write_run` and `map_extent` take time, and they account for it.
    """

    group_label: str

    def __init__(
        self,
        *,
        spec: XfsSpec,
        rules: XfsRules,
        groups: list[Group],
        costs: MapCosts,
        metadata: XfsMetadata,
        space: Space,
        reserve_ns: int = 0,
        search_ns: int = 0,
    ) -> None:
        self.space = space
        self._reserve_ns = reserve_ns
        self._search_ns = search_ns
        self.files: list[PagedFile] = []
        self.groups = groups
        self.group_label = "AG"
        self.group_blocks = spec.size // PAGE_BYTES // spec.agcount
        self.blocks = spec.agcount * self.group_blocks
        self._costs = costs
        self._metadata = metadata
        self._log = metadata.log
        allocsize = None if spec.allocsize is None else spec.allocsize // PAGE_BYTES
        self._stripe = 1 if spec.stripe_unit is None else spec.stripe_unit // PAGE_BYTES
        self._prealloc = prealloc(rules, allocsize, self._stripe, self.blocks // 100)
        self.one_run_pages = self._prealloc.unit if self._prealloc.rule else 0
        of_plan: Any = np.zeros(7, np.int64)
        self._plan_array: NDArray[np.int64] = of_plan
        self._plan = memoryview(of_plan)  # an element of an array is slow to read
        self._plan[STRIPE], self._plan[BITS] = self._stripe, UNWRITTEN if rules.unwritten else 0

    def group_of(self, inode: XfsInode) -> int:
        """See `Filesystem.group_of`: the number of the allocation group."""
        return inode.group.number

    def new_file(self, inode: XfsInode, is_open: bool) -> PagedFile:
        """See `Placement.new_file`; its block numbers count from the start of the group of *inode*."""
        return PagedFile(inode.group.first_block, is_open)

    def room_for(self, size: int, call_pages: int) -> int:
        """See `Placement.room_for`."""
        end = size + call_pages + self._stripe
        return end + max(min(2 * end, MAX_EXTENT_PAGES + 1), self._prealloc.unit)

    def write(self, file: PagedFile, indices: NDArray[np.int64], call_pages: int) -> tuple[int, int]:
        """See `Placement.write`: return the number of pages written, and how many of them were clean.

        The function stops where `write_all` does.  The blocks that the pages claim, reservations included,
        are subtracted from ``space.unclaimed``.
        """
        space = self.space
        done, were_clean, claims = write_all(
            file.pages, indices, call_pages, self._prealloc, file.end, space.unclaimed
        )
        space.unclaimed -= int(claims)
        return int(done), int(were_clean)

    def released(self, file: PagedFile) -> None:
        """Free the blocks, and end the claims, behind the end of *file* at its last close (xfs_release).

        A file with ``keeps_end`` keeps them, because fallocate(2) has asked for blocks.
        """
        if not file.keeps_end:
            self.free_end(file)

    def free_end(self, file: PagedFile) -> int:
        """See `Placement.free_end`; the claims of reserved pages end, too, and nothing is logged."""
        self.space.unclaimed += file.claims_from(file.size)
        extents = file.trim()
        for block, count in extents:
            self.give_back(block, count)
        return len(extents)

    def give_back(self, block: int, count: int) -> None:
        """See `Placement.give_back`; *block* counts from the start of the filesystem.

        All *count* blocks lie in one group.
        """
        group = self.groups[block // self.group_blocks]
        group.free.give_back(block - group.first_block, count)
        self.space.unclaimed += count

    def trim_all(self) -> None:
        """See `Placement.trim_all`: xfs_blockgc_free_space, for open files, too."""
        for file in self.files:
            if not file.keeps_end:
                self.free_end(file)

    def take_blocks(
        self, inode: XfsInode, file: PagedFile, page: int, length: int, end: int
    ) -> tuple[int, int]:  # fmt: skip
        """See `Placement.take_blocks`: xfs_bmapi_write with XFS_BMAPI_PREALLOC; *end* is not used.

        The blocks lie near that of the page in front or, without one, in the group of *inode*.  If too few
        lie together there, another group gives the blocks.  No time passes, and no AGF is taken.

        Raises:
            NoSpace: no block is unclaimed.
        """
        length = min(length, MAX_EXTENT_PAGES, self.space.unclaimed)
        block = self._block_behind(file, page)
        group = self.groups[block // self.group_blocks] if 0 <= block < self.blocks else inode.group
        if not length:
            raise NoSpace("No space left on device")
        later = [*self.groups[group.number :], *self.groups[: group.number]]
        roomy = [other for other in later if other.free.longest() >= length]
        group = roomy[0] if roomy else max(later, key=lambda other: other.free.longest())
        target = block - group.first_block if block // self.group_blocks == group.number else 0
        extent = group.free.take_near(target, length)
        assert extent is not None, "unclaimed blocks are free"
        first, count = extent
        self.space.unclaimed -= count
        return group.first_block + first, count

    def map_blocks(self, inode: XfsInode, file: PagedFile, page: int, block: int, count: int) -> None:
        """See `Placement.map_blocks`."""
        place_unwritten(file.pages, page, file.reach(block, count), count)

    def mark_written(self, file: PagedFile, page: int, count: int) -> None:
        """See `Placement.mark_written`."""
        mark_written(file.pages.states, page, count)

    def _block_behind(self, file: PagedFile, page: int) -> int:
        """Return the block behind that of the page before *page*; -1 if that page has no block."""
        if not page or not file.pages.states[page - 1] & HAS_BLOCK:
            return -1
        return int(file.pages.blocks[page - 1]) + file.base + 1

    def write_run(self, thread: Thread, inode: XfsInode, wbc: WritebackControl, runs: Runs) -> Steps:
        """See `Placement.write_run`: xfs_bmapi_convert_delalloc and xfs_submit_ioend for a file of one run.

        A file of one run has no ILOCK, because no other task would take it.  *thread* first waits for log
        space.  The file is written in pieces if no group has room for all pages together.
        """
        log, group, pages = self._log, inode.cluster.group, inode.dirty_pages
        if log.full:
            yield from log.wait_for_space(thread)
        if group.free.longest() < pages or not group.agf.try_down():
            group = yield from lock_group(self.groups, thread, group, pages)
            if group.free.longest() < pages:
                if waker_ns := group.agf.up(thread.task):
                    yield waker_ns
                yield from runs.in_pieces(thread, inode, wbc)
                return
        extent = group.free.take_near(0, pages)
        assert extent is not None, "the locked group has free blocks"
        map_ns, rmap_ns = self._costs.run_map_ns()
        pages_ns = pages * self._costs.page_ns(inode.folio_pages)
        yield from self._metadata.convert_delalloc(thread, inode, group, map_ns, rmap_ns, pages_ns)
        for bio in runs.bios(inode, group.first_block + extent[0], pages, wbc):
            if (rest := thread.submit_bio(bio)) is not None:
                yield from rest
        wbc.nr_to_write -= pages

    def map_extent(
        self, thread: Thread, inode: XfsInode, file: PagedFile, page: int, at_most: int
    ) -> Steps:  # fmt: skip
        """See `ExtentMapper.map_extent`: xfs_map_blocks and xfs_bmapi_convert_delalloc.

        xfs_map_blocks first looks for an extent, under the shared ILOCK.  *at_most* is not used: the complete
        extent gets blocks, as far as they lie together.  If they end in front of *page*, the walk calls this
        again.  A transaction adds 1 to ``allocations`` of *file*.
        """
        log, ilock, task = self._log, file.lock, thread.task
        if not ilock.try_read():
            thread.before_sleep()
            yield ilock.down_read(task)
        if waker_ns := ilock.up_read(task):
            yield waker_ns
        if log.full:
            yield from log.wait_for_space(thread)
        if self._reserve_ns:
            thread.spent.allocate += self._reserve_ns
            yield self._reserve_ns
        if not ilock.try_write(task):
            yield from ilock.down_write(task, thread.before_sleep)
        plan, pages = self._plan, file.pages
        plan_extent(pages.states, pages.blocks, pages.size, page, self.group_blocks, self._plan_array)
        length, target = plan[LENGTH], plan[NEAR]
        if length:
            goal = group = self.groups[inode.group.number + plan[GROUP]]
            if group.free.longest() < length or not group.agf.try_down():
                group = yield from lock_group(self.groups, thread, goal, length)
                if group is not goal:
                    target = NOWHERE
            self._give_blocks(file, group, page, target)
            costs = self._costs
            map_ns, rmap_ns = costs.varied_map_ns(file.allocations, self._search_ns if plan[SEARCHED] else 0)
            map_ns = max(0, map_ns - self._reserve_ns)
            map_ns += costs.lines_ns(file, task, map_ns + rmap_ns) + costs.moved_map_ns(file, task)
            yield from self._metadata.convert_delalloc(thread, inode, group, map_ns, rmap_ns)
            file.allocations += 1
        if waker_ns := ilock.up_write():
            yield waker_ns

    def _give_blocks(self, file: PagedFile, group: Group, page: int, target: int) -> None:
        """Give the delayed extent at *page* blocks of *group*; see `layout.allocate`."""
        plan, first_block = self._plan, group.first_block - file.base
        if first_block:  # the group is not the group of the file
            file.reach(group.first_block, self.group_blocks)
        plan[GROUP], plan[NEAR], plan[FIRST] = group.number, target, first_block
        pages, free = file.pages, group.free.arrays_with_room(1)
        give_blocks(pages.states, pages.blocks, pages.size, free, page, self._plan_array)

    def budget(self, file: PagedFile, page: int, wbc: WritebackControl) -> int:
        """Return ``wbc.nr_to_write``, for any *file* and *page*; see `ExtentMapper.budget`."""
        return wbc.nr_to_write

    def free_tables(self) -> Iterator[NDArray[np.int64]]:
        """See `Placement.free_tables`: an array for each group; blocks count from the filesystem's start."""
        for group in self.groups:
            yield group.free.table() + np.array([group.first_block, 0])

    def check(self) -> None:
        """See `Placement.check`: `FreeSpace.check` of each group."""
        for group in self.groups:
            group.free.check()

    @property
    def free_blocks(self) -> int:
        """See `Placement.free_blocks`."""
        return sum(group.free.blocks for group in self.groups)
