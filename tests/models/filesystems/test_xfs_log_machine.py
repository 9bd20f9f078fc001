"""Commits, checkpoints, records, the AIL and the tail, step by step, against sums and dictionaries."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.harness import run_for
from tests.models.filesystems.watched_log import Log
from wbsim.models.filesystems.xfs.log import MetaBuffer
from wbsim.sim.engine import Steps
from wbsim.sim.units import KIB, MS

BUFFERS = 5
PER_RECORD = 4 * KIB - 512
SECTORS = 80


class XfsLogs(RuleBasedStateMachine):
    """A log of 80 sectors, in which a checkpoint of 8 KiB is pushed, with one to three records in flight."""

    @initialize(iclogs=st.integers(1, 3))
    def begin(self, iclogs: int) -> None:
        self.of = Log(
            size=SECTORS * 512, checkpoint_bytes=8 * KIB, iclogs=iclogs, sync_interval=50 * MS, ail_pause=MS
        )
        self.iclogs = iclogs
        self.buffers = [MetaBuffer(1_000 * i, 8) for i in range(BUFFERS)]
        self.size: Counter[int] = Counter()  # the bytes that were committed to each checkpoint
        self.items: dict[int, set[int]] = {}
        self.waiting = 0

    @rule(size=st.integers(1, 3_000), chosen=st.sets(st.integers(0, BUFFERS - 1), max_size=3))
    def commit(self, size: int, chosen: set[int]) -> None:
        """Commit a transaction that logs parts of some buffers, unless the log is full."""
        log = self.of.log
        if log.full:
            return
        self.size[log.checkpoint] += size
        self.items.setdefault(log.checkpoint, set()).update(chosen)
        self.of.commit(size, *(self.buffers[number] for number in sorted(chosen)))
        assert sorted(self.buffers.index(item) for item in log.items) == sorted(self.items[log.checkpoint])

    @rule(ns=st.sampled_from([0, 500, 5_000, 30_000, 2 * MS, 60 * MS]))
    def let_pass(self, ns: int) -> None:
        run_for(self.of.env, ns)

    @rule(full=st.booleans())
    def reclaim(self, full: bool) -> None:
        """Fill or empty memory; a shrinker with full memory asks for everything."""
        self.of.cache.reclaiming = full
        if full:
            self.of.log.want_ail(self.of.log.written_bytes)

    @rule()
    def force(self) -> None:
        """Force the log, and check that all that was committed before is on disk afterwards."""
        log, env = self.of.log, self.of.env
        wanted = max((number for number, size in self.size.items() if size), default=0)
        thread = self.of.layer.parts.thread("sync")
        self.waiting += 1

        def body() -> Steps:
            yield from log.force(thread.task)
            assert self.on_disk() >= wanted, "the log was not forced"
            self.waiting -= 1

        env.start(thread.task, body())

    @rule()
    def wait_for_space(self) -> None:
        """Wait for space, and check that the log has space afterwards."""
        thread = self.of.layer.parts.thread("writer")
        log = self.of.log
        self.waiting += 1

        def body() -> Steps:
            yield from log.wait_for_space(thread)
            assert not log.full
            self.waiting -= 1

        self.of.env.start(thread.task, body())

    def records_of(self, checkpoint: int) -> list[int]:
        """Return the sectors of each record of *checkpoint*: full records, and the rest in the last one."""
        whole, rest = divmod(self.size[checkpoint], PER_RECORD)
        return [8] * whole + ([-(-(rest + 512) // 512)] if rest else [])

    def on_disk(self) -> int:
        """Return the last checkpoint whose records have all been completed."""
        last, left = 0, len(self.ended())
        for checkpoint in sorted(self.size):
            left -= len(self.records_of(checkpoint))
            if left < 0:
                break
            last = checkpoint
        return last

    def ended(self) -> list[int]:
        """Return the records that the device has completed."""
        device, now = self.of.layer.device, self.of.env.now
        return [
            request.start_sector
            for request, when in zip(device.requests, device.times, strict=True)
            if request.op == "FWF" and when + device.latency_ns <= now
        ]

    @invariant()
    def what_was_committed_is_written_in_order(self) -> None:
        if not hasattr(self, "of"):
            return
        log, device = self.of.log, self.of.layer.device
        log.check()
        pushed = [
            n for number in sorted(self.size) if number < log.checkpoint for n in self.records_of(number)
        ]
        records = [request for request in device.requests if request.op == "FWF"]
        assert [record.sectors for record in records] == pushed[: len(records)]
        assert log.written_bytes <= 512 * sum(pushed)
        at = 0
        for record in records:
            at = 0 if at + record.sectors > SECTORS else at
            assert record.start_sector == 5_000 + at, (
                "records must follow each other and not cross the end of the log"
            )
            at += record.sectors
        assert len(records) - len(self.ended()) <= self.iclogs
        on_disk = [self.items.get(of, set()) for of in range(1, self.on_disk() + 1)]
        assert {self.buffers.index(item) for item in log.ail} <= set().union(*on_disk)
        places = {100 + buffer.start_sector for buffer in self.buffers}
        assert {request.start_sector for request in device.requests if request.op == "W"} <= places

    def teardown(self) -> None:
        """Check that after 200 ms everything is on disk and in place, and that no task waits."""
        if not hasattr(self, "of"):
            return
        self.of.cache.reclaiming = False
        run_for(self.of.env, 200 * MS)
        self.what_was_committed_is_written_in_order()
        log, device = self.of.log, self.of.layer.device
        assert self.waiting == 0
        assert (log.item_bytes, log.items, log.ail, log.full) == (0, [], {}, False)
        assert log.written_bytes == 512 * sum(sum(self.records_of(number)) for number in self.size)
        written = {(r.start_sector - 100) // 1_000 for r in device.requests if r.op == "W"}
        assert written == set().union(*self.items.values())


XfsLogs.TestCase.settings = settings(max_examples=50, stateful_step_count=40)
TestXfsLogs: Any = pytest.mark.source(XfsLogs.TestCase)
