"""A literal extent tree of one file on ext4: the inode, or leaves with an index in the inode.

Stands for fs/ext4/extents.c of 6.12: ext4_find_extent, ext4_ext_insert_extent with EXT4_GET_BLOCKS_PRE_IO,
ext4_ext_create_new_leaf, ext4_ext_try_to_merge and ext4_convert_unwritten_extents_endio.  Left out: an index
of more than one level, and the longest length of an extent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

INODE_EXTENTS: Final = 4
LEAF_EXTENTS: Final = 340


@dataclass
class Extent:
    """struct ext4_extent: *length* pages from *page* on, at *block*."""

    page: int
    block: int
    length: int
    unwritten: bool = True

    def joins(self, behind: Extent) -> bool:
        """ext4_can_extents_be_merged."""
        return (
            self.unwritten == behind.unwritten
            and self.page + self.length == behind.page
            and self.block + self.length == behind.block
        )


@dataclass
class Leaf:
    """A block of extents; ``page`` is that of its entry in the index (ei_block)."""

    page: int
    extents: list[Extent]


class Tree:
    """The extents of a file.

    * ``leaves``: while ``depth`` is 0, one leaf that stands for the inode.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.leaves = [Leaf(0, [])]

    def find(self, page: int) -> tuple[int, int]:
        """ext4_find_extent: the leaf for *page*, and the last extent up to *page* or the first of the leaf.

        The extent is -1 in an empty leaf.
        """
        leaf = max(at for at, leaf in enumerate(self.leaves) if at == 0 or leaf.page <= page)
        extents = self.leaves[leaf].extents
        before = [at for at, extent in enumerate(extents) if extent.page <= page]
        return leaf, before[-1] if before else len(extents[:1]) - 1

    def goal(self, page: int) -> int | None:
        """ext4_ext_find_goal: the place of *page* if the file were contiguous; None without an extent."""
        leaf, at = self.find(page)
        if at < 0:
            return None
        near = self.leaves[leaf].extents[at]
        return near.block + page - near.page

    def left(self, page: int) -> Extent | None:
        """ext4_ext_search_left: the nearest extent in front of *page*."""
        return max((of for of in self._all() if of.page < page), key=lambda of: of.page, default=None)

    def right(self, page: int) -> Extent | None:
        """ext4_ext_search_right: the nearest extent behind *page*."""
        return min((of for of in self._all() if of.page > page), key=lambda of: of.page, default=None)

    def insert(self, extent: Extent, new_block: Callable[[int | None], None]) -> None:
        """Insert *extent*, without a merge; *new_block* gets the goal of each block that the tree needs.

        The goal is None if the block is for the extents of the inode.
        """
        at, near = self.find(extent.page)
        if self._is_full(at):
            last = self.leaves[at].extents[-1]
            if extent.page > last.page and at + 1 < len(self.leaves) and not self._is_full(at + 1):
                at += 1
            elif not self.depth:
                new_block(None)
                self.depth = 1
                self.leaves[0].page = self.leaves[0].extents[0].page
            else:
                new_block(self.goal(extent.page))
                self._split(at, near, extent.page)
                at, _ = self.find(extent.page)
        leaf = self.leaves[at]
        leaf.extents.append(extent)
        leaf.extents.sort(key=lambda of: of.page)
        leaf.page = min(leaf.page, leaf.extents[0].page)

    def convert(self, page: int, pages: int) -> bool:
        """Convert the extents of *pages* pages from *page* on, and merge each.

        Return whether the inode takes the extents of the only leaf, whose block is then free.
        """
        end, freed = page + pages, False
        while page < end:
            leaf, at = self.find(page)
            extents = self.leaves[leaf].extents
            extent = extents[at]
            assert extent.page == page, "an ioend must begin with an extent"
            page += extent.length
            extent.unwritten = False
            if not (at and self._merge_right(extents, at - 1)):
                self._merge_right(extents, at)
            freed |= self._merge_up()
        return freed

    def _merge_right(self, extents: list[Extent], at: int) -> bool:
        """ext4_ext_try_to_merge_right: merge the extent *at* with all that follow."""
        merged = False
        while at + 1 < len(extents) and extents[at].joins(extents[at + 1]):
            extents[at].length += extents.pop(at + 1).length
            merged = True
        return merged

    def _merge_up(self) -> bool:
        """ext4_ext_try_to_merge_up: move the extents of the only leaf into the inode."""
        if self.depth != 1 or len(self.leaves) > 1 or len(self.leaves[0].extents) > INODE_EXTENTS:
            return False
        self.depth = 0
        return True

    def _split(self, at: int, near: int, page: int) -> None:
        """ext4_ext_split: move the extents behind the extent *near* to a new leaf."""
        extents = self.leaves[at].extents
        moved = extents[near + 1 :]
        del extents[near + 1 :]
        self.leaves.insert(at + 1, Leaf(moved[0].page if moved else page, moved))

    def _is_full(self, at: int) -> bool:
        return len(self.leaves[at].extents) == (LEAF_EXTENTS if self.depth else INODE_EXTENTS)

    def _all(self) -> list[Extent]:
        return [extent for leaf in self.leaves for extent in leaf.extents]
