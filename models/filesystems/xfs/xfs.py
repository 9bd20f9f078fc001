"""XFS: allocation groups, delayed allocation and logging.

Stands for xfs_create, xfs_bmapi_convert_delalloc and xfs_iomap_write_allocate, xfs_release, xfs_setfilesize,
and for the timed part of xfs_vm_writepages and iomap_writepages; the decisions are in `layout.py`.  Left out:
the stripe's width, extent size hints, quota, reads.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from models.filesystems.delalloc import DelallocFilesystem
from models.filesystems.files import PagedFile
from models.filesystems.ioends import IoEnds
from models.filesystems.page_walk import CALLS, ELAPSED, LEFT, MAPPED_EXTENTS, PAGE, RANGES, UNCOUNTED
from models.filesystems.turns import Turns
from models.filesystems.xfs.free_space import FreeSpace, FreeTables
from models.filesystems.xfs.groups import Group, lock_group
from models.filesystems.xfs.inodes import Directory, XfsInode
from models.filesystems.xfs.layout import (
    MAX_EXTENT_PAGES,
    NOWHERE,
    Terms,
    convert,
    prealloc,
    target_of,
    walk,
    write_all,
)
from models.filesystems.xfs.log import XfsLog
from models.filesystems.xfs.names import XfsNames
from models.filesystems.xfs.spec import XfsFlusherCosts, XfsRules, XfsSpec, XfsWriterCosts
from models.page_cache.accounting import PageCache
from models.page_cache.pages import delayed_extent, is_delayed
from models.seams import Thread, WritebackControl
from models.site import Site
from models.vfs.superblock import MountedSuperblock
from sim.cpu import sleep
from sim.engine import Steps, Wait
from sim.sync import Mutex
from sim.units import PAGE_BYTES, PAGE_SECTORS

_INODE_CORE_BYTES: Final = 176
"""struct xfs_dinode with metadata CRCs."""
_EXTENT_BYTES: Final = 16
_CONVERSIONS: Final = 4_096
"""The most that one compiled call converts: as many allocations as the tables are given room for."""


class XfsFile(PagedFile):
    """A file's pages: the group that its last conversion took from, and ILOCK, which conversions hold."""

    __slots__ = ("at_hand", "ilock")

    def __init__(self, group: Group, is_open: bool, ilock: Mutex) -> None:
        super().__init__(group.first_block, is_open)
        self.at_hand = group
        self.ilock = ilock


