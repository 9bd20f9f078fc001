"""The blocks that ext4's allocator finds: buddies, pieces, groups."""

from __future__ import annotations

import pytest

from wbsim.models.filesystems.blocks import Free
from wbsim.models.filesystems.ext4.geometry import GROUP_BLOCKS, Geometry
from wbsim.models.filesystems.ext4.mballoc import BlockGroup, Mballoc, _pieces


def group(*runs: tuple[int, int]) -> BlockGroup:
    """Return group 2, in which only the blocks of *runs* are free."""
    made = BlockGroup(2, GROUP_BLOCKS)
    for run in runs:
        made.give_back(*run)
    return made


def test_fresh_group_is_free_behind_its_head() -> None:
    """The largest buddy of 32 668 blocks has 8 192 blocks, which is order 13."""
    fresh = BlockGroup(2, 100)
    assert (fresh.first_block, fresh.blocks, fresh.order) == (65_536, 32_668, 13)
    assert list(fresh.runs()) == [Free(100, 32_668)]
    assert (group().order, group().blocks, list(group().runs())) == (-1, 0, [])


def test_group_takes_blocks_and_joins_blocks_given_back() -> None:
    """Blocks are taken in the middle, at both ends, and all of a run; blocks given back join both sides."""
    of = group((10, 20))
    assert not of.take(9, 2)
    assert not of.take(29, 2)
    assert not of.take(5, 2)
    assert of.take(15, 5)
    assert list(of.runs()) == [Free(10, 5), Free(20, 10)]
    assert of.take(10, 2)
    assert of.take(28, 2)
    assert list(of.runs()) == [Free(12, 3), Free(20, 8)]
    assert of.take(20, 8)
    assert (list(of.runs()), of.blocks, of.order) == ([Free(12, 3)], 3, 1)
    of.give_back(20, 1)
    of.give_back(16, 4)
    of.give_back(15, 1)
    assert (list(of.runs()), of.blocks, of.order) == ([Free(12, 9)], 9, 2)


def test_first_of_order_is_in_the_smallest_buddy_that_suffices() -> None:
    """Blocks 5 to 12 are buddies of 1, 2, 4 and 1 blocks, and blocks 64 to 79 are one buddy of 16.

    One block is found at 5, two blocks at 6, four at 8, and eight at 64.
    """
    of = group((5, 8), (64, 16))
    assert [of.first_of_order(order) for order in (0, 1, 2, 3, 4)] == [5, 6, 8, 64, 64]
    assert of.order == 4


@pytest.mark.parametrize(
    ("run", "length", "pieces"),
    [
        (Free(5, 8), 1, [(5, 1), (6, 2), (8, 4), (12, 1)]),
        (Free(5, 8), 3, [(5, 3), (8, 4), (12, 1)]),
        (Free(5, 8), 4, [(5, 7), (12, 1)]),
        (Free(5, 8), 9, [(5, 8)]),
        (Free(0, 3), 2, [(0, 2), (2, 1)]),
        (Free(0, 32_768), 20_000, [(0, 24_576), (24_576, 8_192)]),
    ],
)
def test_pieces_are_complete_buddies(run: Free, length: int, pieces: list[tuple[int, int]]) -> None:
    """A piece has as many buddies as the request needs; no buddy is larger than 8 192 blocks."""
    assert [tuple(piece) for piece in _pieces(run, length)] == pieces


@pytest.mark.parametrize(
    ("runs", "length", "piece"),
    [
        ([(8, 8), (64, 4), (128, 4)], 4, (64, 4)),  # the first of exactly that size
        ([(8, 8), (64, 5), (128, 4)], 3, (64, 4)),  # the smallest that is larger
        ([(8, 8), (64, 8)], 3, (8, 8)),  # the first of two
        ([(8, 2), (64, 4), (128, 3)], 9, (64, 4)),  # none is enough: the largest
        ([(32 * i, 16) for i in range(1, 11)] + [(1_000, 8)], 7, (1_000, 8)),  # the eleventh is looked at
        ([(32 * i, 16) for i in range(1, 12)] + [(1_000, 8)], 7, (32, 16)),  # the twelfth is not
        ([(32 * i, 4) for i in range(1, 12)] + [(1_000, 8)], 7, (1_000, 8)),  # too short pieces do not count
        ([(32 * i, 4) for i in range(1, 12)] + [(1_000, 6)], 7, (1_000, 6)),  # all count if none is enough
    ],
)
def test_best_piece_is_the_smallest_that_suffices(
    runs: list[tuple[int, int]], length: int, piece: tuple[int, int]
) -> None:
    """ext4_mb_complex_scan_group: an exact piece is best, and then the smallest of eleven larger ones."""
    assert group(*runs).best_piece(length) == Free(*piece)
    assert group().best_piece(1) is None


