"""Global counters as the sums over all contexts; thresholds and bandwidth in the kernel's integers."""

from __future__ import annotations

from math import ceil
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wbsim.models.page_cache.accounting import PageCache, Thresholds
from wbsim.models.page_cache.estimates import WriteBandwidth, roundup_pow2
from wbsim.models.page_cache.spec import DirtyLimits, MemorySpec
from wbsim.models.writeback.wb import WritebackContext
from wbsim.sim.units import GIB, MIB, PAGE_BYTES


def test_global_counters_are_the_sums_over_contexts() -> None:
    """The two contexts have 30 and 5 dirty pages, 10 and 0 under writeback, and 4 and 2 written."""
    cache = PageCache(
        MemorySpec(memory=1 << 30, kernel_reserve=0, inode_slab_bytes=1_000),
        DirtyLimits(dirty_background_ratio=10, dirty_ratio=20),
    )
    assert (cache.dirty, cache.dirty_and_writeback, cache.dirtied, cache.written_pages) == (0, 0, 0, 0)
    one, two = (WritebackContext(name, SimpleNamespace(), cache) for name in ("vda", "vdb"))  # type: ignore[arg-type]
    one.dirty, one.dirty_and_writeback, one.written_pages = 30, 40, 4
    two.dirty, two.dirty_and_writeback, two.written_pages = 5, 5, 2
    assert (one.dirtied, two.dirtied) == (44, 7)
    assert (cache.dirty, cache.dirty_and_writeback, cache.writeback) == (35, 45, 10)
    assert (cache.dirtied, cache.written_pages) == (51, 6)


def cache(ratios: tuple[int, int] = (10, 20), **limits: int | None) -> PageCache:
    """Return a page cache of 1 000 pages without the kernel's, with 1 904 bytes of slab for each inode."""
    memory = MemorySpec(memory=4_096_000 + MIB, kernel_reserve=MIB, inode_slab_bytes=1_904)
    return PageCache(memory, DirtyLimits(dirty_background_ratio=ratios[0], dirty_ratio=ratios[1], **limits))


def test_thresholds_are_percent_of_memory_without_inode_caches() -> None:
    """200 inodes take 380 800 bytes of the 1 000 pages.

    682 inodes with a page each fill memory, and more inodes take no more of it.
    """
    of = cache()
    assert of.total_pages == 1_000
    assert of.thresholds() == Thresholds(background=100, limit=200)
    assert of.thresholds().freerun == 150
    of.cached_inodes = of.paged_inodes = 200
    assert of.dirtyable_pages() == (4_096_000 - 380_800) // 4_096 == 907
    assert of.thresholds() == Thresholds(background=90, limit=181)
    for inodes, reclaiming in ((682, False), (683, True), (9_999, True)):
        of.cached_inodes = of.paged_inodes = inodes
        assert of.dirtyable_pages() == (4_096_000 - 682 * 1_904) // 4_096
        assert of.reclaiming == reclaiming


def test_thresholds_are_equal_if_both_numbers_are() -> None:
    """The other tests compare thresholds, so a comparison that is too lenient would hide their faults."""
    assert Thresholds(1, 2) == Thresholds(1, 2)
    assert all(Thresholds(1, 2) != other for other in (Thresholds(0, 2), Thresholds(1, 1), Thresholds(1, 3)))
    assert all(Thresholds(1, 2) != other for other in (Thresholds(2, 2), (1, 2)))


def test_limits_in_bytes_replace_percentages() -> None:
    """The bytes are rounded up to pages, and inode caches do not lower them."""
    of = cache(dirty_background_bytes=4_097, dirty_bytes=40_960)
    of.cached_inodes = 500
    assert of.thresholds() == Thresholds(background=2, limit=10)


@pytest.mark.parametrize(
    "limits", [{"ratios": (10, 101)}, {"ratios": (101, 20)}, {"ratios": (10, 0)}, {"dirty_bytes": 8_191}]
)
def test_limits_that_the_kernel_refuses_are_refused(limits: Any) -> None:
    """The limits are above 100 %, zero, and below two pages."""
    with pytest.raises(ValueError, match="dirty_"):
        cache(**limits)


