"""Throttling by writers that write back pages themselves (to 3.1)."""

from __future__ import annotations

from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.throttling.page_writeback import Bdi, Context, Kernel
from wbsim.models.congestion import Congestion
from wbsim.models.page_cache.accounting import Thresholds
from wbsim.models.page_cache.estimates import Proportions, WriteBandwidth
from wbsim.models.throttling.caller_writes import CallerWrites, RecentDirtier, lowered
from wbsim.models.throttling.spec import CallerWritesSpec
from wbsim.models.time_accounting import Spent
from wbsim.models.tracepoints import Signals
from wbsim.sim.engine import URGENT, Environment, Steps, Wait
from wbsim.sim.units import MIB, MS, S


def test_task_dirty_limit_falls_with_the_share_of_the_task() -> None:
    """The limit of a sole writer falls to about seven eighths.

    A task that stops writing gets its limit back within a few periods.
    """
    proportions, busy, idle = Proportions(1_000), RecentDirtier(), RecentDirtier()
    assert lowered(1_000, proportions, busy) == 1_000
    proportions.add(idle, 4_096)
    for _ in range(200):
        proportions.add(busy, 100)
    assert 870 <= lowered(1_000, proportions, busy) <= 900
    assert lowered(1_000, proportions, idle) >= 995


class Writer:
    """A writer that has dirtied 10 pages and calls balance_dirty_pages.

    * HZ is 1000, unless *rules* set it.
    * The limit is 100 pages and the background threshold 50, so the writer is not throttled below 75.
    * The ratelimit is 40 pages.
    * A call that writes back takes 1 000 ns and writes the next number of pages of *wrote*.
    """

    def __init__(
        self, dirty: int, dirty_and_writeback: int, wrote: tuple[int, ...] = (), **rules: Any
    ) -> None:
        self.env = Environment()
        self.congestion = Congestion(self.env, URGENT)
        self.asked: list[tuple[int, int]] = []
        self.pauses: list[int] = []
        self.started: list[int] = []
        self.wrote = list(wrote)
        self.wb: Any = SimpleNamespace(
            dirty=dirty,
            dirty_and_writeback=dirty_and_writeback,
            written_pages=0,
            dirty_exceeded=False,
            bandwidth=WriteBandwidth(),
        )
        self.cache: Any = SimpleNamespace(
            wbs=[self.wb], dirty=dirty, dirty_and_writeback=dirty_and_writeback, total_pages=32 * 2 * 40,
            thresholds=lambda: Thresholds(background=50, limit=100),
        )  # fmt: skip
        self.flushers: Any = SimpleNamespace(
            in_progress=lambda wb: bool(self.started),
            start_background=lambda wb: self.started.append(self.env.now),
        )
        signals = Signals()
        signals.balance_dirty_pages.observers.append(lambda _, dirty, pause: self.pauses.append(pause))
        spec = CallerWritesSpec(**{"hz": 1000, "initial_bandwidth": 100 * MIB} | rules)
        self.throttle = CallerWrites(env=self.env, spec=spec, cache=self.cache, processors=2, signals=signals)
        self.throttle.start([self.wb], self.flushers, self._write_back, self.congestion.wait)

    def _write_back(self, thread: Any, wb: Any, pages: int) -> Generator[Wait, None, int]:
        self.asked.append((self.env.now, pages))
        yield 1_000
        wrote = self.wrote.pop(0)
        self.fall(wrote, wrote)
        return wrote

    def fall(self, dirty: int, dirty_and_writeback: int) -> None:
        """Subtract *dirty* and *dirty_and_writeback* from the counts of the context and the cache."""
        for counts in (self.wb, self.cache):
            counts.dirty -= dirty
            counts.dirty_and_writeback -= dirty_and_writeback

    def balance(self) -> int:
        """Run balance_dirty_pages and return the time of its end (ns)."""
        dirtier = self.throttle.dirtier()
        dirtier.nr_dirtied = 10
        task = self.env.task("writer")
        thread: Any = SimpleNamespace(task=task, spent=Spent(), before_sleep=lambda: None)
        ended: list[int] = []

        def body() -> Steps:
            yield from self.throttle.balance(thread, self.wb, dirtier)
            ended.append(self.env.now)

        self.env.start(task, body())
        self.env.run()
        assert dirtier.nr_dirtied == 0
        return ended[0]


