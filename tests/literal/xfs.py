"""A literal XFS of Linux 6.18: one file is written back, and its extents are converted.

Stands for iomap_writepages, xfs_map_blocks, xfs_bmapi_convert_delalloc, xfs_end_io and
xfs_iomap_write_unwritten.
"""

from __future__ import annotations

from collections.abc import Generator
from copy import deepcopy
from typing import Any

from tests.literal.clock import Clock, LockCounts, Semaphore, Steps
from tests.literal.file import File, IoEnd, Times
from wbsim.models.filesystems.xfs.layout import NOWHERE, allocate, target_of
from wbsim.models.page_cache.pages import DELAYED, delayed_extent, next_dirty


class Xfs(File):
    """A file whose group is *home*; *spaces* are the free extents of all groups of *group_blocks* blocks.

    A commit takes *commit_ns*.  To add a mapping to the reverse map takes *rmap_ns*, and to change one
    takes *rmap_ioend_ns*.
    """

    def __init__(
        self, clock: Clock, *parts: Any, times: Times, spaces: Any, home: int, group_blocks: int,
        commit_ns: int, rmap_ns: int, rmap_ioend_ns: int, **given: Any,
    ) -> None:  # fmt: skip
        super().__init__(clock, *parts, times, **given)
        self._spaces = deepcopy(spaces)
        self._home, self._group_blocks = home, group_blocks
        self._commit_ns, self._rmap_ns, self._rmap_ioend_ns = commit_ns, rmap_ns, rmap_ioend_ns
        self.group_counts = LockCounts()
        self._agfs = [Semaphore(clock, self.group_counts, times.wake_ns) for _ in spaces.blocks]

    def writepages(self) -> Steps:
        """iomap_writepages: map each page if necessary; submit an ioend that the page does not follow."""
        page = next_dirty(self._pages, 0)
        while page >= 0:
            if self._pages.states[page] == DELAYED:
                yield from self._map(page)
            if self._ioend is not None and not self._goes_on(page):
                yield from self._submit(ends=True)
            yield from self._add(page)
            page = next_dirty(self._pages, page + 1)
        if self._ioend is not None:
            yield from self._submit(ends=True)

    def _map(self, page: int) -> Steps:
        """xfs_map_blocks and xfs_bmapi_convert_delalloc: a transaction for the delayed extent at *page*."""
        pages, task = self._pages, self._flusher
        yield from self._lock.down_read(task)
        self._lock.up_read()
        yield from self._lock.down_write(task)
        target = target_of(pages, page, self._group_blocks)
        wanted = self._home + (0 if target == NOWHERE else target // self._group_blocks)
        group = yield from self._lock_group(wanted, delayed_extent(pages, page)[1])
        yield self._map_ns
        first_block = (group - self._home) * self._group_blocks
        near = NOWHERE if group != wanted else 0 if target == NOWHERE else target - first_block
        allocate(pages, self._spaces, group, page, near, first_block)
        yield self._commit_ns
        self._agfs[group].up()
        if self._rmap_ns:  # the transaction is rolled
            yield from self._agfs[group].down(task)
            yield self._rmap_ns
            self._agfs[group].up()
        self._extents += 1
        self._lock.up_write(task)

    def _lock_group(self, wanted: int, length: int) -> Generator[int, None, int]:
        """xfs_alloc_vextent_start_ag: the first group from *wanted* on with room whose lock is free.

        If no lock is free, the flusher waits for the lock of the first group with room.
        """
        groups = len(self._agfs)
        order = [(wanted + i) % groups for i in range(groups)]
        roomy = [group for group in order if self._spaces.longest[group] >= length]
        for group in roomy:
            if self._agfs[group].try_down(self._flusher):
                return group
        yield from self._agfs[roomy[0]].down(self._flusher)
        return roomy[0]

    def _convert(self, ioend: IoEnd) -> Steps:
        """Change the reverse map under the lock of the group."""
        if self._rmap_ioend_ns:
            agf = self._agfs[self._home + int(self._pages.blocks[ioend.first]) // self._group_blocks]
            yield from agf.down(self._worker)
            yield self._rmap_ioend_ns
            agf.up()
