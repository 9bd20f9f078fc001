"""XFS: its free space, its extents, and the counts of the real kernel (docs/measurements.md D)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.harness import FIO, change, loop_config, one_of_each, only
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.running.reading import uses_of
from wbsim.models.catalogue.filesystems import FILESYSTEMS
from wbsim.models.catalogue.kernels import KERNELS
from wbsim.models.catalogue.machines import MACHINES
from wbsim.models.filesystems.xfs.free_space import RESERVED, FreeSpace, FreeTables
from wbsim.models.filesystems.xfs.layout import allocate, prealloc, target_of, write_all
from wbsim.models.filesystems.xfs.spec import XfsSpec, XfsWriterCosts
from wbsim.models.machine import Machine, Scenario, build
from wbsim.models.page_cache.file_pages import FileExtent, FilePages
from wbsim.models.page_cache.pages import (
    DELAYED,
    UNWRITTEN,
    delayed_extent,
    dirty_page_from,
    next_dirty,
    take_run,
)
from wbsim.sim.units import GIB, KIB, MIB


@given(steps=st.lists(st.tuples(st.integers(0, 300), st.integers(1, 40), st.booleans()), max_size=80))
def test_no_block_is_given_twice(steps: list[tuple[int, int, bool]]) -> None:
    """Free and used blocks are disjoint and add up to the disk.

    Blocks that are given back join their neighbours, and a double free is refused.
    """
    space = FreeSpace(0, 256)
    used: dict[int, int] = {}
    for target, length, back in steps:
        if back and used:
            block = min(used, key=lambda first: abs(first - target))
            space.give_back(block, used[block])
            with pytest.raises(ValueError, match="free already"):
                space.give_back(block, used.pop(block))
        elif (taken := space.take_near(target, length)) is not None:
            used[taken[0]] = taken[1]
            assert taken[1] <= length
    free = space.extents()
    blocks = [b for first, size in [*free, *used.items()] for b in range(first, first + size)]
    assert sorted(blocks) == list(range(256))
    assert space.blocks == sum(size for _, size in free)
    assert all(a.first + a.size < b.first for a, b in pairwise(free))


def test_free_tables_keep_room_for_all_changes() -> None:
    """64 changes use up the room of a call; each may open one row by block, and two rows by size."""
    tables = FreeTables()
    for changes in (1, RESERVED, RESERVED + 1):
        by_block, by_size, *_ = tables.with_room(changes)
        assert len(by_block.rows.counts) > max(changes, RESERVED)
        assert len(by_size.rows.counts) > 2 * max(changes, RESERVED)
    tables = FreeTables()
    room = len(tables.with_room(1).by_block.rows.counts)
    tables.spaces.by_block.rows.sizes[0] = room - 1  # all rows count as used
    for _ in range(RESERVED - 1):
        assert len(tables.with_room(1).by_block.rows.counts) == room
    assert len(tables.with_room(1).by_block.rows.counts) > room


@given(holes=st.sets(st.integers(0, 60), min_size=1), target=st.integers(0, 120), length=st.integers(1, 4))
def test_near_takes_the_target_or_the_nearest_by_block(holes: set[int], target: int, length: int) -> None:
    """No place is nearer than the first neighbour by block, if that is long enough."""
    space = FreeSpace(0, 0)
    for hole in holes:
        space.give_back(8 * hole, 5)
    places = [_place(8 * hole, target, length) for hole in holes]
    taken = space.take_near(target, length)
    assert taken is not None
    assert abs(taken[0] - target) == min(abs(place - target) for place in places)


def _place(first: int, target: int, length: int) -> int:
    return target if first <= target <= first + 5 - length else first


def test_long_request_gets_the_longest_free_extent() -> None:
    """xfs_bmap_select_minlen: all blocks of the longest free extent are taken."""
    space = FreeSpace(0, 10)
    space.give_back(20, 30)
    assert space.take_near(0, 99) == (20, 30)
    assert space.take_near(0, 10) == (0, 10)
    assert space.take_near(0, 1) is None


@pytest.mark.parametrize(
    ("extents", "found"),
    [
        ([(200, 5), (2_500, 5)], 200),  # of one size: the nearer extent, on the other side
        ([(100, 5), (1_500, 5)], 1_500),
        ([(3_000, 7), (1_100, 12)], 1_100),  # in doubling sizes: from 5 to 7, and then from 10 on
        ([(3_000, 7), (1_100, 9)], 3_000),  # the sizes in between are skipped
        ([(400, 30), (2_400, 5)], 400),
        ([(2_400, 40), (300, 5)], 2_400),  # the search by size begins with five blocks at 1 000
        ([(1_050, 6)], 1_050),
        ([(940, 70)], 1_000),  # an extent around the target: exactly the target
        ([(940, 62)], 940),  # or its beginning, if it is too short from the target on
    ],
)
def test_near_search_goes_by_block_and_by_size(extents: list[tuple[int, int]], found: int) -> None:
    """Five blocks are wanted near 1 000, where the neighbours have one block each.

    xfs_alloc_ag_vextent_near looks at the neighbours one by one, and at the sizes at the same time.
    """
    space = FreeSpace(0, 0)
    for first, size in extents:
        space.give_back(first, size)
    around = [block for first, size in extents for block in range(first - 1, first + size + 1)]
    for single in (910, 920, 930, 1_010, 1_020, 1_030):
        if single not in around:
            space.give_back(single, 1)
    assert space.take_near(1_000, 5) == (found, 5)
    space.check()


def test_free_neighbours_are_joined_on_both_sides() -> None:
    """A neighbour that begins with block 0 is joined, too."""
    space = FreeSpace(0, 0)
    for block, length in ((0, 3), (7, 2), (3, 4)):
        space.give_back(block, length)
    assert space.extents() == [(0, 9)]
    space.check()


def test_a_group_may_have_a_tebibyte() -> None:
    """XFS_AG_MAX_BYTES: 2^28 blocks, found by size and by place."""
    space = FreeSpace(16, (1 << 28) - 16)
    assert space.longest() == (1 << 28) - 16
    assert space.take_near(1 << 27, 5) == (1 << 27, 5)
    assert space.take_near(0, 1 << 28) == ((1 << 27) + 5, (1 << 27) - 5)


FAR = 1 << 40
"""A page behind every page that these tests write, and more unclaimed blocks than they claim."""


def rules(kernel: str) -> Any:
    """Return the rules of XFS in *kernel*."""
    return KERNELS[kernel].filesystems["xfs"]


RULES = rules("6.17")


def write_back(
    file: FilePages, space: FreeSpace, budget: int, start: int, unwritten: int
) -> list[tuple[int, int]]:
    """Give blocks to dirty pages and put them under writeback; return first block and pages of each run."""
    runs, page = list[tuple[int, int]](), start
    while budget and (page := int(dirty_page_from(file.pages.states, file.pages.size, page))) >= 0:
        if file.pages.states[page] == DELAYED:
            near = max(int(target_of(file.pages, page, 1 << 20)), 0)
            allocate(file.pages, space.with_room(1), 0, page, near, 0, unwritten=unwritten)
        run = int(take_run(file.pages.states, file.pages.blocks, page, budget))
        runs += [(int(file.pages.blocks[page]), run)] if run else []
        page, budget = page + run, budget - run
    return runs


@given(data=st.data())
def test_every_dirty_page_gets_one_block(data: st.DataObject) -> None:
    """Random writes alternate with walks.

    * Each page keeps its first block, and no block has two pages.
    * The blocks of the bios are blocks of the extents.
    * Free and used blocks add up to the disk, and all free blocks are unclaimed or claimed by one page.
    """
    file, space = FilePages(256, base=0), FreeSpace(100, 900)
    rule = prealloc(RULES, data.draw(st.sampled_from([None, 16, 32])))
    blocks, unclaimed, unwritten = dict[int, int](), 900, data.draw(st.sampled_from([0, UNWRITTEN]))
    for burst in data.draw(
        st.lists(st.sets(st.integers(0, 199), min_size=1, max_size=9), min_size=1, max_size=12)
    ):
        left = np.array(sorted(burst))
        while True:
            done, _, claims = write_all(file.pages, left, 1, rule, FAR, unclaimed)
            left, unclaimed = left[done:], unclaimed - claims
            assert unclaimed + file.claims_from(0) == space.blocks
            if not len(left):
                break
            allocate(file.pages, space.with_room(1), 0, file.size, 0, 0, unwritten=unwritten)
        if data.draw(st.booleans()):
            budget, start = data.draw(st.integers(1, 300)), data.draw(st.integers(0, 199))
            bios = write_back(file, space, budget, start, unwritten)
            found = {e.page + i: e.block + i for e in file.extents() for i in range(e.pages)}
            assert blocks.items() <= found.items(), "a page got another block"
            blocks = found
            assert len(set(found.values())) == len(found), "a block was given twice"
            assert {b + i for b, n in bios for i in range(n)} <= set(found.values())
            assert space.blocks + len(found) == 900
            assert unclaimed + file.claims_from(0) == space.blocks
    write_back(file, space, 1 << 40, 0, unwritten)
    assert next_dirty(file.pages, 0) == -1
    unclaimed += file.claims_from(file.size)
    for block, pages in file.trim():
        space.give_back(block, pages)
        unclaimed += pages
    lies = {e.page + i for e in file.extents() for i in range(e.pages)}
    assert max(lies) < file.size
    assert unclaimed == space.blocks == 900 - len(lies)


def test_file_may_have_blocks_far_from_its_group() -> None:
    """Block numbers count from the file's group; beyond 2^31 blocks they take more room, and stay right."""
    file, space = FilePages(64, base=5 << 33), FreeSpace(7, 50)
    for page, first_block in ((0, 5 << 33), (30, 2 << 33)):
        write_all(file.pages, np.array([page]), 1, prealloc(rules("6.17"), None), FAR, FAR)
        first = file.reach(first_block, 1 << 20)
        allocate(file.pages, space.with_room(1), 0, page, 0, first)
    assert [(e.page, e.block) for e in file.extents()] == [(0, (5 << 33) + 7), (30, (2 << 33) + 8)]