def test_writer_above_limit_writes_back_1_5_times_its_ratelimit() -> None:
    """A writer above the limit asks for 60 pages: 1.5 times its ratelimit of 40.

    The ratelimit counts because the writer dirtied only 10 pages.  A writer at the limit writes back no page.
    """
    at = Writer(100, 100)
    assert (at.balance(), at.asked, at.pauses) == (0, [], [])
    above = Writer(101, 101, wrote=(1,))
    assert (above.balance(), above.asked, above.pauses) == (1_000, [(0, 60)], [])
    assert above.wb.dirty_exceeded, "dirty_exceeded is cleared only below the limit"
    assert above.started == [1_000], "the flusher is started"


def test_writer_continues_above_the_limit_after_writing_its_chunk() -> None:
    """A writer leaves the throttle once it has written its chunk of 60 pages.

    The limit is 100 pages, but 240 pages are still dirty.

    * 0: it asks for 60 pages, writes 40, and then sleeps until the next tick.
    * 1 ms: it asks for 60 pages again, writes 20, and leaves 1 000 ns later.
    """
    of = Writer(300, 300, wrote=(40, 20))
    assert of.balance() == MS + 1_000
    assert (of.asked, of.pauses) == ([(0, 60), (MS, 60)], [1])
    assert of.started == [MS + 1_000]
    assert of.wb.dirty_exceeded
    assert of.throttle.poll_pages(of.wb, of.throttle.dirtier()) == 8


@pytest.mark.parametrize(
    ("falls_at_ms", "pauses"),
    [(20, [1, 2, 4, 8, 16]), (31, [1, 2, 4, 8, 16]), (32, [1, 2, 4, 8, 16, 32]),
     (400, [1, 2, 4, 8, 16, 32, 64, 100, 100, 100])],
)  # fmt: skip
def test_pauses_double_up_to_100_ms_during_writeback(falls_at_ms: int, pauses: list[int]) -> None:
    """A writer with too few dirty pages to write back sleeps, twice as long each time, up to 100 ms.

    50 pages are dirty and 100 are under writeback; the device completes 60 of them before *falls_at_ms*.
    """
    of = Writer(50, 150)
    of.env.call_at(falls_at_ms * MS - 1, 0, lambda: of.fall(0, 60))
    assert of.balance() == sum(pauses) * MS
    assert (of.asked, of.pauses) == ([], pauses)
    assert not of.wb.dirty_exceeded
    assert of.throttle.poll_pages(of.wb, of.throttle.dirtier()) == 40


def test_longest_pause_at_hz_100_is_ten_jiffies() -> None:
    """Pauses at HZ 100 have 1, 2, 4 and 8 jiffies of 10 ms, and then ten jiffies each.

    The device completes 60 pages at 340 ms, which the writer notices at 350 ms.
    """
    of = Writer(50, 150, hz=100)
    of.env.call_at(340 * MS, 0, lambda: of.fall(0, 60))
    assert of.balance() == 350 * MS
    assert of.pauses == [1, 2, 4, 8, 10, 10]


@pytest.mark.parametrize(("dirty", "started"), [(50, []), (51, [0])])
def test_background_writeback_is_started_above_its_threshold(dirty: int, started: list[int]) -> None:
    """A writer above the threshold starts background writeback, but not while it runs."""
    of = Writer(dirty, dirty)
    assert of.balance() == 0
    assert of.started == started
    of.balance()
    assert of.started == started