@pytest.mark.parametrize(("ratio", "counts"), [(1, 5), (4, 5), (5, 5), (6, 6)])
def test_ratio_below_5_counts_as_5_to_2_6_36(ratio: int, counts: int) -> None:
    """The background threshold keeps its percentage; from 2.6.37 on the ratio is taken as given."""
    of, plain = cache((1, ratio), least_dirty_ratio=5), cache((1, ratio))
    pages = of.dirtyable_pages()
    assert of.thresholds() == Thresholds(pages // 100, pages * counts // 100)
    assert plain.thresholds().limit == pages * ratio // 100


@given(
    background=st.integers(0, 100), ratio=st.integers(1, 100), inodes=st.integers(0, 2_000),
    background_bytes=st.none() | st.integers(1, 10**7), limit_bytes=st.none() | st.integers(8_192, 10**7),
)  # fmt: skip
def test_thresholds_follow_global_dirty_limits(
    background: int, ratio: int, inodes: int, background_bytes: int | None, limit_bytes: int | None
) -> None:
    """Bytes replace the percentage, for each threshold alone.

    A background threshold that is not below the limit becomes half of the limit.  682 inodes with a page each
    fill memory, and more inodes take no more of it.
    """
    of = cache((background, ratio), dirty_background_bytes=background_bytes, dirty_bytes=limit_bytes)
    of.cached_inodes = of.paged_inodes = inodes
    pages = (4_096_000 - min(inodes, 682) * 1_904) // 4_096
    limit = pages * ratio // 100 if limit_bytes is None else ceil(limit_bytes / 4_096)
    below = pages * background // 100 if background_bytes is None else ceil(background_bytes / 4_096)
    assert of.thresholds() == Thresholds(limit // 2 if below >= limit else below, limit)


def test_memory_has_a_mebibyte_at_least() -> None:
    """The reserve of the kernel does not count."""
    with pytest.raises(ValueError, match="less than 1 MiB"):
        MemorySpec(memory=2 * MIB, kernel_reserve=MIB + 1, inode_slab_bytes=1)
    MemorySpec(memory=2 * MIB, kernel_reserve=MIB, inode_slab_bytes=1)


def test_bandwidth_estimate_is_computed_in_integers() -> None:
    """HZ is 1000 and a period has 4 096 jiffies; the first measurement is 500 pages in 200 ms.

    The average follows an estimate by an eighth, if the estimate moves away from the average.  If more than a
    period has passed, only the last measurement counts.
    """
    of = WriteBandwidth()
    of.start(1_000)
    of.update_write(200, 500, 1_000)
    assert (of.write, of.avg_write) == ((500_000 + 1_000 * 3_896) // 4_096, 1_000) == (1_073, 1_000)
    of.update_write(200, 500, 1_000)
    assert (
        (of.write, of.avg_write) == ((500_000 + 1_073 * 3_896) // 4_096, 1_000 + (73 >> 3)) == (1_142, 1_009)
    )
    of.avg_write = 2_000
    of.update_write(200, 0, 1_000)
    assert (of.write, of.avg_write) == (1_142 * 3_896 // 4_096, 2_000 - (858 >> 3)) == (1_086, 1_893)
    of.update_write(4_096, 8_192, 1_000)
    assert of.write == 2_000
    of.update_write(4_097, 8_194, 1_000)
    assert (of.write, of.avg_write) == (2_000, 2_000)
    assert [roundup_pow2(value) for value in (1, 2, 3, 4, 5, 3_000)] == [1, 2, 4, 4, 8, 4_096]


def test_memory_of_programs_is_not_dirtyable() -> None:
    """A program takes a GiB and gives it back, and the thresholds follow (docs/measurements.md I).

    The total of pages, which decides how often writers look, does not change.
    """
    memory = MemorySpec(memory=4 * GIB, kernel_reserve=0, inode_slab_bytes=4_096)
    cache = PageCache(memory, DirtyLimits(dirty_background_ratio=10, dirty_ratio=20))
    pages = 4 * GIB // PAGE_BYTES
    assert cache.thresholds() == Thresholds(pages // 10, pages // 5)
    cache.take(GIB)
    assert cache.thresholds() == Thresholds(3 * pages // 40, 3 * pages // 20)
    assert cache.total_pages == pages
    cache.cached_inodes = cache.paged_inodes = 3 * pages // 8 - pages // 1_000
    assert not cache.reclaiming
    cache.cached_inodes += pages // 1_000
    cache.paged_inodes += pages // 1_000
    assert cache.reclaiming
    cache.take(-GIB)
    assert not cache.reclaiming
