"""Flex groups, directories and inodes: what a name is given when it is made.

Stands for struct ext4_inode_info and the inode part of struct flex_groups (fs/ext4/ialloc.c).
"""

from __future__ import annotations

from typing import Final

from models.filesystems.ext4.layout import ROOT_EXTENTS
from models.filesystems.files import FileInode, PagedFile
from models.seams import Wb
from models.vfs.superblock import MountedSuperblock

GROUP_INODES: Final = 8_192
FIRST_INODE: Final = 11


def group_of(number: int) -> int:
    """The group that the inode of this *number* lies in."""
    return (number - 1) // GROUP_INODES


class Flex:
    """A flex group: its directories, and the number of its next inode."""

    __slots__ = ("_behind", "_next_inode", "directories", "number")

    def __init__(self, number: int, inodes: int) -> None:
        self.number = number
        self.directories = 2 if number == 0 else 0  # the root and lost+found
        self._next_inode = number * inodes + (FIRST_INODE if number == 0 else 0)
        self._behind = (number + 1) * inodes

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


class Ext4File(PagedFile):
    """A file's pages: the leaves of its tree of extents, if that has outgrown the inode, and how many more
    extents that takes.
    """

    __slots__ = ("leaves", "tree_room")

    def __init__(self, is_open: bool) -> None:
        super().__init__(0, is_open)
        self.leaves: list[int] = []
        self.tree_room = ROOT_EXTENTS

    def leaf_of(self, page: int) -> int:
        """The block of the leaf that has *page*: the leaves share the pages alike."""
        return self.leaves[min(page * len(self.leaves) // max(self.size, 1), len(self.leaves) - 1)]
