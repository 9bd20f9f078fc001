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
from wbsim.models.devices.platters import Platters
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
    """Return a drive with a cache of two flash pages of 4 KiB, and two units that program a page in 1 ms.

    The link has 1 GB/s, a command takes 10 us, and the latency is 20 us.
    """
    fields = {
        "link": 10**9, "command_time": 10 * US, "latency": 20 * US, "cache": 8 * KIB, "units": 2,
        "flash_page": 4 * KIB, "program_time": MS, "read_time": 50_000, "protected": True,
    }  # fmt: skip
    return Ssd(env=env, spec=SsdSpec.model_validate({**fields, **changes}), name="ssd")


def submit(env: Environment, device: Any, *writes: tuple[int, int, int, str]) -> list[int]:
    """Submit *writes* (at, start, sectors, op) to *device*; return their times of completion."""
    ends = [-1] * len(writes)

    def give(number: int, start: int, sectors: int, op: str) -> None:
        def done() -> None:
            assert ends[number] == -1, "a request completes only once"
            ends[number] = env.now

        device.submit(Request(Bio(start, sectors, op=op)), done)

    for number, (at_ns, start, sectors, op) in enumerate(writes):
        env.call_at(at_ns, 0, lambda write=(number, start, sectors, op): give(*write))  # type: ignore[misc]
    env.run()
    return ends


def test_ssd_write_waits_for_room_in_a_two_page_cache() -> None:
    """A write completes 20 000 ns after its page has found room in a cache of two pages.

    Each write takes 10 000 + 4 096 on the link.

    * 14 096: write 1 is in the cache; its page is programmed until 1 014 096.
    * 28 192: write 2 is in the cache; its page is programmed until 1 028 192.
    * 42 288: write 3 waits, because both pages are being programmed.
    * 1 014 096: write 3 has room; its page is programmed until 2 014 096.
    * 1 028 192: write 4 has room; its page is programmed until 2 028 192.
    * 1 042 288: write 5 waits for room until 2 014 096.
    """
    env = Environment()
    ends = submit(env, ssd(env), *((0, 8 * i, 8, "W") for i in range(5)))
    assert ends == [34_096, 48_192, 1_034_096, 1_048_192, 2_034_096]


def test_idle_ssd_takes_a_write_like_a_new_one() -> None:
    """A write to an idle drive takes as long as the first write."""
    env = Environment()
    assert submit(env, ssd(env), (0, 0, 8, "W"), (5 * MS, 8, 8, "W")) == [34_096, 5 * MS + 34_096]


def test_two_half_page_writes_fill_one_flash_page() -> None:
    """Two writes of half a page fill one flash page.

    Each write of 2 KiB takes 12 048 on the link.

    * 24 096 and 48 192: writes 2 and 4 complete the first two pages, which fill the cache.
    * 60 240: write 5 is the first half of the third page, which needs no room yet.
    * 72 288: write 6 completes the third page and waits for room.
    * 1 024 096: the first page is programmed, so write 6 has room.
    """
    env = Environment()
    ends = submit(env, ssd(env), *((0, 4 * i, 4, "W") for i in range(6)))
    assert ends == [12_048 * i + 20_000 for i in range(1, 6)] + [1_024_096 + 20_000]


def test_flush_waits_for_the_last_page_of_a_volatile_cache() -> None:
    """A flush of a volatile cache waits until 1 028 192, when the second page is programmed.

    A flush of a protected cache does not wait.  A page that is not full is programmed for the flush.
    """
    for protected, ends in ((False, 1_028_192 + 20_000), (True, 48_192)):
        env = Environment()
        assert submit(env, ssd(env, protected=protected), (0, 0, 8, "W"), (0, 8, 8, "FW"))[1] == ends
    env = Environment()
    assert submit(env, ssd(env, protected=False), (0, 0, 4, "FW")) == [12_048 + MS + 20_000]


def test_consecutive_writes_program_an_indirection_unit_once() -> None:
    """Consecutive writes in one indirection unit program it once.

    A unit has 16 KiB and is one flash page; the cache has one page.  Each write of 4 KiB takes 14 096.

    * Write 1 opens a unit.
    * Write 2 continues in this unit, so it programs no page.
    * Write 3 is elsewhere and opens a unit; it has room at 1 014 096.
    * Write 4 returns to the first unit and opens it again; it has room at 2 014 096.
    """
    env = Environment()
    device = ssd(env, flash_page=16 * KIB, cache=16 * KIB, units=1, indirection_unit=16 * KIB)
    ends = submit(env, device, (0, 0, 8, "W"), (0, 8, 8, "W"), (0, 320, 8, "W"), (0, 16, 8, "W"))
    assert ends == [34_096, 48_192, 1_034_096, 2_034_096]


