"""Where the pages of an XFS lie, and which locks that takes.

Stands for xfs_bmapi_convert_delalloc and xfs_iomap_write_allocate, xfs_release, and for the timed part of
xfs_vm_writepages and iomap_writepages; the decisions are in `layout.py`.  Left out: the stripe's width,
extent size hints, quota, reads.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from models.filesystems.files import PagedFile
from models.filesystems.map_costs import MapCosts
from models.filesystems.policies import Placement, Runs
from models.filesystems.turns import Turns
from models.filesystems.walk_state import UNCOUNTED, Walk
from models.filesystems.xfs.groups import Group, lock_group
from models.filesystems.xfs.inodes import XfsInode
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
from models.filesystems.xfs.metadata import XfsMetadata
from models.filesystems.xfs.spec import XfsRules, XfsSpec
from models.page_cache.pages import delayed_extent, is_delayed
from models.scheduler.cpu import sleep
from models.seams import Thread, WritebackControl
from models.site import Site
from sim.engine import Steps, Wait
from sim.sync import Mutex
from sim.units import PAGE_BYTES

_CONVERSIONS: Final = 4_096
"""The most that one compiled call converts: as many allocations as the tables are given room for."""


class XfsFile(PagedFile):
    """A file's pages: the group that its last conversion took from, and ILOCK, which conversions hold."""

    __slots__ = ("at_hand", "ilock")

    def __init__(self, group: Group, is_open: bool, ilock: Mutex) -> None:
        super().__init__(group.first_block, is_open)
        self.at_hand = group
        self.ilock = ilock


