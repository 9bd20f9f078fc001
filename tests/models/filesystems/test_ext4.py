"""ext4: its free space, its preallocations, and the maps of the real kernel (docs/measurements.md E)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness import one_of_each, only
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.pictures.disk import owners
from wbsim.models.catalogue.filesystems import FILESYSTEMS
from wbsim.models.catalogue.kernels import KERNELS
from wbsim.models.catalogue.machines import MACHINES
from wbsim.models.filesystems.ext4.geometry import GROUP_BLOCKS, Geometry
from wbsim.models.filesystems.ext4.layout import placed_in, window, write_all
from wbsim.models.filesystems.ext4.mballoc import BlockGroup, Mballoc
from wbsim.models.machine import Machine, build
from wbsim.models.page_cache.file_pages import FilePages
from wbsim.models.page_cache.pages import UNWRITTEN, hold_blocks, use_held
from wbsim.models.scenario import Scenario
from wbsim.sim.units import KIB, MIB

SMALL = Geometry(blocks=8 * GROUP_BLOCKS - 20_000, flex_groups=4, descriptor_blocks=2, journal_blocks=64)

# -- free space ------------------------------------------------------------------------------------------


def test_metadata_of_mkfs_lies_where_dumpe2fs_prints_it() -> None:
    """The numbers are blocks in single groups of a fresh filesystem of 12 GiB, and all its free blocks."""
    geometry = FILESYSTEMS["loop-ext4"].geometry
    assert [geometry.head_blocks(group) for group in (0, 1, 2, 3, 48)] == [9_257, 1_027, 0, 1_027, 8_224]
    assert GROUP_BLOCKS - geometry.head_blocks(49) == 15_357
    assert FILESYSTEMS["loop-ext4"].room == 3_069_724 * 4_096
    assert sum(GROUP_BLOCKS - geometry.head_blocks(group) for group in range(96)) == 3_069_724


@given(taken=st.lists(st.tuples(st.integers(0, GROUP_BLOCKS - 1), st.integers(1, 3_000)), max_size=12))
def test_buddies_of_each_order_are_aligned_and_free(taken: list[tuple[int, int]]) -> None:
    """The first buddy of an order is aligned and free.

    An order has no buddy if no aligned run of its length is free.
    """
    group = BlockGroup(3, 100)
    bitmap = np.zeros(GROUP_BLOCKS, bool)
    bitmap[100:] = True
    for block, length in taken:
        whole = bool(bitmap[block : block + length].all()) and block + length <= GROUP_BLOCKS
        assert group.take(block, length) == whole
        if whole:
            bitmap[block : block + length] = False
    for order in range(14):
        aligned = bitmap.reshape(-1, 1 << order).all(axis=1)
        assert (group.order >= order) == bool(aligned.any())
        if group.order >= order:
            block = group.first_of_order(order)
            assert block % (1 << order) == 0
            assert aligned[block >> order]


@given(data=st.data())
def test_no_block_is_given_twice(data: st.DataObject) -> None:
    """Blocks are taken by place or by size and given back, in any order."""
    mballoc = Mballoc(SMALL, by_order=data.draw(st.booleans()))
    mballoc.read_bitmaps(0)
    owner = np.zeros(SMALL.blocks, bool)
    for group in range(SMALL.groups):
        owner[group * GROUP_BLOCKS :][: SMALL.head_blocks(group)] = True
    held: list[tuple[int, int]] = []
    for _ in range(data.draw(st.integers(1, 40))):
        length = data.draw(st.sampled_from([1, 7, 512, 1_500, 2_048, 30_000]))
        kind = data.draw(st.sampled_from(["find", "exactly", "back"]))
        if kind == "back" and held:
            block, length = held.pop(data.draw(st.integers(0, len(held) - 1)))
            mballoc.give_back(block, length)
            owner[block : block + length] = False
            continue
        if kind == "exactly":
            block = data.draw(st.integers(0, len(owner) - 1))
            if not mballoc.take_exactly(block, length):
                continue
        else:
            block, length = mballoc.find(data.draw(st.integers(0, 7)), length)
        assert not owner[block : block + length].any()
        owner[block : block + length] = True
        held.append((block, length))
    assert sum(mballoc.free_blocks(flex) for flex in range(SMALL.flexes)) == (~owner).sum()


def test_long_request_gets_the_longest_free_run() -> None:
    """Requests find blocks until the disk is full: 8 * 32 768 - 20 000 - 4 197 blocks.

    mkfs uses 4 197 blocks:

    * 2 * 4 * (2 + 512) = 4 112 for the bitmaps and inode tables of two flex groups
    * 5 * (1 + 2) = 15 for the superblocks and descriptors of the groups 0, 1, 3, 5 and 7
    * 6 for the root directory and lost+found, and 64 for the journal
    """
    mballoc = Mballoc(SMALL, by_order=True)
    lengths = []
    while (found := mballoc.find(0, 32_768))[1]:
        lengths.append(found[1])
    assert sum(lengths) == 237_947
    assert mballoc.find(0, 1) == (0, 0)


# -- preallocations --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "count", "size", "expected"),
    [
        (0, 1, 17, (0, 32)), (20, 5, 200, (0, 256)), (300, 1, 301, (0, 512)), (600, 9, 700, (512, 1_024)),
        (1_030, 4, 1_100, (1_024, 2_048)), (5_000, 1, 9_000, (4_096, 6_144)), (2_045, 10, 2_055, (0, 2_048)),
    ],
)  # fmt: skip
def test_the_window_grows_with_the_file(page: int, count: int, size: int, expected: tuple[int, int]) -> None:
    """ext4_mb_normalize_request: a file up to 1 MiB is one window, and larger files have 2, 4 and 8 MiB.

    A request may reach beyond its window.
    """
    file = FilePages(16_384, base=0)
    file.pages.size[0] = size
    assert window(file.pages, page, count) == expected


def test_window_leaves_out_pages_with_blocks() -> None:
    """Pages on one side have blocks, some unwritten, and pages on the other side have held blocks."""
    file = FilePages(4_096, base=0)
    assert write_all(file.pages, np.arange(3_000), 4_096, 4_096) == (3_000, 3_000, 3_000)
    hold_blocks(file.pages, 2_100, 700, 50)
    use_held(file.pages, 2_100, 20)
    use_held(file.pages, 2_120, 30, UNWRITTEN)
    hold_blocks(file.pages, 2_900, 9_000, 20)
    assert window(file.pages, 2_500, 1) == (2_150, 2_900)


@pytest.mark.parametrize(
    ("page", "count", "got", "expected"), [(2_045, 10, 200, 1_848), (100, 50, 200, 0), (900, 10, 300, 900)]
)
def test_blocks_too_few_for_the_window_cover_the_request(
    page: int, count: int, got: int, expected: int
) -> None:
    """ext4_mb_new_inode_pa: the blocks lie at the window's end, at its start, or from the request on."""
    assert placed_in(0, 2_048, page, count, got) == expected


