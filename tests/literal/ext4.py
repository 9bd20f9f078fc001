"""A literal ext4 of Linux 6.18: one file is written back, and its extents are converted.

Stands for ext4_do_writepages, ext4_map_blocks, ext4_io_submit and ext4_end_io_rsv_work.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from tests.literal.clock import Clock, Steps
from tests.literal.file import File, IoEnd, Times
from wbsim.models.filesystems.ext4.geometry import GROUP_BLOCKS
from wbsim.models.filesystems.ext4.inodes import Ext4File
from wbsim.models.filesystems.ext4.layout import MAX_REQUEST_PAGES
from wbsim.models.filesystems.ext4.new_blocks import NewBlocks
from wbsim.models.page_cache.pages import DELAYED, DIRTY, HELD, Pages


class Ext4(File):
    """A closed file of *inode* (its number and its goal), for which *new_blocks* finds blocks in *pages*.

    The number of *task*, the flusher of the model, chooses the locality group.
    """

    def __init__(
        self, clock: Clock, *parts: Any, times: Times, inode: Any, new_blocks: NewBlocks, task: Any,
        pages: Pages, **given: Any,
    ) -> None:  # fmt: skip
        super().__init__(clock, *parts, times, **given)
        self._pages = deepcopy(pages)
        self._inode, self._new_blocks, self._task = inode, new_blocks, task
        self._file = Ext4File(is_open=False)
        self._file.pages = self._pages
        self._newest = -1  # the page behind the newest extent

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
        self._pages.states[page] |= DELAYED  # a block may be held for the hole already

    def _contiguous(self, page: int) -> int:
        """Return how many dirty pages from *page* on lie together on disk; a request limits them."""
        run = 1
        while (
            run < MAX_REQUEST_PAGES
            and page + run in self._dirty
            and self._blocks.get(page + run) == self._blocks[page] + run
        ):
            run += 1
        return run

    def _delayed(self, page: int) -> int:
        """Return how many delayed pages from *page* on have contiguous held blocks, or all have none."""
        states, blocks, run = self._pages.states, self._pages.blocks, 1
        while (
            run < MAX_REQUEST_PAGES
            and page + run < len(states)
            and states[page + run] == states[page]
            and (states[page] == DELAYED or blocks[page + run] == blocks[page] + run)
        ):
            run += 1
        return run

    def _map(self, page: int) -> Steps:
        """ext4_map_blocks: find blocks, hold them, and use a part of them for the run of pages."""
        pages, file, found = self._pages, self._file, self._new_blocks
        yield self._times.map_outside_ns
        yield from self._lock.down_write(self._flusher)
        yield self._map_ns
        run = self._delayed(page)
        if not pages.states[page] & HELD:
            found.hold(self._task, self._inode, file, page, run)
            run = min(run, self._delayed(page))
        for at in range(page, page + run):
            pages.states[at] = DIRTY
            self._blocks[at] = int(pages.blocks[at])
        more = 1 - self._joins(page - 1, page) - self._joins(page + run - 1, page + run)
        joins_at_once = page == self._newest and pages.blocks[page - 1] == pages.blocks[page] - 1
        self._newest = page + run
        if (
            not joins_at_once
            and not file.room_at(page)[0]
            and not (file.leaves and file.has_room_behind(page))
        ):
            goal = int(pages.blocks[page]) // GROUP_BLOCKS if file.leaves else self._inode.goal_group
            file.grow(page, found.find(goal, 1)[0])
        file.took(page, 0 if joins_at_once else 1, 1 - more - joins_at_once, 1)
        self._extents += 1
        self._lock.up_write(self._flusher)

    def _joins(self, page: int, other: int) -> bool:
        """Return whether both pages have blocks, of which one follows the other."""
        return page in self._blocks and self._blocks.get(other) == self._blocks[page] + 1

    def _convert(self, ioend: IoEnd) -> Steps:
        """Count one unwritten extent less in the tree."""
        self._file.wrote(1)
        yield 0