def test_read_uses_the_link_but_not_the_cache() -> None:
    """A read takes 14 096 on the link and 50 000 on its plane, and needs no room in the cache.

    Read 3 waits until 64 096 for read 1, which is on the same plane, and so does the program of the write.
    The write is in the cache at 56 384, and its flush waits for the program.
    """
    env = Environment()
    device = ssd(env, protected=False)
    ends = submit(env, device, *((0, 8 * i, 8, "R") for i in range(3)), (0, 80, 8, "FW"))
    assert ends == [64_096, 78_192, 114_096, 114_096 + MS + 20_000]
    assert device.uses() == {"link": 4 * 14_096, "flash": (3 * 50_000 + MS) / 2}


def test_write_into_the_open_unit_programs_no_page() -> None:
    """A write that continues in the open unit programs no page.  A unit has 16 KiB and is one flash page.

    * Write 1 opens a unit.
    * Write 2 is in front of write 1 and opens another unit.
    * Write 3 continues where write 2 ended, in the open unit.
    * Write 4 continues where write 1 ended, but this unit is not open any more.

    So three pages are programmed.
    """
    env = Environment()
    device = ssd(env, flash_page=16 * KIB, cache=16 * KIB, units=1, indirection_unit=16 * KIB)
    env.call_at(30 * MS, 0, lambda: None)
    ends = submit(env, device, (0, 320, 8, "W"), (0, 0, 8, "W"), (10 * MS, 8, 8, "W"), (20 * MS, 328, 8, "W"))
    assert ends[2:] == [10 * MS + 34_096, 20 * MS + 34_096]
    assert device.uses()["flash"] == 3 * MS


def test_write_overtakes_a_flush_that_waits_for_flash() -> None:
    """A flush of an unprotected drive ends when all pages are programmed; a later write ends in the cache."""
    env = Environment()
    device = ssd(env, protected=False, cache=64 * KIB)
    ends = submit(env, device, (0, 0, 8, "W"), (0, 8, 8, "FW"), (0, 16, 8, "W"))
    assert ends[1] > MS
    assert (ends[0], ends[2]) == (34_096, 62_288)


def disk_spec(**changes: Any) -> DiskSpec:
    """Return the spec of a disk of a million sectors, with 200 MB/s outside and 100 MB/s inside.

    A turn takes 8 ms and a seek 1 to 10 ms.  The cache has 1 MiB and its link 1 GB/s.
    """
    fields = {
        "size": 512_000_000, "outer": 200_000_000, "inner": 100_000_000, "turn_time": 8 * MS,
        "track_seek": MS, "full_seek": 10 * MS, "cache": MIB, "segments": 16, "link": 10**9,
    }  # fmt: skip
    return DiskSpec.model_validate({**fields, **changes})


def disk(env: Environment, **changes: Any) -> Disk:
    """Return a disk of `disk_spec`."""
    return Disk(env=env, spec=disk_spec(**changes), name="sda")


def test_disk_seeks_waits_for_the_sector_and_transfers() -> None:
    """A seek grows with the square root of the distance; then the head waits until the sector passes.

    A turn takes 8 ms, and a sector 2 560 ns.

    * Sectors 0 to 1 000 pass at once, in 2 560 000.
    * The next sectors pass at once if the head is ready at once.  If it is ready 1 ms later, they come a turn
      after the first time.
    * Sector 251 000 is 25 % away: the seek takes 1 + 9 / 2 ms.  It passes 80 turns after sector 1 000, so the
      head waits for the rest of a turn.
    * Sector 252 000 passes 2.56 ms after it, which is before the head is there, and again 8 ms later.
    * Sector 254 000 passes 7.68 ms after it, in time.
    * Sector 0 comes a turn after the time at which it passed before.
    """
    platters = Platters(disk_spec(inner=200_000_000))
    assert platters.transfer(0, 1_000, 0) == 2_560_000
    assert platters.positioning_ns(1_000, 2_560_000) == 0
    assert platters.positioning_ns(1_000, 3_560_000) == 7 * MS
    assert platters.positioning_ns(251_000, 2_560_000) == 8 * MS
    assert platters.positioning_ns(252_000, 2_560_000) == 8 * MS + 2_560_000
    assert platters.positioning_ns(254_000, 2_560_000) == 7_680_000
    assert platters.positioning_ns(0, 2_560_000) == 8 * MS - 2_560_000
    assert Platters(disk_spec()).rate(640_000) == 136_000_000


