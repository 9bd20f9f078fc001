"""A filesystem with delayed allocation, put together from its parts."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final

import numpy as np
from mypy_extensions import mypyc_attr
from numpy.typing import NDArray

from wbsim.models.filesystems.completions import Completions
from wbsim.models.filesystems.file_table import FileTable
from wbsim.models.filesystems.files import FileInode, OneRun, PagedFile
from wbsim.models.filesystems.inode_locks import InodeLocks
from wbsim.models.filesystems.one_run import OneRuns
from wbsim.models.filesystems.policies import FileWriteback, Metadata, Names, Placement
from wbsim.models.seams import Filesystem, Thread, WritebackControl
from wbsim.models.vfs.superblock import MountedSuperblock
from wbsim.sim.engine import Steps, Wait

_LARGEST_FOLIO: Final = 512
"""The pages of 2 MiB, which a processor maps at once."""


@mypyc_attr(allow_interpreted_subclasses=True)
class DelallocFilesystem(Filesystem):
    """One mounted filesystem, with its own ``names``, ``placement`` and ``metadata``.

    *completions* do what follows the end of I/O.
    """

    def __init__(
        self,
        *,
        sb: MountedSuperblock,
        names: Names,
        placement: Placement,
        metadata: Metadata,
        writeback: FileWriteback,
        large_folios: bool,
        completions: Completions,
        locks: InodeLocks,
    ) -> None:
        self.names = names
        self.placement = placement
        self.metadata = metadata
        self.group_blocks, self.group_label = placement.group_blocks, placement.group_label
        sb.largest_folio = _LARGEST_FOLIO if large_folios else 1
        self.files = FileTable(sb.name, placement, locks, completions)
        self._writeback = writeback
        self._runs = OneRuns(sb, self.files, writeback, completions)

    def mkdir(self, thread: Thread) -> Generator[Wait, None, Any]:
        """See `Filesystem.mkdir`."""
        return self.names.mkdir(thread)

    def create(
        self, thread: Thread, directory: Any, lead_ns: int, factor: float, then_ns: int
    ) -> Generator[Wait, None, Any]:
        """See `Filesystem.create`."""
        return self.names.create(thread, directory, lead_ns, factor, then_ns)

    def look_up(self, thread: Thread, lead_ns: int, factor: float) -> Steps:
        """See `Filesystem.look_up`."""
        return self.names.look_up(thread, lead_ns, factor)

    def bulkstat(self, thread: Thread, lead_ns: int, factor: float) -> Steps:
        """See `Filesystem.bulkstat`."""
        return self.names.bulkstat(thread, lead_ns, factor)

    def unlink(self, thread: Thread, lead_ns: int, factor: float) -> Steps:
        """See `Filesystem.unlink`."""
        return self.names.unlink(thread, lead_ns, factor)

    def append(self, inode: FileInode, pages: int) -> int:
        """See `Filesystem.append`."""
        return self.files.append(inode, pages)

    def write(self, inode: FileInode, indices: NDArray[np.int64], call_pages: int) -> tuple[int, int]:
        """See `Filesystem.write`."""
        return self.files.write(inode, indices, call_pages)

    def zero_end(self, thread: Thread, inode: Any) -> Steps:
        """See `Filesystem.zero_end`."""
        return self._writeback.zero_end(thread, inode)

    def write_lock(self, thread: Thread, inode: FileInode, calls: int) -> Steps | None:
        """See `Filesystem.write_lock`."""
        return self.files.write_lock(thread, inode, calls)

    def close(self, inode: FileInode) -> None:
        """See `Filesystem.close`."""
        self.files.close(inode)

    def write_pages(self, thread: Thread, inode: FileInode, wbc: WritebackControl) -> Steps:
        """See `Filesystem.write_pages`."""
        file = inode.file
        if isinstance(file, OneRun):
            if inode.dirty_pages <= wbc.nr_to_write:
                return self.placement.write_run(thread, inode, wbc, self._runs)
            file = self.files.page(inode)
        return self._writeback.write(thread, inode, file, wbc)

    def sync_fs(self, thread: Thread) -> Steps:
        """See `Filesystem.sync_fs`."""
        return self.metadata.sync_fs(thread)

    def commit_log(self, thread: Thread) -> Steps:
        """See `Filesystem.commit_log`."""
        return self.metadata.commit_log(thread)

    def group_of(self, inode: Any) -> int:
        """See `Filesystem.group_of`."""
        return self.placement.group_of(inode)

    @property
    def log_bytes(self) -> int:
        """See `Filesystem.log_bytes`."""
        return self.metadata.log_bytes

    def check(self) -> None:
        """See `Filesystem.check`."""
        self.files.check()
        self.placement.check(self.files.paged)
        self.metadata.check()

    def layouts(self) -> Sequence[PagedFile]:
        """See `Filesystem.layouts`."""
        return self.files.paged

    def extents_per_file(self) -> tuple[int, ...]:
        """See `Filesystem.extents_per_file`."""
        return tuple(file.extent_count() for file in self.files.paged)
