"""The free blocks of an ext4, in groups, and the search of the multiblock allocator.

Stands for ext4_mb_find_by_goal, ext4_mb_scan_groups, ext4_mb_simple_scan_group and ext4_mb_complex_scan_group
(fs/ext4/mballoc.c).  Pure.  Block numbers are those of the filesystem, except in `BlockGroup`.

Left out: the groups' locks, CR_BEST_AVAIL_LEN, the order of the lists before 6.17.  Left out also:
reserved blocks, and blocks that are freed and not yet committed; to 6.1, a group without an aligned
stripe was passed over.  Only the first search of a mount reads
bitmaps ahead, and ext4lazyinit reads none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Final

from sortedcontainers import SortedDict, SortedList

from wbsim.models.filesystems.blocks import Free
from wbsim.models.filesystems.ext4.geometry import GROUP_BLOCKS, Geometry
from wbsim.sim.invariants import require

_ORDERS: Final = 14  # MB_NUM_ORDERS with blocks of 4 KiB
_MIN_TO_SCAN: Final = 10  # MB_DEFAULT_MIN_TO_SCAN
_LINEAR_SCAN_GROUPS: Final = 16  # MB_DEFAULT_LINEAR_SCAN_THRESHOLD


class BlockGroup:
    """The free runs of one group, ``blocks`` blocks in all, and the number of their buddies of each order.

    A buddy of order n is 2 to the power of n free blocks at a multiple of that number.  The methods count
    blocks from the group's first, which is ``first_block`` of the filesystem.
    """

    __slots__ = ("_buddies", "_runs", "blocks", "first_block", "number")

    def __init__(self, number: int, head_blocks: int, end: int = GROUP_BLOCKS) -> None:
        """Make a group whose blocks from *head_blocks* up to *end* (exclusive) are free."""
        self.number = number
        self.first_block = number * GROUP_BLOCKS
        self.blocks = 0
        self._runs: SortedDict[int, int] = SortedDict()  # first block -> length
        self._buddies = [0] * _ORDERS
        self._add(head_blocks, end - head_blocks)

    @property
    def order(self) -> int:
        """The order of the largest buddy, which has 2 to the power of it blocks; -1 if no block is free."""
        return max((order for order, count in enumerate(self._buddies) if count), default=-1)

    @property
    def average_run(self) -> int:
        """The mean length of the free runs (blocks), rounded down; 0 if no block is free.

        Stands for bb_free / bb_fragments.
        """
        return self.blocks // len(self._runs) if self._runs else 0

    def take(self, block: int, length: int) -> bool:
        """Take exactly the *length* blocks from *block* of the group on, if all of them are free.

        Return whether they were taken.

        >>> group = BlockGroup(0, head_blocks=8, end=16)
        >>> group.take(10, 4), group.take(12, 4), [tuple(run) for run in group.runs()]
        (True, False, [(8, 2), (14, 2)])
        """
        place = self._runs.bisect_right(block) - 1
        if place < 0:
            return False
        first, size = self._runs.peekitem(place)
        if first + size < block + length:
            return False
        self._drop(first)
        self._add(first, block - first)
        self._add(block + length, first + size - block - length)
        return True

    def give_back(self, block: int, length: int) -> None:
        """Free *length* taken blocks from *block* of the group on, and join them with free neighbours."""
        place = self._runs.bisect_right(block)
        if place and sum(self._runs.peekitem(place - 1)) == block:
            first = self._runs.keys()[place - 1]
            length += self._drop(first)
            block = first
        if block + length in self._runs:
            length += self._drop(block + length)
        self._add(block, length)

    def first_of_order(self, order: int) -> int:
        """Return the first block of the free buddy for 2 to the power of *order* blocks; there must be one.

        The buddy, which is not taken, is the first of the smallest free ones that are large enough.
        """
        smallest = next(least for least in range(order, _ORDERS) if self._buddies[least])
        return next(
            buddy.first for run in self.runs() for buddy in _buddies(run) if buddy.size == 1 << smallest
        )

    def best_piece(self, length: int) -> Free | None:
        """Return the free piece for *length* blocks, without taking it; None if no block is free.

        The first piece of exactly that size is best.  Next is the smallest larger piece of the first eleven
        pieces, then the largest of all pieces.  A piece is as many buddies of a free run as are needed
        (mb_find_extent).  It may be longer than *length*, or shorter if no free run has *length* blocks.
        """
        best: Free | None = None
        least = length if any(size >= length for size in self._runs.values()) else 1
        runs = (run for run in self.runs() if run.size >= least)
        pieces = (piece for run in runs for piece in _pieces(run, length) if piece.size >= least)
        for count, piece in enumerate(pieces, 1):
            if piece.size == length:
                return piece
            better = best is None or (
                length < piece.size < best.size if best.size > length else piece.size > best.size
            )
            best = piece if better else best
            if best is not None and best.size > length and count > _MIN_TO_SCAN:
                break
        return best

    def aligned_piece(self, stripe: int, length: int) -> Free | None:
        """Return the first free piece at a multiple of *stripe* blocks, without taking it, or None.

        The multiple counts from the start of the filesystem.  The piece has at least *stripe* blocks, and
        more up to *length* if they are in the same buddies (ext4_mb_scan_aligned).
        """
        for run in self.runs():
            start = run.first + -(self.first_block + run.first) % stripe
            if start + stripe > run.first + run.size:
                continue
            end = next(
                buddy.first + buddy.size
                for buddy in _buddies(run)
                if buddy.first + buddy.size >= start + stripe
            )
            return Free(start, min(end - start, length))
        return None

    def runs(self) -> Iterator[Free]:
        """Return the free runs, by block; block 0 is the group's first."""
        return (Free(first, size) for first, size in self._runs.items())

    def _add(self, first: int, size: int) -> None:
        if size:
            self._runs[first] = size
            self.blocks += size
            for buddy in _buddies(Free(first, size)):
                self._buddies[buddy.size.bit_length() - 1] += 1

    def _drop(self, first: int) -> int:
        """Remove the run that begins at block *first*, and return its length (blocks)."""
        size: int = self._runs.pop(first)
        self.blocks -= size
        for buddy in _buddies(Free(first, size)):
            self._buddies[buddy.size.bit_length() - 1] -= 1
        return size


