"""The request queue over time: plug flushes, sleeps of threads, and the requests at the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.harness import FIO, LIMITS, BlockLayer, loop_config
from tests.waits import Waits
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput
from wbsim.models.bio import FLUSH, Bio, Request
from wbsim.models.block.gendisk import RequestStats
from wbsim.models.interfaces import Thread
from wbsim.models.machine import build
from wbsim.models.scheduler.cpu import ANY_CPU
from wbsim.sim.engine import Steps, Task
from wbsim.sim.units import KIB, MS


def test_finish_plug_issues_merged_requests_sorted_by_sector() -> None:
    """A plug issues no request before finish_plug; then it issues all, sorted and merged."""
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
    assert block.queue.stat.writes.merges == 2


def test_inner_start_plug_has_no_effect() -> None:
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
    """A plug of 3.11 holds up to 16 requests and is flushed before the 17th is added."""
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


def test_request_without_a_plug_is_issued_at_once() -> None:
    """On an idle device two adjacent bios do not merge, because the first request is issued at once."""
    block = BlockLayer()

    def body(thread: Thread) -> Steps:
        for start in (0, 8):
            yield from block.submit(thread, block.bio(start))

    block.run(body)
    assert block.sizes == [8, 8]


def test_a_busy_driver_lets_the_elevator_merge() -> None:
    """While the driver is full, adjacent bios merge in the elevator."""
    block = BlockLayer(depth=1, latency_ns=100_000)

    def body(thread: Thread) -> Steps:
        for start in (0, 80, 88, 96):
            yield from block.submit(thread, block.bio(start))

    block.run(body)
    assert block.sizes == [8, 24]


def test_sleeping_flushes_the_plug_and_preemption_does_not() -> None:
    """schedule() flushes the plug and charges kblockd, so the sleeping thread spends no time on it."""
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


@pytest.mark.source
def test_task_woken_for_a_request_is_a_batcher_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that was woken for a request becomes a batcher again (`RequestList.woken`).

    The pool has 8 requests and may be overdrawn to 12.  The task becomes a batcher three times:

    * with the eighth request, which fills the pool
    * after the sleep for the 13th request
    * with the 13th request, which fills the pool again
    """
    block = BlockLayer(nr_requests=8, depth=1_000, latency_ns=10**9)
    pool = block.queue.pool(False)
    told: list[int] = []
    woken = type(pool).woken

    def watched(of: Any, task: Any) -> None:
        told.append(block.env.now)
        woken(of, task)

    monkeypatch.setattr(type(pool), "woken", watched)

    def body(thread: Thread) -> Steps:
        for i in range(13):
            yield from block.submit(thread, block.bio(1_000 * i))

    block.run(body)
    assert len(told) == 3


def test_wait_of_request_counts_from_getrq() -> None:
    """A request waits in the plug until the plug is finished.

    * 0 ns: block_getrq of the first bio; a request takes 100 ns.
    * 100 ns: block_getrq of the second one; the plug is finished at 200 ns.
    * 220 ns: both are inserted, 10 ns each, and issued.
    * 7 220 ns: both complete.
    """
    block = BlockLayer(latency_ns=7_000)

    def body(thread: Thread) -> Steps:
        thread.start_plug()
        for i in range(2):
            yield from block.submit(thread, block.bio(1_000 * i))
        yield from thread.finish_plug()

    block.run(body)
    assert block.queue.stat.writes == RequestStats(ios=2, merges=0, sectors=16, wait_ns=7_220 + 7_120)
    assert block.queue.stat.reads == RequestStats()


