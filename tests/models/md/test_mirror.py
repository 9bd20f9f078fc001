"""Arrays of RAID1 and RAID10."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness import SlowDevice
from tests.models.md.rig import CHUNK, Rig
from wbsim.models.bio import FLUSH, FLUSH_FUA, READ, Write
from wbsim.sim.engine import Environment
from wbsim.sim.units import MS, US


class Exponential:
    """A device with one request at a time, and exponential service times of mean 1 ms."""

    def __init__(self, env: Environment, number: int) -> None:
        self._env = env
        self._random = np.random.default_rng(number)
        self._rank = env.next_rank()

    def uses(self) -> dict[str, float]:
        return {}

    def submit(self, request: Write, done: Callable[[], None]) -> None:
        self._env.call_at(self._env.now + int(self._random.exponential(MS)), self._rank, done)


def test_raid1_of_exponential_members_takes_one_and_a_half() -> None:
    """One write after another: the larger of two exponential times has the mean 1.5."""
    means = []
    for members in (1, 2):
        level = "raid0" if members == 1 else "raid1"
        rig = Rig(level, members, devices=Exponential)
        for number in range(4_000):
            rig.start_at(number * 100 * MS, rig.bio(8 * number))
        rig.env.run()
        means.append(np.mean(np.array(rig.times) - 100 * MS * np.arange(4_000)))
    assert means[1] / means[0] == pytest.approx(1.5, rel=0.03)


def test_raid1_writes_every_member() -> None:
    """Each member gets the same sectors, and the bio ends with the slowest."""
    rig = Rig("raid1", 3, devices=lambda env, n: SlowDevice(env, (n + 1) * 100 * US))
    rig.run(rig.bio(80, 64))
    assert [(d.requests[0].start_sector, d.requests[0].end_sector) for d in rig.devices] == [(80, 144)] * 3
    assert rig.times == [300 * US]


def test_raid10_of_four_is_a_stripe_over_pairs() -> None:
    """Chunks go to the pairs in turn; each page is written twice."""
    rig = Rig("raid10").run_bio(0, 4 * CHUNK)
    assert rig.pages("W") == [2 * CHUNK // 8] * 4
    starts = [sorted(request.start_sector for request in device.requests) for device in rig.devices]
    assert starts[0] == starts[1]
    assert starts[2] == starts[3]


def test_missing_member_gets_nothing() -> None:
    """A degraded mirror writes what is left, and reads from it."""
    rig = Rig("raid10", faulty=[0]).run_bio(0, 4 * CHUNK)
    assert rig.pages("W") == [0, *[2 * CHUNK // 8] * 3]
    rig.run(rig.bio(0, op=READ, sync=True))
    assert rig.pages(READ) == [0, 1, 0, 0]


def test_reads_are_shared_by_the_copies() -> None:
    """Each member does one of two reads at once."""
    rig = Rig("raid1", 2)
    rig.run(rig.bio(0, op=READ, sync=True), rig.bio(800, op=READ, sync=True))
    assert rig.pages(READ) == [1, 1]


def test_writes_merge_at_the_members() -> None:
    """Sixteen plugged bios that touch each other become one request of each member."""
    rig = Rig("raid1", 2)
    rig.run(*(rig.bio(8 * number) for number in range(16)))
    assert [len(device.requests) for device in rig.devices] == [1, 1]


# -- the bitmap -------------------------------------------------------------------------------------------


def test_bitmap_comes_before_the_data() -> None:
    """All writes of a plug wait for one write of the bitmap."""
    rig = Rig("raid1", 2, bitmap=True)
    rig.run(*(rig.bio(800 * number) for number in range(5)))
    for device in rig.devices:
        assert [request.start_sector for request in device.requests] == [16, *range(0, 4_000, 800)]
        assert device.times == [0, *[100 * US] * 5]
    assert set(rig.times) == {200 * US}


def test_second_task_waits_for_the_bitmap_of_the_first() -> None:
    """A write to a region whose bit is on its way must not overtake it."""
    rig = Rig("raid1", 2, bitmap=True)
    rig.start_at(10 * US, rig.bio(800))
    rig.run(rig.bio(0))
    assert rig.times == [200 * US, 200 * US]
    assert rig.pages("W") == [3, 3]


def test_second_task_waits_for_every_member() -> None:
    """The first task has sent the bitmap to one member when the second task looks; both are waited for."""
    latencies = [10 * US, 1_000 * US]
    rig = Rig(
        "raid1", 2, bitmap=True, request_ns=50 * US, devices=lambda env, n: SlowDevice(env, latencies[n])
    )
    rig.start_at(20 * US, rig.bio(800))
    rig.run(rig.bio(0))
    slow = rig.devices[1]
    assert slow.requests[0].start_sector == 16
    for device in rig.devices:
        assert min(device.times[1:]) >= slow.times[0] + 1_000 * US


def test_set_bit_costs_nothing() -> None:
    """The next write to the region goes to the members at once."""
    rig = Rig("raid1", 2, bitmap=True)
    rig.start_at(MS, rig.bio(800))
    rig.run(rig.bio(0))
    assert rig.times == [200 * US, MS + 100 * US]


def test_bit_is_cleared_after_two_passes() -> None:
    """The daemon runs every 5 s: it clears a bit 5 to 10 s after the last write."""
    for later, waits in ((6, False), (9, False), (11, True)):
        rig = Rig("raid1", 2, bitmap=True)
        rig.start_at(later * 1000 * MS, rig.bio(800))
        rig.run(rig.bio(0))
        assert rig.times[1] - later * 1000 * MS == (200 if waits else 100) * US


def test_bit_of_a_write_in_flight_stays() -> None:
    """A write that runs while the daemon looks keeps its bit, however old the one before is."""
    rig = Rig("raid1", 2, bitmap=True, devices=lambda env, _: SlowDevice(env, 4_000 * MS))
    rig.start_at(16_000 * MS, rig.bio(800))
    rig.run(rig.bio(0))
    assert rig.times == [8_000 * MS, 20_000 * MS]
    assert rig.pages("W") == [3, 3]


def test_each_region_has_a_bit() -> None:
    """Writes to two regions set two bits, in one page: one write of it if they come together."""
    rig = Rig("raid1", 2, bitmap=True)
    rig.run(rig.bio(0), rig.bio(2_048))
    assert rig.pages("W") == [3, 3]
    rig = Rig("raid1", 2, bitmap=True)
    rig.start_at(MS, rig.bio(2_048))
    rig.run(rig.bio(2_040))  # the last page of the first region
    assert rig.times == [200 * US, MS + 200 * US]
    rig = Rig("raid1", 2, bitmap=True)
    rig.start_at(MS, rig.bio(2_056))
    rig.run(rig.bio(2_040, 16))  # two regions in one bio
    assert rig.times == [200 * US, MS + 100 * US]


# -- who submits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "bitmap", "thread"),
    [("3.5", False, True), ("3.6", False, False), ("6.4", True, False), ("6.12", False, False)],
)
def test_thread_submits_to_3_5(kernel: str, bitmap: bool, thread: bool) -> None:
    """To 3.5 the array's thread submits every write; from 3.6 on the task with a plug does."""
    rig = Rig("raid1", 2, kernel=kernel, bitmap=bitmap, request_ns=1)
    rig.run(rig.bio(0))
    assert rig.submitters() == {"raid1d" if thread else "writer"}


