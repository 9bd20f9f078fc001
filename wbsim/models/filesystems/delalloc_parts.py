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

    ``gives_way``: the worker that completes files of one run may be preempted between two of them.
    """

    gives_way: bool

    @property
    def log_bytes(self) -> int:
        """See `Filesystem.log_bytes`."""

    def is_full(self) -> bool:
        """Return whether a new transaction must wait for log space; then use `wait_for_space`."""

    def wait_for_space(self, thread: Thread) -> Steps:
        """Let *thread* sleep until there is log space, or make some.  Use: `yield from`."""

    def convert(self, worker: Thread, inode: InodeT, ioend: IoEnd) -> Steps:
        """Convert the pages of *ioend*, which are on disk, in one transaction.  Use: `yield from`.

        The blocks of *inode* count as written then; the caller makes the pages clean.
        """

    def end_run(self, worker: Thread, block: int, folios: int) -> Wait:
        """Complete a file of one run, whose *folios* folios are on disk from *block* on.  Yield the result.

        Only time passes; `run_ended` follows, and logs the change.
        """

    def run_ended(self, inode: InodeT) -> None:
        """Log *inode*, whose file of one run is complete, in no time; `end_run` has taken the time."""

    def sync_fs(self, thread: Thread) -> Steps:
        """See `Filesystem.sync_fs`."""

    def commit_inode(self, thread: Thread, inode: InodeT, datasync: bool) -> Steps:
        """See `Filesystem.commit_inode`; the time stamps of *inode* are logged already."""

    def log_times(self, inode: InodeT) -> None:
        """Log the time stamps of *inode*, which a write has changed, before an fsync(2) waits for them."""

    def change_extent(self, thread: Thread, inode: InodeT) -> Steps:
        """Run the transaction of one extent of *inode* that fallocate(2) or a truncation changes.

        Use: `yield from`.  Only time and the log change; the placement takes or frees the blocks.
        """

    def check(self) -> None:
        """Check the laws of the log; raise `LawBroken` if one is broken."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Runs(Protocol):
    """The functions that a placement calls to write a file of one run."""

    def bios(self, inode: FileInode, block: int, pages: int, wbc: WritebackControl) -> list[Bio]:
        """Put the *pages* pages of a file of one run at *block* and under writeback; return their bios.

        The pages are dirty no more.  The caller submits the bios.
        """

    def in_pieces(self, thread: Thread, inode: FileInode, wbc: WritebackControl) -> Steps:
        """Write a file of one run as a paged file, because the blocks that it needs do not lie together.

        Use: `yield from`.  ``wbc.nr_to_write`` falls by the pages written.
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
        """See `Filesystem.group_of`."""

    def new_file(self, inode: InodeT, is_open: bool) -> FileT:
        """Return a file for *inode*, without pages so far; *is_open*: a process has it open."""

    def room_for(self, size: int, call_pages: int) -> int:
        """Return the pages that a file of *size* pages needs room for, with the largest reservation.

        *call_pages*: the pages of a write(2).  A file makes room for so many before the write.
        """

    def write(self, file: FileT, indices: NDArray[np.int64], call_pages: int) -> tuple[int, int]:
        """Write as `Filesystem.write` does, but stop at a page for which the file has no room."""

    def released(self, file: FileT) -> None:
        """Give up the blocks that *file* keeps for its growth, at its last close."""

    def free_end(self, file: FileT) -> int:
        """Free the blocks of the pages behind the end of *file*; return the number of extents that end.

        Their claims end, too.
        """

    def trim_all(self) -> None:
        """Free the blocks behind the end of all files, because no other block is left."""

    def take_blocks(self, inode: InodeT, file: FileT, page: int, length: int, end: int) -> tuple[int, int]:
        """Take and claim up to *length* blocks that lie together, for holes from *page* on.

        They are a part of a fallocate(2) up to page *end*; 0: they are no part of one.  Returns the first
        block of the filesystem and the number of blocks.  `map_blocks` gives them to pages.

        Raises:
            NoSpace: no block is left.
        """

    def map_blocks(self, inode: InodeT, file: FileT, page: int, block: int, count: int) -> None:
        """Give the blocks from *block* on, which are unwritten, to *count* holes from *page* on.

        *block* counts from the start of the filesystem.  No time passes.
        """

    def give_back(self, block: int, count: int) -> None:
        """Free *count* blocks from *block* on, and end their claims."""

    def mark_written(self, file: FileT, page: int, count: int) -> None:
        """Convert the unwritten blocks of *count* pages from *page* on, in no time, without a transaction.

        `lay_out` calls this, because the files of a configuration are on disk before the run.
        """

    # -- writeback

    def write_run(self, thread: Thread, inode: InodeT, wbc: WritebackControl, runs: Runs) -> Steps:
        """Give a file of one run its blocks, all together, and submit its bios; or write it in pieces.

        Use: `yield from`.  ``wbc.nr_to_write`` falls by the pages written.  *runs* makes the bios.
        """

    # -- laws

    def free_tables(self) -> Iterable[NDArray[np.int64]]:
        """Return the blocks that are free or kept for small files: arrays (n x 2) of first blocks, sizes."""

    @property
    def free_blocks(self) -> int:
        """The number of blocks that no page has, with those that are claimed or held."""

    def check(self) -> None:
        """Raise `LawBroken` if a block that is free or of a paged file is lost or exists twice."""
