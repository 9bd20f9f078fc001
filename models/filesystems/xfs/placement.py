"""Where the pages of an XFS lie, and which locks that takes.

Stands for xfs_bmapi_convert_delalloc and xfs_iomap_write_allocate, xfs_release, and for the timed part of
xfs_vm_writepages and iomap_writepages; the decisions are in `layout.py`.  Left out: the stripe's width,
extent size hints, quota, reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wbsim.models.filesystems.files import PagedFile
from wbsim.models.filesystems.lock_table import NO_ROW
from wbsim.models.filesystems.locks import LockTable
from wbsim.models.filesystems.map_costs import MapCosts
from wbsim.models.filesystems.policies import Placement, Runs
from wbsim.models.filesystems.walk_state import UNCOUNTED, Walk
from wbsim.models.filesystems.xfs.groups import Group, lock_group
from wbsim.models.filesystems.xfs.inodes import XfsInode
from wbsim.models.filesystems.xfs.layout import (
    MAX_EXTENT_PAGES,
    NOWHERE,
    Ground,
    Terms,
    allocate_at,
    prealloc,
    target_of,
    walk,
    write_all,
)
from wbsim.models.filesystems.xfs.metadata import XfsMetadata
from wbsim.models.filesystems.xfs.spec import XfsRules, XfsSpec
from wbsim.models.page_cache.pages import delayed_extent, is_delayed
from wbsim.models.seams import Thread, WritebackControl
from wbsim.sim.engine import Environment, Steps, Task
from wbsim.sim.units import PAGE_BYTES


class XfsFile(PagedFile):
    """A file's pages: the number of the group that the last ones are in; ``granted``: the group for whose
    lock a task has waited, and that task.
    """

    __slots__ = ("at_hand", "granted")

    def __init__(self, group: Group, is_open: bool) -> None:
        super().__init__(group.first_block, is_open)
        self.at_hand = group.number
        self.granted: tuple[Group, Task] | None = None


class XfsPlacement(Placement):
    """That of one mounted XFS, in its *groups*."""

    group_label: str

    def __init__(
        self,
        *,
        env: Environment,
        spec: XfsSpec,
        rules: XfsRules,
        groups: list[Group],
        locks: LockTable,
        costs: MapCosts,
        metadata: XfsMetadata,
        commit_ns: int,
        most_allocations: int,
    ) -> None:
        self._env = env
        self.files: list[PagedFile] = []
        self.groups = groups
        self.group_label = "AG"
        self.group_blocks = spec.size // PAGE_BYTES // spec.agcount
        self.blocks = spec.agcount * self.group_blocks
        self._locks = locks
        self._costs = costs
        self._metadata = metadata
        self._log = metadata.log
        self._commit_ns = commit_ns
        self._most_allocations = most_allocations  # of one compiled call
        self._rules = rules
        allocsize = None if spec.allocsize is None else spec.allocsize // PAGE_BYTES
        self._stripe = 1 if spec.stripe_unit is None else spec.stripe_unit // PAGE_BYTES
        self._prealloc = prealloc(rules, allocsize, self._stripe)
        self.one_run_pages = self._prealloc.unit if self._prealloc.rule else 0
        self._entered = False  # all groups in the tables, since a walk may take from each
        self._taken = np.zeros(spec.agcount, np.int64)

    def group_of(self, inode: XfsInode) -> int:
        """See `Placement.group_of`."""
        return inode.group.number

    def new_file(self, inode: XfsInode, is_open: bool) -> XfsFile:
        """See `Placement.new_file`."""
        return XfsFile(inode.group, is_open)

    def room_for(self, size: int, call_pages: int) -> int:
        """See `Placement.room_for`."""
        end = size + call_pages + self._stripe
        return end + max(min(2 * end, MAX_EXTENT_PAGES + 1), self._prealloc.unit)

    def write(self, file: XfsFile, indices: NDArray[np.int64], call_pages: int) -> tuple[int, int]:
        """See `Placement.write`."""
        done, were_clean = write_all(file.pages, indices, call_pages, self._prealloc, file.end)
        return int(done), int(were_clean)

    def released(self, inode: Any) -> None:
        """The last close frees the blocks behind the end of the file (xfs_release)."""
        for block, pages in inode.file.trim():
            group = self.groups[block // self.group_blocks]
            group.free.give_back(block - group.first_block, pages)

    def write_run(self, thread: Thread, inode: XfsInode, wbc: WritebackControl, runs: Runs) -> Steps:
        """xfs_iomap_write_allocate and xfs_submit_ioend for a file of one run."""
        log, task, spent = self._log, thread.task, thread.spent
        group, pages = inode.cluster.group, inode.dirty_pages
        hold_ns = self._costs.extent_map_ns + self._commit_ns
        if log.full:
            yield from log.wait_for_space(thread)
        if group.free.longest() < pages or not group.agf.try_down(task, hold_ns):
            group = yield from lock_group(self.groups, thread, group, pages, hold_ns)
            if group.free.longest() < pages:
                group.agf.up(task)
                yield from runs.in_pieces(thread, inode, wbc)
                return
        (map_ns, rmap_ns), pages_ns = self._costs.run_map_ns(), pages * self._costs.page_ns(inode.folio_pages)
        spent.allocate += map_ns
        yield map_ns
        taken = group.free.take_near(0, pages)
        assert taken is not None, "the group that was locked has room"
        spent.commit += self._commit_ns
        spent.pages += pages_ns
        if rmap_ns:
            yield log.cil_section(task, self._commit_ns, 0)
            group.agf.up(task)
            spent.allocate += rmap_ns
            yield from group.update_rmap(thread, rmap_ns)
            yield pages_ns
        else:
            yield log.cil_section(task, self._commit_ns, pages_ns)
            group.agf.up(task)
        self._metadata.log_extent(inode)
        for bio in runs.bios(inode, group.first_block + taken[0], pages):
            if (rest := thread.submit_bio(bio)) is not None:
                yield from rest
        wbc.nr_to_write -= pages

    def prepare(self, inode: XfsInode, at: Walk, wbc: WritebackControl) -> None:
        """See `Placement.prepare`."""
        if self._rules.nr_to_write_counts == "calls_x4" and not wbc.sync_all:
            at.calls = at.left

    def step(
        self, inode: XfsInode, at: Walk, bio_pages: int, horizon_ns: int, bios: NDArray[np.int64]
    ) -> int:
        """See `Placement.step`."""
        file = inode.file
        assert isinstance(file, XfsFile)
        ground, terms = self._ground(), self._terms(inode, file, at, bio_pages)
        self._lend(file)
        at.tell()
        ended = walk(file.pages, ground, terms, at.record, horizon_ns, self._costs.dice.array, bios)
        at.look()
        self._costs.used_lines(file, at.mapped_extents, at.elapsed_ns)
        self._hand_on(file)
        return int(ended)

    def allocate_at(self, inode: XfsInode, at: Walk) -> int:
        """See `Placement.allocate_at`."""
        file = inode.file
        assert isinstance(file, XfsFile)
        ground, terms = self._ground(), self._terms(inode, file, at, 1)
        self._lend(file)
        at.tell()
        ended = allocate_at(file.pages, ground, terms, at.record, self._costs.dice.array)
        at.look()
        self._taken.fill(0)  # of the ranges that are submitted, it has none
        self._hand_on(file)
        return int(ended)

    def _ground(self) -> Ground:
        """What a step works on, with room for what it may do; a step may take from any group."""
        if not self._entered:
            self._entered = True
            for group in self.groups:
                group.free.enter()
        return Ground(self.groups[0].free.with_room(self._most_allocations), self._locks.share(), self._taken)

    def _terms(self, inode: XfsInode, file: XfsFile, at: Walk, bio_pages: int) -> Terms:
        costs, granted, home = self._costs, file.granted, inode.group
        file.reach(home.first_block, self.group_blocks)
        return Terms(
            file.lock.row,
            costs.map_ns(file.conversions) + costs.lines_ns(file),
            costs.group_ns,
            self._commit_ns,
            costs.page_ns(inode.folio_pages),
            bio_pages,
            bool(at.calls != UNCOUNTED),
            self._rules.wraps,
            self._stripe,
            self.group_blocks,
            home.number,
            file.far_blocks // self.group_blocks - 1,
            NO_ROW if granted is None else granted[0].number,
            self._env.now,
        )

    def _lend(self, file: XfsFile) -> None:
        """What its flusher has waited for, the step has at once."""
        if file.granted is not None:
            group, task = file.granted
            file.lock.lend()
            group.agf.lend(task)

    def _hand_on(self, file: XfsFile) -> None:
        """The step has booked the locks for as long as it needs them: others get them later."""
        if file.granted is not None:
            file.lock.hand_on()
            file.granted[0].agf.hand_on()
            file.granted = None

    def unblock(self, thread: Thread, inode: XfsInode, at: Walk) -> Steps:
        """See `Placement.unblock`: wait for the locks that a transaction needs; the next step has them."""
        file = inode.file
        assert isinstance(file, XfsFile)
        yield from file.lock.down(thread)
        if not is_delayed(int(file.pages.states[at.page])):  # somebody else has converted it meanwhile
            file.lock.up()
            return
        target = target_of(file.pages, at.page, self.group_blocks)
        wanted = inode.group if target == NOWHERE else self.groups[(target + file.base) // self.group_blocks]
        length = min(delayed_extent(file.pages, at.page)[1], MAX_EXTENT_PAGES)
        group = yield from lock_group(self.groups, thread, wanted, length, 0)  # the step knows for how long
        file.reach(group.first_block, self.group_blocks)
        file.granted = group, thread.task

    def ranges(self, file: Any, at: Walk) -> dict[int, int]:
        """As many of each group as there were allocations from it."""
        if not at.mapped_extents:
            return {file.at_hand: at.ranges}
        groups = np.flatnonzero(self._taken).tolist()
        counts = self._taken[groups].tolist()
        self._taken[groups] = 0
        file.at_hand = groups[-1]
        total, ends = sum(counts), [0, *accumulate(counts)]
        shares = [at.ranges * end // total for end in ends]
        return {group: end - begin for group, begin, end in zip(groups, shares, shares[1:], strict=False)}

    def free_tables(self) -> Iterator[NDArray[np.int64]]:
        """See `Placement.free_tables`."""
        for group in self.groups:
            yield group.free.table() + np.array([group.first_block, 0])

    def check(self, files: Any) -> None:
        """See `Placement.check`."""
        for group in self.groups:
            group.free.check()