def test_trim_frees_the_blocks_behind_the_end() -> None:
    """The last close gives speculative preallocation back."""
    file, space = FilePages(64, base=0), FreeSpace(500, 100)
    write_all(file.pages, np.arange(20), 1, prealloc(rules("2.6.34"), None), FAR, FAR)
    allocate(file.pages, space.with_room(1), 0, 0, 0, 0)
    assert file.trim() == [(520, 12)]
    assert file.extents() == [FileExtent(0, 500, 20)]


@pytest.mark.parametrize(
    ("kernel", "allocsize", "written", "end"),
    [
        ("2.6.34", None, 1, 16), ("2.6.34", None, 16, 16), ("2.6.34", None, 17, 32), ("2.6.34", 64, 1, 64),
        ("2.6.34", 64, 65, 128), ("6.17", None, 15, 15), ("6.17", None, 17, 48), ("6.17", None, 49, 112),
    ],
)  # fmt: skip
def test_growing_file_reserves_by_the_rule_of_its_kernel(
    kernel: str, allocsize: int | None, written: int, end: int
) -> None:
    """A file reserves to the end of a unit of 64 KiB up to 2.6.37, or of allocsize.

    Later kernels reserve twice the extent in front, and nothing below 64 KiB.
    """
    file = FilePages(512, base=0)
    done, clean, claims = write_all(
        file.pages, np.arange(written), 1, prealloc(rules(kernel), allocsize), FAR, FAR
    )
    assert (done, clean, claims) == (written, written, end)
    assert delayed_extent(file.pages, 0) == (0, end)


