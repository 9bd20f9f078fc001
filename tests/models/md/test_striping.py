"""Arrays of RAID0."""

from __future__ import annotations

from tests.models.md.rig import CHUNK, Rig
from wbsim.models.bio import FLUSH_FUA, READ, Bio
from wbsim.sim.units import US


def test_raid0_of_one_member_is_that_member() -> None:
    """The requests of the member and their times are those of the same bios without the array."""
    rig, plain = Rig("raid0", 1), Rig("raid0", 1)
    places = [(0, 64), (64, 64), (1_000, 8), (900, 100), (4_000, CHUNK)]
    rig.run(*(rig.bio(start, sectors) for start, sectors in places))
    plain.run(*(Bio(start, sectors, queue=plain.queues[0]) for start, sectors in places), counts=False)
    (device,), (other,) = rig.devices, plain.devices
    assert [(r.start_sector, r.end_sector) for r in device.requests] == [
        (r.start_sector, r.end_sector) for r in other.requests
    ]
    assert device.times == other.times


def test_bio_is_split_at_chunks() -> None:
    """Three chunks and a half from the middle of one on: five parts, joined where they touch on a member."""
    rig = Rig("raid0", 2).run_bio(CHUNK // 2, 3 * CHUNK + CHUNK // 2)
    assert rig.pages("W") == [(CHUNK + CHUNK // 2) // 8, 2 * CHUNK // 8]
    assert rig.times == [100 * US]
    assert [len(device.requests) for device in rig.devices] == [1, 1]


def test_flush_and_data_reach_members() -> None:
    """All members are flushed, and the one with the data writes it with FUA."""
    rig = Rig("raid0", 3, volatile=True, kernel="6.11")
    rig.run(rig.bio(0, op=FLUSH_FUA, sync=True))
    assert [len(device.requests) for device in rig.devices] == [3, 1, 1]


def test_array_counts_its_bios() -> None:
    """The counters of the array have bios, sectors and waits, by direction."""
    rig = Rig("raid0", 2)
    rig.run(rig.bio(0, 2 * CHUNK), rig.bio(0, op=READ, sync=True))
    stat = rig.array.stat
    assert (stat.writes.ios, stat.writes.sectors, stat.writes.wait_ns) == (1, 2 * CHUNK, 100 * US)
    assert (stat.reads.ios, stat.reads.sectors, stat.reads.wait_ns) == (1, 8, 100 * US)
    assert stat.in_flight == 0
    assert rig.array.busy_ns == 100 * US


def test_limits_are_the_smallest_of_the_members() -> None:
    """The largest bio of RAID0 is a chunk (max_hw_sectors); other levels have the limits of the members."""
    assert Rig("raid0", 2).array.bio_pages(128) == CHUNK // 8
    assert Rig("raid1", 2).array.bio_pages(128) == 128
    assert Rig("raid5", 4, kernel="6.12").array.bio_pages(128) == 128
