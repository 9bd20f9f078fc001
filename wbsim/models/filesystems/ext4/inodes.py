"""Flex groups, directories and inodes: what a name is given when it is made.

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

    Inodes up to number *behind* belong to flex groups *before* and to this one.
    """

    __slots__ = ("_behind", "_next_inode", "directories", "number")

    def __init__(self, number: int, before: int, behind: int) -> None:
        self.number = number
        self.directories = 2 if number == 0 else 0  # the root and lost+found
        self._next_inode = before + (FIRST_INODE if number == 0 else 0)
        self._behind = behind

    @property
    def free_inodes(self) -> int:
        """How many inodes it has left."""
        return self._behind - self._next_inode

    def new_inode(self) -> int:
        """The number of a new inode."""
        self._next_inode += 1
        return self._next_inode


class Directory:
    """A directory: its flex group, its names, and the blocks that these lie in (htree leaves)."""

    __slots__ = ("flex", "leaves", "names")

    def __init__(self, flex: Flex) -> None:
        self.flex = flex
        self.leaves: list[int] = []
        self.names = 0


class Ext4Inode(FileInode):
    """An inode: its number, and where the search for its blocks begins."""

    __slots__ = ("goal_group", "number")

    def __init__(self, sb: MountedSuperblock, wb: Wb, number: int, goal_group: int) -> None:
        super().__init__(sb, wb)
        self.number = number
        self.goal_group = goal_group


class Leaf:
    """A block of a file's tree of extents: which, from which page on it has the extents, and how many."""

    __slots__ = ("block", "extents", "page")

    def __init__(self, block: int, page: int, extents: int) -> None:
        self.block = block
        self.page = page
        self.extents = extents


class Ext4File(PagedFile):
    """A file's pages, and its tree of extents: how many the inode holds or, once it has outgrown that, its
    leaves in the order of their pages.

    An unwritten extent is one of its own: it joins its neighbours once it is converted.
    """

    __slots__ = ("leaves", "newest", "root", "unwritten")

    def __init__(self, is_open: bool) -> None:
        super().__init__(0, is_open)
        self.leaves: list[Leaf] = []
        self.root = 0
        self.newest = -1  # the page behind the extent that was mapped last
        self.unwritten: deque[tuple[int, Leaf | None, int]] = deque()

    def leaf_of(self, page: int) -> int:
        """Which of the leaves has *page*."""
        return bisect_right(self.leaves, page, key=_page_of) - 1

    def room_at(self, page: int) -> tuple[int, int]:
        """How many more extents the tree takes where *page* is, and up to which page."""
        if not self.leaves:
            return ROOT_EXTENTS - self.root, FAR_PAGE
        number = self.leaf_of(page)
        return LEAF_EXTENTS - self.leaves[number].extents, self._end_of(number)

    def took(self, page: int, extents: int, joins: int, ranges: int) -> None:
        """So many more extents are where *page* is, for which there was room; they will join so many
        neighbours once that many more *ranges* are converted.
        """
        leaf = self.leaves[self.leaf_of(page)] if self.leaves else None
        self._count(leaf, extents)
        if ranges or joins:
            self.unwritten.append((ranges, leaf, joins))

    def wrote(self, ranges: int) -> None:
        """So many more ranges are converted, first come, first served."""
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
            leaf = self.leaves[0]  # which has taken what the inode held
        if leaf is None:
            self.root += extents
        else:
            leaf.extents += extents

    def grow(self, page: int, block: int) -> None:
        """ext4_ext_create_new_leaf: *block* becomes a leaf, so that an extent at *page* finds room.

        The first one takes what the inode held; another one what lies behind *page* in the full leaf or, if
        nothing does, the new extent alone (ext4_ext_split).
        """
        if not self.leaves:
            self.leaves.append(Leaf(block, 0, self.root))
            return
        number = self.leaf_of(page)
        full, moved = self.leaves[number], self._behind(number, page)
        full.extents -= moved
        self.leaves.insert(number + 1, Leaf(block, page + 1 if moved else page, moved))

    def has_room_behind(self, page: int) -> bool:
        """Whether an extent at *page*, behind all in its full leaf, finds room in the next, which has it then
        (ext4_ext_next_leaf_block).
        """
        number = self.leaf_of(page)
        if number + 1 == len(self.leaves) or self.leaves[number + 1].extents == LEAF_EXTENTS:
            return False
        if self._behind(number, page):
            return False
        self.leaves[number + 1].page = page
        return True

    def _behind(self, number: int, page: int) -> int:
        """How many extents of a leaf lie behind *page*."""
        return int(count_extents(self.pages, page + 1, min(self._end_of(number), last_used(self.pages) + 1)))

    def _end_of(self, number: int) -> int:
        """The page behind those of a leaf."""
        return self.leaves[number + 1].page if number + 1 < len(self.leaves) else FAR_PAGE


def _page_of(leaf: Leaf) -> int:
    return leaf.page
