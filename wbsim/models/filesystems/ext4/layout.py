"""The place of file pages on ext4: the blocks that are held for a file around a request.

Stands for ext4_mb_normalize_request and ext4_mb_new_inode_pa.  Pure: no clock, no random numbers.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from wbsim.models.arrays.compiled import compiled
from wbsim.models.page_cache.pages import DELAYED, HAS_BLOCK, MAPPED, UNWRITTEN, Pages, unplaced_around

MAX_REQUEST_PAGES: Final = 2_048  # MAX_WRITEPAGES_EXTENT_LEN
MAX_UNWRITTEN_PAGES: Final = 32_767  # EXT_UNWRITTEN_MAX_LEN
STREAM_REQUEST_PAGES: Final = 16  # MB_DEFAULT_STREAM_THRESHOLD
GROUP_PREALLOC_PAGES: Final = 512  # MB_DEFAULT_GROUP_PREALLOC
_SMALL_WINDOWS: Final = tuple(4 << i for i in range(7))  # 16 KiB to 1 MiB: the complete file
_LARGE_WINDOWS: Final = (
    (512, 1_024),
    (1_024, 2_048),
)  # 2 MiB in files up to 4 MiB, 4 MiB up to 8 MiB; in pages
LARGEST_WINDOW: Final = 2_048


@compiled
def write_all(pages: Pages, indices: NDArray[np.int64], end: int, unclaimed: int) -> tuple[int, int, int]:
    """Write to the pages at *indices*, up to the first that lies at page *end* or behind it.

    *unclaimed* is the number of unclaimed blocks; the writes also end at a page for which none is left.
    Return the number of pages that were written, how many of them were clean before, and how many blocks they
    claim.  The caller subtracts the claims from `Space.unclaimed`.  *pages* changes in place.

    A clean page with an unwritten block must be mapped again before it is written back.
    """
    were_clean = claims = 0
    for done in range(len(indices)):
        i = indices[done]
        if i >= end:
            return done, were_clean, claims
        state = pages.states[i]
        if not state & (DELAYED | HAS_BLOCK):
            if (
                claims >= unclaimed
            ):  # fewer than no block is left when the metadata has taken some of those it keeps
                return done, were_clean, claims
            claims += 1
        were_clean += not state & DELAYED
        pages.states[i] = DELAYED | UNWRITTEN if state == MAPPED | UNWRITTEN else state | DELAYED
        pages.size[0] = max(pages.size[0], i + 1)
    return len(indices), were_clean, claims


def window(pages: Pages, page: int, count: int) -> tuple[int, int]:
    """Return the window for a request of *count* pages from *page* on: its first page, the page behind it.

    A file up to 1 MiB has one window, rounded up to a power of two.  A larger file is cut into windows of 2
    (up to 4 MiB), 4 (up to 8 MiB) or 8 MiB.  The request counts as part of the file.  The result is the run
    around *page*, within its window, of pages with neither a block nor a held one.
    """
    size = max(page + count, int(pages.size[0]))
    for whole in _SMALL_WINDOWS:
        if size <= whole:
            start, length = 0, whole
            break
    else:
        length = next((length for length, up_to in _LARGE_WINDOWS if size <= up_to), LARGEST_WINDOW)
        start = page // length * length
    first, end = unplaced_around(pages, page, start, start + length)
    return int(first), int(end)


def placed_in(start: int, end: int, page: int, count: int, length: int) -> int:
    """Return the first of the *length* pages that get the *length* blocks held for a window.

    The window is pages *start* to *end* (exclusive), and may have more pages than *length*.  Its last pages
    get the blocks if *page*, the first page of the request, is among these.  Its first pages get the blocks
    if these include *count* pages from *page* on.  Otherwise the pages from *page* on get the blocks.

    >>> placed_in(0, 512, 300, 8, 256), placed_in(0, 512, 16, 8, 256), placed_in(0, 512, 252, 8, 256)
    (256, 0, 252)
    """
    if page >= end - length:
        return end - length
    return start if page + count <= start + length else page