class Xfs(DelallocFilesystem):
    """One mounted XFS."""

    group_label = "AG"

    def __init__(
        self,
        *,
        site: Site,
        sb: MountedSuperblock,
        spec: XfsSpec,
        rules: XfsRules,
        writer_costs: XfsWriterCosts,
        flusher_costs: XfsFlusherCosts,
        cache: PageCache,
    ) -> None:
        ioend_worker = site.thread("kworker/xfs-data")
        self._free = FreeTables(spec.agcount)
        blocks, head = spec.size // PAGE_BYTES // spec.agcount, spec.group_head // PAGE_BYTES
        self.group_blocks, self._blocks = blocks, spec.agcount * blocks
        self.groups = [
            Group(i, i * blocks, FreeSpace(head, blocks - head, self._free, i), site.mutex(f"AG {i}/agf"))
            for i in range(spec.agcount)
        ]
        self._turns = Turns(spec.agcount, site.processors, self.groups[0].agf.wake_ns)
        super().__init__(
            site=site,
            sb=sb,
            unwritten=rules.unwritten,
            large_folios=rules.large_folios,
            inline_extents=(spec.inode_bytes - _INODE_CORE_BYTES) // _EXTENT_BYTES,
            costs=flusher_costs,
            group_ns=flusher_costs.rmap_ns if spec.rmapbt else 0,
            turns=self._turns,
        )
        self._rules = rules
        allocsize = None if spec.allocsize is None else spec.allocsize // PAGE_BYTES
        self._stripe = 1 if spec.stripe_unit is None else spec.stripe_unit // PAGE_BYTES
        self._prealloc = prealloc(rules, allocsize, self._stripe)
        self.one_run_pages = self._prealloc.unit if self._prealloc.rule else 0
        self._spills = spec.rmapbt and spec.agcount > 1  # conversions lock groups, too
        self._entered = False  # all groups in the tables, since a walk may take from each
        self._taken = np.zeros(spec.agcount, np.int64)
        self._log = self._new_log(spec, flusher_costs, cache)
        self._horizon.apart |= self._log.ranks
        # Copies of what the hot paths read: a spec's own attributes are slow to read.
        self._commit_ns = flusher_costs.log.commit_ns
        self._inode_bytes = spec.inode_log_bytes
        self._extent_bytes = spec.extent_log_bytes
        self._ioend_ns = flusher_costs.ioend_ns
        self._ioends = IoEnds(
            site.env, ioend_worker, rules.unwritten, self._log_inode,
            self._end_run, gives_way=True,
        )  # fmt: skip
        self._names = XfsNames(
            site=site, sb=sb, spec=spec, costs=writer_costs, commit_ns=self._commit_ns, groups=self.groups,
            log=self._log, cache=cache,
        )  # fmt: skip

    def _new_log(self, spec: XfsSpec, costs: XfsFlusherCosts, cache: PageCache) -> XfsLog:
        """The log, in the middle group, where mkfs puts it."""
        middle = self.groups[spec.agcount // 2]
        start_block = middle.first_block + middle.take(spec.log.size // PAGE_BYTES)
        return XfsLog(
            site=self._site, queue=self._queue, spec=spec.log, costs=costs.log,
            start_sector=(self._sb.first_block + start_block) * PAGE_SECTORS,
            first_sector=self._sb.first_block * PAGE_SECTORS, cache=cache,
        )  # fmt: skip

    @property
    def log_bytes(self) -> int:
        """See `Filesystem.log_bytes`."""
        return self._log.written_bytes

    def check(self) -> None:
        """See `Filesystem.check`."""
        super().check()
        for group in self.groups:
            group.free.check()
        self._log.check()

    def mkdir(self, thread: Thread) -> Generator[Wait, None, Directory]:
        """See `Filesystem.mkdir`."""
        return self._names.mkdir(thread)

    def create(
        self, thread: Thread, directory: Directory, lead_ns: int, factor: float, then_ns: int
    ) -> Generator[Wait, None, XfsInode]:
        """See `Filesystem.create`."""
        return self._names.create(thread, directory, lead_ns, factor, then_ns)

    def _free_tables(self) -> Iterator[NDArray[np.int64]]:
        for group in self.groups:
            yield group.free.table() + np.array([group.first_block, 0])

    def group_of(self, inode: XfsInode) -> int:
        """See `Filesystem.group_of`."""
        return inode.group.number

    def sync_fs(self, thread: Thread) -> Steps:
        """See `Filesystem.sync_fs`: force the log."""
        yield from self._log.force(thread.task)

    def commit_log(self, thread: Thread) -> Steps:
        """See `Filesystem.commit_log`."""
        return self._log.force(thread.task)

    # -- writing -------------------------------------------------------------------------------------------

    def zero_end(self, thread: Thread, inode: Any) -> Steps:
        """xfs_file_write_zero_eof: the delayed extent behind the end of the file becomes an unwritten one."""
        yield from self._convert(thread, inode, inode.file, inode.file.size)

    def _new_file(self, inode: XfsInode, is_open: bool) -> XfsFile:
        return XfsFile(inode.group, is_open, self._site.mutex(f"ILOCK {len(self._files)}"))

    def _room_for(self, size: int, call_pages: int) -> int:
        end = size + call_pages + self._stripe
        return end + max(min(2 * end, MAX_EXTENT_PAGES + 1), self._prealloc.unit)

    def _write(self, file: XfsFile, indices: NDArray[np.int64], call_pages: int) -> tuple[int, int]:
        done, were_clean = write_all(file.pages, indices, call_pages, self._prealloc, file.end)
        return int(done), int(were_clean)

    def _released(self, inode: Any) -> None:
        """The last close frees the blocks behind the end of the file (xfs_release)."""
        for block, pages in inode.file.trim():
            group = self.groups[block // self.group_blocks]
            group.free.give_back(block - group.first_block, pages)

    # -- writeback -----------------------------------------------------------------------------------------

    def _write_run(self, thread: Thread, inode: XfsInode, wbc: WritebackControl) -> Steps:
        """xfs_iomap_write_allocate and xfs_submit_ioend for a file of one run."""
        log, task, spent = self._log, thread.task, thread.spent
        group, pages = inode.cluster.group, inode.dirty_pages
        if log.full:
            yield from log.wait_for_space(thread)
        if group.free.longest() < pages or not group.agf.try_acquire(task):
            group = yield from lock_group(self._site.env, self.groups, self._turns, thread, group, pages)
            if group.free.longest() < pages:
                group.agf.release()
                yield from self._write_in_pieces(thread, inode, wbc)
                return
        map_ns, pages_ns = int(self._map_ns * self._dice.throw()), pages * self._page_cost_ns(inode)
        spent.allocate += map_ns
        yield map_ns
        taken = group.free.take_near(0, pages)
        assert taken is not None, "the group that was locked has room"
        spent.commit += self._commit_ns
        spent.pages += pages_ns
        yield log.lock.section(task, self._commit_ns, pages_ns)
        group.agf.release()
        self._log_inode(inode)
        for bio in self._run_bios(inode, group.first_block + taken[0], pages):
            if not thread.merge(bio):
                yield from thread.make_request(bio)
        wbc.nr_to_write -= pages

    def _prepare(self, inode: XfsInode, at: NDArray[np.int64], wbc: WritebackControl) -> None:
        assert isinstance(inode.file, XfsFile)
        inode.file.at_hand = inode.group
        if self._rules.quota == "calls_x4" and not wbc.sync_all:
            at[CALLS] = at[LEFT]

    def _walk(
        self, inode: XfsInode, at: NDArray[np.int64], bio_pages: int, horizon_ns: int, bios: NDArray[np.int64]
    ) -> int:
        file = inode.file
        assert isinstance(file, XfsFile)
        here, spills, now = file.at_hand, self._spills, self._site.env.now
        if spills and not self._entered:
            self._entered = True
            for group in self.groups:
                group.free.enter()
        terms = Terms(
            self._mean_map_ns(file),
            self._costs.group_ns,
            self._commit_ns,
            self._page_cost_ns(inode),
            bio_pages,
            bool(at[CALLS] != UNCOUNTED),
            self._rules.wraps,
            self._stripe,
            self.group_blocks,
            inode.group.number,
            here.number,
            spills,
            file.far_blocks // self.group_blocks - 1,
            file.ilock.free and (spills or here.agf.free),
            now,
        )
        file.reach(here.first_block, self.group_blocks)
        ended = walk(
            file.pages, here.free.with_room(_CONVERSIONS), self._turns.locks, file.conversions.row, terms, at,
            horizon_ns, self._dice.array, bios, self._taken,
        )  # fmt: skip
        if at[MAPPED_EXTENTS]:
            file.conversions.kept_ns = now + int(at[ELAPSED])
        return int(ended)

    def _lock(self, thread: Thread, inode: Any) -> None:
        taken = inode.file.ilock.try_acquire(thread.task)
        if not self._spills:
            taken = taken and inode.file.at_hand.agf.try_acquire(thread.task)
        assert taken, "a walk goes on over others' events only where both locks are free"

    def _unlock(self, inode: Any) -> None:
        if not self._spills:
            inode.file.at_hand.agf.release()
        inode.file.ilock.release()

    def _allocate(self, thread: Thread, inode: Any, at: NDArray[np.int64]) -> Steps:
        inode.file.at_hand = yield from self._convert(thread, inode, inode.file, int(at[PAGE]))

    def _convert(
        self, thread: Thread, inode: XfsInode, file: XfsFile, page: int
    ) -> Generator[Wait, None, Group]:
        """Give the whole delayed extent around *page* its blocks, or as many as lie together; from which
        group.

        If somebody else has converted it meanwhile, nothing is left to be done.
        """
        env = self._site.env
        if self._log.full:
            yield from self._log.wait_for_space(thread)
        if not file.ilock.try_acquire(thread.task):
            thread.before_sleep()
            yield file.ilock.wait(thread.task)
        group = inode.group
        if is_delayed(int(file.pages.states[page])):
            target = target_of(file.pages, page, self.group_blocks)
            wanted = group if target == NOWHERE else self.groups[(target + file.base) // self.group_blocks]
            length = min(delayed_extent(file.pages, page)[1], MAX_EXTENT_PAGES)
            turns, map_ns, rmap_ns = self._turns, self._varied_map_ns(file), self._costs.group_ns
            if waits_ns := turns.keep_file(file.conversions.row, env.now, map_ns + rmap_ns) - env.now:
                thread.before_sleep()
                yield from sleep(thread.task, waits_ns, "lock ILOCK")
            group = yield from lock_group(env, self.groups, turns, thread, wanted, length)
            turns.hold(group.number, env.now, map_ns + self._commit_ns)
            thread.spent.allocate += map_ns
            yield map_ns
            thread.spent.commit += self._commit_ns
            yield self._log.lock.section(thread.task, self._commit_ns)
            first_block = file.reach(group.first_block, self.group_blocks)
            near = NOWHERE
            if group is wanted:
                near = 0 if target == NOWHERE else target - first_block
            convert(file.pages, group.free.with_room(1), group.number, page, near, first_block, self._stripe)
            if rmap_ns:
                waits_ns = turns.hold(group.number, env.now, rmap_ns) - rmap_ns - env.now
                if waits_ns:
                    thread.before_sleep()
                    yield from sleep(thread.task, waits_ns, "lock AGF")
                thread.spent.allocate += rmap_ns
                yield rmap_ns
            group.agf.release()
            file.conversions.kept_ns = env.now
            file.conversions.extents += 1
            self._log_inode(inode)
        file.ilock.release()
        return group

    def _ranges(self, file: Any, at: NDArray[np.int64]) -> dict[int, int]:
        """As many of each group as there were allocations from it."""
        groups, ranges, taken = np.flatnonzero(self._taken).tolist(), int(at[RANGES]), self._taken
        if len(groups) < 2:
            by_group = {groups[0] if groups else file.at_hand.number: ranges}
        else:
            ends = (taken[groups].cumsum() * ranges // taken.sum()).tolist()
            by_group = dict(zip(groups, np.diff(ends, prepend=0).tolist(), strict=True))
        taken[groups] = 0
        return by_group

    # -- completion ----------------------------------------------------------------------------------------

    def _end_run(self, worker: Thread, folios: int) -> Wait:
        """xfs_end_io for a file of one run."""
        ends_ns = self._ioend_ns + (folios - 1) * self._costs.end_folio_ns
        worker.spent.commit += self._commit_ns
        worker.spent.complete += ends_ns
        return self._log.lock.section(worker.task, self._commit_ns, ends_ns)

    def _log_is_full(self) -> bool:
        return self._log.full

    def _wait_for_log(self, thread: Thread) -> Steps:
        return self._log.wait_for_space(thread)

    def _mapped(self, inode: XfsInode, extents: int, page: int) -> None:
        log, size_bytes = self._log, extents * self._extent_bytes
        if inode.checkpoint != log.checkpoint:
            inode.checkpoint = log.checkpoint
            size_bytes += self._inode_bytes
        log.commit_many(extents, size_bytes, self._commit_ns, inode.cluster)

    def _converted(self, inode: XfsInode, ranges: int) -> None:
        """xfs_iomap_write_unwritten for each of *ranges*."""
        self._mapped(inode, ranges, 0)

    def _log_inode(self, inode: XfsInode) -> None:
        """One more extent item, and the inode's if this checkpoint has it not yet."""
        log = self._log
        if inode.checkpoint == log.checkpoint:
            log.commit(self._extent_bytes, inode.cluster)
        else:
            inode.checkpoint = log.checkpoint
            log.commit(self._extent_bytes + self._inode_bytes, inode.cluster)