def test_write_bandwidth_is_updated_every_200_ms() -> None:
    """The write bandwidth, here 100 MiB/s, is updated when a slice of the flusher ends, at most every 200 ms.

    The first two slices began at 0.

    * 199 ms: no update.
    * 200 ms: 400 pages in 200 ms are 2 000 pages/s, which count with 200 of 4 096 parts.
    * 1 300 ms: the last update is 1 100 ms old, and the slice began later, at 250 ms.  If an update is more
      than a second old and older than the slice, the flusher was idle, so only the stamp changes.
    """
    of = Writer(0, 0)
    bandwidth = of.wb.bandwidth
    assert bandwidth.write == 25_600
    of.wb.written_pages = 400
    for now_ms, write, stamp in ((199, 25_600, 0), (200, (400_000 + 25_600 * 3_896) // 4_096, 200)):
        of.env.now = now_ms * MS
        of.throttle.wrote(of.wb, 0)
        assert (bandwidth.write, bandwidth.stamp) == (write, stamp)
    write = bandwidth.write
    of.env.now = 1_300 * MS
    of.throttle.wrote(of.wb, 250 * MS)
    assert (bandwidth.write, bandwidth.stamp) == (write, 1_300)


@pytest.mark.parametrize(
    ("pages", "dirty_and_writeback", "own", "share"),
    [(100, 0, 0, 90), (100, 70, 20, 50), (100, 120, 20, 20), (80, 70, 5, 15), (100, 70, 70, 90)],
)
def test_share_of_a_context_is_limited_to_what_others_leave(
    pages: int, dirty_and_writeback: int, own: int, share: int
) -> None:
    """The share of a context is at most nine tenths here, which is its part of recent writeback.

    It is also at most the pages that are not dirty, plus the dirty pages of the context itself.
    """
    of = Writer(0, 0)
    of.throttle._shares = SimpleNamespace(share=lambda wb, pages: 9 * pages // 10)  # type: ignore[assignment]
    assert of.throttle.share(of.wb, pages) == pages, "a single context has the complete share"
    of.cache.wbs.append(object())
    of.cache.dirty_and_writeback, of.wb.dirty_and_writeback = dirty_and_writeback, own
    assert of.throttle.share(of.wb, pages) == share


def test_writer_to_2_6_30_writes_back_any_dirty_pages() -> None:
    """To 2.6.30 a writer writes back dirty pages even if fewer than the limit are dirty.

    * With 90 dirty pages and 11 under writeback, it writes back.
    * With 101 pages under writeback alone, it sleeps 1 and 2 jiffies until the device has completed 50.

    Later kernels write back only if more pages than the limit are dirty, and else wait for I/O.
    """
    old = Writer(90, 101, wrote=(10,), writes_back="any")
    assert (old.balance(), old.asked) == (1_000, [(0, 60)])
    nothing = Writer(0, 101, writes_back="any")
    nothing.env.call_at(2 * MS, 0, lambda: nothing.fall(0, 50))
    assert nothing.balance() == 3 * MS, "jiffies: 1, then 2"
    assert nothing.asked == []


def test_writer_to_2_6_31_waits_until_congestion_ends() -> None:
    """To 2.6.31 a writer sleeps until congestion ends, or for 100 ms, and then checks again.

    * Congestion ends at 7 ms: the writer continues.
    * Congestion does not end: pages complete at 150 ms, and the writer continues at 200 ms.
    """
    woken = Writer(0, 101, waits="congestion")
    woken.env.call_at(7 * MS, 0, lambda: woken.fall(0, 50))
    woken.env.call_at(7 * MS, 1, woken.congestion.end)
    assert (woken.balance(), woken.pauses) == (7 * MS, [])
    alone = Writer(0, 101, waits="congestion")
    alone.env.call_at(150 * MS, 0, lambda: alone.fall(0, 50))
    assert alone.balance() == 200 * MS


@pytest.mark.source
@given(
    st.sampled_from([100, 250, 300, 1000]),
    st.lists(
        st.tuples(
            st.integers(0, 1), st.sampled_from([1, 59, 199, 200, 201, 1_001, 5_000]), st.integers(0, 9_000),
            st.sampled_from([0, 50, 300, 4_000]),
        ),
        min_size=2, max_size=20,
    ),
)  # fmt: skip
def test_write_bandwidth_of_3_1_matches_a_literal_reading(
    hz: int, steps: list[tuple[int, int, int, int]]
) -> None:
    """The throttle of 3.1 estimates the write bandwidth of each of two contexts as 3.11 does.

    The literal reading is of 3.11 (`page_writeback`).  An estimate changes at most every 200 ms.

    A step is (context, ms since the last step, pages written, ms since the slice began).
    """
    env, wbs = Environment(), [Context(written_pages=0, bandwidth=WriteBandwidth()) for _ in range(2)]
    cache: Any = SimpleNamespace(wbs=wbs, total_pages=1 << 18, thresholds=lambda: Thresholds(1, 2))
    spec = CallerWritesSpec(hz=hz, initial_bandwidth=100 << 20)
    throttle = CallerWrites(env=env, spec=spec, cache=cache, processors=2, signals=Signals())
    throttle.start(wbs, None, None, None)  # type: ignore[arg-type]
    kernel, jiffy_ns = Kernel(hz, [Bdi(25_600), Bdi(25_600)]), S // hz
    for which, ms, pages, began_ms in steps:
        env.now += ms * 1_000_000
        wb, bdi = wbs[which], kernel.bdis[which]
        wb.written_pages += pages
        bdi.written_pages += pages
        since_ns = max(0, env.now - began_ms * 1_000_000)
        throttle.wrote(wb, since_ns)
        kernel.bdi_update_bandwidth(bdi, env.now // jiffy_ns, since_ns // jiffy_ns, None)
        of = wb.bandwidth
        assert (of.write, of.avg_write, of.stamp, of.written_stamp) == (
            bdi.write_bandwidth, bdi.avg_write_bandwidth, bdi.bw_time_stamp, bdi.written_stamp,
        )  # fmt: skip
