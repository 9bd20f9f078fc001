"""Write caches, disks and striping."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness import SlowDevice
from wbsim.models.bio import Bio, Request
from wbsim.models.catalogue.machines import MACHINES
from wbsim.models.devices.disk import Disk
from wbsim.models.devices.intake import CachedRuns
from wbsim.models.devices.platters import Platters
from wbsim.models.devices.raid0 import Raid0
from wbsim.models.devices.spec import Raid0Spec, WriteCacheSpec
from wbsim.models.devices.write_cache import WriteCache
from wbsim.sim.engine import Environment
from wbsim.sim.units import KIB, MIB, MS, SECTOR_BYTES, S


@given(
    steps=st.lists(st.tuples(st.integers(0, 80), st.integers(1, 12), st.booleans()), max_size=60),
    at_most=st.integers(1, 9),
)
def test_cached_runs_match_a_set_of_sectors(steps: list[tuple[int, int, bool]], at_most: int) -> None:
    """Cached runs hold the sectors that a plain set holds.

    Overlaps count once.  A piece that is taken is contiguous and begins at the next run from *start* on, or
    at the first run.
    """
    cached, held = CachedRuns(), set[int]()
    for start, length, take in steps:
        if take and held:
            first, end = cached.take(start, at_most)
            piece = set(range(first, end))
            assert piece <= held
            assert 1 <= len(piece) <= at_most
            assert first - 1 not in held
            heads = {sector for sector in held if sector - 1 not in held}
            assert first == min((sector for sector in heads if sector >= start), default=min(heads))
            held -= piece
        else:
            cached.add(start, start + length)
            held |= set(range(start, start + length))
        assert cached.sectors == len(held)
        assert bool(cached) == bool(held)


DISK: Any = MACHINES["n10-vm"].disks["vdb"].device.behind.members[0]  # type: ignore[attr-defined]


def finish_ns(device: Callable[[Environment], Any], places: list[int], sectors: int) -> list[int]:
    """Submit writes at *places* at once; return the times of completion."""
    env, ends = Environment(), []
    target = device(env)
    for place in places:
        target.submit(Request(Bio(place, sectors)), lambda: ends.append(env.now))
    env.run()
    assert len(ends) == len(places)
    return ends


def test_disk_streams_at_the_rate_of_the_zone() -> None:
    """Sequential writes of 512 MiB run at the rate of the outer or the inner zone of the disk."""
    size, count = 2 * MIB // SECTOR_BYTES, 256

    def disk(env: Environment) -> Disk:
        return Disk(env=env, spec=DISK.model_copy(update={"cache": 4 * MIB}), name="sda")

    outer = finish_ns(disk, [i * size for i in range(count)], size)[-1]
    inner = finish_ns(disk, [DISK.size // SECTOR_BYTES - (count - i) * size for i in range(count)], size)[-1]
    assert outer == pytest.approx(count * 2 * MIB * S / DISK.outer, rel=0.03)
    assert inner / outer == pytest.approx(DISK.outer / DISK.inner, rel=0.05)


@given(st.lists(st.integers(0, DISK.size // SECTOR_BYTES - 8), min_size=200, max_size=200))
def test_disk_seeks_and_waits_for_less_than_a_turn(places: list[int]) -> None:
    """No position takes less than its seek, and none takes a turn more."""
    platters, now, waits = Platters(DISK), 0, []
    for place in places:
        share = (abs(place - platters.head) * SECTOR_BYTES / DISK.size) ** 0.5
        seek = DISK.track_seek + (DISK.full_seek - DISK.track_seek) * share
        waits.append(platters.positioning_ns(place, now) - seek * (place != platters.head))
        now = platters.transfer(place, place + 8, now)
    assert -1 < min(waits) <= max(waits) < DISK.turn_time


def test_random_writes_are_as_slow_as_on_real_disks() -> None:
    """Disks with their cache on were measured with 171 and 211 random writes of 4 KiB a second within 1 GiB.

    The rate hardly depends on the queue depth (354 and 357 on a third disk), because the cache sorts anyway.
    The sources are C1, C2 and KU of docs/kernel/devices.md.
    """
    places = (np.random.default_rng(1).integers(0, 1 << 18, 3_000) * 8).tolist()
    rates = []
    for depth in (1, 32):
        env, ends, order = Environment(), list[int](), iter(places)
        disk = Disk(env=env, spec=DISK, name="sda")

        def give(
            env: Environment = env, ends: list[int] = ends, order: Any = order, disk: Any = disk
        ) -> None:
            if (place := next(order, None)) is not None:
                disk.submit(Request(Bio(place, 8)), lambda: (ends.append(env.now), give()))

        for _ in range(depth):
            give()
        env.run()
        rates.append(2_000 * S / (ends[2_999] - ends[999]))
    assert rates[0] == pytest.approx((171.3 + 211) / 2, rel=0.15)
    assert rates[1] == pytest.approx(rates[0], rel=0.05)


def cache_spec(**changes: Any) -> WriteCacheSpec:
    """Return the spec of a cache of 1 MiB with a link of 1 GB/s; the tests supply the device behind it."""
    values = {
        "size": MIB,
        "link": 10**9,
        "command_time": 0,
        "piece": 64 * KIB,
        "depth": 1,
        "behind": {"kind": "null"},
    }
    return WriteCacheSpec.model_validate(values | changes)


def test_write_cache_joins_adjacent_writes_before_it_drains() -> None:
    """Sixteen adjacent writes complete at the speed of the link and reach the device as three pieces."""
    env = Environment()
    behind = SlowDevice(env, 5 * MS)
    cache = WriteCache(env=env, spec=cache_spec(), name="c", behind=behind)
    ends: list[int] = []
    for i in range(16):
        cache.submit(Request(Bio(16 * i, 16)), lambda: ends.append(env.now))
    env.run()
    assert ends == [(i + 1) * 16 * 512 for i in range(16)]
    assert [r.sectors for r in behind.requests] == [16, 112, 128]  # the first drains before others come
    assert {r.start_sector // 128 for r in behind.requests[1:]} == {0, 1}


def test_full_write_cache_is_as_slow_as_its_device() -> None:
    """Many writes to a full cache proceed at the rate of the device: a piece of 64 KiB every 5 ms."""
    env = Environment()
    behind = SlowDevice(env, 5 * MS)
    cache = WriteCache(env=env, spec=cache_spec(), name="c", behind=behind)
    ends: list[int] = []
    for i in range(128):
        cache.submit(Request(Bio(128 * 2 * i, 128)), lambda: ends.append(env.now))
    env.run()
    assert ends[-1] == pytest.approx((128 - 16) * 5 * MS, rel=0.03)


def test_striping_is_contiguous_on_every_member() -> None:
    """Each of four members gets its chunks of three rows at consecutive places."""
    env = Environment()
    members = [SlowDevice(env, 0) for _ in range(4)]
    spec = Raid0Spec.model_validate({"chunk": 4 * KIB, "members": [{"kind": "null"}]})
    raid = Raid0(env=env, spec=spec, name="md0", members=members)
    for i in range(12):
        raid.submit(Request(Bio(8 * i, 8)), lambda: None)
    env.run()
    assert [[r.start_sector for r in member.requests] for member in members] == [[0, 8, 16]] * 4
