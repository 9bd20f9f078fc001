"""The extent tree of a file: extents in the inode, or in leaves.  Pure.

Stands for ext4_find_extent, ext4_ext_insert_extent, ext4_ext_create_new_leaf, ext4_ext_try_to_merge and
ext4_split_extent_at and ext4_convert_unwritten_extents_endio (fs/ext4/extents.c).  Left out: an index of more
than one level, and the longest length of an extent.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import Final

ROOT_EXTENTS: Final = 4
LEAF_EXTENTS: Final = 340
"""The number of extents that the inode, and one block of a file's tree, can hold."""
NO_BLOCK: Final = -1


class Extent:
    """An extent: its first *block*, its *length* (pages), and whether its data is not written yet."""

    __slots__ = ("block", "length", "unwritten")

    def __init__(self, block: int, length: int, unwritten: bool) -> None:
        self.block = block
        self.length = length
        self.unwritten = unwritten


class Leaf:
    """A leaf: its block, the page of its entry in the index, and the first page of each of its extents."""

    __slots__ = ("block", "page", "pages")

    def __init__(self, block: int, page: int, pages: list[int]) -> None:
        self.block = block
        self.page = page
        self.pages = pages

    @property
    def most(self) -> int:
        """The number of extents for which the leaf has room: 4 in the inode, 340 in a block."""
        return ROOT_EXTENTS if self.block == NO_BLOCK else LEAF_EXTENTS


