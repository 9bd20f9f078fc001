"""IO-less throttling: its control loop, and what may be dirty."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness import only, run_small
from wbsim.models.catalogue.kernels import KERNELS
from wbsim.models.catalogue.machines import P13_MACHINE
from wbsim.models.page_cache.accounting import PageCache, Thresholds
from wbsim.models.page_cache.estimates import WriteBandwidth
from wbsim.models.throttling.io_less import POLL_PAGES, Control, IoLessThrottle, Limit, poll_interval
from wbsim.models.throttling.spec import IoLessSpec
from wbsim.models.time_accounting import Spent
from wbsim.models.tracepoints import Signals
from wbsim.sim.engine import Environment
from wbsim.sim.units import MIB, PAGE_BYTES, S

LIMITS = Thresholds(background=100_000, limit=200_000)


class Counts:
    """As many pages dirty as the test says, all of one context."""

    def __init__(self) -> None:
        self.dirty_and_writeback = self.dirtied = self.written = 0
        self.bandwidth = WriteBandwidth()


def control(dirty_and_writeback: int = 0, mib_per_s: int = 100) -> Control:
    """The control loop of a fresh, sole context at HZ=1000, whose hard limit is the threshold."""
    counts: Any = Counts()
    counts.dirty_and_writeback = dirty_and_writeback
    spec = IoLessSpec(hz=1000, initial_bandwidth=mib_per_s * MIB)
    return Control(counts, counts, Limit(spec.hz), spec, lambda pages: pages)


def position_ratio(dirty_and_writeback: int) -> int:
    """With so many pages dirty."""
    return control(dirty_and_writeback).position_ratio(LIMITS)


def test_the_position_ratio_s_fixed_points() -> None:
    """About 2 at freerun, 1 at the setpoint, 0 at the limit (mechanisms.md 3.3)."""
    freerun, setpoint = LIMITS.freerun, (LIMITS.freerun + LIMITS.limit) // 2
    assert position_ratio(LIMITS.limit) == 0
    assert position_ratio(setpoint) / 1024 == pytest.approx(1, rel=0.01)
    # The context's own line adds (intercept - dirty) / span to the cubic's 2.
    span = 8 * control().bandwidth.avg_write
    assert position_ratio(freerun) / 1024 == pytest.approx(2 * (1 + (setpoint - freerun) / span), rel=0.02)


@pytest.mark.source
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
    hard_limit = of.limit.hard(limits)
    assert limits.freerun * 0.8 < cache.dirty_and_writeback <= hard_limit + 4 * POLL_PAGES
    last = only(machine.programs).iterations[-2:]
    rate = 16_000 * S / (last[1].end_ns - last[0].end_ns)
    assert of.bandwidth.avg_write == pytest.approx(rate, rel=0.3)


def test_inode_caches_shrink_what_may_be_dirty() -> None:
    """Each cached inode takes its slab from dirtyable memory, until reclaim keeps the balance."""
    memory = P13_MACHINE.memory
    cache = PageCache(memory, KERNELS["3.11"].dirty)
    empty = cache.dirtyable_pages()
    assert empty == (memory.memory - memory.kernel_reserve) // PAGE_BYTES
    assert cache.thresholds() == Thresholds(empty // 10, empty // 5)
    cache.cached_inodes = cache.paged_inodes = 10**8
    assert cache.reclaiming
    share = PAGE_BYTES / (PAGE_BYTES + memory.inode_slab_bytes)
    assert cache.dirtyable_pages() == pytest.approx(empty * share, rel=1e-3)


def test_the_hard_limit_follows_a_falling_threshold_by_a_32nd_every_200_ms() -> None:
    """It rises at once; it falls towards the threshold, and not below what is dirty."""
    limit = Limit(1000)
    steps = [
        (199, 1_000, 0, 0), (200, 1_000, 0, 1_000), (399, 500, 0, 1_000), (400, 500, 600, 988),
        (600, 500, 600, 976), (800, 500, 990, 976), (1_000, 500, 975, 976), (1_200, 2_000, 0, 2_000),
    ]  # fmt: skip
    for now, threshold, dirty_and_writeback, expected in steps:
        limit.update(now, threshold, dirty_and_writeback)
        assert limit.hard(Thresholds(background=0, limit=0)) == expected, now
    assert limit.hard(Thresholds(background=0, limit=3_000)) == 3_000


def test_the_rate_falls_by_an_eighth_of_the_step_near_the_limit() -> None:
    """10 240 pages in each 200 ms. At the setpoint nothing moves but the balanced rate: 25 576 * 25 600 /
    51 201. At 199 000 the position is 104 of 1 024, the task rate 2 601 and the balanced one 1 300; the step
    is what the last balanced rate is below the present one: 12 813, an eighth of which is 1 602.
    """
    of = control(175_000)
    counts: Any = of.wb
    counts.dirtied = 10_240
    of.update(199, 0, LIMITS)
    assert (of.bandwidth.stamp, of.bandwidth.balanced_ratelimit) == (0, 25_600)
    of.update(200, 0, LIMITS)
    assert (of.bandwidth.dirty_ratelimit, of.bandwidth.balanced_ratelimit) == (25_600, 12_787)
    assert (of.bandwidth.stamp, of.bandwidth.dirtied_stamp, of.bandwidth.written_stamp) == (200, 10_240, 0)
    counts.dirtied, counts.dirty_and_writeback = 20_480, 199_000
    of.update(400, 0, LIMITS)
    assert (of.bandwidth.dirty_ratelimit, of.bandwidth.balanced_ratelimit) == (23_998, 1_300)


def test_the_rate_rises_below_the_setpoint() -> None:
    """From 1 000 at 160 000 pages: the position is 1 335 of 1 024, the task rate 1 304; the step of 304 is
    halved once, as it is less than half of the rate, and an eighth of that, rounded up, is 19.
    """
    of = control(160_000)
    of.bandwidth.dirty_ratelimit = 1_000
    counts: Any = of.wb
    counts.dirtied = 100
    of.update(200, 0, LIMITS)
    assert (of.bandwidth.dirty_ratelimit, of.bandwidth.balanced_ratelimit) == (1_019, 25_600)


@pytest.mark.parametrize(("dirty_and_writeback", "rate"), [(174_999, 1_008), (175_000, 1_000)])
def test_at_the_setpoint_no_rate_rises(dirty_and_writeback: int, rate: int) -> None:
    """A context may have half of the threshold, and has 50 000 pages: its position is 1 275 of 1 024 and its
    task rate 1 246, from 1 000, though both balanced rates are 25 600. A page below the setpoint, the step of
    246 is a quarter of that, and an eighth of this, rounded up, is 8.
    """
    wb, cache = Counts(), Counts()
    wb.dirty_and_writeback, cache.dirty_and_writeback = 50_000, dirty_and_writeback
    spec = IoLessSpec(hz=1000, initial_bandwidth=100 * MIB)
    of = Control(wb, cache, Limit(spec.hz), spec, lambda pages: pages // 2)  # type: ignore[arg-type]
    of.bandwidth.dirty_ratelimit = 1_000
    wb.dirtied = 100
    of.update(200, 0, LIMITS)
    assert (of.bandwidth.dirty_ratelimit, of.bandwidth.balanced_ratelimit) == (rate, 25_600)


def test_a_flusher_that_slept_for_a_second_counts_nothing() -> None:
    """Nor does one that has no thresholds at hand move the rate; the stamps go on."""
    of = control(199_000)
    counts: Any = of.wb
    counts.written = 400
    of.update(200, 0, None)
    assert (of.bandwidth.write, of.bandwidth.dirty_ratelimit) == ((400_000 + 25_600 * 3_896) // 4_096, 25_600)
    before = of.bandwidth.write
    counts.written = 800
    of.update(1_201, 201, None)
    assert (of.bandwidth.write, of.bandwidth.stamp, of.bandwidth.written_stamp) == (before, 1_201, 800)
    counts.written = 1_200
    of.update(2_202, 1_201, None)
    assert of.bandwidth.write == (400_000 + before * (4_096 - 1_001)) // 4_096


def test_a_look_just_a_second_after_the_last_one_counts() -> None:
    """Though the work began since: only more than a second is a sleep. 400 pages in 200 jiffies of 4 096, and
    600 more in 1 000.
    """
    of = control()
    counts: Any = of.wb
    counts.written = 400
    of.update(200, 0, None)
    before = (400_000 + 25_600 * 3_896) // 4_096
    counts.written = 1_000
    of.update(1_200, 201, None)
    assert (of.bandwidth.write, of.bandwidth.stamp) == ((600_000 + before * 3_096) // 4_096, 1_200)


@pytest.mark.parametrize(
    ("ratelimit", "pause", "pages"),
    [
        (163, 200, 31),  # 31.8: fewer than are worth a check, and the whole pause
        (164, 1 + 200 // 2, 32),  # 32.03: just as many; the target is the longest pause still
        (169, 1 + 189 // 2, 32),  # 33.007: 32 of them are there after 189.3 jiffies
    ],
)
def test_a_slow_writer_s_pause_is_for_32_pages(ratelimit: int, pause: int, pages: int) -> None:
    """At HZ 1000 and 200 jiffies at most: in the target of 10 there are but one or two pages, so it is as
    long as it may be, and only where more than 32 come in that time, as long as these take.
    """
    of = control(10**9)
    of.bandwidth.avg_write = of.bandwidth.dirty_ratelimit = ratelimit
    assert of.min_pause(200, ratelimit) == (pause, pages)


@pytest.mark.parametrize(
    ("dirty_and_writeback", "limit", "interval"),
    [(0, 200_000, 256), (134_465, 200_000, 128), (199_997, 200_000, 1), (5, 5, 1)],
)
def test_who_is_far_from_the_limit_checks_seldom(dirty_and_writeback: int, limit: int, interval: int) -> None:
    """dirty_poll_interval: the root of the distance, as a power of two."""
    assert poll_interval(dirty_and_writeback, limit) == interval


def test_a_pause_is_told_with_what_it_was_worked_out_from() -> None:
    """balance_dirty_pages: at the setpoint the task's rate is the context's, 25 600 pages/s less what the
    context's own line takes; 1 000 pages are 39 jiffies of it.
    """
    env, signals, told = Environment(), Signals(), []
    counts: Any = Counts()
    counts.dirty_and_writeback = counts.dirty = 175_000
    cache: Any = SimpleNamespace(
        wbs=[counts], dirty_and_writeback=175_000, dirty=175_000, thresholds=lambda: LIMITS
    )
    started: list[Any] = []
    flushers: Any = SimpleNamespace(in_progress=lambda wb: bool(started), start_background=started.append)

    throttle = IoLessThrottle(
        env=env, spec=IoLessSpec(hz=1000, initial_bandwidth=100 * MIB), cache=cache,
        processors=2, signals=signals,
    )  # fmt: skip
    throttle.start([counts], flushers, None, None)  # type: ignore[arg-type]
    signals.balance_dirty_pages.observers.append(lambda _, **fields: told.append(fields))
    task = env.task("writer")
    dirtier = throttle.dirtier()
    dirtier.nr_dirtied = 1_000
    env.now, counts.held_back_ns = 7, -1
    env.start(task, throttle.balance(SimpleNamespace(task=task, spent=Spent()), counts, dirtier))  # type: ignore[arg-type]
    env.run()
    assert counts.held_back_ns == 7, "when the pause began"
    ratelimit = 25_600 * throttle.controls[counts].position_ratio(LIMITS) >> 10
    assert ratelimit == pytest.approx(25_600, rel=0.01)
    assert told == [
        {
            "limit": 200_000, "dirty": 175_000, "dirty_ratelimit": 25_600, "task_ratelimit": ratelimit,
            "dirtied": 1_000, "pause": 1_000 * 1_000 // ratelimit,
        }
    ]  # fmt: skip
    assert env.now == told[0]["pause"] * 1_000_000
    assert started == [counts]


@pytest.mark.parametrize(("now", "paused_when"), [(5_039, 4_039), (5_040, 5_040)])
def test_who_thought_for_more_than_a_second_is_credited_nothing(now: int, paused_when: int) -> None:
    """It paused last at 4 000, and what it dirtied since is worth 39 jiffies: a second after these they are
    still taken off, a jiffy later it begins anew.
    """
    throttle = IoLessThrottle(
        env=Environment(), spec=IoLessSpec(hz=1000, initial_bandwidth=100 * MIB),
        cache=SimpleNamespace(wbs=[]), processors=2, signals=Signals(),  # type: ignore[arg-type]
    )  # fmt: skip
    dirtier = throttle.dirtier()
    dirtier.paused_when, dirtier.nr_dirtied = 4_000, 1_000
    throttle.carry(dirtier, 39 - (now - 4_000), 39, now, 1_000)
    assert (dirtier.paused_when, dirtier.nr_dirtied) == (paused_when, 0)


@pytest.mark.parametrize(
    ("exceeded", "interval", "pages"), [(False, 5, 5), (False, 50, 50), (True, 5, 5), (True, 50, 8)]
)
def test_over_the_limit_a_writer_asks_after_eight_pages_at_the_latest(
    exceeded: bool, interval: int, pages: int
) -> None:
    """Or after fewer, where that was its interval (ratelimit >> (PAGE_SHIFT - 10) of 32 KiB)."""
    counts: Any = SimpleNamespace(dirty_exceeded=exceeded)
    throttle = IoLessThrottle(
        env=Environment(), spec=IoLessSpec(hz=1000, initial_bandwidth=100 * MIB),
        cache=SimpleNamespace(wbs=[]), processors=2, signals=Signals(),  # type: ignore[arg-type]
    )  # fmt: skip
    dirtier = throttle.dirtier()
    dirtier.nr_dirtied_pause = interval
    assert throttle.poll_pages(counts, dirtier) == pages