def kernel_with(dirty_mib: int) -> dict[str, Any]:
    """Return the measured kernel with vm.dirty_bytes, and half of it in the background."""
    kernel = KERNELS["6.18"].inputs()
    kernel["dirty"] |= {"dirty_bytes": dirty_mib * MIB, "dirty_background_bytes": dirty_mib * MIB // 2}
    return kernel


def fio_scenario(
    *, dirty: int, jobs: int, nrfiles: int, filesize: int, rw: str = "randwrite", agcount: int = 4
) -> Scenario:
    """Return a scenario of docs/measurements.md D: fio on a fresh XFS, *dirty* and *filesize* in MiB."""
    size = filesize * MIB
    filesystem = {**FILESYSTEMS["loop-xfs"].inputs(), "agcount": agcount}
    workload = {
        "kind": "fio", "rw": rw, "numjobs": jobs, "directories": jobs, "nrfiles": nrfiles, "filesize": size,
        "app_time": 750, "fork_time": 150_000, "start_time": 0, "idle_time": 0, "spin_time": 0,
    }  # fmt: skip
    return Scenario.model_validate(
        one_of_each(MACHINES["loop-vm"].inputs(), kernel_with(dirty), filesystem, workload, sync_after=True)
    )


def run(scenario: Scenario, seed: int = 1) -> Machine:
    """Return the machine after its run, in which no page was lost."""
    machine = build(scenario, seed)
    machine.run()
    cache = machine.cache
    assert cache.dirty == cache.writeback == 0
    assert cache.dirtied == cache.written_pages
    return machine


def counts(machine: Machine) -> list[int]:
    """Return the extents of each file."""
    return list(only(machine.mounts).filesystem.extents_per_file())


REAL = [
    ({"dirty": 16, "jobs": 1, "nrfiles": 4, "filesize": 64}, 13_436),
    ({"dirty": 32, "jobs": 1, "nrfiles": 4, "filesize": 64}, 11_704),
    ({"dirty": 64, "jobs": 1, "nrfiles": 4, "filesize": 64}, 8_895),
    ({"dirty": 32, "jobs": 1, "nrfiles": 1, "filesize": 256}, 48_961),
    ({"dirty": 32, "jobs": 2, "nrfiles": 4, "filesize": 32}, 5_493),
    ({"dirty": 64, "jobs": 1, "nrfiles": 4, "filesize": 256}, 53_180),
    ({"dirty": 128, "jobs": 1, "nrfiles": 4, "filesize": 256}, 45_766),
    ({"dirty": 256, "jobs": 1, "nrfiles": 4, "filesize": 256}, 35_220),
    ({"dirty": 512, "jobs": 1, "nrfiles": 4, "filesize": 256}, 16_263),
    ({"dirty": 128, "jobs": 1, "nrfiles": 1, "filesize": 1024}, 185_780),
    ({"dirty": 128, "jobs": 2, "nrfiles": 4, "filesize": 128}, 22_426),
    ({"dirty": 48, "jobs": 3, "nrfiles": 2, "filesize": 96, "agcount": 2}, 18_390),
    ({"dirty": 64, "jobs": 1, "nrfiles": 16, "filesize": 32}, 5_783),
    ({"dirty": 128, "jobs": 8, "nrfiles": 1, "filesize": 64, "agcount": 8}, 6_897),
]
"""The extents per file in Linux 6.18 (docs/measurements.md D).

The last three rows were simulated before they were compared.
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("what", "real"), REAL, ids=lambda value: str(value) if isinstance(value, int) else None
)
def test_extents_per_file_are_as_many_as_in_the_kernel(what: dict[str, int], real: int) -> None:
    """The mean of five runs, which differ by up to 10 %, is within 15 % of xfs_bmap's count at every point.

    No constant is fitted to the counts.
    """
    found = [counts(run(fio_scenario(**what), seed)) for seed in range(1, 6)]
    assert np.mean(found) == pytest.approx(real, rel=0.15)


def test_random_and_sequential_job_together_match_the_kernel() -> None:
    """Each job has two files in the same directory: 23 929 extents within 15 %, and four."""
    inputs = fio_scenario(dirty=64, jobs=1, nrfiles=2, filesize=128).inputs()
    inputs["programs"]["fio"]["workload"] |= {"rw": ["randwrite", "write"], "numjobs": 2}
    found = [sorted(counts(run(Scenario.model_validate(inputs), seed))) for seed in (1, 2, 3)]
    *sequential, first, second = np.mean(found, axis=0)
    assert (first + second) / 2 == pytest.approx(23_929, rel=0.15)
    assert sequential == pytest.approx([4, 4], abs=1)


def test_files_that_fit_into_memory_lie_in_a_few_pieces() -> None:
    """Files are written at random, and written back at the end; each earlier end of a file leaves a piece.

    The kernel gave 8 to 22 pieces for six files of 256 MiB, 13.3 on average (the standard error is 2.3).
    """
    found = np.concatenate(
        [counts(run(fio_scenario(dirty=8_192, jobs=1, nrfiles=6, filesize=256), s)) for s in (1, 2)]
    )
    assert found.mean() == pytest.approx(13.3, abs=3 * 2.3)
    assert found.min() > 1


def test_pages_are_clean_after_the_conversion_of_their_extents() -> None:
    """Extents are unwritten from 5.10 on; each conversion takes 10 ms, one after another in a file.

    It also logs 28 bytes, which lengthen the log record by their share of 8 us for 32 256 bytes.
    """
    ends = {}
    for unwritten in (True, False):
        inputs = fio_scenario(dirty=8_192, jobs=1, nrfiles=1, filesize=1).inputs()
        inputs["machine"]["processors"]["paths"]["filesystems"]["xfs"]["flusher"]["ioend_ns"] = 10_000_000
        inputs["kernel"]["filesystems"]["xfs"]["unwritten"] = unwritten
        machine = run(Scenario.model_validate(inputs))
        ends[unwritten] = machine.env.now, counts(machine)
    (late, ranges), (early, same) = ends[True], ends[False]
    assert ranges == same
    logged_ns = ranges[0] * 28 * 8_000 / 32_256
    assert 10_000_000 * ranges[0] < late <= 10_000_000 * ranges[0] + early + logged_ns


DD_REAL = [
    ((128, 2, 512, 2), 3.8), ((128, 4, 256, 4), 4.9), ((128, 8, 128, 8), 4.4), ((32, 8, 128, 8), 5.9),
    ((128, 4, 256, 1), 1.0),
]  # fmt: skip
"""(dirty MiB, streams, MiB each, streams in a directory) and extents per file, the mean of three runs."""


def dd_scenario(dirty: int, streams: int, size: int, sharing: int) -> Scenario:
    """Return a dd of *streams* files of *size* MiB, *sharing* of them in each directory."""
    inputs = fio_scenario(dirty=dirty, jobs=1, nrfiles=1, filesize=16).inputs()
    inputs["programs"]["fio"]["workload"] = {
        "kind": "dd", "streams": streams, "directories": streams // sharing, "bs": MIB, "count": size,
        "zero_page_time": 500, "fork_time": 1_000_000,
    }  # fmt: skip
    return Scenario.model_validate(inputs)


@pytest.mark.parametrize(
    ("stripe_unit", "breaks"),
    [(None, {8_176, 16_368, 32_752, 65_520}), (256 * KIB, {3_328, 7_680, 16_128, 32_768})],
)
def test_dd_streams_break_at_the_pages_of_the_kernel(stripe_unit: int | None, breaks: set[int]) -> None:
    """Preallocation doubles, and ends with a stripe unit if there is one.

    The maps of the kernel and of the model break at the same pages.
    """
    inputs = dd_scenario(128, 4, 256, 4).inputs()
    change(inputs, "filesystem.stripe_unit", stripe_unit)
    machine = run(Scenario.model_validate(inputs))
    found = [e for file in only(machine.mounts).filesystem.layouts() for e in file.extents()]
    assert max(breaks) in {extent.page for extent in found} <= {0, *breaks}
    if stripe_unit is not None:
        assert all(extent.block % 64 == 0 for extent in found)


@pytest.mark.parametrize(("what", "real"), DD_REAL)
def test_dd_streams_have_as_many_extents_as_in_the_kernel(
    what: tuple[int, int, int, int], real: float
) -> None:
    """The count per file is within 1.5 of xfs_bmap's; streams that share no directory lie in one piece."""
    found = np.mean(counts(run(dd_scenario(*what))))
    assert found == pytest.approx(real, abs=1.5 if what[3] > 1 else 0)


def test_a_writer_and_the_flusher_convert_one_extent_once() -> None:
    """Many small files grow with little dirty memory, so both tasks often want the same extent.

    No page is lost.
    """
    for seed in range(6):
        machine = run(fio_scenario(dirty=8, jobs=4, nrfiles=25, filesize=1), seed)
        assert sum(file.size for file in only(machine.mounts).filesystem.layouts()) == 100 * 256  # type: ignore[attr-defined]


def test_sequential_files_lie_in_one_piece() -> None:
    """Four jobs write 64 MiB each in order, in separate groups, and have one extent each, as measured."""
    assert counts(run(fio_scenario(dirty=32, jobs=4, nrfiles=1, filesize=64, rw="write"))) == [1, 1, 1, 1]


def test_more_dirty_memory_means_fewer_extents() -> None:
    """No block has two owners, and free and used blocks add up to the disk.

    All preallocated blocks are given back.
    """
    means = []
    for dirty in (8, 16, 32):
        machine = run(fio_scenario(dirty=dirty, jobs=2, nrfiles=2, filesize=16))
        means.append(np.mean(counts(machine)))
        groups = only(machine.mounts).filesystem.placement.groups  # type: ignore[attr-defined]
        used = [e for file in only(machine.mounts).filesystem.layouts() for e in file.extents()]
        blocks = np.concatenate([np.arange(e.block, e.block + e.pages) for e in used])
        assert len(np.unique(blocks)) == len(blocks) == 4 * 16 * 256
        log, inode_chunk, names = 16_384, 8, 1
        taken = len(blocks) + log + 2 * (inode_chunk + names)  # of both directories, in separate groups
        assert sum(group.free.blocks for group in groups) + taken == (12 * GIB - 4 * 64 * KIB) // 4096
    assert means[0] > means[1] > means[2]


def contended(rmapbt: bool) -> tuple[int, Machine]:
    """Return the extents outside of the first group, and the machine.

    Random writes go into one directory of an XFS of four groups.
    """
    text = loop_config(
        f"{FIO} --rw=randwrite --nrfiles=4 --filesize=16m --name=a", dirty_mib=8,
        more=f'filesystem.agcount = 4\nfilesystem.rmapbt = {str(rmapbt).lower()}\nmachine.like = "desk-vm"',
    ).replace('machine.like = "loop-vm"\n', "")  # fmt: skip
    of = build(parse(text, "x.toml").cases[0].scenario, 1)
    filesystem: Any = only(of.mounts).filesystem
    of.run()
    blocks = np.concatenate([file.extent_table()[:, 1] for file in filesystem.layouts()])
    return int((blocks >= filesystem.group_blocks).sum()), of


def test_conversions_lock_groups_only_with_reverse_mapping() -> None:
    """A good third of the extents is in other groups, and threads work twice as long.

    Threads also wait for AGFs.  None of this happens without reverse mapping (docs/measurements.md J).
    """
    (without, plain), (beyond, mapped) = contended(False), contended(True)
    extents = sum(only(mapped.mounts).filesystem.extents_per_file())
    assert without < 0.01 * extents
    assert 0.2 * extents < beyond < 0.75 * extents
    ran = []
    for of in (plain, mapped):
        (flusher,) = of.flushers.threads
        workers = [thread for thread in of.threads if "conv" in thread.task.name]
        for threads in ([flusher], workers):
            waited = {name for thread in threads for name in thread.task.slept_ns}
            assert ("lock AGF" in waited) == (of is mapped)
        assert "lock ILOCK" in flusher.task.slept_ns
        ran.append(flusher.task.ran_ns + sum(thread.task.ran_ns for thread in workers))
    assert 1.6 < ran[1] / ran[0] < 2.8
    (agf,) = (lock for lock in mapped.locks if lock.name == "mnt/AGF")
    used = uses_of(mapped)["lock mnt/AGF"]
    assert 0.25 * agf.stat.hold_ns < used * mapped.env.now < agf.stat.hold_ns, (
        "the use is that of the busiest of four AGFs"
    )


def small_files(rmapbt: bool, kernel: str) -> tuple[int, int, int, Machine]:
    """Write back 400 files of one page each in two groups.

    Return the time for allocations, the time of the workers for completions (ns), the acquisitions of AGFs,
    and the machine.
    """
    text = loop_config(
        "fs_mark -k -S0 -n 200 -s 4096 -L 1 -d /mnt/a -d /mnt/b", dirty_mib=8, kernel=kernel,
        more=f'filesystem.agcount = 2\nfilesystem.rmapbt = {str(rmapbt).lower()}\nmachine.like = "desk-vm"\n'
        "sync_after = true",
    ).replace('machine.like = "loop-vm"\n', "")  # fmt: skip
    of = build(parse(text, "x.toml").cases[0].scenario, 1)
    of.run()
    allocate_ns = sum(thread.spent.allocate for thread in of.threads)
    complete_ns = sum(thread.spent.complete for thread in of.threads if "xfs-" in thread.task.name)
    (agf,) = (lock for lock in of.locks if lock.name == "mnt/AGF")
    return allocate_ns, complete_ns, agf.stat.acquisitions, of


@pytest.mark.parametrize(("kernel", "converts"), [("6.18", True), ("5.4", False)])
def test_small_files_update_the_reverse_mapping(kernel: str, converts: bool) -> None:
    """An allocation takes 22 us more on the desk, and a conversion takes 15 us more from 5.10 on.

    While a worker has a group, files of its directory go to the next one.  How many do depends on the seed:
    with 18 draws, a group had 10 to 43 % of the allocations.
    """
    (plain, plain_ends, locked, _), (mapped, mapped_ends, more, of) = (
        small_files(rmapbt, kernel) for rmapbt in (False, True)
    )
    filesystem: Any = only(of.mounts).filesystem
    assert mapped - plain == pytest.approx(400 * 22_000, rel=0.03), "the number of allocations varies"
    if converts:  # otherwise the run ends before its last completions
        assert mapped_ends - plain_ends == 400 * 15_000
    assert more - locked == 400 * (1 + converts)
    agfs = [group.agf.stat.acquisitions for group in filesystem.placement.groups]
    assert sum(agfs) >= 400 * (2 + converts)
    assert min(agfs) > sum(agfs) / 15, "each of the two groups has a share"


def test_a_group_has_at_most_a_tebibyte() -> None:
    """Four groups of 1 TiB are allowed; with four more blocks, each group has a block too many."""
    inputs = {**FILESYSTEMS["loop-xfs"].inputs(), "agcount": 4}
    assert (
        XfsSpec.model_validate({**inputs, "size": 4 * GIB << 10}).room == (4 << 40) - 4 * 64 * KIB - 64 * MIB
    )
    with pytest.raises(
        ValidationError, match="a group has 1099511631872 B; it must be larger than group_head"
    ):
        XfsSpec.model_validate({**inputs, "size": (4 * GIB << 10) + 4 * 4_096})


def test_agi_time_above_the_time_of_creat_is_refused() -> None:
    """A part that is as long as creat(2) is allowed."""
    costs: Any = MACHINES["loop-vm"].processors.paths.filesystems
    inputs = costs["xfs"].writer.inputs()
    XfsWriterCosts.model_validate({**inputs, "agi_ns": 29_000})
    with pytest.raises(ValidationError, match=r"29001 ns is longer than create_ns, .* at most 29000 ns"):
        XfsWriterCosts.model_validate({**inputs, "agi_ns": 29_001})