FEW = Geometry(blocks=8 * GROUP_BLOCKS, flex_groups=4, descriptor_blocks=2, journal_blocks=64)
MANY = Geometry(blocks=32 * GROUP_BLOCKS, flex_groups=4, descriptor_blocks=2, journal_blocks=64)


def filled(geometry: Geometry, *free: tuple[int, int, int], by_order: bool = False) -> Mballoc:
    """Return an allocator in which only the runs *free* are free: (group, block, blocks).

    All bitmaps are read.
    """
    made = Mballoc(geometry, by_order=by_order)
    for flex in range(geometry.flexes):
        made.read_bitmaps(flex)
    for number in range(geometry.groups):
        head = geometry.head_blocks(number)
        assert made.take_exactly(number * GROUP_BLOCKS + head, GROUP_BLOCKS - head)
    for number, block, length in free:
        made.give_back(number * GROUP_BLOCKS + block, length)
    return made


def at(number: int, block: int) -> int:
    """Return the number of *block* of group *number*."""
    return number * GROUP_BLOCKS + block


def test_power_of_two_gets_a_buddy_of_the_first_group() -> None:
    """The search goes from the given group on and then from the first, past the heads of flex groups.

    If no group has such a buddy, a piece of any group is taken.
    """
    of = filled(FEW, (1, 64, 64), (4, 64, 64), (6, 64, 128), (7, 64, 64))
    assert of.find(5, 64) == (at(6, 64), 64)
    assert of.find(7, 64) == (at(7, 64), 64)
    assert of.find(7, 64) == (at(1, 64), 64)
    assert of.find(2, 64) == (at(6, 128), 64)
    assert of.find(2, 64) == (at(4, 64), 64)
    assert of.find(2, 64) == (0, 0)


def test_other_length_gets_a_piece_of_the_first_group() -> None:
    """The piece must suffice; if no group has such a piece, the longest piece of all is taken."""
    of = filled(FEW, (1, 64, 8), (2, 64, 100), (3, 64, 50), (5, 64, 99))
    assert of.find(3, 70) == (at(5, 64), 70)
    assert of.find(3, 70) == (at(2, 64), 70)
    assert of.find(3, 70) == (at(3, 64), 50)
    assert of.find(3, 70) == (at(2, 134), 30)
    assert of.find(0, 29) == (at(5, 134), 29)
    assert of.free_blocks(0) == 8
    assert of.free_blocks(1) == 0


def test_search_by_order_takes_the_smallest_of_the_largest_buddies() -> None:
    """The largest buddy of a group must suffice; the search goes from the given group on, and then around.

    A filesystem of fewer than 16 groups is searched group by group.
    """
    free = [(2, 0, 256), (5, 64, 64), (9, 128, 128), (13, 64, 64), (8, 64, 64)]
    of = filled(MANY, *free, by_order=True)
    assert of.find(6, 64) == (at(13, 64), 64)
    assert of.find(6, 64) == (at(9, 128), 64)
    assert of.find(6, 64) == (at(9, 192), 64)
    assert of.find(6, 64) == (at(5, 64), 64)
    assert of.find(6, 128) == (at(2, 0), 128)
    assert of.find(6, 64) == (at(2, 128), 64)
    in_line = filled(MANY, *free)
    assert in_line.find(6, 64) == (at(9, 128), 64)
    few = filled(Geometry(15 * GROUP_BLOCKS, 4, 2, 64), *free, by_order=True)
    assert few.find(6, 64) == (at(9, 128), 64)


def test_search_by_order_looks_only_at_groups_that_were_read() -> None:
    """A directory has read flex group 1 after the mount; all groups are read when that one is full."""
    of = Mballoc(MANY, by_order=True)
    of.read_bitmaps(1)
    assert of.find(20, 64)[0] // GROUP_BLOCKS == 5
    assert of.find(20, 100)[0] // GROUP_BLOCKS in (4, 5, 6, 7)
    for number in (4, 5, 6, 7):
        for run in list(of.groups[number].runs()):
            assert of.take_exactly(at(number, run.first), run.size)
    assert of.find(20, 64)[0] // GROUP_BLOCKS == 21
    assert len(of.groups) == MANY.groups
    fresh = Mballoc(MANY, by_order=False)
    assert fresh.find(20, 100)[0] // GROUP_BLOCKS == 20
    assert list(fresh.groups) == [20]


