"""What XFS decides about the place of pages, case by case: reservations, targets, conversions, the walk."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.harness import group_spaces, walk_xfs
from tests.models.filesystems.lock_times import begin, ends, held, table
from tests.models.page_cache.lettered import file, letters
from wbsim.models.filesystems.lock_table import hold
from wbsim.models.filesystems.page_walk import BLOCKED, DONE, GO_ON
from wbsim.models.filesystems.walk_state import Walk
from wbsim.models.filesystems.xfs.free_extents import take_aligned
from wbsim.models.filesystems.xfs.free_space import FreeSpace
from wbsim.models.filesystems.xfs.layout import (
    GAP_UNITS,
    MAX_EXTENT_PAGES,
    NOWHERE,
    Prealloc,
    allocate,
    prealloc,
    target_of,
    write_all,
    write_page,
)
from wbsim.models.filesystems.xfs.spec import XfsRules
from wbsim.models.page_cache.file_pages import FilePages

FIXED, SIZE, PRECEDING = (
    Prealloc(16, rule, zeroing_converts=False, stripe=1, whole_calls=False) for rule in range(3)
)


def test_the_rules_of_an_era_and_of_allocsize() -> None:
    """64 KiB without allocsize; with it, always so much."""
    rules = XfsRules(
        prealloc="size",
        zeroing_converts=True,
        nr_to_write_counts="pages",
        whole_calls=True,
        wraps=False,
        unwritten=False,
        large_folios=False,
        cil="spinlock",
    )
    assert prealloc(rules, None) == Prealloc(16, 1, True, 1, True)
    assert prealloc(rules, None, 4) == Prealloc(16, 1, True, 4, True)
    assert prealloc(rules, 64, 4) == Prealloc(64, 0, True, 4, True)


@pytest.mark.parametrize(
    ("rule", "states", "blocks", "page", "call", "end"),
    [
        # always to the next unit
        (FIXED, "", {}, 0, 1, 16), (FIXED, "d" * 16, {}, 16, 1, 32), (FIXED, "", {}, 20, 1, 32),
        # nothing below a unit; then the largest power of two up to the file's size
        (SIZE, "d" * 15, {}, 15, 1, 16), (SIZE, "d" * 16, {}, 16, 1, 32), (SIZE, "d" * 31, {}, 31, 1, 32),
        (SIZE, "d" * 32, {}, 32, 1, 64), (SIZE, "d" * 63, {}, 63, 1, 80), (SIZE, "d" * 64, {}, 64, 1, 128),
        # twice what leads up to the page: a delayed extent as a whole ...
        (PRECEDING, "d" * 15, {}, 15, 1, 16), (PRECEDING, "d" * 16, {}, 16, 1, 48),
        (PRECEDING, "d" * 20, {}, 20, 1, 48), (PRECEDING, "." * 8 + "d" * 12, {}, 20, 1, 32),
        # ... mapped ones as far as they lie together on disk
        (PRECEDING, "m" * 20, {i: 100 + i for i in range(20)}, 20, 1, 48),
        (PRECEDING, "m" * 20, {i: 100 + i + 9 * (i > 3) for i in range(20)}, 20, 1, 48),
        (PRECEDING, "m" * 20, {i: 100 + i + 9 * (i > 4) for i in range(20)}, 20, 1, 32),
        # ... and nothing across a hole
        (PRECEDING, "d" * 20, {}, 21, 1, 32),
    ],
)  # fmt: skip
def test_how_far_a_growing_file_reserves(
    rule: Prealloc, states: str, blocks: dict[int, int], page: int, call: int, end: int
) -> None:
    """By era, by what is there."""
    of = file(states + "." * (200 - len(states)), blocks, size=len(states))
    assert write_page(of.pages, page, call, rule) == 1
    assert letters(of)[page:] == "d" + "r" * (end - page - 1) + "." * (200 - end)
    assert of.size == page + 1


def test_stripes_and_whole_calls() -> None:
    """A file of a stripe unit at least ends at a multiple of it; a call of several pages reserves from its
    last.
    """
    small, large = (file("d" * size + "." * (100 - size), size=size) for size in (8, 24))
    striped = FIXED._replace(stripe=24)
    write_page(small.pages, 8, 1, striped)
    write_page(large.pages, 24, 1, striped)
    assert letters(small).rindex("r") == 15
    assert letters(large).rindex("r") == 47
    # what is read of the preceding extents needs a stripe unit, too
    unit = file("d" * 20 + "." * 100, size=20)
    write_page(unit.pages, 20, 1, PRECEDING._replace(stripe=24))
    assert letters(unit).rindex("r") == 31
    calls = file("." * 64, size=0)
    write_page(calls.pages, 14, 8, FIXED._replace(whole_calls=True))
    assert letters(calls).rindex("r") == 15
    calls = file("." * 64, size=0)
    write_page(calls.pages, 15, 32, FIXED._replace(whole_calls=True))
    assert letters(calls).rindex("r") == 31


def test_a_very_large_file_reserves_an_extent_at_most() -> None:
    """Doubling ends at 2^21 pages where an extent is longer than that, or at the page."""
    pages = MAX_EXTENT_PAGES + 40
    of = FilePages(3 * pages, 0)
    of.pages.states[:pages], of.pages.size[0] = 1, pages
    write_page(of.pages, pages, 1, PRECEDING)
    reserved = np.flatnonzero(of.pages.states == 4)
    assert reserved[-1] + 1 == pages // 16 * 16 + (1 << 21)


@pytest.mark.parametrize(
    ("before", "after", "clean"),
    [(".", "d", 1), ("r", "d", 1), ("m", "D", 1), ("d", "d", 0), ("D", "D", 0)],
)
def test_a_page_becomes_dirty(before: str, after: str, clean: int) -> None:
    """Inside the file: nothing is reserved."""
    of = file("d" + before + "d.....", {1: 5}, size=3)
    assert write_page(of.pages, 1, 1, FIXED) == clean
    assert letters(of) == "d" + after + "d....."
    assert of.size == 3


def test_a_reservation_ends_at_what_is_there() -> None:
    """And at the end of the room."""
    of = file("....m...", {4: 9}, size=0)
    write_page(of.pages, 1, 1, FIXED)
    assert letters(of) == ".drrm..."


def test_a_write_behind_a_delayed_end_waits_for_its_conversion() -> None:
    """From 6.10 on, where the page behind the end is reserved or delayed; right behind it nothing waits."""
    rule = FIXED._replace(zeroing_converts=True)
    of = file("ddrr....", size=2)
    assert write_page(of.pages, 4, 1, rule) == -1
    assert letters(of) == "ddrr...."
    assert write_all(of.pages, np.array([1, 2, 7, 3]), 1, rule, 8) == (2, 1)
    of = file("dd......", size=2)
    assert write_all(of.pages, np.array([2, 0, 9, 1]), 1, rule, 8) == (2, 1)
    assert write_page(of.pages, 5, 1, FIXED) == 1


@pytest.mark.parametrize(
    ("states", "blocks", "page", "target"),
    [
        ("ddd", {}, 1, NOWHERE),
        ("mdd", {0: 100}, 1, 101),
        ("mdd", {0: 100}, 2, 101),
        ("m..dd", {0: 100}, 3, 103),  # the gap is kept
        ("m........d", {0: 100}, 9, 101),  # eight pages for one are too wide
        ("m....d", {0: 100}, 5, 105),  # four are not
        ("D.dd", {0: 100}, 2, 102),
        ("m.Hd", {0: 100}, 3, NOWHERE),  # what is held in front is no extent
        ("mdd", {0: 999}, 1, NOWHERE),  # the next block is another group's
        ("m..dd", {0: 997}, 3, 998),  # the gap would lead there, the block behind does not
        ("m.dd", {0: 997}, 2, 999),
    ],
)
def test_the_target_of_an_allocation(states: str, blocks: dict[int, int], page: int, target: int) -> None:
    """Groups of 1 000 blocks."""
    assert GAP_UNITS == 4
    assert target_of(file(states, blocks).pages, page, 1_000) == target


@pytest.mark.parametrize(
    ("states", "size", "taken", "block"),
    [
        ("dddd....", 4, [], 104),  # at the beginning of a file, at the next multiple of four
        ("mmmmdddd", 8, [], 102),  # else exactly behind what is in front
        ("mmmmdddd", 8, [103], 104),  # where that is taken, at the next multiple
        ("mmmmdddm", 8, [], 102),  # shorter than a unit: near
        ("mdddd.mm", 8, [], 102),  # not at the end of the file
    ],
)
def test_an_extent_of_a_stripe_unit_is_aligned(states: str, size: int, taken: list[int], block: int) -> None:
    """With a unit of four blocks; the space is free from 101 on, the target 102."""
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
    """Four blocks at a multiple of four need seven blocks together, wherever these begin."""
    assert take_aligned(FreeSpace(101, blocks).with_room(1), 0, 101, 4, 4) == taken


def test_groups_keep_their_longest_extents_apart() -> None:
    """A change of one group leaves the other as it is."""
    one, two = group_spaces((100, 9), (0, 11))
    assert (one.longest(), two.longest()) == (9, 11)
    one.take_near(100, 4)
    assert (one.longest(), two.longest()) == (5, 11)
    two.take_near(5, 2)
    assert (one.longest(), two.longest()) == (5, 5)
    one.give_back(100, 4)
    assert (one.longest(), two.longest()) == (9, 5)


def test_a_fragmented_group_gives_as_much_as_lies_together() -> None:
    """The longest piece of three; the rest stays delayed."""
    of, space = file("dddddrr", size=5), FreeSpace(10, 2)
    space.give_back(20, 3)
    allocate(of.pages, space.with_room(4), 0, 2, 0, 1_000)
    assert letters(of) == "DDDddrr"
    assert of.pages.blocks[:3].tolist() == [1_020, 1_021, 1_022]


def test_who_was_going_elsewhere_takes_the_smallest_free_extent_that_has_room() -> None:
    """xfs_alloc_ag_vextent_size; if none has, the longest."""
    of, space = file("dd.ddd.dddd"), FreeSpace(10, 2)
    space.give_back(20, 3)
    space.give_back(30, 2)
    for page in (0, 3, 7):
        allocate(of.pages, space.with_room(1), 0, page, NOWHERE, 0)
    assert [(e.page, e.block, e.pages) for e in of.extents()] == [(0, 10, 2), (3, 20, 3), (7, 30, 2)]
    assert not space.blocks


def test_a_walk_counts_what_it_does() -> None:
    """Five delayed pages, two that have blocks; factors of 2 and 0.5: two allocations of 2 070 and 570 ns,
    seven pages of 3 ns. The bios are of four pages at most; the ranges of blocks are two, as the second
    delayed extent lies behind the mapped one.
    """
    of, space = file("ddddd.DDdr", {6: 500, 7: 501}, size=9), FreeSpace(100, 5)
    space.give_back(502, 8)
    at = Walk(0, 100)
    ended, bios = walk_xfs(of, space, at, dice=[2.0, 0.5, 9.0])
    assert (ended, bios) == (DONE, [[100, 4], [104, 1], [500, 2], [502, 1]])
    assert letters(of) == "mmmmm.mmmm"
    assert (at.elapsed_ns, at.pages, at.wrote, at.bios) == (2_070 + 570 + 8 * 3, 8, 8, 4)
    assert (at.ranges, at.mapped_extents, at.dice) == (2, 2, 2)
    assert (at.left, at.page) == (92, 0)


def test_a_walk_s_budget() -> None:
    """Three pages of five; the next begins behind them."""
    of, at = file("DDDDD", {i: 10 + i for i in range(5)}), Walk(0, 3)
    assert walk_xfs(of, FreeSpace(100, 9), at) == (DONE, [[10, 3]])
    assert (at.page, at.left, at.wrote) == (3, 0, 3)


def test_a_walk_stops_behind_what_began_before_its_horizon() -> None:
    """An allocation ends at 1 070: with a horizon of 1 069 the walk ends with it, and no page is written;
    with 1 070, four pages are, and then no more.
    """
    for horizon_ns, bios in ((1_069, []), (1_070, [[100, 4]])):
        of, at = file("ddddd", size=5), Walk(0, 100)
        assert walk_xfs(of, FreeSpace(100, 9), at, horizon_ns) == (GO_ON, bios)
    assert walk_xfs(of, FreeSpace(200, 9), at) == (DONE, [[104, 1]])
    assert (at.mapped_extents, at.elapsed_ns, at.pages, at.wrote) == (0, 3, 1, 5)


def test_a_walk_whose_bios_are_full_goes_on_later() -> None:
    """Two rows: the third has to wait."""
    of, at = file("D.D.D", {0: 10, 2: 20, 4: 30}), Walk(0, 100)
    assert walk_xfs(of, FreeSpace(100, 9), at, rows=2) == (GO_ON, [[10, 1], [20, 1]])
    assert walk_xfs(of, FreeSpace(100, 9), at, rows=2) == (DONE, [[30, 1]])


@pytest.mark.parametrize(
    ("states", "blocks", "changes", "stops"),
    [
        ("dd", {}, {}, False),
        ("md", {0: 10_005}, {}, False),  # goes where the one in front is, in another group
        ("md", {0: 10_005}, {"reach": 0}, False),  # that is beyond its block numbers: the own group
        ("d" * 10, {}, {}, False),  # the own group has not as much together
        ("d" * 10, {}, {"reach": 0}, True),
        ("d" * 10, {}, {"reach": 0, "granted": 1}, False),  # its flusher has waited for that one
        ("d" * 11, {}, {}, False),  # the other group has just as much
        ("d" * 12, {}, {}, True),
        ("d" * 12, {}, {"granted": 1}, False),  # 11 from what its flusher has waited for, one from its own
    ],
)
def test_what_a_walk_may_convert_itself(
    states: str, blocks: dict[int, int], changes: dict[str, Any], stops: bool
) -> None:
    """In any group with room that its block numbers reach; what a flusher has waited for, it takes."""
    of, at = file(states, blocks), Walk(0, 100)
    space, _ = group_spaces((100, 9), (0, 11))
    assert walk_xfs(of, space, at, **changes)[0] == (BLOCKED if stops else DONE)
    assert bool(at.mapped_extents) == (not stops)


def test_a_walk_without_dice_asks_for_more() -> None:
    """One factor, two extents."""
    of, at = file("d.d"), Walk(0, 100)
    assert walk_xfs(of, FreeSpace(100, 9), at, dice=[1.0])[0] == GO_ON
    assert (at.dice, at.page) == (1, 0)


def test_the_quota_of_calls() -> None:
    """2.6.34: a budget of 2, times four, is the most that a call clusters beside its own page, 9 in all; what
    it wrote beyond its own comes off, and it is one call: 8 - 8 = 0 are left; then 1 + 1 pages, of 0 * 4 - 1.
    """
    of, at = file("D" * 30, {i: 10 + i for i in range(30)}), Walk(0, 2)
    at.calls = 2
    assert walk_xfs(of, FreeSpace(100, 9), at, calls_x4=True, bio_pages=100) == (DONE, [[10, 9], [19, 2]])
    assert (at.left, at.calls, at.wrote, at.page) == (-1, 0, 11, 11)


@pytest.mark.parametrize(
    ("states", "blocks", "locked", "goes_to"),
    [
        ("dd", {}, {0}, 10_005),  # the smallest that has room
        ("md", {0: 105}, {0}, 10_005),  # where it was going to does not matter there
        ("md", {0: 105}, {1}, 106),
        ("md", {0: 10_000}, {0}, 10_001),  # who goes on there does so
        ("md", {0: 10_000}, {1}, 20_040),
        ("md", {0: 20_040}, {2}, 100),  # behind the last comes the first
        ("dd", {}, {0, 1}, 20_040),
        ("dd", {}, {0, 1, 2}, None),
        ("dddd", {}, {0}, 20_040),  # there are no four together beyond
    ],
)
def test_while_a_group_is_locked_the_next_one_is_taken(
    states: str, blocks: dict[int, int], locked: set[int], goes_to: int | None
) -> None:
    """At 49, some are until 50. There are 9 blocks in the first, 3 and 2 in the second, 9 in the third."""
    of, at, locks = file(states, blocks), Walk(0, 100), table(3)
    spaces = group_spaces((100, 9), (0, 3), (40, 9))
    spaces[1].give_back(5, 2)
    for number in locked:
        hold(locks, number, 0, 50)
    ended, bios = walk_xfs(of, spaces[0], at, now_ns=49, locks=locks)
    if goes_to is None:
        assert (ended, at.mapped_extents, at.elapsed_ns) == (BLOCKED, 0, 0)
        return
    assert (ended, bios[0][0], at.mapped_extents) == (DONE, goes_to, 1)
    for number in range(3):
        instants = range(49 + 1_069, 49 + 1_071)
        assert held(locks, instants, number) == [49 + 1_069] * (number == goes_to // 10_000)


def test_a_walk_sleeps_for_its_file_s_lock_and_keeps_it() -> None:
    """A conversion of that file is in the first of its two transactions, of 300, since 100: at 150 the walk
    is given the lock at 400, wakes at 405 and has it for 1 070; then the conversion is woken, and ends at
    1 780.
    """
    of, at, locks = file("d"), Walk(0, 100), table()
    begin(locks, 0, 0, 100, 2, 200, 100)
    ended, _ = walk_xfs(of, FreeSpace(100, 9), at, now_ns=150, locks=locks)
    assert (ended, at.for_file_ns, at.for_group_ns, at.elapsed_ns) == (DONE, 255, 0, 255 + 1_070 + 3)
    assert held(locks, range(1_474, 1_476)) == [1_474]
    assert ends(locks, 0, at=1_780) == [1_780]


def test_a_walk_waits_for_the_group_of_what_it_has_mapped() -> None:
    """Its allocation ends at 1 070; a conversion of another file has asked at 500 and has the lock until
    1 175, the walk from 1 180 on, for 200.
    """
    of, at, locks = file("d"), Walk(0, 100), table(1, 2)
    begin(locks, 0, 0, 0, 1, 500, 100)
    ended, _ = walk_xfs(of, FreeSpace(100, 9), at, locks=locks, row=1, rmap_ns=200)
    assert (ended, at.for_file_ns, at.for_group_ns, at.elapsed_ns) == (DONE, 0, 110, 1_380 + 3)
    assert held(locks, range(1_379, 1_381)) == [1_379]


def test_a_walk_that_finds_no_group_leaves_the_file() -> None:
    """The only one is held until 5 000: the worker, who waits for it at 110, goes on in its file at once."""
    of, at, locks = file("d"), Walk(0, 100), table()
    begin(locks, 0, 0, 100, 1, 50, 0)
    hold(locks, 0, 90, 4_910)
    ended, _ = walk_xfs(of, FreeSpace(100, 9), at, now_ns=100, locks=locks)
    assert (ended, at.mapped_extents) == (BLOCKED, 0)
    assert ends(locks, 0, at=200) == [155]


def test_pages_apart_in_the_file_are_ranges_of_their_own() -> None:
    """Together on disk or not: each is converted by itself."""
    of, at = file("D.DD.D", {0: 10, 2: 11, 3: 12, 5: 40}), Walk(0, 100)
    walk_xfs(of, FreeSpace(100, 9), at)
    assert at.ranges == 3
