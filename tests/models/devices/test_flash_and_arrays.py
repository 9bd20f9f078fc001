"""SSDs and arrays of them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tests.harness import SlowDevice
from wbsim.models.bio import Bio, Request
from wbsim.models.catalogue.data_files import part_in
from wbsim.models.catalogue.drives import DRIVES
from wbsim.models.devices.raid0 import Raid0
from wbsim.models.devices.spec import Raid0Spec, SsdSpec, WriteCacheSpec
from wbsim.models.devices.ssd import Ssd
from wbsim.models.devices.write_cache import WriteCache
from wbsim.models.scenario import DriveSpec
from wbsim.sim.engine import Environment
from wbsim.sim.units import KIB, MIB, MS, US, S

P13_SSD = part_in("drives", "p13-ssd")["device"]


def ssd_spec(**changes: Any) -> SsdSpec:
    """Return a drive with a link of 1 GB/s, 10 us a command, and 4 units that program 4 KiB in 1 ms."""
    fields = {
        "link": 10**9, "command_time": 10 * US, "latency": 20 * US, "cache": 64 * KIB, "units": 4,
        "flash_page": 4 * KIB, "program_time": MS, "read_time": 50_000, "protected": True,
    }  # fmt: skip
    return SsdSpec(**{**fields, **changes})


def completions(device_of: Any, writes: list[tuple[int, int, str]]) -> list[int]:
    """Submit *writes* (start, sectors, op) at 0; return their times of completion (ns)."""
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


def test_ssd_completes_a_write_when_it_is_cached() -> None:
    """A write takes command time, transfer and latency; commands and transfers of two writes serialise."""
    times = completions(lambda env: Ssd(env=env, spec=ssd_spec(), name="d"), [(0, 8, "W"), (800, 8, "W")])
    assert times == [10_000 + 4_096 + 20_000, 2 * (10_000 + 4_096) + 20_000]


def test_full_cache_drains_at_the_rate_of_the_flash() -> None:
    """The rate of many writes is units * flash page / program time, here 16 MiB/s."""
    writes = [(8 * i, 8, "W") for i in range(2_000)]
    times = completions(lambda env: Ssd(env=env, spec=ssd_spec(), name="d"), writes)
    drained = (2_000 - 16) * 4 * KIB  # all but what the cache still holds
    assert times[-1] == pytest.approx(drained * S / (4 * 4 * KIB * 1000), rel=0.01)


def test_flush_waits_only_for_a_volatile_cache() -> None:
    """FLUSH takes no time with a protected cache, and the programming of its pages with a volatile cache."""
    writes = [(0, 8, "W"), (8, 8, "FW")]
    protected = completions(lambda env: Ssd(env=env, spec=ssd_spec(), name="d"), writes)
    volatile = completions(lambda env: Ssd(env=env, spec=ssd_spec(protected=False), name="d"), writes)
    assert protected[1] < MS < volatile[1]


def test_raid0_splits_at_chunks_and_waits_for_all_members() -> None:
    """The pieces for one member become one request; the array's request ends with the slowest member."""
    env = Environment()
    members = [SlowDevice(env, 100), SlowDevice(env, 500)]
    spec = Raid0Spec(chunk=64 * KIB, members=(P13_SSD, P13_SSD))
    array = Raid0(env=env, spec=spec, name="md0", members=members)
    ended: list[int] = []
    array.submit(Request(Bio(64, 384)), lambda: ended.append(env.now))  # chunks 0 (half), 1, 2, 3 (half)
    env.run()
    assert [[r.sectors for r in member.requests] for member in members] == [[64 + 128], [128 + 64]]
    assert ended == [500]


