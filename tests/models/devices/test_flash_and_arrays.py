"""SSDs and arrays of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import SlowDevice
from wbsim.models.bio import Bio, Request
from wbsim.models.catalogue.devices import SATA_SSD_2013
from wbsim.models.devices.raid0 import Raid0
from wbsim.models.devices.spec import Raid0Spec, SsdSpec, WriteCacheSpec
from wbsim.models.devices.ssd import Ssd
from wbsim.models.devices.write_cache import WriteCache
from wbsim.sim.engine import Environment
from wbsim.sim.units import KIB, MIB, MS, US, S


def ssd_spec(**changes: Any) -> SsdSpec:
    """A drive with round numbers: 1 GB/s link, 10 us a command, 4 units of 4 KiB in 1 ms."""
    fields = {
        "link": 10**9, "command_time": 10 * US, "latency": 20 * US, "cache": 64 * KIB, "units": 4,
        "flash_page": 4 * KIB, "program_time": MS, "read_time": 50_000, "protected": True,
    }  # fmt: skip
    return SsdSpec(**{**fields, **changes})


def completions(device_of: Any, writes: list[tuple[int, int, str]]) -> list[int]:
    """When each of the *writes* (start, sectors, op), all submitted at 0, completes (ns)."""
    env = Environment()
    device = device_of(env)
    times = [0] * len(writes)

    def done(n: int) -> Any:
        def set_time() -> None:
            times[n] = env.now

        return set_time

    for n, (start, count, op) in enumerate(writes):
        device.submit(Request(Bio(start, count, op=op)), done(n))
    env.run()
    return times


def test_an_ssd_completes_into_its_cache() -> None:
    """Command, transfer, latency; the link serialises, the latency does not."""
    times = completions(lambda env: Ssd(env=env, spec=ssd_spec(), name="d"), [(0, 8, "W"), (800, 8, "W")])
    assert times == [10_000 + 4_096 + 20_000, 2 * (10_000 + 4_096) + 20_000]


def test_a_full_cache_drains_at_the_media_s_rate() -> None:
    """In the long run: units * flash page / program time, here 16 MiB/s."""
    writes = [(8 * i, 8, "W") for i in range(2_000)]
    times = completions(lambda env: Ssd(env=env, spec=ssd_spec(), name="d"), writes)
    drained = (2_000 - 16) * 4 * KIB  # all but what the cache still holds
    assert times[-1] == pytest.approx(drained * S / (4 * 4 * KIB * 1000), rel=0.01)


def test_a_flush_waits_for_a_volatile_cache_only() -> None:
    """FLUSH on a protected cache costs nothing; on a volatile one, the programming of what is in it."""
    writes = [(0, 8, "W"), (8, 8, "FW")]
    protected = completions(lambda env: Ssd(env=env, spec=ssd_spec(), name="d"), writes)
    volatile = completions(lambda env: Ssd(env=env, spec=ssd_spec(protected=False), name="d"), writes)
    assert protected[1] < MS < volatile[1]


def test_raid0_splits_at_chunks_and_waits_for_all_members() -> None:
    """Pieces of one member go as one request; the slowest member ends the whole."""
    env = Environment()
    members = [SlowDevice(env, 100), SlowDevice(env, 500)]
    spec = Raid0Spec(chunk=64 * KIB, members=(SATA_SSD_2013, SATA_SSD_2013))
    array = Raid0(env=env, spec=spec, name="md0", members=members)
    ended: list[int] = []
    array.submit(Request(Bio(64, 384)), lambda: ended.append(env.now))  # chunks 0 (half), 1, 2, 3 (half)
    env.run()
    assert [[r.sectors for r in member.requests] for member in members] == [[64 + 128], [128 + 64]]
    assert ended == [500]


def test_more_bandwidth_is_never_slower() -> None:
    """Metamorphic: a faster link or more units, an earlier end."""
    writes = [(8 * i, 8, "W") for i in range(300)]
    ends = [
        completions(lambda env, s=spec: Ssd(env=env, spec=s, name="d"), writes)[-1]
        for spec in (ssd_spec(units=2), ssd_spec(), ssd_spec(units=8), ssd_spec(units=8, link=4 * 10**9))
    ]
    assert ends == sorted(ends, reverse=True)


@pytest.mark.parametrize(
    ("order", "pages", "programs"),
    [
        (range(60, -1, -4), 4, 16),  # whole units
        (range(64), 1, 16),  # page by page, in order: each unit once
        (range(60, -1, -4), 1, 16),  # a page of each unit has all of it programmed
        (range(63, -1, -1), 1, 64),  # page by page, backwards: nothing goes on where the last write ended
        (range(58, -3, -4), 4, 32),  # across the edges: two units each
    ],
)
def test_an_indirection_unit_is_programmed_whole(order: range, pages: int, programs: int) -> None:
    """Units of 16 KiB: it takes as long as so many programs."""
    env = Environment()
    spec = SsdSpec.model_validate(
        {
            **SATA_SSD_2013,
            "flash_page": 16 * KIB,
            "units": 1,
            "program_time": MS,
            "read_time": 50_000,
            "indirection_unit": 16 * KIB,
            "link": 10**15,
            "command_time": 0,
            "latency": 0,
            "cache": 16 * KIB,
        }
    )
    ssd = Ssd(env=env, spec=spec, name="ssd")
    for place in order:
        ssd.submit(Request(Bio(8 * (place + 4), 8 * pages)), lambda: None)
    env.run()
    assert env.now == pytest.approx((programs - 1) * MS, abs=MS)


@pytest.mark.parametrize(
    ("unit", "page", "fits"), [(2, 4, False), (12, 16, False), (4, 4, True), (8, 16, True)]
)
def test_an_indirection_unit_divides_a_flash_page_and_is_a_page_at_least(
    unit: int, page: int, fits: bool
) -> None:
    """In KiB; each of the two conditions alone refuses it."""
    if fits:
        ssd_spec(indirection_unit=unit * KIB, flash_page=page * KIB)
        return
    with pytest.raises(ValueError, match="has to divide flash_page"):
        ssd_spec(indirection_unit=unit * KIB, flash_page=page * KIB)


def test_a_cache_s_link_is_in_use_for_all_that_passed() -> None:
    """Two writes of 4 and 8 KiB at 100 MB/s, 20 us each, while the first is under way, after both, and for
    ever.
    """
    env = Environment()
    spec = WriteCacheSpec(
        size=1 << 20, link=100_000_000, command_time=20 * US, piece=64 * KIB, depth=1,
        behind=ssd_spec(),
    )  # fmt: skip
    of = WriteCache(env=env, spec=spec, name="d", behind=SlowDevice(env, 10))  # type: ignore[arg-type]
    for start, sectors in ((0, 8), (800, 16)):
        of.submit(Request(Bio(start, sectors)), lambda: None)
    first, second = 20_000 + 40_960, 20_000 + 81_920
    assert of.uses()["link"] == 0
    for now_ns, used_ns in ((30_000, 30_000), (first, first), (S, first + second), (2 * S, first + second)):
        env.call_at(now_ns, 99, env.halt)
        env.run()
        assert (env.now, of.uses()["link"]) == (now_ns, used_ns)


def test_a_cache_tells_the_parts_of_what_is_behind_it() -> None:
    """Under a name of their own: 4 KiB at 100 MB/s and 20 us; on the drive 10 us and 4 096, and a page on one
    of its four units.
    """
    env = Environment()
    spec = WriteCacheSpec(
        size=MIB, link=100_000_000, command_time=20 * US, piece=64 * KIB, depth=1, behind=ssd_spec()
    )
    drive = Ssd(env=env, spec=ssd_spec(), name="d")
    of = WriteCache(env=env, spec=spec, name="c", behind=drive)
    of.submit(Request(Bio(0, 8)), lambda: None)
    env.call_at(S, 99, env.halt)
    env.run()
    assert of.uses() == {"link": 20_000 + 40_960, "behind link": 14_096, "behind flash": MS / 4}


def test_each_member_s_parts_are_told_by_its_number() -> None:
    """Twelve chunks of 4 KiB over three members, of which the second programs twice as long."""
    env = Environment()
    specs = [ssd_spec(program_time=MS * (1 + (number == 1))) for number in range(3)]
    members = [Ssd(env=env, spec=spec, name=str(number)) for number, spec in enumerate(specs)]
    of = Raid0(env=env, spec=Raid0Spec(chunk=4 * KIB, members=specs), name="d", members=members)
    of.submit(Request(Bio(0, 12 * 8)), lambda: None)
    env.call_at(S, 99, env.halt)
    env.run()
    link_ns = 10_000 + 4 * 4_096  # one command each
    told = {
        "0 link": link_ns,
        "0 flash": MS,
        "1 link": link_ns,
        "1 flash": 2 * MS,
        "2 link": link_ns,
        "2 flash": MS,
    }
    assert of.uses() == told


@pytest.mark.parametrize(
    ("sizes", "capacity"), [((3, 5), 6), ((5, 3, 4), 9), ((None, 4), 8), ((None, None), None), ((7,), 7)]
)
def test_an_array_holds_as_often_its_smallest_as_it_has_members(
    sizes: tuple[int | None, ...], capacity: int | None
) -> None:
    """In MiB; one whose size is not told holds anything."""
    members = [ssd_spec(size=None if size is None else size << 20) for size in sizes]
    found = Raid0Spec(chunk=4 * KIB, members=members).capacity
    assert found == (None if capacity is None else capacity << 20)


def test_an_array_has_a_member_at_least() -> None:
    """Of none there would be nothing to write to."""
    with pytest.raises(ValueError, match="at least 1 item"):
        Raid0Spec(chunk=4 * KIB, members=())


def test_units_that_are_not_equally_busy_are_in_use_for_their_mean() -> None:
    """One of two programs a page from 14 096 on, for 1 ms."""
    env = Environment()
    spec = ssd_spec(units=2, flash_page=4_096, program_time=MS, cache=1 << 20)
    of, used = Ssd(env=env, spec=spec, name="s"), list[float]()
    of.submit(Request(Bio(0, 8)), lambda: None)
    for now_ns in (500_000, 5 * MS):
        env.call_at(now_ns, 99, lambda: used.append(of.uses()["flash"]))
    env.run()
    assert used == [(500_000 - 14_096) / 2, MS / 2]


def test_flash_is_in_use_for_what_is_programmed_and_not_for_what_waits() -> None:
    """One unit: a page from 14 096 on for 1 ms, and the second behind it, for which it waits until then."""
    env = Environment()
    of, used = Ssd(env=env, spec=ssd_spec(units=1), name="s"), list[float]()
    for start in (0, 8):
        of.submit(Request(Bio(start, 8)), lambda: None)
    for now_ns in (500_000, 1_500_000, 5 * MS):
        env.call_at(now_ns, 99, lambda: used.append(of.uses()["flash"]))
    env.run()
    assert used == [500_000 - 14_096, 1_500_000 - 14_096, 2 * MS]


def test_a_page_is_programmed_until_its_end_whatever_is_on_its_way() -> None:
    """The first until 1 014 096. At 1 000 000 comes a write that is on the link until 1 075 536: at
    1 005 000 the first page has still 9 096 to go, and none of the others has begun.
    """
    env = Environment()
    of, used = Ssd(env=env, spec=ssd_spec(units=1, cache=MIB), name="s"), list[float]()
    for at_ns, sectors in ((0, 8), (MS, 128)):
        env.call_at(at_ns, 0, lambda n=sectors: of.submit(Request(Bio(0, n)), lambda: None))  # type: ignore[misc]
    env.call_at(1_005_000, 99, lambda: used.append(of.uses()["flash"]))
    env.run()
    assert used == [1_005_000 - 14_096]


def test_a_link_that_waits_for_room_in_the_cache_is_not_in_use() -> None:
    """Three pages of 16 KiB at 1 GB/s, for each of which the cache has room once the one before is
    programmed: the second waits from 32 768 to 616 384, the third from 632 768 to 1 216 384.
    """
    env = Environment()
    page = 16 * KIB
    spec = ssd_spec(link=10**9, command_time=0, units=1, flash_page=page, cache=page, program_time=600_000)
    of, used = Ssd(env=env, spec=spec, name="s"), list[tuple[int, float]]()
    for number in range(3):
        of.submit(Request(Bio(32 * number, 32)), lambda: None)
    for now_ns in (0, 20_000, 100_000, 620_000, 700_000, 2 * MS):
        env.call_at(now_ns, 99, lambda: used.append((env.now, of.uses()["link"])))
    env.run()
    assert used == [
        (0, 0), (20_000, 20_000), (100_000, 2 * page), (620_000, 2 * page + 3_616), (700_000, 3 * page),
        (2 * MS, 3 * page),
    ]  # fmt: skip
