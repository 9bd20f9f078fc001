"""The parts that a filesystem supplies: names, the place of a file's pages, and a log.

`models.filesystems.delalloc.DelallocFilesystem` combines them with the parts that all filesystems share: the
table of files, the walk over dirty pages, and the conversion after I/O.  READ `Placement` FIRST.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

import numpy as np
from mypy_extensions import mypyc_attr
from numpy.typing import NDArray

from wbsim.models.bio import Bio
from wbsim.models.filesystems.blocks import Space
from wbsim.models.filesystems.files import FileInode, PagedFile
from wbsim.models.filesystems.ioends import IoEnd
from wbsim.models.interfaces import Thread, WritebackControl
from wbsim.sim.engine import Steps, Wait

InodeT = TypeVar("InodeT", bound=FileInode, contravariant=True)
"""The class of a filesystem's inodes, which its `Names` makes."""
FileT = TypeVar("FileT", bound=PagedFile)
"""The class of its files whose pages are kept one by one, which its `Placement` makes."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Metadata(Protocol[InodeT]):
    """The log of a filesystem, and the work after the end of I/O.

    The methods account for the processor time of their thread or worker (``Thread.spent``).
    ``gives_way``: the worker that completes files of one run may be preempted between two of them.
    """

    gives_way: bool

    @property
    def log_bytes(self) -> int:
        """The bytes written to the log so far, for `Filesystem.log_bytes`."""

    def is_full(self) -> bool:
        """Return whether a new transaction must wait for log space; then use `wait_for_space`."""

    def wait_for_space(self, thread: Thread) -> Steps:
        """Let *thread* sleep until there is log space, or make some.  Use: `yield from`.

        The space is not kept for *thread*: another task may use it first.
        """

    def convert(self, worker: Thread, inode: InodeT, ioend: IoEnd) -> Steps:
        """Let *worker* convert the unwritten blocks of *ioend*, pages of *inode*, in one transaction.

        Use: `yield from`.  The data is on disk, and the inode's file is a `PagedFile`.  The blocks count as
        written at the end; the caller then makes the pages clean.
        """

    def end_run(self, worker: Thread, block: int, folios: int) -> Wait:
        """Return the wait in which *worker* completes a file of one run; the caller yields it.

        The file's *folios* folios are on disk from *block* on, counted from the start of the filesystem.
        Only time passes; `run_ended` follows, and logs the change.
        """

    def run_ended(self, inode: InodeT) -> None:
        """Log *inode*, a file of one run whose I/O has ended, in no time; `end_run` has taken the time.

        What was reserved in the log for it is given back.
        """

    def sync_fs(self, thread: Thread) -> Steps:
        """Let *thread* sleep until everything that was logged by now is on disk.  Use: `yield from`."""

    def commit_inode(self, thread: Thread, inode: InodeT, datasync: bool) -> Steps:
        """Let *thread* wait until the last change of *inode* is in the log, and flush the disk's cache.

        Use: `yield from`.  *datasync*: a change of time stamps alone does not count.  The time stamps are
        logged already (`log_times`).
        """

    def log_times(self, inode: InodeT) -> None:
        """Log the time stamps of *inode*, which a write has changed, before an fsync(2) waits for them.

        No time passes.  The inode's file is a `PagedFile`, whose ``times_logged`` becomes the number of the
        transaction or checkpoint; its ``stamp_ns`` is the caller's to set.
        """

    def change_extent(self, thread: Thread, inode: InodeT) -> Steps:
        """Let *thread* run the transaction of one extent of *inode* that fallocate(2) or truncation changes.

        Use: `yield from`.  Only time and the log change; the placement takes or frees the blocks.
        """

    def check(self) -> None:
        """Check the laws of the log; raise `LawBroken` if one is broken."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Runs(Protocol):
    """The functions that a placement calls to write a file of one run."""

    def bios(self, inode: FileInode, block: int, pages: int, wbc: WritebackControl) -> list[Bio]:
        """Put the *pages* pages of a file of one run at *block* and under writeback; return their bios.

        *block* counts from the start of the filesystem.  *pages* is subtracted from ``inode.dirty_pages``.
        *wbc* only decides whether the bios carry REQ_SYNC.  The caller submits the bios.  A file that is open
        or has a name is a `PagedFile` then.
        """

    def in_pieces(self, thread: Thread, inode: FileInode, wbc: WritebackControl) -> Steps:
        """Write *inode*, a file of one run, as a paged file, because its blocks do not lie together.

        Use: `yield from`.  All pages are written as for data integrity, whatever *wbc* says, but their end is
        not awaited.  ``wbc.nr_to_write`` falls by their number.
        """


