"""The place of the pages of an ext4.

Stands for ext4_map_blocks and ext4_release_file.  The decisions are in `layout.py`, the choice of blocks in
`new_blocks.py`, and the free space in `mballoc.py`.  Left out: the locks of groups and locality groups,
bigalloc, reclaim of preallocations.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from wbsim.models.filesystems.blocks import Space
from wbsim.models.filesystems.costs import MapCosts
from wbsim.models.filesystems.delalloc_parts import Placement, Runs
from wbsim.models.filesystems.ext4.extent_tree import NO_BLOCK
from wbsim.models.filesystems.ext4.geometry import GROUP_BLOCKS
from wbsim.models.filesystems.ext4.inodes import Ext4File, Ext4Inode
from wbsim.models.filesystems.ext4.layout import (
    LARGEST_WINDOW,
    MAX_REQUEST_PAGES,
    MAX_UNWRITTEN_PAGES,
    STREAM_REQUEST_PAGES,
    write_all,
)
from wbsim.models.filesystems.ext4.mballoc import Mballoc
from wbsim.models.filesystems.ext4.metadata import Ext4Metadata
from wbsim.models.filesystems.ext4.names import Ext4Names
from wbsim.models.filesystems.ext4.new_blocks import NewBlocks
from wbsim.models.filesystems.ext4.spec import Ext4Rules, Ext4Spec
from wbsim.models.filesystems.files import CLOSED, PagedFile
from wbsim.models.filesystems.writepages import ExtentMapper
from wbsim.models.interfaces import NoSpace, Thread, WritebackControl
from wbsim.models.page_cache.pages import (
    DELAYED,
    DIRTY,
    HAS_BLOCK,
    HELD,
    MAPPED,
    UNWRITTEN,
    awaiting_run,
    mark_written,
    place_unwritten,
    run_alike,
    use_held,
)
from wbsim.sim.engine import Steps
from wbsim.sim.invariants import require
from wbsim.sim.units import PAGE_BYTES


class Ext4Placement(Placement[Ext4Inode, Ext4File], ExtentMapper[Ext4Inode, Ext4File]):
    """The placement of one mounted ext4, with a locality group for each of its processors."""

    group_label: str

    def __init__(
        self, *, name: str, spec: Ext4Spec, rules: Ext4Rules, processors: int,
        mballoc: Mballoc, names: Ext4Names, costs: MapCosts, metadata: Ext4Metadata, space: Space,
    ) -> None:  # fmt: skip
        self.space = space
        self.group_blocks, self.group_label = GROUP_BLOCKS, "group"
        self.one_run_pages = STREAM_REQUEST_PAGES
        geometry = spec.geometry
        self.blocks = geometry.blocks
        self._name = name
        self._rules = rules
        self._geometry = geometry
        self._costs = costs
        self._metadata = metadata
        self._names = names
        self.mballoc = mballoc
        self.files: list[PagedFile] = []
        self.new_blocks = NewBlocks(mballoc, rules, processors, geometry.groups, self.files)
        self._run_pages = 0  # in files of one run
        self._usable = spec.room // PAGE_BYTES
        self._unwritten = UNWRITTEN if rules.unwritten else 0

    def group_of(self, inode: Ext4Inode) -> int:
        """See `Placement.group_of`."""
        return self._geometry.group_of(inode.number)

    def new_file(self, inode: Ext4Inode, is_open: bool) -> Ext4File:
        """See `Placement.new_file`."""
        return Ext4File(is_open)

    def room_for(self, size: int, call_pages: int) -> int:
        """See `Placement.room_for`."""
        return (size // LARGEST_WINDOW + 1) * LARGEST_WINDOW

    def write(self, file: Ext4File, indices: NDArray[np.int64], call_pages: int) -> tuple[int, int]:
        """See `Placement.write`; *call_pages* is not used."""
        space = self.space
        done, were_clean, claims = write_all(file.pages, indices, file.end, space.unclaimed)
        space.unclaimed -= int(claims)
        return int(done), int(were_clean)

    def released(self, file: Ext4File) -> None:
        """Give up the blocks held for *file* at its last close, unless pages still wait for blocks."""
        if not np.any(is_delayed(file.pages.states)):
            self.new_blocks.give_up(file)

    def free_end(self, file: Ext4File) -> int:
        """See `Placement.free_end`: ext4_discard_preallocations and ext4_ext_truncate."""
        self.new_blocks.give_up(file)
        self.space.unclaimed += file.claims_from(file.size)
        extents = file.trim()
        for block, count in [*extents, *((leaf, 1) for leaf in file.tree.remove_from(file.size))]:
            self.give_back(block, count)
        return len(extents)

    def give_back(self, block: int, count: int) -> None:
        """See `Placement.give_back`."""
        self.mballoc.give_back(block, count)
        self.space.unclaimed += count

    def trim_all(self) -> None:
        """See `Placement.trim_all`: nothing is to be done, because blocks that are held are unclaimed."""

    def take_blocks(
        self, inode: Ext4Inode, file: Ext4File, page: int, length: int, end: int
    ) -> tuple[int, int]:  # fmt: skip
        """See `Placement.take_blocks`: ext4_alloc_file_blocks; a small file begins in its own group.

        The blocks that are held for *file* are given up first.
        A request that is too long for one extent is cut into windows (EXT4_GET_BLOCKS_NO_NORMALIZE,
        ext4_mb_normalize_request).
        """
        self.new_blocks.give_up(file)
        most = MAX_UNWRITTEN_PAGES if end <= MAX_UNWRITTEN_PAGES else LARGEST_WINDOW - page % LARGEST_WINDOW
        length = min(length, most, self.space.unclaimed)
        if not length:
            raise NoSpace("No space left on device")
        if max(page + length, file.size) > STREAM_REQUEST_PAGES:
            block, count = self.new_blocks.extend(inode, file, page, page + length)
        else:
            goal = self.new_blocks.goal(inode, file, page)
            block, count = self.new_blocks.find(goal // GROUP_BLOCKS, length)
        self.space.unclaimed -= count
        return block, count

    def map_blocks(self, inode: Ext4Inode, file: Ext4File, page: int, block: int, count: int) -> None:
        """See `Placement.map_blocks`.

        If the extent tree grows, a block is taken for it, and subtracted from `Space.unclaimed`.
        """
        place_unwritten(file.pages, page, file.reach(block, count), count)
        if not file.tree.append(page, block, count, unwritten=True):
            self.space.unclaimed -= self.new_blocks.grow_tree(inode, file, page)
            file.tree.insert(page, block, count)

    def mark_written(self, file: Ext4File, page: int, count: int) -> None:
        """See `Placement.mark_written`; a leaf that the extent tree no longer needs is freed."""
        mark_written(file.pages.states, page, count)
        if (leaf := file.tree.convert(page, count)) != NO_BLOCK:
            self.give_back(leaf, 1)

    def write_run(self, thread: Thread, inode: Ext4Inode, wbc: WritebackControl, runs: Runs) -> Steps:
        """See `Placement.write_run`: ext4_map_blocks and ext4_io_submit for a file of one run."""
        journal, map_credits, pages = self._metadata.journal, self._metadata.map_credits, inode.dirty_pages
        yield from journal.start_handle(thread, map_credits)
        if self._rules.unwritten:
            yield from journal.reserve(thread)
        (map_ns, _), pages_ns = self._costs.run_map_ns(), pages * self._costs.page_ns(inode.folio_pages)
        thread.spent.allocate += map_ns
        thread.spent.pages += pages_ns
        yield map_ns + pages_ns
        if self._rules.packs_closed or inode.file.open:
            block, length = self.new_blocks.of_locality_group(
                thread.task, inode.goal_group * GROUP_BLOCKS, pages
            )
        else:
            block, length = self.new_blocks.find(inode.goal_group, pages)
        if length < pages:
            self.mballoc.give_back(block, length)
            if self._rules.unwritten:
                journal.release()
            journal.stop_handle(map_credits, ())
            yield from runs.in_pieces(thread, inode, wbc)
            return
        journal.stop_handle(map_credits, ())
        if inode.file is CLOSED:
            self._run_pages += pages
        self._metadata.log_extent(inode, block // GROUP_BLOCKS)
        for bio in runs.bios(inode, block, pages, wbc):
            if (rest := thread.submit_bio(bio)) is not None:
                yield from rest
        wbc.nr_to_write -= pages

    def budget(self, file: Ext4File, page: int, wbc: WritebackControl) -> int:
        """See `ExtentMapper.budget`: a longer run of dirty pages that wait to be mapped raises it.

        The run begins at *page*, and at most ``bump_pages`` (`Ext4Rules`) of its pages count.
        For data integrity, it is ``wbc.nr_to_write``.
        """
        if wbc.sync_all:
            return wbc.nr_to_write
        return max(wbc.nr_to_write, int(awaiting_run(file.pages, page, self._rules.bump_pages)))

    def map_extent(
        self, thread: Thread, inode: Ext4Inode, file: Ext4File, page: int, at_most: int
    ) -> Steps:  # fmt: skip
        """See `ExtentMapper.map_extent`: ext4_map_blocks, in which pages get blocks held for the file.

        The handle is begun before i_data_sem is taken.  If the page has no block held for it, blocks are held
        first.  Then the file's tree grows, if necessary.  At most `MAX_REQUEST_PAGES` pages are mapped.
        """
        metadata, task = self._metadata, thread.task
        if metadata.is_full():
            yield from metadata.wait_for_space(thread)
        map_ns, _ = self._costs.varied_map_ns(file.allocations)
        locked_ns = self._costs.map_locked_ns(map_ns)
        thread.spent.allocate += map_ns
        yield map_ns - locked_ns
        if not file.lock.try_write(task):
            yield from file.lock.down_write(task, thread.before_sleep)
        moved_ns = self._costs.moved_map_ns(file, task)
        thread.spent.allocate += moved_ns
        yield locked_ns + moved_ns
        count = int(run_alike(file.pages, page, min(at_most, MAX_REQUEST_PAGES)))
        if preallocated := bool(file.pages.states[page] & UNWRITTEN):
            self._cut(inode, file, page, count)
        else:
            if not file.pages.states[page] & HELD:
                self.new_blocks.hold(task, inode, file, page, count)
                count = int(run_alike(file.pages, page, count))
            use_held(file.pages, page, count, self._unwritten)
            self._insert(inode, file, page, count)
        file.allocations += 1
        waker_ns = file.lock.up_write()
        metadata.log_mapping(inode, file, page, new=not preallocated)
        if waker_ns:
            yield waker_ns

    def _cut(self, inode: Ext4Inode, file: Ext4File, page: int, count: int) -> None:
        """ext4_ext_handle_unwritten_extents: split an unwritten extent around dirty pages.

        They are the *count* pages from *page* on.  Kernels that do not allocate unwritten blocks convert the
        part at once.
        """
        for edge in (page, page + count):
            if (extent := file.tree.extent_at(edge)) is not None and extent[0] < edge:
                self.space.unclaimed -= self.new_blocks.grow_tree(inode, file, edge)
                file.tree.cut(edge)
        file.pages.states[page : page + count] = DIRTY | self._unwritten
        if not self._unwritten and (leaf := file.tree.convert(page, count)) != NO_BLOCK:
            self.give_back(leaf, 1)

    def _insert(self, inode: Ext4Inode, file: Ext4File, page: int, count: int) -> None:
        """ext4_ext_insert_extent: add *count* pages from *page* on, which have blocks, to the file's tree."""
        tree, block = file.tree, int(file.pages.blocks[page])
        if not self._rules.unwritten and tree.append(page, block, count):
            return
        self.space.unclaimed -= self.new_blocks.grow_tree(inode, file, page)
        tree.insert(page, block, count)
        if not self._rules.unwritten and (leaf := tree.convert(page, count)) != NO_BLOCK:
            self.give_back(leaf, 1)

    def free_tables(self) -> Iterable[NDArray[np.int64]]:
        """See `Placement.free_tables`."""
        for runs in (self.mballoc.extents(), *self.new_blocks.locality_groups):
            yield np.array(list(runs), np.int64).reshape(-1, 2)

    def check(self) -> None:
        """See `Placement.check`."""
        self.mballoc.check()
        free = self.free_blocks
        used_blocks = self._run_pages + self._names.leaf_blocks
        for file in self.files:
            assert isinstance(file, Ext4File)
            used_blocks += file.tree.blocks
            states = file.pages.states
            used_blocks += int(np.count_nonzero(states & HAS_BLOCK))
        require(
            free + used_blocks == self._usable,
            f"{self._name}: {free} free and {used_blocks} used blocks must be {self._usable} in total",
        )

    @property
    def free_blocks(self) -> int:
        """See `Placement.free_blocks`: blocks that are held or kept for files count."""
        free = sum(self.mballoc.free_blocks(flex) for flex in range(self._geometry.flexes))
        free += sum(length for runs in self.new_blocks.locality_groups for _, length in runs)
        return free + sum(int(np.count_nonzero(file.pages.states & HELD)) for file in self.files)


def is_delayed(states: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return whether each page in *states* waits for a block, as an array; the block may be held for it.

    A page with a held block counts, unlike in `models.page_cache.pages.is_delayed`.  So does a dirty page
    whose unwritten block must be mapped again (`models.page_cache.pages.UNWRITTEN`).
    """
    delayed: NDArray[np.bool_] = states & (DELAYED | MAPPED) == DELAYED
    return delayed
