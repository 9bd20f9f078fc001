"""IO-less throttling: its control loop, and the limits of dirty pages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness import only, run_small
from wbsim.models.catalogue.kernels import KERNELS
from wbsim.models.catalogue.machines import MACHINES
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
    """The page counts of a sole context, which the tests set."""

    def __init__(self) -> None:
        self.dirty_and_writeback = self.dirtied = self.written_pages = 0
        self.bandwidth = WriteBandwidth()


def control(dirty_and_writeback: int = 0, mib_per_s: int = 100) -> Control:
    """Return the control loop of a new, sole context at HZ=1000, whose hard limit is the threshold."""
    counts: Any = Counts()
    counts.dirty_and_writeback = dirty_and_writeback
    spec = IoLessSpec(hz=1000, initial_bandwidth=mib_per_s * MIB)
    return Control(counts, counts, Limit(spec.hz), spec, lambda pages: pages)


def position_ratio(dirty_and_writeback: int) -> int:
    """Return the position ratio with *dirty_and_writeback* pages."""
    return control(dirty_and_writeback).position_ratio(LIMITS)


def test_position_ratio_has_the_fixed_points_of_the_kernel() -> None:
    """The position ratio is about 2 at freerun, 1 at the setpoint and 0 at the limit.

    The rule is docs/kernel/throttling.md#writers-that-sleep.
    """
    freerun, setpoint = LIMITS.freerun, (LIMITS.freerun + LIMITS.limit) // 2
    assert position_ratio(LIMITS.limit) == 0
    assert position_ratio(setpoint) / 1024 == pytest.approx(1, rel=0.01)
    # The control line of the context multiplies the cubic's 2 by (intercept - dirty) / span.
    span = 8 * control().bandwidth.avg_write
    assert position_ratio(freerun) / 1024 == pytest.approx(2 * (1 + (setpoint - freerun) / span), rel=0.02)


@pytest.mark.source
@given(st.integers(0, 250_000), st.integers(0, 250_000))
def test_position_ratio_never_rises_with_dirty_pages(a: int, b: int) -> None:
    """More dirty pages never give a higher position ratio."""
    low, high = sorted((a, b))
    assert position_ratio(low) >= position_ratio(high)


def test_pauses_have_the_bounds_of_the_kernel() -> None:
    """A pause is at most 200 ms, and shorter while few pages are dirty.

    The target pause grows by 10 ms with each doubling of the writers.
    """
    assert control(10**9).max_pause() == 200
    of = control()
    rate = of.bandwidth.dirty_ratelimit
    assert of.max_pause() == 1
    assert of.min_pause(200, rate) == (1 + 10 // 2, rate * 10 // 1024)
    of.bandwidth.dirty_ratelimit = of.bandwidth.avg_write // 8
    assert of.min_pause(200, of.bandwidth.dirty_ratelimit)[0] == 1 + (10 + 3 * 10_000 // 1024) // 2


def test_writers_are_throttled_to_the_rate_of_the_flusher() -> None:
    """Dirty pages stay between freerun and the hard limit, and writers are as fast as writeback.

    Inode caches take memory, and the hard limit follows the falling threshold slowly.  A writer exceeds the
    hard limit by at most the pages between two checks.
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