@pytest.mark.parametrize("older_is_first", [True, False])
def test_joined_request_counts_from_the_older_getrq(older_is_first: bool) -> None:
    """Two plugs hold one request each; the second one that is inserted joins the first one in the elevator.

    * 0 ns: block_getrq of a request that keeps the driver busy from 110 ns to 7 110 ns.
    * 1 000 ns: block_getrq of the older request; 2 000 ns: of the younger one.
    * 3 000 ns and 4 000 ns: the plugs are finished.
    * 7 110 ns: the joined request is issued; 14 110 ns: it completes.
    """
    block = BlockLayer(latency_ns=7_000, depth=1, scheduler="deadline")
    waits = Waits(block._signals, block.env)

    def busy(thread: Thread) -> Steps:
        yield from block.submit(thread, block.bio(1_000))

    def plugged(begin_ns: int, end_ns: int) -> Callable[[Thread], Steps]:
        def body(thread: Thread) -> Steps:
            yield begin_ns
            thread.start_plug()
            yield from block.submit(thread, block.bio(0 if end_ns == 3_000 else 8))
            yield end_ns - block.env.now
            yield from thread.finish_plug()

        return body

    ends_ns = (3_000, 4_000) if older_is_first else (4_000, 3_000)
    block.run(busy, *map(plugged, (1_000, 2_000), ends_ns))
    assert block.queue.stat.writes == RequestStats(ios=2, merges=1, sectors=24, wait_ns=7_110 + 13_110)
    assert waits.joined_ns["sda"] == 4_010 - 2_000
    waits.check({"sda": block.queue})


def test_read_time_and_write_time_are_counted_apart() -> None:
    """A read and a write take 7.11 us each; the read counts in the read statistics only."""
    block = BlockLayer(latency_ns=7_000)

    def body(thread: Thread) -> Steps:
        for op, sectors in (("R", 16), ("W", 8)):
            bio = block.bio(1_000 * sectors, sectors)
            bio.op = op
            yield from block.submit(thread, bio)

    block.run(body)
    assert block.queue.stat.reads == RequestStats(ios=1, merges=0, sectors=16, wait_ns=7_110)
    assert block.queue.stat.writes == RequestStats(ios=1, merges=0, sectors=8, wait_ns=7_110)


