"""Flash drives that are not fresh, that have an SLC part, and whose flush takes time."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.models.devices.test_page_map import by_theory
from wbsim.models.bio import Bio, Request
from wbsim.models.devices.planes import Planes
from wbsim.models.devices.raid0 import Raid0
from wbsim.models.devices.spec import Raid0Spec, SsdSpec, WriteCacheSpec
from wbsim.models.devices.ssd import Ssd
from wbsim.models.devices.write_cache import WriteCache
from wbsim.sim.engine import Environment
from wbsim.sim.units import GIB, KIB, MIB, MS, US, S

FTL = {"spare": 0.25, "erase_block": "1 MiB", "erase_time": "0 ns", "state": "steady"}
SLC = {"fixed": "64 MiB", "dynamic": "0 B", "program_time": "200 us", "when_full": "direct"}
FLASH_RATE = 8 * 16 * KIB * S / MS
"""The rate (B/s) at which the drive of `spec_of` programs: 8 planes, 16 KiB in 1 ms."""


def spec_of(**changes: Any) -> SsdSpec:
    """Return the spec of a drive of 64 MiB with 8 planes, a fast link, and a cache of 1 MiB."""
    fields = {
        "size": 64 * MIB, "link": 10**10, "command_time": US, "latency": 0, "cache": MIB, "units": 8,
        "flash_page": 16 * KIB, "program_time": MS, "read_time": 0, "protected": True,
    }  # fmt: skip
    return SsdSpec.model_validate({**fields, **changes})


def drive(env: Environment, **changes: Any) -> Ssd:
    """Return a drive of `spec_of`."""
    return Ssd(env=env, spec=spec_of(**changes), name="d", random=np.random.default_rng(1))


def write_all(env: Environment, device: Ssd, pages: Iterable[int], size: int = 4 * KIB) -> list[int]:
    """Write *size* bytes at each of *pages*, 32 at a time; return the times of completion (ns)."""
    places, ends = iter(pages), list[int]()

    def submit() -> None:
        if (page := next(places, None)) is not None:
            device.submit(Request(Bio(8 * page, size // 512)), done)

    def done() -> None:
        ends.append(env.now)
        submit()

    for _ in range(32):
        submit()
    env.run()
    return ends


def rate(ends: list[int], first: int, last: int, size: int = 4 * KIB) -> float:
    """Return the rate (B/s) between the completions *first* and *last*."""
    return (last - first) * size * S / (ends[last] - ends[first])


def test_steady_drive_shares_its_flash_with_garbage() -> None:
    """Random writes to a steady drive are as fast as the flash, divided by the write amplification."""
    env = Environment()
    device = drive(env, size=256 * MIB, ftl=FTL)
    ends = write_all(env, device, np.random.default_rng(3).integers(0, 65_536, 60_000).tolist())
    assert rate(ends, 20_000, 59_000) == pytest.approx(FLASH_RATE / by_theory(1.25), rel=0.05)


def test_fresh_drive_slows_down_when_its_flash_is_full() -> None:
    """A fresh drive writes at the rate of the flash until its 80 MiB are programmed, and then slower."""
    env = Environment()
    device = drive(env, ftl={**FTL, "state": "fresh"})
    ends = write_all(env, device, np.random.default_rng(3).integers(0, 16_384, 60_000).tolist())
    full = 80 * MIB // (4 * KIB)
    assert rate(ends, 1_000, full - 1_000) == pytest.approx(FLASH_RATE, rel=0.01)
    assert rate(ends, full + 1_000, full + 3_000) < 0.9 * FLASH_RATE


def test_drive_with_little_data_moves_little() -> None:
    """A steady drive that is half full is as fast as one with that much more spare flash."""
    env = Environment()
    device = drive(env, size=256 * MIB, ftl={**FTL, "fill": 0.5})
    half = np.random.default_rng(3).permutation(65_536)[:32_768]
    write_all(env, device, [])
    device.submit(Request(Bio(0, 8 * 65_536, op="D")), lambda: None)  # forget which pages had data
    env.run()
    write_all(env, device, half.tolist())
    ends = write_all(env, device, np.random.default_rng(4).choice(half, 150_000).tolist())
    assert rate(ends, 110_000, 149_000) == pytest.approx(FLASH_RATE / by_theory(2.5), rel=0.05)


@pytest.mark.parametrize("protected", [True, False])
def test_bytes_that_flash_programs_add_up(protected: bool) -> None:
    """Flash works for the pages of the host, for those that are moved, and for nothing else."""
    env = Environment()
    device = drive(env, ftl=FTL, protected=protected)
    write_all(env, device, np.random.default_rng(3).integers(0, 16_384, 20_000).tolist())
    env.call_at(env.now + S, 0, lambda: None)  # let the flash come to rest
    env.run()
    ftl = device._ftl
    assert ftl is not None
    queue = device._partial_bytes + device._moving_bytes + ftl.owed
    programmed = round(device.uses()["flash"] * 8 / MS) * 16 * KIB
    assert programmed + queue == (20_000 + ftl.map.moves) * 4 * KIB


def test_erasing_takes_the_time_of_a_plane() -> None:
    """A plane that erases a block programs nothing meanwhile; here, a block costs as much as 64 programs."""
    times = []
    for erase_time in ("0 ns", "64 ms"):
        env = Environment()
        device = drive(env, ftl={**FTL, "erase_time": erase_time})
        write_all(env, device, np.random.default_rng(3).integers(0, 16_384, 20_000).tolist())
        times.append(device.uses()["flash"])
    assert device._ftl is not None
    assert times[1] - times[0] == pytest.approx(device._ftl.map.erasures * 64 * MS / 8, rel=0.01)


def test_slc_part_is_fast_until_it_is_full() -> None:
    """The first 64 MiB are written at five times the rate of the other cells."""
    env = Environment()
    ends = write_all(env, drive(env, size=GIB, slc=SLC), range(0, 40_000, 4), 16 * KIB)
    slc = 64 * MIB // (16 * KIB)
    assert rate(ends, 100, slc - 200, 16 * KIB) == pytest.approx(5 * FLASH_RATE, rel=0.02)
    assert rate(ends, slc + 200, 9_000, 16 * KIB) == pytest.approx(FLASH_RATE, rel=0.02)


def test_folding_beside_the_host_is_slower_than_the_cells() -> None:
    """If the SLC part is full, each page of the host takes one program of each kind."""
    env = Environment()
    ends = write_all(
        env, drive(env, size=GIB, slc={**SLC, "when_full": "fold"}), range(0, 40_000, 4), 16 * KIB
    )
    slc = 64 * MIB // (16 * KIB)
    assert rate(ends, slc + 200, 9_000, 16 * KIB) == pytest.approx(FLASH_RATE / 1.2, rel=0.02)


@pytest.mark.parametrize(("pause_ms", "folded_mib"), [(100, 0), (200, 12.5), (600, 62.5), (2_000, 64)])
def test_pause_empties_the_slc_part(pause_ms: int, folded_mib: float) -> None:
    """After 100 ms without work the drive folds at the rate of its cells, 125 MiB a second.

    Then as much as it has folded fits into the SLC part again.
    """
    env = Environment()
    device = drive(env, size=GIB, slc={**SLC, "fold_after": "100 ms"})
    write_all(env, device, range(0, 16_384, 4), 16 * KIB)
    env.call_at(env.now + pause_ms * MS, 0, lambda: None)
    env.run()
    write_all(env, device, [20_000], 16 * KIB)
    assert device._slc is not None
    assert device._slc.folded / MIB == pytest.approx(folded_mib, abs=2)
    assert device._slc.filled / MIB == pytest.approx(64 - folded_mib, abs=2)


def test_dynamic_slc_part_shrinks_as_the_drive_fills() -> None:
    """A drive that is full to a quarter has three quarters of the dynamic part, and all of the fixed one."""
    env = Environment()
    slc = {**SLC, "fixed": "4 MiB", "dynamic": "32 MiB"}
    device = drive(env, slc=slc, ftl={**FTL, "fill": 0.25})
    assert device._slc is not None
    assert device._slc.size / MIB == pytest.approx(4 + 24, abs=0.1)


def test_slc_part_holds_whole_pages_only() -> None:
    """Six pages of 16 KiB fill 96 of 100 KiB; the seventh goes to the other cells."""
    env = Environment()
    device = drive(env, slc={**SLC, "fixed": "100 KiB"})
    write_all(env, device, range(0, 80, 4), 16 * KIB)
    assert device._slc is not None
    assert device._slc.filled == 96 * KIB


def test_discard_keeps_units_of_which_a_part_stays() -> None:
    """Sectors 4 to 20 contain unit 1 (8 to 16), but only parts of units 0 and 2."""
    env = Environment()
    device = drive(env, ftl={**FTL, "state": "fresh"})
    write_all(env, device, range(3))
    device.submit(Request(Bio(4, 16, op="D")), lambda: None)
    env.run()
    assert device._ftl is not None
    places = [device._ftl.map.place(page) for page in range(3)]
    assert [place is None for place in places] == [False, True, False]


def test_programmed_bytes_include_what_is_moved_and_folded() -> None:
    """1 MiB is 64 pages of 16 KiB; a worn drive programs as many more as its map moves, in whole pages."""
    env = Environment()
    device = drive(env)
    write_all(env, device, range(0, 256, 4), 16 * KIB)
    assert device.programmed_bytes() == MIB
    env = Environment()
    device = drive(env, slc={**SLC, "fixed": "512 KiB", "when_full": "fold"})
    write_all(env, device, range(0, 256, 4), 16 * KIB)
    assert device.programmed_bytes() == MIB + MIB // 2  # the second half folds the first
    env = Environment()
    device = drive(env, ftl=FTL)
    write_all(env, device, np.random.default_rng(1).integers(0, 16_000, 20_000).tolist())
    assert device._ftl is not None
    moved = device._ftl.map.moves * 4 * KIB - device._ftl.owed - device._moving_bytes
    assert device.programmed_bytes() == 20_000 * 4 * KIB + moved


def test_composed_devices_pass_on_what_their_members_programmed() -> None:
    """The members of an array are added; a write cache has what is behind it."""
    env = Environment()
    members = [drive(env) for _ in range(2)]
    for number, member in enumerate(members):
        write_all(env, member, range(0, 4 * (number + 1), 4), 16 * KIB)
    array_spec = Raid0Spec(chunk=64 * KIB, members=(spec_of(), spec_of()))
    array = Raid0(env=env, spec=array_spec, name="md0", members=members)
    cache_spec = WriteCacheSpec(
        size=MIB, link=10**9, command_time=0, piece=64 * KIB, depth=1, behind=array_spec
    )
    cache = WriteCache(env=env, spec=cache_spec, name="c", behind=array)
    assert (array.programmed_bytes(), cache.programmed_bytes()) == (3 * 16 * KIB, 3 * 16 * KIB)


def test_flush_takes_its_time_beyond_the_programming() -> None:
    """A flush programs the page that is not full, waits for it, and takes 2 ms more."""
    env = Environment()
    device = drive(env, protected=False, flush_time="2 ms")
    ends: list[int] = []
    device.submit(Request(Bio(0, 8)), lambda: ends.append(env.now))
    device.submit(Request(Bio(0, 0, op="FW")), lambda: ends.append(env.now))
    env.run()
    link = US + 4 * KIB * S // 10**10
    assert ends == [link, link + US + 3 * MS]


@pytest.mark.parametrize(("suspend", "waits"), [(None, 500 * US), (30 * US, 30 * US), (2 * MS, 500 * US)])
def test_read_waits_for_a_program_or_suspends_it(suspend: int | None, waits: int) -> None:
    """Three programs of 1 ms are due on the only plane; at 0.5 ms, a read of 80 us passes two of them."""
    env = Environment()
    planes = Planes(env, 1, MS, suspend)
    assert [planes.program(0) for _ in range(3)] == [MS, 2 * MS, 3 * MS]
    assert planes.read(7, 500 * US, 80 * US) == 500 * US + waits + 80 * US
    assert planes.program(0) == 4 * MS + 80 * US


@pytest.mark.source  # it replaces a method
@given(st.lists(st.tuples(st.integers(0, 3_000), st.integers(1, 40), st.booleans()), min_size=1, max_size=40))
def test_no_flush_ends_before_earlier_writes_are_programmed(
    writes: list[tuple[int, int, bool]],
) -> None:
    """At the end of a flush, all bytes of earlier writes are programmed, with an SLC part and garbage."""
    env = Environment()
    slc = {**SLC, "fixed": "128 KiB", "when_full": "fold"}
    device = drive(env, protected=False, ftl=FTL, slc=slc, command_time=100 * US)
    ends: list[int] = []
    program = device._program_page

    def note(begin_ns: int) -> int:
        ends.append(program(begin_ns))
        return ends[-1]

    device._program_page = note  # type: ignore[method-assign]
    size = 0

    def check(size: int) -> None:
        complete = sum(end <= env.now for end in ends)
        assert complete * 16 * KIB >= size

    for page, count, flushes in writes:
        size += count * 4 * KIB
        done = partial(check, size) if flushes else (lambda: None)
        device.submit(Request(Bio(8 * page, 8 * count, op="FW" if flushes else "W")), done)
    env.run()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ftl": {**FTL, "spare": 0.0}}, "greater than 0"),
        ({"ftl": {**FTL, "spare": 0.02}}, "0.02 leaves 65 blocks of 1048576 B, but the drive needs 68"),
        ({"ftl": {**FTL, "erase_block": "10 KiB"}}, "not a multiple of the map's unit of 4096 B"),
        ({"ftl": FTL, "size": None}, "a drive that collects garbage needs its capacity"),
        ({"ftl": {**FTL, "fill": 1.5}}, "less than or equal to 1"),
        ({"slc": {**SLC, "dynamic": "1 MiB"}}, "68157440 B, fixed and dynamic, are more than the drive's"),
        ({"flush_time": "1 ms"}, "contradicts protected = true"),
    ],
)  # fmt: skip
def test_contradictory_drive_is_refused(changes: dict[str, Any], message: str) -> None:
    """Each contradiction gets an error that names it."""
    with pytest.raises(ValidationError, match=message):
        spec_of(**changes)