class ExtentTree:
    """The extents of a file, by their first pages.  Block numbers are those of the filesystem.

    * ``leaves``: the leaves in the order of their pages.  While the inode holds all extents, it is the only
      leaf, with `NO_BLOCK`.
    """

    __slots__ = ("_extents", "leaves")

    def __init__(self) -> None:
        self.leaves = [Leaf(NO_BLOCK, 0, [])]
        self._extents: dict[int, Extent] = {}

    @property
    def blocks(self) -> int:
        """The number of blocks of the tree; 0 while the inode holds all extents."""
        return 0 if self.leaves[0].block == NO_BLOCK else len(self.leaves)

    def leaf_of(self, page: int) -> Leaf:
        """Return the leaf in which an extent at *page* is looked for; its block is logged with the extent."""
        return self.leaves[self._number_of(page)]

    def goal(self, page: int) -> int:
        """Return the block of *page* if the file goes on from the extent next to it (ext4_ext_find_goal).

        Return `NO_BLOCK` if the leaf has no extent.  The block may lie outside the filesystem.

        >>> tree = ExtentTree()
        >>> tree.insert(0, 1_000, 8)
        >>> tree.goal(8), tree.goal(20)
        (1008, 1020)
        """
        pages = self.leaf_of(page).pages
        if not pages:
            return NO_BLOCK
        neighbour = pages[max(bisect_right(pages, page) - 1, 0)]
        return self._extents[neighbour].block + page - neighbour

    def has_room(self, page: int) -> bool:
        """Return whether an extent at *page* finds room, in its leaf or in the next; else `grow` first."""
        return self._number_with_room(page) >= 0

    def grow(self, page: int, block: int) -> None:
        """Make *block*, which the caller has taken, a leaf, so that an extent at *page* finds room.

        There must be none before (`has_room`).
        The first leaf takes the extents of the inode.  Another leaf takes the extents behind *page* from the
        full leaf (ext4_ext_create_new_leaf, ext4_ext_split).
        """
        number = self._number_of(page)
        full = self.leaves[number]
        if full.block == NO_BLOCK:
            full.block, full.page = block, full.pages[0]
            return
        split = max(bisect_right(full.pages, page), 1)
        tail = full.pages[split:]
        del full.pages[split:]
        self.leaves.insert(number + 1, Leaf(block, tail[0] if tail else page, tail))

    def insert(self, page: int, block: int, length: int) -> None:
        """Insert an unwritten extent of *length* pages at *page*, whose first block is *block*.

        There must be room (`has_room`), and no extent with these pages.  Neighbours stay separate extents;
        `append` and `convert` merge.
        """
        leaf = self.leaves[self._number_with_room(page)]
        insort(leaf.pages, page)
        leaf.page = min(leaf.page, page)
        self._extents[page] = Extent(block, length, unwritten=True)

    def extent_at(self, page: int) -> tuple[int, int] | None:
        """Return the first page and the length of the extent that holds *page*; None if there is none."""
        pages = self.leaf_of(page).pages
        place = bisect_right(pages, page) - 1
        if place < 0 or page >= pages[place] + self._extents[pages[place]].length:
            return None
        return pages[place], self._extents[pages[place]].length

    def cut(self, page: int) -> None:
        """Make two extents of the one that holds *page*, so that one begins there (ext4_split_extent_at).

        There must be room for it (`has_room`).  If no extent holds *page*, or one begins there, nothing
        changes.
        """
        whole = self.extent_at(page)
        if whole is None or whole[0] == page:
            return
        first, length = whole
        extent = self._extents[first]
        extent.length = page - first
        leaf = self.leaves[self._number_with_room(page)]
        insort(leaf.pages, page)
        leaf.page = min(leaf.page, page)
        self._extents[page] = Extent(extent.block + page - first, first + length - page, extent.unwritten)

    def remove_from(self, page: int) -> list[int]:
        """Remove all extents from *page* on; return the blocks of leaves that are empty and gone.

        An extent that holds *page* keeps its first pages (ext4_ext_remove_space).  The caller frees the
        blocks of the leaves and those of the pages.
        """
        whole = self.extent_at(page)
        if whole is not None and whole[0] < page:
            self._extents[whole[0]].length = page - whole[0]
        freed = []
        for leaf in self.leaves:
            for first in leaf.pages[bisect_left(leaf.pages, page) :]:
                del self._extents[first]
            del leaf.pages[bisect_left(leaf.pages, page) :]
            if not leaf.pages and leaf.block != NO_BLOCK:
                freed.append(leaf.block)
        self.leaves = [leaf for leaf in self.leaves if leaf.pages] or [Leaf(NO_BLOCK, 0, [])]
        return freed

    def append(self, page: int, block: int, length: int, unwritten: bool = False) -> bool:
        """Add *length* pages from *page* on to an extent that they touch; return False if there is none.

        The pages' blocks begin at *block*, and are *unwritten* or written.  The extent must touch them on
        disk, too, and be of the same type.  This needs no room.
        """
        pages = self.leaf_of(page).pages
        place = bisect_right(pages, page)
        extent = Extent(block, length, unwritten)
        if place and self._touch(pages[place - 1], self._extents[pages[place - 1]], page, extent):
            self._extents[pages[place - 1]].length += length
            self._merge(pages, place - 1)
            return True
        if place < len(pages) and self._touch(page, extent, pages[place], self._extents[pages[place]]):
            extent.length += self._extents.pop(pages[place]).length
            self._extents[page] = extent
            pages[place] = page
            return True
        return False

    def convert(self, page: int, length: int) -> int:
        """Convert unwritten extents that begin in *length* pages from *page* on; merge them with neighbours.

        An extent is converted as a whole, so `cut` one that goes on behind these pages.

        Return the block of the only leaf, which the caller frees, if the inode takes the leaf's extents
        (ext4_ext_try_to_merge_up).  Otherwise, return `NO_BLOCK`.
        """
        freed, end = NO_BLOCK, page + length
        while page < end:
            pages = self.leaf_of(page).pages
            place = bisect_left(pages, page)
            if place == len(pages) or pages[place] >= end:
                place = bisect_right(self.leaves, page, key=_page_of)  # the extents of the next leaf
                if place == len(self.leaves):
                    break
                page = self.leaves[place].page
                continue
            extent = self._extents[pages[place]]
            page = pages[place] + extent.length
            if extent.unwritten:
                extent.unwritten = False
                if not (place and self._merge(pages, place - 1)):
                    self._merge(pages, place)
                if self.blocks == 1 and len(pages) <= ROOT_EXTENTS:
                    freed, self.leaves[0].block = self.leaves[0].block, NO_BLOCK
        return freed

    def _merge(self, pages: list[int], place: int) -> bool:
        """ext4_ext_try_to_merge_right: merge the extent at *place* of *pages* with those that follow."""
        grows, extent = False, self._extents[pages[place]]
        while place + 1 < len(pages):
            if not self._touch(pages[place], extent, pages[place + 1], self._extents[pages[place + 1]]):
                break
            extent.length += self._extents.pop(pages.pop(place + 1)).length
            grows = True
        return grows

    def _touch(self, page: int, extent: Extent, behind_page: int, behind_extent: Extent) -> bool:
        """ext4_can_extents_be_merged."""
        return (
            extent.unwritten == behind_extent.unwritten
            and page + extent.length == behind_page
            and extent.block + extent.length == behind_extent.block
        )

    def _number_of(self, page: int) -> int:
        return max(bisect_right(self.leaves, page, key=_page_of) - 1, 0)

    def _number_with_room(self, page: int) -> int:
        """Return the number of the leaf that takes an extent at *page*, or of the next one; -1: no room."""
        number, leaves = self._number_of(page), self.leaves
        leaf = leaves[number]
        if len(leaf.pages) < leaf.most:
            return number
        if (
            page > leaf.pages[-1]
            and number + 1 < len(leaves)
            and len(leaves[number + 1].pages) < LEAF_EXTENTS
        ):
            return number + 1
        return -1


def _page_of(leaf: Leaf) -> int:
    return leaf.page
