"""What XFS decides about the place of file pages: preallocation, the target of an allocation, the page walk.

Stands for xfs_iomap_prealloc_size, xfs_file_write_zero_eof, xfs_bmap_adjacent, xfs_bmapi_convert_delalloc and
the walks of write_cache_pages (to 5.x, with XFS's clustering) and iomap_writepages.  Pure: no clock of its
own (times are given and summed), no dice; compiled by Numba.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wbsim.models.arrays.compiled import compiled
from wbsim.models.filesystems.lock_table import (
    FAR,
    NO_ROW,
    UNTIL,
    Locks,
    advance,
    give_inode,
    hold,
    is_free,
    take_inode,
)
from wbsim.models.filesystems.page_walk import BLOCKED, DONE, GO_ON, NO_PAGE, begin_step, next_page, write_out
from wbsim.models.filesystems.walk_state import Record
from wbsim.models.filesystems.xfs.free_extents import (
    Spaces,
    take_aligned,
    take_exactly,
    take_smallest,
)
from wbsim.models.filesystems.xfs.spec import XfsRules
from wbsim.models.page_cache.pages import (
    DELAYED,
    DIRTY,
    HOLE,
    MAPPED,
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
    """How far a growing file reserves: ``unit`` is allocsize (pages), the rule 0 fixed, 1 size, 2 preceding;
    ``stripe`` is the stripe unit (pages; 1 is none); ``whole_calls``: see `XfsRules`.
    """

    unit: int
    rule: int
    zeroing_converts: bool
    stripe: int
    whole_calls: bool


def prealloc(rules: XfsRules, allocsize_pages: int | None, stripe_pages: int = 1) -> Prealloc:
    """The values of *rules*, or of a mount with allocsize."""
    if allocsize_pages is not None:
        return Prealloc(allocsize_pages, 0, rules.zeroing_converts, stripe_pages, rules.whole_calls)
    rule = ("fixed", "size", "preceding").index(rules.prealloc)
    return Prealloc(16, rule, rules.zeroing_converts, stripe_pages, rules.whole_calls)


@compiled
def _reserved_end(pages: Pages, page: int, call_pages: int, rule: Prealloc) -> int:
    """Where the reservation of a write of *call_pages* that appends *page* ends (pages)."""
    size = pages.size[0]
    ahead = rule.unit
    if rule.rule > 0 and size < rule.unit:
        return page + 1
    if rule.rule == 1:
        while 2 * ahead <= min(size, MAX_EXTENT_PAGES):
            ahead *= 2
    elif rule.rule == 2 and size >= rule.stripe and page > 0 and pages.states[page - 1] != HOLE:
        doubled = 2 * _preceding(pages, page)
        if doubled > MAX_EXTENT_PAGES:
            doubled = page
        while 2 * ahead <= min(doubled, MAX_EXTENT_PAGES + 1):
            ahead *= 2
    last = page // call_pages * call_pages + call_pages - 1 if rule.whole_calls else page
    end = last // rule.unit * rule.unit + ahead
    if size >= rule.stripe:  # xfs_eof_alignment
        end = (end + rule.stripe - 1) // rule.stripe * rule.stripe
    return end


@compiled
def _preceding(pages: Pages, page: int) -> int:
    """The length of the extents that lead up to *page* and lie together on disk, or of the delayed one."""
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
def write_page(pages: Pages, page: int, call_pages: int, rule: Prealloc) -> int:
    """*page* is written to: 1 if it was clean, 0 if it was dirty already.

    -1, and nothing done, if the delayed extent at the end of the file has to be converted first.
    """
    states, size = pages.states, pages.size[0]
    if rule.zeroing_converts and page > size and is_delayed(states[size]):
        return -1
    before = states[page]
    if before == HOLE and page >= size:
        for i in range(page + 1, min(_reserved_end(pages, page, call_pages, rule), len(states))):
            if states[i] != HOLE:
                break
            states[i] = RESERVED
    if before in (HOLE, RESERVED):
        states[page] = DELAYED
    elif before == MAPPED:
        states[page] = DIRTY
    pages.size[0] = max(size, page + 1)
    return 0 if before in (DELAYED, DIRTY) else 1


@compiled
def write_all(
    pages: Pages, indices: NDArray[np.int64], call_pages: int, rule: Prealloc, end: int
) -> tuple[int, int]:  # fmt: skip
    """Write to the pages at *indices*, *call_pages* with each write(2).

    Returns how many of these were done, and how many pages were clean before.

    Fewer than all are done where `write_page` wants a conversion first, and from page *end* on there is no
    room.
    """
    clean_before = 0
    for i in range(len(indices)):
        if indices[i] >= end:
            return i, clean_before
        was_clean = write_page(pages, indices[i], call_pages, rule)
        if was_clean < 0:
            return i, clean_before
        clean_before += was_clean
    return len(indices), clean_before


@compiled
def target_of(pages: Pages, page: int, group_blocks: int) -> int:
    """xfs_bmap_adjacent for the delayed extent at *page*: a block from the file's base or `NOWHERE`.

    Behind the extent in front, with the gap kept on disk if it is not too wide.  The one behind does not
    count: for a delayed extent, it is the extent itself.
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


