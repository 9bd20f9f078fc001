"""Directories and inodes of an XFS, as `models.filesystems.xfs.names` makes them."""

from __future__ import annotations

from wbsim.models.filesystems.files import OPEN, FileInode, PagedFile
from wbsim.models.filesystems.ioends import IoEnds
from wbsim.models.filesystems.xfs.groups import Group, InodeCluster
from wbsim.models.filesystems.xfs.log import NO_BUFFER
from wbsim.models.seams import Superblock, Wb
from wbsim.sim.sync import RwSemaphore


class Directory:
    """A directory: its group, the block that its next names go into, and how many that has room for."""

    __slots__ = ("block", "group", "names_left")

    def __init__(self, group: Group) -> None:
        self.group = group
        self.names_left = 0
        self.block = NO_BUFFER


class XfsFile(PagedFile):
    """A file's pages, with the *ilock* of its inode.

    Its ioends end on the list *ioends*, unless their pages are clean after the I/O.  Blocks are counted from
    the beginning of *group*.  ``allocations`` is the number of extents that were given blocks.
    """

    __slots__ = ("allocations", "ilock", "ioends", "looked")

    def __init__(
        self, group: Group, is_open: bool, ilock: RwSemaphore, ioends: IoEnds | None
    ) -> None:  # fmt: skip
        super().__init__(group.first_block, is_open)
        self.ilock = ilock
        self.ioends = ioends
        self.allocations = 0
        self.looked = 0, 0, 0  # the time of the last burst of writes, and the holds of the ILOCK by then


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
