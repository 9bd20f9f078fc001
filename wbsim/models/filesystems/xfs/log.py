"""The XFS log: delayed logging, its checkpoints, and the write-out of logged buffers.

Stands for fs/xfs/xfs_log_cil.c (xfs_log_commit_cil, xlog_cil_push), xfs_log.c (iclogs, xfs_log_worker) and
xfs_trans_ail.c (xfsaild).  An item relogged within one checkpoint is written once.  The complete AIL is
pushed at each sync interval and, while memory is full, by the inode shrinker (xfs_reclaim_inodes_nr).

Left out: the wait for an item's I/O before the log's tail moves past it, log recovery items, the covering of
an idle log.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from wbsim.models.bio import FLUSH, FLUSH_FUA, Bio
from wbsim.models.block.gendisk import GenDisk
from wbsim.models.filesystems.xfs.spec import LogCosts, LogSpec, XfsRules
from wbsim.models.interfaces import Thread
from wbsim.models.page_cache.accounting import PageCache
from wbsim.models.parts import Parts
from wbsim.models.scheduler.cpu import sleep
from wbsim.models.time_accounting import DEVICE, LOG_SPACE, LOG_WRITE, PAUSE
from wbsim.sim.engine import PARK, Steps, Task, Wait
from wbsim.sim.invariants import require
from wbsim.sim.units import SECTOR_BYTES


class MetaBuffer:
    """A metadata buffer on disk, whose *start_sector* counts from the start of the filesystem.

    ``checkpoint`` is the number of the last checkpoint that logged a part of the buffer; 0: none.
    """

    __slots__ = ("checkpoint", "sectors", "start_sector")

    def __init__(self, start_sector: int, sectors: int) -> None:
        self.start_sector = start_sector
        self.sectors = sectors
        self.checkpoint = 0


NO_BUFFER: Final = MetaBuffer(0, 0)
"""A placeholder for a missing buffer."""


class XfsLog:
    """The CIL, the iclogs and the AIL of one filesystem.

    The log begins at *start_sector* of the disk, and the filesystem at *first_sector*.  The growing
    checkpoint, with the number ``checkpoint``, collects commits until the CIL worker writes it to the log.
    Its buffers (``items``) then enter the AIL (``ail``), until xfsaild writes them to their places.  To push
    the checkpoint, or the AIL, is to have it written so.

    ``full``: the log has no room, so a new transaction must wait.  ``commits_alone``: a commit never waits
    for another, because the era has no xc_cil_lock.
    """

    def __init__(
        self,
        *,
        parts: Parts,
        queue: GenDisk,
        spec: LogSpec,
        costs: LogCosts,
        rules: XfsRules,
        start_sector: int,
        first_sector: int,
        cache: PageCache,
    ) -> None:
        self._env = parts.env
        self._urgent = parts.urgent
        self._queue = queue
        self._spec = spec
        self._costs = costs
        self._start_sector = start_sector
        self._first_sector = first_sector
        self._write_sector = 0
        self._cache = cache
        self._cil_worker = parts.thread("kworker/xfs-cil")
        self._aild = parts.thread("xfsaild")
        self.items: list[MetaBuffer] = []
        self.item_bytes = 0  # bytes of the items of the growing checkpoint
        self._push_wanted = False
        self._in_flight = 0
        self._head = 0
        self.ail: dict[MetaBuffer, int] = {}  # buffer -> log bytes written when it was last logged
        self._ail_target = -1
        self._ail_asleep = self._cil_asleep = False
        self._forcing = False
        self._forced: list[tuple[int, Task]] = []
        self.on_disk = 0
        """The number of the last checkpoint that is on disk."""
        self._waiters: deque[Task] = deque()
        self._room_bytes = spec.checkpoint_bytes  # the size at which the growing checkpoint is looked at
        self.full = False  # whether a new transaction must wait for log space
        self._lock = parts.spin_lock("xc_cil_lock") if rules.cil == "spinlock" else None
        self._flushes_ends = rules.log_flushes == "ends" and queue.has_cache
        self.commits_alone = self._lock is None  # True: a commit never waits for another commit
        self.checkpoint = 1  # the number of the growing checkpoint

    def start(self) -> None:
        """Start the CIL worker, xfsaild, and the timer that pushes the checkpoint and the AIL.

        The timer does so every ``sync_interval`` (`LogSpec`).  `xfs` calls this once.
        """
        self._env.start(self._cil_worker.task, self._push_checkpoints())
        self._env.start(self._aild.task, self._push_ail())
        self._env.call_at(self._spec.sync_interval, self._urgent, self._sync)

    @property
    def written_bytes(self) -> int:
        """The bytes of the log records submitted so far, headers included, in whole sectors.

        The count goes on rising when the log begins again at its start.
        """
        return self._head

    def insert_item(self, buffer: MetaBuffer) -> None:
        """Add *buffer* to the growing checkpoint, if that does not have it yet; in no time.

        Then ``checkpoint`` of *buffer* is the number of the growing one.  `commit` must follow, which counts
        the bytes.
        """
        if buffer.checkpoint != self.checkpoint:
            buffer.checkpoint = self.checkpoint
            self.items.append(buffer)

    def commit(self, size_bytes: int) -> None:
        """Add *size_bytes* of newly logged regions to the growing checkpoint, in no time.

        A checkpoint that has ``checkpoint_bytes`` (`LogSpec`) or fills the log is pushed.  A log that is full
        now makes new transactions wait.  The time has passed before, in `cil_section`.
        """
        self.item_bytes += size_bytes
        if self.item_bytes >= self._room_bytes:
            self._out_of_room()

    @property
    def commits_at_once(self) -> bool:
        """True if a commit that begins now need not wait for another commit, so its end is known."""
        return self._lock is None or self._lock.free

    def commit_ns(self, items: int) -> int:
        """Return the processor time (ns) of a commit of *items* items (xfs_log_commit_cil).

        In eras without xc_cil_lock, the number of items does not matter.
        """
        costs = self._costs
        return costs.commit_ns if self._lock is None else costs.commit_ns + items * costs.item_ns

    def cil_section(self, task: Task, commit_ns: int, then_ns: int) -> Wait:
        """Let *task* commit for *commit_ns*, under xc_cil_lock if there is one, then work for *then_ns*.

        Yield the result.  Only time passes: `insert_item` and `commit` follow.  The caller adds *commit_ns*
        and *then_ns* to what the task has spent; spinning for the lock is added here.
        """
        lock = self._lock
        return commit_ns + then_ns if lock is None else lock.section(task, commit_ns, then_ns)

    def wait_for_space(self, thread: Thread) -> Steps:
        """Let *thread* sleep until the log has room; a sleeper flushes its plug.  Use: `yield from`.

        *thread* first wakes the CIL worker and xfsaild, which make room (xlog_grant_head_wait).  If the log
        is not ``full``, nothing happens.
        """
        while self.full:
            thread.before_sleep()
            self._waiters.append(thread.task)
            self.want_push()
            self.want_ail(self._head)
            thread.task.waits_for = LOG_SPACE
            yield PARK

    def force(self, task: Task) -> Steps:
        """Let *task* sleep until every earlier commit is on disk (xfs_log_force).  Use: `yield from`.

        If every earlier commit is on disk already, no time passes.
        """
        return self.force_to(task, self.checkpoint if self.item_bytes else self.checkpoint - 1)

    def force_to(self, task: Task, checkpoint: int) -> Steps:
        """Let *task* sleep until the checkpoint with this number is on disk.  Use: `yield from`.

        If the checkpoint is on disk already, no time passes.  The growing one (``checkpoint``) must hold a
        commit, because an empty one is not written.  Tasks that force the same checkpoint wait for one write
        (xfs_log_force_seq).
        """
        if self.on_disk < checkpoint:
            self.want_push()
            self._forced.append((checkpoint, task))
            task.waits_for = LOG_WRITE
            yield PARK

    def check(self) -> None:
        """Check that the AIL is in the order of the log, and that the log knows how full it is.

        Raises:
            LawBroken: an item is out of order or beyond the head, ``full`` disagrees with the used bytes, or
                records are not whole sectors.
        """
        lsns, size = list(self.ail.values()), self._spec.size
        require(lsns == sorted(lsns), "log: the AIL must be in the order in which the items were logged")
        require(
            not lsns or 0 <= lsns[0] <= lsns[-1] <= self._head,
            f"log: its tail {lsns[:1]} must lie between 0 and its head {self._head}",
        )
        require(
            self.full == (self.used_bytes() >= size),
            f"log: full is {self.full}, with {self.used_bytes()} of {size} bytes in use",
        )
        require(self._head % SECTOR_BYTES == 0, f"log: {self._head} written bytes are not whole sectors")

    def _out_of_room(self) -> None:
        """Push the checkpoint, which has reached its largest size or has filled the log."""
        self.want_push()
        self.full = self.used_bytes() >= self._spec.size

    def _set_room(self) -> None:
        """Set how far the checkpoint may grow, after a change of the log's head or tail."""
        self.full = self.used_bytes() >= self._spec.size
        free_bytes = self._spec.size - (self.used_bytes() - self.item_bytes)
        self._room_bytes = min(self._spec.checkpoint_bytes, free_bytes)

    def used_bytes(self) -> int:
        """Return the used bytes of the log, from its tail to its head, with those of the growing checkpoint.

        The head is ``written_bytes``.  The tail is the value of the AIL's oldest buffer, as in `want_ail`;
        with an empty AIL, the head.  Of a checkpoint that is being written, only records that were submitted
        count.  A new transaction waits while the used bytes fill the log.
        """
        tail = next(iter(self.ail.values())) if self.ail else self._head
        return self._head - tail + self.item_bytes

    def _sync(self) -> None:
        """xfs_log_worker: force the log, and push the complete AIL."""
        self.want_push()
        self.want_ail(self._head)
        self._env.call_at(self._env.now + self._spec.sync_interval, self._urgent, self._sync)

    def want_push(self) -> None:
        """Have the CIL worker write the growing checkpoint unless that is empty, and return at once."""
        self._push_wanted = True
        if self._cil_asleep:
            self._cil_asleep = False
            self._env.wake(self._cil_worker.task)

    def _push_checkpoints(self) -> Steps:
        """xlog_cil_push: write one checkpoint after the other, with at most ``iclogs`` records in flight."""
        spec, worker = self._spec, self._cil_worker
        per_record = spec.iclog_bytes - spec.record_header
        while True:
            while not self._push_wanted or not self.item_bytes:
                self._push_wanted = False
                self._cil_asleep = True
                yield PARK
            self._push_wanted = False
            items, size_bytes = self.items, self.item_bytes
            self.items, self.item_bytes = [], 0
            self.checkpoint += 1
            self._set_room()
            is_first = True
            while size_bytes > 0:
                record_ns = self._costs.record_ns * min(size_bytes, per_record) // per_record
                worker.spent.log += record_ns
                yield record_ns
                op, waits_for_all = FLUSH_FUA, False
                if self._flushes_ends and size_bytes > per_record:
                    op = FLUSH if is_first else "W"
                elif self._flushes_ends:
                    waits_for_all = True  # the flush of the commit makes the other records safe
                while self._in_flight == spec.iclogs or (waits_for_all and self._in_flight):
                    self._cil_asleep = True
                    worker.task.waits_for = DEVICE
                    yield PARK
                self._in_flight += 1
                bio = self._record(min(size_bytes, per_record) + spec.record_header, op)
                is_first = False
                if (rest := worker.submit_bio(bio)) is not None:
                    yield from rest
                size_bytes -= per_record
            while self._in_flight:
                self._cil_asleep = True
                worker.task.waits_for = DEVICE
                yield PARK
            self._committed(items)
            self.on_disk += 1
            for checkpoint, task in [waiter for waiter in self._forced if waiter[0] <= self.on_disk]:
                self._forced.remove((checkpoint, task))
                self._env.wake(task)

    def _record(self, size_bytes: int, op: str) -> Bio:
        """Return the bio of the next log record, rounded up to a sector.

        A record that does not fit in front of the log's end goes to the log's beginning.
        """
        sectors = -(-size_bytes // SECTOR_BYTES)
        if self._write_sector + sectors > self._spec.size // SECTOR_BYTES:
            self._write_sector = 0
        start = self._start_sector + self._write_sector
        self._write_sector += sectors
        self._head += sectors * SECTOR_BYTES
        segments = self._queue.limits.segments_of(sectors * SECTOR_BYTES)
        return Bio(
            start, sectors, segments=segments, op=op, queue=self._queue, sync=True, nomerge=op != "W",
            meta=True, unplug=True, end_io=self._record_done,
        )  # fmt: skip

    def _record_done(self, _: object) -> None:
        self._in_flight -= 1
        if self._cil_asleep and (self._in_flight == 0 or self._in_flight == self._spec.iclogs - 1):
            self._cil_asleep = False
            self._env.wake(self._cil_worker.task)

    def _committed(self, items: list[MetaBuffer]) -> None:
        """Move the *items* of a checkpoint that is on disk to the AIL's end."""
        ail, lsn = self.ail, self._head
        for item in items:
            ail.pop(item, None)
            ail[item] = lsn
        self._set_room()
        if self._forcing:
            self._forcing = False
            self._env.wake(self._aild.task)
        elif self._cache.reclaiming:
            self.want_ail(lsn)
        # xlog_grant_push_threshold: a quarter of the log beyond its tail.  When three quarters are in use,
        # that is half a log behind the head.
        free = self._spec.size - self.used_bytes()
        if free < self._spec.size // 4:
            self.want_ail(self._head - self._spec.size // 2)

    def want_ail(self, target: int) -> None:
        """Have xfsaild write the buffers in place that were logged up to *target*, and return at once.

        *target* is a value of ``written_bytes``.  A buffer has the value from the moment when its checkpoint
        was on disk; *target* itself is included (xfs_ail_push).  Of several targets, the highest counts.
        """
        self._ail_target = max(self._ail_target, target)
        if self._ail_asleep:
            self._ail_asleep = False
            self._env.wake(self._aild.task)

    def _push_ail(self) -> Steps:
        """xfsaild: make passes while a push is wanted.

        While memory is full, the inode shrinker always wants the complete AIL pushed (xfs_reclaim_inodes_nr).
        The growing checkpoint then always pins the buffers of each group's header, so every pass begins with
        a log force.
        """
        while True:
            if not self._cache.reclaiming and self._ail_target < 0:
                self._ail_asleep = True
                yield PARK
            if self._cache.reclaiming:
                yield from self._force_log()
                self._ail_target = self._head
            target, self._ail_target = self._ail_target, -1
            yield from self._write_buffers([item for item, lsn in self.ail.items() if lsn <= target])
            while self._waiters:
                self._env.wake(self._waiters.popleft())
            yield from sleep(self._aild.task, self._spec.ail_pause, PAUSE)

    def _force_log(self) -> Steps:
        """xfs_log_force: push the growing checkpoint and wait until it is on disk."""
        if self.item_bytes or self._in_flight:
            self.want_push()
            self._forcing = True
            self._aild.task.waits_for = LOG_WRITE
            yield PARK

    def _write_buffers(self, batch: list[MetaBuffer]) -> Steps:
        """Write *batch* in the order of the sectors, under one plug."""
        if not batch:
            return
        aild = self._aild
        aild.spent.log += len(batch) * self._costs.buffer_ns
        yield len(batch) * self._costs.buffer_ns
        for item in batch:
            self.ail.pop(item, None)
        self._set_room()
        batch.sort(key=_by_sector)
        aild.start_plug()
        for item in batch:
            segments = self._queue.limits.segments_of(item.sectors * SECTOR_BYTES)
            start = self._first_sector + item.start_sector
            bio = Bio(start, item.sectors, segments=segments, queue=self._queue, meta=True)
            if (rest := aild.submit_bio(bio)) is not None:
                yield from rest
        yield from aild.finish_plug()


def _by_sector(buffer: MetaBuffer) -> int:
    return buffer.start_sector
