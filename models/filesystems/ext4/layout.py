"""What ext4 decides about the place of file pages: how much it sets aside around a request, and the page
walk.

Stands for ext4_mb_normalize_request, ext4_mb_new_inode_pa and ext4_do_writepages (ext4_da_writepages).  Pure:
no clock of its own (times are given and summed), no dice; the walk is compiled by Numba.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wbsim.models.arrays.compiled import compiled
from wbsim.models.filesystems.lock_table import FAR, Locks, give_inode, take_inode
from wbsim.models.filesystems.page_walk import BLOCKED, DONE, GO_ON, NO_PAGE, begin_step, next_page, write_out
from wbsim.models.filesystems.walk_state import Record
from wbsim.models.page_cache.pages import DELAYED, HELD, MAPPED, Pages, run_alike, unplaced_around, use_held

MAX_REQUEST_PAGES: Final = 2_048  # MAX_WRITEPAGES_EXTENT_LEN
STREAM_REQUEST_PAGES: Final = 16  # MB_DEFAULT_STREAM_THRESHOLD
GROUP_PREALLOC_PAGES: Final = 512  # MB_DEFAULT_GROUP_PREALLOC
ROOT_EXTENTS: Final = 4
LEAF_EXTENTS: Final = 340
"""What the inode, and one block of a file's tree, hold."""
_SMALL_WINDOWS: Final = tuple(4 << i for i in range(7))  # 16 KiB to 1 MiB: the whole file
_LARGE_WINDOWS: Final = (
    (512, 1_024),
    (1_024, 2_048),
)  # 2 MiB in files up to 4 MiB, 4 MiB up to 8 MiB; in pages
LARGEST_WINDOW: Final = 2_048


class Terms(NamedTuple):
    """What a walk goes by: the row of the inode's lock, times (ns) and when it goes on, the longest bio
    (pages).
    """

    row: int
    map_ns: int
    page_ns: int
    bio_pages: int
    now_ns: int


@compiled
def write_all(pages: Pages, indices: NDArray[np.int64], end: int) -> tuple[int, int]:
    """Write to the pages at *indices*, up to the first from *end* on; how many, and how many of them were
    clean.
    """
    were_clean = 0
    for done in range(len(indices)):
        i = indices[done]
        if i >= end:
            return done, were_clean
        were_clean += not pages.states[i] & DELAYED
        pages.states[i] |= DELAYED
        pages.size[0] = max(pages.size[0], i + 1)
    return len(indices), were_clean


def window(pages: Pages, page: int, count: int) -> tuple[int, int]:
    """What is set aside for a request of *count* pages from *page* on: first page, and the one behind the
    last.

    A file below 1 MiB is rounded up as a whole; a larger one is cut into windows of 2, 4 or 8 MiB.  Pages
    that have a block or one held for them are no part of it.
    """
    size = max(page + count, int(pages.size[0]))
    for whole in _SMALL_WINDOWS:
        if size <= whole:
            start, length = 0, whole
            break
    else:
        length = next((length for length, up_to in _LARGE_WINDOWS if size <= up_to), LARGEST_WINDOW)
        start = page // length * length
    first, behind = unplaced_around(pages, page, start, start + length)
    return int(first), int(behind)


def placed_in(start: int, end: int, page: int, count: int, got: int) -> int:
    """The first of the *got* pages held, fewer than the window's (*start* to *end*): its last ones if *page*
    is among them, its first if they cover *count* pages from *page* on, else those from *page* on.
    """
    if page >= end - got:
        return end - got
    return start if page + count <= start + got else page


@compiled
def place(pages: Pages, at: Record, page: int, count: int) -> None:
    """*count* delayed pages from *page* on get the blocks held for them, as an unwritten extent: it joins the
    one before it at once if that is as new, and written neighbours later.
    """
    at_once = 1 if page == at.newest and pages.blocks[page - 1] == pages.blocks[page] - 1 else 0
    at.joins += 1 - use_held(pages, page, count) - at_once
    at.room -= 1 - at_once
    at.newest = page + count


@compiled
def place_now(pages: Pages, record: NDArray[Any], page: int, count: int) -> None:
    """`place`, between two steps of a walk."""
    place(pages, record[0], page, count)


@compiled
def walk(
    pages: Pages, locks: Locks, terms: Terms, record: NDArray[Any], horizon_ns: int,
    dice: NDArray[np.float64], bios: NDArray[np.int64],
) -> int:  # fmt: skip
    """Write back from ``at.page`` on, until what was begun before *horizon_ns* from now is done; why it
    stopped.

    Delayed pages with blocks held for them get these, as long as the leaf that the step begins in has room
    for their extents; for others the caller has to find some.
    """
    at = record[0]
    begin_step(at)
    first = at.page
    while at.left > 0:
        if at.elapsed_ns > horizon_ns:
            return GO_ON
        page = next_page(pages, at, True)
        if page == NO_PAGE:
            return DONE
        in_leaf = at.room > 0 and first <= page < at.behind
        if pages.states[page] == DELAYED | HELD and in_leaf and at.dice < len(dice):
            asks_ns = terms.now_ns + at.elapsed_ns
            from_ns = take_inode(locks, terms.row, asks_ns)
            if from_ns == FAR:
                return BLOCKED
            ends_ns = from_ns + int(terms.map_ns * dice[at.dice])
            give_inode(locks, terms.row, asks_ns, from_ns, ends_ns)
            at.for_file_ns += from_ns - asks_ns
            at.elapsed_ns += ends_ns - asks_ns
            at.dice += 1
            at.mapped_extents += 1
            place(pages, at, page, run_alike(pages, page, min(at.left, MAX_REQUEST_PAGES)))
            continue
        if not pages.states[page] & MAPPED:
            return BLOCKED
        run = write_out(pages, at, at.left, terms.bio_pages, terms.page_ns, bios)
        if not run:
            return GO_ON
        at.left -= run
    return DONE
