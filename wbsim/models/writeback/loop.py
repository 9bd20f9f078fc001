"""The loop that all flushers share: slices, chunks, and where a plug opens.

Stands for fs/fs-writeback.c: wb_writeback, writeback_sb_inodes, __writeback_inodes_wb,
__writeback_single_inode, inode_sleep_on_writeback, writeback_chunk_size.  Left out: cgroups and WB_start_all,
the flag of 4.15 and later that makes a flusher write all inodes.  A queued work item stands for the flag.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from wbsim.models.interfaces import LONG_MAX, Inode, InodeSync, Thread, Throttle, Wb, Work, WritebackControl
from wbsim.models.page_cache.accounting import PageCache
from wbsim.models.tracepoints import Signals
from wbsim.models.writeback.spec import WritebackCosts, WritebackRules
from wbsim.sim.engine import Environment, Scheduler, Steps, Wait
from wbsim.sim.entry import FAR_NS
from wbsim.sim.units import MIB, PAGE_BYTES

MIN_CHUNK_PAGES: Final = 4 * MIB // PAGE_BYTES  # MIN_WRITEBACK_PAGES


class Slice:
    """The result of an ended slice.

    ``cleaned``: the number of inodes that the slice left clean.  ``wrote``: the pages taken off the budget;
    if the era sets no nr_to_write, a cleaned inode counts as one more.
    """

    __slots__ = ("cleaned", "wrote")

    def __init__(self) -> None:
        self.cleaned = 0
        self.wrote = 0


class Writeback:
    """Runs work items, on any thread and for any context."""

    def __init__(
        self,
        *,
        env: Environment,
        rules: WritebackRules,
        costs: WritebackCosts,
        cache: PageCache,
        throttle: Throttle,
        signals: Signals,
    ) -> None:
        self._env = env
        self._rules = rules
        self._costs = costs
        self._cache = cache
        self._throttle = throttle
        self._traced = signals.writeback_single_inode
        self._counts_inodes = rules.nr_to_write is None
        self._waits_more = rules.used_up == "more_io"
        self._tests_share = rules.background_test == "share"

    def over_background(self, wb: Wb) -> bool:
        """Return whether background work on *wb* has anything to do: too many pages are dirty.

        The dirty pages of all contexts are above the background threshold or, with the rule "share", those of
        *wb* are above its share of it.  A flusher asks this when it has no other work, and during background
        work (over_bground_thresh).
        """
        threshold = self._cache.thresholds().background
        if self._cache.dirty > threshold:
            return True
        return self._tests_share and wb.dirty > self._throttle.share(wb, threshold)

    def perform(self, thread: Thread, wb: Wb, work: Work) -> Steps:
        """Let *thread* do *work* on *wb*, slice by slice, until nothing is left to do.  Yield the result.

        ``work.done`` completes then.  If the era sets nr_to_write, each slice may write that many pages, even
        if *work* has fewer left (wb_writeback).
        """
        rules, env = self._rules, self._env
        started_ns = env.now
        pages_left = work.nr_pages
        thread.background = work.reason in ("background", "periodic")
        plugged = rules.plug_scope == "work" and thread.start_plug()
        nr_to_write = rules.nr_to_write
        queued = nr_to_write is not None  # otherwise b_io may hold inodes that another work item left
        while pages_left > 0 and self._goes_on(wb, work):
            given_back = wb.given_back
            if not wb.holds(wb.b_io, work.sb) or (nr_to_write is not None and work.reason != "periodic"):
                queued = True
                moves = wb.queue_io(self._older_than_ns(work, started_ns), work.sb)
                thread.spent.lists += moves * self._costs.move_ns
                yield wb.lock.section(thread.task, moves * self._costs.move_ns)
            slice_ns, end, went = env.now, Slice(), wb.submitted_pages
            yield self._slice(thread, wb, work, nr_to_write or pages_left, end)
            self._throttle.wrote(wb, slice_ns)
            wb.flushed_inodes += end.cleaned
            wb.flushed_pages += wb.submitted_pages - went
            pages_left -= end.wrote
            if not wb.holds(wb.b_more_io, work.sb) and (
                end.wrote == 0 if nr_to_write is None else end.wrote < nr_to_write
            ):
                busy = _written_by_another(wb, work)
                if busy is not None:
                    yield from busy.wait(thread)
                elif queued and (work.reason != "sync" or wb.given_back == given_back):
                    break
        if plugged:
            yield from thread.finish_plug()
        if work.done is not None:
            work.done.complete()

    def _goes_on(self, wb: Wb, work: Work) -> bool:
        """Return whether *work* begins another pass; background and periodic work yields to other work."""
        if work.reason == "background":
            return self.over_background(wb) and not (self._rules.leaves and wb.work_list)
        return work.reason != "periodic" or not (self._rules.leaves and wb.work_list)

    def _older_than_ns(self, work: Work, started_ns: int) -> int:
        """Return the latest time (ns) at which an inode became dirty that a pass takes."""
        if work.reason == "periodic":
            return self._env.now - self._rules.expire
        rules = self._rules
        takes = rules.background_takes if work.reason == "background" else rules.explicit_takes
        return self._env.now if takes == "at_pass" else started_ns

    def write_inodes(self, thread: Thread, wb: Wb, pages: int) -> Generator[Wait, None, int]:
        """Let a throttled writer do the flusher's work on the lists of *wb* (to 3.1).  Use: `yield from`.

        *thread* writes up to *pages* pages.  Return the pages taken off this budget, as `Slice` counts them
        (writeback_inodes_wbc).
        """
        return (yield from self.pass_over(thread, wb, Work("background"), pages)).wrote

    def pass_over(self, thread: Thread, wb: Wb, work: Work, pages: int) -> Generator[Wait, None, Slice]:
        """Pass once over the inodes of *wb* that are due now, and return the `Slice`.  Use: `yield from`.

        *work* says which inodes are due.  The pass ends at *pages* pages.  pdflush and throttled writers make
        such passes (generic_sync_sb_inodes).  Unlike `perform`, this counts neither ``flushed_inodes`` nor
        ``flushed_pages`` of *wb*, which pdflush does afterwards, and does not complete ``done`` of *work*.
        """
        end = Slice()
        plugged = self._rules.plug_scope == "work" and thread.start_plug()
        if work.reason != "periodic" or not wb.holds(wb.b_io, work.sb):
            move_ns = wb.queue_io(self._older_than_ns(work, self._env.now), work.sb) * self._costs.move_ns
            thread.spent.lists += move_ns
            yield wb.lock.section(thread.task, move_ns)
        yield self._slice(thread, wb, work, pages, end)
        if plugged:
            yield from thread.finish_plug()
        return end

    def _slice(self, thread: Thread, wb: Wb, work: Work, pages_left: int, end: Slice) -> Steps:
        """writeback_sb_inodes: visit inodes until b_io is empty, or the time or the pages are used up.

        The list lock is taken once to put an inode back and to pick the next one.
        """
        env, rules, costs = self._env, self._rules, self._costs
        task, spent, lock, io = thread.task, thread.spent, wb.lock, wb.b_io
        next_inode = io.popleft  # look the method up once
        turn_ns, inode_ns = costs.requeue_ns + costs.take_ns, costs.inode_ns
        until_ns = env.now + rules.slice_time if rules.nr_to_write is None else FAR_NS
        per_mapping, scheduler = rules.plug_scope == "mapping", task.scheduler
        wbc = WritebackControl(work.reason, visits=work.visits)
        waits_for_io = rules.waits_for_io and wbc.sync_all
        # The kernel computes the chunk again for each inode, but its terms change only every 200 ms.
        chunk = self._chunk_pages(wb, work, pages_left)
        plugged = rules.plug_scope == "slice" and thread.start_plug()
        i_sync, sb = InodeSync(env), work.sb
        wb.i_syncs.append(i_sync)
        spent.lists += costs.take_ns
        spent.inode += inode_ns
        yield lock.section(task, costs.take_ns, inode_ns)
        while io and (work.visits is None or work.visits.enter(wb)):
            inode = next_inode() if sb is None else wb.take(sb, env.now)
            if inode is None:
                break
            # The nr_to_write of a sync is not a budget: the kernel writes the complete file.
            wbc.nr_to_write = budget = chunk if wbc.sync_all else min(chunk, pages_left - end.wrote)
            if per_mapping:
                thread.start_plug()
            i_sync.begin(inode)
            yield from inode.sb.filesystem.write_pages(thread, inode, wbc)
            if per_mapping:
                yield from thread.finish_plug()
            if waits_for_io:
                thread.before_sleep()
                yield from inode.sb.wait_for_writeback(thread)
            i_sync.end(inode)
            self._requeue(wb, inode, wbc, budget - wbc.nr_to_write, end)
            spent.lists += turn_ns
            spent.inode += inode_ns
            if work.visits is not None:
                work.visits.leave(wb)
            yield lock.section(task, turn_ns, inode_ns)
            if scheduler is not None and scheduler.contended and scheduler.need_resched(task):
                yield from self._give_way(thread, scheduler)
            if env.now >= until_ns or end.wrote >= pages_left:
                break
        wb.i_syncs.remove(i_sync)
        if plugged:
            yield from thread.finish_plug()

    def _requeue(self, wb: Wb, inode: Inode, wbc: WritebackControl, pages: int, end: Slice) -> None:
        """requeue_inode, with the accounting.

        If the era sets no nr_to_write, a cleaned inode counts as one page.
        """
        end.wrote += pages
        if self._traced.observers:
            self._traced.emit(inode=inode, wrote=pages)
        if not inode.dirty_pages:
            end.cleaned += 1
            if self._counts_inodes:
                end.wrote += 1
            return
        if not wbc.sync_all:
            wb.given_back += 1
        if (wbc.nr_to_write <= 0 and (self._waits_more or wbc.reason == "periodic")) or (
            wbc.visits is not None and self._waits_more
        ):  # the inode keeps its dirtied_when
            wb.requeue_io(inode)
        else:
            wb.add(inode, self._env.now)  # redirty_tail

    def _give_way(self, thread: Thread, scheduler: Scheduler) -> Steps:
        """cond_resched between two inodes; the plug of a work item is flushed first (4.3 and later)."""
        if self._rules.plug_scope == "work":
            yield from thread.flush_plug()
        if (ready := scheduler.give_way(thread.task)) is not None:
            yield ready

    def _chunk_pages(self, wb: Wb, work: Work, pages_left: int) -> int:
        """Return writeback_chunk_size: the pages of half a second, at most limit/8, in units of 4 MiB.

        A sync has no limit.  If the era sets nr_to_write, the chunk is *pages_left*.
        """
        if work.reason == "sync":
            return LONG_MAX
        if self._rules.nr_to_write is not None:
            return pages_left
        limit = self._cache.thresholds().limit
        pages = min(wb.bandwidth.avg_write // 2, limit // 8, pages_left)
        return int(pages + MIN_CHUNK_PAGES) // MIN_CHUNK_PAGES * MIN_CHUNK_PAGES


def _written_by_another(wb: Wb, work: Work) -> InodeSync | None:
    """Return the I_SYNC of a thread that writes an inode which the sync(2) *work* on *wb* must write, too.

    The kernel meets this inode on b_io; here it is on no list while it is written.  None: no thread writes
    any.
    """
    if work.reason != "sync":
        return None
    for i_sync in wb.i_syncs:
        inode = i_sync.inode
        if inode is not None and (work.sb is None or inode.sb is work.sb):
            return i_sync
    return None