@pytest.mark.parametrize(
    ("bios", "requests"),
    [
        ([[0, 160], [160, 160]], [(0, 2_560)]),  # 40 segments of four pages each, and all of 1 280 KiB
        ([[page, 1] for page in range(200)], [(0, 1_024), (1_024, 1_600)]),  # a segment each: 128 and 72
    ],
)
def test_a_large_folio_is_one_segment(bios: list[list[int]], requests: list[tuple[int, int]]) -> None:
    """A folio of four pages is one segment: a request holds at most 128 segments, or 1 280 KiB."""
    limits = LIMITS.model_copy(update={"max_sectors_bytes": 1_280 * KIB})
    block = BlockLayer(limits=limits)
    assert [block.queue.segment_pages(folio) for folio in (1, 4, 16, 512)] == [1, 4, 16, 16]
    assert [block.queue.bio_pages(pages) for pages in (1, 2, 4)] == [128, 256, 320]

    def body(thread: Thread) -> Steps:
        thread.start_plug()
        for page, pages in bios:
            bio = Bio(8 * page, 8 * pages, segments=-(-pages // 4), queue=block.queue)
            yield from block.submit(thread, bio)
        yield from thread.finish_plug()

    block.run(body)
    assert [(request.start_sector, request.end_sector) for request in block.device.requests] == requests


def test_observer_sees_how_each_bio_merges() -> None:
    """The second bio back-merges into the first request, the third front-merges, the last gets a request."""
    block, log = BlockLayer(), list[str]()

    def bio_seen(name: str, bio: Bio, task: Task) -> None:
        log.append(f"{name} {bio.start_sector} + {bio.sectors} by {task.name}")

    def unplugged(name: str, requests: list[Request], task: Task) -> None:
        log.append(f"{name} {[(r.start_sector, r.end_sector) for r in requests]} by {task.name}")

    signals = block.queue.signals
    for signal in (signals.block_getrq, signals.block_bio_backmerge, signals.block_bio_frontmerge):
        signal.observers.append(bio_seen)
    signals.block_unplug.observers.append(unplugged)

    def body(thread: Thread) -> Steps:
        thread.start_plug()
        for start in (16, 24, 8, 72):
            yield from block.submit(thread, block.bio(start))
        yield from thread.finish_plug()

    block.run(body)
    assert log == [
        "block_getrq 16 + 8 by writer",
        "block_bio_backmerge 24 + 8 by writer",
        "block_bio_frontmerge 8 + 8 by writer",
        "block_getrq 72 + 8 by writer",
        "block_unplug [(8, 32), (72, 80)] by writer",
    ]


@pytest.mark.parametrize("sleeps", [False, True])
def test_each_queue_gets_its_own_requests_of_a_plug(sleeps: bool) -> None:
    """Bios of two queues alternate; finish_plug or a sleep of the thread flushes the plug."""
    one = BlockLayer()
    other = BlockLayer(env=one.env)

    def body(thread: Thread) -> Steps:
        thread.start_plug()
        for block, start in ((one, 800), (other, 80), (one, 400), (other, 8)):
            yield from block.submit(thread, block.bio(start))
        if sleeps:
            thread.before_sleep()
        yield from thread.finish_plug()

    one.run(body)
    assert sorted(request.start_sector for request in one.device.requests) == [400, 800]
    assert sorted(request.start_sector for request in other.device.requests) == [8, 80]
    assert sorted(other.ended) == [8, 80]


def interrupted_ns(interrupts: str, drive: str, command: str) -> tuple[int, int, int]:
    """Run *command* and return three times of completion interrupts (ns).

    They are the time taken from all tasks, the time taken from the flusher, and the time of all completions.
    """
    disk = f'machine.disks.loop0 = {{ like = "{drive}", queue.interrupts = "{interrupts}" }}'
    (case,) = parse(loop_config(command, dirty_mib=8, kernel="3.11", more=disk), "x.toml").cases
    of = build(case.scenario, 1)
    of.run()
    (flusher,), (queue,) = of.flushers.threads, of.queues.values()
    interrupted_ns = sum(task.interrupted_ns for task in of.processors.tasks)
    return interrupted_ns, flusher.task.interrupted_ns, queue.stat.writes.ios * queue.complete_ns


@pytest.mark.parametrize("drive", ["sata-ssd", "pm9a3"], ids=["with an elevator", "without"])
def test_completions_interrupt_the_flusher_only_if_sent_to_the_submitter(drive: str) -> None:
    """Completion interrupts hit the processor of the submitter, or any processor that runs a program.

    * ``any`` (one queue for all processors): no interrupt hits the flusher.
    * ``submitter`` (a queue for each processor): the interrupts hit the flusher, unless it sleeps.

    The kernel is 3.11, whose flusher does not wait for conversions.
    """
    command = f"{FIO} --rw=randwrite --nrfiles=8 --filesize=4m --name=a"
    all_ns, flushers_ns, due_ns = interrupted_ns("any", drive, command)
    assert flushers_ns == 0
    assert 0.1 * due_ns < all_ns < due_ns
    all_ns, flushers_ns, due_ns = interrupted_ns("submitter", drive, command)
    assert 0.8 * due_ns < flushers_ns <= all_ns <= due_ns


@pytest.mark.parametrize(("to_submitter", "cpu"), [(True, 0), (False, ANY_CPU)])
def test_issued_request_names_the_processor_of_its_completion(to_submitter: bool, cpu: int) -> None:
    """``Request.cpu`` is the submitter's processor or any processor, from the issue of the request on."""
    block = BlockLayer(nr_requests=1_000, depth=2_000)
    block.queue._to_submitter = to_submitter
    seen: list[int] = []
    block.queue.signals.block_rq_issue.observers.append(lambda _, request: seen.append(request.cpu))

    def body(thread: Thread) -> Steps:
        thread.task.cpu = 0
        thread.start_plug()
        for start in (0, 400):
            yield from block.submit(thread, block.bio(start))
        yield from thread.finish_plug()

    block.run(body)
    assert seen == [cpu, cpu]


@pytest.mark.parametrize(("depth", "most"), [(None, 32), (24, 24)])
def test_async_depth_limits_the_writes_in_the_queue(depth: int | None, most: int) -> None:
    """mq-deadline's async_depth: of 32 requests, 24 may be writes."""
    text = loop_config(
        f"{FIO} --rw=randwrite --nrfiles=1 --filesize=8m --name=a", dirty_mib=4,
        more='machine.disks.loop0 = { like = "sata-disk", queue.nr_requests = 32, queue.wbt = false }',
    )  # fmt: skip
    elevator = 'machine.disks.loop0.queue.elevator={scheduler = "deadline", fifo_batch = 16%s}'
    limit = f", async_depth = {depth}" if depth else ""
    (case,) = parse(text, "x.toml", [elevator % limit]).cases
    of = build(case.scenario, 1)
    (queue,), found = of.queues.values(), [0]
    queue.signals.block_rq_issue.observers.append(
        lambda *_, **__: found.append(queue.pool(False).count + queue.pool(True).count)
    )
    of.run()
    assert max(found) == most


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            '{scheduler = "noop", async_depth = 9}',
            "async_depth: 9 has no effect: noop",
        ),
        (
            '{scheduler = "deadline", fifo_batch = 16, async_depth = 129}',
            "is more than nr_requests; give at most 128",
        ),
    ],
)
def test_impossible_async_depth_is_refused(given: str, message: str) -> None:
    """The error names async_depth: noop does not have it, and deadline's limit is at most nr_requests."""
    text = loop_config(f"{FIO} --rw=write --filesize=4m --name=a", dirty_mib=2)
    with pytest.raises(BadInput, match=message):
        parse(text, "x.toml", [f"machine.disks.loop0.queue.elevator={given}"])
    most = 'machine.disks.loop0.queue.elevator={scheduler = "deadline", async_depth = 128}'
    (case,) = parse(text, "x.toml", [most]).cases
    queue = case.scenario.machine.disks["loop0"].queue
    assert queue.elevator.pool_size(queue.nr_requests) == 128
    given_depth = (
        parse(text, "x.toml", [most.replace("128", "7")]).cases[0].scenario.machine.disks["loop0"].queue
    )
    assert given_depth.elevator.pool_size(given_depth.nr_requests) == 7


