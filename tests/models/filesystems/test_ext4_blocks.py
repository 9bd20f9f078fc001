"""The blocks that ext4 holds for pages: locality groups, windows, neighbours, a full disk."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.harness import FIO, loop_config, only
from wbsim.experiments.config.experiment import parse
from wbsim.models.catalogue.filesystems import FILESYSTEMS
from wbsim.models.catalogue.kernels import KERNELS
from wbsim.models.filesystems.ext4.geometry import GROUP_BLOCKS
from wbsim.models.filesystems.ext4.inodes import Ext4File
from wbsim.models.filesystems.ext4.mballoc import Mballoc
from wbsim.models.filesystems.ext4.new_blocks import NewBlocks
from wbsim.models.interfaces import NoSpace
from wbsim.models.machine import build
from wbsim.models.page_cache.pages import DELAYED, HELD, MAPPED
from wbsim.models.time_accounting import Spent


def ext4(kernel: str = "6.18", processors: int = 2, stripe: int = 0) -> NewBlocks:
    """Return the block allocation of a fresh ext4 with 96 groups, whose bitmaps have been read."""
    rules: Any = KERNELS[kernel].filesystems["ext4"]
    geometry = FILESYSTEMS["loop-ext4"].geometry
    mballoc = Mballoc(geometry, by_order=rules.by_order, stripe=stripe)
    for flex in range(geometry.flexes):
        mballoc.read_bitmaps(flex)
    return NewBlocks(mballoc, rules, processors, geometry.groups, [])


def task(rank: int = 0) -> Any:
    """Return a task of *rank*, which selects the processor."""
    return SimpleNamespace(rank=rank)


def opened(pages: int, delayed: range, size: int | None = None) -> Ext4File:
    """Return a file with room for *pages* pages, of which *delayed* are delayed."""
    file = Ext4File(True)
    file.make_room(pages, pages)
    file.pages.states[delayed.start : delayed.stop] = DELAYED
    file.pages.size[0] = delayed.stop if size is None else size
    return file


def inode(number: int = 12, goal_group: int = 2) -> Any:
    """Return an inode in group 0; the search for its blocks begins in *goal_group*."""
    return SimpleNamespace(number=number, goal_group=goal_group)


def held(file: Ext4File) -> list[tuple[int, int]]:
    """Return the pages with held blocks, and these blocks."""
    states, blocks = file.pages.states, file.pages.blocks
    return [(page, int(blocks[page]) + file.base) for page in range(len(states)) if states[page] & HELD]


def test_small_files_follow_each_other_in_the_processor_s_run() -> None:
    """A run has 512 blocks, from the group of the goal on; another processor has another run.

    A file that does not fit into the rest of a run gets a new run.  The nearer run to the goal is used first.
    """
    fs = ext4()
    first, got = fs.of_locality_group(task(0), 2 * GROUP_BLOCKS, 5)
    assert (first // GROUP_BLOCKS, got) == (2, 5)
    assert fs.of_locality_group(task(0), 2 * GROUP_BLOCKS, 3) == (first + 5, 3)
    assert fs.of_locality_group(task(2), 2 * GROUP_BLOCKS, 1) == (first + 8, 1)
    other, _ = fs.of_locality_group(task(1), 2 * GROUP_BLOCKS, 1)
    assert other == first + 512
    assert fs.of_locality_group(task(0), 2 * GROUP_BLOCKS, 503) == (first + 9, 503)
    assert fs.locality_groups[0] == []
    far, _ = fs.of_locality_group(task(0), 50 * GROUP_BLOCKS, 500)
    near, _ = fs.of_locality_group(task(0), 3 * GROUP_BLOCKS, 500)
    assert (far // GROUP_BLOCKS, near // GROUP_BLOCKS) == (50, 3)
    assert fs.of_locality_group(task(0), 49 * GROUP_BLOCKS, 1) == (far + 500, 1)
    assert fs.of_locality_group(task(0), 4 * GROUP_BLOCKS, 1) == (near + 500, 1)
    assert fs.of_locality_group(task(0), 2 * GROUP_BLOCKS, 600)[1] == 600


@pytest.mark.parametrize(
    ("kernel", "is_open", "delayed", "size", "pages"),
    [
        ("6.18", True, range(4), 4, 4),  # small: from the run
        ("6.18", True, range(16), 16, 16),
        ("6.18", True, range(17), 17, 32),  # larger: a window
        ("6.18", False, range(4), 4, 4),
        ("5.4", False, range(4), 4, 4),  # closed, in one piece: only the blocks that it needs
        ("6.18", False, range(100), 100, 100),
        ("6.18", False, range(100), 120, 128),  # closed, but not to its end
        ("6.18", True, range(600, 700), 700, 512),
    ],
)
def test_open_and_large_files_get_blocks_beyond_the_request(
    kernel: str, is_open: bool, delayed: range, size: int, pages: int
) -> None:
    """The held blocks lie together, and all delayed pages have one."""
    fs, file = ext4(kernel), opened(2_048, delayed, size)
    file.open = is_open
    before = sum(left for runs in fs.locality_groups for _, left in runs)
    fs.hold(task(), inode(), file, delayed.start, len(delayed))
    found = held(file)
    assert len(found) == pages
    assert {page for page, _ in found} >= set(delayed)
    assert [block - page for page, block in found] == [found[0][1] - found[0][0]] * pages
    packed = sum(left for runs in fs.locality_groups for _, left in runs) - before
    assert packed == (512 - pages if size <= 16 and (is_open or kernel == "6.18") else 0)


def test_window_lies_next_to_its_neighbour_or_at_the_goal() -> None:
    """The blocks lie behind the block in front, or before the block behind.

    Otherwise the blocks lie at the goal, which then moves.
    """
    fs = ext4()
    file = opened(4_096, range(512, 600), 3_000)
    first, got = fs.extend(inode(), file, 512, 1_024)
    assert got == 512
    assert fs.goals[12 % len(fs.goals)] == first // GROUP_BLOCKS
    states, blocks = file.pages.states, file.pages.blocks
    states[1_023], blocks[1_023] = MAPPED, first + 511
    assert fs.extend(inode(), file, 1_024, 1_536) == (first + 512, 512)
    states[2_048], blocks[2_048] = MAPPED, first + 5_000
    assert fs.extend(inode(), file, 1_536, 2_048) == (first + 5_000 - 512, 512)
    taken, got = fs.extend(inode(), file, 1_024, 1_536)
    assert got == 512
    assert taken != first + 512, "the block after the first run is taken"
    fs.goals[12 % len(fs.goals)] = 40
    assert fs.extend(inode(), file, 2_560, 3_072)[0] // GROUP_BLOCKS == 40


@pytest.mark.parametrize(("kernel", "processors", "goals"), [("6.18", 2, 2), ("6.18", 64, 24), ("6.1", 8, 1)])
def test_goals_are_as_many_as_processors_from_6_17_on(kernel: str, processors: int, goals: int) -> None:
    """A filesystem has at most one goal for four groups, and before 6.17 only one goal."""
    assert len(ext4(kernel, processors).goals) == goals


def test_inode_number_selects_the_goal() -> None:
    """Even inodes use the first goal and odd inodes the second; an allocation moves only its own goal."""
    fs, file = ext4(), opened(4_096, range(512, 600), 3_000)
    fs.goals[:] = [10, 40]
    assert fs.extend(inode(13), file, 512, 1_024)[0] // GROUP_BLOCKS == 40
    fs.goals[1] = 50
    assert fs.extend(inode(13), file, 512, 1_024)[0] // GROUP_BLOCKS == 50
    assert fs.extend(inode(12), file, 512, 1_024)[0] // GROUP_BLOCKS == 10
    assert fs.goals == [10, 50]


def test_closed_file_continues_in_the_group_of_its_last_extent() -> None:
    """A file without an extent begins in the goal group of its inode."""
    fs = ext4()
    file = opened(64, range(20, 60))
    file.open = False
    file.tree.insert(3, 50 * GROUP_BLOCKS + 5, 2)
    fs.hold(task(), inode(), file, 20, 40)
    assert held(file)[0][1] // GROUP_BLOCKS == 50
    other = opened(64, range(40))
    other.open = False
    fs.hold(task(), inode(goal_group=57), other, 0, 40)
    assert held(other)[0][1] // GROUP_BLOCKS == 57


def test_goal_outside_the_filesystem_is_the_first_block() -> None:
    """Page 0 would lie in front of the filesystem, and page 900 behind it."""
    fs, of, last = ext4(), Ext4File(False), FILESYSTEMS["loop-ext4"].geometry.blocks - 1
    assert fs.goal(inode(goal_group=7), of, 0) == 7 * GROUP_BLOCKS
    of.tree.insert(100, 40, 1)
    of.tree.insert(800, last - 99, 1)
    assert [fs.goal(inode(), of, page) for page in (0, 60, 700, 899, 900)] == [0, 0, 640, last, 0]


@pytest.mark.parametrize(("width", "stripe"), [(4 << 10, 0), (8 << 10, 2), (128 << 20, 32_768), (1 << 30, 0)])
def test_tiny_and_huge_stripes_do_not_count(width: int, stripe: int) -> None:
    """ext4_get_stripe_size turns them off."""
    spec: Any = FILESYSTEMS["loop-ext4"]
    assert spec.model_copy(update={"stripe_width": width}).stripe == stripe


@pytest.mark.parametrize(
    ("stripe", "least", "most"), [(0, 512, 512), (48, 48, 528), (512, 512, 512), (700, 700, 700)]
)
def test_processor_keeps_whole_stripes_for_small_files(stripe: int, least: int, most: int) -> None:
    """A locality group asks for the least multiple of the stripe from 512 blocks on.

    Its run begins at a stripe, and has at least one.
    """
    fs = ext4(stripe=stripe)
    block, length = fs.of_locality_group(task(), 2 * GROUP_BLOCKS, 5)
    ((first, rest),) = fs.locality_groups[0]
    assert (length, first) == (5, block + 5)
    assert least <= length + rest <= most
    assert not stripe or block % stripe == 0


def test_full_disk_takes_back_held_blocks() -> None:
    """Files and locality groups give up their held blocks, and then the disk is full."""
    file, geometry = opened(4_096, range(2_000)), FILESYSTEMS["loop-ext4"].geometry
    rules: Any = KERNELS["6.18"].filesystems["ext4"]
    mballoc = Mballoc(geometry, by_order=rules.by_order)
    fs = NewBlocks(mballoc, rules, 2, geometry.groups, [file])
    fs.hold(task(), inode(), file, 0, 2_000)
    kept, _ = fs.of_locality_group(task(), 2 * GROUP_BLOCKS, 1)
    while (found := mballoc.find(0, 32_768))[1]:
        assert found[1] > 0
    assert len(held(file)) == 1_024
    given = fs.find(0, 5)
    assert given[1] == 5
    assert held(file) == []
    assert fs.locality_groups == [[], []]
    assert kept + 1 in given or mballoc.take_exactly(kept + 1, 1)
    while mballoc.find(0, 32_768)[1]:
        pass
    with pytest.raises(NoSpace, match="the filesystem is full; give a larger filesystem, or fewer"):
        fs.find(0, 32_768)


def test_run_converts_all_extents_that_it_wrote() -> None:
    """The leaves of a random file then have its extents.

    Two extents in two leaves do not become one.  Linux 6.18 left 15 to 23 leaves (docs/measurements.md E).
    """
    command = f"{FIO} --rw=randwrite --filesize=24m --nrfiles=2 --name=a"
    (case,) = parse(loop_config(command, dirty_mib=8, filesystem="loop-ext4"), "x.toml").cases
    machine = build(case.scenario, 1)
    machine.run()
    for file in only(machine.mounts).filesystem.layouts():
        assert 13 < file.tree.blocks < 25
        in_leaves = sum(len(leaf.pages) for leaf in file.tree.leaves)
        assert 0 <= in_leaves - file.extent_count() < file.tree.blocks


def test_end_of_one_run_takes_time_for_each_folio() -> None:
    """Each folio after the first takes 500 ns on the desk with ext4, and 350 ns with XFS."""
    text = loop_config("fs_mark -S0 -n 1 -s 4096 -L 2 -d a", dirty_mib=64).replace("loop-vm", "desk-vm")
    for filesystem, cost, each in (("ext4", 3_300, 500), ("xfs", 3_600, 350)):
        (case,) = parse(text.replace("loop-xfs", f"desk-{filesystem}"), "x.toml").cases
        machine = build(case.scenario, 1)
        found: Any = only(machine.mounts).filesystem
        worker: Any = SimpleNamespace(task=machine.env.task("kworker"), spent=Spent())
        for folios in (1, 4):
            worker.spent.complete = 0
            found.metadata.end_run(worker, 0, folios)
            assert worker.spent.complete == cost + each * (folios - 1)
