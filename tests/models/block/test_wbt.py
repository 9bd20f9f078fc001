"""Writeback throttling: the limits of writes in the queue, and the sleepers that a completion wakes."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from tests.harness import FIO, BlockLayer, loop_config, only
from wbsim.experiments.config.experiment import parse
from wbsim.models.bio import Bio
from wbsim.models.block.wbt import WritebackThrottling
from wbsim.models.interfaces import Thread
from wbsim.models.machine import Machine, build
from wbsim.sim.engine import PARK, Environment, Steps
from wbsim.sim.units import MS, S


def throttling(env: Environment, write_cache: bool = True, held_back_ns: int = -S) -> WritebackThrottling:
    """Return the throttling of a queue of 128, whose only context throttled a writer at *held_back_ns*."""
    of = WritebackThrottling(env, 128, write_cache)
    of.wbs = [SimpleNamespace(held_back_ns=held_back_ns)]  # type: ignore[list-item]
    return of


def test_wbt_limit_of_128_requests_is_24_48_or_96() -> None:
    """The limit of 128 requests depends on the kind of writeback and on recent waits of writers.

    * 24: background writeback
    * 48: other writeback
    * 96: any writeback, if a writer slept in balance_dirty_pages within the last second

    See docs/measurements.md I.
    """
    env = Environment()
    of = throttling(env)
    assert (of.room(background=True), of.room(background=False)) == (24, 48)
    of.count = 20
    assert (of.room(background=True), of.room(background=False)) == (4, 28)
    of.count = 50
    assert (of.room(background=True), of.room(background=False)) == (0, 0)
    of.wbs[0].held_back_ns = -S + 1
    assert (of.room(background=True), of.room(background=False)) == (46, 46)
    small = WritebackThrottling(env, 2, True)
    assert (small.room(background=True), small.room(background=False)) == (1, 1)


def test_wbt_limit_rises_when_any_context_throttled_a_writer() -> None:
    """The limit is 96 while the last context has a writer that slept half a second ago."""
    env = Environment()
    env.now = 2 * S
    of = throttling(env)
    of.wbs += [SimpleNamespace(held_back_ns=-S), SimpleNamespace(held_back_ns=3 * S // 2)]  # type: ignore[list-item]
    assert (of.room(background=True), of.room(background=False)) == (96, 96)
    of.wbs.pop()
    assert (of.room(background=True), of.room(background=False)) == (24, 48)


@pytest.mark.parametrize(
    ("nr_requests", "limits"), [(128, (96, 48, 24)), (31, (23, 12, 6)), (8, (6, 3, 2)), (7, (5, 3, 2))]
)
def test_wbt_limits_of_half_and_quarter_are_rounded_up(
    nr_requests: int, limits: tuple[int, int, int]
) -> None:
    """calc_wb_limits: three limits, the largest of which is 3/4 of the queue, rounded down.

    The others are a half and a quarter of the largest, rounded up.
    """
    of = WritebackThrottling(Environment(), nr_requests, True)
    assert (of.most, of.room(background=False), of.room(background=True)) == limits


@pytest.mark.parametrize(
    ("write_cache", "held_back_ns", "woken_at"),
    [(True, -S, 0), (True, 0, 36), (False, -S, 36), (False, 0, 36)],
    ids=["write back", "held back", "write through", "both"],
)
def test_wbt_wakes_sleepers_when_several_slots_are_free(
    write_cache: bool, held_back_ns: int, woken_at: int
) -> None:
    """Sleepers wake when half the background limit is free, or when the queue is empty.

    * The normal limit is 48 and the background limit 24: sleepers wake at 48 - 24 / 2 = 36 requests.
    * With a write cache and no recently throttled writer, sleepers wake at 0 requests.
    """
    env = Environment()
    of = throttling(env, write_cache, held_back_ns)
    woke: list[int] = []

    def waiter() -> Steps:
        of.waiters.append(task)
        yield PARK
        woke.append(of.count)

    task = env.task("flusher")
    env.start(task, waiter())
    of.count = 96

    def end_one() -> None:
        of.done()
        if of.count:
            env.call_at(env.now + 10, 9, end_one)

    env.call_at(10, 9, end_one)
    env.run()
    assert woke == [woken_at]


def test_writer_woken_by_wbt_checks_for_room_again() -> None:
    """A woken writer sleeps again if other writers took the free slots.

    The limit is 2 of 4 requests, and a request takes 10 us:

    * t=0: two of five writers submit; three sleep.
    * t=10 us: the queue is empty, so all three wake; two submit, and the last one sleeps again.
    * t=20 us: the last writer submits.
    """
    block = BlockLayer(nr_requests=4, pool="tags", costs=(0, 0, 0))
    block.queue.wbt = WritebackThrottling(block.env, 4, True)

    def writer(number: int) -> Callable[[Thread], Steps]:
        return lambda thread: block.submit(thread, block.bio(1_000 * number))

    block.run(*map(writer, range(5)))
    assert block.device.times == [0, 0, 10_000, 10_000, 20_000]


PAGED = f"{FIO} --rw=randwrite --nrfiles=2 --filesize=32m --name=a"


def machine(kernel: str, more: str = "") -> Machine:
    """Return a machine with random writes far below the dirty limit, and without sync(2) at the end."""
    text = loop_config(PAGED, dirty_mib=400, kernel=kernel, more=f"{more}\nsync_after = false")
    text = text.replace('background_bytes = "200 MiB"', 'background_bytes = "8 MiB"')
    (case,) = parse(text, "x.toml").cases
    return build(case.scenario, 1)


def most_in_the_queue(of: Machine) -> tuple[int, int]:
    """Run *of*; return the most requests in its queue and the time (ns) that the flusher waited for room."""
    most, rank, queue = 0, of.env.next_rank(), only(of.queues)

    def look() -> None:
        nonlocal most
        most = max(most, queue._async.count)
        if of.env.now < S:
            of.env.call_at(of.env.now + MS // 50, rank, look)

    look()
    of.run()
    (flusher,) = of.flushers.threads
    return most, flusher.task.slept_ns.get("wbt", 0)


def test_background_flusher_waits_for_wbt_room_from_4_10_on() -> None:
    """A flusher of 6.18 keeps 24 of 128 requests in the queue, and more without wbt; 4.9 has no wbt."""
    disk = 'machine.disks.loop0 = { like = "sata-disk", queue.nr_requests = 128, queue.queue_depth = 128 }'
    most, waited_ns = most_in_the_queue(machine("6.18", disk))
    assert most == 24
    assert waited_ns > 0
    off = machine("6.18", disk.replace(" }", ", queue.wbt = false }"))
    assert only(off.queues).wbt is None
    assert most_in_the_queue(off)[0] > 24
    assert only(machine("4.9").queues).wbt is None


def test_wbt_limit_of_a_scsi_disk_follows_its_queue_depth() -> None:
    """A SATA disk has nr_requests 64 and a depth of 32: the limits are 24, and 6 for background writeback."""
    disk = 'machine.disks.loop0 = { like = "sata-disk" }'
    assert most_in_the_queue(machine("6.18", disk))[0] == 6


def test_wbt_limits_of_four_requests_are_3_2_and_1() -> None:
    """The limit of 4 requests is 3 after a recent wait of a writer, 2 without, and 1 for the background."""
    env = Environment()
    of = WritebackThrottling(env, 4, True)
    assert (of.most, of.room(background=False), of.room(background=True)) == (3, 2, 1)


def test_wbt_admits_synchronous_writes_up_to_its_largest_limit() -> None:
    """get_limit: a write with REQ_SYNC may have 3 of 4 requests, in the background, too."""
    of = WritebackThrottling(Environment(), 4, True)
    assert [of.room(background, sync=True) for background in (True, False)] == [3, 3]


@pytest.mark.parametrize(
    ("sync", "meta", "counts"),
    [(False, False, True), (False, True, True), (True, False, True), (True, True, False)],
)
def test_wbt_throttles_all_buffered_writes_but_those_of_a_log(sync: bool, meta: bool, counts: bool) -> None:
    """wbt_should_throttle: only REQ_SYNC with REQ_IDLE passes, as log writes have it; fsync's data counts."""
    block = BlockLayer(era="6.17", wbt=True)

    def body(thread: Thread) -> Steps:
        yield from block.submit(thread, Bio(0, 8, queue=block.queue, sync=sync, meta=meta))
        assert block.queue.wbt is not None
        assert block.queue.wbt.count == counts

    block.run(body)
    assert block.queue.wbt is not None
    assert block.queue.wbt.count == 0
