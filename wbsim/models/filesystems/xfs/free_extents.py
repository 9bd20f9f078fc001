"""The free extents of XFS allocation groups as sorted tables, and the search for an allocation.

Stands for the by-block and by-size trees, xfs_alloc_ag_vextent_near and xfs_alloc_ag_vextent_locality
(fs/xfs/libxfs/xfs_alloc.c).  Block numbers count from the start of the group, whose number is *group*.
Functions that take or free blocks change *spaces* in place.  Their callers first make room for each change
with `FreeSpace.with_room`, which also enters a fresh group.  Pure: no clock, no random numbers; compiled by
Numba.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wbsim.models.arrays.compiled import compiled
from wbsim.models.arrays.sorted_table import (
    Rows,
    Table,
    Tables,
    find,
    insert,
    is_in,
    key_at,
    place_after,
    place_before,
    remove_at,
    replace_key,
    table_of,
    value_at,
)

SIZE_SHIFT: Final = 30  # a group has 2^28 blocks at most
BLOCK_MASK: Final = (1 << SIZE_SHIFT) - 1
LAST_BLOCK: Final = 350
"""The free extents in the last block of the tree by size: 505 fit into 4 KiB, and blocks are 69 % full."""
_FAR: Final = 1 << 62


class Spaces(NamedTuple):
    """The free space of all groups.

    * ``by_block`` has the free extents of each group: key is the first block, value the size (blocks).
    * ``by_size`` has them again, without values: key is the size shifted by `SIZE_SHIFT`, plus the first
      block.
    * ``blocks`` is the number of free blocks of each group.
    * ``longest`` is the length of its longest free extent (pagf_longest; blocks).
    """

    by_block: Tables
    by_size: Tables
    blocks: NDArray[np.int64]
    longest: NDArray[np.int64]


Arrays = tuple[NDArray[Any], ...]
"""The 18 arrays of a `Spaces`, in order."""


def arrays_of(spaces: Spaces) -> Arrays:
    """Return the 18 arrays of *spaces* in the order of its fields, not copied, for compiled code.

    A call of compiled code takes 3.2 us with a tuple of arrays, and 6.6 us with tuples of tuples.
    """
    by_block, by_size, *counts = spaces
    return (*by_block.rows, *by_block[1:], *by_size.rows, *by_size[1:], *counts)


@compiled
def spaces_of(arrays: Arrays) -> Spaces:
    """Return the `Spaces` that consists of *arrays*, which are not copied; inverse of `arrays_of`."""
    by_block = Tables(
        Rows(arrays[0], arrays[1], arrays[2], arrays[3], arrays[4]), arrays[5], arrays[6], arrays[7]
    )
    by_size = Tables(
        Rows(arrays[8], arrays[9], arrays[10], arrays[11], arrays[12]), arrays[13], arrays[14], arrays[15]
    )
    return Spaces(by_block, by_size, arrays[16], arrays[17])


class Space(NamedTuple):
    """The free space of one group: its part of `Spaces`; ``blocks`` and ``longest`` have one number each."""

    by_block: Table
    by_size: Table
    blocks: NDArray[np.int64]
    longest: NDArray[np.int64]


@compiled
def space_of(spaces: Spaces, group: int) -> Space:
    """Return the free space of the group with the number *group*, which shares its arrays with *spaces*."""
    return Space(
        table_of(spaces.by_block, group), table_of(spaces.by_size, group),
        spaces.blocks[group : group + 1], spaces.longest[group : group + 1],
    )  # fmt: skip


@compiled
def needs_search(spaces: Spaces, group: int, length: int) -> bool:
    """Return whether an allocation of *length* blocks from *group* must search both trees for a near extent.

    Such a search takes ``search_ns`` of `XfsFlusherCosts` more.  False: the last block of the tree by size
    (`LAST_BLOCK` extents) holds all free extents of at least this length (xfs_btree_islastblock in
    xfs_alloc_ag_vextent_near).
    """
    table = table_of(spaces.by_size, group)
    position, index = find(table, length << SIZE_SHIFT)
    large = -index
    while position < table.lengths[0] and large <= LAST_BLOCK:
        large += table.rows.counts[table.order[position]]
        position += 1
    return large > LAST_BLOCK


@compiled
def take_smallest(spaces: Spaces, group: int, length: int) -> tuple[int, int]:
    """Take *length* blocks of *group* from the start of the smallest free extent that has as many.

    If no extent has as many, take the longest.  Returns the first block and the number of blocks, (0, 0) if
    no block is free (xfs_alloc_ag_vextent_size).
    """
    space = space_of(spaces, group)
    length = min(length, space.longest[0])
    if length == 0:
        return 0, 0
    position, index = find(space.by_size, length << SIZE_SHIFT)
    key = key_at(space.by_size, position, index)
    block = key & BLOCK_MASK
    _cut(space, block, key >> SIZE_SHIFT, block, length)
    return block, length


@compiled
def take_near(spaces: Spaces, group: int, target: int, length: int) -> tuple[int, int]:
    """Take *length* blocks of *group* near block *target*, or the longest free extent if none has as many.

    Returns the first block and the number of blocks, (0, 0) if no block is free; see `FreeSpace.take_near`.
    """
    return take_aligned(spaces, group, target, length, 1)


@compiled
def take_aligned(spaces: Spaces, group: int, target: int, length: int, unit: int) -> tuple[int, int]:
    """Take *length* blocks of *group* as `take_near` does, but start at a multiple of *unit* blocks.

    If no free extent has *length* + *unit* - 1 blocks, *unit* does not count.  Returns the first block and
    the number of blocks, (0, 0) if no block is free.
    """
    space = space_of(spaces, group)
    length = min(length, space.longest[0])
    if length == 0:
        return 0, 0
    slop = unit - 1 if space.longest[0] >= length + unit - 1 else 0
    first, size = _nearest(space, target, length + slop)
    block = _place_in(first, size, target, length + slop)
    if slop:
        block = (block + slop) // unit * unit
    _cut(space, first, size, block, length)
    return block, length


@compiled
def take_exactly(spaces: Spaces, group: int, block: int, length: int) -> bool:
    """Take exactly the *length* blocks of *group* from *block* on; return whether all were free.

    If one of the blocks is not free, nothing changes.
    """
    space = space_of(spaces, group)
    table = space.by_block
    position, index = find(table, block + 1)
    position, index = place_before(table, position, index)
    if not is_in(table, position, index):
        return False
    first, size = key_at(table, position, index), value_at(table, position, index)
    if first + size < block + length:
        return False
    _cut(space, first, size, block, length)
    return True


@compiled
def give_back(spaces: Spaces, group: int, block: int, length: int) -> bool:
    """Free *length* blocks of *group* from *block* on, and join them with the free extents next to them.

    Returns True; or False, and nothing changes, if some of these blocks are free already.
    """
    space = space_of(spaces, group)
    table, end = space.by_block, block + length
    position, index = find(table, block)
    first_after, size_after = _FAR, 0
    if is_in(table, position, index):
        first_after, size_after = key_at(table, position, index), value_at(table, position, index)
    first_before, size_before = -1, 0
    position, index = place_before(table, position, index)
    if is_in(table, position, index):
        first_before, size_before = key_at(table, position, index), value_at(table, position, index)
    if first_before + size_before > block or first_after < end:
        return False
    if first_before >= 0 and first_before + size_before == block:
        _drop(space, first_before, size_before)
        block = first_before
    if first_after == end:
        _drop(space, first_after, size_after)
        end += size_after
    _add(space, block, end - block)
    return True


@compiled
def _find_longest(space: Space) -> None:
    """Set ``longest`` to the last key of the tree by size."""
    position, index = place_before(space.by_size, space.by_size.lengths[0], 0)
    space.longest[0] = key_at(space.by_size, position, index) >> SIZE_SHIFT if position >= 0 else 0


@compiled
def _nearer(
    table: Table, position: int, index: int, target: int, length: int, distance: int, leftward: bool
) -> tuple[int, int]:  # fmt: skip
    """Return the next free extent from *position* on that has room for *length* blocks.

    If it is not nearer to *target* than *distance*, the result has size 0.
    """
    while is_in(table, position, index):
        first, size = key_at(table, position, index), value_at(table, position, index)
        if (target - first - size if leftward else first - target) >= distance:
            break
        if size >= length:
            return (first, size) if _distance(first, size, target, length) < distance else (first, 0)
        position, index = (
            place_before(table, position, index) if leftward else place_after(table, position, index)
        )
    return 0, 0


@compiled
def _nearest(space: Space, target: int, length: int) -> tuple[int, int]:
    """Return the free extent of at least *length* blocks that the parallel search ends with.

    The search goes outward from *target* in the tree by block.  For each step there, it also takes one record
    up the tree by size, in doubling sizes.  It ends when the tree by block gives an extent, after a look at
    the other side of *target* for a nearer one.  It also ends when there are no larger sizes, with the
    nearest extent that the tree by size gave.
    """
    table, by_size = space.by_block, space.by_size
    right_position, right_index = find(table, target + 1)
    left_position, left_index = place_before(table, right_position, right_index)
    least = length
    best_first, best_size, best_distance = -1, 0, _FAR
    while True:
        for rightward in (False, True):
            position, index = (right_position, right_index) if rightward else (left_position, left_index)
            if not is_in(table, position, index) or value_at(table, position, index) < length:
                continue
            first, size = key_at(table, position, index), value_at(table, position, index)
            if _distance(first, size, target, length) < best_distance:
                best_first, best_size = first, size
                best_distance = _distance(first, size, target, length)
            position, index = (left_position, left_index) if rightward else (right_position, right_index)
            other_first, other_size = _nearer(
                table, position, index, target, length, best_distance, rightward
            )
            return (other_first, other_size) if other_size else (best_first, best_size)
        if is_in(table, left_position, left_index):
            left_position, left_index = place_before(table, left_position, left_index)
        if is_in(table, right_position, right_index):
            right_position, right_index = place_after(table, right_position, right_index)
        position, index = find(by_size, (least << SIZE_SHIFT) + target)
        if not is_in(by_size, position, index):
            if best_first < 0:
                position, index = find(by_size, length << SIZE_SHIFT)
                key = key_at(by_size, position, index)
                return key & BLOCK_MASK, key >> SIZE_SHIFT
            return best_first, best_size
        key = key_at(by_size, position, index)
        first, size = key & BLOCK_MASK, key >> SIZE_SHIFT
        if _distance(first, size, target, length) < best_distance:
            best_first, best_size, best_distance = first, size, _distance(first, size, target, length)
        if first > target:
            position, index = place_before(by_size, position, index)
            if is_in(by_size, position, index) and key_at(by_size, position, index) >> SIZE_SHIFT == size:
                first = key_at(by_size, position, index) & BLOCK_MASK
                if _distance(first, size, target, length) < best_distance:
                    best_first, best_size, best_distance = first, size, _distance(first, size, target, length)
        least = max(size + 1, 2 * least)


@compiled
def _place_in(first: int, size: int, target: int, length: int) -> int:
    """Return the place of *length* blocks in an extent with room (xfs_alloc_compute_diff, user data).

    >>> _place_in(10, 20, 15, 4), _place_in(10, 20, 28, 4)
    (15, 10)
    """
    if first >= target or first + size < target + length:
        return first
    return target


@compiled
def _distance(first: int, size: int, target: int, length: int) -> int:
    return abs(_place_in(first, size, target, length) - target)


@compiled
def _cut(space: Space, first: int, size: int, block: int, length: int) -> None:
    """Take *length* blocks from *block* on out of a free extent."""
    table, by_size = space.by_block, space.by_size
    head, tail = block - first, first + size - block - length
    position, index = find(table, first)
    row = table.order[position]
    if head:
        table.rows.values[row, index] = head
        if tail:
            insert(table, block + length, tail)
    elif tail:
        replace_key(table, position, index, block + length)
        table.rows.values[row, index] = tail
    else:
        remove_at(table, position, index)
    position, index = find(by_size, (size << SIZE_SHIFT) + first)
    remove_at(by_size, position, index)
    if head:
        insert(by_size, (head << SIZE_SHIFT) + first, 0)
    if tail:
        insert(by_size, (tail << SIZE_SHIFT) + block + length, 0)
    space.blocks[0] -= length
    if size == space.longest[0]:
        _find_longest(space)


@compiled
def _add(space: Space, first: int, size: int) -> None:
    if size:
        insert(space.by_block, first, size)
        insert(space.by_size, (size << SIZE_SHIFT) + first, 0)
        space.blocks[0] += size
        space.longest[0] = max(space.longest[0], size)


@compiled
def _drop(space: Space, first: int, size: int) -> None:
    position, index = find(space.by_block, first)
    remove_at(space.by_block, position, index)
    position, index = find(space.by_size, (size << SIZE_SHIFT) + first)
    remove_at(space.by_size, position, index)
    space.blocks[0] -= size