def test_task_without_a_plug_leaves_writes_to_the_thread() -> None:
    """The thread submits them, and from 6.5 on only if there is a bitmap."""
    for kernel, bitmap, thread in (
        ("6.4", False, "raid1d"),
        ("6.5", False, "writer"),
        ("6.5", True, "raid1d"),
    ):
        rig = Rig("raid1", 2, kernel=kernel, bitmap=bitmap, request_ns=1)
        rig.run(rig.bio(0), plugged=False)
        assert rig.submitters() == {thread}


def test_plug_is_flushed_after_32_writes() -> None:
    """From 6.5 on, 32 writes of a plug are submitted at once; before, the plug holds any number."""
    firsts = {}
    for kernel in ("6.4", "6.5"):
        rig = Rig("raid1", 2, kernel=kernel, bitmap=True)
        rig.run(*(rig.bio(80 * number) for number in range(40)), gap_ns=MS)
        firsts[kernel] = rig.devices[0].times[0]
    assert firsts == {"6.4": 40 * MS, "6.5": 31 * MS}


# -- flushes ----------------------------------------------------------------------------------------------


def ops(rig: Rig, member: int) -> list[tuple[str, int]]:
    """Return the ops of *member*, each with its time (100 us)."""
    device = rig.devices[member]
    return [
        (request.op, time // (100 * US)) for request, time in zip(device.requests, device.times, strict=True)
    ]


def test_log_write_is_flushed_before_and_behind() -> None:
    """To 6.12 data follows the flush; later, both go at once.  Without FUA a second flush ends the write."""
    for kernel, data in (("6.11", 1), ("6.13", 0)):
        rig = Rig("raid1", 2, volatile=True, kernel=kernel)
        rig.run(rig.bio(0, op=FLUSH_FUA, sync=True))
        assert ops(rig, 0) == ops(rig, 1) == [("F", 0), ("W", data), ("F", data + 1)]
        assert rig.times == [(data + 2) * 100 * US]


def test_empty_flush_goes_to_all_members() -> None:
    """A flush without data flushes both members."""
    rig = Rig("raid1", 2, volatile=True)
    rig.run(rig.bio(0, 0, op=FLUSH))
    assert ops(rig, 0) == ops(rig, 1) == [("F", 0)]


def test_flushes_in_turn_are_shared() -> None:
    """To 6.12, bios that come while a flush runs wait for the next one, which serves all of them."""
    for kernel, flushes in (("6.11", 2), ("6.13", 4)):
        rig = Rig("raid1", 2, volatile=True, kernel=kernel)
        for number in range(3):
            rig.start_at((10 + number) * US, rig.bio(0, 0, op=FLUSH, sync=True))
        rig.run(rig.bio(0, 0, op=FLUSH, sync=True))
        assert len(rig.ends) == 4
        assert len(rig.devices[0].requests) <= flushes


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["raid1", "raid10", "raid0"]), st.integers(2, 12), st.data())
def test_any_writes_end_and_add_up(level: Any, members: int, data: st.DataObject) -> None:
    """All bios end; the members got each sector as often as the level has copies."""
    bios = data.draw(st.lists(st.tuples(st.integers(0, 5_000), st.integers(1, 900)), min_size=1, max_size=6))
    kernel = data.draw(st.sampled_from(["2.6.34", "3.1", "3.11", "4.9", "5.10", "6.18"]))
    faulty = [data.draw(st.integers(0, members - 1))] if level != "raid0" and data.draw(st.booleans()) else []
    rig = Rig(level, members, kernel=kernel, faulty=faulty)
    rig.run(*(rig.bio(start, sectors) for start, sectors in bios), plugged=data.draw(st.booleans()))
    sectors = sum(request.sectors for device in rig.devices for request in device.requests)
    total = sum(sectors for _, sectors in bios)
    assert rig.array.stat.writes.sectors == total
    if not faulty:
        assert sectors == total * {"raid0": 1, "raid1": members, "raid10": 2}[level]
    else:
        assert not rig.devices[faulty[0]].requests
        assert sectors >= total