def test_more_bandwidth_is_never_slower() -> None:
    """A faster link or more units never give a later end."""
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
        (range(60, -1, -4), 1, 16),  # a page of each unit: the complete unit is programmed
        (range(63, -1, -1), 1, 64),  # page by page, backwards: no write begins where the last one ended
        (range(58, -3, -4), 4, 32),  # across the edges: two units each
    ],
)
def test_indirection_unit_is_programmed_completely(order: range, pages: int, programs: int) -> None:
    """The writes take as long as *programs* programs of a unit of 16 KiB."""
    env = Environment()
    spec = SsdSpec.model_validate(
        {
            **P13_SSD,
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
def test_indirection_unit_divides_a_flash_page_and_has_4_kib(unit: int, page: int, fits: bool) -> None:
    """An indirection unit must divide a flash page and have at least 4 KiB; *unit* and *page* are in KiB."""
    if fits:
        ssd_spec(indirection_unit=unit * KIB, flash_page=page * KIB)
        return
    with pytest.raises(ValueError, match="B or more that divide"):
        ssd_spec(indirection_unit=unit * KIB, flash_page=page * KIB)


def test_use_of_a_cache_link_counts_a_running_write() -> None:
    """The use of a link counts a running write up to now, and does not grow after the last write.

    The writes have 4 and 8 KiB, at 100 MB/s, and take 20 us each in addition.
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


def test_uses_of_a_cache_name_the_parts_behind_it() -> None:
    """`uses` of a cache has the parts of the drive behind the cache, with the prefix "behind".

    * link: 4 KiB at 100 MB/s, and 20 us
    * link of the drive: 4 096 ns and 10 us
    * flash of the drive: a page on one of four units
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


def test_uses_of_an_array_number_the_parts_of_members() -> None:
    """`uses` of an array has the parts of each member, with the member's number.

    A write has twelve chunks of 4 KiB over three members, of which the second programs twice as long.
    """
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
def test_array_capacity_is_smallest_member_times_members(
    sizes: tuple[int | None, ...], capacity: int | None
) -> None:
    """The capacity of an array is that of its smallest member times the number of members.

    Sizes are in MiB; a member without a size has no upper bound.
    """
    members = [ssd_spec(size=None if size is None else size << 20) for size in sizes]
    found = Raid0Spec(chunk=4 * KIB, members=members).capacity
    assert found == (None if capacity is None else capacity << 20)


def test_array_without_members_is_refused() -> None:
    """An array without members is refused, because it has no device to write to."""
    with pytest.raises(ValueError, match="at least 1 item"):
        Raid0Spec(chunk=4 * KIB, members=())


def test_use_of_flash_is_the_mean_over_its_units() -> None:
    """The use of flash is the mean over its units: one of two programs a page from 14 096 to 1 014 096."""
    env = Environment()
    spec = ssd_spec(units=2, flash_page=4_096, program_time=MS, cache=1 << 20)
    of, used = Ssd(env=env, spec=spec, name="s"), list[float]()
    of.submit(Request(Bio(0, 8)), lambda: None)
    for now_ns in (500_000, 5 * MS):
        env.call_at(now_ns, 99, lambda: used.append(of.uses()["flash"]))
    env.run()
    assert used == [(500_000 - 14_096) / 2, MS / 2]


def test_use_of_flash_excludes_pages_that_wait_for_a_unit() -> None:
    """A page that waits for a unit does not count as a use of flash.

    * 14 096: the only unit programs the first page, until 1 014 096.
    * 28 192: the second page is in the cache and waits for the unit.
    * 1 014 096: the unit programs the second page, until 2 014 096.
    """
    env = Environment()
    of, used = Ssd(env=env, spec=ssd_spec(units=1), name="s"), list[float]()
    for start in (0, 8):
        of.submit(Request(Bio(start, 8)), lambda: None)
    for now_ns in (500_000, 1_500_000, 5 * MS):
        env.call_at(now_ns, 99, lambda: used.append(of.uses()["flash"]))
    env.run()
    assert used == [500_000 - 14_096, 1_500_000 - 14_096, 2 * MS]


def test_use_of_flash_excludes_writes_on_the_link() -> None:
    """A write that is on the link does not change the use of flash.

    * 14 096: the first page is programmed, until 1 014 096.
    * 1 000 000: a second write comes; it is on the link until 1 075 536.
    * 1 005 000: the use of flash counts the first page since 14 096.
    """
    env = Environment()
    of, used = Ssd(env=env, spec=ssd_spec(units=1, cache=MIB), name="s"), list[float]()
    for at_ns, sectors in ((0, 8), (MS, 128)):
        env.call_at(at_ns, 0, lambda n=sectors: of.submit(Request(Bio(0, n)), lambda: None))  # type: ignore[misc]
    env.call_at(1_005_000, 99, lambda: used.append(of.uses()["flash"]))
    env.run()
    assert used == [1_005_000 - 14_096]


def test_use_of_a_link_excludes_waits_for_cache_room() -> None:
    """The use of a link excludes the time in which a write waits for room in the cache.

    Pages have 16 KiB and take 16 384 on the link; the cache has room for one page.

    * 16 384: page 1 is in the cache; it is programmed until 616 384.
    * 32 768: page 2 waits for room, until 616 384.
    * 632 768: page 3 waits for room, until 1 216 384.
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


@pytest.mark.parametrize(
    ("drive", "members", "protected", "remedy"),
    [
        ("sata-ssd", False, False, "protected = true"), ("sata-ssd", False, True, None),
        ("virtio-ssd", False, False, "protected = true"),
        ("sata-ssd", True, False, "members.protected = true"), ("sata-ssd", True, True, None),
        ("sata-disk", False, None, 'cache = "0 B"'), ("loop", False, None, "cache = false"),
        ("pm9a3", False, True, None), ("pm9a3", False, False, "protected = true"),
    ],
)  # fmt: skip
def test_queue_and_device_agree_about_the_cache(
    drive: str, members: bool, protected: bool | None, remedy: str | None
) -> None:
    """A queue cannot contradict its device, alone and as a member of an array."""
    changes = {} if protected is None else {"protected": protected}
    device = DRIVES[drive].device.inputs() | changes
    if members:
        device = {"kind": "raid0", "chunk": 64 * KIB, "members": [device, device]}
    queue = DRIVES[drive].queue.inputs()
    inputs = {"queue": queue, "device": device}
    DriveSpec.model_validate(inputs)
    good, bad = ("write through", "write back") if remedy is None else ("write back", "write through")
    DriveSpec.model_validate(inputs | {"queue": queue | {"write_cache": good}})
    with pytest.raises(ValidationError) as error:
        DriveSpec.model_validate(inputs | {"queue": queue | {"write_cache": bad}})
    message = (
        "the device has no volatile cache, so it gets no flush; leave it out, or make the device volatile"
    )
    if remedy is not None:
        message = f"the device has a volatile cache; leave it out, or give {remedy} in the device"
    assert error.value.errors()[0]["msg"].endswith(message)


def test_drives_of_consumers_and_guests_are_volatile() -> None:
    """Disks, most SATA SSDs and drives of guests have no capacitors; drives for servers have them."""
    volatile = {name: drive.device.volatile for name, drive in DRIVES.items()}
    assert {name: volatile[name] for name in ("loop", "sata-ssd", "sata-disk", "virtio-ssd", "x25-e")} == {
        "loop": True, "sata-ssd": True, "sata-disk": True, "virtio-ssd": True, "x25-e": True,
    }  # fmt: skip
    servers = {name for name in volatile if part_in("drives", name)["family"] == "enterprise NVMe SSD"}
    assert {name for name in servers if volatile[name]} == {"983-dct-960gb"}  # it announces a volatile cache
    consumers = {name for name in volatile if part_in("drives", name)["family"] == "consumer NVMe SSD"}
    assert all(volatile[name] for name in consumers)
    assert not volatile["p13-ssd"]