@mypyc_attr(allow_interpreted_subclasses=True)
class Placement(Protocol[InodeT, FileT]):
    """The place of the pages of files, and the locks that the allocation of their blocks takes.

    * ``files``: the files whose pages are kept one by one, in the order of their creation.
    * ``blocks``: the number of blocks of the filesystem.
    * ``group_blocks`` and ``group_label``: see `Filesystem`.
    * ``one_run_pages``: the most pages of a file of one run.
    * ``space``: the blocks that no page has claimed.  A write claims blocks, and what frees blocks returns
      them.
    """

    files: list[PagedFile]
    space: Space

    blocks: int
    group_blocks: int
    group_label: str
    one_run_pages: int

    # -- files, in memory

    def group_of(self, inode: InodeT) -> int:
        """Return the number of the group in which *inode* itself lies (`Filesystem.group_of`)."""

    def new_file(self, inode: InodeT, is_open: bool) -> FileT:
        """Return a file for *inode*, without pages so far; *is_open*: a process has it open.

        The caller, `DelallocFilesystem.page`, sets ``inode.file`` and the file's ``inode``, ``lock`` and
        ``ioends``.  It also adds the file to ``files``, and makes room for its pages.
        """

    def room_for(self, size: int, call_pages: int) -> int:
        """Return the room (pages) that a file of *size* pages needs, with the largest reservation behind it.

        *call_pages*: the pages of a write(2), which only XFS adds.  The caller then makes this room
        (`FilePages.make_room`).
        """

    def write(self, file: FileT, indices: NDArray[np.int64], call_pages: int) -> tuple[int, int]:
        """Write to the pages at *indices* as `Filesystem.write` does, but stop where the file has no room.

        The file has room for the pages before ``file.end``.  A page that needs `Filesystem.make_way` first
        ends the writes, too.  Returns the number of pages that were written, and how many of them were clean.
        The blocks that they claim are subtracted from `Space.unclaimed`.
        """

    def released(self, file: FileT) -> None:
        """Give up the blocks that *file* keeps for its growth, at its last close.

        XFS leaves the blocks of a file with ``keeps_end``.  An ext4 leaves them while pages wait for blocks.
        """

    def free_end(self, file: FileT) -> int:
        """Free the blocks of the pages behind the end of *file*; return in how many extents they lay.

        The caller has set the new size.  The claims of delayed pages there end, too.  `Space.unclaimed` grows
        by the blocks and the claims.
        """

    def trim_all(self) -> None:
        """Free the blocks behind the ends of files, as `free_end` does, except in files with ``keeps_end``.

        A write that finds too few unclaimed blocks causes this.  An ext4 has nothing to do, because a block
        that is held for a file is unclaimed.
        """

    def take_blocks(self, inode: InodeT, file: FileT, page: int, length: int, end: int) -> tuple[int, int]:
        """Take and claim up to *length* blocks that lie together, for holes from *page* on.

        The holes are part of a fallocate(2) that ends in front of page *end*; 0: they are part of none.
        Returns the first block, counted from the start of the filesystem, and the number of blocks.  The
        number is subtracted from `Space.unclaimed`.  `map_blocks` gives the blocks to pages.

        Raises:
            NoSpace: no block is unclaimed.
        """

    def map_blocks(self, inode: InodeT, file: FileT, page: int, block: int, count: int) -> None:
        """Give the blocks from *block* on, which are unwritten, to *count* holes from *page* on.

        *block* counts from the start of the filesystem.  The file has room for the pages, and `take_blocks`
        has taken the blocks.  No time passes.
        """

    def give_back(self, block: int, count: int) -> None:
        """Free *count* blocks from *block* on, which counts from the start of the filesystem.

        `Space.unclaimed` grows by *count*.  In XFS, all of them must lie in one group.
        """

    def mark_written(self, file: FileT, page: int, count: int) -> None:
        """Convert the unwritten blocks of *count* pages from *page* on, in no time, without a transaction.

        `lay_out` calls this, because the files of a configuration are on disk before the run.
        """

    # -- writeback

    def write_run(self, thread: Thread, inode: InodeT, wbc: WritebackControl, runs: Runs) -> Steps:
        """Give a file of one run its blocks, all together, and submit its bios; or write it in pieces.

        Use: `yield from`.  ``wbc.nr_to_write`` falls by the pages written.  *runs* makes the bios, whose ends
        are not awaited.
        """

    # -- laws

    def free_tables(self) -> Iterable[NDArray[np.int64]]:
        """Return the blocks that are free or kept for small files: arrays (n x 2) of first blocks, sizes.

        First blocks count from the start of the filesystem; sizes are in blocks.  A block that is held for a
        page of a file (ext4) is in none of the arrays.
        """

    @property
    def free_blocks(self) -> int:
        """The number of blocks that neither a page nor metadata has; claimed and held blocks count."""

    def check(self) -> None:
        """Raise `LawBroken` if a block that is free or of a paged file is lost or exists twice."""
