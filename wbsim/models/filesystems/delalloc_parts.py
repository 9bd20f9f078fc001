"""What a filesystem supplies: names, the place of a file's pages, and what is logged of that.

`models.filesystems.delalloc.DelallocFilesystem` puts them together with what all filesystems share: the table
of files, the walk over dirty pages, conversion after I/O.  READ `Placement` FIRST.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

import numpy as np
from mypy_extensions import mypyc_attr
from numpy.typing import NDArray

from wbsim.models.bio import Bio
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
    """What is logged, and when; what follows the end of I/O.

    ``gives_way``: whether the worker that completes files of one run may be preempted between two of them.
    """

    gives_way: bool

    @property
    def log_bytes(self) -> int:
        """See `Filesystem.log_bytes`."""

    def is_full(self) -> bool:
        """Whether a new transaction has to wait for log space."""

    def wait_for_space(self, thread: Thread) -> Steps:
        """*thread* sleeps until there is log space."""

    def convert(self, worker: Thread, inode: InodeT, ioend: IoEnd) -> Steps:
        """Convert the pages of *ioend*, which are on disk, in one transaction."""

    def end_run(self, worker: Thread, block: int, folios: int) -> Wait:
        """Complete a file of one run, whose *folios* folios are on disk from *block* on; yield the result."""

    def run_ended(self, inode: InodeT) -> None:
        """A file of one run is complete."""

    def sync_fs(self, thread: Thread) -> Steps:
        """See `Filesystem.sync_fs`."""

    def commit_log(self, thread: Thread) -> Steps:
        """See `Filesystem.commit_log`."""

    def check(self) -> None:
        """Raises `LawBroken` where the log's own laws do not hold."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Runs(Protocol):
    """What a placement uses to write a file of one run."""

    def bios(self, inode: FileInode, block: int, pages: int) -> list[Bio]:
        """Put the *pages* of a file of one run at *block* and under writeback; returns their bios."""

    def in_pieces(self, thread: Thread, inode: FileInode, wbc: WritebackControl) -> Steps:
        """The blocks that the file needs do not lie together: write it as a paged file."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Placement(Protocol[InodeT, FileT]):
    """Where the pages of files lie, and which locks the allocation of their blocks takes.

    ``blocks``: how many blocks there are; ``one_run_pages``: the most pages of a file that is still one run;
    ``files``: those whose pages are kept one by one, as created.
    """

    files: list[PagedFile]

    blocks: int
    group_blocks: int
    group_label: str
    one_run_pages: int

    # -- files, in memory

    def group_of(self, inode: InodeT) -> int:
        """See `Filesystem.group_of`."""

    def new_file(self, inode: InodeT, is_open: bool) -> FileT:
        """The pages of *inode*, none so far."""

    def room_for(self, size: int, call_pages: int) -> int:
        """For how many pages a file that ends at page *size* needs room, with all that may be reserved behind
        it.
        """

    def write(self, file: FileT, indices: NDArray[np.int64], call_pages: int) -> tuple[int, int]:
        """See `Filesystem.write`; stops at a page for which there is no room."""

    def released(self, file: FileT) -> None:
        """The last close of *file*."""

    # -- writeback

    def write_run(self, thread: Thread, inode: InodeT, wbc: WritebackControl, runs: Runs) -> Steps:
        """Give a file of one run its blocks, all together, and submit its bios; or write it in pieces."""

    # -- laws

    def free_tables(self) -> Iterable[NDArray[np.int64]]:
        """What is free for anybody, or kept for small files, in arrays (n x 2) of first blocks and sizes."""

    def check(self) -> None:
        """Raises `LawBroken` where a block of the paged files, or a free one, is lost or there twice."""
