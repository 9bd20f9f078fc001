"""The global counters are the sums over all contexts."""

from __future__ import annotations

from models.page_cache.accounting import DirtyLimits, MemorySpec, PageCache
from models.writeback.wb import WritebackContext


def test_what_is_dirty_anywhere_is_dirty() -> None:
    """Two contexts: 30 + 5 pages dirty, 10 + 0 under writeback, 4 + 2 written."""
    cache = PageCache(
        MemorySpec(memory=1 << 30, kernel_reserve=0, inode_slab_bytes=1_000),
        DirtyLimits(dirty_background_ratio=10, dirty_ratio=20),
    )
    assert (cache.dirty, cache.nr_dirty, cache.dirtied, cache.written) == (0, 0, 0, 0)
    one, two = (WritebackContext(name, None, cache) for name in ("vda", "vdb"))  # type: ignore[arg-type]
    one.dirty, one.nr_dirty, one.written = 30, 40, 4
    two.dirty, two.nr_dirty, two.written = 5, 5, 2
    assert (one.dirtied, two.dirtied) == (44, 7)
    assert (cache.dirty, cache.nr_dirty, cache.writeback) == (35, 45, 10)
    assert (cache.dirtied, cache.written) == (51, 6)
