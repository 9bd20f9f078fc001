"""The map of a flash drive from pages to blocks, and the collection of garbage.

Flash is programmed page by page and erased block by block.  So a page that is written again goes to another
place, and its old place is garbage.  When few free blocks are left, the drive takes the block with the fewest
valid pages (greedy).  It moves these pages to another block, and erases the first.  Pages that the host
writes and pages that are moved go to separate blocks (write points).  A block that no write point fills any
more is *closed*: it is on a list by its valid pages, and can be collected.

A page has an *entry* once a run has written, discarded or moved it.  A drive that was in use before the run
has *anonymous* pages, too: each block counts them, and no entry says where they are.  If the drive was
written in order, the number of a page says in which block it is.  If it was written at random, a write to
such a page makes one of the anonymous pages garbage, drawn at random.  Moved ones then stay anonymous.  So
memory grows with the pages that a run writes, and not with the drive.  A *slot* is the part of the arrays
that has the entries of a block's pages.

The work on arrays is compiled by Numba.  Left out: wear leveling, blocks that fail, and the map's own pages.
"""

from __future__ import annotations

from math import ceil
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wbsim.models.arrays.compiled import compiled

RESERVED: Final = 3
"""The blocks that are never garbage: one for each write point, and a free one to move pages to."""
_LEAST_FREE: Final = 1  # so many free blocks stay when the host gets one
_SLOTS_OF_A_STEP: Final = 4  # more than a collection and a page of the host need
_DRAWS_OF_A_STEP: Final = 2
_DRAWN_AT_ONCE: Final = 4096
_ROW: Final = 16  # pages with neighbouring numbers whose entries begin together
_NO_ENTRY, _NOWHERE = -2, -1
_MULTIPLIER: Final = 0x9E3779B97F4A7C1  # of Fibonacci hashing, cut to 60 bits

# The places of single numbers in Arrays.numbers.
_PAGES_OF_A_BLOCK, _FREE, _LOWEST, _ANONYMOUS, _NEVER_WRITTEN = range(5)
_ROWS, _SLOTS, _SPARE_SLOTS, _DRAWS, _USED = range(5, 10)
_IN_ORDER = 14  # how many pages were written in the order of their numbers
_HOST, _MOVES = 10, 12  # two each: the block of the write point, and how many of its pages are programmed


class Arrays(NamedTuple):
    """The state of a map.  ``numbers`` has single numbers, of which the constants above are the places.

    By block:

    * ``valid``: the number of valid pages, and ``anonymous`` that of the anonymous ones among them.
    * ``slot``: the part of ``contents`` that it has, or -1.
    * ``previous`` and ``next``: its neighbours in the list of blocks with as many valid pages.

    ``first`` has the first block of each of these lists, by the number of valid pages.  ``sums`` is a Fenwick
    tree over ``anonymous``, and ``free`` a stack of free blocks.

    ``contents``: the entry of the page in each place of each slot, or -1.  ``block_of``: the block of each
    slot.  ``spare_slots``: a stack of slots without a block.

    ``places``: the place of the page of each entry, or -1, or -2 for a page without an entry.  ``keys`` and
    ``rows`` are a hash table: the row of ``places`` that has the entries of a group of pages.

    ``draws``: random numbers in [0, 1).
    """

    numbers: NDArray[np.int64]
    valid: NDArray[np.int32]
    anonymous: NDArray[np.int32]
    slot: NDArray[np.int32]
    previous: NDArray[np.int32]
    next: NDArray[np.int32]
    first: NDArray[np.int32]
    sums: NDArray[np.int64]
    free: NDArray[np.int32]
    contents: NDArray[np.int32]
    block_of: NDArray[np.int32]
    spare_slots: NDArray[np.int32]
    places: NDArray[np.int32]
    keys: NDArray[np.int64]
    rows: NDArray[np.int32]
    draws: NDArray[np.float64]


