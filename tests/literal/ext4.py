"""A literal ext4 of Linux 6.18: one file is written back, and its extents are converted.

Stands for ext4_do_writepages, ext4_map_blocks, ext4_mb_new_blocks, ext4_io_submit and ext4_end_io_rsv_work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from tests.literal.clock import Clock, Steps
from tests.literal.extent_tree import Extent, Tree
from tests.literal.file import File, IoEnd, Times
from tests.literal.mballoc import GROUP_BLOCKS, Mballoc, Request, Run

_REQUEST_PAGES: Final = 2_048
"""MAX_WRITEPAGES_EXTENT_LEN."""
_STREAM_PAGES: Final = 16
"""MB_DEFAULT_STREAM_THRESHOLD: files up to this size share the blocks of a locality group."""
_LOCALITY_BLOCKS: Final = 512
"""MB_DEFAULT_GROUP_PREALLOC."""
_LARGEST_SMALL_WINDOW: Final = 256
_WINDOWS: Final = ((512, 1_024), (1_024, 2_048))
"""The window (pages) in files up to a size; larger files have windows of 2 048 pages."""


@dataclass
class Preallocation:
    """struct ext4_prealloc_space of an inode: blocks from *block* on for *length* pages from *page* on."""

    page: int
    block: int
    length: int


class Ext4(File):
    """A closed file of the inode *number*, for which *mballoc* finds blocks.

    * ``goal``: ext4_inode_to_goal_block.
    * ``size``: i_size (pages).
    * ``prealloc``: the blocks that are held for the file.
    """

    def __init__(
        self, clock: Clock, *parts: Any, times: Times, mballoc: Mballoc, number: int, goal: int, size: int,
        **given: Any,
    ) -> None:  # fmt: skip
        super().__init__(clock, *parts, times, **given)
        self._mballoc, self._number, self._inode_goal = mballoc, number, goal
        self._size = size
        self._prealloc: list[Preallocation] = []
        self._locality: list[Run] = []  # of the flusher's processor
        self._tree = Tree()

    def writepages(self) -> Steps:
        """ext4_do_writepages: map a run of pages, put the pages under writeback, and submit them."""
        page = 0
        while (page := self._next_dirty(page)) >= 0:
            if page not in self._blocks:
                yield from self._map(page)
            run = self._contiguous(page)
            for at in range(page, page + run):
                yield from self._add(at)
            yield from self._submit(ends=True)

    def _delay(self, page: int) -> None:
        """See `File._delay`."""
        super()._delay(page)
        self._size = max(self._size, page + 1)

    def _contiguous(self, page: int) -> int:
        """Return how many dirty pages from *page* on lie together on disk; a request limits them."""
        run = 1
        while (
            run < _REQUEST_PAGES
            and page + run in self._dirty
            and self._blocks.get(page + run) == self._blocks[page] + run
        ):
            run += 1
        return run

    def _map(self, page: int) -> Steps:
        """ext4_map_blocks: find blocks for a run of delayed pages, or for its first pages."""
        yield self._times.map_outside_ns
        yield from self._lock.down_write(self._flusher)
        yield self._map_ns
        length = 1
        while length < _REQUEST_PAGES and page + length in self._dirty and page + length not in self._blocks:
            length += 1
        block, got = self._new_blocks(page, length)
        for at in range(got):
            self._blocks[page + at] = block + at
        self._tree.insert(Extent(page, block, got), self._new_meta_block)
        self._extents += 1
        yield self._lock.up_write(self._flusher)

    def _new_blocks(self, page: int, length: int) -> Run:
        """ext4_mb_new_blocks: blocks that are held, or new ones; return the first and their number."""
        for held in self._prealloc:
            if held.page <= page < held.page + held.length:
                return held.block + page - held.page, min(length, held.page + held.length - page)
        goal = self._goal(page)
        is_tail = page + length == self._size
        if max(page + length, self._size) <= _STREAM_PAGES:
            return self._of_locality_group(goal, length)
        if is_tail:  # EXT4_MB_HINT_NOPREALLOC
            return self._mballoc.find(Request(length, goal))
        start, end = self._normalized(page, length)
        request = Request(end - start, goal, stream=self._number % len(self._mballoc.last_groups))
        left, right = self._tree.left(page), self._tree.right(page)
        if right is not None and right.page == end and right.block >= request.length:
            request.goal, request.tries_goal = right.block - request.length, True
        if left is not None and left.page + left.length == start:
            request.goal, request.tries_goal = left.block + left.length, True
        block, got = self._mballoc.find(request)
        held = Preallocation(start, block, got)
        self._prealloc.append(held)
        return held.block + page - held.page, min(length, held.page + held.length - page)

    def _of_locality_group(self, goal: int, length: int) -> Run:
        """ext4_mb_use_preallocated, ext4_mb_new_group_pa: the next blocks of the run next to *goal*."""
        enough = [run for run in self._locality if run[1] >= length]
        block, free = min(enough, key=lambda run: abs(run[0] - goal), default=(-1, 0))
        if free:
            self._locality.remove((block, free))
        else:
            block, free = self._mballoc.find(Request(max(_LOCALITY_BLOCKS, length), goal))
        if free > length:
            self._locality.append((block + length, free - length))
        return block, length

    def _normalized(self, page: int, length: int) -> tuple[int, int]:
        """ext4_mb_normalize_request: the first page of the window around *page*, and the page behind it.

        It ends at pages that have blocks, and at blocks that are held (ext4_mb_pa_adjust_overlap).
        """
        size = max(page + length, self._size)
        start = 0
        if size <= _LARGEST_SMALL_WINDOW:
            window = max(4, 1 << (size - 1).bit_length())
        else:
            window = next((window for window, most in _WINDOWS if size <= most), _REQUEST_PAGES)
            start = page // window * window
        end = start + window
        left, right = self._tree.left(page), self._tree.right(page)
        if left is not None:
            start = max(start, left.page + left.length)
        if right is not None:
            end = min(end, right.page)
        for held in self._prealloc:
            if held.page > page:
                end = min(end, held.page)
            else:
                start = max(start, held.page + held.length)
        return start, end

    def _goal(self, page: int) -> int:
        """ext4_ext_find_goal."""
        goal = self._tree.goal(page)
        if goal is None:
            return self._inode_goal
        return goal if 0 <= goal < self._mballoc.count * GROUP_BLOCKS else 0

    def _new_meta_block(self, goal: int | None) -> None:
        """ext4_new_meta_blocks: a block for the tree."""
        self._mballoc.find(Request(1, self._inode_goal if goal is None else goal, data=False))

    def _convert(self, ioend: IoEnd) -> Steps:
        """ext4_convert_unwritten_extents: the block of a leaf that the inode takes in again is not reused."""
        self._tree.convert(ioend.first, ioend.pages)
        yield 0
