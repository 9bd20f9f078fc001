"""Dirty accounting and thresholds.

Stands for mm/page-writeback.c (global_dirtyable_memory, global_dirty_limits, account_page_dirtied, the
end of writeback) and for what inode caches and programs leave to pages.  Left out: cgroups, highmem, zones,
swap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wbsim.models.interfaces import Wb
from wbsim.models.page_cache.spec import DirtyLimits, MemorySpec
from wbsim.sim.units import PAGE_BYTES


class Thresholds:
    """Dirty pages at which background writeback starts, and the limit at which writers stop.

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
        """The number of dirty pages below which no writer is throttled (dirty_freerun_ceiling)."""
        return (self.background + self.limit) // 2


def _below(background: int, limit: int) -> Thresholds:
    """Return the thresholds; a *background* at or above *limit* becomes half of *limit*."""
    return Thresholds(background if background < limit else limit // 2, limit)


def _pages_of(size: int | None) -> int | None:
    return None if size is None else -(-size // PAGE_BYTES)


_GAP: Final = 4_096
"""kswapd begins when memory is full, and goes on until this part of it is free.

Of 16 GiB: min_free_kbytes is 16 MiB, and a quarter of that lies between two watermarks.
"""


def _nobody() -> None:
    """Nobody evicts."""


class PageCache:
    """Memory, the thresholds, and the global counters (pages), which are the sums over all contexts ``wbs``
    (`models.interfaces.Wb`).
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
        self._memory_bytes = memory.memory - memory.kernel_reserve
        self._slab_bytes = memory.inode_slab_bytes
        self.take(0)
        self.total_pages = self._memory_bytes // PAGE_BYTES
        """Memory that the kernel does not keep for itself (vm_total_pages)."""
        # Copies: a spec's own attributes are slow to read.
        self._background_ratio, self._ratio = limits.dirty_background_ratio, limits.dirty_ratio
        self._limit = _pages_of(limits.dirty_bytes)
        self._background = _pages_of(limits.dirty_background_bytes)
        self._fixed: Thresholds | None = None
        if self._limit is not None and self._background is not None:
            self._fixed = _below(self._background, self._limit)
        self.cached_inodes = self.paged_inodes = 0
        self.on_full: Callable[[], None] = _nobody
        """Called for each inode that is one too many."""
        self.wbs: list[Wb] = []

    def take(self, size: int) -> None:
        """A program takes *size* bytes of anonymous memory, or gives as many back where it is below 0."""
        self._memory_bytes -= size

    @property
    def dirty(self) -> int:
        """Pages that are dirty and not yet under writeback."""
        pages = 0
        for wb in self.wbs:
            pages += wb.dirty
        return pages

    @property
    def dirty_and_writeback(self) -> int:
        """The same with those under writeback: by these, writers are judged."""
        pages = 0
        for wb in self.wbs:
            pages += wb.dirty_and_writeback
        return pages

    @property
    def writeback(self) -> int:
        """Pages under writeback."""
        return self.dirty_and_writeback - self.dirty

    @property
    def dirtied(self) -> int:
        """Pages that ever became dirty."""
        return sum(wb.dirtied for wb in self.wbs)

    @property
    def written(self) -> int:
        """Pages that ever became clean."""
        return sum(wb.written for wb in self.wbs)

    @property
    def reclaiming(self) -> bool:
        """Whether memory is full of inodes and their pages, or just was, so that kswapd shrinks both."""
        return self._used_bytes() > self._memory_bytes - 2 * (self._memory_bytes // _GAP)

    @property
    def is_low(self) -> bool:
        """Whether kswapd, which has begun, is to go on."""
        return self._used_bytes() > self._memory_bytes - self._memory_bytes // _GAP

    @property
    def must_reclaim(self) -> bool:
        """Whether memory is so full that who wants some has to evict inodes first (direct reclaim)."""
        return self._used_bytes() > self._memory_bytes + self._memory_bytes // _GAP

    @property
    def room(self) -> int:
        """How many inodes fit, if as many of them have a page as of those that are cached."""
        used_bytes = self._used_bytes()
        if not used_bytes:
            return self._memory_bytes // (PAGE_BYTES + self._slab_bytes)
        return self._memory_bytes * self.cached_inodes // used_bytes

    def _used_bytes(self) -> int:
        return self.cached_inodes * self._slab_bytes + self.paged_inodes * PAGE_BYTES

    def add_inodes(self, inodes: int) -> None:
        """So many more are cached."""
        self.cached_inodes += inodes
        if self._used_bytes() > self._memory_bytes:
            self.on_full()

    def dirtyable_pages(self) -> int:
        """Memory that could hold dirty pages: all but the kernel's, the programs' and the inode caches'.

        When inodes and their pages no longer fit, reclaim takes both at the rate at which they came, so their
        proportion stays.
        """
        slab_bytes = min(self.cached_inodes, self.room) * self._slab_bytes
        return (self._memory_bytes - slab_bytes) // PAGE_BYTES

    def thresholds(self) -> Thresholds:
        """global_dirty_limits."""
        if self._fixed is not None:
            return self._fixed
        dirtyable, background, limit = self.dirtyable_pages(), self._background, self._limit
        return _below(
            dirtyable * self._background_ratio // 100 if background is None else background,
            dirtyable * self._ratio // 100 if limit is None else limit,
        )