class Terms(NamedTuple):
    """What a walk goes by.  ``row``: that of the inode's lock.

    Times (ns): of an allocation, of its part of reverse mapping, of its commit, of a page; the longest bio
    (pages), whether nr_to_write counts calls, whether it wraps, the stripe unit and the length of a group
    (pages).  The file's own group, and how far from it others may be taken from; the one whose lock the
    flusher has waited for, for the first transaction, or `NO_ROW`.  When the walk goes on (ns).
    """

    row: int

    map_ns: int
    rmap_ns: int
    commit_ns: int
    page_ns: int
    bio_pages: int
    calls_x4: bool
    wraps: bool
    stripe: int
    group_blocks: int
    home: int
    reach: int
    granted: int
    now_ns: int


class Ground(NamedTuple):
    """What the walks of one filesystem share: free space, locks, how many allocations each group had."""

    spaces: Spaces
    locks: Locks
    taken: NDArray[np.int64]


@compiled
def allocate(
    pages: Pages, spaces: Spaces, group: int, page: int, near: int, first_block: int, stripe: int = 1
) -> None:
    """Give the delayed extent around *page* blocks of *group*, which lies from *first_block* on, or as many
    as lie together: near *near* or, if that is `NOWHERE`, where the smallest free extent has room.

    At the end of a file, an extent of a *stripe* unit (pages) or more goes on exactly behind what is in front
    of it or, where that is taken and at the beginning of a file, to the next multiple of the unit.
    """
    start, length = delayed_extent(pages, page)
    length = min(length, MAX_EXTENT_PAGES)
    striped = stripe > 1 and length >= stripe and start + length >= pages.size[0]
    if near == NOWHERE:
        block, got = take_smallest(spaces, group, length)
    elif striped and start > 0 and take_exactly(spaces, group, near, length):
        block, got = near, length
    else:
        block, got = take_aligned(spaces, group, near, length, stripe if striped else 1)
    assert got > 0
    map_blocks(pages, start, first_block + block, got)


@compiled
def walk(
    pages: Pages, ground: Ground, terms: Terms, record: NDArray[Any], horizon_ns: int,
    dice: NDArray[np.float64], bios: NDArray[np.int64],
) -> int:  # fmt: skip
    """Write back from ``at.page`` on, until what was begun before *horizon_ns* from now is done; why it
    stopped.

    Each bio is a row of *bios*: its first block and its pages.
    """
    at = record[0]
    begin_step(at)
    while at.calls > 0 and (terms.calls_x4 or at.left > 0):
        if at.elapsed_ns > horizon_ns or at.dice == len(dice):
            return GO_ON
        page = next_page(pages, at, terms.wraps)
        if page == NO_PAGE:
            return DONE
        if pages.states[page] == DELAYED:
            if not _transaction(pages, ground, terms, at, dice):
                return BLOCKED
            continue
        run = write_out(pages, at, _call_pages(terms, at), terms.bio_pages, terms.page_ns, bios)
        if not run:
            return GO_ON
        if terms.calls_x4:
            at.left = 4 * at.left - (run - 1)
            at.calls -= 1
        else:
            at.left -= run
    return DONE


