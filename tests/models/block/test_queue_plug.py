"""The plug of a queue (to 2.6.38), compared with a literal reading of the rules; congestion.

The rules are docs/kernel/plugs.md#the-plug-of-a-queue and docs/kernel/merging.md#finding-a-request-to-join.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness import LIMITS, BlockLayer, io_scheduler, leave
from wbsim.models.bio import Bio, Request
from wbsim.models.block.elevator import Elevator
from wbsim.models.block.merge import bounds_of
from wbsim.models.block.request_pool import Pool, RequestList, request_lists
from wbsim.models.catalogue.kernels import KERNELS
from wbsim.models.congestion import Congestion
from wbsim.models.interfaces import Thread
from wbsim.sim.engine import URGENT, Environment, Steps
from wbsim.sim.units import MS, US

BOUNDS = bounds_of(LIMITS, KERNELS["2.6.30"].plug)


def layer(**given: Any) -> BlockLayer:
    """Return a queue of 2.6.30 whose submission takes no time."""
    return BlockLayer(era="2.6.30", costs=(0, 0, 0), **given)


def submitted(block: BlockLayer, *bios: tuple[int, Bio]) -> list[int]:
    """Submit *bios*, each with its delay after the one before; return the times when requests were issued."""

    def body(thread: Thread) -> Steps:
        for after_ns, bio in bios:
            yield after_ns
            yield from block.submit(thread, bio)

    block.run(body)
    return [int(at) for at in block.device.times]


@pytest.mark.parametrize(("count", "at"), [(1, 3 * MS), (3, 3 * MS), (4, 0)])
def test_queue_plug_opens_at_four_requests_or_after_3_ms(count: int, at: int) -> None:
    """The fourth request that is not in the driver opens the plug."""
    block = layer()
    assert submitted(block, *((0, block.bio(1_000 * i)) for i in range(count))) == [at] * count


def test_bios_merge_while_the_plug_is_closed() -> None:
    """Twenty adjacent bios become one request, which leaves after 3 ms."""
    block = layer()
    assert submitted(block, *((0, block.bio(8 * i)) for i in range(20))) == [3 * MS]
    assert block.sizes == [160]
    assert block.queue.stat.writes.merges == 19


def test_synchronous_bio_opens_the_plug() -> None:
    """WRITE_SYNC has the unplug hint, so all waiting requests leave with the synchronous one.

    WRITE_SYNC_PLUG, which fsync(2) uses for data, has not: both leave after 3 ms.
    """
    for unplug, at in ((True, 5), (False, 3 * MS)):
        block = layer()
        sync = Bio(900, 8, queue=block.queue, sync=True, unplug=unplug)
        assert submitted(block, (0, block.bio(0)), (5, sync)) == [at, at]


def test_plug_that_opened_early_leaves_no_timer() -> None:
    """A plug that closes again after 1 ms stays closed for full 3 ms."""
    block = layer(latency_ns=10 * US)
    bios = [(0, block.bio(1_000 * i)) for i in range(4)]
    assert submitted(block, *bios, (MS, block.bio(9_000))) == [0] * 4 + [4 * MS]


def test_completion_opens_the_plug() -> None:
    """A completion at 1 ms issues the request that waits since 10 us."""
    block = layer(latency_ns=MS)
    bios = [(0, block.bio(1_000 * i)) for i in range(4)]
    assert submitted(block, *bios, (10 * US, block.bio(9_000))) == [0] * 4 + [MS]


def test_task_that_sleeps_for_a_request_opens_the_plug() -> None:
    """A task that sleeps for a request opens the plug.

    The pool has two requests, which may be overdrawn by one.  Three requests are too few to open the plug.
    """
    block = layer(nr_requests=2, latency_ns=MS)
    times = submitted(block, *((0, block.bio(1_000 * i)) for i in range(5)))
    assert times[:3] == [0, 0, 0]
    assert len(times) == 5


def test_requests_in_the_driver_do_not_open_the_plug() -> None:
    """Two synchronous requests in the driver do not count: the fourth waiting request opens the plug."""
    block = layer(latency_ns=2 * MS)
    sync = [(0, Bio(900 + 8_000 * i, 8, queue=block.queue, sync=True, unplug=True)) for i in range(2)]
    others = [(10, block.bio(100_000 + 1_000 * i)) for i in range(4)]
    assert submitted(block, *sync, *others) == [0, 0, *[40] * 4]


def test_cfq_dispatches_sync_requests_first_and_then_sweeps() -> None:
    """CFQ serves synchronous requests first, then sweeps; deadline sweeps over both."""
    order = {}
    for scheduler in ("cfq", "deadline"):
        of = Elevator(io_scheduler(scheduler), BOUNDS)
        for sector, sync in ((800, False), (100, False), (500, True), (300, False), (60, True)):
            of.add(Request(Bio(sector, 8, sync=sync)))
        order[scheduler] = [leave(of).start_sector for _ in range(5)]
    assert order == {"cfq": [500, 60, 100, 300, 800], "deadline": [60, 100, 300, 500, 800]}


@dataclass
class Plain:
    """A literal reading: one queue with noop, and a device of *depth* that takes *latency* for each request.

    ``waiting``: [start, end] of each request, oldest first; ``issued``: (time, start, end) of each request.
    """

    depth: int
    latency: int
    waiting: list[list[int]] = field(default_factory=list)
    last: list[int] | None = None
    ends: list[int] = field(default_factory=list)
    plugged_at: int | None = None
    issued: list[tuple[int, int, int]] = field(default_factory=list)

    def until(self, now: int) -> None:
        """Carry out all events before *now*."""
        while True:
            timer = [] if self.plugged_at is None else [self.plugged_at + 3 * MS]
            due = min([*self.ends, *timer], default=now)
            if due >= now:
                return
            if due in self.ends:
                self.ends.remove(due)
            self.plugged_at = None
            self.run(due)

    def run(self, now: int) -> None:
        """Issue waiting requests until the driver is full."""
        while self.waiting and len(self.ends) < self.depth:
            request = self.waiting.pop(0)
            if request is self.last:
                self.last = None
            self.issued.append((now, *request))
            self.ends.append(now + self.latency)

    def submit(self, now: int, start: int, end: int) -> None:
        """__make_request."""
        if self.last is not None and self.last[1] == start:
            self.last[1] = end
            return
        if self.last is not None and self.last[0] == end:
            self.last[0] = start
            return
        # A hash of ends: of several requests with one end the newest is found.
        for request in reversed(self.waiting):
            if request[1] == start:
                request[1] = end
                self.last = request
                return
        if not self.waiting:
            self.plugged_at = now if self.plugged_at is None else self.plugged_at
        request = [start, end]
        self.waiting.append(request)
        self.last = self.last or request
        if self.plugged_at is not None and len(self.waiting) >= 4:
            self.plugged_at = None
            self.run(now)


@given(
    st.lists(
        st.tuples(st.sampled_from([0, 7, 40_009, 1_500_007, 4_000_037]), st.integers(0, 15)), max_size=40
    ),
    st.integers(1, 5), st.sampled_from([90_001, 2_300_003, 3_900_001]),
)  # fmt: skip
def test_requests_match_a_literal_reading(bios: list[tuple[int, int]], depth: int, latency: int) -> None:
    """Requests have the bios and the times of issue that a literal reading gives."""
    block, plain, now = layer(depth=depth, latency_ns=latency), Plain(depth, latency), 0
    seen, asked = set[int](), list[tuple[int, Bio]]()
    for after, place in bios:
        if place in seen:
            continue
        seen.add(place)
        now += after + 11
        asked.append((after + 11, block.bio(8 * place)))
        plain.until(now)
        plain.submit(now, 8 * place, 8 * place + 8)
    submitted(block, *asked)
    plain.until(1 << 60)
    found = [
        (at, request.start_sector, request.end_sector)
        for at, request in zip(block.device.times, block.device.requests, strict=True)
    ]
    assert found == plain.issued


def take(pool: Pool, requests: int) -> None:
    """Take *requests* requests of *pool* for one task."""
    task = Environment().task("one")
    for _ in range(requests):
        assert pool.take(task)


def free(pool: Pool, requests: int) -> None:
    """Return *requests* requests to *pool*."""
    for _ in range(requests):
        pool.free()


def test_list_of_128_is_congested_at_113_until_below_103() -> None:
    """Only the list of asynchronous requests reports the end of its congestion, and reports it once."""
    env, told = Environment(), list[int]()
    pool, sync = request_lists(env, 128, lambda: told.append(pool.count))
    take(pool, 112)
    assert not pool.congested
    assert pool.take(env.task("one"))
    assert (pool.count, pool.congested) == (113, True)
    free(pool, 10)
    assert (pool.count, pool.congested, told) == (103, True, [])
    pool.free()
    pool.free()
    assert (pool.congested, told) == (False, [102])
    take(sync, 127)
    free(sync, 127)
    assert told == [102]


def test_short_list_is_congested_when_it_is_full() -> None:
    """A list of 8 requests is congested from 8 on, until fewer than 6 are taken."""
    pool = RequestList(Environment(), 8)
    take(pool, 7)
    assert not pool.congested
    take(pool, 1)
    free(pool, 2)
    assert pool.congested
    pool.free()
    assert not pool.congested


def test_end_of_congestion_wakes_all_sleepers_of_congestion_wait() -> None:
    """The end of congestion wakes all sleepers at once, and their timers have no effect on later sleeps.

    * t=0: a sleeps for 100 ns, b for 500, c for 50.
    * t=50: the timer of c expires.
    * t=60: congestion ends; a and b wake, and a sleeps for 100 ns again.
    * t=100: the first timer of a expires and does not wake it.
    * t=160: the second timer of a expires.
    """
    block = BlockLayer()
    env, log = block.env, list[tuple[str, int]]()
    congestion = Congestion(env, URGENT)

    def sleeper(name: str, *times: int) -> tuple[Any, Steps]:
        thread = block.parts.thread(name)

        def steps() -> Steps:
            for ns in times:
                yield from congestion.wait(thread, ns)
                log.append((name, env.now))

        return thread.task, steps()

    for task, steps in (sleeper("a", 100, 100), sleeper("b", 500), sleeper("c", 50)):
        env.start(task, steps)
    env.call_at(60, 0, congestion.end)
    left: list[int] = []
    env.call_at(60, 1 << 40, lambda: left.append(len(congestion.sleepers)))
    env.run()
    assert log == [("c", 50), ("a", 60), ("b", 60), ("a", 160)]
    assert left == [1], "a sleeps again, and b does not"
    assert congestion.sleepers == {}
