"""The decisions of mkfs.ext4, the costs of ext4's paths, and the rules of each era."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, model_validator

from wbsim.models.filesystems.ext4.geometry import (
    FIRST_INODE,
    GROUP_BLOCKS,
    GROUP_INODES,
    INODES_PER_BLOCK,
    Geometry,
    kept_blocks,
)
from wbsim.models.filesystems.spec import FilesystemSpec, FlusherCosts
from wbsim.sim.param import (
    BadValue,
    Bytes,
    BytesOrNone,
    Count,
    Flag,
    Interval,
    Ns,
    Spec,
)
from wbsim.sim.units import PAGE_BYTES

_LINEAR_GROUPS: Final = 4  # MB_DEFAULT_LINEAR_LIMIT
_GROUP_BYTES: Final = GROUP_BLOCKS * PAGE_BYTES
MOST_BYTES: Final = 64 << 40
"""Half a million groups; the model has as many groups."""
_EXT4: Final = "docs/measurements.md F"
_LOCKED: Final = "docs/measurements.md M: i_data_sem"
_INODES: Final = "docs/measurements.md L: inodes on Linux 6.18"


class Ext4Rules(Spec):
    """The rules of an era's fs/ext4 for the place of file pages.

    * ``bump_pages``: a visit's quota is raised to the run of delayed pages at the cursor, up to this number
      (to 3.10).  0: not raised.
    * ``page_bios``: each page is a separate bio (to 2.6.36).
    * ``by_order``: the search for free space prefers the most used group (5.13 and later).
    * ``goal_first``: the search by order begins with the goal's group (6.0 to 6.16).  On a rotating disk it
      searches four groups more in line; without this rule, the goal's group is one of the four.
    * ``packs_closed``: small files that are closed are packed into a locality group's run, like open ones
      (6.0 and later).
    * ``goals``: the number of places where large files continue.  It is one, or one for each processor and at
      most one for four groups (6.17 and later).
    * ``unwritten``: blocks are allocated as unwritten, and converted after the write (dioread_nolock, 5.6 and
      later).
    * ``large_folios``: a folio is as large as the write(2) that made it (6.16 and later).
    * ``write_lock``: write(2) takes i_data_sem for reading ("shared") or, from 6.10 on, for writing
      ("exclusive").
    * ``sync_data``: the data that fsync(2) or sync(2) writes carries REQ_SYNC (2.6.30 and later).
    """

    bump_pages: int = Field(ge=0)
    page_bios: Flag
    by_order: Flag
    goal_first: Flag
    packs_closed: Flag
    goals: Literal["one", "per_processor"]
    unwritten: Flag
    large_folios: Flag
    write_lock: Literal["shared", "exclusive"]
    sync_data: Flag

    def groups_in_line(self, rotates: bool) -> int:
        """Return how many groups, from the goal's on, a search by order looks at in line before the lists.

        *rotates*: the device does, so s_mb_max_linear_groups is 4, otherwise 0; ``goal_first`` adds 1.
        """
        return self.goal_first + (_LINEAR_GROUPS if rotates else 0)


OVERHEAD: Final = 22
"""The blocks that a transaction leaves free for descriptors and the commit block."""


class JournalSpec(Spec):
    """The journal: its size, and when a transaction is committed and written in place.

    A transaction has at most a third of the journal, and each handle must fit into it.

    * ``size``: the size of the journal; whole blocks of 4 KiB.
    * ``commit_interval``: the age at which a transaction is committed.
    * ``expire``: the time from the commit until the blocks are written in place.
    * ``create_credits``: the blocks that the handle of a creat(2) asks for.
    * ``map_credits``: the blocks that the handle of an allocation asks for.
    * ``convert_credits``: the blocks that the handle of a conversion asks for; they are reserved while an
      extent is under writeback.
    * ``names_per_leaf``: the names in a block of a directory.
    """

    size: Bytes
    commit_interval: Interval
    expire: Ns
    create_credits: Count
    map_credits: Count
    convert_credits: Count
    names_per_leaf: Count

    def check(self) -> None:
        """Check that a transaction has room for each handle ("wants too many credits").

        A transaction has at most a third of the blocks.  The handle of a creat(2) or an allocation needs
        `OVERHEAD` blocks more than its credits.  A conversion must fit into half of a transaction.

        Raises:
            ValueError: a handle asks for more blocks.
        """
        most = self.blocks // 3
        for name, need in (
            ("create_credits", self.create_credits + OVERHEAD), ("map_credits", self.map_credits + OVERHEAD),
            ("convert_credits", 2 * self.convert_credits),
        ):  # fmt: skip
            if need > most:
                least = 3 * need * PAGE_BYTES >> 10
                raise ValueError(
                    f"{self.size} B is too small: a transaction has a third of it, {most} blocks, and {name}"
                    f" need {need}; give at least {least} KiB"
                )

    @property
    def blocks(self) -> int:
        """The size of the journal in blocks."""
        return self.size // PAGE_BYTES


class Ext4WriterCosts(Spec):
    """Processor time of system calls, without the locks of inodes (`models.vfs.inodes`).

    * ``create_ns``: the time of a creat(2).
    * ``block_ns``: the time of the buffer head of each new block in a write(2).  0: the time of a page
      includes it.
    * ``cold_extent_ns``: the time that a write(2) at a random place of a file takes longer, for each doubling
      of the file's extents beyond 32.  The call searches the extent status tree twice.
    * ``iget_ns``: the time of an inode that is read into the cache.
    * ``unlink_ns``: the time of an unlink(2).
    * ``orphan_ns``: the part of ``unlink_ns`` under s_orphan_lock, which is taken twice for this time.
    * ``mkdir_ns``: the time of a mkdir(2).
    """

    create_ns: Ns
    block_ns: Ns = 0
    cold_extent_ns: Ns = 0
    iget_ns: Ns
    unlink_ns: Ns
    orphan_ns: Ns
    mkdir_ns: Ns


class Ext4FlusherCosts(FlusherCosts):
    """The costs of writeback.

    * ``journal_ns``: the time of the journal's thread for each block that it logs.
    """

    journal_ns: Ns


class Ext4Costs(Spec):
    """The costs of system calls and of writeback."""

    writer: Ext4WriterCosts
    flusher: Ext4FlusherCosts


class Ext4Spec(FilesystemSpec):
    """The choices of mkfs.ext4.

    * ``size``: the size of the filesystem; 256 MiB to 64 TiB.
    * ``flex_groups``: the number of groups that have their metadata in one place; a power of two.
    * ``descriptors``: the bytes of group descriptors, and of the descriptors reserved for growing; whole
      blocks of 4 KiB.
    * ``inodes_per_group``: the number of inodes in a group; 8 192 for an inode every 16 KiB.
    * ``stripe_width``: the stripe width of the array below; whole blocks (stripe_width of mke2fs -E).
      Without it, or if it is larger than a group, blocks are not aligned.
    * ``auto_da_alloc``: a file that replaces another one, by rename(2) or after a truncation to nothing, is
      written back before the rename or at its close(2).  False: the mount option noauto_da_alloc.
    """

    Costs: ClassVar = Ext4Costs
    Rules: ClassVar = Ext4Rules
    kind: Literal["ext4"] = "ext4"
    flex_groups: Count
    descriptors: BytesOrNone
    inodes_per_group: Annotated[Count, Field(multiple_of=INODES_PER_BLOCK, le=GROUP_BLOCKS)] = GROUP_INODES
    stripe_width: Bytes | None = None
    auto_da_alloc: Flag = True
    journal: JournalSpec

    @model_validator(mode="after")
    def _check(self) -> Ext4Spec:
        if not self.flex_groups or self.flex_groups & (self.flex_groups - 1):
            raise BadValue(f"{self.flex_groups} is not a power of two; give one, such as 16", "flex_groups")
        if self.size < 2 * _GROUP_BYTES:
            message = f"{self.size} B is less than two groups of 128 MiB; give at least 256 MiB"
            raise BadValue(message, "size")
        if self.size > MOST_BYTES:
            raise BadValue(f"{self.size} B is more than {MOST_BYTES} B; give at most 64 TiB", "size")
        for name, size in (
            ("descriptors", self.descriptors), ("journal.size", self.journal.size),
            ("stripe_width", self.stripe_width or 0),
        ):  # fmt: skip
            if size % PAGE_BYTES:
                raise BadValue(
                    f"{size} B is not a whole number of blocks; give a multiple of {PAGE_BYTES} B",
                    *name.split("."),
                )
        try:
            self.journal.check()
        except ValueError as error:
            raise BadValue(str(error), "journal", "size") from None
        geometry = self.geometry
        for group in {0, 1, min(self.flex_groups, geometry.groups - 1)}:
            if geometry.metadata_blocks(group) >= GROUP_BLOCKS:
                raise BadValue(
                    f"{self.flex_groups} inode tables of 2 MiB and the descriptors do not fit into the"
                    f" 128 MiB of group {group}; give fewer flex_groups or less for descriptors",
                    "flex_groups",
                )  # fmt: skip
        if sum(length for _, length in geometry.journal_runs) < geometry.journal_blocks:
            message = f"{self.journal.size} B does not fit after the middle of the {self.size} B; give less"
            raise BadValue(message, "journal", "size")
        return self

    @property
    def geometry(self) -> Geometry:
        """The layout that mkfs makes of these choices, in groups and blocks."""
        descriptor_blocks = self.descriptors // PAGE_BYTES
        return Geometry(
            kept_blocks(self.size // PAGE_BYTES, descriptor_blocks, self.inodes_per_group),
            self.flex_groups,
            descriptor_blocks,
            self.journal.blocks,
            self.inodes_per_group,
        )

    @property
    def stripe(self) -> int:
        """The blocks of a stripe, to which the allocator aligns requests; 0: there is none (s_stripe)."""
        blocks = (self.stripe_width or 0) // PAGE_BYTES
        return blocks if 1 < blocks <= GROUP_BLOCKS else 0

    @property
    def most_files(self) -> int:
        """See `FilesystemSpec.most_files`: the inodes, less those that mkfs uses."""
        return self.geometry.inodes - FIRST_INODE

    def bytes_of(self, files: int, bytes_each: int) -> int:
        """See `FilesystemSpec.bytes_of`; includes the blocks of the names."""
        leaves = -(-files // self.journal.names_per_leaf)
        return super().bytes_of(files, bytes_each) + leaves * PAGE_BYTES

    @property
    def room(self) -> int:
        """See `FilesystemSpec.room`: the blocks that mkfs leaves free; directories take some of them."""
        geometry = self.geometry
        return sum(geometry.free_blocks(group) for group in range(geometry.groups)) * PAGE_BYTES
