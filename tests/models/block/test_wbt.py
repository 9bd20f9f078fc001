"""Writeback throttling: how many writes may be in the queue, who waits, and who is woken."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from tests.harness import FIO, BlockLayer, loop_config, only
from wbsim.experiments.config.experiment import parse
from wbsim.models.block.wbt import WritebackThrottling
from wbsim.models.interfaces import Thread
from wbsim.models.machine import Machine, build
from wbsim.sim.engine import PARK, Environment, Steps
from wbsim.sim.units import MS, S


def throttling(env: Environment, write_cache: bool = True, held_back_ns: int = -S) -> WritebackThrottling:
    """Of a queue of 128, whose only context held a writer back then."""
    of = WritebackThrottling(env, 128, write_cache)
    of.wbs = [SimpleNamespace(held_back_ns=held_back_ns)]  # type: ignore[list-item]
    return of


def test_how_many_writes_may_be_in_the_queue() -> None:
    """docs/measurements.md I: of 128, 96 while writers are held back, else 24 in the background and 48."""
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


def test_a_writer_that_any_context_of_the_device_held_back_counts() -> None:
    """Of several flushers, each with a context: the last one's writer slept half a second ago."""
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
def test_a_half_and_a_quarter_are_rounded_up(nr_requests: int, limits: tuple[int, int, int]) -> None:
    """calc_wb_limits: three quarters of the queue, rounded down, and of these a half and a quarter."""
    of = WritebackThrottling(Environment(), nr_requests, True)
    assert (of.most, of.room(background=False), of.room(background=True)) == limits


@pytest.mark.parametrize(
    ("write_cache", "held_back_ns", "woken_at"),
    [(True, -S, 0), (True, 0, 36), (False, -S, 36), (False, 0, 36)],
    ids=["write back", "held back", "write through", "both"],
)
def test_who_sleeps_is_woken_once_there_is_room_for_several(
    write_cache: bool, held_back_ns: int, woken_at: int
) -> None:
    """Half of the background's below the normal limit; behind a write cache, when nothing is left."""
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


def test_who_is_woken_looks_again_whether_there_is_room() -> None:
    """Of 4 requests 2 for each turn of 10 us: three of five writers sleep, all are woken when nothing is left
    behind the write cache, and the last of them sleeps again.
    """
    block = BlockLayer(nr_requests=4, pool="tags", costs=(0, 0, 0))
    block.queue.wbt = WritebackThrottling(block.env, 4, True)

    def writer(number: int) -> Callable[[Thread], Steps]:
        return lambda thread: block.submit(thread, block.bio(1_000 * number))

    block.run(*map(writer, range(5)))
    assert block.device.times == [0, 0, 10_000, 10_000, 20_000]


PAGED = f"{FIO} --rw=randwrite --nrfiles=2 --filesize=32m --name=a"


def machine(kernel: str, more: str = "") -> Machine:
    """Random writes in the background of a large limit, so that nobody is held back, and no sync(2)."""
    text = loop_config(PAGED, dirty_mib=400, kernel=kernel, more=f"{more}\nsync_after = false")
    text = text.replace('background_bytes = "200 MiB"', 'background_bytes = "8 MiB"')
    (case,) = parse(text, "x.toml").cases
    return build(case.scenario, 1)


def most_in_the_queue(of: Machine) -> tuple[int, int]:
    """And for how long the flusher waited for room (ns)."""
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


def test_a_flusher_waits_for_room_on_a_kernel_that_has_it() -> None:
    """24 of 128 in the background; a kernel from before 4.10 fills the queue, as does one without."""
    disk = 'machine.disks.loop0 = { like = "sata-disk", queue.nr_requests = 128, queue.queue_depth = 128 }'
    most, waited_ns = most_in_the_queue(machine("6.18", disk))
    assert most == 24
    assert waited_ns > 0
    off = machine("6.18", disk.replace(" }", ", queue.wbt = false }"))
    assert only(off.queues).wbt is None
    assert most_in_the_queue(off)[0] > 24
    assert only(machine("4.9").queues).wbt is None


def test_the_limit_of_a_scsi_disk_follows_its_queue_depth() -> None:
    """A SATA disk has nr_requests 64 and a depth of 32: 24 are for writes, 6 of these for the background."""
    disk = 'machine.disks.loop0 = { like = "sata-disk" }'
    assert most_in_the_queue(machine("6.18", disk))[0] == 6


def test_small_queues_have_round_limits() -> None:
    """Of 4 requests 3, and 2 for who waits for them; of 2 or fewer all."""
    env = Environment()
    of = WritebackThrottling(env, 4, True)
    assert (of.most, of.room(background=False), of.room(background=True)) == (3, 2, 1)
