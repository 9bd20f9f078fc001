"""The place of file pages on XFS: preallocation, the target of an allocation, and the allocation itself.

Stands for xfs_iomap_prealloc_size, xfs_file_write_zero_eof, xfs_bmap_adjacent and xfs_bmap_btalloc.  A block
has the size of a page.  The block numbers of a file count from its base, the first block of the group of its
inode.  Pure: no clock, no random numbers; compiled by Numba.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wbsim.models.arrays.compiled import compiled
from wbsim.models.filesystems.xfs.free_extents import (
    Arrays,
    Spaces,
    needs_search,
    spaces_of,
    take_aligned,
    take_exactly,
    take_smallest,
)
from wbsim.models.filesystems.xfs.spec import XfsRules
from wbsim.models.page_cache.pages import (
    DELAYED,
    DIRTY_BIT,
    HOLE,
    MAPPED,
    MAPPED_BIT,
    RESERVED,
    Pages,
    delayed_extent,
    extent_before,
    is_delayed,
    map_blocks,
)

GAP_UNITS: Final = 4  # XFS_ALLOC_GAP_UNITS
MAX_EXTENT_PAGES: Final = (1 << 21) - 1  # XFS_MAX_BMBT_EXTLEN
NOWHERE: Final = -(1 << 62)


class Prealloc(NamedTuple):
    """The reservation of a growing file.

    * ``unit``: allocsize; without this mount option, 16 (pages).
    * ``rule``: ``prealloc`` of `XfsRules`: 0 is fixed, 1 is size, 2 is preceding.  With allocsize, 0.
    * ``zeroing_converts`` and ``whole_calls``: see `XfsRules`.
    * ``stripe``: the stripe unit (pages); 1: none.  In a file of at least a unit, a reservation ends at a
      multiple of it.
    * ``percent``: a hundredth of the filesystem (blocks).  While fewer than five of them are unclaimed,
      reservations of the rules 1 and 2 are smaller, but not below ``unit`` (m_low_space).
    """

    unit: int
    rule: int
    zeroing_converts: bool
    stripe: int
    whole_calls: bool
    percent: int = 0


def prealloc(
    rules: XfsRules, allocsize_pages: int | None, stripe_pages: int = 1, percent: int = 0
) -> Prealloc:
    """Return the rule for reservations behind growing files, from *rules* or from the mount option allocsize.

    *allocsize_pages*: None without this mount option.  *stripe_pages* and *percent* (blocks): see `Prealloc`;
    with a *percent* of 0, a reservation shrinks only if it would take all blocks that are left.
    """
    if allocsize_pages is not None:
        return Prealloc(allocsize_pages, 0, rules.zeroing_converts, stripe_pages, rules.whole_calls, percent)
    rule = ("fixed", "size", "preceding").index(rules.prealloc)
    return Prealloc(16, rule, rules.zeroing_converts, stripe_pages, rules.whole_calls, percent)


@compiled
def _squeezed(reservation: int, unclaimed: int, rule: Prealloc) -> int:
    """Return what remains of a *reservation* (pages) while *unclaimed* blocks are left."""
    if unclaimed < 5 * rule.percent:
        # a quarter below 5 %, half of that for each percent less
        reservation >>= 6 - unclaimed // rule.percent
    while reservation and reservation >= unclaimed:
        reservation >>= 4
    return max(reservation, rule.unit)


@compiled
def _reserved_end(pages: Pages, page: int, call_pages: int, rule: Prealloc, unclaimed: int) -> int:
    """Return the page where the reservation of a write of *call_pages* that appends *page* ends.

    *unclaimed* blocks of the filesystem are left.
    """
    size = pages.size[0]
    reservation = rule.unit
    if rule.rule > 0 and size < rule.unit:
        return page + 1
    if rule.rule == 1:
        while 2 * reservation <= min(size, MAX_EXTENT_PAGES):
            reservation *= 2
    elif rule.rule == 2 and size >= rule.stripe and page > 0 and pages.states[page - 1] != HOLE:
        doubled = 2 * _preceding(pages, page)
        if doubled > MAX_EXTENT_PAGES:
            doubled = page
        while 2 * reservation <= min(doubled, MAX_EXTENT_PAGES + 1):
            reservation *= 2
    if rule.rule > 0:
        reservation = _squeezed(reservation, unclaimed, rule)
    last = page // call_pages * call_pages + call_pages - 1 if rule.whole_calls else page
    end = last // rule.unit * rule.unit + reservation
    if size >= rule.stripe:  # xfs_eof_alignment
        end = (end + rule.stripe - 1) // rule.stripe * rule.stripe
    return end


@compiled
def _preceding(pages: Pages, page: int) -> int:
    """Return the pages in front of *page* that lie together on disk, or that are in one delayed extent."""
    states, blocks = pages.states, pages.blocks
    start = page - 1
    if is_delayed(states[start]):
        return page - delayed_extent(pages, start)[0]
    while start > 0 and states[start - 1] & MAPPED and blocks[start - 1] == blocks[start] - 1:
        start -= 1
        if page - start > MAX_EXTENT_PAGES:
            break
    return page - start


@compiled
def write_page(
    pages: Pages, page: int, call_pages: int, rule: Prealloc, unclaimed: int
) -> tuple[int, int]:  # fmt: skip
    """Make *page* dirty, by a write(2) of *call_pages* pages, while *unclaimed* blocks are left.

    With ``whole_calls``, that write(2) is taken to begin at a multiple of *call_pages*.  *pages* changes in
    place, with the file's size, and its arrays must have room for *page*.  A growing file may reserve pages
    behind *page*, as *rule* says; a reservation for which too few blocks are left is dropped.

    Returns 1 if the page was clean, 0 if it was dirty already; and the number of blocks that the page and the
    reservation claim.  A page that is reserved or has a block claims none.
    The result is (-1, 0), and nothing changes, if *page* is a hole and no block is left.  The same holds if
    *page* leaves a gap behind the old end, and *rule* wants the delayed extent there converted first.
    """
    states, size = pages.states, pages.size[0]
    if rule.zeroing_converts and page > size and is_delayed(states[size]):
        return -1, 0
    state, claims = states[page], 0
    if state == HOLE:
        if unclaimed < 1:
            return -1, 0
        claims = 1
        if page >= size:
            end = min(_reserved_end(pages, page, call_pages, rule, unclaimed), len(states))
            if end - page <= unclaimed:  # a reservation that does not fit is left out
                for i in range(page + 1, end):
                    if states[i] != HOLE:
                        break
                    states[i] = RESERVED
                    claims += 1
    if state in (HOLE, RESERVED):
        states[page] = DELAYED
    elif state & MAPPED_BIT:
        states[page] = state | DIRTY_BIT
    pages.size[0] = max(size, page + 1)
    return 1 - (state & DIRTY_BIT), claims


@compiled
def write_all(
    pages: Pages, indices: NDArray[np.int64], call_pages: int, rule: Prealloc, end: int, unclaimed: int
) -> tuple[int, int, int]:  # fmt: skip
    """Make the pages at *indices* dirty, as `write_page` does, *call_pages* pages with each write(2).

    *unclaimed* blocks of the filesystem are left, and *rule* is the reservation of a growing file.  Returns
    the number of pages that were written, how many of them were clean before, and how many blocks they claim.
    The claims include reservations; the caller subtracts them from the unclaimed blocks.
    The function stops at a page for which `write_page` needs a conversion or a free block first.  It also
    stops at a page from *end* on (``end`` of `FilePages`), so that the caller makes room and goes on.
    """
    clean_before = claimed = 0
    for i in range(len(indices)):
        if indices[i] >= end:
            return i, clean_before, claimed
        was_clean, claims = write_page(pages, indices[i], call_pages, rule, unclaimed - claimed)
        if was_clean < 0:
            return i, clean_before, claimed
        clean_before += was_clean
        claimed += claims
    return len(indices), clean_before, claimed


@compiled
def target_of(pages: Pages, page: int, group_blocks: int) -> int:
    """Return the block where the delayed extent that contains *page* should begin, or `NOWHERE`.

    *page* must be delayed or reserved.  The block counts from the file's base, and is below 0 in a group
    before the file's.  A group has *group_blocks* blocks.  The block lies behind the extent in front, in the
    same group.  A gap between the extents is kept on disk if it fits there and is at
    most `GAP_UNITS` times as long as the delayed extent.
    `NOWHERE`: holes aside, no page lies in front, or that page has no block, or its group ends there.
    The extent behind does not count: for a delayed extent, it is the extent itself (xfs_bmap_adjacent).
    """
    start, length = delayed_extent(pages, page)
    last = extent_before(pages, start)
    if last < 0 or not pages.states[last] & MAPPED:
        return NOWHERE
    gap = start - last - 1
    block = pages.blocks[last]
    target = block + 1
    if gap <= GAP_UNITS * length and block // group_blocks == (target + gap) // group_blocks:
        return int(target + gap)
    return int(target) if block // group_blocks == target // group_blocks else NOWHERE


# The indices of a plan.  `plan_extent` sets the first three.  FIRST is the first block of the locked group,
# counted from the file's base.  STRIPE is the stripe unit (pages).  BITS is UNWRITTEN if blocks are allocated
# as unwritten, else 0.  `give_blocks` sets SEARCHED.
LENGTH, GROUP, NEAR, FIRST, STRIPE, BITS, SEARCHED = range(7)


@compiled
def plan_extent(
    states: NDArray[np.uint8], blocks: NDArray[Any], size: NDArray[np.int64], page: int, group_blocks: int,
    plan: NDArray[np.int64],
) -> None:  # fmt: skip
    """Set entries of *plan* for the delayed extent that holds *page* (xfs_bmap_btalloc).

    *states*, *blocks* and *size* are the arrays of `Pages`, and a group has *group_blocks* blocks.  The seven
    entries of *plan* have the indices ``LENGTH`` to ``SEARCHED``; only these three change:

    Entry ``LENGTH`` is the number of pages, at most `MAX_EXTENT_PAGES`, 0 if *page* is neither delayed nor
    reserved.  ``GROUP`` is the wanted group, counted from the file's own, and so below 0 for one before.
    ``NEAR`` is the wanted block, counted from the start of that group.  Both are 0 if `target_of` returns
    `NOWHERE`.
    """
    pages = Pages(states, blocks, size)
    plan[LENGTH] = plan[GROUP] = plan[NEAR] = 0
    if not is_delayed(states[page]):
        return
    plan[LENGTH] = min(delayed_extent(pages, page)[1], MAX_EXTENT_PAGES)
    target = target_of(pages, page, group_blocks)
    if target != NOWHERE:
        plan[GROUP] = target // group_blocks
        plan[NEAR] = target - plan[GROUP] * group_blocks


@compiled
def allocate(
    pages: Pages, spaces: Spaces, group: int, page: int, target: int, first_block: int, stripe: int = 1,
    unwritten: int = 0,
) -> bool:  # fmt: skip
    """Give the delayed extent around *page* free blocks of *group*, which must have at least one.

    Return whether the allocation searches both trees of free extents (`needs_search`); False for `NOWHERE`.
    *pages* and *spaces* change in place.

    *group* is a number, and the group begins at *first_block*, which counts from the file's base.
    *target* counts from the start of the group.  The blocks lie near *target* or, for `NOWHERE`, in the
    smallest free extent that has room.  If too few blocks lie together, only the first pages of the extent
    get blocks, and *page* may still be delayed.  The caller has made room in *spaces* for one change
    (`FreeSpace.with_room`), and owns the AGF.  Claims do not change in ``unclaimed``: the write made them.

    At the end of a file, an extent of at least a *stripe* unit (pages; 1: none) begins exactly at *target*.
    If those blocks are taken, and at the beginning of a file, the extent begins at a multiple of the unit
    (`take_aligned`).  For `NOWHERE`, the stripe does not count.  *unwritten*: see `map_blocks`.
    """
    start, length = delayed_extent(pages, page)
    length = min(length, MAX_EXTENT_PAGES)
    searches = target != NOWHERE and needs_search(spaces, group, length)
    striped = stripe > 1 and length >= stripe and start + length >= pages.size[0]
    if target == NOWHERE:
        block, size = take_smallest(spaces, group, length)
    elif striped and start > 0 and take_exactly(spaces, group, target, length):
        block, size = target, length
    else:
        block, size = take_aligned(spaces, group, target, length, stripe if striped else 1)
    assert size > 0
    map_blocks(pages, start, first_block + block, size, unwritten)
    return searches


@compiled
def give_blocks(
    states: NDArray[np.uint8], blocks: NDArray[Any], size: NDArray[np.int64], free: Arrays, page: int,
    plan: NDArray[np.int64],
) -> None:  # fmt: skip
    """Give the delayed extent around *page* blocks out of *free*, as *plan* says; see `allocate`.

    *states*, *blocks* and *size* are the arrays of `Pages`; *free* is a result of
    `FreeSpace.arrays_with_room`.

    Entry ``GROUP`` of *plan* is the number of the group in the filesystem.  ``NEAR``, ``FIRST``, ``STRIPE``
    and ``BITS`` are *target*, *first_block*, *stripe* and *unwritten* of `allocate`.  The caller sets
    these five entries.  ``SEARCHED`` becomes 1 if the allocation searched both trees of free extents,
    otherwise 0.
    """
    plan[SEARCHED] = allocate(
        Pages(states, blocks, size), spaces_of(free), plan[GROUP], page, plan[NEAR], plan[FIRST],
        plan[STRIPE], plan[BITS],
    )  # fmt: skip
