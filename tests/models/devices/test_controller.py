"""A RAID controller with a cache, over devices that record what they get."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness import LAST, SlowDevice
from tests.models.md.test_safety import Recorder
from wbsim.models.bio import DISCARD, FLUSH, READ, Bio, Request
from wbsim.models.devices.controller import Controller
from wbsim.models.devices.spec import ControllerSpec
from wbsim.models.raid.levels import LEAST_MEMBERS, PARITIES
from wbsim.models.raid.rows import RowLayout
from wbsim.sim.engine import Environment
from wbsim.sim.param import BadValue
from wbsim.sim.units import KIB, MIB, MS, SECTOR_BYTES, US, S

STRIP = 128
"""The sectors of a strip."""
NULL = {"kind": "null"}


def spec_of(level: str, count: int, **keys: Any) -> ControllerSpec:
    """Return a controller with strips of 64 KiB, a cache of 64 lines, and commands of 10 us."""
    fields = {
        "level": level, "members": (NULL,) * count, "strip": STRIP * SECTOR_BYTES, "cache": 4 * MIB,
        "policy": "write_back", "high_watermark": 0.5, "low_watermark": 0.25, "flush_after": 4 * S,
        "depth": 8, "link": 4 * 10**9, "command_time": 10 * US, "parity_rate": 10**12,
    }  # fmt: skip
    return ControllerSpec.model_validate({**fields, **keys})


class Rig:
    """A controller over devices with a latency of 100 us, or over those that *devices* makes."""

    def __init__(
        self, level: str, members: int, devices: Callable[[Environment, int], Any] | None = None, **keys: Any
    ) -> None:
        self.env = Environment()
        make = devices or (lambda env, _: SlowDevice(env, 100 * US))
        self.devices: list[Any] = [make(self.env, number) for number in range(members)]
        self.spec = spec_of(level, members, **keys)
        self.controller = Controller(env=self.env, spec=self.spec, name="c0", members=self.devices)
        self.ends: dict[int, int] = {}

    def submit(self, number: int, start: int, sectors: int, op: str = "W") -> None:
        """Submit a request, whose end `ends` has under *number*."""

        def end() -> None:
            assert number not in self.ends, "a request ended twice"
            self.ends[number] = self.env.now

        self.controller.submit(Request(Bio(start, sectors, op=op)), end)

    def run_for_a_second(self) -> None:
        """Run until one second has passed."""
        self.env.call_at(self.env.now + S, LAST, self.env.halt)
        self.env.run()

    def run(self, *requests: tuple[int, int], op: str = "W") -> list[int]:
        """Submit *requests* (start, sectors) at once; return their ends (ns)."""
        for number, (start, sectors) in enumerate(requests):
            self.submit(number, start, sectors, op)
        self.env.run()
        return [self.ends[number] for number in range(len(requests))]

    def ops(self) -> list[list[str]]:
        """Return the ops that each member got."""
        return [[request.op for request in device.requests] for device in self.devices]

    def sectors(self, op: str) -> int:
        """Return the sectors that all members read or wrote."""
        return sum(
            r.sectors for device in self.devices for r in device.requests if (r.op == READ) == (op == READ)
        )


def test_write_ends_in_the_cache_with_a_good_battery() -> None:
    """Two writes of 4 KiB: each ends after its command and its transfer, and no member is written."""
    rig = Rig("raid5", 4, flush_after=3_600 * S)
    rig.submit(0, 0, 8)
    rig.submit(1, 5_000, 8)
    rig.run_for_a_second()
    assert rig.ends == {0: 11_024, 1: 22_048}
    assert rig.ops() == [[], [], [], []]


@pytest.mark.parametrize(
    ("keys", "ends_ns"),
    [
        ({"policy": "write_through"}, 211_024),
        ({"battery": "failed"}, 211_024),
        ({"battery": "learning"}, 211_024),
        ({"battery": "learning", "learns_in_write_back": True}, 11_024),
        ({"battery": "failed", "policy": "always_write_back"}, 11_024),
    ],
)
def test_unprotected_write_ends_on_the_members(keys: dict[str, Any], ends_ns: int) -> None:
    """RAID5: a write through takes a read and a write of two members, 100 us each, after its transfer."""
    rig = Rig("raid5", 5, **keys)
    assert rig.run((0, 8)) == [pytest.approx(ends_ns, abs=200)]
    assert sorted(rig.ops()) == [[], [], [], [READ, "WF"], [READ, "WF"]]


def test_watermarks_begin_and_end_a_sweep() -> None:
    """A cache of 64 lines: 32 stay, and the 33rd begins to destage until 16 are left."""
    counts: list[int] = []
    rig = Rig("raid0", 1, flush_after=3_600 * S)
    for number in range(32):
        rig.submit(number, number * STRIP, 8)
    rig.env.call_at(S // 2, LAST, lambda: counts.append(len(rig.devices[0].requests)))
    rig.env.call_at(S // 2, LAST, lambda: rig.submit(32, 32 * STRIP, 8))
    rig.run_for_a_second()
    assert [*counts, len(rig.devices[0].requests)] == [0, 33 - 16]


def test_data_leaves_after_a_time() -> None:
    """A write below the watermark leaves 4 s after it came, a later one 4 s after that one came."""
    rig = Rig("raid1", 2)
    rig.submit(0, 0, 8)
    rig.env.call_at(3 * S, LAST, lambda: rig.submit(1, 5_000, 8))
    rig.env.run()
    assert rig.devices[0].times == [4 * S + 11_024, 7 * S + 11_024]


def test_complete_rows_leave_first_and_without_reads() -> None:
    """RAID5 of four: of three rows, only the last is complete; it is written first, and nothing is read."""
    rig = Rig("raid5", 4, high_watermark=0.06, low_watermark=0, depth=1)
    row = 3 * STRIP
    rig.run((0, 8), (row, 8), (2 * row, row))
    first = [device.requests[0] for device in rig.devices]
    assert all((request.op, request.start_sector) == ("WF", 2 * STRIP) for request in first)
    assert all(request.sectors == STRIP for request in first)


def test_sweep_goes_on_from_its_position() -> None:
    """Rows leave in ascending order, from the row behind the last one on, and then from the first."""
    rig = Rig("raid0", 1, depth=1)
    for number, row in enumerate((5, 9, 7)):
        rig.submit(number, row * STRIP, 8)
    rig.env.call_at(4 * S + 150 * US, LAST, lambda: rig.submit(3, 2 * STRIP, 8))
    rig.env.run()
    assert [request.start_sector // STRIP for request in rig.devices[0].requests] == [5, 7, 9, 2]


def test_full_cache_takes_writes_as_rows_leave() -> None:
    """A cache of four lines, one row at a time: writes beyond it wait for 100 us each."""
    rig = Rig("raid0", 1, cache=4 * STRIP * SECTOR_BYTES, depth=1, high_watermark=1, low_watermark=1)
    ends = rig.run(*[(number * STRIP, 8) for number in range(12)])
    assert all(end < 60 * US for end in ends[:4])
    gaps = [later - end for end, later in itertools.pairwise(ends[5:])]
    assert gaps == [pytest.approx(100 * US, abs=US)] * len(gaps)


def test_write_larger_than_the_cache_is_taken() -> None:
    """A cache of one line takes a write of 1 MiB when it is empty."""
    rig = Rig("raid5", 3, cache=64 * KIB)
    assert len(rig.run((0, 2_048), (0, 8))) == 2


def test_rewritten_data_leaves_once_and_with_its_last_write() -> None:
    """Ten writes of the same 4 KiB become one write of the member."""
    rig = Rig("raid0", 1)
    rig.run(*[(0, 8)] * 10)
    assert rig.sectors("W") == 8


def test_row_on_its_way_is_written_again_afterwards() -> None:
    """A write to a row that is on its way ends only when its own data is on the member."""
    rig = Rig("raid0", 1, policy="write_through")
    rig.submit(0, 0, 8)
    rig.env.call_at(50 * US, LAST, lambda: rig.submit(1, 0, 8))
    rig.env.run()
    assert rig.devices[0].times == [11_024, 111_024]
    assert rig.ends == {0: 111_024, 1: 211_024}


def test_parity_engine_does_one_row_at_a_time() -> None:
    """RAID5 at 100 MB/s: each of two writes of 4 KiB adds 8 KiB to parity, which takes 82 us."""
    rig = Rig("raid5", 5, policy="write_through", parity_rate=10**8)
    ends = rig.run((0, 8), (4 * STRIP, 8))
    assert ends == [pytest.approx(211_024 + 81_920, abs=500), pytest.approx(211_024 + 2 * 81_920, abs=500)]
    assert rig.controller.uses()["parity"] == pytest.approx(2 * 81_920, abs=2)


def test_read_comes_from_the_cache_or_from_the_members() -> None:
    """A cached strip needs no member; another one takes 100 us."""
    rig = Rig("raid5", 4, flush_after=3_600 * S)
    rig.submit(0, 0, 8)
    rig.env.call_at(MS, LAST, lambda: rig.submit(1, 0, 8, READ))
    rig.env.call_at(2 * MS, LAST, lambda: rig.submit(2, 8, 8, READ))
    rig.run_for_a_second()
    assert rig.ends == {0: 11_024, 1: MS + 11_024, 2: 2 * MS + 100 * US + 11_024}


def test_mirrors_share_the_reads() -> None:
    """RAID10 of four: eight reads of one strip go to both members of its pair in turn."""
    rig = Rig("raid10", 4)
    rig.run(*[(STRIP, 8)] * 8, op=READ)
    assert [len(device.requests) for device in rig.devices] == [0, 0, 4, 4]


def test_idle_member_is_read_first() -> None:
    """Two reads of one strip with a pause between them: the first member of the pair is idle both times."""
    rig = Rig("raid10", 4)
    rig.submit(0, 0, 8, READ)
    rig.env.call_at(MS, LAST, lambda: rig.submit(1, 0, 8, READ))
    rig.env.run()
    assert [len(device.requests) for device in rig.devices] == [2, 0, 0, 0]


def test_degraded_read_needs_all_other_members() -> None:
    """RAID5 without the member that has the strip: the other three are read."""
    rig = Rig("raid5", 4, faulty=[0])
    rig.run((0, 8), op=READ)
    assert [len(device.requests) for device in rig.devices] == [0, 1, 1, 1]


def test_flush_and_discard_end_after_their_command() -> None:
    """The battery keeps data safe, so a flush writes nothing; a discard has no effect."""
    rig = Rig("raid5", 4)
    assert rig.run((0, 0), op=FLUSH) == [10 * US]
    assert Rig("raid5", 4).run((0, 800), op=DISCARD) == [10 * US]


def test_raid0_of_one_member_is_that_member() -> None:
    """Without a cache, a link or a command that take time, each write ends as it does on the member."""
    rig = Rig("raid0", 1, policy="write_through", command_time=0, link=10**12, depth=100)
    writes = [(number * STRIP, 8 * (number + 1)) for number in range(10)]
    assert rig.run(*writes) == [pytest.approx(100 * US, abs=500)] * 10
    assert [(r.start_sector, r.sectors) for r in rig.devices[0].requests] == writes


LEVELS = sorted(LEAST_MEMBERS)


def _draw(data: st.DataObject, level: str) -> tuple[int, list[int]]:
    """Draw the number of members and the faulty ones."""
    members = data.draw(st.integers(max(2, LEAST_MEMBERS[level]), 9)) // 2 * 2
    members = max(members, LEAST_MEMBERS[level])
    most = {"raid0": 0, "raid1": members - 1, "raid10": 1}.get(level, PARITIES.get(level, 0))
    return members, data.draw(st.lists(st.integers(0, members - 1), max_size=most, unique=True))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(LEVELS), st.booleans(), st.data())
def test_write_through_ends_when_it_is_safe(level: str, grows: bool, data: st.DataObject) -> None:
    """Each strip of a write that has ended, and its parity, were written since the write came."""
    members, faulty = _draw(data, level)
    rig = Rig(
        level, members, Recorder, faulty=faulty, policy="write_through",
        depth=data.draw(st.integers(1, 4)), cache=(4 if grows else 64) * 64 * KIB,
    )  # fmt: skip
    layout, writes = RowLayout(level, members), list[tuple[int, int, int]]()
    for number in range(data.draw(st.integers(1, 8))):
        start, sectors = 8 * data.draw(st.integers(0, 80)), 8 * data.draw(st.integers(1, 40))
        begin_ns = data.draw(st.integers(0, 300)) * US
        writes.append((start, sectors, begin_ns))
        rig.env.call_at(
            begin_ns, LAST, lambda n=number, s=start, c=sectors: rig.submit(n, s, c)  # type: ignore[misc]
        )  # fmt: skip
    rig.env.run()
    for number, (start, sectors, begin_ns) in enumerate(writes):
        for sector in range(start, start + sectors, 8):
            strip, offset = divmod(sector, STRIP)
            row, position = divmod(strip, layout.data)
            for member in (*layout.members_of(row, position), *layout.parity_of(row)):
                if member not in faulty:
                    place = row * STRIP + offset
                    assert rig.devices[member].has(place, begin_ns, rig.ends[number])


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(LEVELS), st.data())
def test_bytes_written_to_the_members_add_up(level: str, data: st.DataObject) -> None:
    """Each dirty sector is written to all its copies, and the sectors of parity come in addition."""
    members, _ = _draw(data, level)
    rig = Rig(level, members)
    starts = data.draw(st.lists(st.integers(0, 60), min_size=1, max_size=20, unique=True))
    rig.run(*[(start * STRIP, STRIP) for start in starts])
    rows = {start // rig.controller._layout.data for start in starts}
    copies = {"raid1": members, "raid10": 2}.get(level, 1)
    strips = copies * len(starts) + PARITIES.get(level, 0) * len(rows)
    assert rig.sectors("W") == strips * STRIP


@pytest.mark.parametrize(
    ("level", "members", "keys", "place"),
    [
        ("raid5", 2, {}, "members"),
        ("raid6", 3, {}, "members"),
        ("raid10", 3, {}, "members"),
        ("raid5", 3, {"strip": 96 * KIB}, "strip"),
        ("raid5", 3, {"strip": 2 * KIB}, "strip"),
        ("raid5", 3, {"cache": 32 * KIB}, "cache"),
        ("raid5", 3, {"faulty": [3]}, "faulty"),
        ("raid5", 3, {"faulty": [0, 1]}, "faulty"),
        ("raid10", 4, {"faulty": [2, 3]}, "faulty"),
        ("raid1", 2, {"faulty": [0, 1]}, "faulty"),
        ("raid0", 2, {"faulty": [0]}, "faulty"),
        ("raid5", 3, {"low_watermark": 0.6}, "low_watermark"),
    ],
)
def test_impossible_controllers_are_refused(
    level: str, members: int, keys: dict[str, Any], place: Sequence[str]
) -> None:
    """Each mistake gets one error at its key."""
    with pytest.raises(ValueError, match=r"give|use|leave") as error:
        spec_of(level, members, **keys)
    (problem,) = error.value.errors()  # type: ignore[attr-defined]
    cause = problem["ctx"]["error"]
    assert isinstance(cause, BadValue)
    assert cause.path == (place,)


def test_smallest_member_counts() -> None:
    """RAID6 of five: three members' shares of the smallest, in whole strips."""
    disk = {
        "kind": "ssd", "link": 10**9, "command_time": 0, "latency": 0, "cache": MIB, "units": 1,
        "flash_page": 4 * KIB, "program_time": MS, "read_time": MS, "protected": True,
    }  # fmt: skip
    sizes = [10 * MIB + 5_000 * number for number in range(5)]
    spec = spec_of("raid6", 5, members=[{**disk, "size": size // 4_096 * 4_096} for size in sizes])
    assert spec.capacity == 3 * 10 * MIB
    assert spec.stripe == (64 * KIB, 192 * KIB)
    assert not spec.volatile
