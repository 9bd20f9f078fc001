"""What the page walks of all filesystems have in common: where they go on, and their bios.

Stands for write_cache_pages, iomap_writepages and ext4_writepages without what is the filesystem's own.
Pure; compiled by Numba.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from wbsim.models.arrays.compiled import compiled
from wbsim.models.filesystems.walk_state import NOT_YET, Record
from wbsim.models.page_cache.pages import Pages, next_dirty, run_alike, start_writeback

NO_PAGE: Final = -1
DONE: Final = 0
"""A walk ended with the file or the budget."""
BLOCKED: Final = 1
"""The delayed page at ``at.page`` is to be given its block by the caller: it takes locks, or other
groups.
"""
GO_ON: Final = 2
"""The bios are to be submitted, or time is to pass, before it goes on."""


@compiled
def begin_step(at: Record) -> None:
    """Nothing of this step was done."""
    at.elapsed_ns = at.pages = at.bios = at.ranges = at.mapped_extents = at.joins = 0
    at.for_file_ns = 0
    at.before = NO_PAGE


@compiled
def next_page(pages: Pages, at: Record, wraps: bool) -> int:
    """Move to the next dirty page and return it; `NO_PAGE` at the walk's end.

    A walk that *wraps* goes on at page 0 once, and the next begins where it ended; another, at the end of the
    file, leaves the next page 0.
    """
    page = next_dirty(pages, at.page)
    if wraps and page < 0 and at.until == NOT_YET and at.start > 0:
        at.until, at.page = at.start, 0
        page = next_dirty(pages, 0)
    if page < 0 or (at.until != NOT_YET and page >= at.until):
        if not wraps:
            at.page = 0
        return NO_PAGE
    at.page = page
    return page


@compiled
def write_out(
    pages: Pages, at: Record, at_most: int, bio_pages: int, page_ns: int, bios: NDArray[np.int64]
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
