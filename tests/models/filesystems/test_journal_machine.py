"""The journal of ext4 under any handles of three threads, against a list of dirtied blocks and their times.

A block is written in place only after a commit that follows its dirtying.  Each log goes round without a gap.
A thread that forces finds all blocks that it had dirtied on disk.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.harness import run_for
from tests.models.filesystems.test_journal import Log
from wbsim.models.interfaces import Thread
from wbsim.sim.engine import PARK, Steps
from wbsim.sim.units import MS, S

LATENCY_NS = 10_000  # of the layer's device
START = 1_000  # of the log
DEVICE_BLOCK = 10  # where the filesystem begins


class Worker:
    """A thread of the filesystem that carries out orders, one after another."""

    def __init__(self, of: JournalMachine, number: int) -> None:
        self.of = of
        self.orders: deque[tuple[Any, ...]] = deque()
        self.idle = False
        self.thread: Thread = of.log.layer.parts.thread(f"worker {number}")
        of.env.start(self.thread.task, self._run())

    def tell(self, *order: Any) -> None:
        """Order a handle, the conversion of an extent, a commit or a sync."""
        self.orders.append(order)
        if self.idle:
            self.idle = False
            self.of.env.wake(self.thread.task)

    def _run(self) -> Steps:
        of, journal = self.of, self.of.log.journal
        while True:
            if not self.orders:
                self.idle = True
                yield PARK
            what, *given = self.orders.popleft()
            if what == "handle":
                credits_asked, blocks, hold_ns = given
                yield from journal.start_handle(self.thread, credits_asked)
                of.admitted(credits_asked)
                yield hold_ns
                of.outstanding -= credits_asked
                journal.stop_handle(credits_asked, blocks)
                of.dirtied += [(of.env.now, block) for block in blocks]
            elif what == "convert":
                yield from journal.reserve(self.thread)
                of.reserved += of.convert_credits
                assert of.reserved <= of.most // 2
                yield given[0]
                of.reserved -= of.convert_credits
                journal.release()
            elif what == "want":
                journal.want()
            else:
                began_ns = of.env.now
                yield from getattr(journal, what)(self.thread)
                of.returned(what, began_ns)


class JournalMachine(RuleBasedStateMachine):
    """Three threads and a journal that is small, so that it is often full."""

    @initialize(
        blocks=st.sampled_from([150, 300, 1_000]), interval_ms=st.sampled_from([1_000, 2_500, 5_000]),
        expire_ms=st.sampled_from([0, 700, 30_000]), convert_credits=st.sampled_from([3, 11]),
    )  # fmt: skip
    def begin(self, blocks: int, interval_ms: int, expire_ms: int, convert_credits: int) -> None:
        self.interval_ns, self.expire_ns = interval_ms * MS, expire_ms * MS
        self.log = Log(
            blocks, commit_interval=self.interval_ns, expire=self.expire_ns, convert_credits=convert_credits
        )
        self.env = self.log.layer.env
        self.blocks, self.most = blocks, blocks // 3
        self.convert_credits = convert_credits
        self.dirtied: list[tuple[int, int]] = []
        self.outstanding = self.reserved = self.read = self.head = self.logged = 0
        self.place: dict[int, list[int]] = {}  # when each block was submitted to its place
        self.commits: list[int] = []  # when each commit block was submitted
        self.transaction: list[int] = []  # blocks of the log since the last commit
        self.workers = [Worker(self, number) for number in range(3)]

    @rule(
        who=st.integers(0, 2), credits_asked=st.integers(1, 20), first=st.integers(0, 60),
        count=st.integers(0, 20), hold_ns=st.sampled_from([0, 500, 30_000]),
    )  # fmt: skip
    def handle(self, who: int, credits_asked: int, first: int, count: int, hold_ns: int) -> None:
        """Order a handle that dirties no more blocks than its credits."""
        blocks = range(first, first + min(count, credits_asked))
        self.workers[who].tell("handle", credits_asked, blocks, hold_ns)

    @rule(who=st.integers(0, 2), hold_ns=st.sampled_from([0, 20_000, MS]))
    def convert(self, who: int, hold_ns: int) -> None:
        self.workers[who].tell("convert", hold_ns)

    @rule(who=st.integers(0, 2), what=st.sampled_from(["want", "force", "commit_log"]))
    def sync(self, who: int, what: str) -> None:
        self.workers[who].tell(what)

    @rule(ns=st.sampled_from([0, 700, LATENCY_NS, 15_000, MS, S, 6 * S, 31 * S]))
    def let_pass(self, ns: int) -> None:
        """Let *ns* pass, and check all laws afterwards."""
        run_for(self.env, ns)
        self.check()

    def admitted(self, credits_asked: int) -> None:
        """Check that the transaction has room for a handle, and that the log has room for the transaction."""
        journal = self.log.journal
        self.outstanding += credits_asked
        assert len(journal.transaction) + 22 + self.outstanding + self.reserved <= self.most
        assert journal.used_blocks + self.most <= self.blocks

    def returned(self, what: str, began_ns: int) -> None:
        """Check that blocks dirtied before *began_ns* are in the log.

        After a force these blocks are also in place, unless they were dirtied again.
        """
        self.look()
        last = {block: at for at, block in self.dirtied}
        for at, block in self.dirtied:
            if at < began_ns:
                assert any(at <= commit and commit + LATENCY_NS <= self.env.now for commit in self.commits)
            if what == "force" and at < began_ns and last[block] < began_ns:
                assert any(
                    at <= placed and placed + LATENCY_NS <= self.env.now
                    for placed in self.place.get(block, [])
                )

    def look(self) -> None:
        """Read the requests since the last look: the log goes round, and each block follows its commit."""
        device = self.log.layer.device
        for request, at in list(zip(device.requests, device.times, strict=True))[self.read :]:
            self.read += 1
            start = request.start_sector // 8 - DEVICE_BLOCK
            blocks = range(start, start + request.sectors // 8)
            if start < START:
                assert request.op == "W"
                for block in blocks:
                    assert any(
                        when <= commit and commit + LATENCY_NS <= at
                        for commit in self.commits
                        for when, dirtied in self.dirtied
                        if dirtied == block
                    ), (block, at)
                    self.place.setdefault(block, []).append(at)
            else:
                self.transaction += blocks
                if request.op == "FWF":
                    self.committed(at, blocks[0])

    def committed(self, at: int, last: int) -> None:
        """Check the transaction that a commit block at *last* ends.

        Its blocks, descriptors of 254 blocks and the commit block follow the transaction before.
        """
        own, self.transaction = self.transaction, []
        expected = [START + (self.head + number) % self.blocks for number in range(len(own))]
        assert sorted(own) == sorted(expected)
        assert last == expected[-1]
        self.head = (self.head + len(own)) % self.blocks
        logged = [n for n in range(1, self.most + 1) if n + -(-n // 254) + 1 == len(own)]
        assert len(logged) == 1
        before = self.commits[-2] if len(self.commits) > 1 else -1  # the transaction began after that commit
        assert logged[0] <= len({block for when, block in self.dirtied if before <= when <= at})
        self.commits.append(at)
        self.logged += len(own)

    def check(self) -> None:
        """Check that no block waits longer than it may."""
        self.look()
        journal, now = self.log.journal, self.env.now
        journal.check()
        self.log.layer.queue.check()
        assert (journal.credits, journal.reserved) == (self.outstanding, self.reserved)
        slack_ns = S + 50 * MS  # the timer's full second, and the writes
        if journal.transaction:
            assert now - journal.since_ns < self.interval_ns + slack_ns
        assert all(now - at <= self.expire_ns + slack_ns for at, _, _ in journal.committed)

    def teardown(self) -> None:
        """Check that after enough time all dirtied blocks are in place and the log is empty."""
        if not getattr(self, "workers", None):
            return
        run_for(self.env, 10 * S)
        assert all(worker.idle for worker in self.workers), "a worker waits forever"
        self.workers[0].tell("force")
        run_for(self.env, 10 * S)
        self.check()
        journal = self.log.journal
        assert (len(journal.transaction), journal.used_blocks, self.outstanding, self.reserved) == (
            0,
            0,
            0,
            0,
        )
        assert {block for _, block in self.dirtied} == self.place.keys()
        assert journal.written_bytes == 4_096 * self.logged


TestJournal: Any = JournalMachine.TestCase
TestJournal.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
