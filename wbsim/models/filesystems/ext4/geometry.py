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
_ROOT_BLOCKS: Final = 5
"""The blocks of the root directory and of lost+found."""
_EXTENT_BLOCKS: Final = 32_768  # EXT_INIT_MAX_LEN
_ROOT_EXTENTS: Final = 4
"""The extents that an inode holds; a journal with more has a block for its tree."""
_LEAST_FREE: Final = 50
"""The free blocks that mke2fs wants in a last group; a smaller group is left out."""


def kept_blocks(blocks: int, descriptor_blocks: int, group_inodes: int) -> int:
    """Return how many of *blocks* mke2fs uses: all, or only full groups if the rest is too small for a group.

    The rest needs bitmaps, an inode table for *group_inodes* inodes, and 50 blocks (ext2fs_initialize).  In
    a group with a copy of the superblock, it also needs a block for this copy, and the *descriptor_blocks*.
    These are the blocks of descriptors, and those that are reserved for growing.

    >>> kept_blocks(3 * 32_768 + 563, 128, 8_192), kept_blocks(3 * 32_768 + 693, 128, 8_192)
    (98304, 98997)
    """
    last, rest = divmod(blocks, GROUP_BLOCKS)
    least = _BITMAPS + group_inodes // INODES_PER_BLOCK + _LEAST_FREE
    if _has_superblock(last):
        least += 1 + descriptor_blocks
    return blocks if rest >= least else blocks - rest


