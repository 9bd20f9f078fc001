"""Small runs of each device, worked out by hand to the ns and the sector."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.harness import SlowDevice
from wbsim.models.bio import Bio, Request
from wbsim.models.devices.disk import Disk
from wbsim.models.devices.loop import LoopDevice
from wbsim.models.devices.null import NullDevice
from wbsim.models.devices.raid0 import Raid0
from wbsim.models.devices.spec import DiskSpec, LoopSpec, NullSpec, Raid0Spec, SsdSpec, WriteCacheSpec
from wbsim.models.devices.ssd import Ssd
from wbsim.models.devices.write_cache import WriteCache
from wbsim.models.scheduler.cpu import Processors
from wbsim.models.scheduler.runqueue import SchedulerRules
from wbsim.models.time_accounting import Spent
from wbsim.sim.engine import Environment, Steps
from wbsim.sim.units import KIB, MIB, MS, US


def ssd(env: Environment, **changes: Any) -> Ssd:
    """Link 1 GB/s, 10 us a command, 20 us latency; a cache of two flash pages of 4 KiB, two planes, 1 ms."""
    fields = {
        "link": 10**9, "command_time": 10 * US, "latency": 20 * US, "cache": 8 * KIB, "units": 2,
        "flash_page": 4 * KIB, "program_time": MS, "read_time": 50_000, "protected": True,
    }  # fmt: skip
    return Ssd(env=env, spec=SsdSpec.model_validate({**fields, **changes}), name="ssd")


def submit(env: Environment, device: Any, *writes: tuple[int, int, int, str]) -> list[int]:
    """When each of the writes (at, start, sectors, op) completes."""
    ends = [-1] * len(writes)

    def give(number: int, start: int, sectors: int, op: str) -> None:
        def done() -> None:
            assert ends[number] == -1, "it completes once"
            ends[number] = env.now

        device.submit(Request(Bio(start, sectors, op=op)), done)

    for number, (at_ns, start, sectors, op) in enumerate(writes):
        env.call_at(at_ns, 0, lambda write=(number, start, sectors, op): give(*write))  # type: ignore[misc]
    env.run()
    return ends


def test_an_ssd_page_by_page() -> None:
    """Each write takes 10 000 + 4 096 on the link. The third finds both pages of the cache being programmed,
    the first until 1 014 096; the fourth follows on the link, when the second page has just been programmed;
    the fifth waits for the third page, until 2 014 096.
    """
    env = Environment()
    ends = submit(env, ssd(env), *((0, 8 * i, 8, "W") for i in range(5)))
    assert ends == [34_096, 48_192, 1_034_096, 1_048_192, 2_034_096]


def test_an_ssd_that_was_idle_begins_anew() -> None:
    """The second write comes after everything was programmed."""
    env = Environment()
    assert submit(env, ssd(env), (0, 0, 8, "W"), (5 * MS, 8, 8, "W")) == [34_096, 5 * MS + 34_096]


def test_half_pages_share_one() -> None:
    """Writes of 2 KiB take 12 048 each; the fifth completes the third page's first half only, the sixth needs
    room for that page at 72 288, and has it at 1 024 096, when the first page is programmed.
    """
    env = Environment()
    ends = submit(env, ssd(env), *((0, 4 * i, 4, "W") for i in range(6)))
    assert ends == [12_048 * i + 20_000 for i in range(1, 6)] + [1_024_096 + 20_000]


def test_a_flush_waits_for_the_last_page_of_a_volatile_cache() -> None:
    """The second page is programmed at 1 028 192; a protected cache needs no programming, and an idle drive
    nothing.
    """
    for protected, ends in ((False, 1_028_192 + 20_000), (True, 48_192)):
        env = Environment()
        assert submit(env, ssd(env, protected=protected), (0, 0, 8, "W"), (0, 8, 8, "FW"))[1] == ends
    env = Environment()
    assert submit(env, ssd(env, protected=False), (0, 0, 4, "FW")) == [12_048 + 20_000]


def test_an_indirection_unit_counts_once_where_a_write_goes_on_in_it() -> None:
    """Units of 16 KiB, one flash page: the second write of 4 KiB goes on in the unit, the third
    elsewhere opens one, and coming back opens another: three pages for a cache of one.
    """
    env = Environment()
    device = ssd(env, flash_page=16 * KIB, cache=16 * KIB, units=1, indirection_unit=16 * KIB)
    ends = submit(env, device, (0, 0, 8, "W"), (0, 8, 8, "W"), (0, 320, 8, "W"), (0, 16, 8, "W"))
    assert ends == [34_096, 48_192, 1_034_096, 2_034_096]


def test_a_read_takes_the_link_and_its_own_time_and_fills_no_cache() -> None:
    """14 096 each on the link, and 50 000 from there to the data. Nothing of three pages is programmed: the
    cache of two takes the write behind them at once, and its flush waits for that write's page alone.
    """
    env = Environment()
    device = ssd(env, protected=False)
    ends = submit(env, device, *((0, 8 * i, 8, "R") for i in range(3)), (0, 80, 8, "FW"))
    assert ends == [64_096, 78_192, 92_288, 56_384 + MS + 20_000]
    assert device.uses() == {"link": 4 * 14_096, "flash": MS / 2}


def test_a_write_into_an_open_unit_costs_no_page() -> None:
    """Units of 16 KiB: the second write lies in front of the first, and the third goes on in its unit.

    The fourth goes on where the first ended, but another unit is open by then: three pages are programmed.
    """
    env = Environment()
    device = ssd(env, flash_page=16 * KIB, cache=16 * KIB, units=1, indirection_unit=16 * KIB)
    env.call_at(30 * MS, 0, lambda: None)
    ends = submit(env, device, (0, 320, 8, "W"), (0, 0, 8, "W"), (10 * MS, 8, 8, "W"), (20 * MS, 328, 8, "W"))
    assert ends[2:] == [10 * MS + 34_096, 20 * MS + 34_096]
    assert device.uses()["flash"] == 3 * MS


def test_writes_overtake_a_flush_that_waits_for_flash() -> None:
    """Without protection a flush ends when all is programmed; the write behind it ends in the cache."""
    env = Environment()
    device = ssd(env, protected=False, cache=64 * KIB)
    ends = submit(env, device, (0, 0, 8, "W"), (0, 8, 8, "FW"), (0, 16, 8, "W"))
    assert ends[1] > MS
    assert (ends[0], ends[2]) == (34_096, 62_288)


def disk(env: Environment, **changes: Any) -> Disk:
    """A million sectors; 200 to 100 MB/s; half a turn 4 ms, seeks 1 to 10 ms; a cache of 1 MiB at 1 GB/s."""
    fields = {
        "size": 512_000_000, "outer": 200_000_000, "inner": 100_000_000, "turn_time": 8 * MS,
        "track_seek": MS, "full_seek": 10 * MS, "cache": MIB, "link": 10**9,
    }  # fmt: skip
    return Disk(env=env, spec=DiskSpec.model_validate({**fields, **changes}), name="sda")


def test_a_disk_s_service_over_its_whole_curve() -> None:
    """From 0: a quarter of the disk is half of the seek's growth, at 175 MB/s; 64 % are 80 %, at 136 MB/s;
    back from there to the beginning the same seek, at 200 MB/s; where the head is, the transfer alone.
    """
    device = disk(Environment())
    assert device.service_ns(0, 1_000) == 2_560_000
    assert device.service_ns(250_000, 251_000) == 4 * MS + MS + 4_500_000 + 512_000 * 10**9 // 175_000_000
    assert device.service_ns(640_000, 641_000) == 4 * MS + MS + 7_200_000 + 512_000 * 10**9 // 136_000_000
    device._head = 640_000
    assert device.service_ns(0, 1_000) == 4 * MS + MS + 7_200_000 + 2_560_000
    assert device.service_ns(640_000, 640_001) == 512 * 10**9 // 136_000_000


@pytest.mark.source
def test_a_disk_sweeps_upwards_and_begins_anew() -> None:
    """The first goes alone; what came meanwhile follows in the order of place from the head on, then from the
    lowest; adjacent writes go as one. In the cache, each takes 512 ns a sector on the link.
    """
    env = Environment()
    device = disk(env)
    served: list[tuple[int, int]] = []
    service_ns = device.service_ns

    def seen(start: int, end: int) -> int:
        served.append((start, end))
        return service_ns(start, end)

    device.service_ns = seen  # type: ignore[method-assign]
    places = [500_000, 100_000, 700_000, 600_000, 100_008]
    ends = submit(env, device, *((0, place, 8, "W") for place in places))
    assert served == [(500_000, 500_008), (600_000, 600_008), (700_000, 700_008), (100_000, 100_016)]
    assert ends == [4_096 * i for i in range(1, 6)]


def test_a_full_disk_cache_waits_for_the_platters() -> None:
    """A cache of 16 sectors: the first write leaves it at once for the platters, the next two fill it. The
    fourth waits until these are on the platters, too.
    """
    env = Environment()
    device = disk(env, cache=16 * 512)
    ends = submit(env, device, *((0, 8 * i, 8, "W") for i in range(4)))
    assert ends == [4_096, 8_192, 12_288, 20_480 + 40_960 + 4_096]


def test_a_write_cache_piece_by_piece() -> None:
    """32 KiB in front of a device of 1 ms, a piece of 16 sectors at a time; a command takes 1 000. The third
    write has no room before the first piece has drained. Pieces end at multiples of 16.
    """
    env = Environment()
    behind = SlowDevice(env, MS)
    spec = WriteCacheSpec.model_validate(
        {"size": 32 * KIB, "link": 10**9, "command_time": 1_000, "piece": 8 * KIB, "depth": 1,
         "behind": {"kind": "null"}}
    )  # fmt: skip
    cache = WriteCache(env=env, spec=spec, name="c", behind=behind)
    ends = submit(env, cache, (0, 0, 16, "W"), (0, 100, 40, "W"), (0, 200, 16, "W"))
    assert ends == [9_192, 30_672, 1_009_192]
    pieces = [(request.start_sector, request.end_sector) for request in behind.requests]
    assert pieces == [(0, 16), (100, 112), (112, 128), (128, 140), (200, 208), (208, 216)]
    assert env.now == 6 * MS


def test_a_write_cache_drains_several_at_once() -> None:
    """Depth 2: two of four pieces at 0, two at 1 ms."""
    env = Environment()
    behind = SlowDevice(env, MS)
    spec = WriteCacheSpec.model_validate(
        {
            "size": MIB,
            "link": 10**9,
            "command_time": 0,
            "piece": 8 * KIB,
            "depth": 2,
            "behind": {"kind": "null"},
        }
    )
    submit(env, WriteCache(env=env, spec=spec, name="c", behind=behind), (0, 0, 64, "W"))
    assert [request.start_sector for request in behind.requests] == [0, 16, 32, 48]
    assert env.now == 2 * MS


def test_what_drains_still_fills_a_write_cache() -> None:
    """Room for 32 sectors, both halves draining at once: the next write waits until both pieces are behind it
    at 1 ms, as one of 24 needs more than one of them leaves.
    """
    env = Environment()
    behind = SlowDevice(env, MS)
    fields = {
        "size": 16 * KIB, "link": 10**9, "command_time": 0, "piece": 8 * KIB, "depth": 2,
        "behind": {"kind": "null"},
    }  # fmt: skip
    cache = WriteCache(env=env, spec=WriteCacheSpec.model_validate(fields), name="c", behind=behind)
    assert submit(env, cache, (0, 0, 32, "W"), (100_000, 500, 24, "W")) == [16_384, MS + 12_288]


def write_cache(env: Environment, behind: SlowDevice, **fields: Any) -> WriteCache:
    """Commands take no time, the link is 1 GB/s."""
    given = {"link": 10**9, "command_time": 0, "behind": {"kind": "null"}, **fields}
    return WriteCache(env=env, spec=WriteCacheSpec.model_validate(given), name="c", behind=behind)


def test_all_that_drains_fills_a_write_cache() -> None:
    """Room for 48 sectors, three pieces of 16 draining: a write of 24 more has to wait for them."""
    env = Environment()
    cache = write_cache(env, SlowDevice(env, MS), size=24 * KIB, piece=8 * KIB, depth=3)
    assert submit(env, cache, (0, 0, 48, "W"), (100_000, 500, 24, "W")) == [24_576, MS + 12_288]


def test_a_full_write_cache_takes_who_came_first() -> None:
    """Room for one of three writes; each of the others comes in when what was there has drained."""
    env = Environment()
    cache = write_cache(env, SlowDevice(env, MS), size=8 * KIB, piece=8 * KIB, depth=1)
    ends = submit(env, cache, *((0, place, 16, "W") for place in (0, 160, 320)))
    assert ends == [8_192, MS + 8_192, 2 * MS + 8_192]


def test_a_write_cache_sweeps_upwards_and_begins_anew() -> None:
    """While sectors 160 to 176 drain, 320 and then 0 come: the sweep goes on to 320, though 0 is lower."""
    env = Environment()
    behind = SlowDevice(env, MS)
    cache = write_cache(env, behind, size=MIB, piece=8 * KIB, depth=1)
    submit(env, cache, (0, 160, 16, "W"), (0, 320, 16, "W"), (100_000, 0, 16, "W"))
    assert [request.start_sector for request in behind.requests] == [160, 320, 0]


def test_a_write_that_just_fits_into_a_write_cache_does_not_wait() -> None:
    """Room for 32 sectors, of which 16 are draining: 16 more come in at once, one sector more has to wait."""
    for sectors, end_ns in ((16, 8_192 + 8_192), (17, MS + 8_704)):
        env = Environment()
        cache = write_cache(env, SlowDevice(env, MS), size=16 * KIB, piece=8 * KIB, depth=1)
        assert submit(env, cache, (0, 0, 16, "W"), (0, 160, sectors, "W")) == [8_192, end_ns]


def test_an_empty_cache_takes_what_is_larger_than_it() -> None:
    """Room for 8 sectors, writes of 16: the first comes in at once, the second when the first has drained,
    in two pieces of 1 ms each behind a write cache. From a disk's, the platters take all of it at once, each
    in 40 960: the second has the empty cache then, and the third once that is on the platters, too.
    """
    env = Environment()
    cache = write_cache(env, SlowDevice(env, MS), size=4 * KIB, piece=4 * KIB, depth=1)
    assert submit(env, cache, (0, 0, 16, "W"), (0, 160, 16, "W")) == [8_192, 2 * MS + 8_192]
    for cached in (0, 4 * KIB):
        env = Environment()
        ends = submit(env, disk(env, cache=cached), *((0, 16 * i, 16, "W") for i in range(3)))
        assert ends == [8_192, 16_384, 2 * 40_960 + 8_192]


def test_a_device_s_completions_have_its_rank() -> None:
    """At one instant, they come before a task that was made after the device."""
    env, order = Environment(), list[str]()
    cache = write_cache(env, SlowDevice(env, MS), size=MIB, piece=8 * KIB, depth=1)
    cache.submit(Request(Bio(0, 16)), lambda: order.append("completion"))

    def late() -> Steps:
        yield 8_192
        order.append("task")

    env.start(env.task("late"), late())
    env.run()
    assert order == ["completion", "task"]


def test_an_array_splits_from_the_middle_of_a_chunk() -> None:
    """Three members, chunks of 8 sectors: 20 to 52 begins in the middle of the third chunk, and has pieces
    of one place each on members 2 and 0. It is done with the slowest.
    """
    env = Environment()
    members = [SlowDevice(env, ns) for ns in (30, 50, 40)]
    raid = Raid0(
        env=env,
        spec=Raid0Spec.model_validate({"chunk": 4 * KIB, "members": [{"kind": "null"}]}),
        name="md0",
        members=members,
    )
    assert submit(env, raid, (0, 20, 32, "FW"), (100, 48, 2, "W")) == [50, 130]
    given = [[(r.start_sector, r.end_sector, r.op) for r in member.requests] for member in members]
    assert given == [[(8, 20, "FW"), (16, 18, "W")], [(8, 16, "FW")], [(4, 16, "FW")]]


def test_the_null_device_takes_no_time() -> None:
    """One request alone, and two at once."""
    env = Environment()
    device = NullDevice(env=env, spec=NullSpec(), name="nullb0")
    assert submit(env, device, (7, 0, 8, "W"), (9, 0, 8, "W"), (9, 8, 8, "W")) == [7, 9, 9]


def loop(env: Environment, task: Any) -> LoopDevice:
    """A command takes 100 ns, a page 10."""
    worker: Any = SimpleNamespace(task=task, spent=Spent())
    return LoopDevice(env=env, spec=LoopSpec(command_time=100, page_time=10), name="loop0", worker=worker)


def test_a_loop_device_s_worker_takes_command_after_command() -> None:
    """Three at 0, of 1, 2 and 16 pages, and two after its sleep, of half a page and of one."""
    env = Environment()
    writes = ((0, 0, 8, "W"), (0, 800, 16, "W"), (0, 8, 128, "FW"), (900, 0, 4, "W"), (900, 8, 8, "W"))
    assert submit(env, loop(env, env.task("worker")), *writes) == [110, 230, 490, 1_005, 1_115]


def test_what_a_loop_device_s_worker_does_is_the_device_s() -> None:
    """100 and 10 for a page, 100 and 20 for two: of its life, none is left without a cause."""
    env = Environment()
    worker: Any = SimpleNamespace(task=env.task("worker"), spent=Spent())
    spec = LoopSpec(command_time=100, page_time=10)
    device = LoopDevice(env=env, spec=spec, name="loop0", worker=worker)
    submit(env, device, (0, 0, 8, "W"), (0, 800, 16, "W"))
    assert worker.spent.device == 230


def test_a_loop_device_s_worker_needs_a_processor_and_gives_way_between_commands() -> None:
    """The only one is taken until 50; who wakes at 60 has it after the first command, for 30."""
    env = Environment()
    of = Processors(env, 1, SchedulerRules(1_000, ahead_ns=1_000), lambda: 0.0)

    def work(ns: int) -> Steps:
        yield ns

    for at_ns, ns in ((0, 50), (60, 30)):
        env.start(of.adopt(env.task("other")), work(ns), at_ns)
    worker = of.adopt(env.task("worker"))
    assert submit(env, loop(env, worker), (0, 0, 8, "W"), (0, 800, 8, "W")) == [160, 300]
    assert (worker.ran_ns, worker.ready_ns) == (220, 80)


def test_a_loop_device_s_worker_is_woken_once() -> None:
    """By the first of two that come while it sleeps; what else comes at 950 comes before it is through."""
    env, log = Environment(), []
    device = loop(env, env.task("worker"))

    def give(start: int) -> None:
        device.submit(Request(Bio(start, 8)), lambda: log.append((env.now, start)))

    for start in (0, 80):
        env.call_at(900, 0, lambda start=start: give(start))  # type: ignore[misc]
    env.call_at(950, 0, lambda: log.append((env.now, -1)))
    env.run()
    assert log == [(950, -1), (1_010, 0), (1_120, 80)]


def test_a_disk_s_head_is_in_use_for_all_that_passed() -> None:
    """Asked in the middle of a write that takes 11 391 267 ns, and after it."""
    env = Environment()
    of, used = disk(env), list[float]()
    of.submit(Request(Bio(500_000, 8)), lambda: None)
    env.call_at(1_000_000, 99, lambda: used.append(of.uses()["head"]))
    env.run()
    assert [*used, of.uses()["head"]] == [1_000_000, 11_391_267]
