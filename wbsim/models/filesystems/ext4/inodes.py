"""Flex groups, directories and inodes of an ext4.

Stands for struct ext4_inode_info and the inode part of struct flex_groups (fs/ext4/ialloc.c).
"""

from __future__ import annotations

from wbsim.models.filesystems.ext4.extent_tree import ExtentTree
from wbsim.models.filesystems.ext4.geometry import FIRST_INODE
from wbsim.models.filesystems.files import FileInode, PagedFile
from wbsim.models.interfaces import Wb
from wbsim.models.vfs.superblock import MountedSuperblock


class Flex:
    """A flex group: its directories, and the number of its next inode.

    The inodes with the numbers *start* + 1 to *end* belong to this flex group.
    """

    __slots__ = ("_end", "_next_inode", "directories", "number")

    def __init__(self, number: int, start: int, end: int) -> None:
        self.number = number
        self.directories = 2 if number == 0 else 0  # the root and lost+found
        self._next_inode = start + (FIRST_INODE if number == 0 else 0)
        self._end = end

    @property
    def free_inodes(self) -> int:
        """The number of inodes that no file or directory ever took; an inode is not taken twice."""
        return self._end - self._next_inode

    def new_inode(self) -> int:
        """Take the next inode of the flex group, which must have one; return its number in the filesystem."""
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
    """An inode: its number, and the group where the search for its blocks begins.

    ``transaction`` is the number of the transaction that logged it last (i_datasync_tid); 0: none.
    """

    __slots__ = ("goal_group", "number", "transaction")

    def __init__(self, sb: MountedSuperblock, wb: Wb, number: int, goal_group: int) -> None:
        super().__init__(sb, wb)
        self.number = number
        self.goal_group = goal_group
        self.transaction = 0


class Ext4File(PagedFile):
    """A file's pages, and its extent *tree*."""

    __slots__ = ("tree",)

    def __init__(self, is_open: bool) -> None:
        super().__init__(0, is_open)
        self.tree = ExtentTree()
