"""The places that mkfs.ext4 gives to metadata: superblocks, descriptors, bitmaps, inode tables, the journal.

Block numbers are those of the filesystem.  Stands for ext2fs_initialize, ext2fs_allocate_group_table and
mkjournal.c of e2fsprogs; checked against version 1.47 (tests/models/catalogue/test_mkfs.py).
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

GROUP_BLOCKS: Final = 32_768
GROUP_INODES: Final = 8_192
"""The inodes of a full group with one inode for 16 KiB, mke2fs's default."""
FIRST_INODE: Final = 11
"""The number of reserved inodes, with lost+found."""
INODES_PER_BLOCK: Final = 16
"""An inode has 256 B."""
_BITMAPS: Final = 2
_DESCRIPTORS_PER_BLOCK: Final = 64
_FLEX_GROUPS_WITH_OWN_FIRST: Final = 4  # EXT4_FLEX_SIZE_DIR_ALLOC_SCHEME
_ROOT_BLOCKS: Final = 6
"""The blocks of the root directory and of lost+found."""


class Geometry(NamedTuple):
    """The layout of one ext4.

    * ``groups``: the number of block groups.
    * ``flex_groups``: the number of groups that have their metadata in one place.
    * ``descriptor_blocks``: the blocks of descriptors, and the blocks that are reserved for growing.
    * ``journal_blocks``: the blocks of the journal.
    * ``group_inodes``: the inodes of a group.
    """

    groups: int
    flex_groups: int
    descriptor_blocks: int
    journal_blocks: int
    group_inodes: int = GROUP_INODES

    @property
    def flexes(self) -> int:
        """The number of flex groups."""
        return -(-self.groups // self.flex_groups)

    @property
    def inodes(self) -> int:
        """The number of inodes."""
        return self.groups * self.group_inodes

    @property
    def journal_runs(self) -> tuple[tuple[int, int], ...]:
        """The runs of blocks that the journal has, each its first block and its length."""
        return _journal_runs(self)

    def head_blocks(self, group: int) -> int:
        """Return how many blocks at the start of *group* mkfs uses."""
        return self.metadata_blocks(group) + _journal_blocks(self).get(group, 0)

    def metadata_blocks(self, group: int) -> int:
        """Return how many blocks at the start of *group* mkfs uses without the journal."""
        blocks = 1 + self.descriptor_blocks if _has_superblock(group) else 0
        if group % self.flex_groups == 0:
            described = min(self.flex_groups, self.groups - group)
            blocks += described * (_BITMAPS + self.group_inodes // INODES_PER_BLOCK)
            blocks += _ROOT_BLOCKS if group == 0 else 0
        return blocks

    def group_of(self, inode: int) -> int:
        """Return the group that the inode of this number lies in."""
        return (inode - 1) // self.group_inodes

    def bitmap_block(self, group: int, inodes: bool) -> int:
        """Return the block of the bitmap of *group*'s inodes or blocks, at the head of its flex group."""
        first = group // self.flex_groups * self.flex_groups
        head = first * GROUP_BLOCKS + (1 + self.descriptor_blocks if _has_superblock(first) else 0)
        return head + (self.flex_groups if inodes else 0) + group - first

    def inode_block(self, number: int) -> int:
        """Return the block of the inode tables that holds inode *number*."""
        group, index = divmod(number - 1, self.group_inodes)
        first = group // self.flex_groups * self.flex_groups
        tables = self.bitmap_block(first, inodes=False) + _BITMAPS * self.flex_groups
        table_blocks = self.group_inodes // INODES_PER_BLOCK
        return tables + (group - first) * table_blocks + index // INODES_PER_BLOCK

    def descriptor_block(self, group: int) -> int:
        """Return the block with *group*'s descriptor."""
        return 1 + group // _DESCRIPTORS_PER_BLOCK

    def keeps_off_data(self, group: int) -> bool:
        """Return whether files are kept out of *group* as long as other groups have room.

        The first group of a flex group is for directories.
        """
        return self.flex_groups >= _FLEX_GROUPS_WITH_OWN_FIRST and group % self.flex_groups == 0


@cache
def _journal_runs(of: Geometry) -> tuple[tuple[int, int], ...]:
    """Return the journal's runs: free blocks from the goal on (ext2fs_fallocate), which skip metadata."""
    runs: list[tuple[int, int]] = []
    left, group = of.journal_blocks, _journal_goal(of)
    while left > 0 and group < of.groups:
        used = of.metadata_blocks(group)
        length = min(left, GROUP_BLOCKS - used)
        first = group * GROUP_BLOCKS + used
        if runs and sum(runs[-1]) == first:
            runs[-1] = runs[-1][0], runs[-1][1] + length
        elif length > 0:
            runs.append((first, length))
        left -= max(0, length)
        group += 1
    return tuple(runs)


def _journal_goal(of: Geometry) -> int:
    """Return the group where mkfs begins to look for the journal's blocks (get_midpoint_journal_block).

    Candidates are the first two groups of the middle flex group.  A small filesystem has three candidates,
    the groups in its middle.  The first candidate with the most free blocks wins.
    """
    middle, last = of.groups // 2, of.groups - 1
    if middle > of.flex_groups:
        middle = middle // of.flex_groups * of.flex_groups
        candidates = range(middle, min(middle + 1, last) + 1)
    else:
        candidates = range(max(0, middle - 1), min(middle + 1, last) + 1)
    return min(candidates, key=of.metadata_blocks)


@cache
def _journal_blocks(of: Geometry) -> dict[int, int]:
    """Return how many blocks of the journal lie in each group that has some."""
    blocks: dict[int, int] = {}
    for first, length in _journal_runs(of):
        while length:
            group, offset = divmod(first, GROUP_BLOCKS)
            here = min(length, GROUP_BLOCKS - offset)
            blocks[group] = here
            first, length = first + here, length - here
    return blocks


def _has_superblock(group: int) -> bool:
    """Return whether *group* has a copy of the superblock (sparse_super): 0, 1, powers of 3, 5 and 7."""
    for base in (3, 5, 7):
        power = 1
        while power < group:
            power *= base
        if power == group:
            return True
    return group in (0, 1)
