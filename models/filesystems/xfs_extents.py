"""XFS for files of many pages: where their blocks lie.

Stands for xfs_bmapi_convert_delalloc and xfs_iomap_write_allocate, xfs_alloc_vextent_start_ag, xfs_release, and for the
timed part of iomap_writepages and xfs_vm_writepages; the decisions are in `extents/xfs_layout.py`.  `xfs.py` models
small files and their metadata; left out here are the log and all metadata traffic, the stripe's width, extent size
hints.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from models.extents.file_pages import delayed_extent, is_delayed
from models.extents.free_space import FreeSpace
from models.extents.page_walk import CALLS, LEFT, PAGE, UNCOUNTED
from models.extents.xfs_layout import (
    MAX_EXTENT_PAGES,
    NOWHERE,
    Terms,
    XfsRules,
    convert,
    prealloc,
    target_of,
    walk,
    write_all,
)
from models.large_files import LargeFile, LargeFiles, LargeFilesSpec
from models.page_cache import PageCache
from models.seams import UNLIMITED_PAGES, NoSpace, Site, Submitter
from sim.engine import Steps, Wait
from sim.param import Bytes, Count
from sim.sync import Mutex
from sim.units import GIB, PAGE_BYTES

MAX_GROUP_BYTES: Final = GIB << 10  # XFS_AG_MAX_BYTES
_CONVERSIONS = 4_096
"""The most that one compiled call converts: as many allocations as the tables are given room for."""


class XfsExtentsSpec(LargeFilesSpec):
    """``group_head``: what mkfs keeps at the start of each of the ``agcount`` groups; ``stripe_unit``: mkfs's su, and
    ``allocsize``: the mount option, where they are given.
    """

    FAMILY: ClassVar = "xfs"
    kind: Literal["xfs_extents"] = "xfs_extents"
    agcount: Count
    group_head: Bytes
    stripe_unit: Bytes | None = None
    allocsize: Bytes | None = None

    @model_validator(mode="after")
    def _check(self) -> XfsExtentsSpec:
        size, group = self.allocsize, self.size // self.agcount
        if size is not None and (not 16 * PAGE_BYTES <= size <= GIB or size & (size - 1)):
            raise ValueError(f"allocsize {size} B has to be a power of two from 64 KiB to 1 GiB")
        unit = self.stripe_unit
        if unit is not None and (not unit or unit % PAGE_BYTES):
            raise ValueError(f"stripe_unit {unit} B has to be whole pages of {PAGE_BYTES} B, one at least")
        if not self.group_head < group <= MAX_GROUP_BYTES:
            raise ValueError(
                f"the groups are of {group} B; they have to be larger than group_head and at most 1 TiB:"
                " change size or agcount"
            )
        return self

    @property
    def room(self) -> int:
        """What files can take (bytes)."""
        return self.size - self.agcount * self.group_head


class Group:
    """An allocation group: its first block on the disk, its free space, and the lock on that (AGF)."""

    __slots__ = ("agf", "first_block", "free", "number")

    def __init__(self, number: int, first_block: int, free: FreeSpace, agf: Mutex) -> None:
        self.number = number
        self.first_block = first_block
        self.free = free
        self.agf = agf


class XfsFile(LargeFile):
    """A file: its directory's group, the one that its last conversion took from, and ILOCK, which conversions hold."""

    __slots__ = ("at_hand", "group", "ilock")

    def __init__(self, group: Group, pages: int, ilock: Mutex) -> None:
        super().__init__(pages, base=group.first_block)
        self.group = self.at_hand = group
        self.ilock = ilock