@pytest.mark.source
def test_disk_sweeps_upwards_and_wraps() -> None:
    """A disk writes cached sectors in order of place from the head on, then from the lowest (C-LOOK).

    * The first write goes to the platters alone.
    * The others come before it ends and follow in a sweep, which wraps to the lowest sector.
    * The two adjacent writes go to the platters as one.

    Each write of 8 sectors takes 4 096 ns on the link to the cache.
    """
    env = Environment()
    device = disk(env)
    served: list[tuple[int, int]] = []
    transfer = device._platters.transfer

    def seen(start: int, end: int, now: int) -> int:
        served.append((start, end))
        return transfer(start, end, now)

    device._platters.transfer = seen  # type: ignore[method-assign]
    places = [500_000, 100_000, 700_000, 600_000, 100_008]
    ends = submit(env, device, *((0, place, 8, "W") for place in places))
    assert served == [(500_000, 500_008), (600_000, 600_008), (700_000, 700_008), (100_000, 100_016)]
    assert ends == [4_096 * i for i in range(1, 6)]


def test_disk_holds_as_many_writes_as_segments() -> None:
    """A cache of two segments takes a third write when the first is on the platters.

    Write 1 takes 20 480 for its 8 sectors at sector 0.  Write 3 then takes 4 096 on the link.
    """
    env = Environment()
    ends = submit(env, disk(env, segments=2), (0, 0, 8, "W"), (0, 80, 8, "W"), (0, 160, 8, "W"))
    assert ends == [4_096, 8_192, 20_480 + 4_096]


def test_flush_of_a_disk_waits_for_its_platters() -> None:
    """A flush completes when earlier writes are on the platters; a write with FUA then goes there, too.

    * 20 480: write 1, of sectors 0 to 8, is on the platters, so the flush is carried on the link (0 ns).
    * Write 3, with FUA, is at sector 8 and comes at once: it is on the platters at 40 960.
    * A write behind it is in the cache 4 096 later than write 3.
    """
    env = Environment()
    writes = [(0, 0, 8, "W"), (0, 0, 0, "F"), (0, 8, 8, "WF"), (0, 80, 8, "W")]
    assert submit(env, disk(env), *writes) == [4_096, 20_480, 40_960, 20_480 + 2 * 4_096]


def test_disk_without_a_cache_ends_a_write_on_its_platters() -> None:
    """Two writes at the head end one after the other, and a flush takes no time."""
    env = Environment()
    writes = [(0, 0, 8, "W"), (0, 8, 8, "FW"), (0, 0, 0, "FW")]
    assert submit(env, disk(env, cache=0), *writes) == [20_480, 40_960, 8_192]


def test_reads_pass_writes_and_the_soonest_comes_first() -> None:
    """While write 1 is written, two reads come; they are served before write 2, which is in the cache.

    A sector takes 2 560, a turn 8 ms, and a seek at least 1 ms.

    * 20 480: sectors 0 to 8 are written.  Sector 450 passes at 1 152 000, too soon for a seek of 1.19 ms.
      Sector 1 000 passes at 2 560 000, in time for 1.28 ms, so it is read first.
    * Sector 450 passes again 8 ms later, and sector 3 000 follows in that turn.
    """
    env = Environment()
    writes = [(0, 0, 8, "W"), (1, 3_000, 8, "W"), (2, 450, 8, "R"), (3, 1_000, 8, "R")]
    ends = submit(env, disk(env, inner=200_000_000), *writes)
    assert ends[2:] == [8 * MS + 458 * 2_560, 1_008 * 2_560]
    assert env.now == 8 * MS + 3_008 * 2_560


def test_write_to_a_full_disk_cache_waits_for_the_platters() -> None:
    """A write to a full disk cache waits until the platters have the cached sectors.

    The cache has 16 sectors, and a write has 8.

    * 0: write 1 goes to the platters; together with write 2 it fills the cache.
    * 20 480: write 1 is on the platters; write 3 enters the cache, which takes 4 096.
    * 61 440: writes 2 and 3 are on the platters; write 4 enters the cache.
    """
    env = Environment()
    device = disk(env, cache=16 * 512)
    ends = submit(env, device, *((0, 8 * i, 8, "W") for i in range(4)))
    assert ends == [4_096, 8_192, 20_480 + 4_096, 20_480 + 40_960 + 4_096]


