"""XFS: the places of small files, and the content and the space of the log."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.harness import loop_config, only, run_small, small_scenario
from wbsim.experiments.config.experiment import parse
from wbsim.models.interfaces import Thread
from wbsim.models.machine import build
from wbsim.models.time_accounting import LOG_SPACE
from wbsim.sim.engine import Steps
from wbsim.sim.units import KIB, MIB, MS, S


def test_files_of_a_directory_lie_one_behind_the_other() -> None:
    """Each directory has one group; only inode chunks and directory blocks lie between the files."""
    starts: dict[int, list[int]] = {}
    scenario = small_scenario(processes=3, files=1_000, loops=2)
    group_sectors = only(scenario.mounts).filesystem.size // 512 // only(scenario.mounts).filesystem.agcount  # type: ignore[attr-defined]
    from wbsim.models.tracepoints import Signals

    signals = Signals()

    def queued(_: str, bio: Any, **__: Any) -> None:
        if bio.end_io is not None and bio.op == "W":
            starts.setdefault(bio.start_sector // group_sectors, []).append(bio.start_sector % group_sectors)

    signals.block_bio_queue.observers.append(queued)
    machine = run_small(signals=signals, processes=3, files=1_000, loops=2)
    assert len(starts) >= 3
    gaps = [b - a for places in starts.values() for a, b in pairwise(places)]
    assert len(gaps) > 0.4 * machine.cache.written_pages
    assert sum(gap == 8 for gap in gaps) > 0.95 * len(gaps)
    # 64 + k * 8: an inode chunk is 64 sectors, a directory block 8.
    assert {gap % 8 for gap in gaps} == {0}
    assert min(gaps) > 0, "blocks are allocated in order"


def test_a_held_group_makes_data_spill_into_the_next() -> None:
    """The allocator tries each AGF, and passes over one that is held."""
    from wbsim.models.machine import build

    machine = build(small_scenario(processes=1, files=400, loops=1, memory_mib=2), seed=1)
    first = only(machine.mounts).filesystem.placement.groups[0]  # type: ignore[attr-defined]
    neighbour = only(machine.mounts).filesystem.placement.groups[1]  # type: ignore[attr-defined]
    before = neighbour.free.blocks
    machine.env.call_at(10 * MS, 0, first.agf.try_down)
    machine.env.call_at(20 * MS, 0, lambda: first.agf.up(machine.env.task("holder")))
    machine.run()
    assert neighbour.free.blocks < before


def test_log_lies_in_the_middle_group() -> None:
    """mkfs.xfs puts the log of four groups into group 2, behind the 16 blocks of the group's head.

    A group has 3 GiB / 4 KiB = 786 432 blocks, so the log begins at block 2 * 786 432 + 16.
    """
    from wbsim.models.tracepoints import Signals

    text = loop_config("fs_mark -S0 -k -n 9 -s 4096 -L 1 -d a", dirty_mib=8, more="sync_after = true")
    signals, logged = Signals(), list[int]()
    signals.block_bio_queue.observers.append(
        lambda _, bio, task: logged.append(bio.start_sector) if bio.op == "FWF" else None
    )
    machine = build(parse(text, "x.toml").cases[0].scenario, 1, signals=signals)
    machine.run()
    assert logged[0] == 8 * (2 * 786_432 + 16)


def test_log_bytes_per_file_follow_from_the_items() -> None:
    """A file logs its creation, its allocation and its size: two inode items, a name, and extents.

    The inode counts once if no checkpoint lies in between.
    """
    scenario = small_scenario(
        processes=4, files=5_000, loops=3, memory_mib=64, changes={"filesystem.log.checkpoint_bytes": 1 * MIB}
    )
    from wbsim.models.machine import build

    machine = build(scenario, seed=1)
    machine.run()
    fs: Any = only(scenario.mounts).filesystem
    count = 60_000
    create = count * (fs.inode_log_bytes + fs.dirent_log_bytes)
    map_and_size = machine.cache.written_pages * (fs.inode_log_bytes + 2 * fs.extent_log_bytes)
    assert only(machine.mounts).filesystem.log_bytes == pytest.approx(create + map_and_size, rel=0.06)


def test_a_full_log_stops_the_writers_until_its_tail_moves() -> None:
    """A log of 512 KiB delays the run, but the run ends.

    18 000 files log about 9 MB, which fit into a log of 2 GiB without any wait.
    """
    wide = run_small(processes=2, files=3_000)
    small = {"filesystem.log.size": 512 * KIB, "filesystem.log.checkpoint_bytes": 256 * KIB}
    narrow = run_small(processes=2, files=3_000, changes=small)
    assert [only(of.programs).iterations[-1].count for of in (wide, narrow)] == [18_000, 18_000]
    waited = [
        sum(child.task.slept_ns.get(LOG_SPACE, 0) for child in only(of.programs).family.children)
        for of in (wide, narrow)
    ]
    assert waited[0] == 0 < waited[1]
    assert only(narrow.programs).iterations[-1].end_ns > only(wide.programs).iterations[-1].end_ns


@pytest.mark.source
def test_large_files_wait_for_log_space_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """The flusher finds the log full three times, for a second each.

    Each transaction asks for space, so at most one extent is written in between.
    """
    size = {"workload.file_size": 64 * MIB}
    machine = build(small_scenario(processes=1, files=1, loops=1, memory_mib=64, changes=size), 1)
    filesystem: Any = only(machine.mounts).filesystem
    log, waits = filesystem.metadata.log, list[int]()
    log.full = True

    def wait(thread: Thread) -> Steps:
        waits.append(machine.env.now)
        yield 1 * S
        log.full = len(waits) < 3

    monkeypatch.setattr(log, "wait_for_space", wait)
    machine.run()
    assert len(waits) == 3
    assert all(later - earlier >= 1 * S for earlier, later in pairwise(waits))
    assert machine.cache.written_pages > 0
