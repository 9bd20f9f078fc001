"""Where the pages of an ext4 lie.

Stands for ext4_map_blocks and ext4_mb_new_blocks with delayed allocation, ext4_mb_group_or_file,
ext4_release_file; the decisions are in `layout.py`, the free space in `mballoc.py`.  Left out: the locks of
groups and locality groups, bigalloc, what reclaim makes of preallocations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.filesystems.ext4.inodes import Ext4File, Ext4Inode, group_of
from models.filesystems.ext4.layout import (
    GROUP_PREALLOC_PAGES,
    LARGEST_WINDOW,
    MAX_REQUEST_PAGES,
    STREAM_REQUEST_PAGES,
    Terms,
    place_now,
    placed_in,
    walk,
    window,
    write_all,
)
from models.filesystems.ext4.mballoc import GROUP_BLOCKS, Mballoc
from models.filesystems.ext4.metadata import Ext4Metadata
from models.filesystems.ext4.names import Ext4Names
from models.filesystems.ext4.spec import Ext4Rules, Ext4Spec
from models.filesystems.locks import LockTable
from models.filesystems.map_costs import MapCosts
from models.filesystems.policies import Placement, Runs
from models.filesystems.walk_state import Walk
from models.page_cache.pages import DELAYED, HELD, MAPPED, awaiting_run, hold_blocks, run_alike
from models.seams import NoSpace, Thread, WritebackControl
from sim.engine import Environment, Steps, Task
from sim.laws import require
from sim.units import PAGE_BYTES


class Ext4Placement(Placement):
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
        self._files: list[Ext4File] = []
        self._goals = [0] * (1 if rules.goals == "one" else min(processors, -(-geometry.groups // 4)))
        self._locality_groups: list[list[tuple[int, int]]] = [[] for _ in range(processors)]
        self._tree_blocks = self._run_pages = 0  # blocks of paged files' trees; pages in files of one run
        self._usable = spec.room // PAGE_BYTES

    def group_of(self, inode: Ext4Inode) -> int:
        """See `Placement.group_of`."""
        return group_of(inode.number)

    def new_file(self, inode: Ext4Inode, is_open: bool) -> Ext4File:
        """See `Placement.new_file`."""
        file = Ext4File(is_open)
        self._files.append(file)
        return file

    def room_for(self, size: int, call_pages: int) -> int:
        """See `Placement.room_for`."""
        return (size // LARGEST_WINDOW + 1) * LARGEST_WINDOW

    def write(self, file: Ext4File, indices: NDArray[np.int64], call_pages: int) -> tuple[int, int]:
        """See `Placement.write`."""
        done, were_clean = write_all(file.pages, indices, file.end)
        return int(done), int(were_clean)

    def released(self, inode: Any) -> None:
        """The last close gives up what is held for the file, unless pages still wait for their blocks."""
        if not np.any(_is_delayed(inode.file.pages.states)):
            self._give_up_held(inode.file)

    def write_run(self, thread: Thread, inode: Ext4Inode, wbc: WritebackControl, runs: Runs) -> Steps:
        """ext4_map_blocks and ext4_io_submit for a file of one run, closed or not."""
        journal, asked, pages = self._metadata.journal, self._metadata.map_credits, inode.dirty_pages
        yield from journal.start_handle(thread, asked)
        if self._rules.unwritten:
            yield from journal.reserve(thread)
        map_ns, pages_ns = self._costs.run_map_ns(), pages * self._costs.page_ns(inode.folio_pages)
        thread.spent.allocate += map_ns
        thread.spent.pages += pages_ns
        yield map_ns + pages_ns
        if self._rules.packs_closed or inode.file.open:
            block, got = self._from_locality_group(thread.task, inode.goal_group, pages)
        else:
            block, got = self._find(inode.goal_group, pages)
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
            self._costs.map_ns(file.conversions),
            self._costs.page_ns(inode.folio_pages),
            1 if self._rules.page_bios else bio_pages,
            self._env.now,
        )
        page = at.page
        at.room, at.behind = room, _ = file.room_at(page)
        at.tell()
        ended = walk(
            file.pages, self._locks.locks, terms, at.record, horizon_ns, self._costs.dice.array, bios
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
        map_ns = self._costs.varied_map_ns(file.conversions)
        thread.spent.allocate += map_ns
        yield map_ns
        page = at.page
        count = run_alike(file.pages, page, min(at.left, MAX_REQUEST_PAGES))
        if not file.pages.states[page] & HELD:
            self._hold(thread.task, inode, file, page, count)
            count = run_alike(file.pages, page, count)
        at.room, at.joins = 0, 0
        at.tell()
        place_now(file.pages, at.record, page, count)
        at.look()
        if at.room and not file.room_at(page)[0] and not (file.leaves and file.has_room_behind(page)):
            block = int(file.pages.blocks[page])
            leaf, _ = self._find(block // GROUP_BLOCKS if file.leaves else inode.goal_group, 1)
            self._tree_blocks += 1
            file.grow(page, leaf)
        file.took(page, -at.room, at.joins, 0)
        file.lock.up()

    def free_tables(self) -> Iterable[NDArray[np.int64]]:
        """See `Placement.free_tables`."""
        for runs in (self._mballoc.extents(), *self._locality_groups):
            yield np.array(list(runs), np.int64).reshape(-1, 2)

    def allocate_at(self, inode: Any, at: Walk) -> int:
        """See `Placement.allocate_at`."""
        raise AssertionError("ext4 never stops in the middle of writes")

    def ranges(self, file: Any, at: Walk) -> dict[int, int]:
        """See `Placement.ranges`: all groups are one to a worker."""
        return {0: at.ranges}

    def check(self, files: Any) -> None:
        """See `Placement.check`."""
        self._mballoc.check()
        free = sum(self._mballoc.free_blocks(flex) for flex in range(self._geometry.flexes))
        free += sum(left for runs in self._locality_groups for _, left in runs)
        used = self._run_pages + self._tree_blocks + self._names.leaf_blocks
        for file in files:
            states = file.pages.states
            free += int(np.count_nonzero(states & HELD))
            used += int(np.count_nonzero(states & MAPPED))
        require(
            free + used == self._usable,
            f"{self._name}: blocks are free or in pages, trees and directories: {free}, {used}",
        )

    def _hold(self, task: Task, inode: Ext4Inode, file: Ext4File, page: int, count: int) -> None:
        """ext4_mb_group_or_file: hold blocks for *count* pages from *page* on, or for more around them."""
        closed = not file.open and page + count == file.size
        small = max(page + count, file.size) <= STREAM_REQUEST_PAGES
        start, end = page, page + count
        if small and (self._rules.packs_closed or not closed):
            block, got = self._from_locality_group(task, inode.goal_group, count)
        elif closed:
            block, got = self._find(_group_in_front(file, page, inode.goal_group), count)
        else:
            start, end = window(file.pages, page, count)
            block, got = self._beside(inode, file, start, end)
        file.reach(block, got)
        hold_blocks(file.pages, placed_in(start, end, page, count, got), block, got)

    def _beside(self, inode: Ext4Inode, file: Ext4File, start: int, end: int) -> tuple[int, int]:
        """Blocks for pages *start* to *end*: next to those of the neighbours, or where files went on last."""
        states, blocks = file.pages.states, file.pages.blocks
        at, length = inode.number % len(self._goals), end - start
        wanted = -1
        if start > 0 and states[start - 1] & MAPPED:
            wanted = int(blocks[start - 1]) + 1
        elif end < len(states) and states[end] & MAPPED:
            wanted = int(blocks[end]) - length
        if wanted < 0 or not self._mballoc.take_exactly(wanted, length):
            wanted, length = self._find(self._goals[at], length)
        self._goals[at] = wanted // GROUP_BLOCKS
        return wanted, length

    def _from_locality_group(self, task: Task, goal_group: int, count: int) -> tuple[int, int]:
        """Blocks for a small file: the next ones of a run that *task*'s processor keeps for such."""
        kept = self._locality_groups[task.rank % len(self._locality_groups)]
        goal = goal_group * GROUP_BLOCKS
        enough = [run for run in kept if run[1] >= count]
        if enough:
            run = min(enough, key=lambda run: abs(run[0] - goal))
            kept.remove(run)
        else:
            run = self._find(goal_group, max(GROUP_PREALLOC_PAGES, count))
        block, free = run
        if free > count:
            kept.append((block + count, free - count))
        return block, min(count, free)

    def _find(self, group: int, length: int) -> tuple[int, int]:
        """Take blocks; if nothing is free, first give up all blocks that are kept for later
        (ext4_mb_discard_preallocations).

        Raises:
            NoSpace: nothing is free even then.
        """
        found = self._mballoc.find(group, length)
        if not found[1]:
            for file in self._files:
                self._give_up_held(file)
            for runs in self._locality_groups:
                for block, count in runs:
                    self._mballoc.give_back(block, count)
                runs.clear()
            found = self._mballoc.find(group, length)
        if not found[1]:
            raise NoSpace("the filesystem is full; give a larger one, or fewer or smaller files")
        return found

    def _give_up_held(self, file: Ext4File) -> None:
        for block, count in file.give_up_held():
            self._mballoc.give_back(block, count)


def _group_in_front(file: Ext4File, page: int, otherwise: int) -> int:
    """The group of the block in front of *page*, or *otherwise*."""
    if page and file.pages.states[page - 1] & MAPPED:
        return int(file.pages.blocks[page - 1]) // GROUP_BLOCKS
    return otherwise


def _is_delayed(states: Any) -> Any:
    """Whether pages in *states* wait for a block, held for them or not."""
    return states & (DELAYED | MAPPED) == DELAYED
