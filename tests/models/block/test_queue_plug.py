"""The queue's own plug, to 2.6.38, against a plain reading of mechanisms.md 1.1 and 1.4; and congestion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness import LIMITS, BlockLayer
from wbsim.models.bio import Bio, Request
from wbsim.models.block.elevator import Elevator
from wbsim.models.block.merge import bounds_of
from wbsim.models.block.request_pool import Pool, RequestList, request_lists
from wbsim.models.block.spec import ElevatorRules
from wbsim.models.catalogue.kernels import KERNELS
from wbsim.models.congestion import Congestion
from wbsim.models.interfaces import Thread
from wbsim.sim.engine import URGENT, Environment, Steps
from wbsim.sim.units import MS, US

BOUNDS = bounds_of(LIMITS, KERNELS["2.6.30"].plug)


def layer(**given: Any) -> BlockLayer:
    """A queue of 2.6.30 whose submission takes no time."""
    return BlockLayer(era="2.6.30", costs=(0, 0, 0), **given)


def submitted(block: BlockLayer, *bios: tuple[int, Bio]) -> list[int]:
    """Submit each so long after the one before; when each request went to the device."""

    def body(thread: Thread) -> Steps:
        for after_ns, bio in bios:
            yield after_ns
            yield from block.submit(thread, bio)

    block.run(body)
    return [int(at) for at in block.device.times]


@pytest.mark.parametrize(("count", "at"), [(1, 3 * MS), (3, 3 * MS), (4, 0)])
def test_requests_wait_for_company_or_for_3_ms(count: int, at: int) -> None:
    """The fourth of those that are not in the driver opens the plug."""
    block = layer()
    assert submitted(block, *((0, block.bio(1_000 * i)) for i in range(count))) == [at] * count


def test_they_merge_meanwhile() -> None:
    """At the end of a request; without a scheduler that sorts, at the beginning of the last merged alone."""
    block = layer()
    assert submitted(block, *((0, block.bio(8 * i)) for i in range(20))) == [3 * MS]
    assert block.sizes == [160]
    assert block.queue.stat.writes.merges == 19


def test_a_synchronous_one_takes_all_with_it() -> None:
    """WRITE_SYNC has the unplug hint."""
    block = layer()
    sync = Bio(900, 8, queue=block.queue, sync=True)
    assert submitted(block, (0, block.bio(0)), (5, sync)) == [5, 5]


def test_a_plug_that_was_opened_early_leaves_no_timer_behind() -> None:
    """Closed again 1 ms later it holds for 3 ms of its own."""
    block = layer(latency_ns=10 * US)
    bios = [(0, block.bio(1_000 * i)) for i in range(4)]
    assert submitted(block, *bios, (MS, block.bio(9_000))) == [0] * 4 + [4 * MS]


def test_while_the_device_works_nothing_is_plugged_for_long() -> None:
    """The end of a request takes what waits along."""
    block = layer(latency_ns=MS)
    bios = [(0, block.bio(1_000 * i)) for i in range(4)]
    assert submitted(block, *bios, (10 * US, block.bio(9_000))) == [0] * 4 + [MS]


def test_who_waits_for_a_request_sends_the_others_on() -> None:
    """Of two requests, which may be overdrawn by one: three are too few to open the plug."""
    block = layer(nr_requests=2, latency_ns=MS)
    times = submitted(block, *((0, block.bio(1_000 * i)) for i in range(5)))
    assert times[:3] == [0, 0, 0]
    assert len(times) == 5


def test_synchronous_requests_in_the_driver_are_not_among_those_that_wait() -> None:
    """Two of them are there when four others come: the fourth opens the plug."""
    block = layer(latency_ns=2 * MS)
    sync = [(0, Bio(900 + 8_000 * i, 8, queue=block.queue, sync=True)) for i in range(2)]
    others = [(10, block.bio(100_000 + 1_000 * i)) for i in range(4)]
    assert submitted(block, *sync, *others) == [0, 0, *[40] * 4]


def test_cfq_sends_what_is_synchronous_first_and_the_rest_in_a_sweep() -> None:
    """From where the last request ended; deadline begins a batch with the oldest."""
    order = {}
    for scheduler in ("cfq", "deadline"):
        of = Elevator(ElevatorRules(scheduler=scheduler, fifo_batch=16), BOUNDS)  # type: ignore[arg-type]
        for sector, sync in ((800, False), (100, False), (500, True), (300, False), (60, True)):
            of.add(Request(Bio(sector, 8, sync=sync)))
        order[scheduler] = [of.next().start_sector for _ in range(5)]
    assert order == {"cfq": [500, 60, 100, 300, 800], "deadline": [800, 60, 100, 300, 500]}


@dataclass
class Plain:
    """One queue with noop and a device of *depth* that takes *latency* for each request: a literal reading.

    ``waiting``: [start, end] of each request, oldest first; ``issued``: when, and what it was.
    """

    depth: int
    latency: int
    waiting: list[list[int]] = field(default_factory=list)
    last: list[int] | None = None
    ends: list[int] = field(default_factory=list)
    plugged_at: int | None = None
    issued: list[tuple[int, int, int]] = field(default_factory=list)

    def until(self, now: int) -> None:
        """All that happens before *now*."""
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
        """The driver takes what it can."""
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
        # A hash of ends: of several requests that end there the newest is found.
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
def test_requests_are_those_of_a_plain_reading(bios: list[tuple[int, int]], depth: int, latency: int) -> None:
    """Which bios join which request, and when each goes to the device."""
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
    """Take so many *requests* of *pool*, for one task."""
    task = Environment().task("one")
    for _ in range(requests):
        assert pool.take(task)


def free(pool: Pool, requests: int) -> None:
    """Return so many *requests* to *pool*."""
    for _ in range(requests):
        pool.free()


def test_a_list_is_congested_from_113_of_128_until_less_than_103() -> None:
    """Who waits is told once, of the requests that are not synchronous."""
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


def test_a_short_list_is_congested_when_it_is_full() -> None:
    """Of 8: from 8 on, until less than 6."""
    pool = RequestList(Environment(), 8)
    take(pool, 7)
    assert not pool.congested
    take(pool, 1)
    free(pool, 2)
    assert pool.congested
    pool.free()
    assert not pool.congested


def test_congestion_wait_wakes_all() -> None:
    """At the same instant; what they waited for is told; a later sleep is not cut short by the old timer."""
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
    env.call_at(60, 0, congestion.ended)
    left: list[int] = []
    env.call_at(60, 1 << 40, lambda: left.append(len(congestion.sleepers)))
    env.run()
    assert log == [("c", 50), ("a", 60), ("b", 60), ("a", 160)]
    assert left == [1], "a sleeps again, b does not"
    assert congestion.sleepers == {}
