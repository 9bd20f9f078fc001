"""A literal XFS of Linux 6.18: one file is written back, and its extents are converted.

Stands for iomap_writepages, xfs_map_blocks, xfs_bmapi_convert_delalloc, xfs_bmap_adjacent,
xfs_alloc_ag_vextent_near, xfs_alloc_ag_vextent_size, xfs_end_io and xfs_iomap_write_unwritten.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final

from tests.literal.clock import Clock, LockCounts, Semaphore, Steps
from tests.literal.file import File, IoEnd, Times

_GAP_UNITS: Final = 4
"""XFS_ALLOC_GAP_UNITS: the widest gap that is kept on disk, in lengths of the extent."""
Extent = tuple[int, int]
"""The first block of a free extent, counted from the start of its group, and its length."""


class Group:
    """An allocation group with the *free* extents."""

    def __init__(self, free: Sequence[Extent]) -> None:
        self._free = list(free)

    @property
    def longest(self) -> int:
        """Return the length of the longest free extent."""
        return max((length for _, length in self._free), default=0)

    def take_smallest(self, length: int) -> int:
        """Take *length* blocks from the smallest free extent that has as many; return the first block."""
        _, block = min((of, block) for block, of in self._free if of >= length)
        return self._cut(block, block, length)

    def take_near(self, target: int, length: int) -> int:
        """Take *length* blocks as near to *target* as possible; return the first block."""
        places = [
            (min(max(target, block), block + of - length), block) for block, of in self._free if of >= length
        ]
        start, block = min(places, key=lambda place: abs(place[0] - target))
        return self._cut(block, start, length)

    def _cut(self, block: int, start: int, length: int) -> int:
        """Take *length* blocks from *start* on out of the free extent at *block*; return *start*."""
        at, (_, of) = next((at, free) for at, free in enumerate(self._free) if free[0] == block)
        rest = [(block, start - block), (start + length, block + of - start - length)]
        self._free[at : at + 1] = [free for free in rest if free[1]]
        return start


class Xfs(File):
    """A file in the group *home* of *groups*, which have *group_blocks* blocks each.

    A commit takes *commit_ns*.  To add a mapping to the reverse map takes *rmap_ns*, and to change one
    takes *rmap_ioend_ns*.
    """

    def __init__(
        self, clock: Clock, *parts: Any, times: Times, groups: Sequence[Group], home: int, group_blocks: int,
        commit_ns: int, rmap_ns: int, rmap_ioend_ns: int, **given: Any,
    ) -> None:  # fmt: skip
        super().__init__(clock, *parts, times, **given)
        self._groups = groups
        self._home, self._group_blocks = home, group_blocks
        self._commit_ns, self._rmap_ns, self._rmap_ioend_ns = commit_ns, rmap_ns, rmap_ioend_ns
        self.group_counts = LockCounts()
        self.transactions = 0
        """The transactions that have logged an extent."""
        self._agfs = [Semaphore(clock, self.group_counts, times.wake_ns, times.waker_ns) for _ in groups]

    def writepages(self) -> Steps:
        """iomap_writepages: map each page if necessary; submit an ioend that the page does not follow."""
        page = 0
        while (page := self._next_dirty(page)) >= 0:
            if page not in self._blocks:
                yield from self._map(page)
            if self._ioend is not None and not self._goes_on(page):
                yield from self._submit(ends=True)
            yield from self._add(page)
        if self._ioend is not None:
            yield from self._submit(ends=True)

    def _map(self, page: int) -> Steps:
        """xfs_map_blocks and xfs_bmapi_convert_delalloc, for the delayed extent from *page* on."""
        task, length = self._flusher, self._delayed_from(page)
        yield from self._lock.down_read(task)
        yield self._lock.up_read()
        yield self._times.map_outside_ns
        yield from self._lock.down_write(task)
        target = self._adjacent(page, length)
        wanted = self._home + (0 if target is None else target // self._group_blocks)
        group = yield from self._lock_group(wanted, length)
        yield self._map_ns
        first_block = (group - self._home) * self._group_blocks
        if group != wanted:
            block = self._groups[group].take_smallest(length)
        else:
            block = self._groups[group].take_near(0 if target is None else target - first_block, length)
        for at in range(length):
            self._blocks[page + at] = first_block + block + at
        yield self._commit_ns
        yield self._agfs[group].up()
        if self._rmap_ns:  # the transaction is rolled
            yield from self._agfs[group].down(task)
            yield self._rmap_ns
            yield self._agfs[group].up()
        self._extents += 1
        self.transactions += 1
        yield self._lock.up_write(task)

    def _delayed_from(self, page: int) -> int:
        """Return the length of the delayed extent that begins at *page*."""
        end = page
        while end in self._dirty and end not in self._blocks:
            end += 1
        return end - page

    def _adjacent(self, page: int, length: int) -> int | None:
        """xfs_bmap_adjacent: the block behind the extent in front, or behind a gap as wide as in the file.

        None: there is no extent in front, or the block lies in another group.
        """
        before = max((of for of in self._blocks if of < page), default=None)
        if before is None:
            return None
        target, gap = self._blocks[before] + 1, page - before - 1
        for block in (target + gap, target) if gap <= _GAP_UNITS * length else (target,):
            if block // self._group_blocks == self._blocks[before] // self._group_blocks:
                return block
        return None

    def _lock_group(self, wanted: int, length: int) -> Generator[int, None, int]:
        """xfs_alloc_vextent_start_ag: the first group from *wanted* on with room whose lock is free.

        If no lock is free, the flusher waits for the lock of the first group with room.
        """
        groups = len(self._agfs)
        order = [(wanted + i) % groups for i in range(groups)]
        roomy = [group for group in order if self._groups[group].longest >= length]
        for group in roomy:
            if self._agfs[group].try_down(self._flusher):
                return group
        yield from self._agfs[roomy[0]].down(self._flusher)
        return roomy[0]

    def _convert(self, ioend: IoEnd) -> Steps:
        """Log the extent, and change the reverse map under the lock of the group."""
        self.transactions += 1
        if self._rmap_ioend_ns:
            agf = self._agfs[self._home + self._blocks[ioend.first] // self._group_blocks]
            yield from agf.down(self._worker)
            yield self._rmap_ioend_ns
            yield agf.up()
