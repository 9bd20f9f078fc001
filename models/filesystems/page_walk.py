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

# A walk's state: the next page; pages left of wbc->nr_to_write; with "calls_x4", calls left; factors used;
# pages written.  START: where it began; UNTIL: where it ends once it has wrapped; ROOM: how many more extents
# the file's tree takes, before page BEHIND; NEWEST: the page behind the newest extent.
PAGE, LEFT, CALLS, DICE, WROTE, START, UNTIL, ROOM, BEHIND, NEWEST = range(10)
# Of the present step alone: its time (ns), pages put under writeback, rows of bios and ranges of blocks,
# whether it ends in the middle of an allocation, extents that were given blocks, how many neighbours
# these will join, how long it slept for the inode's lock and for a group's, and where the last run ended.
ELAPSED, PAGES, BIOS, RANGES, ALLOCATING, MAPPED_EXTENTS, JOINS, FOR_FILE, FOR_GROUP, BEFORE = range(10, 20)
_STATE: Final = 20
_NOT_YET: Final = -1
UNCOUNTED: Final = (1 << 63) - 1
"""``at[CALLS]`` of a walk whose budget is in pages."""
NO_PAGE: Final = -1
DONE: Final = 0
"""A walk ended with the file or the budget."""
CONVERT: Final = 1
"""The delayed page at ``at[PAGE]`` is to be given its block by the caller: it takes locks, or other
groups.
"""
GO_ON: Final = 2
"""The bios are to be submitted, or time is to pass, before it goes on."""


def new_walk(page: int, budget: int) -> NDArray[np.int64]:
    """The state of a walk that begins at *page* and may write *budget* pages."""
    at = np.zeros(_STATE, np.int64)
    at[PAGE] = at[START] = page
    at[LEFT], at[CALLS], at[BEHIND] = budget, UNCOUNTED, UNCOUNTED
    at[UNTIL] = at[NEWEST] = _NOT_YET
    return at


@compiled
def begin_step(at: NDArray[np.int64]) -> None:
    """Nothing of this step was done."""
    at[ELAPSED] = at[PAGES] = at[BIOS] = at[RANGES] = at[ALLOCATING] = at[MAPPED_EXTENTS] = at[JOINS] = 0
    at[FOR_FILE] = at[FOR_GROUP] = 0
    at[BEFORE] = NO_PAGE


@compiled
def next_page(pages: Pages, at: NDArray[np.int64], wraps: bool) -> int:
    """Move to the next dirty page and return it; `NO_PAGE` at the walk's end.

    A walk that *wraps* goes on at page 0 once, and the next begins where it ended; another, at the end of the
    file, leaves the next page 0.
    """
    page = next_dirty(pages, at[PAGE])
    if wraps and page < 0 and at[UNTIL] == _NOT_YET and at[START] > 0:
        at[UNTIL], at[PAGE] = at[START], 0
        page = next_dirty(pages, 0)
    if page < 0 or (at[UNTIL] != _NOT_YET and page >= at[UNTIL]):
        if not wraps:
            at[PAGE] = 0
        return NO_PAGE
    at[PAGE] = page
    return page


@compiled
def write_out(
    pages: Pages, at: NDArray[np.int64], at_most: int, bio_pages: int, page_ns: int, bios: NDArray[np.int64]
) -> int:  # fmt: skip
    """Put the dirty pages from ``at[PAGE]`` on that lie together on disk, up to *at_most*, under writeback.

    Returns how many; none if *bios* (rows of first block and pages) has no room.
    """
    page, rows = at[PAGE], at[BIOS]
    run = run_alike(pages, page, min(at_most, len(bios) * bio_pages))
    if rows + (run - 1) // bio_pages + 1 > len(bios):
        return 0
    start_writeback(pages, page, run)
    at[RANGES] += page != at[BEFORE] or bios[rows - 1, 0] + bios[rows - 1, 1] != pages.blocks[page]
    for first in range(0, run, bio_pages):
        bios[rows, 0] = pages.blocks[page] + first
        bios[rows, 1] = min(bio_pages, run - first)
        rows += 1
    at[BIOS] = rows
    at[ELAPSED] += run * page_ns
    at[WROTE] += run
    at[PAGES] += run
    at[PAGE] = at[BEFORE] = page + run
    return int(run)