# -- the real kernel's maps ------------------------------------------------------------------------------


def scenario(workload: dict[str, Any], dirty_mib: int | None, kernel: str = "6.18") -> Scenario:
    """Return a scenario of docs/measurements.md E: a fresh ext4 of 12 GiB."""
    rules = KERNELS[kernel].inputs()
    if dirty_mib is not None:
        rules["dirty"] |= {"dirty_bytes": dirty_mib * MIB, "dirty_background_bytes": dirty_mib * MIB // 2}
    return Scenario.model_validate(
        one_of_each(
            MACHINES["loop-vm"].inputs(), rules, FILESYSTEMS["loop-ext4"].inputs(), workload, sync_after=True
        )
    )


def fio(jobs: int, nrfiles: int, filesize: int, rw: str = "randwrite") -> dict[str, Any]:
    """Return a fio with a directory for each job; *filesize* is in KiB."""
    return {
        "kind": "fio",
        "rw": rw,
        "numjobs": jobs,
        "directories": jobs,
        "nrfiles": nrfiles,
        "filesize": filesize * KIB,
        "app_time": 750,
        "fork_time": 150_000,
        "start_time": 0,
        "idle_time": 0,
        "spin_time": 0,
    }


def dd(streams: int, size: int, sharing: int) -> dict[str, Any]:
    """Return a dd of *streams* files of *size* MiB, *sharing* of them in each directory."""
    return {
        "kind": "dd", "streams": streams, "directories": streams // sharing, "bs": MIB, "count": size,
        "zero_page_time": 500, "fork_time": 1_000_000,
    }  # fmt: skip


def run(what: Scenario, seed: int = 1) -> Machine:
    """Return the machine after its run, in which no page was lost and no block has two owners."""
    machine = build(what, seed)
    machine.run()
    assert machine.cache.dirty == machine.cache.writeback == 0
    tables = [file.extent_table() for file in files(machine)]
    blocks = np.concatenate(
        [np.arange(block, block + count) for table in tables for _, block, count in table]
    )
    assert len(np.unique(blocks)) == len(blocks) == sum(file.size for file in files(machine))
    return machine


def files(machine: Machine) -> Any:
    """Return the files of *machine*, in the order of creation."""
    return only(machine.mounts).filesystem.layouts()


def counts(machine: Machine) -> list[int]:
    """Return the extents of each file, as filefrag counts them."""
    return list(only(machine.mounts).filesystem.extents_per_file())


@settings(max_examples=15)
@given(
    dirty=st.sampled_from([8, 32, None]),
    jobs=st.integers(1, 3),
    nrfiles=st.integers(1, 4),
    filesize=st.sampled_from([4, 64, 68, 700, 3_072, 20_000]),
    rw=st.sampled_from(["write", "randwrite"]),
    kernel=st.sampled_from(["2.6.34", "3.11", "6.18"]),
)
def test_free_and_used_blocks_add_up_to_the_disk(
    dirty: int | None, jobs: int, nrfiles: int, filesize: int, rw: str, kernel: str
) -> None:
    """`check` counts free blocks, pages and trees; blocks that are held for a file are given back once."""
    machine = run(scenario(fio(jobs, nrfiles, filesize, rw), dirty, kernel))
    files = only(machine.mounts).filesystem.layouts()
    assert sum(file.size for file in files) == jobs * nrfiles * filesize // 4


def small_disk(
    descriptors: int, nrfiles: int, filesize: int, rw: str, kernel: str, dirty_mib: int | None
) -> Scenario:
    """Return a fio on an ext4 of 256 MiB, of which descriptors take *descriptors* blocks in two groups."""
    inputs = scenario(fio(1, nrfiles, filesize, rw), dirty_mib, kernel).inputs()
    inputs["mounts"]["mnt"]["filesystem"] |= {
        "size": 256 * MIB,
        "descriptors": descriptors * 4 * KIB,
        "journal": {**FILESYSTEMS["loop-ext4"].journal.inputs(), "size": 4 * MIB},
    }
    return Scenario.model_validate(inputs)


@pytest.mark.parametrize(
    ("dirty", "descriptors", "nrfiles", "filesize", "rw"),
    [(None, 28_000, 1, 29_104, "randwrite"), (None, 28_000, 1, 29_304, "randwrite"),
     (None, 28_000, 665, 44, "write"), (None, 31_218, 63, 64, "write"),
     (None, 28_000, 3, 9_760, "randwrite"), (4, 28_000, 20, 1_460, "randwrite")],
)  # fmt: skip
@pytest.mark.parametrize("kernel", ["3.11", "6.18"])
def test_a_nearly_full_filesystem_keeps_its_laws(
    dirty: int | None, descriptors: int, nrfiles: int, filesize: int, rw: str, kernel: str
) -> None:
    """Held blocks are given up if no other block is free, and every block has one owner.

    * With 28 000 blocks of descriptors, 7 476 blocks are free, and 149 of them are kept (2 %).
    * A leaf for names takes the first of the 7 327 unclaimed blocks; 7 326 pages find a block.
    * 665 files of 11 pages, with 12 leaves for their names, take all 7 327.
    """
    machine = run(small_disk(descriptors, nrfiles, filesize, rw, kernel, dirty))
    assert only(machine.programs).failed == {}
    assert sum(file.size for file in files(machine)) == nrfiles * filesize // 4


@pytest.mark.parametrize(
    ("dirty", "nrfiles", "filesize", "rw"),
    [(None, 1, 29_308, "write"), (None, 1, 29_900, "randwrite"), (None, 666, 44, "write"),
     (None, 674, 44, "write"), (4, 3, 9_764, "randwrite")],
)  # fmt: skip
@pytest.mark.parametrize("kernel", ["3.11", "6.18"])
def test_a_write_to_a_full_filesystem_fails(
    dirty: int | None, nrfiles: int, filesize: int, rw: str, kernel: str
) -> None:
    """ENOSPC ends the program, and each page that it has written gets a block.

    The pages, the leaves for names and the trees of the files have all 7 327 unclaimed blocks then.  Trees
    may have taken kept blocks, too.
    """
    machine = build(small_disk(28_000, nrfiles, filesize, rw, kernel, dirty), 1)
    filesystem: Any = only(machine.mounts).filesystem
    assert (filesystem.placement.free_blocks, filesystem.space.unclaimed) == (7_476, 7_327)
    machine.run()
    assert only(machine.programs).failed == {"No space left on device": 1}
    cache, written = machine.cache, sum(file.allocated for file in files(machine))
    assert cache.dirty == cache.writeback == 0
    assert cache.dirtied == cache.written_pages == written
    others = filesystem.names.leaf_blocks + sum(file.tree.blocks for file in files(machine))
    assert 7_327 - written - others == filesystem.space.unclaimed <= 0


@pytest.mark.parametrize(("kernel", "left"), [("3.11", []), ("6.18", [512 - 5])])
def test_closed_small_files_are_packed_since_6_0(kernel: str, left: list[int]) -> None:
    """A file of 20 KiB is closed before writeback, and gets blocks of a run of 512 from 6.0 on.

    Before 6.0 such a file gets only its own blocks (docs/kernel/ext4.md#where-blocks-go).
    """
    filesystem: Any = only(run(scenario(fio(1, 1, 20), None, kernel)).mounts).filesystem
    assert [free for runs in filesystem.placement.new_blocks.locality_groups for _, free in runs] == left


RANDOM = [
    ((64, 1, 4, 64), [2, 2, 3, 3]),
    ((128, 1, 4, 256), [4, 5, 6, 4]),
    ((128, 1, 1, 1024), [10]),
    ((256, 1, 1, 512), [6]),
    ((48, 3, 2, 96), [2, 2, 4, 2, 3, 2]),
    ((None, 1, 6, 256), [4, 4, 4, 4, 4, 4]),
]
"""(dirty MiB, jobs, files each, MiB each) of fio's random writes, and the extents that filefrag counted.

The last three rows led to no change of the model.
"""


@pytest.mark.parametrize(("what", "real"), RANDOM)
def test_random_writes_leave_as_many_extents_as_the_kernel(
    what: tuple[int | None, int, int, int], real: list[int]
) -> None:
    """Windows of 8 MiB lie in the order of the file, with breaks at the blocks of the tree.

    The mean is within two extents of the kernel's mean.
    """
    dirty, jobs, nrfiles, size = what
    found = counts(run(scenario(fio(jobs, nrfiles, size * 1024), dirty)))
    assert np.mean(found) == pytest.approx(np.mean(real), abs=2)


def test_random_file_breaks_as_often_as_in_the_kernel() -> None:
    """Between 13 and 17 windows of 8 MiB lie together.

    A group of 128 MiB has 16 windows, and loses the one with the blocks of the tree.  Three files of Linux
    6.18 have 16 14 17 13 16 14 16 14 8, and 16 14 16 ...
    """
    (file,) = files(run(scenario(fio(1, 1, 1024 * 1024), 128)))
    first, *middle, _ = [extent.pages for extent in file.extents()]
    assert first == 2_048
    assert all(26_624 <= pages <= 34_816 and pages % 2_048 == 0 for pages in middle)
    assert np.mean(middle) == pytest.approx(15 * 2_048, rel=0.02)


def test_extent_over_several_groups_is_drawn_in_each_of_them() -> None:
    """The extent reaches from the middle of group 1 to the middle of group 3, and is drawn in three rows."""
    table = np.array([[0, GROUP_BLOCKS * 3 // 2, 2 * GROUP_BLOCKS]])
    groups, picture = owners([table], GROUP_BLOCKS, 4)
    assert groups == [1, 2, 3]
    assert picture.tolist() == [[-1, -1, 0, 0], [0, 0, 0, 0], [0, 0, -1, -1]]


def test_small_files_are_packed_by_the_locality_group() -> None:
    """Files of 32 KiB lie one behind the other, like those of the kernel."""
    starts = [file.extents()[0].block for file in files(run(scenario(fio(1, 100, 32), None)))]
    assert np.diff(starts).tolist() == [8] * 99


@pytest.mark.parametrize(("size", "rw", "apart"), [(700, "write", 175), (3_072, "randwrite", 768)])
def test_closed_files_get_no_preallocation(size: int, rw: str, apart: int) -> None:
    """Files of 700 KiB or 3 MiB are closed before writeback, and lie one behind the other."""
    starts = [file.extents()[0].block for file in files(run(scenario(fio(1, 8, size, rw), None)))]
    assert (np.diff(sorted(starts)) == apart).sum() >= 6


@pytest.mark.parametrize(
    ("dirty", "workload", "real"),
    [
        (128, dd(4, 256, 4), 17.0),
        (128, dd(4, 256, 1), 17.75),
        (32, dd(8, 128, 8), 15.0),
        (None, dd(2, 512, 2), 11),
        (64, dd(3, 300, 1), 26.7),
        (48, fio(2, 2, 96 * 1024, "write"), 11.5),
        (64, fio(1, 4, 128 * 1024, "write"), 14.5),
    ],
)
def test_streams_leave_as_many_extents_as_the_kernel(
    dirty: int | None, workload: dict[str, Any], real: float
) -> None:
    """Extents have a few windows in any directory; the mean is within a quarter of filefrag's."""
    assert np.mean(counts(run(scenario(workload, dirty)))) == pytest.approx(real, rel=0.25)


def test_quota_bump_writes_up_to_128_mib_at_once() -> None:
    """A visit up to 3.10 writes all dirty pages at the cursor, up to 128 MiB, although the quota is 4 MiB.

    The visit may begin anywhere in a window.
    """
    largest = {}
    for bump, dirty in ((32_768, None), (32_768, 64), (0, None)):
        inputs = scenario(dd(1, 320, 1), dirty, "2.6.34").inputs()
        inputs["kernel"]["filesystems"]["ext4"]["bump_pages"] = bump
        machine, wrote = build(Scenario.model_validate(inputs), 1), [0]
        machine.signals.writeback_single_inode.observers.append(
            lambda _name, wrote, seen=wrote, **_: seen.append(wrote)
        )
        machine.run()
        largest[bump, dirty] = max(wrote), sorted(wrote)[len(wrote) // 2]
    assert largest[32_768, None][0] == 32_768
    assert largest[32_768, 64][1] > 4 * 1_024
    assert largest[0, None][0] == 1_024


@pytest.mark.parametrize(
    ("line", "extents"),
    [
        ("--name=w --size=256m", {"w.0.0": [22_528, 43_008]}),
        ("--name=w --size=128m --numjobs=2", {"w.0.0": [22_528, 10_240], "w.1.0": [32_768]}),
        ("--name=w --size=128m --overwrite=1", {"w.0.0": [22_528, 10_240]}),
        (
            "--name=w --size=256m --name=v --size=128m --stonewall",
            {"w.0.0": [22_528, 43_008], "v.0.0": [20_480, 12_288]},
        ),
    ],
)
def test_fallocated_files_lie_where_the_kernel_puts_them(line: str, extents: dict[str, list[int]]) -> None:
    """filefrag -v prints these extents with Linux 6.18, on a new ext4 of 4 GiB.

    The first window is the first free piece of group 0, and later ones follow.  A request of more than 32 767
    blocks is cut into windows of 8 MiB, and the rest of a group is too small for one.
    """
    text = f"""title = "fallocate"
[scenario]
machine.like = "desk-vm"
kernel.like = "6.18"
mounts.m = {{ like = "ext4", at = "/m", size = "4 GiB" }}
workload.command = "fio --directory=/m --rw=write --bs=1m --end_fsync=1 {line}"
"""
    machine = run(parse(text, "x.toml").cases[0].scenario)
    tables = {
        path: dentry.inode.file.extent_table() for path, dentry in only(machine.mounts).dentries.items()
    }
    assert {path[3:]: table[:, 2].tolist() for path, table in tables.items()} == extents
    assert tables["/m/w.0.0"][1, 1] == 34_816


def test_window_of_fallocate_ends_at_a_multiple_of_8_mib() -> None:
    """The first five pages have their blocks; a request for one extent alone is not cut."""
    (filesystem,) = (mount.filesystem for mount in build(scenario(fio(1, 1, 4), None), 1).mounts.values())
    inode = filesystem.names.new_inode(0, filesystem.names.root())
    file = filesystem.page(inode)
    file.make_room(70_000, 70_000)
    assert filesystem.placement.take_blocks(inode, file, 5, 60_000, 60_005)[1] == 2_043
    assert filesystem.placement.take_blocks(inode, file, 5, 30_000, 30_005)[1] == 30_000
