"""The loop that all flushers share: lists, slices, chunks, and where a plug opens.

Stands for fs/fs-writeback.c: wb_writeback, writeback_sb_inodes, __writeback_single_inode, requeue_inode,
queue_io, writeback_chunk_size.  Left out: several superblocks of one device, I_SYNC collisions,
what data-integrity writeback waits for, cgroups.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from typing import Final, Literal, NamedTuple

from models.inode import Inode
from models.page_cache import PageCache
from models.seams import UNLIMITED_PAGES, Filesystem, Signals, Submitter, Throttle
from sim.engine import FAR_NS, PARK, Environment, Park, Steps, Task, Wait
from sim.param import Count, Ns, Spec
from sim.sync import SpinLock
from sim.units import MIB, PAGE_BYTES

MIN_CHUNK_PAGES: Final = 4 * MIB // PAGE_BYTES  # MIN_WRITEBACK_PAGES


class WritebackRules(Spec):
    """What an era's fs/fs-writeback.c decides.

    ``plug_scope``: a plug opens per mapping, per slice (the P13 patch), per work item (4.3 and later), or none did
    (to 2.6.38); ``slice_time``: a slice ends after it; ``quota_pages``: to 2.6.39, all inodes of a slice share so
    many pages, and no time ends it; ``used_up``: where an inode goes that used its chunk up (periodic work: always
    more_io); ``expire`` and ``interval``: dirty_expire_centisecs and dirty_writeback_centisecs.
    """

    plug_scope: Literal["none", "mapping", "slice", "work"]
    slice_time: Ns
    quota_pages: Count | None = None
    used_up: Literal["more_io", "redirty_tail"]
    expire: Ns
    interval: Ns


class WritebackCosts(Spec):
    """Processor time of the flusher per inode, beside the filesystem's and the block layer's.

    ``take_ns``, ``requeue_ns`` and ``move_ns`` (per inode that queue_io moves) are spent under the list
    lock, ``inode_ns`` outside of it.
    """

    take_ns: Ns
    requeue_ns: Ns
    move_ns: Ns
    inode_ns: Ns


class Work(NamedTuple):
    """struct wb_writeback_work: what to write and until when.

    A sync(2) is two of them: "start" (wakeup_flusher_threads: so many pages, in chunks) and "sync" (WB_SYNC_ALL).
    """

    reason: Literal["background", "periodic", "start", "sync"]
    nr_pages: int = UNLIMITED_PAGES


class Slice:
    """What came of one slice, once it is over: pages off the budget, and inodes that became clean."""

    __slots__ = ("wrote",)

    def __init__(self) -> None:
        self.wrote = 0


class WorkList:
    """bdi->work_list and whether its flusher runs: what others ask of a flusher, and how it wakes."""

    __slots__ = ("_asleep", "_env", "_task", "works")

    def __init__(self, env: Environment, task: Task) -> None:
        self._env = env
        self._task = task
        self._asleep = False
        self.works: deque[Work] = deque()

    @property
    def in_progress(self) -> bool:
        """writeback_in_progress: the flusher runs, or was told to."""
        return not self._asleep

    def start_background(self) -> None:
        """bdi_start_background_writeback: have the flusher look at the thresholds."""
        if self._asleep:
            self._asleep = False
            self._env.wake(self._task)

    def queue(self, work: Work) -> None:
        """bdi_queue_work: run *work* as soon as the present one yields."""
        self.works.append(work)
        self.start_background()

    def sleep(self) -> Park:
        """The flusher has nothing to do; to be yielded by it."""
        self._asleep = True
        return PARK


class DirtyLists:
    """b_dirty, b_io and b_more_io of one bdi_writeback, oldest first, under one list_lock."""

    __slots__ = ("dirty", "io", "lock", "more_io")

    def __init__(self, lock: SpinLock) -> None:
        self.lock = lock
        self.dirty: deque[Inode] = deque()
        self.io: deque[Inode] = deque()
        self.more_io: deque[Inode] = deque()

    def add(self, inode: Inode, now_ns: int) -> None:
        """A clean inode became dirty (__mark_inode_dirty)."""
        inode.dirtied_when = now_ns
        self.dirty.append(inode)

    def queue_io(self, older_than_ns: int) -> int:
        """Refill io from more_io and from what was dirtied by *older_than_ns*; how many moved."""
        before = len(self.io)
        self.io.extend(self.more_io)
        self.more_io.clear()
        dirty = self.dirty
        if dirty and dirty[-1].dirtied_when <= older_than_ns:
            self.io.extend(dirty)
            dirty.clear()
        else:
            while dirty and dirty[0].dirtied_when <= older_than_ns:
                self.io.append(dirty.popleft())
        return len(self.io) - before

    def requeue(self, inode: Inode, budget_left: int, rules: WritebackRules, work: Work, now_ns: int) -> None:
        """requeue_inode: an inode that is still dirty waits for its next turn."""
        if budget_left <= 0 and (rules.used_up == "more_io" or work.reason == "periodic"):
            self.more_io.append(inode)
        else:
            self.add(inode, now_ns)

    def __len__(self) -> int:
        return len(self.dirty) + len(self.io) + len(self.more_io)


class Writeback:
    """Runs work items for one flusher thread."""

    def __init__(
        self,
        *,
        env: Environment,
        rules: WritebackRules,
        costs: WritebackCosts,
        lists: DirtyLists,
        cache: PageCache,
        filesystem: Filesystem,
        throttle: Throttle,
        signals: Signals,
    ) -> None:
        self._env = env
        self._rules = rules
        self._costs = costs
        self._lists = lists
        self._cache = cache
        self._fs = filesystem
        self._throttle = throttle
        self._signals = signals

    def over_background(self) -> bool:
        """over_bground_thresh: whether background work has anything to do."""
        return self._cache.dirty > self._cache.thresholds().background

    def perform(self, submitter: Submitter, work: Work) -> Steps:
        """wb_writeback: write *work* slice by slice until nothing is left to do."""
        rules, lists, env = self._rules, self._lists, self._env
        started_ns = env.now
        pages_left = work.nr_pages
        plugged = rules.plug_scope == "work" and submitter.start_plug()
        quota = rules.quota_pages
        while pages_left > 0 and not (work.reason == "background" and not self.over_background()):
            if not lists.io or (quota is not None and work.reason != "periodic"):
                age_ns = rules.expire if work.reason == "periodic" else 0
                older_than_ns = started_ns if work.reason == "sync" else env.now - age_ns
                moved = lists.queue_io(older_than_ns)
                yield lists.lock.section(submitter.task, moved * self._costs.move_ns)
            slice_ns = env.now
            end = Slice()
            yield self._slice(submitter, work, pages_left if quota is None else min(quota, pages_left), end)
            self._throttle.wrote(slice_ns)
            pages_left -= end.wrote
            if not lists.more_io and (end.wrote == 0 if quota is None else end.wrote < quota):
                break
        if plugged:
            yield from submitter.finish_plug()

    def write_inodes(self, submitter: Submitter, pages: int) -> Generator[Wait, None, int]:
        """writeback_inodes_wbc: a writer does the flusher's work, on the same lists (to 3.1)."""
        lists, end = self._lists, Slice()
        yield lists.lock.section(submitter.task, lists.queue_io(self._env.now) * self._costs.move_ns)
        yield self._slice(submitter, Work("background"), pages, end)
        return end.wrote

    def _slice(self, submitter: Submitter, work: Work, pages_left: int, end: Slice) -> Steps:
        """writeback_sb_inodes: visit inodes until io is empty, the time or the pages are used up.

        One hold of the list lock takes an inode back and picks the next one.
        """
        env, lists, rules = self._env, self._lists, self._rules
        task, lock, fs, io = submitter.task, lists.lock, self._fs, lists.io
        turn_ns, inode_ns = self._costs.requeue_ns + self._costs.take_ns, self._costs.inode_ns
        until_ns = env.now + rules.slice_time if rules.quota_pages is None else FAR_NS
        per_mapping = rules.plug_scope == "mapping"
        traced = self._signals.writeback_single_inode
        # The kernel works the chunk out again for each inode; its terms move only every 200 ms.
        if work.reason == "sync":
            chunk = UNLIMITED_PAGES
        else:
            chunk = pages_left if rules.quota_pages is not None else self._chunk_pages(pages_left)
        plugged = rules.plug_scope == "slice" and submitter.start_plug()
        wrote = 0
        yield lock.section(task, self._costs.take_ns, inode_ns)
        while io:
            inode = io.popleft()
            # A sync's budget is no count: it says that the whole file is meant.
            budget = chunk if chunk == UNLIMITED_PAGES else min(chunk, pages_left - wrote)
            if per_mapping:
                submitter.start_plug()
            inode.syncing = True
            written = yield from fs.write_pages(submitter, inode, budget)
            if per_mapping:
                yield from submitter.finish_plug()
            inode.syncing = False
            wrote += written
            if rules.quota_pages is None:
                wrote += inode.dirty_pages == 0  # the kernel counts the inode, too
            if traced.observers:
                traced.emit(inode=inode, wrote=written)
            if inode.dirty_pages:
                lists.requeue(inode, budget - written, rules, work, env.now)
            yield lock.section(task, turn_ns, inode_ns)
            if env.now >= until_ns or wrote >= pages_left:
                break
        if plugged:
            yield from submitter.finish_plug()
        end.wrote = wrote

    def _chunk_pages(self, pages_left: int) -> int:
        """writeback_chunk_size: half a second of bandwidth, in whole 4 MiB and at least one."""
        limit = self._cache.thresholds().limit
        pages = min(self._throttle.avg_write_pages_per_s // 2, limit // 8, pages_left)
        return (pages + MIN_CHUNK_PAGES) // MIN_CHUNK_PAGES * MIN_CHUNK_PAGES
