"""The extent tree of a file on ext4; `tests.literal.test_extent_tree` compares random trees."""

from __future__ import annotations

from typing import Final

from wbsim.models.filesystems.ext4.extent_tree import NO_BLOCK, ExtentTree

FAR: Final = 100_000
"""A block far from those of `tree_of`."""


def tree_of(pages: range, leaf: int = 700) -> ExtentTree:
    """Return a tree of unwritten extents of one page, in leaves from block *leaf* on.

    The extent of page N has block 3 N, so none follows another on disk.
    """
    tree = ExtentTree()
    for page in pages:
        if not tree.has_room(page):
            tree.grow(page, leaf + tree.blocks)
        tree.insert(page, 3 * page, 1)
    return tree


def leaves_of(tree: ExtentTree) -> list[tuple[int, int, int]]:
    """Return the block, the page and the number of extents of each leaf."""
    return [(leaf.block, leaf.page, len(leaf.pages)) for leaf in tree.leaves]


def test_inode_holds_four_extents_before_a_leaf_does() -> None:
    """The fifth extent takes all of them to a leaf, which has room for 340."""
    tree = tree_of(range(10, 50, 10))
    assert (leaves_of(tree), tree.blocks, tree.has_room(5)) == ([(NO_BLOCK, 0, 4)], 0, False)
    tree = tree_of(range(10, 3_410, 10))
    assert (leaves_of(tree), tree.blocks, tree.has_room(5)) == ([(700, 10, 340)], 1, False)


def test_full_leaf_is_split_behind_a_new_extent() -> None:
    """The index knows the new leaf by its first extent, so page 11 belongs to the old leaf still."""
    tree = tree_of(range(0, 680, 2))
    tree.grow(101, 701)
    assert leaves_of(tree) == [(700, 0, 51), (701, 102, 289)]
    assert tree.leaf_of(101).block == 700
    tree.insert(101, FAR, 1)
    assert leaves_of(tree) == [(700, 0, 52), (701, 102, 289)]
    at_the_end = tree_of(range(0, 680, 2))
    at_the_end.grow(679, 701)
    assert leaves_of(at_the_end) == [(700, 0, 340), (701, 679, 0)]
    in_front = tree_of(range(2, 682, 2))
    in_front.grow(0, 701)
    assert leaves_of(in_front) == [(700, 2, 1), (701, 4, 339)]


def test_extent_behind_a_full_leaf_goes_to_the_next_leaf() -> None:
    """The next leaf then begins at the page of the extent; an extent inside the full leaf finds no room."""
    tree = tree_of(range(0, 682, 2))
    assert leaves_of(tree) == [(700, 0, 340), (701, 680, 1)]
    assert not tree.has_room(101)
    tree.insert(679, FAR, 1)
    assert leaves_of(tree) == [(700, 0, 340), (701, 679, 2)]


def test_goal_continues_from_the_extent_next_to_the_page() -> None:
    """The extent is the one in front, or else the first."""
    tree = ExtentTree()
    assert tree.goal(7) == NO_BLOCK
    tree.insert(10, 500, 2)
    tree.insert(20, 300, 1)
    assert [tree.goal(page) for page in (7, 12, 19, 25)] == [497, 502, 509, 305]


def test_unwritten_extents_join_their_neighbours_once_converted() -> None:
    """Each follows the one before, in the file and on disk; five of them need a leaf for a time."""
    tree = ExtentTree()
    for page in range(0, 10, 2):
        if not tree.has_room(page):
            tree.grow(page, 700)
        tree.insert(page, 40 + page, 2)
    assert leaves_of(tree) == [(700, 0, 5)]
    assert tree.convert(0, 2) == NO_BLOCK
    assert tree.convert(4, 2) == NO_BLOCK
    assert leaves_of(tree) == [(700, 0, 5)], "an unwritten extent lies between the two"
    assert tree.convert(2, 2) == 700, "three extents are one, and the inode holds the three that are left"
    assert leaves_of(tree) == [(NO_BLOCK, 0, 3)]
    assert tree.convert(6, 4) == NO_BLOCK
    assert leaves_of(tree) == [(NO_BLOCK, 0, 1)]
    assert tree.convert(0, 10) == NO_BLOCK, "nothing is unwritten"


def test_conversion_goes_on_in_the_next_leaf() -> None:
    """A range may begin in front of its first extent, and end behind the last."""
    tree = tree_of(range(0, 682, 2))
    tree.convert(0, 678)
    tree.convert(679, 100)
    assert tree.append(681, 3 * 680 + 1, 1), "page 680 is written"
    assert not tree.append(679, 3 * 678 + 1, 1), "page 678 is not"


def test_written_pages_touch_a_written_extent_or_need_room() -> None:
    """Pages are added behind an extent, in front of one, and between two, which then are one."""
    tree = ExtentTree()
    assert not tree.append(4, 44, 2)
    tree.insert(4, 44, 2)
    assert not tree.append(6, 46, 1), "the extent is unwritten"
    tree.convert(4, 2)
    assert not tree.append(6, 47, 1)
    assert not tree.append(7, 47, 1)
    assert tree.append(6, 46, 1)
    assert tree.append(2, 42, 2)
    assert tree.leaves[0].pages == [2]
    tree.insert(9, 49, 1)
    tree.convert(9, 1)
    assert tree.append(7, 47, 2)
    assert (tree.leaves[0].pages, tree.goal(20)) == ([2], 60)
    assert tree.append(10, 50, 1)
