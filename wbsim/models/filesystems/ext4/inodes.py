"""Flex groups, directories and inodes of an ext4.

Stands for struct ext4_inode_info and the inode part of struct flex_groups (fs/ext4/ialloc.c).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import Final

from wbsim.models.filesystems.ext4.geometry import FIRST_INODE
from wbsim.models.filesystems.ext4.layout import LEAF_EXTENTS, ROOT_EXTENTS
from wbsim.models.filesystems.files import FileInode, PagedFile
from wbsim.models.interfaces import Wb
from wbsim.models.page_cache.pages import count_extents, last_used
from wbsim.models.vfs.superblock import MountedSuperblock

FAR_PAGE: Final = 1 << 62


class Flex:
    """A flex group: its directories, and the number of its next inode.

    The inodes with the numbers *before* + 1 to *behind* belong to this flex group.
    """

    __slots__ = ("_behind", "_next_inode", "directories", "number")

    def __init__(self, number: int, before: int, behind: int) -> None:
        self.number = number
        self.directories = 2 if number == 0 else 0  # the root and lost+found
        self._next_inode = before + (FIRST_INODE if number == 0 else 0)
        self._behind = behind

    @property
    def free_inodes(self) -> int:
        """Return the number of inodes that are left."""
        return self._behind - self._next_inode

    def new_inode(self) -> int:
        """Return the number of a new inode."""
        self._next_inode += 1
        return self._next_inode


class Directory:
    """A directory: its flex group, the number of its names, and the blocks of the names (htree leaves)."""

    __slots__ = ("flex", "leaves", "names")

    def __init__(self, flex: Flex) -> None:
        self.flex = flex
        self.leaves: list[int] = []
        self.names = 0


class Ext4Inode(FileInode):
    """An inode: its number, and the group where the search for its blocks begins."""

    __slots__ = ("goal_group", "number")

    def __init__(self, sb: MountedSuperblock, wb: Wb, number: int, goal_group: int) -> None:
        super().__init__(sb, wb)
        self.number = number
        self.goal_group = goal_group


class Leaf:
    """A block of a file's extent tree: its number, the first page of its extents, and how many it has."""

    __slots__ = ("block", "extents", "page")

    def __init__(self, block: int, page: int, extents: int) -> None:
        self.block = block
        self.page = page
        self.extents = extents


class Ext4File(PagedFile):
    """A file's pages, and its extent tree.

    * ``root``: the number of extents in the inode, while the inode holds all of them.
    * ``leaves``: after that, the leaves of the tree in the order of their pages.
    * ``unwritten``: for each new extent the ranges to be converted, its leaf, and the neighbours that it then
      joins.

    An unwritten extent is separate from its neighbours, and joins them when it is converted.
    """

    __slots__ = ("leaves", "newest", "root", "unwritten")

    def __init__(self, is_open: bool) -> None:
        super().__init__(0, is_open)
        self.leaves: list[Leaf] = []
        self.root = 0
        self.newest = -1  # the page behind the extent that was mapped last
        self.unwritten: deque[tuple[int, Leaf | None, int]] = deque()

    def leaf_of(self, page: int) -> int:
        """Return the number of the leaf that has *page*."""
        return bisect_right(self.leaves, page, key=_page_of) - 1

    def room_at(self, page: int) -> tuple[int, int]:
        """Return the room (extents) of the tree at *page*, and the page up to which this room is valid."""
        if not self.leaves:
            return ROOT_EXTENTS - self.root, FAR_PAGE
        number = self.leaf_of(page)
        return LEAF_EXTENTS - self.leaves[number].extents, self._end_of(number)

    def took(self, page: int, extents: int, joins: int, ranges: int) -> None:
        """Add *extents* extents at *page*, for which there is room.

        They join *joins* neighbours when *ranges* more ranges are converted.
        """
        leaf = self.leaves[self.leaf_of(page)] if self.leaves else None
        self._count(leaf, extents)
        if ranges or joins:
            self.unwritten.append((ranges, leaf, joins))

    def wrote(self, ranges: int) -> None:
        """Count *ranges* more ranges as converted, in the order of their allocation."""
        unwritten = self.unwritten
        while unwritten and unwritten[0][0] <= ranges:
            waited, leaf, joins = unwritten.popleft()
            ranges -= waited
            self._count(leaf, -joins)
        if unwritten and ranges:
            waited, leaf, joins = unwritten[0]
            unwritten[0] = (waited - ranges, leaf, joins)

    def _count(self, leaf: Leaf | None, extents: int) -> None:
        if leaf is None and self.leaves:
            leaf = self.leaves[0]  # the first leaf has taken the extents of the inode
        if leaf is None:
            self.root += extents
        else:
            leaf.extents += extents

    def grow(self, page: int, block: int) -> None:
        """ext4_ext_create_new_leaf: make *block* a leaf, so that an extent at *page* finds room.

        The first leaf takes the extents of the inode.  Another leaf takes the extents behind *page* from the
        full leaf (ext4_ext_split).  If no extent lies behind *page*, it takes only the new extent.
        """
        if not self.leaves:
            self.leaves.append(Leaf(block, 0, self.root))
            return
        number = self.leaf_of(page)
        full, moved = self.leaves[number], self._behind(number, page)
        full.extents -= moved
        self.leaves.insert(number + 1, Leaf(block, page + 1 if moved else page, moved))

    def has_room_behind(self, page: int) -> bool:
        """Return whether an extent at *page* finds room in the next leaf (ext4_ext_next_leaf_block).

        This requires that the extent lies behind all others in its full leaf.  The next leaf then begins at
        *page*.
        """
        number = self.leaf_of(page)
        if number + 1 == len(self.leaves) or self.leaves[number + 1].extents == LEAF_EXTENTS:
            return False
        if self._behind(number, page):
            return False
        self.leaves[number + 1].page = page
        return True

    def _behind(self, number: int, page: int) -> int:
        """Return the number of extents of leaf *number* that lie behind *page*."""
        return int(count_extents(self.pages, page + 1, min(self._end_of(number), last_used(self.pages) + 1)))

    def _end_of(self, number: int) -> int:
        """Return the page behind the pages of leaf *number*."""
        return self.leaves[number + 1].page if number + 1 < len(self.leaves) else FAR_PAGE


def _page_of(leaf: Leaf) -> int:
    return leaf.page
