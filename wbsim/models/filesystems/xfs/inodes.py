"""Directories and inodes of an XFS, as `models.filesystems.xfs.names` makes them."""

from __future__ import annotations

from wbsim.models.filesystems.files import OPEN, FileInode
from wbsim.models.filesystems.xfs.groups import Group, InodeCluster
from wbsim.models.filesystems.xfs.log import NO_BUFFER
from wbsim.models.seams import Superblock, Wb


class Directory:
    """A directory: its group, the block that its next names go into, and how many that has room for."""

    __slots__ = ("block", "group", "names_left")

    def __init__(self, group: Group) -> None:
        self.group = group
        self.names_left = 0
        self.block = NO_BUFFER


class XfsInode(FileInode):
    """An inode: the buffer that holds it, the checkpoint that last logged it; its group is its
    directory's.
    """

    __slots__ = ("checkpoint", "cluster")

    def __init__(self, sb: Superblock, wb: Wb, cluster: InodeCluster, checkpoint: int) -> None:
        # As the bases do; a call less for each of millions.
        self.sb = sb
        self.wb = wb
        self.dirtied_when = 0
        self.dirty_pages = 0
        self.i_sync = None
        self.file = OPEN
        self.folio_pages = 1
        self.cluster = cluster
        self.checkpoint = checkpoint

    @property
    def group(self) -> Group:
        """The group that it lies in; by its buffer, as half a million of them are dirty at once."""
        return self.cluster.group
