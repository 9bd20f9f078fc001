"""The free blocks of an ext4, in groups, and where the multiblock allocator finds some.

Stands for ext4_mb_find_by_goal, ext4_mb_scan_groups, ext4_mb_simple_scan_group and ext4_mb_complex_scan_group
(fs/ext4/mballoc.c).  Pure.  Blocks are those of the disk.  A group's buddy is not kept: what is free decides which
aligned powers of two are.  Left out: the groups' locks, stripes, CR_BEST_AVAIL_LEN, what is freed and not yet
committed, reserved blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from sortedcontainers import SortedList

from models.extents.free_space import Free, FreeSpace, take_exactly

GROUP_BLOCKS: Final = 32_768
_ORDERS: Final = 14  # MB_NUM_ORDERS with blocks of 4 KiB
_MIN_TO_SCAN: Final = 10  # MB_DEFAULT_MIN_TO_SCAN
_INODE_TABLE_BLOCKS: Final = 512  # 8192 inodes of 256 B for a group, mkfs's default
_BITMAPS: Final = 2
_FLEX_GROUPS_WITH_OWN_FIRST: Final = 4  # EXT4_FLEX_SIZE_DIR_ALLOC_SCHEME
_ROOT_BLOCKS: Final = 6
"""The root directory and lost+found."""


class Geometry(NamedTuple):
    """What mkfs made: groups, how many of them share a place for their metadata (flex_bg), blocks of descriptors with
    those kept for growing, and blocks of the journal.
    """

    groups: int
    flex_groups: int
    descriptor_blocks: int
    journal_blocks: int

    @property
    def flexes(self) -> int:
        """How many flex groups there are."""
        return -(-self.groups // self.flex_groups)

    @property
    def journal_group(self) -> int:
        """Where mkfs puts the journal: into the middle flex group, behind the group with the metadata."""
        middle = self.groups // 2 // self.flex_groups * self.flex_groups
        return min(middle + 1, self.groups - 1)

    def head_blocks(self, group: int) -> int:
        """What mkfs keeps at the start of *group*: superblock, descriptors, bitmaps and inode tables, the journal."""
        head = 1 + self.descriptor_blocks if _has_superblock(group) else 0
        if group % self.flex_groups == 0:
            described = min(self.flex_groups, self.groups - group)
            head += described * (_BITMAPS + _INODE_TABLE_BLOCKS) + (_ROOT_BLOCKS if group == 0 else 0)
        return head + (self.journal_blocks if group == self.journal_group else 0)

    def keeps_off_data(self, group: int) -> bool:
        """Whether files are kept out of *group* as long as that goes: the first of a flex group is for directories."""
        return self.flex_groups >= _FLEX_GROUPS_WITH_OWN_FIRST and group % self.flex_groups == 0


def _has_superblock(group: int) -> bool:
    """sparse_super: 0, 1 and the powers of 3, 5 and 7."""
    for base in (3, 5, 7):
        power = 1
        while power < group:
            power *= base
        if power == group:
            return True
    return group in (0, 1)


class BlockGroup:
    """The free blocks of one group; ``order``: of the largest power of two of them that is free and aligned, or -1."""

    __slots__ = ("first_block", "free", "number", "order")

    def __init__(self, number: int, head_blocks: int) -> None:
        self.number = number
        self.first_block = number * GROUP_BLOCKS
        self.free = FreeSpace(head_blocks, GROUP_BLOCKS - head_blocks)
        self.order = self._largest_order()

    def take(self, block: int, length: int) -> bool:
        """Take just these *length* blocks from *block* of the group on, if all of them are free."""
        taken = bool(take_exactly(self.free.with_room(1), block, length))
        self.order = self._largest_order()
        return taken

    def give_back(self, block: int, length: int) -> None:
        """Blocks of the group are free again."""
        self.free.give_back(block, length)
        self.order = self._largest_order()

    def first_of_order(self, order: int) -> int:
        """The first block of the buddy that a request of *order* takes: of the smallest that is free, the first."""
        fitting = [chunk for run in self.free.extents() for chunk in _buddies(run) if chunk.size >= 1 << order]
        return min(fitting, key=lambda chunk: chunk.size).first

    def best_run(self, length: int) -> Free | None:
        """The first run of just *length* free blocks, or the shortest of the first ten that are longer, or the longest
        of all; None if nothing is free.
        """
        runs = self.free.extents()
        longer = []
        for run in runs:
            if run.size == length:
                return run
            if run.size > length:
                longer.append(run)
                if len(longer) == _MIN_TO_SCAN:
                    break
        by_size = [run.size for run in longer or runs]
        if not by_size:
            return None
        best = min(by_size) if longer else max(by_size)
        return (longer or runs)[by_size.index(best)]

    def _largest_order(self) -> int:
        return max((c.size.bit_length() - 1 for run in self.free.extents() for c in _buddies(run)), default=-1)


def _buddies(run: Free) -> Iterator[Free]:
    """The aligned powers of two that a free run falls into (mb_mark_free_simple)."""
    first, size = run
    while size:
        order = min((first & -first).bit_length() - 1 if first else _ORDERS, size.bit_length() - 1, _ORDERS - 1)
        yield Free(first, 1 << order)
        first, size = first + (1 << order), size - (1 << order)


class Mballoc:
    """All groups.  *by_order*: a search prefers the group that is used most and still fits (6.x), not the next one.

    A group takes part once its bitmap has been read: with the first directory of its flex group, or when no other has
    room.
    """

    def __init__(self, geometry: Geometry, *, by_order: bool) -> None:
        self.geometry = geometry
        self._by_order = by_order
        self._groups: dict[int, BlockGroup] = {}
        self._of_order: list[SortedList[int]] = [SortedList() for _ in range(_ORDERS)]

    def read_bitmaps(self, flex: int) -> None:
        """The groups of a flex group take part from now on."""
        first = flex * self.geometry.flex_groups
        for number in range(first, min(first + self.geometry.flex_groups, self.geometry.groups)):
            if number not in self._groups:
                group = self._groups[number] = BlockGroup(number, self.geometry.head_blocks(number))
                self._list(group)

    def free_blocks(self, flex: int) -> int:
        """How many blocks of a flex group are free."""
        first, total = flex * self.geometry.flex_groups, 0
        for number in range(first, min(first + self.geometry.flex_groups, self.geometry.groups)):
            group = self._groups.get(number)
            total += GROUP_BLOCKS - self.geometry.head_blocks(number) if group is None else group.free.blocks
        return total

    def take_exactly(self, block: int, length: int) -> bool:
        """Take just these blocks of one group, if all of them are free (EXT4_MB_HINT_TRY_GOAL)."""
        number, offset = divmod(block, GROUP_BLOCKS)
        group = self._groups.get(number)
        return group is not None and offset + length <= GROUP_BLOCKS and self._take(group, offset, length)

    def find(self, group: int, length: int) -> tuple[int, int]:
        """Take *length* blocks together, searching from *group* on; where there are none, fewer.

        Returns the first block and how many; 0 of them if nothing is free.
        """
        while True:
            found = self._find(group, length)
            if found[1] == length or len(self._groups) == self.geometry.groups:
                break
            if found[1]:
                self.give_back(*found)
            for flex in range(self.geometry.flexes):
                self.read_bitmaps(flex)
        return found

    def find_metadata(self, group: int) -> int:
        """Take one block for a file's tree: the first free one of *group* or of those behind it; -1 if none is."""
        for candidate in self._from(group):
            if candidate.free.blocks:
                offset = candidate.free.extents()[0].first
                self._take(candidate, offset, 1)
                return candidate.first_block + offset
        return -1

    def give_back(self, block: int, length: int) -> None:
        """These blocks are free again."""
        while length:
            number, offset = divmod(block, GROUP_BLOCKS)
            count = min(length, GROUP_BLOCKS - offset)
            group = self._groups[number]
            self._unlist(group)
            group.give_back(offset, count)
            self._list(group)
            block, length = block + count, length - count

    def _find(self, start: int, length: int) -> tuple[int, int]:
        if length >= 2 and length & (length - 1) == 0 and length < 1 << _ORDERS:
            order = length.bit_length() - 1
            group = self._with_order(start, order)
            if group is not None:
                offset = group.first_of_order(order)
                self._take(group, offset, length)
                return group.first_block + offset, length
        best: tuple[BlockGroup, Free] | None = None
        for group in self._from(start):
            run = group.best_run(length)
            if run is not None and (best is None or run.size > best[1].size):
                best = group, run
                if run.size >= length:
                    break
        if best is None:
            return 0, 0
        group, run = best
        got = min(length, run.size)
        self._take(group, run.first, got)
        return group.first_block + run.first, got

    def _with_order(self, start: int, order: int) -> BlockGroup | None:
        """CR_POWER2_ALIGNED: the group for a buddy of *order*, from *start* on and then from the first."""
        keeps_off = self.geometry.keeps_off_data
        for least, behind in ((start, self.geometry.groups), (0, start)):
            numbers = (
                number
                for listed in self._of_order[order:]
                for number in listed.irange(least, behind, inclusive=(True, False))
                if not keeps_off(number)
            )
            found = next(numbers, None) if self._by_order else min(numbers, default=None)
            if found is not None:
                return self._groups[found]
        return None

    def _from(self, start: int) -> Iterator[BlockGroup]:
        """The groups that take part, from *start* on and then from the first."""
        for number in (*range(start, self.geometry.groups), *range(start)):
            if number in self._groups:
                yield self._groups[number]

    def _take(self, group: BlockGroup, offset: int, length: int) -> bool:
        self._unlist(group)
        taken = group.take(offset, length)
        self._list(group)
        return taken

    def _list(self, group: BlockGroup) -> None:
        if group.order >= 0:
            self._of_order[group.order].add(group.number)

    def _unlist(self, group: BlockGroup) -> None:
        if group.order >= 0:
            self._of_order[group.order].remove(group.number)
