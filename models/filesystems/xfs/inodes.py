"""Directories, inode chunks and the buffers that inodes are written in.

Stands for xfs_dialloc, xfs_ialloc_ag_alloc and xfs_dir_createname.  New directories take the groups in
rotation, files the group of their directory.  Left out: alignment of inode chunks, directories that spill
into another group.
"""

from __future__ import annotations

from models.filesystems.files import OPEN, FileInode
from models.filesystems.xfs.groups import Group, InodeCluster
from models.filesystems.xfs.log import NOWHERE, MetaBuffer
from models.filesystems.xfs.spec import CHUNK_INODES, XfsSpec
from models.seams import Superblock, Wb
from sim.units import PAGE_BYTES, PAGE_SECTORS, SECTOR_BYTES


class Directory:
    """A directory: its group, the block that its next names go into, and how many that has room for."""

    __slots__ = ("block", "group", "names_left")

    def __init__(self, group: Group) -> None:
        self.group = group
        self.names_left = 0
        self.block = NOWHERE


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
        self.syncing = False
        self.file = OPEN
        self.cluster = cluster
        self.checkpoint = checkpoint

    @property
    def group(self) -> Group:
        """The group that it lies in; by its buffer, as half a million of them are dirty at once."""
        return self.cluster.group


class InodeChunks:
    """How inodes and names are laid out on disk."""

    def __init__(self, spec: XfsSpec) -> None:
        self._chunk_blocks = CHUNK_INODES * spec.inode_bytes // PAGE_BYTES
        self._clusters = max(1, CHUNK_INODES * spec.inode_bytes // spec.cluster_bytes)
        self._names_per_block = PAGE_BYTES // spec.dirent_bytes

    def add_chunk(self, group: Group) -> None:
        """64 more inodes in *group*."""
        group.cluster = InodeCluster(
            group, (group.first_block + group.take(self._chunk_blocks)) * PAGE_SECTORS, 0
        )
        group.cluster_left = 0
        group.inodes_left = CHUNK_INODES

    def add_block(self, directory: Directory) -> None:
        """One more block for names."""
        group = directory.group
        directory.block = MetaBuffer((group.first_block + group.take(1)) * PAGE_SECTORS, PAGE_SECTORS)
        directory.names_left = self._names_per_block

    def next_cluster(self, group: Group) -> None:
        """Go on to the next cluster buffer of the current inode chunk."""
        previous = group.cluster
        sectors = self._chunk_blocks * PAGE_BYTES // SECTOR_BYTES // self._clusters
        group.cluster = InodeCluster(group, previous.start_sector + previous.sectors, sectors)
        group.cluster_left = CHUNK_INODES // self._clusters
