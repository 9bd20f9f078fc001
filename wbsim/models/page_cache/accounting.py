"""Dirty accounting and thresholds.

Stands for mm/page-writeback.c (global_dirtyable_memory, global_dirty_limits, account_page_dirtied, the end of
writeback).  Memory of inode caches and programs is not available for pages.  Left out: cgroups, highmem,
zones, swap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from wbsim.models.interfaces import Wb
from wbsim.models.page_cache.spec import DirtyLimits, MemorySpec
from wbsim.sim.units import PAGE_BYTES


class Thresholds:
    """The numbers of pages above which background writeback starts, and above which writers stop.

    ``background`` limits the dirty pages, and ``limit`` those that are dirty or under writeback.

    NOTE: an ordinary class, because mypyc leaves the __init__ of a dataclass interpreted (2 % of P13).
    """

    __slots__ = ("background", "limit")

    def __init__(self, background: int, limit: int) -> None:
        self.background = background
        self.limit = limit

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Thresholds)
            and self.background == other.background
            and self.limit == other.limit
        )

    def __repr__(self) -> str:
        return f"Thresholds({self.background}, {self.limit})"

    @property
    def freerun(self) -> int:
        """The number of pages below which no writer is throttled (dirty_freerun_ceiling).

        Pages count that are dirty or under writeback.

        >>> Thresholds(background=100, limit=200).freerun
        150
        """
        return (self.background + self.limit) // 2


def _thresholds(background: int, limit: int) -> Thresholds:
    """Return the thresholds (pages); a *background* at or above *limit* becomes half of *limit*.

    >>> _thresholds(background=100, limit=80)
    Thresholds(40, 80)
    """
    return Thresholds(background if background < limit else limit // 2, limit)


def _pages_of(size: int | None) -> int | None:
    return None if size is None else -(-size // PAGE_BYTES)


_GAP: Final = 4_096
"""kswapd begins when memory is full, and continues until one part in `_GAP` is free.

With 16 GiB, min_free_kbytes is 16 MiB, and the distance between two watermarks is a quarter of that.
"""


def _nobody() -> None:
    """Do nothing when memory is full: no kswapd has been set."""


class PageCache:
    """Memory, the thresholds, and the global counters (pages).

    The counters are sums over all writeback contexts ``wbs`` (`models.interfaces.Wb`).  ``cached_inodes`` are
    in memory, and ``paged_inodes`` of these have pages; `SuperblockInodes` counts both.
    """

    __slots__ = (
        "_background",
        "_background_ratio",
        "_fixed",
        "_limit",
        "_memory_bytes",
        "_ratio",
        "_slab_bytes",
        "cached_inodes",
        "on_full",
        "paged_inodes",
        "total_pages",
        "wbs",
    )

    def __init__(self, memory: MemorySpec, limits: DirtyLimits) -> None:
        self._memory_bytes: i64 = memory.memory - memory.kernel_reserve
        self._slab_bytes: i64 = memory.inode_slab_bytes
        self.take(0)
        self.total_pages = self._memory_bytes // PAGE_BYTES
        """The pages of memory that the kernel does not keep for itself (vm_total_pages)."""
        # Copies: a spec's own attributes are slow to read.
        self._background_ratio = limits.dirty_background_ratio
        self._ratio = max(limits.dirty_ratio, limits.least_dirty_ratio)
        self._limit = _pages_of(limits.dirty_bytes)
        self._background = _pages_of(limits.dirty_background_bytes)
        self._fixed: Thresholds | None = None
        if self._limit is not None and self._background is not None:
            self._fixed = _thresholds(self._background, self._limit)
        self.cached_inodes: i64 = 0
        self.paged_inodes: i64 = 0
        self.on_full: Callable[[], None] = _nobody
        """Called when inodes are added and memory is full."""
        self.wbs: list[Wb] = []

    def take(self, size: int) -> None:
        """Take *size* bytes of memory for a program when it begins; a negative *size* gives bytes back."""
        self._memory_bytes -= size

    @property
    def dirty(self) -> int:
        """The number of pages that are dirty and not yet under writeback, in all contexts."""
        pages = 0
        for wb in self.wbs:
            pages += wb.dirty
        return pages

    @property
    def dirty_and_writeback(self) -> int:
        """The number of pages that are dirty or under writeback, by which writers are throttled."""
        pages = 0
        for wb in self.wbs:
            pages += wb.dirty_and_writeback
        return pages

    @property
    def writeback(self) -> int:
        """The number of pages under writeback."""
        return self.dirty_and_writeback - self.dirty

    @property
    def dirtied(self) -> int:
        """The number of pages that ever became dirty in the run, in all contexts."""
        return sum(wb.dirtied for wb in self.wbs)

    @property
    def written_pages(self) -> int:
        """The number of pages that ever became clean by a write in the run, in all contexts."""
        return sum(wb.written_pages for wb in self.wbs)

    @property
    def reclaiming(self) -> bool:
        """True if memory is full of inodes and their pages, or was recently, so that kswapd shrinks both.

        Less than 2/4096 of memory is free; `is_low` says which pages count.  The XFS log then pushes its
        complete AIL again and again (`XfsLog`).
        """
        return self._used_bytes() > self._memory_bytes - 2 * (self._memory_bytes // _GAP)

    @property
    def is_low(self) -> bool:
        """True if kswapd, which has begun, must go on: less than 1/4096 (`_GAP`) of memory is free.

        Memory is what kernel and programs leave.  Cached inodes use it, each with one page if it has pages;
        other pages of files do not count, since they can be dropped.
        """
        return self._used_bytes() > self._memory_bytes - self._memory_bytes // _GAP

    @property
    def must_reclaim(self) -> bool:
        """True if memory is so full that a task must evict inodes to get memory (direct reclaim).

        Inodes and their pages, counted as in `is_low`, exceed memory by more than 1/4096.
        """
        return self._used_bytes() > self._memory_bytes + self._memory_bytes // _GAP

    @property
    def room(self) -> int:
        """The number of inodes, cached ones included, that fit into memory if the share with a page stays.

        While no inode is cached, each counts with a page.
        """
        used_bytes = int(self._used_bytes())
        if not used_bytes:
            return self._memory_bytes // (PAGE_BYTES + self._slab_bytes)
        return int(self._memory_bytes) * int(self.cached_inodes) // used_bytes  # more than 64 bits

    def _used_bytes(self) -> i64:
        return self.cached_inodes * self._slab_bytes + self.paged_inodes * PAGE_BYTES

    def add_inodes(self, inodes: int) -> None:
        """Count *inodes* more cached inodes, and call ``on_full``, which wakes kswapd, if memory is full."""
        self.cached_inodes += inodes
        if self._used_bytes() > self._memory_bytes:
            self.on_full()

    def dirtyable_pages(self) -> int:
        """Return the number of pages that could be dirty: memory without kernel, programs and inode caches.

        When inodes and their pages no longer fit, reclaim takes both at the rate at which they came.  So
        their proportion stays.
        """
        slab_bytes = min(self.cached_inodes, self.room) * self._slab_bytes
        return (self._memory_bytes - slab_bytes) // PAGE_BYTES

    def thresholds(self) -> Thresholds:
        """Return the thresholds (pages) for the memory that is available now (global_dirty_limits)."""
        if self._fixed is not None:
            return self._fixed
        dirtyable, background, limit = self.dirtyable_pages(), self._background, self._limit
        return _thresholds(
            dirtyable * self._background_ratio // 100 if background is None else background,
            dirtyable * self._ratio // 100 if limit is None else limit,
        )
