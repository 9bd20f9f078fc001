"""Bios pass through plugs, pool, elevator and driver, and each bio completes exactly once."""

from __future__ import annotations

from collections import deque
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.harness import BlockLayer, run_for
from tests.waits import Waits
from wbsim.models.bio import Bio
from wbsim.models.catalogue.kernels import PLUG_RULES
from wbsim.models.interfaces import Thread
from wbsim.sim.engine import PARK, Steps

LATENCY_NS = 50_000
THREADS = st.integers(0, 2)


class Submitter:
    """A thread that carries out ``orders`` one after another."""

    def __init__(self, layer: BlockLayer, number: int) -> None:
        self.layer = layer
        self.thread: Thread = layer.parts.thread(f"submitter {number}")
        self.orders: deque[Any] = deque()
        self.idle = self.plugged = False
        layer.env.start(self.thread.task, self._run())

    def tell(self, order: Any) -> None:
        """Append *order*: a bio, "plug", "unplug" or "sleep"."""
        self.orders.append(order)
        if self.idle:
            self.idle = False
            self.layer.env.wake(self.thread.task)

    def _run(self) -> Steps:
        while True:
            if not self.orders:
                self.idle = True
                yield PARK
            order = self.orders.popleft()
            if isinstance(order, Bio):
                yield from self.layer.submit(self.thread, order)
            elif order == "plug":
                self.plugged = self.thread.start_plug() or self.plugged
            elif order == "sleep":
                self.thread.before_sleep()
                yield 10_000
            elif self.plugged:
                self.plugged = False
                yield from self.thread.finish_plug()


class Block(RuleBasedStateMachine):
    """A block layer, compared with a list of the submitted bios."""

    @initialize(
        era=st.sampled_from(list(PLUG_RULES)),
        pool=st.sampled_from(["request_list", "tags"]),
        scheduler=st.sampled_from(["noop", "deadline"]),
        nr_requests=st.sampled_from([4, 9, 128]),
        depth=st.sampled_from([1, 3, 128]),
    )
    def begin(self, era: str, pool: str, scheduler: str, nr_requests: int, depth: int) -> None:
        self.layer = BlockLayer(
            era=era, pool=pool, scheduler=scheduler, nr_requests=nr_requests, depth=depth,
            latency_ns=LATENCY_NS,
        )  # fmt: skip
        self.most = nr_requests if pool == "tags" else 3 * nr_requests // 2
        self.depth = depth
        self.submitted: list[Bio] = []
        self.fates = {"getrq": 0, "backmerge": 0, "frontmerge": 0}
        signals = self.layer._signals
        self.waits = Waits(signals, self.layer.env)
        for fate, signal in (
            ("getrq", signals.block_getrq),
            ("backmerge", signals.block_bio_backmerge),
            ("frontmerge", signals.block_bio_frontmerge),
        ):
            signal.observers.append(lambda _, fate=fate, **__: self._count(fate))
        self.threads = [Submitter(self.layer, number) for number in range(3)]

    def _count(self, fate: str) -> None:
        self.fates[fate] += 1

    @rule(thread=THREADS, stream=st.integers(0, 3), back=st.booleans(), nomerge=st.integers(0, 9))
    def submit(self, thread: int, stream: int, back: bool, nomerge: int) -> None:
        """Submit the next bio of *stream*, behind its last bio or in front of its first."""
        own = [bio.start_sector for bio in self.submitted if bio.start_sector // 100_000 == stream]
        middle = 100_000 * stream + 50_000
        start = (max(own, default=middle - 8) + 8) if back else (min(own, default=middle) - 8)
        bio = self.layer.bio(start)
        bio.nomerge = nomerge == 0
        self.submitted.append(bio)
        self.threads[thread].tell(bio)

    @rule(thread=THREADS, order=st.sampled_from(["plug", "unplug", "sleep"]))
    def tell(self, thread: int, order: str) -> None:
        self.threads[thread].tell(order)

    @rule(ns=st.sampled_from([0, 200, 3_000, LATENCY_NS, 10 * LATENCY_NS]))
    def let_pass(self, ns: int) -> None:
        """Let *ns* pass.  Then all laws hold, and the device had each completed request for its latency."""
        run_for(self.layer.env, ns)
        self.check()

    def check(self) -> None:
        queue, ended = self.layer.queue, self.layer.ended
        queue.check()
        assert 0 <= queue.pool(False).count <= self.most
        assert queue.stat.in_flight <= self.depth
        assert len(set(ended)) == len(ended)
        assert set(ended) <= {bio.start_sector for bio in self.submitted}
        stat = queue.stat.writes
        assert (stat.ios + stat.merges, stat.sectors) == (len(ended), 8 * len(ended))
        assert self.waits.driver_ns["sda"] == stat.ios * LATENCY_NS
        seen = [bio for request in self.layer.device.requests for bio in request.bios]
        assert len({id(bio) for bio in seen}) == len(seen)
        for request in self.layer.device.requests:
            starts = [bio.start_sector for bio in request.bios]
            assert starts == list(range(request.start_sector, request.end_sector, 8))
            assert len(starts) == 1 or not any(bio.nomerge for bio in request.bios)
            assert (request.merges, request.segments) == (len(starts) - 1, len(starts))

    @precondition(lambda self: getattr(self, "threads", None))
    @rule()
    def drain(self) -> None:
        """Finish all plugs and let 1 s pass: every bio has completed, and had one fate."""
        for thread in self.threads:
            thread.tell("unplug")
        run_for(self.layer.env, 10**9)
        self.check()
        assert all(thread.idle for thread in self.threads)
        assert sorted(self.layer.ended) == sorted(bio.start_sector for bio in self.submitted)
        assert sum(self.fates.values()) == len(self.submitted)
        queue = self.layer.queue
        self.waits.check({"sda": queue})
        assert (queue.pool(False).count, queue.stat.in_flight, len(queue.elevator.requests)) == (0, 0, 0)
        assert queue.stat.writes.ios == len(self.layer.device.requests) <= self.fates["getrq"]

    def teardown(self) -> None:
        if getattr(self, "threads", None):
            self.drain()


Block.TestCase.settings = settings(max_examples=40, stateful_step_count=40)
TestBlock: Any = Block.TestCase