@pytest.mark.parametrize("scheduler", ["noop", "deadline", "cfq"])
def test_flush_passes_the_requests_that_wait(scheduler: str) -> None:
    """blk_insert_flush: with one request in the driver and three waiting, a flush is the next to leave."""
    block = BlockLayer(scheduler=scheduler, depth=1, latency_ns=MS)

    def body(thread: Thread) -> Steps:
        for start in (0, 1_000, 2_000, 3_000):
            yield from block.submit(thread, block.bio(start))
        flush = Bio(9_000, 8, op=FLUSH, queue=block.queue, sync=True, nomerge=True, meta=True)
        yield from block.submit(thread, flush)
        assert block.queue.queue_length == 4

    block.run(body)
    assert [request.start_sector for request in block.device.requests] == [0, 9_000, 1_000, 2_000, 3_000]
    assert block.queue.queue_length == 0


def test_flush_without_data_is_a_write_of_no_sectors() -> None:
    """/proc/diskstats of 6.18 counts one for each fsync(2) of a file without new metadata."""
    block = BlockLayer(latency_ns=MS)

    def body(thread: Thread) -> Steps:
        flush = Bio(9_000, 0, op=FLUSH, queue=block.queue, sync=True, nomerge=True, meta=True)
        yield from block.submit(thread, flush)

    block.run(body)
    writes = block.queue.stat.writes
    assert (writes.ios, writes.sectors, writes.wait_ns >= MS) == (1, 0, True)
