"""The pages of one file as arrays, for operations on many pages at once that Numba compiles.  Pure.

A page is in one of these states:

* hole: it has no block, and is clean;
* delayed: it is dirty, and has no block yet;
* reserved: it is part of a delayed extent, but clean (preallocation);
* mapped: it has a block, and is clean;
* dirty: it has a block, and is dirty.

A block may be held for a hole or a delayed page (ext4's preallocation of an inode).  The block of a page may
be unwritten: its extent was allocated without data, by fallocate(2) or by delayed allocation.  Such a block
reads as zeros until the data is on disk and the extent is converted.

A *page* is the number of a page in its file.  The functions take the file's `Pages`, or the arrays
``states``, ``blocks`` and ``size`` of these, which they change in place if at all.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wbsim.models.arrays.compiled import compiled

HOLE: Final = 0
DELAYED: Final = 1
MAPPED: Final = 2
DIRTY: Final = 3
RESERVED: Final = 4
HELD: Final = 8
"""The bit of a hole or a delayed page for which a block is held."""
UNWRITTEN: Final = 16
"""The bit of a page whose block is unwritten.  Without `MAPPED_BIT`, an ext4 page that is dirty and must be
mapped again, because its extent has to be split before the data is written."""
DIRTY_BIT: Final = 1
MAPPED_BIT: Final = 2
HAS_BLOCK: Final = MAPPED_BIT | UNWRITTEN
"""The bits of a page that has a block of its file."""


class Pages(NamedTuple):
    """The arrays of one file.

    * ``states``: the state of each page.
    * ``blocks``: the block of each page that has a block or a held block, relative to the file's base.
    * ``size``: one number, the end of the file (pages).
    """

    states: NDArray[np.uint8]
    blocks: NDArray[np.int32] | NDArray[np.int64]
    size: NDArray[np.int64]


@compiled
def next_dirty(pages: Pages, page: int) -> int:
    """Return the first dirty page from *page* on, before the file's end; -1: none.

    Only tests call it; runs use `dirty_page_from`.
    """
    states = pages.states
    for i in range(page, pages.size[0]):
        if states[i] & DIRTY_BIT:
            return i
    return -1


@compiled
def without_gap(pages: Pages, indices: NDArray[np.int64]) -> int:
    """Return how many of the writes to the pages *indices*, in this order, come before the first with a gap.

    A write at the file's end moves the end by a page; a write farther behind leaves a gap.
    """
    end = pages.size[0]
    for i in range(len(indices)):
        if indices[i] > end:
            return i
        if indices[i] == end:
            end += 1
    return len(indices)


@compiled
def is_delayed(state: int) -> bool:
    """Return whether a page in *state* belongs to a delayed extent; False for pages with a held block.

    >>> is_delayed(RESERVED), is_delayed(DELAYED | HELD), is_delayed(MAPPED)
    (True, False, False)
    """
    return state in (DELAYED, RESERVED)


@compiled
def delayed_extent(pages: Pages, page: int) -> tuple[int, int]:
    """Return the first page and the length (pages) of the delayed extent that contains *page*."""
    states = pages.states
    start = end = page
    while start > 0 and is_delayed(states[start - 1]):
        start -= 1
    while end < len(states) and is_delayed(states[end]):
        end += 1
    return start, end - start


@compiled
def extent_before(pages: Pages, page: int) -> int:
    """Return the last page before *page* that is not a hole; -1: all are holes.

    A hole for which a block is held does not count as a hole here.
    """
    for i in range(page - 1, -1, -1):
        if pages.states[i] != HOLE:
            return i
    return -1


@compiled
def map_blocks(pages: Pages, page: int, block: int, count: int, unwritten: int = 0) -> None:
    """Give the blocks from *block* on to *count* pages of a delayed extent from *page* on.

    Delayed pages become dirty with a block, reserved ones mapped.  *unwritten*: `UNWRITTEN` if the blocks
    are, else 0.  *block* counts from the file's base.
    """
    states, blocks = pages.states, pages.blocks
    for i in range(count):
        assert is_delayed(states[page + i])
        states[page + i] = (DIRTY if states[page + i] == DELAYED else MAPPED) | unwritten
        blocks[page + i] = block + i


@compiled
def hold_blocks(pages: Pages, page: int, block: int, count: int) -> None:
    """Hold the blocks from *block* on for *count* holes or delayed pages from *page* on (ext4).

    Their states get `HELD`.  *block* counts from the file's base.
    """
    states, blocks = pages.states, pages.blocks
    for i in range(count):
        assert not states[page + i] & (HAS_BLOCK | HELD)
        states[page + i] |= HELD
        blocks[page + i] = block + i


@compiled
def use_held(pages: Pages, page: int, count: int, unwritten: int = 0) -> None:
    """Give *count* delayed pages from *page* on their held blocks.

    *unwritten*: `UNWRITTEN` if the blocks are, else 0.
    """
    states = pages.states
    for i in range(page, page + count):
        assert states[i] == DELAYED | HELD
        states[i] = DIRTY | unwritten


@compiled
def place_unwritten(pages: Pages, page: int, block: int, count: int) -> None:
    """Give the unwritten blocks from *block* on to *count* holes from *page* on, which are mapped then.

    No block may be held for them.  *block* counts from the file's base.
    """
    states, blocks = pages.states, pages.blocks
    for i in range(count):
        assert states[page + i] == HOLE
        states[page + i] = MAPPED | UNWRITTEN
        blocks[page + i] = block + i


@compiled
def mark_written(states: NDArray[np.uint8], page: int, count: int) -> None:
    """Make the blocks of *count* pages from *page* on written ones, as far as they are still mapped."""
    for i in range(page, page + count):
        if states[i] & MAPPED_BIT:
            states[i] &= ~np.uint8(UNWRITTEN)


@compiled
def hole_from(states: NDArray[np.uint8], page: int, end: int) -> tuple[int, int]:
    """Return the first hole from *page* on and before *end*, and the number of holes in its run up to *end*.

    (*end*, 0): there is no hole.  A hole for which a block is held counts.
    """
    first = page
    while first < end and states[first] & ~np.uint8(HELD) != HOLE:
        first += 1
    behind = first
    while behind < end and states[behind] & ~np.uint8(HELD) == HOLE:
        behind += 1
    return first, behind - first


@compiled
def run_alike(pages: Pages, page: int, at_most: int) -> int:
    """Return how many pages from the dirty *page* on have the same state, at most *at_most*.

    If the pages have blocks, or held ones, these must be contiguous, too.
    """
    states, blocks = pages.states, pages.blocks
    run = 1
    while (
        run < at_most
        and page + run < len(states)
        and states[page + run] == states[page]
        and (states[page] == DELAYED or blocks[page + run] == blocks[page] + run)
    ):
        run += 1
    return run


@compiled
def awaiting_run(pages: Pages, page: int, at_most: int) -> int:
    """Return how many pages in a row from *page* on are dirty and wait to be mapped, at most *at_most*.

    0: *page* does not wait.  A held block is no block.
    """
    run = 0
    while run < at_most and page + run < len(pages.states):
        if pages.states[page + run] & (DELAYED | MAPPED) != DELAYED:
            break
        run += 1
    return run


@compiled
def unplaced_around(pages: Pages, page: int, start: int, end: int) -> tuple[int, int]:
    """Return the run around *page*, from *start* on and before *end*, without blocks and held blocks.

    The result is the first page of the run and the page behind the last.
    """
    states = pages.states
    first, stop = page, page + 1
    while first > start and not states[first - 1] & (HAS_BLOCK | HELD):
        first -= 1
    while stop < min(end, len(states)) and not states[stop] & (HAS_BLOCK | HELD):
        stop += 1
    return first, stop


@compiled
def dirty_page_from(states: NDArray[np.uint8], size: NDArray[np.int64], page: int) -> int:
    """Return the first dirty page from *page* on, or -1, like `next_dirty`; this function is cheaper to call.

    A call with two arrays takes 0.3 us, one with `Pages` 2 us.
    """
    for i in range(page, size[0]):
        if states[i] & DIRTY_BIT:
            return i
    return -1


@compiled
def dirty_pages_from(
    states: NDArray[np.uint8], size: NDArray[np.int64], page: int, batch: NDArray[np.int64]
) -> int:
    """Set *batch* to the first dirty pages from *page* on, as many as it holds; return their number.

    Pages behind the file's end do not count.
    """
    number = 0
    for i in range(page, size[0]):
        if states[i] & DIRTY_BIT:
            batch[number] = i
            number += 1
            if number == len(batch):
                break
    return number


@compiled
def run_from(states: NDArray[np.uint8], blocks: NDArray[Any], page: int, at_most: int) -> int:
    """Return how many pages from the dirty *page* on have its state, and are contiguous on disk.

    At most *at_most*; nothing changes.
    """
    run = 1
    while run < at_most and page + run < len(states) and states[page + run] == states[page]:
        if blocks[page + run] != blocks[page] + run:
            break
        run += 1
    return run


@compiled
def take_run(states: NDArray[np.uint8], blocks: NDArray[Any], page: int, at_most: int) -> int:
    """Put pages from *page* on, of its state and contiguous on disk, under writeback: they are clean then.

    Return their number, at most *at_most*, which the caller counts; 0 if *page* is not dirty or has no block.
    """
    run, state = 0, states[page]
    if state & DIRTY != DIRTY:
        return 0
    while run < at_most and page + run < len(states) and states[page + run] == state:
        if blocks[page + run] != blocks[page] + run:
            break
        states[page + run] = state & ~np.uint8(DIRTY_BIT)
        run += 1
    return run


@compiled
def last_used(pages: Pages) -> int:
    """Return the last page that is not a hole, even behind the file's end, as `extent_before`; -1: none."""
    return extent_before(pages, len(pages.states))


@compiled
def _starts_extent(pages: Pages, page: int) -> bool:
    states, blocks = pages.states, pages.blocks
    if not states[page] & HAS_BLOCK:
        return False
    return (
        page == 0
        or not states[page - 1] & HAS_BLOCK
        or blocks[page] != blocks[page - 1] + 1
        or (states[page] ^ states[page - 1]) & UNWRITTEN != 0
        or page == pages.size[0]
    )


@compiled
def count_extents(pages: Pages, first: int, end: int) -> int:
    """Return the number of extents of the file that start from page *first* on and before page *end*."""
    count = 0
    for page in range(first, end):
        count += _starts_extent(pages, page)
    return count


@compiled
def fill_extents(pages: Pages, first: int, end: int, table: NDArray[np.int64]) -> None:
    """Write the extents that `count_extents` counts into the rows of *table*, which must be as many.

    A row has the first page, the first block (from the file's base), and the number of pages before *end*.
    """
    row = -1
    for page in range(first, end):
        if _starts_extent(pages, page):
            row += 1
            table[row, 0], table[row, 1], table[row, 2] = page, pages.blocks[page], 0
        if pages.states[page] & HAS_BLOCK:
            table[row, 2] += 1