def test_cached_inodes_reduce_dirtyable_memory() -> None:
    """Each cached inode takes its slab from dirtyable memory, until memory is full and reclaim begins."""
    memory = MACHINES["p13-vm"].memory
    cache = PageCache(memory, KERNELS["3.11"].dirty)
    empty = cache.dirtyable_pages()
    assert empty == (memory.memory - memory.kernel_reserve) // PAGE_BYTES
    assert cache.thresholds() == Thresholds(empty // 10, empty // 5)
    cache.cached_inodes = cache.paged_inodes = 10**8
    assert cache.reclaiming
    share = PAGE_BYTES / (PAGE_BYTES + memory.inode_slab_bytes)
    assert cache.dirtyable_pages() == pytest.approx(empty * share, rel=1e-3)


def test_hard_limit_falls_by_a_32nd_every_200_ms() -> None:
    """The hard limit falls by a 32nd of its distance from the threshold, or from the dirty pages if higher.

    It rises at once.
    """
    limit = Limit(1000)
    steps = [
        (199, 1_000, 0, 0), (200, 1_000, 0, 1_000), (399, 500, 0, 1_000), (400, 500, 600, 988),
        (600, 500, 600, 976), (800, 500, 990, 976), (1_000, 500, 975, 976), (1_200, 2_000, 0, 2_000),
    ]  # fmt: skip
    for now, threshold, dirty_and_writeback, expected in steps:
        limit.update(now, threshold, dirty_and_writeback)
        assert limit.hard(Thresholds(background=0, limit=0)) == expected, now
    assert limit.hard(Thresholds(background=0, limit=3_000)) == 3_000


def test_rate_falls_by_an_eighth_of_the_step_near_limit() -> None:
    """The rate falls by an eighth of the step.  10 240 pages are dirtied in each 200 ms.

    * 199 jiffies: no update.
    * 200 jiffies, at the setpoint: only the balanced rate changes, to 25 576 * 25 600 / 51 201 = 12 787.
    * 400 jiffies, at 199 000 pages: the position ratio is 104 of 1 024, so the task rate is 2 601 and the
      balanced rate 1 300.  The step is the distance to the last balanced rate, 25 600 - 12 787 = 12 813.  An
      eighth of this step is 1 602.
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


def test_rate_rises_below_the_setpoint() -> None:
    """The rate of 1 000 rises by 19 at 160 000 dirty pages.

    * The position ratio is 1 335 of 1 024, so the task rate is 1 304 and the step 304.
    * The step is halved once, because it is less than half of the rate.
    * An eighth of 152, rounded up, is 19.
    """
    of = control(160_000)
    of.bandwidth.dirty_ratelimit = 1_000
    counts: Any = of.wb
    counts.dirtied = 100
    of.update(200, 0, LIMITS)
    assert (of.bandwidth.dirty_ratelimit, of.bandwidth.balanced_ratelimit) == (1_019, 25_600)


@pytest.mark.parametrize(("dirty_and_writeback", "rate"), [(174_999, 1_008), (175_000, 1_000)])
def test_rate_does_not_rise_at_the_setpoint(dirty_and_writeback: int, rate: int) -> None:
    """The rate of 1 000 rises by 8 one page below the setpoint, and does not change at the setpoint.

    * The share of the context is half of the threshold, and it has 50 000 pages.
    * Its position ratio is 1 275 of 1 024, so its task rate is 1 246; both balanced rates are 25 600.
    * The step of 246 is divided by four, and an eighth of 61, rounded up, is 8.
    """
    wb, cache = Counts(), Counts()
    wb.dirty_and_writeback, cache.dirty_and_writeback = 50_000, dirty_and_writeback
    spec = IoLessSpec(hz=1000, initial_bandwidth=100 * MIB)
    of = Control(wb, cache, Limit(spec.hz), spec, lambda pages: pages // 2)  # type: ignore[arg-type]
    of.bandwidth.dirty_ratelimit = 1_000
    wb.dirtied = 100
    of.update(200, 0, LIMITS)
    assert (of.bandwidth.dirty_ratelimit, of.bandwidth.balanced_ratelimit) == (rate, 25_600)


def test_update_after_a_second_of_sleep_changes_only_stamps() -> None:
    """An update more than a second after the last one counts only if the work began before the last one.

    * 200: an update without thresholds changes the write bandwidth, and not the rate.
    * 1 201: the work began at 201, after the last update, so only the stamps change.
    * 2 202: the work began at 1 201, at the last update, so the write bandwidth changes.
    """
    of = control(199_000)
    counts: Any = of.wb
    counts.written_pages = 400
    of.update(200, 0, None)
    assert (of.bandwidth.write, of.bandwidth.dirty_ratelimit) == ((400_000 + 25_600 * 3_896) // 4_096, 25_600)
    before = of.bandwidth.write
    counts.written_pages = 800
    of.update(1_201, 201, None)
    assert (of.bandwidth.write, of.bandwidth.stamp, of.bandwidth.written_stamp) == (before, 1_201, 800)
    counts.written_pages = 1_200
    of.update(2_202, 1_201, None)
    assert of.bandwidth.write == (400_000 + before * (4_096 - 1_001)) // 4_096


def test_update_exactly_a_second_after_the_last_one_counts() -> None:
    """An update one second after the last one counts, although the work began between them.

    400 pages are written in 200 jiffies, and 600 more in 1 000; the period has 4 096 jiffies.
    """
    of = control()
    counts: Any = of.wb
    counts.written_pages = 400
    of.update(200, 0, None)
    before = (400_000 + 25_600 * 3_896) // 4_096
    counts.written_pages = 1_000
    of.update(1_200, 201, None)
    assert (of.bandwidth.write, of.bandwidth.stamp) == ((600_000 + before * 3_096) // 4_096, 1_200)


@pytest.mark.parametrize(
    ("ratelimit", "pause", "pages"),
    [
        (163, 200, 31),  # 31.8: fewer than 32 pages, so the pause is not halved
        (164, 1 + 200 // 2, 32),  # 32.03: 32 pages; the target is the longest pause
        (169, 1 + 189 // 2, 32),  # 33.007: 32 pages take 189.3 jiffies
    ],
)
def test_target_pause_of_a_slow_writer_is_for_32_pages(ratelimit: int, pause: int, pages: int) -> None:
    """The target pause of a slow writer is the time of 32 pages, or the longest pause if that is shorter.

    HZ is 1000 and the longest pause 200 jiffies.  In the normal target of 10 jiffies the writer would dirty
    only one or two pages.
    """
    of = control(10**9)
    of.bandwidth.avg_write = of.bandwidth.dirty_ratelimit = ratelimit
    assert of.min_pause(200, ratelimit) == (pause, pages)


@pytest.mark.parametrize(
    ("dirty_and_writeback", "limit", "interval"),
    [(0, 200_000, 256), (134_465, 200_000, 128), (199_997, 200_000, 1), (5, 5, 1)],
)
def test_poll_interval_grows_with_the_distance_from_the_limit(
    dirty_and_writeback: int, limit: int, interval: int
) -> None:
    """dirty_poll_interval: the square root of the distance, rounded down to a power of two."""
    assert poll_interval(dirty_and_writeback, limit) == interval


def test_balance_dirty_pages_reports_a_pause_and_its_terms() -> None:
    """The signal balance_dirty_pages reports a pause with the numbers that determine it.

    At the setpoint of 175 000 pages the rate of a task is nearly that of the context, 25 600 pages/s.

    * The cubic is 1 024.  A share of 200 000 is 65 535 of 65 536 parts of the threshold plus one.
    * The context's setpoint is then 174 997.  Its line meets zero 8 * 25 600 = 204 800 pages further on,
      which are 204 796 in those parts, at 379 793.
    * 1 024 * (379 793 - 175 000) / (204 796 + 1), rounded down, is 1 023.
    * 25 600 * 1 023 / 1 024 is 25 575.
    * 1 000 pages at 25 575 pages/s take 39 jiffies.
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
    assert counts.held_back_ns == 7, "held_back_ns is the time at which the pause began"
    assert told == [
        {
            "limit": 200_000, "dirty": 175_000, "dirty_ratelimit": 25_600, "task_ratelimit": 25_575,
            "dirtied": 1_000, "pause": 39,
        }
    ]  # fmt: skip
    assert env.now == 39_000_000
    assert started == [counts]


@pytest.mark.parametrize(("dirty", "passes", "left"), [(150_000, True, 0), (175_000, False, 1_000)])
def test_a_writer_that_may_not_sleep_keeps_its_pages(dirty: int, passes: bool, left: int) -> None:
    """BDP_ASYNC: a writer up to the freerun passes, and its pages are forgotten.

    At the setpoint, 1 000 pages are worth a pause of 39 jiffies (see above), so the writer does not pass.
    Its pages count for the next question.  Both wake the flusher, if more pages than the threshold are dirty.
    """
    counts: Any = Counts()
    counts.dirty_and_writeback = counts.dirty = dirty
    cache: Any = SimpleNamespace(
        wbs=[counts], dirty_and_writeback=dirty, dirty=dirty, thresholds=lambda: LIMITS
    )
    started: list[Any] = []
    flushers: Any = SimpleNamespace(in_progress=lambda wb: bool(started), start_background=started.append)
    throttle = IoLessThrottle(
        env=Environment(), spec=IoLessSpec(hz=1000, initial_bandwidth=100 * MIB), cache=cache,
        processors=2, signals=Signals(),
    )  # fmt: skip
    throttle.start([counts], flushers, None, None)  # type: ignore[arg-type]
    dirtier = throttle.dirtier()
    dirtier.nr_dirtied = 1_000
    assert throttle.passes(counts, dirtier) == passes
    assert dirtier.nr_dirtied == left
    assert started == [counts]


@pytest.mark.parametrize(("now", "paused_when"), [(5_039, 4_039), (5_040, 5_040)])
def test_think_time_over_one_second_gives_no_credit(now: int, paused_when: int) -> None:
    """A task paused last at 4 000, and has dirtied pages worth 39 jiffies since.

    * 5 039, a second after these 39 jiffies: the task is credited with its think time.
    * 5 040: the task gets no credit; its time starts again.
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
def test_writer_over_the_limit_polls_after_at_most_eight_pages(
    exceeded: bool, interval: int, pages: int
) -> None:
    """A writer over the limit polls after eight pages (32 KiB), or earlier if its interval is shorter.

    The kernel's expression is 32 >> (PAGE_SHIFT - 10).
    """
    counts: Any = SimpleNamespace(dirty_exceeded=exceeded)
    throttle = IoLessThrottle(
        env=Environment(), spec=IoLessSpec(hz=1000, initial_bandwidth=100 * MIB),
        cache=SimpleNamespace(wbs=[]), processors=2, signals=Signals(),  # type: ignore[arg-type]
    )  # fmt: skip
    dirtier = throttle.dirtier()
    dirtier.nr_dirtied_pause = interval
    assert throttle.poll_pages(counts, dirtier) == pages