class Geometry(NamedTuple):
    """The layout of one ext4.

    * ``blocks``: the number of blocks; the last group has fewer than the others if they are no whole groups.
    * ``flex_groups``: the number of groups that have their metadata in one place.
    * ``descriptor_blocks``: the blocks of descriptors, and the blocks that are reserved for growing.
    * ``journal_blocks``: the blocks of the journal.
    * ``group_inodes``: the inodes of a group.
    """

    blocks: int
    flex_groups: int
    descriptor_blocks: int
    journal_blocks: int
    group_inodes: int = GROUP_INODES

    @property
    def groups(self) -> int:
        """The number of block groups."""
        return -(-self.blocks // GROUP_BLOCKS)

    @property
    def flexes(self) -> int:
        """The number of flex groups."""
        return -(-self.groups // self.flex_groups)

    @property
    def inodes(self) -> int:
        """The number of inodes, reserved ones included; they are numbered from 1 on."""
        return self.groups * self.group_inodes

    @property
    def journal_runs(self) -> tuple[tuple[int, int], ...]:
        """The runs of blocks that the journal has, each its first block and its length (blocks).

        They have fewer than ``journal_blocks`` blocks if the journal does not fit.
        """
        return _journal(self).runs

    def size_of(self, group: int) -> int:
        """Return how many blocks *group* has: 32 768, and in the last group perhaps less."""
        return min(GROUP_BLOCKS, self.blocks - group * GROUP_BLOCKS)

    def head_blocks(self, group: int) -> int:
        """Return how many blocks at the start of *group* mkfs uses, for metadata and for the journal."""
        return self.metadata_blocks(group) + _journal_blocks(self).get(group, 0)

    def free_blocks(self, group: int) -> int:
        """Return how many blocks of *group* mkfs leaves free: those behind its head, up to `free_end`."""
        return self.free_end(group) - self.head_blocks(group)

    def free_end(self, group: int) -> int:
        """Return the block of *group*, counted from its start, that lies behind its last free block.

        This is the end of the group, or the block of the journal's tree in front of the journal.
        """
        tree = _journal(self).tree
        return self.size_of(group) - (tree == group * GROUP_BLOCKS + self.size_of(group) - 1)

    def metadata_blocks(self, group: int) -> int:
        """Return how many blocks at the start of *group* mkfs uses, without those of the journal."""
        blocks = 1 + self.descriptor_blocks if _has_superblock(group) else 0
        if group % self.flex_groups == 0:
            blocks += self._described(group) * (_BITMAPS + self.group_inodes // INODES_PER_BLOCK)
            blocks += _ROOT_BLOCKS + self._reserves_descriptors if group == 0 else 0
        return blocks

    def group_of(self, inode: int) -> int:
        """Return the group in which the inode with the number *inode*, from 1 on, lies."""
        return (inode - 1) // self.group_inodes

    def bitmap_block(self, group: int, inodes: bool) -> int:
        """Return the block of *group*'s inode bitmap if *inodes*, else of its block bitmap.

        The bitmaps lie at the head of the flex group.
        """
        first = group // self.flex_groups * self.flex_groups
        head = first * GROUP_BLOCKS + (1 + self.descriptor_blocks if _has_superblock(first) else 0)
        return head + (self._described(first) if inodes else 0) + group - first

    def inode_block(self, number: int) -> int:
        """Return the block of the inode tables that holds inode *number*, from 1 on."""
        group, index = divmod(number - 1, self.group_inodes)
        first = group // self.flex_groups * self.flex_groups
        tables = self.bitmap_block(first, inodes=False) + _BITMAPS * self._described(first)
        table_blocks = self.group_inodes // INODES_PER_BLOCK
        return tables + (group - first) * table_blocks + index // INODES_PER_BLOCK

    @property
    def _reserves_descriptors(self) -> bool:
        """True if blocks are reserved for more descriptors; the inode of these blocks then has a block."""
        return self.descriptor_blocks > -(-self.groups // _DESCRIPTORS_PER_BLOCK)

    def _described(self, first: int) -> int:
        """Return how many groups the flex group has that begins with group *first*."""
        return min(self.flex_groups, self.groups - first)

    def descriptor_block(self, group: int) -> int:
        """Return the block with *group*'s descriptor, which an allocation in the group logs."""
        return 1 + group // _DESCRIPTORS_PER_BLOCK

    def keeps_off_data(self, group: int) -> bool:
        """Return whether files are kept out of *group* as long as other groups have room.

        The first group of a flex group is for directories if the flex group has at least four groups.
        `Mballoc` and `Ext4Names` ask for this.
        """
        return self.flex_groups >= _FLEX_GROUPS_WITH_OWN_FIRST and group % self.flex_groups == 0


class _Journal(NamedTuple):
    """The runs of the journal, each its first block and its length, and the block of its tree.

    ``tree`` is -1 if the inode holds all extents.
    """

    runs: tuple[tuple[int, int], ...]
    tree: int


@cache
def _journal(geometry: Geometry) -> _Journal:
    """Return the places of the journal: free blocks from the goal on (ext2fs_fallocate), without metadata.

    An extent has at most 32 768 blocks.  When the fifth is added, the tree gets a block (extent_node_split).
    This is the block in front of the journal or, if that is used, the block behind the five extents.
    """
    goal = _journal_goal(geometry)
    front, tree, blocks_left = (
        goal * GROUP_BLOCKS + geometry.metadata_blocks(goal) - 1,
        -1,
        geometry.journal_blocks,
    )
    extents: list[tuple[int, int]] = []
    for group in range(goal, geometry.groups):
        first = group * GROUP_BLOCKS + geometry.metadata_blocks(group)
        end = group * GROUP_BLOCKS + geometry.size_of(group)
        while first < end:
            last = extents[-1] if extents else (-1, 0)
            grows = sum(last) == first and last[1] < _EXTENT_BLOCKS
            if len(extents) > _ROOT_EXTENTS and tree < 0 and not (blocks_left and grows):
                # The block in front is free only if the journal begins at the start of its group.
                tree = first if geometry.metadata_blocks(goal) else front
                first += tree == first
            elif blocks_left:
                length = min(blocks_left, _EXTENT_BLOCKS - grows * last[1], end - first)
                extents[len(extents) - grows :] = [(first - grows * last[1], length + grows * last[1])]
                blocks_left, first = blocks_left - length, first + length
            else:
                return _Journal(_join(extents), tree)
    return _Journal(_join(extents), tree)


def _join(extents: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the runs of adjacent *extents*.

    >>> _join([(5, 2), (7, 3), (20, 1)])
    ((5, 5), (20, 1))
    """
    runs: list[tuple[int, int]] = []
    for first, length in extents:
        if runs and sum(runs[-1]) == first:
            runs[-1] = runs[-1][0], runs[-1][1] + length
        else:
            runs.append((first, length))
    return tuple(runs)


def _journal_goal(geometry: Geometry) -> int:
    """Return the group where mkfs begins to look for the journal's blocks (get_midpoint_journal_block).

    Candidates are the first two groups of the middle flex group.  A small filesystem has three candidates,
    the groups in its middle.  The first candidate with the most free blocks wins.
    """
    middle, last = geometry.blocks // 2 // GROUP_BLOCKS, geometry.groups - 1
    if middle > geometry.flex_groups:
        middle = middle // geometry.flex_groups * geometry.flex_groups
        candidates = range(middle, min(middle + 1, last) + 1)
    else:
        candidates = range(max(0, middle - 1), min(middle + 1, last) + 1)
    return max(candidates, key=lambda group: geometry.size_of(group) - geometry.metadata_blocks(group))


@cache
def _journal_blocks(geometry: Geometry) -> dict[int, int]:
    """Return how many blocks the journal has behind the metadata of each group, with a tree amid its runs."""
    blocks: dict[int, int] = {}
    runs, tree = _journal(geometry)
    for first, length in (*runs, (tree, int(runs[0][0] < tree))):
        while length:
            group, offset = divmod(first, GROUP_BLOCKS)
            part = min(length, geometry.size_of(group) - offset)
            blocks[group] = blocks.get(group, 0) + part
            first, length = first + part, length - part
    return blocks


def _has_superblock(group: int) -> bool:
    """Return whether *group* has a copy of the superblock (sparse_super): 0, 1, powers of 3, 5 and 7.

    >>> [group for group in range(30) if _has_superblock(group)]
    [0, 1, 3, 5, 7, 9, 25, 27]
    """
    for base in (3, 5, 7):
        power = 1
        while power < group:
            power *= base
        if power == group:
            return True
    return group in (0, 1)
