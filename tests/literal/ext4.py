"""A literal ext4 of Linux 6.18: one file is written back, and its extents are converted.

Stands for ext4_do_writepages, ext4_map_blocks, ext4_io_submit and ext4_end_io_rsv_work.
"""

from __future__ import annotations

from typing import Any

from tests.literal.clock import Clock, Steps
from tests.literal.file import File, IoEnd, Times
from wbsim.models.filesystems.ext4.geometry import GROUP_BLOCKS
from wbsim.models.filesystems.ext4.inodes import Ext4File
from wbsim.models.filesystems.ext4.layout import MAX_REQUEST_PAGES
from wbsim.models.filesystems.ext4.new_blocks import NewBlocks
from wbsim.models.page_cache.pages import DIRTY, HELD, MAPPED, next_dirty, run_alike, use_held


class Ext4(File):
    """A closed file of *inode* (its number and its goal), for which *new_blocks* finds blocks.

    The number of *task*, the flusher of the model, chooses the locality group.
    """

    def __init__(
        self, clock: Clock, *parts: Any, times: Times, inode: Any, new_blocks: NewBlocks, task: Any,
        **given: Any,
    ) -> None:  # fmt: skip
        super().__init__(clock, *parts, times, **given)
        self._inode, self._new_blocks, self._task = inode, new_blocks, task
        self._file = Ext4File(is_open=False)
        self._file.pages = self._pages
        self._newest = -1  # the page behind the newest extent

    def writepages(self) -> Steps:
        """ext4_do_writepages: map a run of pages, put the pages under writeback, and submit them."""
        page = next_dirty(self._pages, 0)
        while page >= 0:
            if not self._pages.states[page] & MAPPED:
                yield from self._map(page)
            run = run_alike(self._pages, page, MAX_REQUEST_PAGES)
            assert self._pages.states[page] == DIRTY, "the page must be dirty and have a block"
            for at in range(page, page + run):
                yield from self._add(at)
            yield from self._submit(ends=True)
            page = next_dirty(self._pages, page + run)

    def _map(self, page: int) -> Steps:
        """ext4_map_blocks: find blocks, hold them, and use a part of them for the run of pages."""
        pages, file, found = self._pages, self._file, self._new_blocks
        yield self._times.map_outside_ns
        yield from self._lock.down_write(self._flusher)
        yield self._map_ns
        run = run_alike(pages, page, MAX_REQUEST_PAGES)
        if not pages.states[page] & HELD:
            found.hold(self._task, self._inode, file, page, run)
            run = run_alike(pages, page, run)
        more = use_held(pages, page, run)
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

    def _convert(self, ioend: IoEnd) -> Steps:
        """Count one unwritten extent less in the tree."""
        self._file.wrote(1)
        yield 0
