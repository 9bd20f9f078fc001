"""A literal multiblock allocator: the block groups of an ext4 with their bitmaps, and the search in them.

Stands for fs/ext4/mballoc.c as it is from 6.17 on; read in 6.12.117, which has the same search.  Left out:
stripes, clusters, bitmaps that have not been read, and a filesystem without room (CR_BEST_AVAIL_LEN and
later).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

GROUP_BLOCKS: Final = 32_768
_ORDERS: Final = 14
"""MB_NUM_ORDERS."""
_MIN_TO_SCAN: Final = 10
_FEW_GROUPS: Final = 16
"""MB_DEFAULT_LINEAR_SCAN_THRESHOLD: with fewer groups, each search goes from group to group."""
_OWN_FIRST_GROUP: Final = 4
"""EXT4_FLEX_SIZE_DIR_ALLOC_SCHEME: in flex groups of this size, the first group is for directories."""
Run = tuple[int, int]
"""The first block of a run, and its length."""


class Group:
    """A block group: its bitmap, the first block and the order of each free buddy, and its fragments."""

    def __init__(self, free: Iterable[Run]) -> None:
        """Make a group with the *free* runs, whose blocks are counted from the start of the group."""
        self._used = bytearray(b"\1") * GROUP_BLOCKS
        for first, length in free:
            self._used[first : first + length] = bytes(length)
        self._generate()

    @property
    def largest_free_order(self) -> int:
        """Return bb_largest_free_order; -1 if no block is free."""
        return max(self._buddies.values(), default=-1)

    @property
    def average_fragment(self) -> int:
        """Return the mean length of the free runs; 0 if no block is free."""
        return self.free // self.fragments if self.fragments else 0

    def runs(self) -> Iterator[Run]:
        """Yield the free runs."""
        end = 0
        while (first := self._used.find(0, end)) >= 0:
            end = self._used.find(1, first)
            end = GROUP_BLOCKS if end < 0 else end
            yield first, end - first

    def mark_used(self, first: int, length: int) -> None:
        """mb_mark_used."""
        assert not any(self._used[first : first + length]), "the blocks must be free"
        self._used[first : first + length] = b"\1" * length
        self._generate()

    def find_extent(self, block: int, needed: int) -> int:
        """mb_find_extent: return the free blocks from *block* on, by buddies, until *needed* are found."""
        if self._used[block]:
            return 0
        order = self._order_of(block)
        length = (1 << order) - block % (1 << order)
        behind = block + length
        while needed > length and behind < GROUP_BLOCKS and not self._used[behind]:
            length += 1 << self._order_of(behind)
            behind = block + length
        return length

    def find_buddy(self, order: int) -> int:
        """ext4_mb_simple_scan_group: the first buddy of the smallest order from *order* on."""
        smallest = min(of for of in self._buddies.values() if of >= order)
        return min(first for first, of in self._buddies.items() if of == smallest)

    def _order_of(self, block: int) -> int:
        """mb_find_order_for_block."""
        return next(order for order in range(_ORDERS) if self._buddies.get(block >> order << order) == order)

    def _generate(self) -> None:
        """ext4_mb_generate_buddy and ext4_mb_mark_free_simple."""
        self._buddies: dict[int, int] = {}
        self.free = self.fragments = 0
        for first, length in self.runs():
            self.free += length
            self.fragments += 1
            while length:
                aligned = ((first | 1 << _ORDERS - 1) & -(first | 1 << _ORDERS - 1)).bit_length() - 1
                order = min(aligned, length.bit_length() - 1)
                self._buddies[first] = order
                first, length = first + (1 << order), length - (1 << order)


@dataclass
class Request:
    """struct ext4_allocation_context: *length* blocks, and where the search for them begins.

    ``data``: they are for pages.  ``goal``: a block; ``tries_goal``: exactly the blocks there are tried.
    ``stream``: the index of the place where large files go on; None: the search begins at the goal.
    """

    length: int
    goal: int
    data: bool = True
    tries_goal: bool = False
    stream: int | None = None


@dataclass
class Mballoc:
    """The *groups* whose bitmaps have been read, by number, of a filesystem of *count* groups.

    ``linear_groups``: s_mb_max_linear_groups, the groups that a search looks at before the lists.
    ``last_groups``: s_mb_last_groups, the groups where large files go on.
    """

    groups: dict[int, Group]
    count: int
    flex_groups: int
    linear_groups: int = 0
    last_groups: list[int] = field(default_factory=list)

    def find(self, request: Request) -> Run:
        """ext4_mb_regular_allocator: take the blocks of *request*; return the first and their number."""
        group, offset = divmod(request.goal, GROUP_BLOCKS)
        length = request.length
        if request.tries_goal and self.groups[group].find_extent(offset, length) >= length:
            return self._use(request, group, offset)
        start = group if request.stream is None else self.last_groups[request.stream]
        order = length.bit_length() - 1
        if length & (length - 1) == 0 and 1 <= order < _ORDERS:
            for number in self._by_order(start, order):
                of = self.groups[number].largest_free_order
                if of >= order and not self._is_for_directories(number, request):
                    return self._use(request, number, self.groups[number].find_buddy(order))
        for number in self._by_fragment(start, length):
            if self.groups[number].average_fragment >= length:
                return self._use(request, number, self._scan(self.groups[number], length))
        raise NotImplementedError("a filesystem without room")

    def _use(self, request: Request, number: int, offset: int) -> Run:
        """ext4_mb_use_best_found."""
        self.groups[number].mark_used(offset, request.length)
        if request.stream is not None:
            self.last_groups[request.stream] = number
        return number * GROUP_BLOCKS + offset, request.length

    def _is_for_directories(self, number: int, request: Request) -> bool:
        return request.data and self.flex_groups >= _OWN_FIRST_GROUP and number % self.flex_groups == 0

    def _by_order(self, start: int, order: int) -> Iterator[int]:
        """ext4_mb_scan_groups_p2_aligned."""
        lists = [
            [number for number, group in self.groups.items() if group.largest_free_order == of]
            for of in range(order, _ORDERS)
        ]
        return self._from(start, lists)

    def _by_fragment(self, start: int, length: int) -> Iterator[int]:
        """ext4_mb_scan_groups_goal_fast: the lists by mb_avg_fragment_size_order."""
        lists = [
            [number for number, group in self.groups.items() if _fragment_order(group.average_fragment) == of]
            for of in range(_fragment_order(length), _ORDERS)
        ]
        return self._from(start, lists)

    def _from(self, start: int, lists: Sequence[Sequence[int]]) -> Iterator[int]:
        """ext4_mb_scan_groups: yield groups in line, then those of *lists* from there on, and from 0 on."""
        in_line = self.count if self.count < _FEW_GROUPS else self.linear_groups
        behind_line = (start + in_line) % self.count
        yield from (number for at in range(in_line) if (number := (start + at) % self.count) in self.groups)
        for first, behind in ((behind_line, self.count), (0, behind_line)):
            for listed in lists:
                yield from (number for number in sorted(listed) if first <= number < behind)

    def _scan(self, group: Group, length: int) -> int:
        """ext4_mb_complex_scan_group and ext4_mb_measure_extent, where a run is long enough."""
        best, best_length, found = -1, 0, 0
        for first, run in group.runs():
            behind = first + run
            while run >= length:  # a shorter run, or the shorter rest of a run, is passed over
                got = group.find_extent(first, length)
                found += 1
                if got == length:
                    return first
                if best < 0 or got < best_length:
                    best, best_length = first, got
                if found > _MIN_TO_SCAN:
                    return best
                first, run = first + got, behind - first - got
        return best


def _fragment_order(length: int) -> int:
    """mb_avg_fragment_size_order; -1 without free blocks.

    >>> [_fragment_order(length) for length in (0, 1, 3, 4, 32_768)]
    [-1, 0, 0, 1, 13]
    """
    return min(max(length.bit_length() - 2, 0), _ORDERS - 1) if length else -1
