"""A shingled disk: which writes go to their band, what fills the media cache, and what empties it."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from wbsim.models.bio import Bio, Request
from wbsim.models.devices.disk import Disk
from wbsim.models.devices.shingles import Shingles
from wbsim.models.devices.spec import DiskSpec, ShinglesSpec
from wbsim.sim.engine import Environment
from wbsim.sim.units import GIB, MIB, MS, S

BAND = 30 * MIB // 512
SPEC = ShinglesSpec(media_cache=MIB, band=30 * MIB, clean_after=S)


def disk(env: Environment, shingles: ShinglesSpec | None = SPEC) -> Disk:
    """Return a disk of 8 GiB with 150 MB/s, 8 ms for a turn, and seeks that take no time."""
    spec = DiskSpec(
        size=8 * GIB, outer=150_000_000, inner=150_000_000, turn_time=8 * MS, track_seek=0, full_seek=0,
        cache=64 * MIB, segments=32, link=600_000_000, shingles=shingles,
    )  # fmt: skip
    return Disk(env=env, spec=spec, name="sda")


def time_of(writes: Iterable[tuple[int, int]], shingles: ShinglesSpec | None = SPEC) -> float:
    """Return the time (s) after which *writes* (sector, sectors), one after another, are on the platters."""
    env = Environment()
    device, requests = disk(env, shingles), iter([*writes])
    ends: list[int] = []

    def give() -> None:
        write = next(requests, None)
        if write is None:
            device.submit(Request(Bio(0, 0, op="F")), lambda: ends.append(env.now))
        else:
            device.submit(Request(Bio(*write)), give)

    give()
    env.run()  # it also cleans all bands, after the end
    return ends[0] / S


def test_write_in_order_goes_to_its_band() -> None:
    """The beginning of a band and each write that continues it stay in place; a gap does not."""
    shingles = Shingles(SPEC)
    assert [shingles.place(0, 8), shingles.place(8, 100), shingles.place(BAND, BAND + 8)] == [0, 8, BAND]
    assert shingles.place(200, 208) == 0
    assert shingles.place(2 * BAND + 8, 2 * BAND + 24) == 8
    assert shingles.filled == 24


def test_write_across_bands_continues_in_the_next() -> None:
    """A write fills a band and begins the next one."""
    shingles = Shingles(SPEC)
    assert shingles.place(0, BAND + 16) == 0
    assert shingles.place(BAND + 16, BAND + 24) == BAND + 16
    assert shingles.filled == 0


def test_large_write_begins_a_band_anew() -> None:
    """4 KiB at the beginning of a full band go to the media cache; 1 MiB replaces the band and this part."""
    shingles = Shingles(SPEC)
    shingles.place(0, BAND)
    assert shingles.place(0, 8) == 0
    assert shingles.filled == 8
    assert shingles.place(0, 2048) == 0
    assert shingles.filled == 0
    assert shingles.place(2048, 2056) == 2048


def test_band_with_cached_writes_takes_nothing_until_it_is_clean() -> None:
    """The write that would continue the band follows in the media cache; a clean band is full."""
    shingles = Shingles(SPEC)
    assert [shingles.place(0, 8), shingles.place(100, 108), shingles.place(8, 16)] == [0, 0, 8]
    assert shingles.clean() == (0, BAND)
    assert shingles.place(8, 16) == 16
    assert shingles.filled == 8


def test_full_media_cache_takes_nothing_until_a_band_is_clean() -> None:
    """1 MiB of 2048 sectors is full; cleaning frees what belongs to the band that was cached first."""
    shingles = Shingles(SPEC)
    assert shingles.place(8, 2048) == 0
    assert shingles.place(BAND + 8, BAND + 16) == 2040
    assert shingles.place(BAND + 32, BAND + 40) is None
    assert shingles.clean() == (0, BAND)
    assert shingles.filled == 8
    assert shingles.place(BAND + 32, BAND + 40) == 0
    assert shingles.clean() == (BAND, 2 * BAND)
    assert shingles.clean() is None


@given(st.lists(st.tuples(st.integers(0, 20 * BAND), st.integers(1, 256)), max_size=60))
def test_media_cache_never_holds_more_than_it_has_room_for(writes: list[tuple[int, int]]) -> None:
    """Cleaning all bands leaves it empty."""
    shingles = Shingles(SPEC)
    for start, sectors in writes:
        while shingles.place(start, start + sectors) is None:
            assert shingles.clean() is not None
        assert 0 <= shingles.filled <= MIB // 512
    while shingles.clean() is not None:
        pass
    assert shingles.filled == 0


def test_sequential_writes_have_the_rate_of_the_platters() -> None:
    """60 MiB in order take as long as on a disk without shingles."""
    writes = [(sector, 2048) for sector in range(0, 2 * BAND, 2048)]
    assert time_of(writes) == time_of(writes, None)


def test_random_writes_are_fast_until_the_media_cache_is_full() -> None:
    """256 writes of 4 KiB fill 1 MiB without a turn between them; then each cleans a band, 2 x 30 MiB."""
    places = [(8 + (n * 7 % 250) * BAND // 2, 8) for n in range(256)]
    assert time_of(places) < 0.1
    assert time_of(places, None) > 0.5
    more = [(8 + n * BAND, 8) for n in range(300)]
    assert time_of(more) > 44 * 2 * 30 * MIB / 150e6


def test_idle_disk_cleans_its_media_cache() -> None:
    """A second after the last write the disk begins; three bands take 0.42 s each."""
    env = Environment()
    device = disk(env)
    for number in range(3):
        device.submit(Request(Bio(8 + number * BAND, 8)), lambda: None)
    env.run()
    assert device._shingles is not None
    assert device._shingles.filled == 0
    assert env.now > 3 * (S + 2 * 30 * MIB * S // 150_000_000)
    assert env.now < 3 * (S + 2 * 30 * MIB * S // 150_000_000) + S // 10


def test_request_lets_the_disk_wait_for_another_pause() -> None:
    """A read at 0.9 s moves the cleaning of the band, by at least as much, behind 1.9 s."""
    env = Environment()
    device = disk(env)
    device.submit(Request(Bio(8, 8)), lambda: None)
    env.call_at(9 * S // 10, 0, lambda: device.submit(Request(Bio(80, 8, op="R")), lambda: None))
    counts: list[int] = []
    assert device._shingles is not None
    shingles = device._shingles
    for at in (19 * S // 10 - MS, 25 * S // 10):
        env.call_at(at, 0, lambda: counts.append(shingles.filled))
    env.run()
    assert counts == [8, 0]