@compiled
def allocate_at(
    pages: Pages, ground: Ground, terms: Terms, record: NDArray[Any], dice: NDArray[np.float64]
) -> int:  # fmt: skip
    """Give the delayed extent at ``at.page`` alone its blocks, if there still is one."""
    at = record[0]
    begin_step(at)
    if not is_delayed(pages.states[at.page]):
        return DONE
    return DONE if _transaction(pages, ground, terms, at, dice) else BLOCKED


@compiled
def _call_pages(terms: Terms, at: Record) -> int:
    """How many pages the next call of writepage may write with what it clusters."""
    if terms.calls_x4:
        return int(1 + max(4 * at.left, 1))
    return int(min(at.left, terms.bio_pages))


@compiled
def _transaction(
    pages: Pages, ground: Ground, terms: Terms, at: Record, dice: NDArray[np.float64]
) -> bool:  # fmt: skip
    """xfs_bmapi_convert_delalloc at ``at.page``, if a group can be had then; the reverse mapping takes a
    second transaction, which waits for that group.
    """
    locks = ground.locks
    target = target_of(pages, at.page, terms.group_blocks)
    wanted = terms.home + (0 if target == NOWHERE else target // terms.group_blocks)
    began_ns = terms.now_ns + at.elapsed_ns
    start_ns = take_inode(locks, terms.row, began_ns)
    if start_ns == FAR:
        return False
    length = min(delayed_extent(pages, at.page)[1], MAX_EXTENT_PAGES)
    group = terms.granted if at.mapped_extents == 0 else NO_ROW
    if group == NO_ROW or locks.groups[group, UNTIL] == FAR:
        group = _group_to_take(ground, terms, wanted, length, start_ns)
    if group == NO_ROW:
        give_inode(locks, terms.row, began_ns, start_ns, start_ns)
        return False
    map_ns, rmap_ns = int(terms.map_ns * dice[at.dice]), int(terms.rmap_ns * dice[at.dice])
    ends_ns = hold(locks, group, start_ns, map_ns + terms.commit_ns)
    if rmap_ns:
        advance(locks, group, ends_ns)
        ends_ns = hold(locks, group, ends_ns, rmap_ns)
    give_inode(locks, terms.row, began_ns, start_ns, ends_ns)
    at.for_file_ns += start_ns - began_ns
    at.for_group_ns += ends_ns - start_ns - map_ns - terms.commit_ns - rmap_ns
    at.elapsed_ns += ends_ns - began_ns
    at.dice += 1
    at.mapped_extents += 1
    ground.taken[group] += 1
    first_block = (group - terms.home) * terms.group_blocks
    near = NOWHERE
    if group == wanted:
        near = 0 if target == NOWHERE else target - first_block
    allocate(pages, ground.spaces, group, at.page, near, first_block, terms.stripe)
    return True


@compiled
def _group_to_take(ground: Ground, terms: Terms, wanted: int, length: int, at_ns: int) -> int:
    """The first group from *wanted* on with room whose lock is free then (xfs_alloc_vextent_start_ag);
    `NO_ROW` if there is none within reach.
    """
    groups = len(ground.spaces.blocks)
    for i in range(groups):
        group = wanted + i if wanted + i < groups else wanted + i - groups
        if abs(group - terms.home) <= terms.reach and ground.spaces.longest[group] >= length:
            advance(ground.locks, group, at_ns)
            if is_free(ground.locks, group, at_ns):
                return group
    return NO_ROW