def test_find_in_takes_the_first_run_of_its_group() -> None:
    """The buddies of the run do not matter.  Without such a run the usual search follows."""
    of = filled(FEW, (3, 9, 3), (3, 21, 12), (6, 64, 64))
    assert of.find_in(3, 8) == (at(3, 21), 8)
    assert of.find_in(3, 8) == (at(6, 64), 8)
    assert of.find_in(3, 4) == (at(3, 29), 4)


def test_take_exactly_refuses_blocks_of_two_groups() -> None:
    """Blocks over the end of a group are refused, although both sides are free."""
    of = Mballoc(FEW, by_order=False)
    assert not of.take_exactly(8 * GROUP_BLOCKS, 1)
    assert not of.take_exactly(3 * GROUP_BLOCKS - 2, 4)
    assert of.take_exactly(3 * GROUP_BLOCKS - 2, 2)
    assert not of.take_exactly(3 * GROUP_BLOCKS - 1, 1)


def test_blocks_given_back_over_a_group_s_end_are_divided() -> None:
    """Each group gets its part of the blocks."""
    of = filled(FEW)
    of.give_back(3 * GROUP_BLOCKS - 2, 5)
    assert list(of.extents()) == [Free(at(2, GROUP_BLOCKS - 2), 2), Free(at(3, 0), 3)]
    assert (of.free_blocks(0), of.free_blocks(1)) == (5, 0)
    assert list(Mballoc(FEW, by_order=False).extents())[2] == Free(at(2, 0), GROUP_BLOCKS)


def test_stripes_get_the_blocks_that_a_real_kernel_gave() -> None:
    """Linux 6.18, mke2fs -E stride=16,stripe_width=48: group 49 of 8 GiB, whose first 1 025 blocks are used.

    300 files of 20 KiB got eight runs for 528 blocks, the least multiple of 48 from 512 on.  Files of 96, 144
    and 480 blocks followed.  The last of them got 224 blocks behind its first 256, by another search, and one
    of 528 blocks came next.
    """
    worn, begins, sizes = BlockGroup(49, 1_025), list[int](), list[int]()
    for length in [528] * 8 + [96, 144, 480]:
        piece = worn.aligned_piece(48, length)
        assert piece is not None
        assert worn.take(*piece)
        begins.append(worn.first_block + piece.first)
        sizes.append(piece.size)
    assert begins == [
        1_606_704, 1_606_800, 1_606_944, 1_607_184, 1_607_712, 1_608_240, 1_608_336, 1_608_480,
        1_608_720, 1_608_816, 1_608_960,
    ]  # fmt: skip
    assert sizes == [80, 112, 224, 496, 528, 80, 112, 224, 96, 144, 256]
    assert worn.take(1_608_960 + 256 - worn.first_block, 224)
    last = worn.aligned_piece(48, 528)
    assert last is not None
    assert worn.first_block + last.first == 1_609_440


def test_request_of_whole_stripes_begins_at_one() -> None:
    """Stripes of 48 blocks: 144 blocks begin at a stripe, and 128, a power of two, at a buddy."""
    blocks = Mballoc(FEW, by_order=False, stripe=48)
    assert blocks.take_exactly(at(2, 0), 100)
    starts = {length: blocks.find(2, length) for length in (144, 100, 128)}
    assert starts[144][0] % 48 == 0
    assert starts[144][1] >= 48
    assert starts[100][1] == 100
    assert starts[128][0] % 128 == 0
    blocks.check()


def test_goal_of_one_stripe_must_be_aligned() -> None:
    """ext4_mb_find_by_goal: 48 blocks are taken at a goal only if that begins a stripe; others always are."""
    blocks = Mballoc(FEW, by_order=False, stripe=48)
    assert not blocks.take_exactly(48 * 700 + 8, 48)
    assert blocks.take_exactly(48 * 700 + 8, 47)
    assert blocks.take_exactly(48 * 710, 48)


def test_group_without_a_whole_stripe_serves_any_blocks() -> None:
    """Free runs of less than a stripe: the request is not aligned."""
    assert group((8, 40), (100, 50)).aligned_piece(48, 96) is None