def test_write_cache_drains_piece_by_piece() -> None:
    """A write cache drains pieces that end at multiples of 16 sectors, and takes writes while there is room.

    The cache has 64 sectors, in front of a device that takes 1 ms for a piece.  A command takes 1 000.

    * 0: write 1 (16 sectors) and write 2 (40) come in; the first piece drains.
    * 1 000 000: the first piece has drained, so write 3 (16) has room.
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


def test_write_cache_drains_depth_pieces_at_once() -> None:
    """A cache of depth 2 drains two of four pieces at 0 and two at 1 ms."""
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


def test_draining_piece_still_fills_the_write_cache() -> None:
    """A piece needs room in the cache until it has drained.

    The cache has room for 32 sectors, and both halves drain until 1 ms.  A write of 24 sectors waits for both
    pieces, because one piece leaves room for 16 sectors only.
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
    """Return a write cache with a link of 1 GB/s, whose commands take no time."""
    given = {"link": 10**9, "command_time": 0, "behind": {"kind": "null"}, **fields}
    return WriteCache(env=env, spec=WriteCacheSpec.model_validate(given), name="c", behind=behind)


def test_every_draining_piece_fills_the_write_cache() -> None:
    """Three pieces of 16 sectors drain and fill a cache of 48 sectors, so a write of 24 waits for them."""
    env = Environment()
    cache = write_cache(env, SlowDevice(env, MS), size=24 * KIB, piece=8 * KIB, depth=3)
    assert submit(env, cache, (0, 0, 48, "W"), (100_000, 500, 24, "W")) == [24_576, MS + 12_288]


def test_full_write_cache_takes_writes_in_order_of_arrival() -> None:
    """A cache with room for one of three writes takes the next write when the one before has drained."""
    env = Environment()
    cache = write_cache(env, SlowDevice(env, MS), size=8 * KIB, piece=8 * KIB, depth=1)
    ends = submit(env, cache, *((0, place, 16, "W") for place in (0, 160, 320)))
    assert ends == [8_192, MS + 8_192, 2 * MS + 8_192]


def test_write_cache_sweeps_upwards_and_wraps() -> None:
    """Writes at 320 and then 0 come while sector 160 drains; 320 drains first, although 0 is lower."""
    env = Environment()
    behind = SlowDevice(env, MS)
    cache = write_cache(env, behind, size=MIB, piece=8 * KIB, depth=1)
    submit(env, cache, (0, 160, 16, "W"), (0, 320, 16, "W"), (100_000, 0, 16, "W"))
    assert [request.start_sector for request in behind.requests] == [160, 320, 0]


def test_write_that_just_fits_into_the_cache_does_not_wait() -> None:
    """A cache for 32 sectors, of which 16 drain, takes a write of 16 sectors at once; a write of 17 waits."""
    for sectors, end_ns in ((16, 8_192 + 8_192), (17, MS + 8_704)):
        env = Environment()
        cache = write_cache(env, SlowDevice(env, MS), size=16 * KIB, piece=8 * KIB, depth=1)
        assert submit(env, cache, (0, 0, 16, "W"), (0, 160, sectors, "W")) == [8_192, end_ns]


def test_empty_cache_takes_a_write_larger_than_the_cache() -> None:
    """An empty cache takes a write that is larger than the cache.  Writes have 16 sectors.

    A write cache for 8 sectors:

    * 0: write 1 comes in and drains in two pieces of 1 ms each.
    * 2 ms: write 2 comes in.

    A disk with a cache for 8 sectors, whose platters take 40 960 for a write:

    * 40 960: write 1 is on the platters, so the cache is empty and takes write 2.
    * 81 920: write 2 is on the platters; write 3 comes in.
    """
    env = Environment()
    cache = write_cache(env, SlowDevice(env, MS), size=4 * KIB, piece=4 * KIB, depth=1)
    assert submit(env, cache, (0, 0, 16, "W"), (0, 160, 16, "W")) == [8_192, 2 * MS + 8_192]
    env = Environment()
    ends = submit(env, disk(env, cache=4 * KIB), *((0, 16 * i, 16, "W") for i in range(3)))
    assert ends == [8_192, 40_960 + 8_192, 2 * 40_960 + 8_192]


def test_completions_have_the_rank_of_the_device() -> None:
    """A completion comes before a task of the same instant that was made after the device."""
    env, order = Environment(), list[str]()
    cache = write_cache(env, SlowDevice(env, MS), size=MIB, piece=8 * KIB, depth=1)
    cache.submit(Request(Bio(0, 16)), lambda: order.append("completion"))

    def late() -> Steps:
        yield 8_192
        order.append("task")

    env.start(env.task("late"), late())
    env.run()
    assert order == ["completion", "task"]


