"""Arrays of RAID5 and RAID6: what they read and write, and when a write is safe."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness import SlowDevice
from tests.models.md.rig import CHUNK, FREE, Rig
from wbsim.models.bio import FLUSH, FLUSH_FUA, FUA, READ
from wbsim.sim.engine import Environment
from wbsim.sim.units import US

LEVELS = {"raid5": 1, "raid6": 2}


def device_of(latencies: list[int], env: Environment, number: int) -> SlowDevice:
    """Return member *number*, whose latency *latencies* has."""
    return SlowDevice(env, latencies[number])


def start_of(stripe: int, number: int, rig: Rig) -> int:
    """Return the first sector of data page *number* of *stripe*, counted by hand."""
    row, offset = divmod(stripe, CHUNK // 8)
    data = len(rig.devices) - rig.spec.parities
    return (row * data + number) * CHUNK + offset * 8


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("members", range(3, 13))
def test_each_number_of_pages_costs_what_the_rule_says(level: str, members: int) -> None:
    """A write of w of d data pages reads min(w + p, d - w) pages, and writes w + p."""
    parities = LEVELS[level]
    data = members - parities
    if data < 2:
        return
    for pages in range(1, data + 1):
        rig = Rig(level, members)
        rig.run(*(rig.bio(start_of(5, number, rig)) for number in range(pages)))
        assert sum(rig.pages("W")) == pages + parities
        assert sum(rig.pages(READ)) == min(pages + parities, data - pages)


def test_complete_stripes_are_written_without_a_read() -> None:
    """A bio of two rows of RAID5 over four members: each member gets two chunks, in large requests."""
    rig = Rig("raid5")
    rig.run(rig.bio(0, 6 * CHUNK))
    assert rig.pages(READ) == [0, 0, 0, 0]
    assert rig.pages("W") == [2 * CHUNK // 8] * 4


def test_write_ends_with_its_slowest_page() -> None:
    """A write is complete when data and parity are on the members: no earlier than the slowest of them."""
    slow = 900 * US
    for member, end in ((0, 2 * slow), (5, 2 * slow), (3, 200 * US)):  # data, parity, and neither
        latencies = [slow if number == member else 100 * US for number in range(6)]
        rig = Rig("raid5", 6, devices=partial(device_of, latencies))
        assert rig.run_one(0).times == [end]


def test_visit_between_data_and_parity_ends_no_write() -> None:
    """Another write to the stripe lets it be visited while the parity of the first is on its way."""
    latencies = [100 * US, 100 * US, 100 * US, 900 * US]
    rig = Rig("raid5", devices=partial(device_of, latencies))
    rig.start_at(350 * US, rig.bio(start_of(0, 1, rig), sync=True))
    rig.run(rig.bio(start_of(0, 0, rig)))
    assert rig.times[0] == 1_000 * US  # the other data is read, and then the parity is written


def test_second_write_to_a_stripe_needs_no_read() -> None:
    """The pages of an inactive stripe stay in the cache."""
    rig = Rig("raid5")
    rig.run(rig.bio(0))
    reads = sum(rig.pages(READ))
    rig.run(rig.bio(0))
    assert sum(rig.pages(READ)) == reads == 2


def test_delayed_stripe_waits_for_the_reads_of_others() -> None:
    """A second stripe that must read waits until the first has read, and may become complete meanwhile."""
    rig = Rig("raid5")
    for number in range(3):
        rig.start_at((10 + number) * US, rig.bio(start_of(1, number, rig)))
    rig.run(rig.bio(start_of(0, 0, rig)))
    assert sorted(rig.ends) == sorted([0, *(start_of(1, number, rig) for number in range(3))])
    assert sum(rig.pages(READ)) == 2  # those of the first stripe; the second became complete


def test_synchronous_write_is_not_delayed() -> None:
    """A stripe with REQ_SYNC reads at once; the other one reads when it has."""
    rig = Rig("raid5")
    usual, urgent = start_of(0, 0, rig), start_of(1, 0, rig)
    rig.run(rig.bio(usual), rig.bio(urgent, sync=True))
    assert (rig.ends, rig.times) == ([urgent, usual], [200 * US, 300 * US])
    rig = Rig("raid5")
    rig.run(rig.bio(usual, sync=True), rig.bio(urgent, sync=True))
    assert rig.times == [200 * US, 200 * US]


def test_task_waits_for_a_stripe() -> None:
    """A cache of 17 stripes takes 17 single pages; the writer sleeps until a quarter of them is free."""
    rig = Rig("raid5", stripe_cache_size=17, kernel="3.11")
    rig.run(*(rig.bio(start_of(stripe, 0, rig)) for stripe in range(40)))
    assert len(set(rig.times)) > 1
    assert sum(rig.pages("W")) == 80
    large = Rig("raid5", stripe_cache_size=64, kernel="3.11")
    large.run(*(large.bio(start_of(stripe, 0, large)) for stripe in range(40)))
    assert max(large.times) < max(rig.times)


def test_stripe_cache_grows_from_4_1_on() -> None:
    """A task that waited for a stripe makes the cache grow by a stripe, in kernels that let it grow."""
    sizes = {}
    for kernel in ("3.19", "4.1"):
        rig = Rig("raid5", stripe_cache_size=17, kernel=kernel)
        rig.run(*(rig.bio(start_of(stripe, 0, rig)) for stripe in range(60)))
        sizes[kernel] = rig.array.stripe_cache_size  # type: ignore[attr-defined]
    assert sizes["3.19"] == 17 < sizes["4.1"]


def test_plug_gathers_pages_of_a_stripe() -> None:
    """Three bios in a plug make one complete stripe; without it, the first one starts alone."""
    bios = [start_of(3, number, Rig("raid5")) for number in range(3)]
    rig = Rig("raid5")
    rig.run(*map(rig.bio, bios))
    assert sum(rig.pages(READ)) == 0
    rig = Rig("raid5")
    rig.run(*(rig.bio(start, sync=True) for start in bios), plugged=False, gap_ns=5 * US)
    assert sum(rig.pages(READ)) > 0


def test_plug_of_stripes_begins_with_3_6() -> None:
    """To 3.5 a stripe goes to the thread at once, even in a plug; if it is not synchronous, it is delayed."""
    for sync, kernel, expected in ((True, "3.5", 2), (True, "3.6", 0), (False, "3.5", 0), (False, "3.6", 0)):
        rig = Rig("raid5", kernel=kernel)
        rig.run(*(rig.bio(start_of(3, number, rig), sync=sync) for number in range(3)), gap_ns=5 * US)
        assert sum(rig.pages(READ)) == expected
    rig = Rig("raid5", kernel="3.5")
    rig.run(*(rig.bio(start_of(3, number, rig)) for number in range(3)), plugged=False, gap_ns=5 * US)
    assert sum(rig.pages(READ)) == 2


def test_raid6_knows_read_modify_write_from_4_1_on() -> None:
    """One page of a RAID6 of ten members: seven reads to 4.0, and three from 4.1 on."""
    reads = {}
    for kernel in ("4.0", "4.1"):
        rig = Rig("raid6", 10, kernel=kernel)
        reads[kernel] = sum(rig.run(rig.bio(0)).pages(READ))
    assert reads == {"4.0": 7, "4.1": 3}


def test_page_in_part_is_read_first() -> None:
    """A bio of 1 KiB reads its own page, and then the parity or the rest."""
    rig = Rig("raid5")
    rig.run(rig.bio(2, 2))
    assert sum(rig.pages(READ)) == 2  # its page and the parity
    assert sum(rig.pages("W")) == 2


def test_two_halves_make_a_complete_page() -> None:
    """Two bios that cover a page together are as good as one."""
    rig = Rig("raid5", 3)
    rig.run(rig.bio(0, 4), rig.bio(4, 4), rig.bio(start_of(0, 1, rig)))
    assert sum(rig.pages(READ)) == 0


def test_overlap_waits_for_the_first_write() -> None:
    """A second write to sectors that a first one has not written yet waits for it."""
    rig = Rig("raid5")
    rig.run(rig.bio(0), rig.bio(0))
    assert len(rig.ends) == 2


# -- degraded ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("member", "reads", "writes"), [(0, 2, 1), (1, 2, 2), (3, 2, 1)])
def test_degraded_raid5_reads_what_it_needs(member: int, reads: int, writes: int) -> None:
    """Data page 0 of stripe 0 is on member 0, and the parity on member 3.

    * Member 0 is missing: the other data is read, and only parity is written.
    * Member 1 is missing: it cannot be read, so old data and parity are, and both are written.
    * The parity is missing: the other data is read, and data is written.
    """
    rig = Rig("raid5", faulty=[member]).run_one(0)
    assert (sum(rig.pages(READ)), sum(rig.pages("W"))) == (reads, writes)
    assert not rig.devices[member].requests


def test_read_of_a_missing_member_reads_all_others() -> None:
    """A page of a missing member is computed from the rest of its stripe."""
    rig = Rig("raid5", faulty=[0])
    rig.run(rig.bio(0, op=READ, sync=True))
    assert rig.pages(READ) == [0, 1, 1, 1]
    rig = Rig("raid6", 6, faulty=[1, 2])
    place = rig.run(rig.bio(0, op=READ, sync=True)).pages(READ)
    assert sum(place) == 4  # page 0 is on member 1


def test_whole_array_read_touches_only_data() -> None:
    """Without a missing member a read goes to the members directly, and to no parity."""
    rig = Rig("raid5")
    rig.run(rig.bio(0, 3 * CHUNK, op=READ, sync=True))
    assert rig.pages(READ) == [CHUNK // 8] * 3 + [0]


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["raid5", "raid6"]), st.integers(0, 8), st.data())
def test_degraded_writes_end_and_add_up(level: str, more: int, data: st.DataObject) -> None:
    """Any writes to an array without some members end; no missing member is touched."""
    parities = LEVELS[level]
    members = parities + 2 + more
    faulty = data.draw(st.lists(st.integers(0, members - 1), max_size=parities, unique=True))
    bios = data.draw(st.lists(st.tuples(st.integers(0, 900), st.integers(1, 600)), min_size=1, max_size=6))
    kernel = data.draw(st.sampled_from(["2.6.34", "3.11", "4.9", "5.10", "6.18"]))
    rig = Rig(
        level, members, kernel=kernel, faulty=faulty, bitmap=data.draw(st.booleans()),
        stripe_cache_size=data.draw(st.sampled_from([17, 256])),
        rmw_level=data.draw(st.sampled_from([0, 1, 2])),
    )  # fmt: skip
    rig.run(
        *(rig.bio(start, sectors, sync=data.draw(st.booleans())) for start, sectors in bios),
        plugged=data.draw(st.booleans()),
    )
    assert not any(rig.devices[member].requests for member in faulty)
    assert rig.array.stat.writes.sectors == sum(sectors for _, sectors in bios)


# -- flushes ----------------------------------------------------------------------------------------------


class Ordered(SlowDevice):
    """A device that notes the order of ops."""

    def ops(self) -> list[str]:
        return [request.op for request in self.requests]


def test_flush_goes_to_all_members() -> None:
    """A bio with PREFLUSH flushes each member; with FUA, data and parity are written with FUA, too."""
    rig = Rig("raid5", volatile=True, devices=lambda env, _: Ordered(env, 100 * US))
    rig.run(rig.bio(0, 0, op=FLUSH))
    assert [device.ops() for device in rig.devices] == [["F"]] * 4
    rig = Rig("raid5", volatile=True, devices=lambda env, _: Ordered(env, 100 * US))
    rig.run(rig.bio(0, op=FLUSH_FUA, sync=True))
    safe = [device.ops().count(FUA) + device.ops().count("F") for device in rig.devices]
    assert safe[1:3] == [1, 1]  # members without a part of it
    assert safe[0] == safe[3] == 2  # a second flush makes the data safe


def test_late_fua_write_is_safe_itself() -> None:
    """A write with FUA joins a stripe whose data is in the cache already: its own pages are made safe."""
    costs = FREE.model_copy(update={"handle_ns": 50 * US})
    rig = Rig("raid5", volatile=True, costs=costs, devices=lambda env, _: Ordered(env, 100 * US))
    rig.start_at(260 * US, rig.bio(start_of(0, 1, rig), op=FUA, sync=True))
    rig.run(rig.bio(start_of(0, 0, rig)))
    assert rig.ends == [0, start_of(0, 1, rig)]
    assert rig.devices[1].ops()[-2:] == ["W", "F"]  # member 1 has the page, and member 0 only the other one
    assert rig.devices[0].ops()[-1] == "W"


def test_protected_members_get_no_flush() -> None:
    """Members without a volatile cache need none."""
    rig = Rig("raid5", devices=lambda env, _: Ordered(env, 100 * US))
    rig.run(rig.bio(0, op=FLUSH_FUA, sync=True))
    assert {op for device in rig.devices for op in device.ops()} == {"R", "W"}


# -- bitmap and threads -----------------------------------------------------------------------------------


def test_bitmap_is_written_before_the_stripe() -> None:
    """The first write to a region waits for the bitmap on all members; the next one does not."""
    plain, marked = Rig("raid5"), Rig("raid5", bitmap=True)
    plain.run(plain.bio(0))
    marked.run(marked.bio(0))
    assert marked.times[0] == plain.times[0] + 100 * US
    assert marked.pages("W") == [2, 1, 1, 2]
    starts = [device.requests[0].start_sector for device in marked.devices]
    assert starts == [16] * 4
    marked.run(marked.bio(8))  # the daemon has cleared the bit meanwhile
    assert sum(marked.pages("W")) == 2 * 6
    marked = Rig("raid5", bitmap=True)
    marked.start_at(1_000 * US, marked.bio(8))
    assert sum(marked.run(marked.bio(0)).pages("W")) == 6 + 2


def test_workers_share_the_stripes() -> None:
    """Worker threads end visits that take long sooner: two threads in about half the time."""
    costs = FREE.model_copy(update={"handle_ns": 100 * US})
    ends = {}
    for count in (0, 1, 3):
        rig = Rig("raid5", costs=costs, group_thread_cnt=count)
        rig.run(*(rig.bio(start_of(stripe, 0, rig), 8) for stripe in range(64)))
        ends[count] = max(rig.times)
    assert ends[0] > 1.4 * ends[1] > 1.4 * ends[3]


def test_costs_are_charged_to_the_thread() -> None:
    """A read-modify-write copies one page, and puts it and the old one into the parity."""
    costs = FREE.model_copy(update={"copy_ns": 300, "xor_ns": 400, "handle_ns": 1_000, "stripe_ns": 50})
    rig = Rig("raid5", 6, costs=costs)
    threads = rig.threads
    rig.run(rig.bio(0))
    (raid5d,) = (thread for thread in threads if thread.task.name == "raid5d")
    assert raid5d.spent.parity == 300 + 2 * 400
    assert raid5d.spent.md % 1_000 == 0
    assert 3_000 <= raid5d.spent.md <= 6_000


def test_two_arrays_behave_as_each_alone() -> None:
    """Two arrays on different members, written at once, take the times that each takes alone."""
    alone = Rig("raid5").run_one(0).times
    arrays = [Rig("raid5"), Rig("raid6")]
    assert alone == arrays[0].run_one(0).times


def test_clock_of_an_empty_run_stands() -> None:
    """An array without a write makes no event after the start of its thread."""
    env: Environment = Rig("raid5", bitmap=True).env
    env.run()
    assert env.now == 0
