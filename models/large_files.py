"""Files of many pages on any filesystem: creating them, and writing them back.

Stands for what do_writepages does whatever the filesystem: a compiled walk goes as far as nobody else's event is in
the way, its bios are submitted, and the filesystem gives blocks to what the walk could not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from models.extents.file_pages import FilePages
from models.extents.page_walk import (
    ALLOCATING,
    BIOS,
    CALLS,
    CONVERT,
    DICE,
    DONE,
    ELAPSED,
    PAGE,
    PAGES,
    RANGES,
    UNCOUNTED,
    WROTE,
    new_walk,
)
from models.inode import Inode
from models.page_cache import PageCache
from models.seams import UNLIMITED_PAGES, Site, Submitter
from models.unwritten import Conversions, Workers
from sim.engine import Steps, Wait
from sim.param import Bytes, Spec
from sim.units import PAGE_BYTES

_DICE: Final = 4_096
_BIOS: Final = 1_024


class LargeFilesSpec(Spec):
    """What mkfs made of a filesystem that keeps the single pages of its files."""

    size: Bytes

    @property
    def by_page(self) -> bool:
        """Whether it keeps the single pages of a file."""
        return True

    def bytes_of(self, files: int, file_size: int) -> int:
        """What *files* of *file_size* take on disk."""
        return files * -(-file_size // PAGE_BYTES) * PAGE_BYTES


class LargeFile(Inode):
    """A file: its pages, where the next writeback call starts, and what is to be converted once it was written."""

    __slots__ = ("conversions", "file", "writeback_index")

    def __init__(self, pages: int, base: int) -> None:
        super().__init__()
        self.file = FilePages(pages, base)
        self.writeback_index = 0
        self.conversions = Conversions(self)


class LargeFiles(ABC):
    """One mounted filesystem with large files; its dice are called *name*, and blocks are given as *unwritten* ones or
    not.

    ``group_blocks``: how many blocks each of its groups has; ``group_label``: what its tools call one.
    """

    group_blocks: int
    group_label: ClassVar[str]

    def __init__(
        self, *, name: str, site: Site, unwritten: bool, writer_costs: Any, flusher_costs: Any, cache: PageCache
    ) -> None:
        self._site = site
        self._env = site.env
        self._cache = cache
        self._create_ns = writer_costs.create_ns
        self._mkdir_ns = writer_costs.mkdir_ns
        self._map_ns = flusher_costs.map_ns
        self._page_ns = flusher_costs.page_ns
        self._workers = Workers(site.env, cache, flusher_costs.ioend_ns, self._map_ns) if unwritten else None
        self._end_io = cache.end_writeback if self._workers is None else self._workers.written
        self._variations = site.variations(name)
        self._dice: NDArray[np.float64] = np.empty(0)
        self._die = 0
        self.inodes: list[Any] = []

    @property
    def log_bytes(self) -> int:
        """See `Filesystem.log_bytes`; the log is left out."""
        return 0

    def extents_per_file(self) -> tuple[int, ...]:
        """See `Filesystem.extents_per_file`."""
        return tuple(inode.file.extent_count() for inode in self.inodes)

    def mkdir(self, submitter: Submitter) -> Generator[Wait, None, Any]:
        """See `Filesystem.mkdir`."""
        directory = self._new_directory()
        yield self._mkdir_ns
        submitter.task.system_ns += self._mkdir_ns
        return directory

    def create(
        self, submitter: Submitter, directory: Any, lead_ns: int, factor: float, then_ns: int
    ) -> Generator[Wait, None, LargeFile]:
        """See `Filesystem.create`."""
        create_ns = int(self._create_ns * factor)
        yield lead_ns + create_ns + then_ns
        submitter.task.system_ns += create_ns + then_ns
        self._cache.cached_inodes += 1
        inode = self._new_file(directory)
        self.inodes.append(inode)
        return inode

    def write_pages(self, submitter: Submitter, inode: Inode, budget_pages: int) -> Generator[Wait, None, int]:
        """See `Filesystem.write_pages`: from the writeback index on, or, with a sync's unlimited budget, the whole file
        (range_cyclic 0).
        """
        assert isinstance(inode, LargeFile)
        at = new_walk(0 if budget_pages == UNLIMITED_PAGES else inode.writeback_index, budget_pages)
        self._prepare(inode, at)
        bios = np.empty((_BIOS, 2), np.int64)
        limits = submitter.limits
        bio_pages = min(limits.max_sectors_bytes // PAGE_BYTES, limits.max_segments)
        ended = CONVERT
        while ended != DONE:
            at[DICE] = self._throw()
            ended = self._walk(inode, at, bio_pages, self._env.next_event_ns() - self._env.now, bios)
            self._die = int(at[DICE])
            yield from self._submit(submitter, inode, at, bios)
            if ended == CONVERT:
                yield from self._place(submitter, inode, at)
        inode.writeback_index = int(at[PAGE])
        return int(at[WROTE] if at[CALLS] == UNCOUNTED else budget_pages - at[CALLS])

    @abstractmethod
    def write(self, inode: Any, indices: NDArray[np.int64], call_pages: int) -> tuple[int, int]:
        """The pages at *indices* are written to, *call_pages* with each write(2).

        Returns how many of these were done, and how many pages were clean.  Before it goes on with the next one, the
        caller has to have `zero_end` done.
        """

    def zero_end(self, submitter: Submitter, inode: Any) -> Steps:
        """What a write behind the end of the file has to do first."""
        raise AssertionError(f"{type(self).__name__} never stops in the middle of writes")

    @abstractmethod
    def close(self, inode: Any) -> None:
        """The last close(2) of a file."""

    @abstractmethod
    def _new_directory(self) -> Any:
        """What `create` takes for a new directory."""

    @abstractmethod
    def _new_file(self, directory: Any) -> LargeFile:
        """A new file in *directory*."""

    @abstractmethod
    def _prepare(self, inode: Any, at: NDArray[np.int64]) -> None:
        """A walk over *inode* begins; *at* is its state, and may be changed."""

    @abstractmethod
    def _walk(self, inode: Any, at: NDArray[np.int64], bio_pages: int, horizon_ns: int, bios: NDArray[np.int64]) -> int:
        """Go on with it until *horizon_ns* from now, with `_dice`; why it stopped (`models.extents.page_walk`)."""

    def _lock(self, submitter: Submitter, inode: Any) -> None:
        """Take the locks of an allocation, which the walk found to be free."""
        raise AssertionError(f"the walk of {type(self).__name__} never ends in the middle of an allocation")

    def _unlock(self, inode: Any) -> None:
        """Release them."""
        raise AssertionError(f"{type(self).__name__} took no locks")

    @abstractmethod
    def _place(self, submitter: Submitter, inode: Any, at: NDArray[np.int64]) -> Steps:
        """Give the delayed page at ``at[PAGE]`` its block."""

    def _submit(self, submitter: Submitter, inode: LargeFile, at: NDArray[np.int64], bios: NDArray[np.int64]) -> Steps:
        """What a step of the walk has written goes under writeback; once the step's time is over, it is submitted."""
        pages, elapsed_ns = int(at[PAGES]), int(at[ELAPSED])
        inode.dirty_pages -= pages
        self._cache.start_writeback(pages)
        if at[ALLOCATING]:
            self._lock(submitter, inode)
            yield elapsed_ns
            self._unlock(inode)
        elif elapsed_ns:
            yield elapsed_ns
        if pages:
            if self._workers is not None:
                self._workers.submit(inode.conversions, pages, int(at[RANGES]))
            on_disk = bios[: at[BIOS]]
            on_disk[:, 0] += inode.file.base
            yield from submitter.submit_runs(on_disk, self._end_io)

    def _mean_map_ns(self, inode: LargeFile) -> int:
        """The mean time of one allocation."""
        return int(self._map_ns if self._workers is None else self._map_ns + self._workers.delay_ns(inode.conversions))

    def _throw(self) -> int:
        """The place of the next of the dice, which vary the time of conversions."""
        if self._die == len(self._dice):
            self._dice = self._variations(_DICE)
            self._die = 0
        return self._die

    def _varied_map_ns(self, inode: LargeFile) -> int:
        """The time of one allocation."""
        at = self._throw()
        self._die += 1
        return int(self._mean_map_ns(inode) * self._dice[at])
