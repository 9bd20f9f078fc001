"""Where the pages of an ext4 lie.

Stands for ext4_map_blocks and ext4_release_file; the decisions are in `layout.py`, which
blocks are set aside in `new_blocks.py`, the free space in `mballoc.py`.  Left out: the locks of
groups and locality groups, bigalloc, what reclaim makes of preallocations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wbsim.models.filesystems.ext4.geometry import GROUP_BLOCKS
from wbsim.models.filesystems.ext4.inodes import Ext4File, Ext4Inode
from wbsim.models.filesystems.ext4.layout import (
    LARGEST_WINDOW,
    MAX_REQUEST_PAGES,
    STREAM_REQUEST_PAGES,
    Terms,
    place_now,
    walk,
    write_all,
)
from wbsim.models.filesystems.ext4.mballoc import Mballoc
from wbsim.models.filesystems.ext4.metadata import Ext4Metadata
from wbsim.models.filesystems.ext4.names import Ext4Names
from wbsim.models.filesystems.ext4.new_blocks import NewBlocks
from wbsim.models.filesystems.ext4.spec import Ext4Rules, Ext4Spec
from wbsim.models.filesystems.files import PagedFile
from wbsim.models.filesystems.locks import LockTable
from wbsim.models.filesystems.map_costs import MapCosts
from wbsim.models.filesystems.policies import Runs, SteppedPlacement
from wbsim.models.filesystems.unwritten import Conversions
from wbsim.models.filesystems.walk_state import Walk
from wbsim.models.page_cache.pages import DELAYED, HELD, MAPPED, awaiting_run, run_alike
from wbsim.models.scheduler.cpu import sleep
from wbsim.models.seams import Thread, WritebackControl
from wbsim.sim.engine import Environment, Steps
from wbsim.sim.laws import require
from wbsim.sim.units import PAGE_BYTES


class Ext4Placement(SteppedPlacement):
    """The placement of one mounted ext4, with a locality group for each of its processors."""

    group_label: str

    def __init__(
        self, *, env: Environment, name: str, spec: Ext4Spec, rules: Ext4Rules, processors: int,
        mballoc: Mballoc, names: Ext4Names, costs: MapCosts, metadata: Ext4Metadata, locks: LockTable,
    ) -> None:  # fmt: skip
        self.group_blocks, self.group_label = GROUP_BLOCKS, "group"
        self.one_run_pages = STREAM_REQUEST_PAGES
        geometry = spec.geometry
        self.blocks = geometry.groups * GROUP_BLOCKS
        self._env = env
        self._locks = locks
        self._name = name
        self._rules = rules
        self._geometry = geometry
        self._costs = costs
        self._metadata = metadata
        self._names = names
        self._mballoc = mballoc
        self.files: list[PagedFile] = []
        self.new_blocks = NewBlocks(mballoc, rules, processors, geometry.groups, self.files)
        self._tree_blocks = self._run_pages = 0  # blocks of paged files' trees; pages in files of one run
        self._usable = spec.room // PAGE_BYTES

    def group_of(self, inode: Ext4Inode) -> int:
        """See `Placement.group_of`."""
        return self._geometry.group_of(inode.number)

    def new_file(self, inode: Ext4Inode, is_open: bool) -> Ext4File:
        """See `Placement.new_file`."""
        file = Ext4File(is_open)
        file.lock = self._locks.inode_lock()
        file.conversions = Conversions(inode, file.lock, self._metadata.converted)
        return file

    def write_lock(self, thread: Thread, file: Ext4File, calls: int) -> Steps | None:
        """See `Placement.write_lock`."""
        if not (wait_ns := file.lock.wait_ns(calls)):
            return None
        return sleep(thread.task, wait_ns, self._locks.inode_cause)

    def room_for(self, size: int, call_pages: int) -> int:
        """See `Placement.room_for`."""
        return (size // LARGEST_WINDOW + 1) * LARGEST_WINDOW

    def write(self, file: Ext4File, indices: NDArray[np.int64], call_pages: int) -> tuple[int, int]:
        """See `Placement.write`."""
        done, were_clean = write_all(file.pages, indices, file.end)
        return int(done), int(were_clean)

    def released(self, inode: Any) -> None:
        """The last close gives up what is held for the file, unless pages still wait for their blocks."""
        if not np.any(is_delayed(inode.file.pages.states)):
            self.new_blocks.give_up(inode.file)

    def write_run(self, thread: Thread, inode: Ext4Inode, wbc: WritebackControl, runs: Runs) -> Steps:
        """ext4_map_blocks and ext4_io_submit for a file of one run, closed or not."""
        journal, asked, pages = self._metadata.journal, self._metadata.map_credits, inode.dirty_pages
        yield from journal.start_handle(thread, asked)
        if self._rules.unwritten:
            yield from journal.reserve(thread)
        (map_ns, _), pages_ns = self._costs.run_map_ns(), pages * self._costs.page_ns(inode.folio_pages)
        thread.spent.allocate += map_ns
        thread.spent.pages += pages_ns
        yield map_ns + pages_ns
        if self._rules.packs_closed or inode.file.open:
            block, got = self.new_blocks.of_locality_group(thread.task, inode.goal_group, pages)
        else:
            block, got = self.new_blocks.find(inode.goal_group, pages)
        if got < pages:
            self._mballoc.give_back(block, got)
            if self._rules.unwritten:
                journal.release()
            journal.stop_handle(asked, ())
            yield from runs.in_pieces(thread, inode, wbc)
            return
        journal.stop_handle(asked, ())
        if not inode.file.open:
            self._run_pages += pages
        self._metadata.log_extent(inode, block // GROUP_BLOCKS)
        for bio in runs.bios(inode, block, pages):
            if (rest := thread.submit_bio(bio)) is not None:
                yield from rest
        wbc.nr_to_write -= pages

    def prepare(self, inode: Ext4Inode, at: Walk, wbc: WritebackControl) -> None:
        """See `Placement.prepare`."""
        file = inode.file
        assert isinstance(file, Ext4File)
        if not wbc.sync_all:
            at.left = max(at.left, awaiting_run(file.pages, at.page, self._rules.bump_pages))

    def step(
        self,
        inode: Ext4Inode,
        at: Walk,
        bio_pages: int,
        horizon_ns: int,
        bios: NDArray[np.int64],
    ) -> int:
        """See `Placement.step`."""
        file = inode.file
        assert isinstance(file, Ext4File)
        terms = Terms(
            file.lock.row,
            self._costs.map_ns(file.conversions.extents),
            self._costs.page_ns(inode.folio_pages),
            1 if self._rules.page_bios else bio_pages,
            self._env.now,
        )
        page = at.page
        at.room, at.behind = room, _ = file.room_at(page)
        at.tell()
        ended = walk(
            file.pages, self._locks.share(), terms, at.record, horizon_ns, self._costs.dice.array, bios
        )
        at.look()
        file.took(page, room - at.room, at.joins, at.ranges)
        if not self._rules.unwritten:
            file.wrote(at.ranges)
        return int(ended)

    def unblock(self, thread: Thread, inode: Ext4Inode, at: Walk) -> Steps:
        """ext4_map_blocks: give pages some of the blocks that are held for the file.

        If none are held, hold some first.  Then the file's tree grows, if it has to.
        """
        file = inode.file
        assert isinstance(file, Ext4File)
        yield from file.lock.down(thread)
        map_ns, _ = self._costs.varied_map_ns(file.conversions.extents)
        thread.spent.allocate += map_ns
        yield map_ns
        page = at.page
        count = run_alike(file.pages, page, min(at.left, MAX_REQUEST_PAGES))
        if not file.pages.states[page] & HELD:
            self.new_blocks.hold(thread.task, inode, file, page, count)
            count = run_alike(file.pages, page, count)
        at.room, at.joins = 0, 0
        at.tell()
        place_now(file.pages, at.record, page, count)
        at.look()
        if at.room and not file.room_at(page)[0] and not (file.leaves and file.has_room_behind(page)):
            block = int(file.pages.blocks[page])
            leaf, _ = self.new_blocks.find(block // GROUP_BLOCKS if file.leaves else inode.goal_group, 1)
            self._tree_blocks += 1
            file.grow(page, leaf)
        file.took(page, -at.room, at.joins, 0)
        file.lock.up()

    def free_tables(self) -> Iterable[NDArray[np.int64]]:
        """See `Placement.free_tables`."""
        for runs in (self._mballoc.extents(), *self.new_blocks.locality_groups):
            yield np.array(list(runs), np.int64).reshape(-1, 2)

    def ranges(self, file: Any, at: Walk) -> dict[int, int]:
        """See `Placement.ranges`: all groups are one to a worker."""
        return {0: at.ranges}

    def check(self, files: Any) -> None:
        """See `Placement.check`."""
        self._mballoc.check()
        free = sum(self._mballoc.free_blocks(flex) for flex in range(self._geometry.flexes))
        free += sum(left for runs in self.new_blocks.locality_groups for _, left in runs)
        used = self._run_pages + self._tree_blocks + self._names.leaf_blocks
        for file in files:
            states = file.pages.states
            free += int(np.count_nonzero(states & HELD))
            used += int(np.count_nonzero(states & MAPPED))
        require(
            free + used == self._usable,
            f"{self._name}: blocks are free or in pages, trees and directories: {free}, {used}",
        )


def is_delayed(states: Any) -> Any:
    """Whether pages in *states* wait for a block, held for them or not."""
    return states & (DELAYED | MAPPED) == DELAYED
