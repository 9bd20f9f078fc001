"""pdflush: a pool of threads for all devices, which do not block (to 2.6.31).

Stands for mm/pdflush.c, and for background_writeout, wb_kupdate, wakeup_pdflush and writeback_inodes of that
time (docs/kernel/flushers.md#pdflush).  Left out: writing superblocks (sync_supers), and its other work.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from mypy_extensions import mypyc_attr

from wbsim.models.interfaces import Flushers, Thread, Visits, Wb, Work
from wbsim.models.page_cache.accounting import PageCache
from wbsim.models.parts import Parts
from wbsim.models.time_accounting import FLUSHER
from wbsim.models.writeback.loop import Writeback
from wbsim.models.writeback.wb import BackingDevice, WritebackContext, first_context
from wbsim.sim.engine import IDLE, PARK, Steps, Wait
from wbsim.sim.sync import Completion
from wbsim.sim.units import MS, S

PASS_PAGES: Final = 1024  # MAX_WRITEBACK_PAGES
CONGESTION_WAIT_NS: Final = 100 * MS
POOL_NS: Final = S
"""A thread is added after the pool was empty for longer (ns), and exits after it was idle for longer."""


class Pass(Visits):
    """The writeback_control of one pass of a thread.

    * ``encountered_congestion``: the pass met a congested queue.
    * ``more_io``: the pass left dirty inodes.
    * ``wrote``: the number of pages that it wrote.

    A pass claims a device while it writes an inode (writeback_acquire), so other pdflush threads skip the
    device.
    """

    def __init__(self, pool: Pdflush) -> None:
        self._bdis = pool.bdis
        self._claimed = pool.claimed
        self._bdi: BackingDevice | None = None
        self.encountered_congestion = False
        self.more_io = False
        self.wrote = 0

    def enter(self, wb: Wb) -> bool:
        """See `Visits.enter`."""
        bdi = self._bdis[wb]
        if bdi.queue.congested:
            self.encountered_congestion = True
            return False
        if bdi in self._claimed:
            return False
        self._bdi = bdi
        self._claimed.add(bdi)
        return True

    def leave(self, wb: Wb) -> None:
        """See `Visits.leave`."""
        self._claimed.discard(self._bdis[wb])

    def gives_up(self) -> bool:
        """See `Visits.gives_up`."""
        assert self._bdi is not None, "gives_up needs the device of the visit"
        if not self._bdi.queue.congested:
            return False
        self.encountered_congestion = True
        return True


class Worker:
    """A pdflush thread, its job, and since when it has been idle."""

    def __init__(self, thread: Thread) -> None:
        self.thread = thread
        self.job: Work | None = None
        self.idle_since_ns = 0
        thread.background = True


@mypyc_attr(allow_interpreted_subclasses=True)
class Pdflush(Flushers):
    """See `models.interfaces.Flushers`.

    ``claimed``: the devices on which a thread is writing an inode.
    """

    def __init__(
        self,
        *,
        parts: Parts,
        cache: PageCache,
        writeback: Writeback,
        interval_ns: int,
        min_threads: int,
        max_threads: int,
    ) -> None:
        self._parts = parts
        self._env = parts.env
        self._min_threads, self._max_threads = min_threads, max_threads
        self._cache = cache
        self._writeback = writeback
        self._interval_ns = interval_ns
        self._threads: list[Thread] = []
        self._idle: list[Worker] = []  # the worker that became idle last comes last
        self._last_empty_ns = 0
        self._asked_ns = -1  # when the last sync(2) started a job; it calls `queue` for every context
        self.bdis: dict[Wb, BackingDevice] = {}
        self.claimed: set[BackingDevice] = set()
        self._alive = 0
        for _ in range(min_threads):
            self.start_thread()
        self._env.call_at(interval_ns, parts.urgent, self._timer)

    @property
    def threads(self) -> list[Thread]:
        """All threads that were ever made, in the order of their creation."""
        return self._threads

    @property
    def alive(self) -> int:
        """See `Flushers.alive`."""
        return self._alive

    def register(self, bdi: BackingDevice) -> None:
        """See `Flushers.register`."""
        parts = bdi.parts.for_part(bdi.name)
        wb = WritebackContext(
            bdi.name, parts.inode_lock or parts.spin_lock("list_lock"), self._cache, per_superblock=True
        )
        bdi.wbs.append(wb)
        bdi.places = first_context
        self.bdis[wb] = bdi

    def start_background(self, wb: Wb) -> None:
        """See `Flushers.start_background`; the work is dropped if no thread is idle."""
        self.operation(Work("background", 0))

    def in_progress(self, wb: Wb) -> bool:
        """See `Flushers.in_progress`: BDI_pdflush."""
        return self.bdis[wb] in self.claimed

    def queue(self, wb: Wb, work: Work) -> Completion | None:
        """See `Flushers.queue`: always None, so the caller does *work* itself.

        The first "start" work of a sync(2) also gives an idle thread one job for all dirty pages.
        """
        if work.reason == "start" and work.sb is None and self._asked_ns != self._env.now:
            self._asked_ns = self._env.now
            self.operation(Work("background", work.nr_pages))
        return None

    def operation(self, job: Work) -> bool:
        """Give *job* to the thread that became idle last, and wake it; return False if none is idle.

        Then *job* is dropped (pdflush_operation).
        """
        if not self._idle:
            return False
        worker = self._idle.pop()
        if not self._idle:
            self._last_empty_ns = self._env.now
        worker.job = job
        self._env.wake(worker.thread.task)
        return True

    def _timer(self) -> None:
        """wb_timer_fn: start periodic work, or try again after a second if no thread is idle."""
        if not self.operation(Work("periodic")):
            self._arm(S)

    def _arm(self, in_ns: int) -> None:
        self._env.call_at(self._env.now + in_ns, self._parts.urgent, self._timer)

    def start_thread(self) -> None:
        """Make and start one more thread of the pool, which is idle at first (start_one_pdflush_thread)."""
        worker = Worker(self._parts.for_part(f"pdflush{len(self._threads)}").thread(FLUSHER))
        self._threads.append(worker.thread)
        self._alive += 1
        self._env.start(worker.thread.task, self._run(worker))

    def _run(self, worker: Worker) -> Steps:
        """__pdflush: do the jobs of *worker*; end the thread when another one was idle for long."""
        env = self._env
        while True:
            worker.idle_since_ns = env.now
            self._idle.append(worker)
            worker.thread.task.waits_for = IDLE
            yield PARK
            job, worker.job = worker.job, None
            assert job is not None, "a woken thread must have a job"
            yield from self._do(worker.thread, job)
            self._add_thread()
            if not self._idle or self._alive <= self._min_threads:
                continue
            longest = self._idle[0]
            if env.now - longest.idle_since_ns > POOL_NS:
                longest.idle_since_ns = env.now  # limits the rate at which threads exit
                break
        self._alive -= 1

    def _add_thread(self) -> None:
        """Add a thread if the pool has been empty for longer than `POOL_NS` and still is."""
        now = self._env.now
        if not self._idle and now - self._last_empty_ns > POOL_NS and self._alive < self._max_threads:
            self._last_empty_ns = now
            self.start_thread()

    def _do(self, thread: Thread, job: Work) -> Steps:
        if job.reason == "periodic":
            next_ns = self._env.now + self._interval_ns
            yield from self._write(
                thread, job.reason, self._cache.dirty + sum(map(len, self.bdis)), kupdate=True
            )
            # A job that took longer than the interval leaves a gap of a second before the next (wb_kupdate).
            self._arm(max(next_ns - self._env.now, S))
        else:
            yield from self._write(thread, job.reason, job.nr_pages, kupdate=False)

    def _write(self, thread: Thread, reason: Any, pages: int, *, kupdate: bool) -> Steps:
        """Run the passes of wb_kupdate or background_writeout until nothing is left to do."""
        cache, pages_left = self._cache, pages
        while pages_left > 0 or not (kupdate or cache.dirty < cache.thresholds().background):
            visits = Pass(self)
            yield from self._pass(thread, reason, visits)
            pages_left -= visits.wrote
            if visits.wrote < PASS_PAGES:
                if not (visits.encountered_congestion or visits.more_io):
                    break
                yield from self._parts.congestion.wait(thread, CONGESTION_WAIT_NS)

    def _pass(self, thread: Thread, reason: Any, visits: Pass) -> Generator[Wait, None, None]:
        """writeback_inodes: visit the dirty inodes of all devices, the device registered last first."""
        work = Work(reason, visits=visits)
        for wb in reversed(list(self.bdis)):
            if not len(wb):
                continue
            went, pages_left = wb.dirtied - wb.dirty, PASS_PAGES - visits.wrote
            end = yield from self._writeback.pass_over(thread, wb, work, pages_left)
            wb.flushed_inodes += end.cleaned
            wb.flushed_pages += wb.dirtied - wb.dirty - went
            visits.wrote += end.wrote
            if end.wrote >= pages_left:
                visits.more_io = True
                break
            visits.more_io |= bool(wb.b_more_io)