class PageMap:
    """The map of a drive with *pages* pages for the host in *blocks* blocks of *block_pages* pages each.

    The host's pages have the numbers from 0 to *pages* - 1.
    *levels* has the number of anonymous pages of each block that has some, as `steady_levels` returns them.
    *random* draws which anonymous pages become garbage; *in_order*: block 0 has the first pages, and so on.

    ``moves`` and ``erasures`` count the pages that were moved, and the blocks that were erased.

    Raises:
        ValueError: the blocks have too little room for the pages and for `RESERVED` blocks.
    """

    def __init__(
        self,
        pages: int,
        blocks: int,
        block_pages: int,
        random: np.random.Generator,
        levels: NDArray[np.int32] | None = None,
        *,
        in_order: bool = False,
    ) -> None:
        if (blocks - RESERVED) * block_pages <= pages:
            raise ValueError(f"{blocks} blocks of {block_pages} pages leave no room beside {pages} pages")
        self.pages, self.blocks, self.block_pages = pages, blocks, block_pages
        self._random = random
        self.moves = self.erasures = 0
        numbers = np.zeros(15, np.int64)
        numbers[_PAGES_OF_A_BLOCK] = block_pages
        numbers[_LOWEST] = block_pages
        numbers[_NEVER_WRITTEN] = pages
        numbers[_HOST], numbers[_MOVES] = _NOWHERE, _NOWHERE
        numbers[_HOST + 1], numbers[_MOVES + 1] = block_pages, block_pages
        self._arrays = Arrays(
            numbers=numbers,
            valid=np.zeros(blocks, np.int32),
            anonymous=np.zeros(blocks, np.int32),
            slot=np.full(blocks, _NOWHERE, np.int32),
            previous=np.full(blocks, _NOWHERE, np.int32),
            next=np.full(blocks, _NOWHERE, np.int32),
            first=np.full(block_pages + 1, _NOWHERE, np.int32),
            sums=np.zeros(blocks + 1, np.int64),
            free=np.zeros(blocks, np.int32),
            contents=np.zeros(0, np.int32),
            block_of=np.zeros(0, np.int32),
            spare_slots=np.zeros(0, np.int32),
            places=np.zeros(0, np.int32),
            keys=np.full(1, _NOWHERE, np.int64),
            rows=np.zeros(1, np.int32),
            draws=np.zeros(0),
        )
        closed = 0 if levels is None else len(levels)
        numbers[_FREE] = free = blocks - closed
        self._arrays.free[:free] = np.arange(blocks - 1, closed - 1, -1)
        if levels is not None:
            fill(self._arrays, levels)
            numbers[_IN_ORDER] = in_order * int(levels.sum())

    def write(self, start: int, count: int) -> tuple[int, int]:
        """Write *count* pages from page *start*; return how many pages were moved, and blocks erased."""
        done, moves, erasures = write_pages(self._arrays, start, count)
        while done < count:
            self._make_room()
            pages, page_moves, blocks = write_pages(self._arrays, start + done, count - done)
            done, moves, erasures = done + pages, moves + page_moves, erasures + blocks
        self.moves += moves
        self.erasures += erasures
        return moves, erasures

    def discard(self, start: int, count: int) -> None:
        """Make *count* pages from page *start* garbage, which a collection need not move."""
        done = discard_pages(self._arrays, start, count)
        while done < count:
            self._make_room()
            done += discard_pages(self._arrays, start + done, count - done)

    @property
    def valid_pages(self) -> int:
        """The number of valid pages: those that have data of the host."""
        return int(self._arrays.numbers[_USED])

    def levels(self) -> NDArray[np.int32]:
        """Return the number of valid pages of each block, by block; tests compare it with `steady_levels`."""
        return self._arrays.valid.copy()

    def place(self, page: int) -> int | None:
        """Return the place of *page*: its block times the pages of a block, plus the place in the block.

        None: the page has no entry, or it has been discarded.
        """
        arrays = self._arrays
        entry = entry_of(arrays, page)
        if entry < 0 or arrays.places[entry] < 0:
            return None
        slot, offset = divmod(int(arrays.places[entry]), self.block_pages)
        return int(arrays.block_of[slot]) * self.block_pages + offset

    def _make_room(self) -> None:
        """Double the arrays that are full, and draw random numbers again."""
        arrays, numbers = self._arrays, self._arrays.numbers
        more: dict[str, NDArray[Any]] = {}
        entries = int(numbers[_ROWS]) * _ROW
        if entries + entries_of_a_step(arrays) > len(arrays.places):
            size = 2 * entries + 64 * _ROW + entries_of_a_step(arrays)
            more["places"] = np.resize(arrays.places, size)
            more["keys"] = np.full(len(more["places"]) // _ROW * 2, _NOWHERE, np.int64)
            more["rows"] = np.zeros(len(more["keys"]), np.int32)
            enter_rows(arrays.keys, arrays.rows, more["keys"], more["rows"])
        if slots_left(arrays) < _SLOTS_OF_A_STEP:
            slots = 2 * len(arrays.block_of) + _SLOTS_OF_A_STEP
            more["contents"] = np.resize(arrays.contents, slots * self.block_pages)
            more["block_of"] = np.resize(arrays.block_of, slots)
            more["spare_slots"] = np.resize(arrays.spare_slots, slots)
        if int(numbers[_DRAWS]) + _DRAWS_OF_A_STEP > len(arrays.draws):
            more["draws"] = self._random.random(_DRAWN_AT_ONCE)
            numbers[_DRAWS] = 0
        if more:
            self._arrays = arrays._replace(**more)


def steady_levels(pages: int, blocks: int, block_pages: int) -> NDArray[np.int32]:
    """Return the valid pages of each block that greedy collection leaves; their sum is *pages*.

    *pages* pages were written at random for long in *blocks* blocks of *block_pages* pages.  A block with k
    valid pages loses them at a rate in proportion to k.  So blocks with k pages are as frequent as 1/k, down
    to the number at which they are collected.  Fewer than *blocks* are returned if the pages do not need all
    of them.

    >>> steady_levels(pages=11, blocks=5, block_pages=4).tolist()
    [4, 3, 2, 1, 1]
    """
    if not pages:
        return np.zeros(0, np.int32)
    counts = np.arange(block_pages, 0, -1)
    blocks_so_far, pages_so_far = np.cumsum(1 / counts), np.arange(1, block_pages + 1)
    # With the levels down to counts[i], a block has so many pages on average:
    mean = pages_so_far / blocks_so_far
    last = int(np.searchsorted(-mean, -pages / blocks))
    if last == block_pages:  # each block that is collected is empty
        blocks, last = min(blocks, ceil(pages / mean[-1])), block_pages - 1
    weights = 1 / counts[: last + 1]
    if last:  # the last level holds only a part of its blocks, so that both sums come out
        blocks_above, pages_above = blocks_so_far[last - 1], pages_so_far[last - 1]
        ratio = pages / blocks
        weights[last] = (pages_above - ratio * blocks_above) / (ratio - counts[last])
    shares = np.cumsum(weights) / weights.sum()
    levels = counts[np.searchsorted(shares, (np.arange(blocks) + 0.5) / blocks)].astype(np.int32)
    surplus = int(levels.sum()) - pages
    while surplus:  # rounding
        step = 1 if surplus > 0 else -1
        can = np.flatnonzero((levels - step >= 0) & (levels - step <= block_pages))
        places = can[:: max(1, len(can) // abs(surplus))][: abs(surplus)]
        levels[places] -= step
        surplus -= step * len(places)
    return levels


@compiled
def fill(arrays: Arrays, levels: NDArray[np.int32]) -> None:
    """Let block i hold ``levels[i]`` anonymous pages, for each of *levels*, and close these blocks."""
    for block in range(len(levels)):
        add_anonymous(arrays, block, levels[block])
        arrays.valid[block] += levels[block]
        arrays.numbers[_USED] += levels[block]
        enter_list(arrays, block)


@compiled
def add_anonymous(arrays: Arrays, block: int, count: int) -> None:
    """Add *count* anonymous pages to *block*; a negative number takes away.  The caller changes ``valid``."""
    arrays.anonymous[block] += count
    arrays.numbers[_ANONYMOUS] += count
    node = block + 1
    while node < len(arrays.sums):
        arrays.sums[node] += count
        node += node & -node


@compiled
def block_of_anonymous(arrays: Arrays, number: int) -> int:
    """Return the block of anonymous page *number*, counted from 0 in the order of blocks.

    `forget` draws the number at random.
    """
    node, width = 0, 1
    while 2 * width < len(arrays.sums):
        width *= 2
    while width:
        if node + width < len(arrays.sums) and arrays.sums[node + width] <= number:
            node += width
            number -= arrays.sums[node]
        width //= 2
    return node


@compiled
def enter_list(arrays: Arrays, block: int) -> None:
    """Close *block*: put it on the list of blocks with as many valid pages, so it can be collected."""
    level = arrays.valid[block]
    second = arrays.first[level]
    arrays.previous[block], arrays.next[block] = _NOWHERE, second
    if second >= 0:
        arrays.previous[second] = block
    arrays.first[level] = block
    arrays.numbers[_LOWEST] = min(arrays.numbers[_LOWEST], level)


@compiled
def leave_list(arrays: Arrays, block: int) -> None:
    """Take *block* off the list of blocks with as many valid pages, before that number changes."""
    previous, following_block = arrays.previous[block], arrays.next[block]
    if previous >= 0:
        arrays.next[previous] = following_block
    else:
        arrays.first[arrays.valid[block]] = following_block
    if following_block >= 0:
        arrays.previous[following_block] = previous


@compiled
def lose_page(arrays: Arrays, block: int) -> None:
    """Let one valid page of *block* become garbage; a closed block moves to the list of its new count.

    The caller takes the page out of ``contents`` or ``anonymous``.
    """
    is_open = block == arrays.numbers[_HOST] or block == arrays.numbers[_MOVES]
    if not is_open:
        leave_list(arrays, block)
    arrays.valid[block] -= 1
    arrays.numbers[_USED] -= 1
    if not is_open:
        enter_list(arrays, block)


@compiled
def entry_of(arrays: Arrays, page: int) -> int:
    """Return the entry of *page*, which is a place in ``places``; -1 if its row has no entries yet.

    The number in ``places`` is -2 if only neighbours of *page* in its row have entries.
    """
    key = page // _ROW
    at = key * _MULTIPLIER % len(arrays.keys)
    while arrays.keys[at] != key:
        if arrays.keys[at] < 0:
            return -1
        at = at + 1 if at + 1 < len(arrays.keys) else 0
    row: int = arrays.rows[at]
    return row * _ROW + page % _ROW


@compiled
def make_entry(arrays: Arrays, page: int) -> int:
    """Return the entry of *page*, which is made if the page has none; there must be room (`has_room`).

    A new entry has -2 in ``places``, as all entries of its row have.
    """
    entry = entry_of(arrays, page)
    if entry >= 0:
        return entry
    key = page // _ROW
    row: int = arrays.numbers[_ROWS]
    at = key * _MULTIPLIER % len(arrays.keys)
    while arrays.keys[at] >= 0:
        at = at + 1 if at + 1 < len(arrays.keys) else 0
    arrays.keys[at], arrays.rows[at] = key, row
    arrays.numbers[_ROWS] += 1
    for i in range(row * _ROW, row * _ROW + _ROW):
        arrays.places[i] = _NO_ENTRY
    return row * _ROW + page % _ROW


@compiled
def enter_rows(
    old_keys: NDArray[np.int64], old_rows: NDArray[np.int32], keys: NDArray[np.int64], rows: NDArray[np.int32]
) -> None:
    """Enter the old hash table into *keys* and *rows*, which are larger and empty."""
    for i in range(len(old_keys)):
        if old_keys[i] >= 0:
            at = old_keys[i] * _MULTIPLIER % len(keys)
            while keys[at] >= 0:
                at = at + 1 if at + 1 < len(keys) else 0
            keys[at], rows[at] = old_keys[i], old_rows[i]


@compiled
def forget(arrays: Arrays, page: int, entry: int) -> None:
    """Let the present copy of *page*, if there is one, become garbage; *entry* is its entry.

    If the drive was written at random, draws decide whether a page without an entry has an anonymous copy,
    and in which block.  In ``places``, the entry has -1 then.
    """
    place, numbers = arrays.places[entry], arrays.numbers
    if place >= 0:
        arrays.contents[place] = _NOWHERE
        lose_page(arrays, arrays.block_of[place // numbers[_PAGES_OF_A_BLOCK]])
    elif place == _NO_ENTRY and numbers[_IN_ORDER]:
        if page < numbers[_IN_ORDER]:
            block = page // numbers[_PAGES_OF_A_BLOCK]
            add_anonymous(arrays, block, -1)
            lose_page(arrays, block)
    elif place == _NO_ENTRY:
        draw = numbers[_DRAWS]
        numbers[_DRAWS] += 2
        if arrays.draws[draw] * numbers[_NEVER_WRITTEN] < numbers[_ANONYMOUS]:
            block = block_of_anonymous(arrays, int(arrays.draws[draw + 1] * numbers[_ANONYMOUS]))
            add_anonymous(arrays, block, -1)
            lose_page(arrays, block)
        numbers[_NEVER_WRITTEN] -= 1
    arrays.places[entry] = _NOWHERE


@compiled
def open_block(arrays: Arrays, point: int) -> None:
    """Give the write *point* a free block, of which one must be left; close the block that it has filled.

    *point*: the place in ``numbers`` of the host's write point, or of that for moved pages.
    """
    numbers = arrays.numbers
    if numbers[point] >= 0:
        full = numbers[point]
        numbers[point] = _NOWHERE
        enter_list(arrays, full)
    numbers[_FREE] -= 1
    numbers[point], numbers[point + 1] = arrays.free[numbers[_FREE]], 0


@compiled
def slots_left(arrays: Arrays) -> int:
    """Return how many blocks can get a slot before the arrays must grow."""
    slots: int = arrays.numbers[_SPARE_SLOTS] + len(arrays.block_of) - arrays.numbers[_SLOTS]
    return slots


@compiled
def entries_of_a_step(arrays: Arrays) -> int:
    """Return the most entries that a page of the host and a collection make, in whole rows.

    A row has the entries of 16 pages with neighbouring numbers.
    """
    if not arrays.numbers[_IN_ORDER]:
        return _ROW
    entries: int = (
        arrays.numbers[_PAGES_OF_A_BLOCK] + 3 * _ROW
    )  # rows may begin before a block and end behind
    return entries // _ROW * _ROW


@compiled
def has_room(arrays: Arrays) -> bool:
    """Return whether the arrays have room for one more page, and for a collection."""
    return (
        arrays.numbers[_ROWS] * _ROW + entries_of_a_step(arrays) <= len(arrays.places)
        and slots_left(arrays) >= _SLOTS_OF_A_STEP
        and arrays.numbers[_DRAWS] + _DRAWS_OF_A_STEP <= len(arrays.draws)
    )


@compiled
def take_slot(arrays: Arrays, block: int) -> None:
    """Give *block* a slot, an empty part of ``contents``, for its first page with an entry."""
    numbers, pages = arrays.numbers, arrays.numbers[_PAGES_OF_A_BLOCK]
    if numbers[_SPARE_SLOTS]:
        numbers[_SPARE_SLOTS] -= 1
        slot = arrays.spare_slots[numbers[_SPARE_SLOTS]]
    else:
        slot = numbers[_SLOTS]
        numbers[_SLOTS] += 1
    arrays.slot[block], arrays.block_of[slot] = slot, block
    for place in range(slot * pages, slot * pages + pages):
        arrays.contents[place] = _NOWHERE


@compiled
def program(arrays: Arrays, point: int, entry: int) -> None:
    """Program the page with this *entry*, or an anonymous one (-1), at the write *point*, which has room.

    *point*: the place in ``numbers`` of the host's write point, or of that for moved pages.  The caller
    counts a new page among the valid pages of all blocks.
    """
    numbers = arrays.numbers
    block, offset = numbers[point], numbers[point + 1]
    numbers[point + 1] += 1
    arrays.valid[block] += 1
    if entry < 0:
        add_anonymous(arrays, block, 1)
        return
    if arrays.slot[block] < 0:
        take_slot(arrays, block)
    place = arrays.slot[block] * numbers[_PAGES_OF_A_BLOCK] + offset
    arrays.contents[place] = entry
    arrays.places[entry] = place


@compiled
def collect(arrays: Arrays) -> int:
    """Move the valid pages of the block with the fewest, and free the block; return how many are moved.

    There must be room (`has_room`) and a closed block.
    """
    numbers, pages = arrays.numbers, arrays.numbers[_PAGES_OF_A_BLOCK]
    while arrays.first[numbers[_LOWEST]] < 0:
        numbers[_LOWEST] += 1
    victim = arrays.first[numbers[_LOWEST]]
    leave_list(arrays, victim)
    slot, anonymous = arrays.slot[victim], arrays.anonymous[victim]
    moves: int = arrays.valid[victim]
    if slot >= 0:
        for place in range(slot * pages, slot * pages + pages):
            entry = arrays.contents[place]
            if entry >= 0:
                if numbers[_MOVES + 1] == pages:
                    open_block(arrays, _MOVES)
                program(arrays, _MOVES, entry)
        arrays.spare_slots[numbers[_SPARE_SLOTS]] = slot
        numbers[_SPARE_SLOTS] += 1
        arrays.slot[victim] = _NOWHERE
    add_anonymous(arrays, victim, -anonymous)
    if numbers[_IN_ORDER] and anonymous:
        for page in range(victim * pages, min(victim * pages + pages, numbers[_IN_ORDER])):
            entry = make_entry(arrays, page)
            if arrays.places[entry] == _NO_ENTRY:
                if numbers[_MOVES + 1] == pages:
                    open_block(arrays, _MOVES)
                program(arrays, _MOVES, entry)
    else:
        for _ in range(anonymous):
            if numbers[_MOVES + 1] == pages:
                open_block(arrays, _MOVES)
            program(arrays, _MOVES, _NOWHERE)
    arrays.valid[victim] = 0
    arrays.free[numbers[_FREE]] = victim
    numbers[_FREE] += 1
    return moves


@compiled
def write_pages(arrays: Arrays, start: int, count: int) -> tuple[int, int, int]:
    """Write *count* pages from page *start* on while the arrays have room.

    Return how many pages are written, how many are moved, and how many blocks are erased.  `PageMap` makes
    room before it calls this for the rest.
    """
    numbers, moves, erasures = arrays.numbers, 0, 0
    for page in range(start, start + count):
        if numbers[_HOST + 1] == numbers[_PAGES_OF_A_BLOCK]:
            while numbers[_FREE] <= _LEAST_FREE:
                if not has_room(arrays):
                    return page - start, moves, erasures
                moves += collect(arrays)
                erasures += 1
            open_block(arrays, _HOST)
        if not has_room(arrays):
            return page - start, moves, erasures
        entry = make_entry(arrays, page)
        forget(arrays, page, entry)
        program(arrays, _HOST, entry)
        numbers[_USED] += 1
    return count, moves, erasures


@compiled
def discard_pages(arrays: Arrays, start: int, count: int) -> int:
    """Discard *count* pages from page *start* on while the arrays have room; return the number done."""
    for page in range(start, start + count):
        if not has_room(arrays):
            return page - start
        forget(arrays, page, make_entry(arrays, page))
    return count
