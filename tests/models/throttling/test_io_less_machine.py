"""IO-less throttling of two contexts at any HZ, compared with a literal reading of the kernel."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.models.throttling.page_writeback import SHIFT, Bdi, Context, Kernel, ilog2
from wbsim.models.page_cache.accounting import Thresholds
from wbsim.models.page_cache.estimates import WriteBandwidth
from wbsim.models.throttling.io_less import Control, IoLessThrottle, Limit
from wbsim.models.throttling.spec import IoLessSpec
from wbsim.models.time_accounting import Spent
from wbsim.models.tracepoints import Signals
from wbsim.sim.engine import Environment
from wbsim.sim.units import PAGE_BYTES, S


class TwoContexts(RuleBasedStateMachine):
    """Two contexts with any sequence of dirtied and written pages; the pauses of writers are compared."""

    @initialize(hz=st.sampled_from([100, 250, 300, 1000]), mib_per_s=st.sampled_from([1, 5, 100, 900]))
    def begin(self, hz: int, mib_per_s: int) -> None:
        self.hz, self.jiffy_ns, self.env = hz, S // hz, Environment()
        self.wbs = [
            Context(
                dirty=0, dirty_and_writeback=0, written_pages=0, dirtied=0, dirty_exceeded=False,
                held_back_ns=-S, bandwidth=WriteBandwidth(),
            )
            for _ in range(2)
        ]  # fmt: skip
        wbs = self.wbs
        self.cache: Any = SimpleNamespace(wbs=wbs, thresholds=lambda: Thresholds(*self.limits), dirty=0)
        self.signals = Signals()
        self.told: list[int] = []
        self.signals.balance_dirty_pages.observers.append(lambda _, **of: self.told.append(of["pause"]))
        spec = IoLessSpec(hz=hz, initial_bandwidth=mib_per_s << 20)
        self.throttle = IoLessThrottle(
            env=self.env, spec=spec, cache=self.cache, processors=2, signals=self.signals
        )
        self.started: list[Any] = []
        flushers: Any = SimpleNamespace(in_progress=lambda _: False, start_background=self.started.append)
        self.throttle.start(wbs, flushers, None, None)  # type: ignore[arg-type]
        bdis = [Bdi((mib_per_s << 20) // PAGE_BYTES) for _ in wbs]
        self.kernel = Kernel(hz, bdis)
        self.dirtier = [self.throttle.dirtier() for _ in wbs]
        self.tasks = [
            SimpleNamespace(
                nr_dirtied_pause=32, paused_when=0, nr_dirtied=0, dirty_exceeded=False, held_back_ns=-S
            )
            for _ in wbs
        ]
        self.memory(40_000, 1)
        self.count()

    def count(self) -> None:
        """Copy the page counts to the literal reading and to the page cache."""
        for wb, bdi in zip(self.wbs, self.kernel.bdis, strict=True):
            bdi.dirty, bdi.written_pages, bdi.dirtied = wb.dirty_and_writeback, wb.written_pages, wb.dirtied
        self.cache.dirty_and_writeback = sum(wb.dirty_and_writeback for wb in self.wbs)
        self.cache.dirty = self.cache.dirty_and_writeback

    @rule(limit=st.sampled_from([16, 999, 20_001, 100_000]), parts=st.integers(0, 9))
    def memory(self, limit: int, parts: int) -> None:
        """Set the thresholds."""
        self.limits = limit * parts // 10, limit
        self.kernel.bg_thresh, self.kernel.thresh = self.limits

    @rule(jiffies=st.sampled_from([1, 7, 20, 53, 199, 200, 201, 1_100, 5_000]), ns=st.integers(0, 900_000))
    def time_passes(self, jiffies: int, ns: int) -> None:
        self.env.now += jiffies * self.jiffy_ns + ns

    @rule(of=st.integers(0, 1), part=st.floats(0, 1.1))
    def some_is_dirtied(self, of: int, part: float) -> None:
        """Dirty pages of the context *of*, until both contexts have *part* of the limit."""
        pages = max(0, int(part * self.limits[1]) - self.wbs[1 - of].dirty_and_writeback)
        wb = self.wbs[of]
        more = max(0, pages - wb.dirty_and_writeback)
        wb.dirtied += more
        wb.dirty_and_writeback += more
        wb.dirty += more
        self.count()

    @rule(of=st.integers(0, 1), part=st.floats(0, 1))
    def some_is_written(self, of: int, part: float) -> None:
        wb = self.wbs[of]
        pages = int(part * wb.dirty_and_writeback)
        wb.written_pages += pages
        wb.dirty_and_writeback -= pages
        wb.dirty = min(wb.dirty, wb.dirty_and_writeback)
        self.count()

    @rule(of=st.integers(0, 1), jiffies=st.sampled_from([0, 100, 1_000]))
    def the_flusher_looks(self, of: int, jiffies: int) -> None:
        since_ns = max(0, self.env.now - jiffies * self.jiffy_ns)
        self.throttle.wrote(self.wbs[of], since_ns)  # type: ignore[arg-type]
        self.kernel.bdi_update_bandwidth(
            self.kernel.bdis[of], self.env.now // self.jiffy_ns, since_ns // self.jiffy_ns, None
        )

    def reach(self, level: int, mine: int) -> None:
        """Set the dirty pages to *level* of 20 steps from freerun to the limit.

        The first context has *mine* of 4 parts of these pages.
        """
        freerun, limit = self.kernel.freerun, self.limits[1]
        pages = freerun + (limit - freerun) * level // 20
        for wb, own in zip(self.wbs, (pages * mine // 4, pages - pages * mine // 4), strict=True):
            wb.dirtied += max(0, own - wb.dirty_and_writeback)
            wb.written_pages += max(0, wb.dirty_and_writeback - own)
            wb.dirty = wb.dirty_and_writeback = own
        self.count()

    @rule(
        of=st.integers(0, 1), pages=st.sampled_from([1, 8, 32, 33, 500, 9_000]), falls=st.integers(1, 900),
        level=st.integers(-3, 22), mine=st.integers(0, 4),
    )  # fmt: skip
    def a_writer_asks(self, of: int, pages: int, falls: int, level: int, mine: int) -> None:
        """balance_dirty_pages; after *falls* jiffies all pages are clean, so that the loop ends."""
        self.reach(level, mine)
        falls_ns = self.env.now + falls * self.jiffy_ns + 1
        expected = self.paused(of, pages, falls_ns)
        wb, dirtier, task = self.wbs[of], self.dirtier[of], self.env.task("writer")
        dirtier.nr_dirtied = pages
        self.told.clear()
        self.started.clear()

        def falls_now() -> None:
            for wb in self.wbs:
                wb.written_pages += wb.dirty_and_writeback
                wb.dirty = wb.dirty_and_writeback = 0
            self.count()

        thread: Any = SimpleNamespace(task=task, spent=Spent())
        self.env.start(task, self.throttle.balance(thread, wb, dirtier))  # type: ignore[arg-type]
        self.env.call_at(falls_ns, 0, falls_now)
        self.env.run()
        assert self.told == expected
        assert self.started == [wb] * self.starts
        after = self.tasks[of]
        assert (dirtier.nr_dirtied, dirtier.nr_dirtied_pause, dirtier.paused_when) == (
            after.nr_dirtied, after.nr_dirtied_pause, after.paused_when,
        )  # fmt: skip
        assert (wb.dirty_exceeded, wb.held_back_ns) == (after.dirty_exceeded, after.held_back_ns)
        polled = min(8, after.nr_dirtied_pause) if after.dirty_exceeded else after.nr_dirtied_pause
        assert self.throttle.poll_pages(wb, dirtier) == polled  # type: ignore[arg-type]

    def paused(self, of: int, pages_dirtied: int, falls_ns: int) -> list[int]:
        """Return the pauses of the loop in balance_dirty_pages."""
        kernel, bdi, task, at_ns = self.kernel, self.kernel.bdis[of], self.tasks[of], self.env.now
        start, pauses = at_ns // self.jiffy_ns, list[int]()
        self.starts = 0  # starts of background writeback; no flusher runs
        task.nr_dirtied = pages_dirtied
        while True:
            now = at_ns // self.jiffy_ns
            if kernel.dirty <= kernel.freerun:
                task.paused_when, task.nr_dirtied = now, 0
                room = kernel.thresh - kernel.dirty
                task.nr_dirtied_pause = 1 << (ilog2(room) >> 1) if room > 0 else 1
                task.dirty_exceeded = False
                break
            self.starts += 1
            share = self.throttle.share(self.wbs[of], kernel.thresh)  # type: ignore[arg-type]
            task.dirty_exceeded = kernel.dirty > kernel.thresh and bdi.dirty > share
            kernel.bdi_update_bandwidth(bdi, now, start, share)
            ratio = kernel.bdi_position_ratio(bdi, share)
            task_ratelimit = bdi.dirty_ratelimit * ratio >> SHIFT
            max_pause = kernel.bdi_max_pause(bdi)
            min_pause, nr_dirtied_pause = kernel.bdi_min_pause(bdi, max_pause, task_ratelimit)
            if task_ratelimit == 0:
                period = pause = max_pause
            else:
                period = pause = self.hz * pages_dirtied // task_ratelimit
                if task.paused_when:
                    pause -= now - task.paused_when
                if pause < min_pause:
                    if pause < -self.hz:
                        task.paused_when, task.nr_dirtied = now, 0
                    elif period:
                        task.paused_when, task.nr_dirtied = task.paused_when + period, 0
                    elif task.nr_dirtied_pause <= pages_dirtied:
                        task.nr_dirtied_pause += pages_dirtied
                    break
                if pause > max_pause:
                    now += min(pause - max_pause, max_pause)
                    pause = max_pause
            pauses.append(pause)
            task.held_back_ns = at_ns  # bdi->last_bdp_sleep
            at_ns = (at_ns // self.jiffy_ns + pause) * self.jiffy_ns
            if at_ns > falls_ns:
                for other in kernel.bdis:
                    other.written_pages += other.dirty
                    other.dirty = 0
            task.paused_when, task.nr_dirtied, task.nr_dirtied_pause = now + pause, 0, nr_dirtied_pause
            if task_ratelimit:
                break
        self.starts += kernel.dirty > kernel.bg_thresh
        return pauses

    @invariant()
    def the_estimates_are_the_same(self) -> None:
        for wb, bdi in zip(self.wbs, self.kernel.bdis, strict=True):
            of = wb.bandwidth
            assert bdi.estimates() == (
                of.write, of.avg_write, of.dirty_ratelimit, of.balanced_ratelimit, of.stamp,
                of.dirtied_stamp, of.written_stamp,
            )  # fmt: skip


RATES = st.sampled_from([1, 31, 500, 4_095, 4_097, 25_600, 250_000])


@pytest.mark.source
@settings(max_examples=400, deadline=None)
@given(
    hz=st.sampled_from([100, 250, 300, 1000]), avg_write=RATES, ratelimit=RATES, balanced=RATES,
    limit=st.sampled_from([900, 20_001, 200_000]), parts=st.integers(0, 9), level=st.integers(-5, 21),
    mine=st.integers(0, 8), of_limit=st.integers(0, 8), elapsed=st.sampled_from([0, 1, 2, 3, 9]),
    dirtied=st.integers(0, 90_000), written=st.integers(0, 90_000), above=st.integers(0, 3),
)  # fmt: skip
def test_control_of_one_context_matches_the_kernel(
    hz: int, avg_write: int, ratelimit: int, balanced: int, limit: int, parts: int, level: int, mine: int,
    of_limit: int, elapsed: int, dirtied: int, written: int, above: int,
) -> None:  # fmt: skip
    """Position ratio, pauses and rates match for any estimates, level, share and time since an update."""
    bdis = [Bdi(1), Bdi(1)]
    kernel = Kernel(hz, bdis)
    kernel.bg_thresh, kernel.thresh = limit * parts // 10, limit
    kernel.dirty_limit = limit + limit * above // 8
    dirty = kernel.freerun + (kernel.hard_dirty_limit() - kernel.freerun) * level // 20
    bdis[0].dirty, bdis[1].dirty = dirty * mine // 8, dirty - dirty * mine // 8
    now, share = 5_000 + elapsed * hz // 5, limit * of_limit // 8
    wb = Context(
        dirty_and_writeback=bdis[0].dirty, dirtied=dirtied, written_pages=written, bandwidth=WriteBandwidth()
    )
    cache: Any = SimpleNamespace(dirty_and_writeback=dirty)
    common = Limit(hz)
    common.update(hz, kernel.dirty_limit, 0)
    kernel.update_time = hz
    control = Control(
        wb,
        cache,
        common,
        IoLessSpec(hz=hz, initial_bandwidth=PAGE_BYTES),
        lambda _: share,  # type: ignore[arg-type]
    )
    of, bdi = wb.bandwidth, bdis[0]
    of.avg_write = bdi.avg_write_bandwidth = avg_write
    of.write = bdi.write_bandwidth = balanced
    of.dirty_ratelimit = bdi.dirty_ratelimit = ratelimit
    of.balanced_ratelimit = bdi.balanced_dirty_ratelimit = balanced
    of.stamp = bdi.bw_time_stamp = 5_000
    bdi.dirtied, bdi.written_pages = dirtied, written
    thresholds = Thresholds(kernel.bg_thresh, kernel.thresh)
    ratio, most = kernel.bdi_position_ratio(bdi, share), kernel.bdi_max_pause(bdi)
    assert (control.position_ratio(thresholds), control.max_pause()) == (ratio, most)
    for task_ratelimit in (0, ratelimit * ratio >> SHIFT, ratelimit, 7):
        for max_pause in (most, max(hz // 5, 1)):
            expected = kernel.bdi_min_pause(bdi, max_pause, task_ratelimit)
            assert control.min_pause(max_pause, task_ratelimit) == expected
    control.update(now, 4_000, thresholds)
    kernel.bdi_update_bandwidth(bdi, now, 4_000, share)
    assert bdi.estimates() == (
        of.write, of.avg_write, of.dirty_ratelimit, of.balanced_ratelimit, of.stamp, of.dirtied_stamp,
        of.written_stamp,
    )  # fmt: skip
    assert common.hard(thresholds) == kernel.hard_dirty_limit()


# The test supplies the page cache.
TestTwoContexts = pytest.mark.source(TwoContexts.TestCase)
TestTwoContexts.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