class XfsExtents(LargeFiles):
    """One mounted XFS."""

    group_label = "AG"

    def __init__(
        self,
        *,
        site: Site,
        spec: XfsExtentsSpec,
        rules: XfsRules,
        largest_file: int,
        writer_costs: Any,
        flusher_costs: Any,
        cache: PageCache,
    ) -> None:
        super().__init__(
            name="xfs flusher", site=site, unwritten=rules.unwritten, writer_costs=writer_costs,
            flusher_costs=flusher_costs, cache=cache,
        )  # fmt: skip
        self._wraps = rules.wraps
        self._calls_x4 = rules.quota == "calls_x4"
        allocsize = None if spec.allocsize is None else spec.allocsize // PAGE_BYTES
        self._stripe = 1 if spec.stripe_unit is None else spec.stripe_unit // PAGE_BYTES
        self._prealloc = prealloc(rules, allocsize, self._stripe)
        file_pages = -(-largest_file // PAGE_BYTES)
        self._pages_with_prealloc = file_pages + max(min(2 * file_pages, MAX_EXTENT_PAGES + 1), self._prealloc.unit)
        blocks, head = spec.size // PAGE_BYTES // spec.agcount, spec.group_head // PAGE_BYTES
        self.group_blocks = blocks
        self.groups = [
            Group(i, i * blocks, FreeSpace(head, blocks - head), site.mutex(f"AGF {i}")) for i in range(spec.agcount)
        ]
        self._rotor = 0

    def write(self, inode: XfsFile, indices: NDArray[np.int64], call_pages: int) -> tuple[int, int]:
        """See `LargeFiles.write`: before the next one, the caller has to have `zero_end` done."""
        done, were_clean = write_all(inode.file.pages, indices, call_pages, self._prealloc)
        return int(done), int(were_clean)

    def zero_end(self, submitter: Submitter, inode: XfsFile) -> Steps:
        """xfs_file_write_zero_eof: the delayed extent behind the end of the file becomes an unwritten one."""
        yield from self._convert(submitter, inode, inode.file.size)

    def close(self, inode: XfsFile) -> None:
        """The last close frees the blocks behind the end of the file (xfs_release)."""
        for block, pages in inode.file.trim():
            group = self.groups[block // self.group_blocks]
            group.free.give_back(block - group.first_block, pages)

    def _new_directory(self) -> Group:
        """In the next group in rotation."""
        group = self.groups[self._rotor]
        self._rotor = (self._rotor + 1) % len(self.groups)
        return group

    def _new_file(self, directory: Group) -> XfsFile:
        return XfsFile(directory, self._pages_with_prealloc, self._site.mutex(f"ILOCK {len(self.inodes)}"))

    def _prepare(self, inode: XfsFile, at: NDArray[np.int64]) -> None:
        inode.at_hand = inode.group
        if self._calls_x4 and at[LEFT] != UNLIMITED_PAGES:
            at[CALLS] = at[LEFT]

    def _walk(
        self, inode: XfsFile, at: NDArray[np.int64], bio_pages: int, horizon_ns: int, bios: NDArray[np.int64]
    ) -> int:
        file, group = inode.file, inode.at_hand
        terms = Terms(
            self._mean_map_ns(inode), self._page_ns, bio_pages, bool(at[CALLS] != UNCOUNTED), self._wraps, self._stripe,
            file.reach(group.first_block, self.group_blocks), self.group_blocks,
            group is inode.group, group.agf.free and inode.ilock.free,
        )  # fmt: skip
        return int(walk(file.pages, group.free.with_room(_CONVERSIONS), terms, at, horizon_ns, self._dice, bios))

    def _lock(self, submitter: Submitter, inode: XfsFile) -> None:
        taken = inode.ilock.try_acquire(submitter.task) and inode.at_hand.agf.try_acquire(submitter.task)
        assert taken, "the walk allocates only where both locks are free"

    def _unlock(self, inode: XfsFile) -> None:
        inode.at_hand.agf.release()
        inode.ilock.release()

    def _place(self, submitter: Submitter, inode: XfsFile, at: NDArray[np.int64]) -> Steps:
        inode.at_hand = yield from self._convert(submitter, inode, int(at[PAGE]))

    def _convert(self, submitter: Submitter, inode: XfsFile, page: int) -> Generator[Wait, None, Group]:
        """Give the whole delayed extent around *page* its blocks, or as many as lie together; from which group.

        If somebody else has converted it meanwhile, nothing is left to be done.
        """
        if not inode.ilock.try_acquire(submitter.task):
            submitter.before_sleep()
            yield inode.ilock.wait(submitter.task)
        file, group = inode.file, inode.group
        if is_delayed(int(file.pages.states[page])):
            target = target_of(file.pages, page, self.group_blocks)
            wanted = inode.group if target == NOWHERE else self.groups[(target + file.base) // self.group_blocks]
            length = min(delayed_extent(file.pages, page)[1], MAX_EXTENT_PAGES)
            group = yield from self._lock_group(submitter, wanted, length)
            yield self._varied_map_ns(inode)
            first_block = file.reach(group.first_block, self.group_blocks)
            near = target - first_block if group is wanted and target != NOWHERE else 0
            convert(file.pages, group.free.with_room(1), page, near, first_block, self._stripe)
            group.agf.release()
        inode.ilock.release()
        return group

    def _lock_group(self, submitter: Submitter, target: Group, length: int) -> Generator[Wait, None, Group]:
        """The first group from *target* on with *length* free blocks together whose AGF is free (try-lock).

        If all that have them are locked, the first of them is waited for; if none has as many, the longest
        free extent of all counts.
        """
        if target.free.longest >= length and target.agf.try_acquire(submitter.task):
            return target
        order = self.groups[target.number :] + self.groups[: target.number]
        while True:
            length = min(length, max(group.free.longest for group in order))
            if not length:
                raise NoSpace("the filesystem is full; give a larger one, or fewer or smaller files")
            fitting = [group for group in order if group.free.longest >= length]
            for group in fitting:
                if group.agf.try_acquire(submitter.task):
                    return group
            submitter.before_sleep()
            yield fitting[0].agf.wait(submitter.task)
            if fitting[0].free.longest >= length:
                return fitting[0]
            fitting[0].agf.release()


SPEC, COMPONENT = XfsExtentsSpec, XfsExtents
