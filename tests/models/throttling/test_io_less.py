"""IO-less throttling: its control loop, and what may be dirty."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.catalogue.kernels import KERNELS
from models.catalogue.machines import P13_MACHINE
from models.page_cache.accounting import PageCache, Thresholds
from models.page_cache.bandwidth import WriteBandwidth
from models.throttling.io_less import POLL_PAGES, Control, IoLessSpec, Limit
from sim.units import MIB, PAGE_BYTES, S
from tests.harness import only, run_small

LIMITS = Thresholds(background=100_000, limit=200_000)


class Counts:
    """As many pages dirty as the test says, all of one context."""

    def __init__(self) -> None:
        self.nr_dirty = self.dirtied = self.written = 0
        self.bandwidth = WriteBandwidth()


def control(nr_dirty: int = 0, mib_per_s: int = 100) -> Control:
    """The control loop of a fresh, sole context at HZ=1000, whose hard limit is the threshold."""
    counts: Any = Counts()
    counts.nr_dirty = nr_dirty
    spec = IoLessSpec(hz=1000, initial_bandwidth=mib_per_s * MIB)
    return Control(counts, counts, Limit(spec.hz), spec, lambda pages: pages)


def position_ratio(nr_dirty: int) -> int:
    """With so many pages dirty."""
    return control(nr_dirty).position_ratio(LIMITS)


def test_the_position_ratio_s_fixed_points() -> None:
    """About 2 at freerun, 1 at the setpoint, 0 at the limit (mechanisms.md 3.3)."""
    freerun, setpoint = LIMITS.freerun, (LIMITS.freerun + LIMITS.limit) // 2
    assert position_ratio(LIMITS.limit) == 0
    assert position_ratio(setpoint) / 1024 == pytest.approx(1, rel=0.01)
    # The context's own line adds (intercept - dirty) / span to the cubic's 2.
    span = 8 * control().bandwidth.avg_write
    assert position_ratio(freerun) / 1024 == pytest.approx(2 * (1 + (setpoint - freerun) / span), rel=0.02)


@given(st.integers(0, 250_000), st.integers(0, 250_000))
def test_more_dirty_never_means_a_higher_rate(a: int, b: int) -> None:
    """The position ratio falls with what is dirty."""
    low, high = sorted((a, b))
    assert position_ratio(low) >= position_ratio(high)


def test_pauses_have_the_kernel_s_bounds() -> None:
    """At most 200 ms; less while little is dirty; the target pause grows by 10 ms per doubling of writers."""
    assert control(10**9).max_pause() == 200
    of = control()
    rate = of.bandwidth.dirty_ratelimit
    assert of.max_pause() == 1
    assert of.min_pause(200, rate) == (1 + 10 // 2, rate * 10 // 1024)
    of.bandwidth.dirty_ratelimit = of.bandwidth.avg_write // 8
    assert of.min_pause(200, of.bandwidth.dirty_ratelimit)[0] == 1 + (10 + 3 * 10_000 // 1024) // 2


def test_writers_are_held_to_the_flusher_s_rate() -> None:
    """In the long run the dirty level stays between freerun and the hard limit, and writers match writeback.

    The hard limit follows the threshold down slowly, as inode caches take memory; past it a
    writer can get by no more than it may dirty between two checks.
    """
    machine = run_small(processes=4, files=4_000, loops=3, memory_mib=64)
    cache = machine.cache
    limits = cache.thresholds()
    of = machine.throttle.controls[machine.cache.wbs[0]]  # type: ignore[attr-defined]
    hard_limit = of._limit.hard(limits)
    assert limits.freerun * 0.8 < cache.nr_dirty <= hard_limit + 4 * POLL_PAGES
    last = only(machine.programs).iterations[-2:]
    rate = 16_000 * S / (last[1].end_ns - last[0].end_ns)
    assert of.bandwidth.avg_write == pytest.approx(rate, rel=0.3)


def test_inode_caches_shrink_what_may_be_dirty() -> None:
    """Each cached inode takes its slab from dirtyable memory, until reclaim keeps the balance."""
    memory = P13_MACHINE.memory
    cache = PageCache(memory, KERNELS["3.11"].dirty)
    empty = cache.dirtyable_pages()
    assert empty == (memory.memory - memory.kernel_reserve) // PAGE_BYTES
    assert cache.thresholds() == (empty // 10, empty // 5)
    cache.cached_inodes = 10**8
    assert cache.reclaiming
    share = PAGE_BYTES / (PAGE_BYTES + memory.inode_slab_bytes)
    assert cache.dirtyable_pages() == pytest.approx(empty * share, rel=1e-3)