class XfsPlacement(Placement):
    """That of one mounted XFS, in its *groups*."""

    group_label: str

    def __init__(
        self,
        *,
        site: Site,
        spec: XfsSpec,
        rules: XfsRules,
        groups: list[Group],
        turns: Turns,
        costs: MapCosts,
        metadata: XfsMetadata,
        commit_ns: int,
    ) -> None:
        self._site = site
        self._env = site.env
        self.groups = groups
        self.group_label = "AG"
        self.group_blocks = spec.size // PAGE_BYTES // spec.agcount
        self.blocks = spec.agcount * self.group_blocks
        self._turns = turns
        self._costs = costs
        self._metadata = metadata
        self._log = metadata.log
        self._commit_ns = commit_ns
        self._rules = rules
        allocsize = None if spec.allocsize is None else spec.allocsize // PAGE_BYTES
        self._stripe = 1 if spec.stripe_unit is None else spec.stripe_unit // PAGE_BYTES
        self._prealloc = prealloc(rules, allocsize, self._stripe)
        self.one_run_pages = self._prealloc.unit if self._prealloc.rule else 0
        self._spills = spec.rmapbt and spec.agcount > 1  # conversions lock groups, too
        self._entered = False  # all groups in the tables, since a walk may take from each
        self._taken = np.zeros(spec.agcount, np.int64)
        self._made = 0  # files that are kept page by page

    def group_of(self, inode: XfsInode) -> int:
        """See `Placement.group_of`."""
        return inode.group.number

    def new_file(self, inode: XfsInode, is_open: bool) -> XfsFile:
        """See `Placement.new_file`."""
        self._made += 1
        return XfsFile(inode.group, is_open, self._site.mutex(f"ILOCK {self._made - 1}"))

    def room_for(self, size: int, call_pages: int) -> int:
        """See `Placement.room_for`."""
        end = size + call_pages + self._stripe
        return end + max(min(2 * end, MAX_EXTENT_PAGES + 1), self._prealloc.unit)

    def write(self, file: XfsFile, indices: NDArray[np.int64], call_pages: int) -> tuple[int, int]:
        """See `Placement.write`."""
        done, were_clean = write_all(file.pages, indices, call_pages, self._prealloc, file.end)
        return int(done), int(were_clean)

    def zero_end(self, thread: Thread, inode: Any) -> Steps:
        """xfs_file_write_zero_eof: the delayed extent behind the end of the file becomes an unwritten one."""
        yield from self._convert(thread, inode, inode.file, inode.file.size)

    def released(self, inode: Any) -> None:
        """The last close frees the blocks behind the end of the file (xfs_release)."""
        for block, pages in inode.file.trim():
            group = self.groups[block // self.group_blocks]
            group.free.give_back(block - group.first_block, pages)

    def write_run(self, thread: Thread, inode: XfsInode, wbc: WritebackControl, runs: Runs) -> Steps:
        """xfs_iomap_write_allocate and xfs_submit_ioend for a file of one run."""
        log, task, spent = self._log, thread.task, thread.spent
        group, pages = inode.cluster.group, inode.dirty_pages
        if log.full:
            yield from log.wait_for_space(thread)
        if group.free.longest() < pages or not group.agf.try_acquire(task):
            group = yield from lock_group(self._env, self.groups, self._turns, thread, group, pages)
            if group.free.longest() < pages:
                group.agf.release()
                yield from runs.in_pieces(thread, inode, wbc)
                return
        map_ns, pages_ns = self._costs.run_map_ns(), pages * self._costs.page_ns(inode.folio_pages)
        spent.allocate += map_ns
        yield map_ns
        taken = group.free.take_near(0, pages)
        assert taken is not None, "the group that was locked has room"
        spent.commit += self._commit_ns
        spent.pages += pages_ns
        yield log.lock.section(task, self._commit_ns, pages_ns)
        group.agf.release()
        self._metadata.log_extent(inode)
        for bio in runs.bios(inode, group.first_block + taken[0], pages):
            if (rest := thread.submit_bio(bio)) is not None:
                yield from rest
        wbc.nr_to_write -= pages

    def prepare(self, inode: XfsInode, at: Walk, wbc: WritebackControl) -> None:
        """See `Placement.prepare`."""
        assert isinstance(inode.file, XfsFile)
        inode.file.at_hand = inode.group
        if self._rules.quota == "calls_x4" and not wbc.sync_all:
            at.calls = at.left

    def step(
        self, inode: XfsInode, at: Walk, bio_pages: int, horizon_ns: int, bios: NDArray[np.int64]
    ) -> int:
        """See `Placement.step`."""
        file = inode.file
        assert isinstance(file, XfsFile)
        here, spills, now = file.at_hand, self._spills, self._env.now
        if spills and not self._entered:
            self._entered = True
            for group in self.groups:
                group.free.enter()
        terms = Terms(
            self._costs.mean_map_ns(file.conversions),
            self._costs.group_ns,
            self._commit_ns,
            self._costs.page_ns(inode.folio_pages),
            bio_pages,
            bool(at.calls != UNCOUNTED),
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
        at.tell()
        ended = walk(
            file.pages, here.free.with_room(_CONVERSIONS), self._turns.locks, file.conversions.row, terms,
            at.record, horizon_ns, self._costs.dice.array, bios, self._taken,
        )  # fmt: skip
        at.look()
        if at.mapped_extents:
            file.conversions.kept_ns = now + at.elapsed_ns
        return int(ended)

    def lock(self, thread: Thread, inode: Any) -> None:
        """See `Placement.lock`."""
        taken = inode.file.ilock.try_acquire(thread.task)
        if not self._spills:
            taken = taken and inode.file.at_hand.agf.try_acquire(thread.task)
        assert taken, "a walk goes on over others' events only where both locks are free"

    def unlock(self, inode: Any) -> None:
        """See `Placement.unlock`."""
        if not self._spills:
            inode.file.at_hand.agf.release()
        inode.file.ilock.release()

    def allocate(self, thread: Thread, inode: Any, at: Walk) -> Steps:
        """See `Placement.allocate`."""
        inode.file.at_hand = yield from self._convert(thread, inode, inode.file, at.page)

    def _convert(
        self, thread: Thread, inode: XfsInode, file: XfsFile, page: int
    ) -> Generator[Wait, None, Group]:
        """Give the whole delayed extent around *page* its blocks, or as many as lie together; from which
        group.

        If somebody else has converted it meanwhile, nothing is left to be done.
        """
        env = self._env
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
            turns, map_ns = self._turns, self._costs.varied_map_ns(file.conversions)
            rmap_ns = self._costs.group_ns
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
                yield from self._map_reverse(thread, group, rmap_ns)
            group.agf.release()
            file.conversions.kept_ns = env.now
            file.conversions.extents += 1
            self._metadata.log_extent(inode)
        file.ilock.release()
        return group

    def _map_reverse(self, thread: Thread, group: Group, rmap_ns: int) -> Steps:
        """xfs_rmap_finish_one: a second transaction, which waits for the AGF."""
        now = self._env.now
        if waits_ns := self._turns.hold(group.number, now, rmap_ns) - rmap_ns - now:
            thread.before_sleep()
            yield from sleep(thread.task, waits_ns, "lock AGF")
        thread.spent.allocate += rmap_ns
        yield rmap_ns

    def ranges(self, file: Any, at: Walk) -> dict[int, int]:
        """As many of each group as there were allocations from it."""
        groups, ranges, taken = np.flatnonzero(self._taken).tolist(), at.ranges, self._taken
        if len(groups) < 2:
            by_group = {groups[0] if groups else file.at_hand.number: ranges}
        else:
            ends = (taken[groups].cumsum() * ranges // taken.sum()).tolist()
            by_group = dict(zip(groups, np.diff(ends, prepend=0).tolist(), strict=True))
        taken[groups] = 0
        return by_group

    def free_tables(self) -> Iterator[NDArray[np.int64]]:
        """See `Placement.free_tables`."""
        for group in self.groups:
            yield group.free.table() + np.array([group.first_block, 0])

    def check(self, files: Any) -> None:
        """See `Placement.check`."""
        for group in self.groups:
            group.free.check()
