"""The blocks that ext4 holds for pages: locality groups, windows, neighbours, a full disk."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.harness import FIO, loop_config, only
from wbsim.experiments.config.experiment import parse
from wbsim.models.catalogue.filesystems import LOOP_EXT4
from wbsim.models.catalogue.kernels import KERNELS
from wbsim.models.filesystems.ext4.geometry import GROUP_BLOCKS
from wbsim.models.filesystems.ext4.inodes import FAR_PAGE, Ext4File, Leaf
from wbsim.models.filesystems.ext4.mballoc import Mballoc
from wbsim.models.filesystems.ext4.new_blocks import NewBlocks
from wbsim.models.interfaces import NoSpace
from wbsim.models.machine import build
from wbsim.models.page_cache.pages import DELAYED, HELD, MAPPED
from wbsim.models.time_accounting import Spent


def ext4(kernel: str = "6.18", processors: int = 2) -> NewBlocks:
    """Return the block allocation of a fresh ext4 with 96 groups."""
    rules: Any = KERNELS[kernel].filesystems["ext4"]
    geometry = LOOP_EXT4.geometry
    return NewBlocks(Mballoc(geometry, by_order=rules.by_order), rules, processors, geometry.groups, [])


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
    first, got = fs.of_locality_group(task(0), 2, 5)
    assert (first // GROUP_BLOCKS, got) == (2, 5)
    assert fs.of_locality_group(task(0), 2, 3) == (first + 5, 3)
    assert fs.of_locality_group(task(2), 2, 1) == (first + 8, 1)
    other, _ = fs.of_locality_group(task(1), 2, 1)
    assert other == first + 512
    assert fs.of_locality_group(task(0), 2, 503) == (first + 9, 503)
    assert fs.locality_groups[0] == []
    far, _ = fs.of_locality_group(task(0), 50, 500)
    near, _ = fs.of_locality_group(task(0), 3, 500)
    assert (far // GROUP_BLOCKS, near // GROUP_BLOCKS) == (50, 3)
    assert fs.of_locality_group(task(0), 49, 1) == (far + 500, 1)
    assert fs.of_locality_group(task(0), 4, 1) == (near + 500, 1)
    assert fs.of_locality_group(task(0), 2, 600)[1] == 600


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
    first, got = fs.beside(inode(), file, 512, 1_024)
    assert got == 512
    assert fs.goals[12 % len(fs.goals)] == first // GROUP_BLOCKS
    states, blocks = file.pages.states, file.pages.blocks
    states[1_023], blocks[1_023] = MAPPED, first + 511
    assert fs.beside(inode(), file, 1_024, 1_536) == (first + 512, 512)
    states[2_048], blocks[2_048] = MAPPED, first + 5_000
    assert fs.beside(inode(), file, 1_536, 2_048) == (first + 5_000 - 512, 512)
    taken, got = fs.beside(inode(), file, 1_024, 1_536)
    assert got == 512
    assert taken != first + 512, "the block after the first run is taken"
    fs.goals[12 % len(fs.goals)] = 40
    assert fs.beside(inode(), file, 2_100, 2_600)[0] // GROUP_BLOCKS == 40


@pytest.mark.parametrize(("kernel", "processors", "goals"), [("6.18", 2, 2), ("6.18", 64, 24), ("6.1", 8, 1)])
def test_goals_are_as_many_as_processors_from_6_17_on(kernel: str, processors: int, goals: int) -> None:
    """A filesystem has at most one goal for four groups, and before 6.17 only one goal."""
    assert len(ext4(kernel, processors).goals) == goals


def test_inode_number_selects_the_goal() -> None:
    """Even inodes use the first goal and odd inodes the second; an allocation moves only its own goal."""
    fs, file = ext4(), opened(4_096, range(512, 600), 3_000)
    fs.goals[:] = [10, 40]
    assert fs.beside(inode(13), file, 512, 1_024)[0] // GROUP_BLOCKS == 40
    fs.goals[1] = 50
    assert fs.beside(inode(13), file, 512, 1_024)[0] // GROUP_BLOCKS == 50
    assert fs.beside(inode(12), file, 512, 1_024)[0] // GROUP_BLOCKS == 10
    assert fs.goals == [10, 50]


def test_closed_file_continues_in_the_group_of_its_last_block() -> None:
    """A file without a block begins in the goal group of its inode."""
    fs = ext4()
    file = opened(64, range(20, 60))
    file.open = False
    file.pages.states[19], file.pages.blocks[19] = MAPPED, 30 * GROUP_BLOCKS + 5
    fs.hold(task(), inode(), file, 20, 40)
    assert held(file)[0][1] // GROUP_BLOCKS == 30
    other = opened(64, range(40))
    other.open = False
    fs.hold(task(), inode(goal_group=7), other, 0, 40)
    assert held(other)[0][1] // GROUP_BLOCKS == 7


def test_full_disk_takes_back_held_blocks() -> None:
    """Files and locality groups give up their held blocks, and then the disk is full."""
    file, geometry = opened(4_096, range(2_000)), LOOP_EXT4.geometry
    rules: Any = KERNELS["6.18"].filesystems["ext4"]
    mballoc = Mballoc(geometry, by_order=rules.by_order)
    fs = NewBlocks(mballoc, rules, 2, geometry.groups, [file])
    fs.hold(task(), inode(), file, 0, 2_000)
    kept, _ = fs.of_locality_group(task(), 2, 1)
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


def apart(*pages: int) -> Ext4File:
    """Return a file of 4 000 pages with an extent of one page at each of *pages*, none next to another."""
    file = Ext4File(True)
    file.make_room(4_000, 4_000)
    file.pages.size[0] = 4_000
    for page in pages:
        file.pages.states[page] = MAPPED
        file.pages.blocks[page] = 3 * page
    return file


def leaves_of(file: Ext4File) -> list[tuple[int, int, int]]:
    """Return the block, the first page and the extents of each leaf."""
    return [(leaf.block, leaf.page, leaf.extents) for leaf in file.leaves]


def test_inode_holds_four_extents_before_a_leaf_does() -> None:
    """The room of the inode or of the only leaf is for any page."""
    file = apart(0, 10, 20, 30)
    assert file.room_at(5) == (4, FAR_PAGE)
    file.took(30, 4, 0, 0)
    assert file.room_at(5) == (0, FAR_PAGE)
    file.grow(40, 700)
    assert leaves_of(file) == [(700, 0, 4)]
    file.took(40, 1, 0, 0)
    assert file.room_at(2_000) == (335, FAR_PAGE)


def test_full_leaf_is_split_behind_a_new_extent() -> None:
    """The leaf has 340 extents, on the even pages from 0 on.

    * A new extent at page 101 moves the 289 extents behind it to a new leaf.
    * A new extent at page 679, behind all others, is alone in a new leaf.
    """
    file = apart(*range(0, 680, 2), 101)
    file.leaves = [Leaf(700, 0, 340)]
    assert file.room_at(101) == (0, FAR_PAGE)
    assert not file.has_room_behind(101)
    file.grow(101, 701)
    assert leaves_of(file) == [(700, 0, 51), (701, 102, 289)]
    file.took(101, 1, 0, 0)
    assert (file.room_at(101), file.room_at(102)) == ((288, 102), (51, FAR_PAGE))
    at_the_end = apart(*range(0, 680, 2), 679)
    at_the_end.leaves = [Leaf(700, 0, 340)]
    at_the_end.grow(679, 701)
    assert leaves_of(at_the_end) == [(700, 0, 340), (701, 679, 0)]


def test_extent_behind_a_full_leaf_goes_to_the_next_leaf() -> None:
    """The next leaf then begins at the page of the extent.

    An extent inside the full leaf finds no room, and neither does one before a second full leaf.
    """
    file = apart(*range(0, 680, 2), 1_000)
    file.leaves = [Leaf(700, 0, 340), Leaf(701, 1_000, 1)]
    assert not file.has_room_behind(101)
    assert file.has_room_behind(900)
    assert leaves_of(file) == [(700, 0, 340), (701, 900, 1)]
    file.leaves[1].extents = 340
    assert not file.has_room_behind(800)


def test_unwritten_extents_join_their_neighbours_once_converted() -> None:
    """Converted ranges count for the allocations in their order.

    event                               extents of the leaf
    at first                            300
    three allocations of 4 extents      304
    3 ranges are converted              304
    1 range is converted                299: two allocations join 5 neighbours
    2 ranges are converted              299
    """
    file = apart(*range(0, 680, 2))
    file.leaves = [Leaf(700, 0, 300)]
    file.took(7, 2, 3, 4)
    file.took(9, 1, 2, 0)
    file.took(11, 1, 0, 2)
    assert (file.leaves[0].extents, file.room_at(9)) == (304, (36, FAR_PAGE))
    file.wrote(3)
    assert file.leaves[0].extents == 304
    file.wrote(1)
    assert file.leaves[0].extents == 299
    file.wrote(2)
    assert not file.unwritten


def test_extents_of_the_inode_join_in_its_first_leaf() -> None:
    """The leaf is made between the allocation and the conversion."""
    file = apart(0)
    file.took(0, 4, 2, 1)
    file.grow(9, 700)
    file.wrote(1)
    assert (file.root, file.leaves[0].extents) == (4, 2)


def test_one_conversion_may_end_several_allocations() -> None:
    """Five ranges are all four ranges of the first allocation, and one of two ranges of the next."""
    file = apart(0)
    file.leaves = [Leaf(700, 0, 100)]
    file.took(7, 1, 3, 4)
    file.took(9, 1, 2, 2)
    file.wrote(5)
    assert (file.leaves[0].extents, list(file.unwritten)) == (99, [(1, file.leaves[0], 2)])


def test_run_converts_all_extents_that_it_wrote() -> None:
    """The leaves of a random file then have its extents.

    The count differs by pages that were rewritten before their conversion.
    """
    command = f"{FIO} --rw=randwrite --filesize=24m --nrfiles=2 --name=a"
    (case,) = parse(loop_config(command, dirty_mib=8, filesystem="loop-ext4"), "x.toml").cases
    machine = build(case.scenario, 1)
    machine.run()
    for file in only(machine.mounts).filesystem.layouts():
        assert len(file.leaves) > 4
        assert not file.unwritten
        assert abs(sum(leaf.extents for leaf in file.leaves) - file.extent_count()) <= 2


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