def test_partial_last_group_ends_where_the_device_ends() -> None:
    """The last group of 100 blocks has two blocks of metadata and the blocks behind them, but no more."""
    geometry = Geometry(blocks=3 * GROUP_BLOCKS + 100, flex_groups=4, descriptor_blocks=1, journal_blocks=64)
    of = Mballoc(geometry, by_order=False)
    assert (geometry.groups, geometry.head_blocks(3)) == (4, 2)
    assert list(of.extents())[-1] == Free(at(3, 2), 98)
    assert not of.take_exactly(at(3, 99), 2)
    assert of.take_exactly(at(3, 99), 1)
    of.check()


def test_tree_of_a_large_journal_takes_the_block_in_front() -> None:
    """mke2fs of 1 TiB puts the journal at block 134 250 496, and its tree at 134 250 495 (debugfs)."""
    geometry = Geometry(blocks=1 << 28, flex_groups=16, descriptor_blocks=1_152, journal_blocks=1 << 18)
    assert geometry.journal_runs == ((134_250_496, 1 << 18),)
    of = Mballoc(geometry, by_order=False)
    assert of.free_blocks(4_096 // 16) == 16 * GROUP_BLOCKS - 16 * 514 - (1 << 18) - 1
    assert not of.take_exactly(134_250_495, 1)
    assert of.take_exactly(134_250_494, 1)


@pytest.mark.parametrize(("in_line", "found"), [(0, 21), (1, 21), (3, 21), (4, 7), (5, 7)])
def test_groups_in_line_come_before_the_lists(in_line: int, found: int) -> None:
    """Groups 7 and 21 have a buddy for 512 blocks, and 21, the most used, is the one of the lists.

    From group 4 on, group 7 is the fourth in line.
    """
    of = Mballoc(MANY, by_order=True, groups_in_line=in_line)
    for number in range(MANY.groups):
        head = MANY.head_blocks(number)
        assert of.take_exactly(at(number, head), GROUP_BLOCKS - head)
    of.give_back(at(7, 4_096), 4_096)
    of.give_back(at(21, 1_024), 512)
    assert of.find(4, 512)[0] // GROUP_BLOCKS == found


@pytest.mark.parametrize("length", [300, 512])
def test_groups_in_line_are_read(length: int) -> None:
    """Flex group 0 has been read; a search in line finds group 9 without reading the others around it."""
    of = Mballoc(MANY, by_order=True, groups_in_line=4)
    of.read_bitmaps(0)
    first, got = of.find(9, length)
    assert (first // GROUP_BLOCKS, got, set(of.groups)) == (9, length, {0, 1, 2, 3, 9})


def test_search_takes_the_shortest_average_run_that_suffices() -> None:
    """Group 20 has two free runs of 100 blocks, and the other groups are free.

    A request for 101 blocks finds its goal's group, and so does one with the goal's group in line.
    """
    for length, in_line, found in ((100, 0, 20), (101, 0, 18), (100, 1, 18)):
        of = Mballoc(Geometry(32 * GROUP_BLOCKS, 16, 1_026, 16_384), by_order=True, groups_in_line=in_line)
        of.read_bitmaps(1)
        for first, count in ((0, 5_000), (5_100, 8_900), (14_100, GROUP_BLOCKS - 14_100)):
            assert of.take_exactly(20 * GROUP_BLOCKS + first, count)
        assert of.groups[20].average_run == 100
        assert of.find(18, length)[0] // GROUP_BLOCKS == found
        of.check()


def test_first_search_takes_the_first_piece_of_its_group() -> None:
    """The group is not listed, so its first piece is taken; then its flex group is read.

    A disk looks at groups in line first, and finds an aligned buddy.
    """
    flash = Mballoc(MANY, by_order=True)
    head = MANY.head_blocks(5)
    assert flash.find(5, 64) == (at(5, head), 64)
    assert sorted(flash.groups) == [4, 5, 6, 7]
    assert flash.find(5, 64) == (flash.groups[5].first_block + flash.groups[5].first_of_order(6) - 64, 64)
    disk = Mballoc(MANY, by_order=True, groups_in_line=4)
    block, _ = disk.find(5, 64)
    assert (block // GROUP_BLOCKS, block % 64) == (5, 0)
    assert sorted(disk.groups) == [4, 5, 6, 7]


def test_first_search_takes_a_piece_of_exactly_its_length() -> None:
    flash = Mballoc(MANY, by_order=True)
    head = MANY.head_blocks(5)
    piece = BlockGroup(5, head).best_piece(1_000)
    assert piece is not None
    assert flash.find(5, piece.size) == (at(5, piece.first), piece.size)
    assert piece.first == head