def _buddies(run: Free) -> Iterator[Free]:
    """Yield the aligned powers of two that a free run consists of (mb_mark_free_simple).

    >>> [tuple(buddy) for buddy in _buddies(Free(3, 9))]
    [(3, 1), (4, 4), (8, 4)]
    """
    first, size = run
    while size:
        order = min(
            (first & -first).bit_length() - 1 if first else _ORDERS, size.bit_length() - 1, _ORDERS - 1
        )
        yield Free(first, 1 << order)
        first, size = first + (1 << order), size - (1 << order)


def _pieces(run: Free, length: int) -> Iterator[Free]:
    """Yield *run* in pieces of complete buddies, each but the last of at least *length* blocks.

    >>> [tuple(piece) for piece in _pieces(Free(3, 9), 4)]
    [(3, 5), (8, 4)]
    """
    first, size = run.first, 0
    for buddy in _buddies(run):
        size += buddy.size
        if size >= length:
            yield Free(first, size)
            first, size = first + size, 0
    if size:
        yield Free(first, size)


class Mballoc:
    """The multiblock allocator: all groups of one filesystem.

    *by_order*: a search prefers the most used group that has room.  It knows the groups by their largest
    buddy, and by the mean length of their free runs.  On a fresh mount it searches only groups whose bitmaps
    have been read.  They are in flex groups with a new directory or with the goal of the first search.  If
    they have no room, it reads all bitmaps.  Before, it looks at *groups_in_line* groups from its goal on,
    and reads their bitmaps.

    Otherwise, and with few groups, a search goes from group to group and reads each bitmap on its way.

    A request of whole stripes (*stripe* blocks; 0: there are none) begins at a multiple of them, but may
    become shorter.  Before, a buddy of its length is tried, if that is a power of two.

    ``groups``: the groups whose bitmaps have been read, by number.  ``of_order``: for each order, the numbers
    of the groups whose largest buddy has that order.  No method changes `Space.unclaimed`.
    """

    def __init__(
        self, geometry: Geometry, *, by_order: bool, groups_in_line: int = 0, stripe: int = 0
    ) -> None:
        self.geometry = geometry
        self.stripe = stripe
        self._count = geometry.groups  # a copy: `find` reads it for each request
        self._by_order = by_order and self._count >= _LINEAR_SCAN_GROUPS
        self._in_line_groups = min(groups_in_line, self._count) if self._by_order else self._count
        self.groups: dict[int, BlockGroup] = {}
        self.of_order: list[SortedList[int]] = [SortedList() for _ in range(_ORDERS)]
        self._of_average: list[SortedList[int]] = [SortedList() for _ in range(_ORDERS)]
        self._free = [
            sum(geometry.free_blocks(number) for number in self._numbers(flex))
            for flex in range(geometry.flexes)
        ]

    def read_bitmaps(self, flex: int) -> None:
        """Read the bitmaps of flex group *flex*, so that a search finds its groups; in no time.

        A new directory does this for its flex group.
        """
        for number in self._numbers(flex):
            self._group(number)

    def free_blocks(self, flex: int) -> int:
        """Return the number of free blocks of flex group *flex*.

        Blocks that are held for a file, or kept for small files (`NewBlocks`), are not free.
        """
        return self._free[flex]

    def take_exactly(self, block: int, length: int) -> bool:
        """Take exactly the *length* blocks from *block* on, if all are free and in one group.

        Return whether they were taken.  A request of one stripe must begin at a multiple of the stripe.  A
        file continues this way behind its last block (EXT4_MB_HINT_TRY_GOAL).
        """
        if length == self.stripe and block % length:
            return False
        number, offset = divmod(block, GROUP_BLOCKS)
        return number < self._count and self._take(self._group(number), offset, length)

    def find(self, group: int, length: int) -> tuple[int, int]:
        """Take *length* blocks together, searching from *group* on, or fewer if no group has as many.

        Returns the first block and the number of blocks, (0, 0) if no block is free.
        """
        if self._by_order and not self.groups and (first := self._find_first(group, length)) is not None:
            return first
        while True:
            extent = (
                self._find_order(group, length)
                or self._find_average(group, length)
                or self._find_piece(group, length)
            )
            least = self.stripe if self._takes_stripes(length) else length
            if extent is not None and (extent[1] >= least or len(self.groups) == self._count):
                return extent
            if len(self.groups) == self._count:
                return 0, 0
            if extent is not None:
                self.give_back(*extent)
            for flex in range(self.geometry.flexes):
                self.read_bitmaps(flex)

    def give_back(self, block: int, length: int) -> None:
        """Free *length* blocks from *block* on, which were taken before and may lie in several groups."""
        while length:
            number, offset = divmod(block, GROUP_BLOCKS)
            count = min(length, GROUP_BLOCKS - offset)
            group = self.groups[number]
            self._unlist(group)
            group.give_back(offset, count)
            self._list(group)
            block, length = block + count, length - count

    def extents(self) -> Iterator[Free]:
        """Yield the free runs of each group, by block.

        A group whose bitmap has not been read has one run, which may have no block.
        """
        for number in range(self._count):
            group = self.groups.get(number)
            if group is None:
                head = self.geometry.head_blocks(number)
                yield Free(number * GROUP_BLOCKS + head, self.geometry.free_blocks(number))
            else:
                yield from (Free(group.first_block + run.first, run.size) for run in group.runs())

    def check(self) -> None:
        """Check that free runs lie apart, each group is listed by its largest buddy, and no block is lost.

        Raises:
            LawBroken: blocks are free twice or lost, or a group is not listed by its largest buddy.
        """
        for number, group in self.groups.items():
            ends = [run.first + run.size for run in group.runs()]
            require(
                all(end < run.first for end, run in zip(ends, list(group.runs())[1:], strict=False)),
                f"free space of group {number}: its runs must have used blocks between them",
            )
            orders = [order for order, numbers in enumerate(self.of_order) if number in numbers]
            require(
                orders == ([group.order] if group.order >= 0 else []),
                f"free space of group {number}: listed by {orders}, its largest buddy has {group.order}",
            )
        total = sum(run.size for run in self.extents())
        require(
            total == sum(self._free),
            f"free space: {sum(self._free)} blocks are counted, its runs have {total}",
        )

    def _find_first(self, number: int, length: int) -> tuple[int, int] | None:
        """Take blocks of group *number*, the first whose bitmap is read; then read those of its flex group.

        No group is listed yet, so the search is that of CR_GOAL_LEN_SLOW, with ext4_mb_prefetch.
        """
        extent = None
        if not self._in_line_groups:
            piece = self._group(number).best_piece(length)
            if piece is not None and piece.size >= length:
                self._take(self._group(number), piece.first, length)
                extent = number * GROUP_BLOCKS + piece.first, length
        self.read_bitmaps(number // self.geometry.flex_groups)
        return extent

    def _find_order(self, start: int, length: int) -> tuple[int, int] | None:
        """CR_POWER2_ALIGNED: take a buddy for *length* blocks, if *length* is a power of two."""
        if length < 2 or length & (length - 1) or length >= 1 << _ORDERS:
            return None
        order = length.bit_length() - 1
        group = self._next_with(start, order)
        if group is None and self._by_order:
            group = self._most_used(start, order)
        if group is None:
            return None
        offset = group.first_of_order(order)
        self._take(group, offset, length)
        return group.first_block + offset, length

    def _find_average(self, start: int, length: int) -> tuple[int, int] | None:
        """CR_GOAL_LEN_FAST: take *length* blocks of a group whose free runs have as many on average."""
        numbers = self._in_line(start, self._in_line_groups)
        if self._by_order:
            numbers = chain(numbers, self._in_lists(start, self._of_average[_average_order(length) :]))
        for number in numbers:  # no generator: mypyc would read all bitmaps at once
            group = self._group(number)
            if group.average_run >= length:
                if self._takes_stripes(length):
                    piece = group.aligned_piece(self.stripe, length)
                    if piece is not None:
                        self._take(group, piece.first, piece.size)
                        return group.first_block + piece.first, piece.size
                piece = group.best_piece(length)
                assert piece is not None, "a run has the average length at least"
                self._take(group, piece.first, length)
                return group.first_block + piece.first, length
        return None

    def _takes_stripes(self, length: int) -> bool:
        """Return whether *length* blocks are whole stripes."""
        return self.stripe > 0 and length % self.stripe == 0

    def find_in(self, number: int, length: int) -> tuple[int, int]:
        """Take *length* blocks of the first run in group *number* that has them, or as `find` does.

        Returns what `find` returns.  Directories get their blocks this way.
        """
        group = self._group(number)
        for run in group.runs():
            if run.size >= length:
                self._take(group, run.first, length)
                return group.first_block + run.first, length
        return self.find(number, length)

    def _find_piece(self, start: int, length: int) -> tuple[int, int] | None:
        """CR_GOAL_LEN_SLOW and CR_ANY_FREE: take blocks of the first group from *start* on that has enough.

        If no group has enough, take the largest piece.
        """
        best: tuple[BlockGroup, Free] | None = None
        for place, number in enumerate(self._in_line(start, self._count)):
            group = self._group(number) if place < self._in_line_groups else self.groups.get(number)
            piece = None if group is None else group.best_piece(length)
            if group is not None and piece is not None and (best is None or piece.size > best[1].size):
                best = group, piece
                if piece.size >= length:
                    break
        if best is None:
            return None
        group, piece = best
        size = min(length, piece.size)
        self._take(group, piece.first, size)
        return group.first_block + piece.first, size

    def _most_used(self, start: int, order: int) -> BlockGroup | None:
        """Return the group whose largest buddy is the smallest one of at least *order*, from *start* on."""
        numbers = self._in_lists(start, self.of_order[order:])
        return next(
            (self.groups[number] for number in numbers if not self.geometry.keeps_off_data(number)), None
        )

    def _in_lists(self, start: int, lists: Sequence[SortedList[int]]) -> Iterator[int]:
        """Yield the groups of *lists*, list by list: those from *start* on, then those in front of it."""
        for least, end in ((start, self._count), (0, start)):
            for numbers in lists:
                yield from numbers.irange(least, end, inclusive=(True, False))

    def _next_with(self, start: int, order: int) -> BlockGroup | None:
        """Return the first group in line with a buddy of at least *order*; None if none has it."""
        for number in self._in_line(start, self._in_line_groups):
            if not self.geometry.keeps_off_data(number) and self._group(number).order >= order:
                return self._group(number)
        return None

    def _in_line(self, start: int, count: int) -> Iterator[int]:
        """Yield the numbers of *count* groups, from *start* on and then from 0 on."""
        return islice(chain(range(start, self._count), range(start)), count)

    def _numbers(self, flex: int) -> range:
        first = flex * self.geometry.flex_groups
        return range(first, min(first + self.geometry.flex_groups, self._count))

    def _group(self, number: int) -> BlockGroup:
        """Return the group; read its bitmap if that has not been read."""
        group = self.groups.get(number)
        if group is None:
            head, end = self.geometry.head_blocks(number), self.geometry.free_end(number)
            group = self.groups[number] = BlockGroup(number, head, end)
            self._free[number // self.geometry.flex_groups] -= group.blocks
            self._list(group)
        return group

    def _take(self, group: BlockGroup, offset: int, length: int) -> bool:
        self._unlist(group)
        success = offset + length <= GROUP_BLOCKS and group.take(offset, length)
        self._list(group)
        return success

    def _list(self, group: BlockGroup) -> None:
        """Count the free blocks of *group* again, and list it by its largest buddy."""
        self._free[group.number // self.geometry.flex_groups] += group.blocks
        if group.order >= 0:
            self.of_order[group.order].add(group.number)
            self._of_average[_average_order(group.average_run)].add(group.number)

    def _unlist(self, group: BlockGroup) -> None:
        self._free[group.number // self.geometry.flex_groups] -= group.blocks
        if group.order >= 0:
            self.of_order[group.order].remove(group.number)
            self._of_average[_average_order(group.average_run)].remove(group.number)


def _average_order(length: int) -> int:
    """Return the list for groups whose free runs have *length* blocks on average.

    Stands for mb_avg_fragment_size_order.

    >>> [_average_order(length) for length in (1, 3, 4, 32_768)]
    [0, 0, 1, 13]
    """
    return min(max(length.bit_length() - 2, 0), _ORDERS - 1)
