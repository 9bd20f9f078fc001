"""What the page walks of all filesystems have in common: their state, where they go on, and their bios.

Stands for write_cache_pages, iomap_writepages and ext4_writepages without what is the filesystem's own.
Pure; compiled by Numba.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.arrays.compiled import compiled
from models.page_cache.pages import Pages, next_dirty, run_alike, start_writeback

Walk = np.record
"""A record of `_WALK`, which compiled code and events both read and change by the names of its fields."""
_OF_THE_WALK: Final = (
    "page",  # the next one
    "left",  # of wbc->nr_to_write
    "calls",  # of writepage, with the quota "calls_x4": those left
    "dice",  # factors used
    "wrote",  # pages
    "start",  # the page where it began
    "until",  # the page where it ends once it has wrapped
    "room",  # how many more extents the file's tree takes before page `behind`
    "behind",
    "newest",  # the page behind the newest extent
)
_OF_THE_STEP: Final = (
    "elapsed_ns",
    "pages",  # put under writeback
    "bios",  # rows of them
    "ranges",  # of blocks
    "allocating",  # whether it ends in the middle of an allocation
    "mapped_extents",  # given blocks
    "joins",  # neighbours that these will join
    "for_file_ns",  # slept for the inode's lock
    "for_group_ns",  # slept for a group's
    "before",  # where the last run ended
)
_WALK: Final = np.dtype((np.record, [(name, "i8") for name in (*_OF_THE_WALK, *_OF_THE_STEP)]))
_NOT_YET: Final = -1
UNCOUNTED: Final = (1 << 63) - 1
"""``at.calls`` of a walk whose budget is in pages."""
NO_PAGE: Final = -1
DONE: Final = 0
"""A walk ended with the file or the budget."""
CONVERT: Final = 1
"""The delayed page at ``at.page`` is to be given its block by the caller: it takes locks, or other
groups.
"""
GO_ON: Final = 2
"""The bios are to be submitted, or time is to pass, before it goes on."""


def new_walk(page: int, budget: int) -> Walk:
    """The state of a walk that begins at *page* and may write *budget* pages."""
    at: Walk = np.zeros(1, _WALK)[0]
    at.page = at.start = page
    at.left, at.calls, at.behind = budget, UNCOUNTED, UNCOUNTED
    at.until = at.newest = _NOT_YET
    return at


@compiled
def begin_step(at: Walk) -> None:
    """Nothing of this step was done."""
    at.elapsed_ns = at.pages = at.bios = at.ranges = at.allocating = at.mapped_extents = at.joins = 0
    at.for_file_ns = at.for_group_ns = 0
    at.before = NO_PAGE


@compiled
def next_page(pages: Pages, at: Walk, wraps: bool) -> int:
    """Move to the next dirty page and return it; `NO_PAGE` at the walk's end.

    A walk that *wraps* goes on at page 0 once, and the next begins where it ended; another, at the end of the
    file, leaves the next page 0.
    """
    page = next_dirty(pages, at.page)
    if wraps and page < 0 and at.until == _NOT_YET and at.start > 0:
        at.until, at.page = at.start, 0
        page = next_dirty(pages, 0)
    if page < 0 or (at.until != _NOT_YET and page >= at.until):
        if not wraps:
            at.page = 0
        return NO_PAGE
    at.page = page
    return page


@compiled
def write_out(
    pages: Pages, at: Walk, at_most: int, bio_pages: int, page_ns: int, bios: NDArray[np.int64]
) -> int:  # fmt: skip
    """Put the dirty pages from ``at.page`` on that lie together on disk, up to *at_most*, under writeback.

    Returns how many; none if *bios* (rows of first block and pages) has no room.
    """
    page, rows = at.page, at.bios
    run = run_alike(pages, page, min(at_most, len(bios) * bio_pages))
    if rows + (run - 1) // bio_pages + 1 > len(bios):
        return 0
    start_writeback(pages, page, run)
    at.ranges += page != at.before or bios[rows - 1, 0] + bios[rows - 1, 1] != pages.blocks[page]
    for first in range(0, run, bio_pages):
        bios[rows, 0] = pages.blocks[page] + first
        bios[rows, 1] = min(bio_pages, run - first)
        rows += 1
    at.bios = rows
    at.elapsed_ns += run * page_ns
    at.wrote += run
    at.pages += run
    at.page = at.before = page + run
    return int(run)
