"""Which blocks ext4 sets aside for which pages: locality groups, windows, neighbours, a full disk."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from experiments.config import parse
from models.filesystems.ext4.inodes import Ext4File
from models.filesystems.ext4.mballoc import GROUP_BLOCKS
from models.machine import build
from models.page_cache.pages import DELAYED, HELD, MAPPED
from models.seams import NoSpace
from tests.harness import loop_config, only


def ext4(kernel: str = "6.18", processors: int = 2) -> Any:
    """A fresh one of 96 groups."""
    more = f"machine.processors.count = {processors}"
    text = loop_config("fs_mark -S0 -n 1 -s 4096 -L 2 -d a", dirty_mib=64, kernel=kernel,
                       filesystem="loop-ext4", more=more)  # fmt: skip
    return only(build(parse(text, "x.toml").cases[0].scenario, 1).mounts).filesystem


def task(rank: int = 0) -> Any:
    """One of that rank, which picks its processor."""
    return SimpleNamespace(rank=rank)


def opened(pages: int, delayed: range, size: int | None = None) -> Ext4File:
    """A file with room for so many pages, of which some are delayed."""
    file = Ext4File(True)
    file.make_room(pages, pages)
    file.pages.states[delayed.start : delayed.stop] = DELAYED
    file.pages.size[0] = delayed.stop if size is None else size
    return file


def inode(number: int = 12, goal_group: int = 2) -> Any:
    """One in group 0 whose blocks are looked for from *goal_group* on."""
    return SimpleNamespace(number=number, goal_group=goal_group)


def held(file: Ext4File) -> list[tuple[int, int]]:
    """Pages with blocks held for them, and these blocks."""
    states, blocks = file.pages.states, file.pages.blocks
    return [(page, int(blocks[page]) + file.base) for page in range(len(states)) if states[page] & HELD]


def test_small_files_follow_each_other_in_their_processor_s_run() -> None:
    """Of 512 blocks, from the goal's group on; another processor has one of its own; what does not fit into
    the rest takes another run, and of two the nearer one to the goal is used.
    """
    fs = ext4()
    first, got = fs._from_locality_group(task(0), 2, 5)
    assert (first // GROUP_BLOCKS, got) == (2, 5)
    assert fs._from_locality_group(task(0), 2, 3) == (first + 5, 3)
    assert fs._from_locality_group(task(2), 2, 1) == (first + 8, 1)
    other, _ = fs._from_locality_group(task(1), 2, 1)
    assert other == first + 512
    assert fs._from_locality_group(task(0), 2, 503) == (first + 9, 503)
    assert fs._locality_groups[0] == []
    far, _ = fs._from_locality_group(task(0), 50, 500)
    near, _ = fs._from_locality_group(task(0), 3, 500)
    assert (far // GROUP_BLOCKS, near // GROUP_BLOCKS) == (50, 3)
    assert fs._from_locality_group(task(0), 49, 1) == (far + 500, 1)
    assert fs._from_locality_group(task(0), 4, 1) == (near + 500, 1)
    assert fs._from_locality_group(task(0), 2, 600)[1] == 600


@pytest.mark.parametrize(
    ("kernel", "is_open", "delayed", "size", "pages"),
    [
        ("6.18", True, range(4), 4, 4),  # small: of the run
        ("6.18", True, range(16), 16, 16),
        ("6.18", True, range(17), 17, 32),  # larger: a window
        ("6.18", False, range(4), 4, 4),
        ("5.4", False, range(4), 4, 4),  # closed, in one piece: just what it needs
        ("6.18", False, range(100), 100, 100),
        ("6.18", False, range(100), 120, 128),  # closed, but not to its end
        ("6.18", True, range(600, 700), 700, 512),
    ],
)
def test_how_much_is_set_aside(kernel: str, is_open: bool, delayed: range, size: int, pages: int) -> None:
    """For the pages from the first delayed one on."""
    fs, file = ext4(kernel), opened(2_048, delayed, size)
    file.open = is_open
    before = sum(left for runs in fs._locality_groups for _, left in runs)
    fs._hold(task(), inode(), file, delayed.start, len(delayed))
    found = held(file)
    assert len(found) == pages
    assert {page for page, _ in found} >= set(delayed)
    assert [block - page for page, block in found] == [found[0][1] - found[0][0]] * pages
    packed = sum(left for runs in fs._locality_groups for _, left in runs) - before
    assert packed == (512 - pages if size <= 16 and (is_open or kernel == "6.18") else 0)


def test_a_window_goes_on_from_its_neighbour_or_from_where_files_went_last() -> None:
    """Behind the block in front; before the one behind; else at the goal, which then moves."""
    fs = ext4()
    file = opened(4_096, range(512, 600), 3_000)
    first, got = fs._beside(inode(), file, 512, 1_024)
    assert got == 512
    assert fs._goals[12 % len(fs._goals)] == first // GROUP_BLOCKS
    states, blocks = file.pages.states, file.pages.blocks
    states[1_023], blocks[1_023] = MAPPED, first + 511
    assert fs._beside(inode(), file, 1_024, 1_536) == (first + 512, 512)
    states[2_048], blocks[2_048] = MAPPED, first + 5_000
    assert fs._beside(inode(), file, 1_536, 2_048) == (first + 5_000 - 512, 512)
    taken, got = fs._beside(inode(), file, 1_024, 1_536)
    assert got == 512
    assert taken != first + 512, "that is taken"
    fs._goals[12 % len(fs._goals)] = 40
    assert fs._beside(inode(), file, 2_100, 2_600)[0] // GROUP_BLOCKS == 40


@pytest.mark.parametrize(("kernel", "processors", "goals"), [("6.18", 2, 2), ("6.18", 64, 24), ("6.1", 8, 1)])
def test_how_many_places_files_go_on_from(kernel: str, processors: int, goals: int) -> None:
    """One for each processor, and at most one for four groups; before 6.17 one."""
    assert len(ext4(kernel, processors)._goals) == goals


def test_a_closed_file_goes_on_in_the_group_in_front() -> None:
    """Where its last block lies; else where the inode says."""
    fs = ext4()
    file = opened(64, range(20, 60))
    file.open = False
    file.pages.states[19], file.pages.blocks[19] = MAPPED, 30 * GROUP_BLOCKS + 5
    fs._hold(task(), inode(), file, 20, 40)
    assert held(file)[0][1] // GROUP_BLOCKS == 30
    other = opened(64, range(40))
    other.open = False
    fs._hold(task(), inode(goal_group=7), other, 0, 40)
    assert held(other)[0][1] // GROUP_BLOCKS == 7


def test_a_full_disk_takes_back_what_is_held() -> None:
    """From files and from locality groups; then it is full."""
    fs = ext4()
    file = opened(4_096, range(2_000))
    fs._files.append(file)
    fs._hold(task(), inode(), file, 0, 2_000)
    kept, _ = fs._from_locality_group(task(), 2, 1)
    mballoc = fs._mballoc
    while (found := mballoc.find(0, 32_768))[1]:
        assert found[1] > 0
    assert len(held(file)) == 1_024
    given = fs._find(0, 5)
    assert given[1] == 5
    assert held(file) == []
    assert fs._locality_groups == [[], []]
    assert kept + 1 in given or mballoc.take_exactly(kept + 1, 1)
    while mballoc.find(0, 32_768)[1]:
        pass
    with pytest.raises(NoSpace, match="the filesystem is full; give a larger one, or fewer or smaller files"):
        fs._find(0, 32_768)


def test_a_file_s_leaves_share_its_pages() -> None:
    """100 pages on three leaves; what lies behind the end belongs to the last."""
    file = Ext4File(True)
    file.make_room(200, 200)
    file.pages.size[0] = 100
    file.leaves = [700, 500, 900]
    assert [file.leaf_of(page) for page in (0, 33, 34, 66, 67, 99, 100, 150)] == [
        700, 700, 500, 500, 900, 900, 900, 900,
    ]  # fmt: skip
