"""The decisions of XFS on the place of pages: reservations, targets, allocations, stripes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models.page_cache.lettered import file, letters
from wbsim.models.filesystems.xfs.free_extents import take_aligned
from wbsim.models.filesystems.xfs.free_space import FreeSpace, FreeTables
from wbsim.models.filesystems.xfs.layout import (
    GAP_UNITS,
    GROUP,
    LENGTH,
    MAX_EXTENT_PAGES,
    NEAR,
    NOWHERE,
    Prealloc,
    allocate,
    give_blocks,
    plan_extent,
    prealloc,
    target_of,
    write_all,
    write_page,
)
from wbsim.models.filesystems.xfs.spec import XfsRules
from wbsim.models.page_cache.file_pages import FilePages
from wbsim.models.page_cache.pages import UNWRITTEN

FIXED, SIZE, PRECEDING = (
    Prealloc(16, rule, zeroing_converts=False, stripe=1, whole_calls=False) for rule in range(3)
)
MANY = 1 << 40
"""More unclaimed blocks than these tests claim."""


def test_prealloc_follows_the_era_or_allocsize() -> None:
    """A unit has 64 KiB without allocsize; with allocsize the unit is fixed."""
    rules = XfsRules(
        prealloc="size",
        zeroing_converts=True,
        nr_to_write_counts="pages",
        whole_calls=True,
        wraps=False,
        unwritten=False,
        large_folios=False,
        spans_calls=True,
        sync_data=True,
        tries_writes=True,
        pagevec=14,
        cil="spinlock",
        log_flushes="records",
    )
    assert prealloc(rules, None) == Prealloc(16, 1, True, 1, True)
    assert prealloc(rules, None, 4) == Prealloc(16, 1, True, 4, True)
    assert prealloc(rules, 64, 4) == Prealloc(64, 0, True, 4, True)
    assert prealloc(rules, None, 4, 500) == Prealloc(16, 1, True, 4, True, 500)
    assert prealloc(rules, 64, 4, 500) == Prealloc(64, 0, True, 4, True, 500)


@pytest.mark.parametrize(
    ("rule", "states", "blocks", "page", "call", "end"),
    [
        # always to the next unit
        (FIXED, "", {}, 0, 1, 16), (FIXED, "d" * 16, {}, 16, 1, 32), (FIXED, "", {}, 20, 1, 32),
        # nothing below a unit; then the largest power of two up to the file's size
        (SIZE, "d" * 15, {}, 15, 1, 16), (SIZE, "d" * 16, {}, 16, 1, 32), (SIZE, "d" * 31, {}, 31, 1, 32),
        (SIZE, "d" * 32, {}, 32, 1, 64), (SIZE, "d" * 63, {}, 63, 1, 80), (SIZE, "d" * 64, {}, 64, 1, 128),
        # twice the extent that leads up to the page: a complete delayed extent ...
        (PRECEDING, "d" * 15, {}, 15, 1, 16), (PRECEDING, "d" * 16, {}, 16, 1, 48),
        (PRECEDING, "d" * 20, {}, 20, 1, 48), (PRECEDING, "." * 8 + "d" * 12, {}, 20, 1, 32),
        # ... mapped extents as far as they lie together on disk
        (PRECEDING, "m" * 20, {i: 100 + i for i in range(20)}, 20, 1, 48),
        (PRECEDING, "m" * 20, {i: 100 + i + 9 * (i > 3) for i in range(20)}, 20, 1, 48),
        (PRECEDING, "m" * 20, {i: 100 + i + 9 * (i > 4) for i in range(20)}, 20, 1, 32),
        # ... and nothing across a hole
        (PRECEDING, "d" * 20, {}, 21, 1, 32),
    ],
)  # fmt: skip
def test_growing_file_reserves_by_the_extents_in_front(
    rule: Prealloc, states: str, blocks: dict[int, int], page: int, call: int, end: int
) -> None:
    """The end of the reservation depends on the rule of the era, and on the pages in front."""
    of = file(states + "." * (200 - len(states)), blocks, size=len(states))
    assert write_page(of.pages, page, call, rule, MANY) == (1, end - page)
    assert letters(of)[page:] == "d" + "r" * (end - page - 1) + "." * (200 - end)
    assert of.size == page + 1


def test_reservation_ends_at_a_multiple_of_the_stripe_unit() -> None:
    """A file must have at least a stripe unit for this.

    A call of several pages reserves from its last page on.
    """
    small, large = (file("d" * size + "." * (100 - size), size=size) for size in (8, 24))
    striped = FIXED._replace(stripe=24)
    write_page(small.pages, 8, 1, striped, MANY)
    write_page(large.pages, 24, 1, striped, MANY)
    assert letters(small).rindex("r") == 15
    assert letters(large).rindex("r") == 47
    # the rule by the preceding extents needs a file of a stripe unit, too
    unit = file("d" * 20 + "." * 100, size=20)
    write_page(unit.pages, 20, 1, PRECEDING._replace(stripe=24), MANY)
    assert letters(unit).rindex("r") == 31
    calls = file("." * 64, size=0)
    write_page(calls.pages, 14, 8, FIXED._replace(whole_calls=True), MANY)
    assert letters(calls).rindex("r") == 15
    calls = file("." * 64, size=0)
    write_page(calls.pages, 15, 32, FIXED._replace(whole_calls=True), MANY)
    assert letters(calls).rindex("r") == 31


def test_reservation_of_a_large_file_has_at_most_one_extent() -> None:
    """The reservation doubles up to 2^21 pages.

    The page number replaces the length of the extents in front, if these are longer than an extent may be.
    """
    pages = MAX_EXTENT_PAGES + 40
    of = FilePages(3 * pages, 0)
    of.pages.states[:pages], of.pages.size[0] = 1, pages
    write_page(of.pages, pages, 1, PRECEDING, MANY)
    reserved = np.flatnonzero(of.pages.states == 4)
    assert reserved[-1] + 1 == pages // 16 * 16 + (1 << 21)


@pytest.mark.parametrize(
    ("pages", "ahead"),
    [(1_048_575, 1 << 20), (1_048_576, 1 << 20), (1_600_000, 1 << 20), (2_097_152, 1 << 21)],
)
def test_twice_an_extent_is_at_most_the_largest_extent(pages: int, ahead: int) -> None:
    """Twice 1 048 575 pages is 2 097 150, and an extent has at most 2 097 151.

    Above that, xfs_iomap_prealloc_size takes the file's offset, rounded down to a power of two.
    """
    of = FilePages(pages + (1 << 21) + 64, 0)
    of.pages.states[:pages], of.pages.size[0] = 1, pages
    write_page(of.pages, pages, 1, PRECEDING, MANY)
    assert np.flatnonzero(of.pages.states == 4)[-1] + 1 == pages // 16 * 16 + ahead


@pytest.mark.parametrize(
    ("before", "after", "clean"),
    [
        (".", "d", 1), ("r", "d", 1), ("m", "D", 1), ("u", "U", 1), ("d", "d", 0), ("D", "D", 0),
        ("U", "U", 0),
    ],
)  # fmt: skip
def test_write_inside_a_file_reserves_no_page(before: str, after: str, clean: int) -> None:
    """The page becomes delayed or dirty; only a hole claims a block."""
    of = file("d" + before + "d.....", {1: 5}, size=3)
    assert write_page(of.pages, 1, 1, FIXED, MANY) == (clean, int(before == "."))
    assert letters(of) == "d" + after + "d....."
    assert of.size == 3


def test_reservation_ends_at_the_next_used_page() -> None:
    """The reservation also ends at the end of the room."""
    of = file("....m...", {4: 9}, size=0)
    assert write_page(of.pages, 1, 1, FIXED, MANY) == (1, 3)
    assert letters(of) == ".drrm..."


@pytest.mark.parametrize("left", [0, -3])
def test_a_page_without_a_free_block_is_not_written(left: int) -> None:
    """Only a hole needs a block; fewer than none are left once inodes have taken blocks that were kept."""
    of = file(".drmDuU.", {3: 5, 4: 6, 5: 7, 6: 8}, size=7)
    assert write_page(of.pages, 0, 1, FIXED, left) == (-1, 0)
    assert write_page(of.pages, 7, 1, FIXED, left) == (-1, 0)
    assert letters(of) == ".drmDuU."
    assert write_all(of.pages, np.array([1, 2, 3, 4, 5, 6, 0, 1]), 1, FIXED, 8, left) == (6, 3, 0)
    assert letters(of) == ".ddDDUU."
    assert of.size == 7


@pytest.mark.parametrize(("left", "after"), [(12, "dddd" + "." * 12), (13, "dddd" + "r" * 12)])
def test_reservation_that_does_not_fit_is_left_out(left: int, after: str) -> None:
    """Page 3 is written, with twelve pages behind it or with none."""
    of = file("ddd" + "." * 13, size=3)
    assert write_page(of.pages, 3, 1, FIXED, left) == (1, after.count("r") + 1)
    assert letters(of) == after


def test_writes_of_one_call_share_the_free_blocks() -> None:
    """Five blocks are left: pages 0 to 2 claim three, and page 14 with its reservation two."""
    of = file("." * 64, size=14)
    rule = FIXED._replace(unit=4)
    assert write_all(of.pages, np.array([0, 1, 2, 14, 15, 3]), 1, rule, 64, 5) == (5, 5, 5)
    assert letters(of)[:18] == "ddd" + "." * 11 + "dd.."
    assert write_all(of.pages, np.array([15, 3, 1]), 1, rule, 64, 0) == (1, 0, 0)


@pytest.mark.parametrize(
    ("left", "ahead"),
    [
        (500, 64), (499, 16), (400, 16), (399, 8), (300, 8), (299, 4), (200, 4), (199, 2), (100, 2), (99, 1),
        (2, 1),
    ],
)  # fmt: skip
def test_reservations_shrink_as_the_filesystem_fills_up(left: int, ahead: int) -> None:
    """xfs_iomap_prealloc_size: 64 pages become a quarter below 5 % of 10 000 blocks.

    They are halved again for each percent less, and a unit of one page is the least.
    """
    of = file("d" * 32 + "." * 100, size=32)
    write_page(of.pages, 32, 1, PRECEDING._replace(unit=1, percent=100), left)
    assert letters(of)[32:] == "d" + "r" * (ahead - 1) + "." * (100 - ahead)


@pytest.mark.parametrize(("left", "ahead"), [(65, 64), (64, 4), (5, 4), (4, 1)])
def test_reservation_shrinks_until_it_is_free(left: int, ahead: int) -> None:
    """64 pages are divided by 16 while as many blocks are not free."""
    of = file("d" * 32 + "." * 100, size=32)
    assert write_page(of.pages, 32, 1, PRECEDING._replace(unit=1), left) == (1, ahead)
    assert letters(of)[32:] == "d" + "r" * (ahead - 1) + "." * (100 - ahead)


def test_a_write_behind_a_delayed_end_waits_for_its_conversion() -> None:
    """A write waits from 6.10 on, if the page behind the end is reserved or delayed.

    A write right behind the end does not wait.
    """
    rule = FIXED._replace(zeroing_converts=True)
    of = file("ddrr....", size=2)
    assert write_page(of.pages, 4, 1, rule, MANY) == (-1, 0)
    assert letters(of) == "ddrr...."
    assert write_all(of.pages, np.array([1, 2, 7, 3]), 1, rule, 8, MANY) == (2, 1, 0)
    of = file("dd......", size=2)
    assert write_all(of.pages, np.array([2, 0, 9, 1]), 1, rule, 8, MANY) == (2, 1, 6)
    assert write_page(of.pages, 5, 1, FIXED, MANY) == (1, 0)


@pytest.mark.parametrize(
    ("states", "blocks", "page", "target"),
    [
        ("ddd", {}, 1, NOWHERE),
        ("mdd", {0: 100}, 1, 101),
        ("mdd", {0: 100}, 2, 101),
        ("m..dd", {0: 100}, 3, 103),  # the gap is kept
        ("m........d", {0: 100}, 9, 101),  # a gap of eight pages is too wide for one page
        ("m....d", {0: 100}, 5, 105),  # a gap of four pages is not too wide
        ("D.dd", {0: 100}, 2, 102),
        ("u.dd", {0: 100}, 2, 102),  # blocks count that are unwritten, too
        ("U.dd", {0: 100}, 2, 102),
        ("m.Hd", {0: 100}, 3, NOWHERE),  # a held hole in front is no extent
        ("mdd", {0: 999}, 1, NOWHERE),  # the next block is another group's
        ("m..dd", {0: 997}, 3, 998),  # the gap would lead into another group, the next block does not
        ("m.dd", {0: 997}, 2, 999),
    ],
)
def test_target_lies_behind_the_extent_in_front(
    states: str, blocks: dict[int, int], page: int, target: int
) -> None:
    """A group has 1 000 blocks."""
    assert GAP_UNITS == 4
    assert target_of(file(states, blocks).pages, page, 1_000) == target


@pytest.mark.parametrize(
    ("states", "size", "taken", "block"),
    [
        ("dddd....", 4, [], 104),  # at the beginning of a file, at the next multiple of four
        ("mmmmdddd", 8, [], 102),  # elsewhere exactly behind the extent in front
        ("mmmmdddd", 8, [103], 104),  # if that block is taken, at the next multiple
        ("mmmmdddm", 8, [], 102),  # shorter than a unit: near
        ("mdddd.mm", 8, [], 102),  # not at the end of the file
    ],
)
def test_an_extent_of_a_stripe_unit_is_aligned(states: str, size: int, taken: list[int], block: int) -> None:
    """The unit has four blocks; the space is free from 101 on, and the target is 102."""
    of, space = file(states, {i: i for i in range(8)}, size=size), FreeSpace(101, 500)
    tables = space.with_room(8)
    for one in taken:
        space.take_near(one, 1)
    page = states.index("d")
    allocate(of.pages, tables, 0, page, 102, 0, 4)
    assert of.pages.blocks[page] == block
    assert set(letters(of)[page : page + states.count("d")]) == {"D"}


@pytest.mark.parametrize(("blocks", "taken"), [(7, (104, 4)), (6, (101, 4))])
def test_alignment_needs_room_in_the_longest_extent(blocks: int, taken: tuple[int, int]) -> None:
    """Four blocks at a multiple of four need seven blocks together, at any place."""
    assert take_aligned(FreeSpace(101, blocks).with_room(1), 0, 101, 4, 4) == taken


def test_groups_keep_their_longest_extents_apart() -> None:
    """A change of one group does not change the other."""
    tables = FreeTables(2)
    one, two = FreeSpace(100, 9, tables, 0), FreeSpace(0, 11, tables, 1)
    assert (one.longest(), two.longest()) == (9, 11)
    one.take_near(100, 4)
    assert (one.longest(), two.longest()) == (5, 11)
    two.take_near(5, 2)
    assert (one.longest(), two.longest()) == (5, 5)
    one.give_back(100, 4)
    assert (one.longest(), two.longest()) == (9, 5)


def test_fragmented_group_gives_its_longest_piece() -> None:
    """Three pages get blocks, and the other pages stay delayed."""
    of, space = file("dddddrr", size=5), FreeSpace(10, 2)
    space.give_back(20, 3)
    allocate(of.pages, space.with_room(4), 0, 2, 0, 1_000)
    assert letters(of) == "DDDddrr"
    assert of.pages.blocks[:3].tolist() == [1_020, 1_021, 1_022]


def test_allocation_without_a_target_takes_the_smallest_sufficient_extent() -> None:
    """xfs_alloc_ag_vextent_size: if no free extent suffices, the longest is taken."""
    of, space = file("dd.ddd.dddd"), FreeSpace(10, 2)
    space.give_back(20, 3)
    space.give_back(30, 2)
    for page in (0, 3, 7):
        allocate(of.pages, space.with_room(1), 0, page, NOWHERE, 0)
    assert [(e.page, e.block, e.pages) for e in of.extents()] == [(0, 10, 2), (3, 20, 3), (7, 30, 2)]
    assert not space.blocks


@pytest.mark.parametrize(
    ("states", "blocks", "page", "plan"),
    [
        ("ddrr", {}, 1, (4, 0, 0)),  # a delayed extent counts with the reserved pages behind it
        ("mdd", {0: 100}, 1, (2, 0, 101)),
        ("m.dd", {0: 2_100}, 2, (2, 2, 102)),  # two groups further on
        ("mdd", {0: -900}, 1, (2, -1, 101)),  # a group in front of the file's own
        ("mDD", {0: 100, 1: 7, 2: 8}, 1, (0, 0, 0)),  # another task was faster
    ],
)
def test_plan_has_the_length_the_group_and_the_block(
    states: str, blocks: dict[int, int], page: int, plan: tuple[int, int, int]
) -> None:
    """A group has 1 000 blocks; the plan counts groups from the file's own, and blocks in the group."""
    of, found = file(states, blocks), np.full(7, -7)
    plan_extent(of.pages.states, of.pages.blocks, of.pages.size, page, 1_000, found)
    assert tuple(found[[LENGTH, GROUP, NEAR]].tolist()) == plan


@pytest.mark.parametrize(("unwritten", "states"), [(0, "DD.DDD"), (UNWRITTEN, "UU.UUU")])
def test_give_blocks_gives_the_same_blocks_as_allocate(unwritten: int, states: str) -> None:
    """`give_blocks` takes the arrays of the free space one by one; the blocks may be unwritten."""
    by_table, by_array = file("dd.ddd"), file("dd.ddd")
    spaces = [FreeSpace(10, 40), FreeSpace(10, 40)]
    for page, near in ((0, 20), (3, NOWHERE)):
        allocate(by_table.pages, spaces[0].with_room(1), 0, page, near, 1_000, unwritten=unwritten)
        plan = np.array([0, 0, near, 1_000, 1, unwritten, -7])
        give_blocks(*by_array.pages, spaces[1].arrays_with_room(1), page, plan)
    assert by_table.extents() == by_array.extents() == [(0, 1_020, 2), (3, 1_010, 3)]
    assert letters(by_table) == letters(by_array) == states
    assert spaces[0].extents() == spaces[1].extents()
