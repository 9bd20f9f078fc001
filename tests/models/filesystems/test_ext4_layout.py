"""ext4's page walk, and how its files take what is held for them, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.models.filesystems.lock_times import table
from tests.models.page_cache.lettered import file, letters
from wbsim.models.filesystems.ext4.layout import (
    MAX_REQUEST_PAGES,
    Terms,
    place_now,
    placed_in,
    walk,
    window,
    write_all,
)
from wbsim.models.filesystems.ext4.new_blocks import group_in_front
from wbsim.models.filesystems.ext4.placement import is_delayed
from wbsim.models.filesystems.page_walk import BLOCKED, DONE, GO_ON
from wbsim.models.filesystems.walk_state import Walk
from wbsim.models.page_cache.file_pages import FilePages

TERMS = Terms(row=0, map_ns=1_000, page_ns=3, bio_pages=4, now_ns=0)


def walked(
    of: FilePages, at: Any, horizon_ns: int = 1 << 60, rows: int = 8, dice: Any = (1.0,) * 8
) -> tuple[int, list[list[int]]]:
    """One step: why it stopped, and its bios."""
    bios = np.empty((rows, 2), np.int64)
    at.tell()
    ended = walk(of.pages, table(), TERMS, at.record, horizon_ns, np.array(dice), bios)
    at.look()
    return int(ended), bios[: at.bios].tolist()


def placed(of: FilePages, at: Walk, page: int) -> None:
    """One page, between two steps."""
    at.tell()
    place_now(of.pages, at.record, page, 1)
    at.look()


def begun(page: int = 0, budget: int = 100, room: int = 4) -> Any:
    """A walk over a file whose tree has room for so many extents."""
    at = Walk(page, budget)
    at.room = room
    return at


def test_a_walk_takes_what_is_held() -> None:
    """Five pages with blocks held for them, in two runs, one of them next to what is mapped: two allocations
    of 2 000 and 500 ns, each of which joins a neighbour later; six pages of 3 ns. It stops where nothing is
    held.
    """
    blocks = {0: 10, 1: 11, 2: 12, 3: 30, 4: 31, 5: 32, 6: 33}
    of, at = file("mhhhhDDd", blocks), begun()
    ended, bios = walked(of, at, dice=(2.0, 0.5, 9.0))
    assert (ended, bios) == (BLOCKED, [[11, 2], [30, 4]])
    assert letters(of) == "mmmmmmmd"
    assert (at.elapsed_ns, at.pages, at.wrote, at.bios) == (2_000 + 500 + 6 * 3, 6, 6, 2)
    assert (at.ranges, at.mapped_extents, at.dice, at.page) == (2, 2, 2, 7)
    assert (at.left, at.room, at.joins) == (94, 2, 2)


def test_an_extent_joins_a_new_one_at_once() -> None:
    """The second allocation goes on where the first ended; its other neighbour is a written one."""
    of, at = file("dhhm", {1: 11, 2: 12, 3: 13}), begun(page=1)
    placed(of, at, 1)
    assert (at.room, at.joins) == (3, 0)
    placed(of, at, 2)
    assert (at.room, at.joins) == (3, 1)
    of, at = file("dhhm", {1: 11, 2: 22, 3: 13}), begun(page=1)
    placed(of, at, 1)
    placed(of, at, 2)
    assert (at.room, at.joins) == (2, 0)


def test_a_walk_stops_where_its_leaf_ends() -> None:
    """Before page 2, and at what lies in front of where the step began, after it has wrapped."""
    of, at = file("h.h", {0: 10, 2: 14}), begun()
    at.behind = 2
    assert walked(of, at) == (BLOCKED, [[10, 1]])
    assert at.page == 2
    of, at = file("h.h", {0: 10, 2: 14}), begun(page=1)
    assert walked(of, at) == (BLOCKED, [[14, 1]])
    assert at.page == 0


def test_what_ends_or_interrupts_a_walk() -> None:
    """A full tree, dice that are used up, the horizon, the bios' room, the budget, the file's end."""
    held = {0: 10, 2: 14, 4: 18}
    at = begun(room=1)
    assert walked(file("h.h.h", held), at) == (BLOCKED, [[10, 1]])
    assert (at.room, at.page) == (0, 2)
    assert walked(file("h.h.h", held), begun(), dice=(1.0,)) == (BLOCKED, [[10, 1]])
    at = begun()
    of = file("h.h.h", held)
    assert walked(of, at, horizon_ns=1_002) == (GO_ON, [[10, 1]])
    assert walked(of, at, horizon_ns=1_003) == (GO_ON, [[14, 1]])
    assert walked(of, at) == (DONE, [[18, 1]])
    of, at = file("DD.DD", {0: 10, 1: 11, 3: 20, 4: 21}), begun()
    assert walked(of, at, horizon_ns=5) == (GO_ON, [[10, 2]])
    of, at = file("DD.DD", {0: 10, 1: 11, 3: 20, 4: 21}), begun()
    assert walked(of, at, horizon_ns=6) == (GO_ON, [[10, 2], [20, 2]])
    at = begun()
    of = file("D.D.D", held)
    assert walked(of, at, rows=2) == (GO_ON, [[10, 1], [14, 1]])
    assert walked(of, at, rows=2) == (DONE, [[18, 1]])
    at = begun(budget=2)
    assert walked(file("D.D.D", held), at) == (DONE, [[10, 1], [14, 1]])
    assert (at.left, at.page) == (0, 3)


def test_a_walk_wraps_once() -> None:
    """From page 3 on, and then the pages in front of it."""
    of, at = file("D.D.D", {0: 10, 2: 20, 4: 30}), begun(page=3)
    assert walked(of, at) == (DONE, [[30, 1], [10, 1], [20, 1]])


def test_a_request_is_of_8_mib_at_most() -> None:
    """2 049 pages that are held together take two allocations."""
    pages = MAX_REQUEST_PAGES + 1
    of, at = file("h" * pages, {i: i for i in range(pages)}), begun(budget=9_999)
    walked(of, at, rows=1_024)
    assert (at.mapped_extents, at.wrote, at.room) == (2, pages, 3)


def test_pages_that_are_written_to() -> None:
    """Whatever they were, they are dirty; up to where there is room."""
    of = file(".mdDHh....", {1: 5, 3: 6}, size=6)
    assert write_all(of.pages, np.array([0, 1, 2, 3, 4, 5, 7, 9, 6]), 9) == (7, 4)
    assert letters(of) == "dDdDhh.d.."
    assert of.size == 8


@pytest.mark.parametrize(
    ("page", "count", "size", "expected"),
    [
        (0, 1, 1, (0, 4)), (0, 4, 4, (0, 4)), (4, 1, 5, (0, 8)), (0, 256, 256, (0, 256)),
        (0, 1, 257, (0, 512)),
        (600, 1, 1_024, (512, 1_024)), (600, 1, 1_025, (0, 1_024)), (1_500, 1, 2_048, (1_024, 2_048)),
        (1_500, 1, 2_049, (0, 2_048)), (3_000, 2, 3_002, (2_048, 4_096)),
        (250, 10, 255, (0, 512)),
    ],
)  # fmt: skip
def test_windows_at_their_bounds(page: int, count: int, size: int, expected: tuple[int, int]) -> None:
    """16 KiB to 1 MiB as a whole; 2 MiB up to 4, 4 MiB up to 8, then 8."""
    of = file("." * 8_192, size=size)
    assert window(of.pages, page, count) == expected


@pytest.mark.parametrize(
    ("page", "count", "got", "placed"),
    [
        (0, 10, 50, 100), (140, 10, 50, 100), (141, 10, 50, 141), (149, 10, 50, 149), (150, 10, 50, 150),
        (151, 10, 50, 150), (199, 1, 50, 150),
    ],
)  # fmt: skip
def test_where_fewer_blocks_than_the_window_are_held(page: int, count: int, got: int, placed: int) -> None:
    """Of pages 100 to 199: its first if they cover the request, its last if that is among them."""
    assert placed_in(100, 200, page, count, got) == placed


@pytest.mark.parametrize(("page", "group"), [(0, 77), (1, 5), (2, 77), (3, 77), (4, 9)])
@pytest.mark.source
def test_the_group_of_the_block_in_front(page: int, group: int) -> None:
    """Or another, where there is none: what is delayed or held has none yet."""
    of = file("mdhm.", {0: 5 * 32_768 + 7, 2: 3 * 32_768, 3: 9 * 32_768})
    assert group_in_front(of, page, 77) == group  # type: ignore[arg-type]


def test_which_pages_wait_for_a_block() -> None:
    """Held for them or not."""
    assert is_delayed(file(".drmDHh").pages.states).tolist() == [
        letter in "dh" for letter in ".drmDHh"
    ]  # fmt: skip
