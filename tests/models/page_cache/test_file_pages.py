"""The pages of a file: their states, their blocks, and the runs and extents that they form."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models.page_cache.lettered import LETTERS, file, letters
from wbsim.models.page_cache.file_pages import FilePages
from wbsim.models.page_cache.pages import (
    awaiting_run,
    count_extents,
    delayed_extent,
    extent_before,
    hold_blocks,
    is_delayed,
    last_used,
    map_blocks,
    next_dirty,
    run_alike,
    take_run,
    unplaced_around,
    use_held,
    without_gap,
)


def test_next_dirty_searches_up_to_the_end_of_the_file() -> None:
    """Delayed and dirty pages count, with or without held blocks.

    Reserved pages, mapped pages and holes do not count.
    """
    pages = file(".rmHdDh").pages
    assert [next_dirty(pages, page) for page in range(7)] == [4, 4, 4, 4, 4, 5, 6]
    assert next_dirty(file("...d", size=3).pages, 0) == -1


@pytest.mark.parametrize(
    ("pages", "count"),
    [([0, 2, 1], 3), ([3, 4, 5], 3), ([2, 4, 3], 1), ([3, 5, 4], 1), ([4], 0), ([3, 3, 4, 0], 4), ([], 0)],
)
def test_writes_without_a_gap_are_inside_or_at_the_end(pages: list[int], count: int) -> None:
    """The file has three pages, and each write at its end makes it longer."""
    assert without_gap(file("d.m....", size=3).pages, np.array(pages, np.int64)) == count


def test_delayed_extent_has_adjacent_delayed_or_reserved_pages() -> None:
    """The extent is given by its first page and its length, and may reach the edges of the file."""
    pages = file("mddrrd.rr").pages
    assert delayed_extent(pages, 3) == delayed_extent(pages, 1) == (1, 5)
    assert delayed_extent(pages, 8) == (7, 2)
    assert delayed_extent(file("dd").pages, 1) == (0, 2)
    assert [is_delayed(LETTERS[letter]) for letter in ".drmDHh"] == [
        False,
        True,
        True,
        False,
        False,
        False,
        False,
    ]


def test_extent_before_ends_at_a_page_that_is_no_hole() -> None:
    """`extent_before` searches in front of a page, and `last_used` in the complete file."""
    pages = file("m..H.d..").pages
    assert [extent_before(pages, page) for page in (0, 1, 3, 4, 8)] == [-1, 0, 0, 3, 5]
    assert last_used(pages) == 5
    assert last_used(file("...").pages) == -1


def test_map_blocks_makes_delayed_pages_dirty_and_reserved_pages_mapped() -> None:
    """The pages get successive blocks."""
    of = file("ddrd")
    map_blocks(of.pages, 1, 70, 2)
    assert (letters(of), of.pages.blocks.tolist()) == ("dDmd", [-1, 70, 71, -1])


def test_pages_use_the_blocks_that_are_held_for_them() -> None:
    """A hole keeps its held block."""
    of = file(".ddH")
    hold_blocks(of.pages, 0, 40, 3)
    assert (letters(of), of.pages.blocks.tolist()) == ("HhhH", [40, 41, 42, -1])
    use_held(of.pages, 1, 2)
    assert (letters(of), of.pages.blocks.tolist()) == ("HDDH", [40, 41, 42, -1])


@pytest.mark.parametrize(
    ("states", "blocks", "at_most", "run"),
    [
        ("dddm", {}, 9, 3),
        ("dddd", {}, 2, 2),
        ("DDD", {0: 5, 1: 6, 2: 8}, 9, 2),
        ("DDD", {0: 5, 1: 6, 2: 7}, 9, 3),
        ("Dm", {0: 5, 1: 6}, 9, 1),
        ("hh", {0: 5, 1: 6}, 9, 2),
        ("hh", {0: 5, 1: 7}, 9, 1),
        ("hd", {0: 5}, 9, 1),
    ],
)
def test_run_has_one_state_and_successive_blocks(
    states: str, blocks: dict[int, int], at_most: int, run: int
) -> None:
    """Delayed pages have no blocks yet."""
    assert run_alike(file(states, blocks).pages, 0, at_most) == run


def test_awaiting_run_has_delayed_pages_with_or_without_held_blocks() -> None:
    """A dirty page has its block."""
    assert awaiting_run(file("mdhdD", {2: 5, 4: 6}).pages, 1, 9) == 3
    assert awaiting_run(file("dddd").pages, 0, 2) == 2
    assert awaiting_run(file("dd").pages, 0, 9) == 2
    assert awaiting_run(file("r").pages, 0, 9) == 0


def test_unplaced_range_ends_at_pages_with_blocks() -> None:
    """The range also ends at a page with a held block, and at the bounds."""
    pages = file("mdd.rdH").pages
    assert unplaced_around(pages, 3, 0, 7) == (1, 6)
    assert unplaced_around(pages, 3, 2, 5) == (2, 5)
    assert unplaced_around(file(".d.").pages, 1, 0, 99) == (0, 3)


def test_run_under_writeback_has_successive_blocks() -> None:
    """The run ends with the first page that is clean, has another block, or has a block that is only held."""
    for states, blocks, count in (
        ("DDDD", (5, 6, 7, 8), 3), ("DDD", (5, 6, 8), 2), ("DhD", (5, 6, 7), 1), ("DmD", (5, 6, 7), 1),
        ("D", (5,), 1), ("d", (5,), 0), ("m", (5,), 0),
    ):  # fmt: skip
        of = file(states, dict(enumerate(blocks)))
        assert take_run(of.pages.states, of.pages.blocks, 0, 3) == count
        assert letters(of) == "m" * count + states[count:]


def test_extents_break_between_blocks_and_at_the_file_s_end() -> None:
    """The blocks are 5 and 6, 8, none for a delayed page, and 20 and 21.

    Block 22 behind the end of the file is a separate extent, which `trim` frees.
    """
    of = file("mDmdmmm", {0: 5, 1: 6, 2: 8, 4: 20, 5: 21, 6: 22}, size=6, base=100)
    assert [tuple(extent) for extent in of.extents()] == [(0, 105, 2), (2, 108, 1), (4, 120, 2), (6, 122, 1)]
    assert of.extent_count() == 4
    assert count_extents(of.pages, 1, 5) == 2
    assert of.trim() == [(122, 1)]
    assert letters(of) == "mDmdmm."
    assert of.extent_count() == 3


def test_allocated_counts_mapped_pages_up_to_the_end() -> None:
    """Delayed and held pages, holes, and blocks behind the end of the file do not count."""
    of = file("mDdH.mm", {0: 10, 2: 12, 3: 13, 5: 20, 6: 21})
    of.pages.size[0] = 6
    assert of.allocated == 3


def test_held_blocks_are_given_up_in_runs() -> None:
    """The runs are in blocks of the disk, and the pages stay delayed."""
    of = file("Hhmhh", {0: 7, 1: 8, 2: 9, 3: 10, 4: 30}, base=100)
    assert of.give_up_held() == [(107, 2), (110, 1), (130, 1)]
    assert letters(of) == ".dmdd"
    assert of.give_up_held() == []


def test_file_grows_at_least_twofold_and_keeps_its_pages() -> None:
    """`end`, up to which the file may be written, grows too.  A file with enough room does not grow."""
    of = file("mD", {0: 5, 1: 6})
    of.make_room(2, 2)
    assert (len(of.pages.states), of.end) == (2, 2)
    of.make_room(3, 3)
    assert (letters(of), of.pages.blocks[:2].tolist(), of.end) == ("mD..", [5, 6], 4)
    of.make_room(100, 50)
    assert (len(of.pages.states), of.end, of.size) == (100, 50, 2)


def test_block_numbers_get_64_bits_beyond_2_31() -> None:
    """The number counts from the base, in front of it or behind it."""
    for first, wide in (
        (1 << 31, True),
        ((1 << 31) - 9, True),
        ((1 << 31) - 10, True),
        ((1 << 31) - 11, False),
    ):
        of = FilePages(4, 0)
        assert of.reach(first, 10) == first
        assert (of.pages.blocks.dtype == np.int64) == wide
    for base, wide in (((1 << 31) + 4, False), ((1 << 31) + 5, True)):
        of = FilePages(4, base)
        assert of.reach(5, 1) == 5 - base
        assert (of.pages.blocks.dtype == np.int64) == wide