def test_array_splits_a_request_from_the_middle_of_a_chunk() -> None:
    """A request that begins in the middle of a chunk becomes one contiguous piece for each member.

    * The array has three members and chunks of 8 sectors.
    * The request 20 to 52 begins in the middle of the third chunk, on member 2.
    * Members 2 and 0 have two chunks of it each, which are contiguous there.
    * The request ends with the slowest piece.
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


def test_null_device_takes_no_time() -> None:
    """A single request and two requests at once complete at the time of their submission."""
    env = Environment()
    device = NullDevice(env=env, spec=NullSpec(), name="nullb0")
    assert submit(env, device, (7, 0, 8, "W"), (9, 0, 8, "W"), (9, 8, 8, "W")) == [7, 9, 9]


def loop(env: Environment, task: Any) -> LoopDevice:
    """Return a loop device that takes 100 ns for a command and 10 ns for a page."""
    worker: Any = SimpleNamespace(task=task, spent=Spent())
    return LoopDevice(env=env, spec=LoopSpec(command_time=100, page_time=10), name="loop0", worker=worker)


def test_loop_worker_takes_one_command_after_another() -> None:
    """The worker takes 100 ns for each command and 10 ns for each page.

    * 0: commands of 1, 2 and 16 pages end at 110, 230 and 490.
    * 900: the worker wakes up; commands of half a page and of one page end at 1 005 and 1 115.
    """
    env = Environment()
    writes = ((0, 0, 8, "W"), (0, 800, 16, "W"), (0, 8, 128, "FW"), (900, 0, 4, "W"), (900, 8, 8, "W"))
    assert submit(env, loop(env, env.task("worker")), *writes) == [110, 230, 490, 1_005, 1_115]


def test_loop_worker_accounts_its_time_to_the_device() -> None:
    """The 110 ns of a command with one page and the 120 ns of one with two pages have the cause *device*."""
    env = Environment()
    worker: Any = SimpleNamespace(task=env.task("worker"), spent=Spent())
    spec = LoopSpec(command_time=100, page_time=10)
    device = LoopDevice(env=env, spec=spec, name="loop0", worker=worker)
    submit(env, device, (0, 0, 8, "W"), (0, 800, 16, "W"))
    assert worker.spent.device == 230


def test_loop_worker_yields_the_processor_between_commands() -> None:
    """A task that wakes during a command gets the processor after this command.

    * 0: two commands come, but another task has the only processor until 50.
    * 50: the worker runs the first command.
    * 60: a task wakes up.
    * 160: the command ends; the task runs until 190.
    * 190: the worker runs the second command until 300.
    """
    env = Environment()
    of = Processors(env, 1, SchedulerRules(1_000, ahead_ns=1_000), lambda: 0.0)

    def work(ns: int) -> Steps:
        yield ns

    for at_ns, ns in ((0, 50), (60, 30)):
        env.start(of.adopt(env.task("other")), work(ns), at_ns)
    worker = of.adopt(env.task("worker"))
    assert submit(env, loop(env, worker), (0, 0, 8, "W"), (0, 800, 8, "W")) == [160, 300]
    assert (worker.ran_ns, worker.ready_ns) == (220, 80)


def test_loop_worker_is_woken_once_for_two_commands() -> None:
    """The first of two commands at 900 wakes the worker; an event at 950 comes before its first end."""
    env, log = Environment(), []
    device = loop(env, env.task("worker"))

    def give(start: int) -> None:
        device.submit(Request(Bio(start, 8)), lambda: log.append((env.now, start)))

    for start in (0, 80):
        env.call_at(900, 0, lambda start=start: give(start))  # type: ignore[misc]
    env.call_at(950, 0, lambda: log.append((env.now, -1)))
    env.run()
    assert log == [(950, -1), (1_010, 0), (1_120, 80)]


def test_use_of_a_disk_head_counts_a_running_write() -> None:
    """The use of the head counts a running write (8 027 306 ns) up to now."""
    env = Environment()
    of, used = disk(env), list[float]()
    of.submit(Request(Bio(500_000, 8)), lambda: None)
    env.call_at(1_000_000, 99, lambda: used.append(of.uses()["head"]))
    env.run()
    assert [*used, of.uses()["head"]] == [1_000_000, 8_027_306]
