"""The request queue in time: when a plug is flushed, when a thread sleeps, what the device sees."""

from __future__ import annotations

import pytest

from models.seams import Thread
from sim.engine import Steps
from tests.harness import BlockLayer


def test_a_plug_issues_at_its_end_and_in_order_of_place() -> None:
    """Nothing leaves before finish_plug; then all of it, sorted and merged."""
    block = BlockLayer()

    def body(thread: Thread) -> Steps:
        thread.start_plug()
        for start in (800, 0, 808, 8):
            yield from block.submit(thread, block.bio(start))
            yield 5_000
        assert block.device.requests == []
        yield from thread.finish_plug()

    block.run(body)
    assert [(r.start_sector, r.sectors) for r in block.device.requests] == [(0, 16), (800, 16)]
    assert sorted(block.ended) == [0, 8, 800, 808]
    assert block.queue.stat.merges == 2


def test_nested_plugs_are_inert() -> None:
    """An inner start_plug does not install itself, so the outer plug keeps everything."""
    block = BlockLayer()

    def body(thread: Thread) -> Steps:
        assert thread.start_plug()
        for start in (0, 8, 16):
            assert not thread.start_plug()
            yield from block.submit(thread, block.bio(start))
        yield from thread.finish_plug()

    block.run(body)
    assert block.sizes == [24]


def test_the_17th_request_flushes_the_16_before_it() -> None:
    """3.11: up to 16 are held; the flush comes before the new one is added."""
    block = BlockLayer()

    def body(thread: Thread) -> Steps:
        thread.start_plug()
        for i in range(16):
            yield from block.submit(thread, block.bio(1_000 * i))
        assert len(block.device.requests) == 0
        yield from block.submit(thread, block.bio(16_000))
        assert len(block.device.requests) == 16
        yield from thread.finish_plug()

    block.run(body)
    assert len(block.device.requests) == 17


def test_without_a_plug_a_request_goes_at_once() -> None:
    """And finds its neighbour gone: no merge on an idle device."""
    block = BlockLayer()

    def body(thread: Thread) -> Steps:
        for start in (0, 8):
            yield from block.submit(thread, block.bio(start))

    block.run(body)
    assert block.sizes == [8, 8]


def test_a_busy_driver_lets_the_elevator_merge() -> None:
    """With the driver's depth used up, neighbours meet in the elevator."""
    block = BlockLayer(depth=1, latency_ns=100_000)

    def body(thread: Thread) -> Steps:
        for start in (0, 80, 88, 96):
            yield from block.submit(thread, block.bio(start))

    block.run(body)
    assert block.sizes == [8, 24]


def test_sleeping_flushes_the_plug_and_preemption_does_not() -> None:
    """schedule() empties the plug, charged to kblockd: the sleeper pays nothing for it."""
    block = BlockLayer()

    def body(thread: Thread) -> Steps:
        thread.start_plug()
        yield from block.submit(thread, block.bio(0))
        yield 50_000  # runs on, perhaps preempted
        assert block.device.requests == []
        at = block.env.now
        thread.before_sleep()
        assert len(block.device.requests) == 1
        assert block.env.now == at
        yield from thread.finish_plug()

    block.run(body)
    assert block.sizes == [8]


@pytest.mark.parametrize(("nr_requests", "expected"), [(8, 12), (128, 160)])
def test_a_full_pool_puts_the_submitter_to_sleep(nr_requests: int, expected: int) -> None:
    """The task that fills the pool becomes a batcher (32 more), capped at 3/2 of the pool."""
    block = BlockLayer(nr_requests=nr_requests, depth=1_000, latency_ns=10**9)
    in_flight: list[int] = []

    def body(thread: Thread) -> Steps:
        for i in range(expected + 5):
            yield from block.submit(thread, block.bio(1_000 * i))

    def watch(_: Thread) -> Steps:
        yield 10**8
        in_flight.append(block.queue.pool(False).count)

    block.run(body, watch)
    assert in_flight == [expected]
    assert len(block.ended) == expected + 5


def test_little_s_law_for_the_device() -> None:
    """Time-average in flight times elapsed equals the summed service times: here all are alike."""
    block = BlockLayer(latency_ns=7_000)

    def body(thread: Thread) -> Steps:
        for i in range(50):
            yield from block.submit(thread, block.bio(1_000 * i))

    block.run(body)
    assert block.queue.stat.wait_ns == 50 * 7_000
