"""ext4: groups, delayed allocation and the journal.

Stands for ext4_map_blocks and ext4_mb_new_blocks with delayed allocation, ext4_mb_group_or_file,
ext4_release_file; the decisions are in `layout.py`, the free space in `mballoc.py`.  Left out: the locks of
groups and locality groups, bigalloc, what reclaim makes of preallocations.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.filesystems.delalloc import DelallocFilesystem
from models.filesystems.ext4.inodes import Directory, Ext4File, Ext4Inode, group_of
from models.filesystems.ext4.journal import Journal
from models.filesystems.ext4.layout import (
    GROUP_PREALLOC_PAGES,
    LARGEST_WINDOW,
    MAX_REQUEST_PAGES,
    ROOT_EXTENTS,
    STREAM_REQUEST_PAGES,
    Terms,
    place,
    placed_in,
    walk,
    window,
    write_all,
)
from models.filesystems.ext4.mballoc import GROUP_BLOCKS, Mballoc
from models.filesystems.ext4.names import Ext4Names
from models.filesystems.ext4.spec import Ext4FlusherCosts, Ext4Rules, Ext4Spec, Ext4WriterCosts
from models.filesystems.ioends import IoEnds
from models.filesystems.page_walk import BEHIND, JOINS, LEFT, PAGE, RANGES, ROOM
from models.page_cache.accounting import PageCache
from models.page_cache.pages import DELAYED, HELD, MAPPED, awaiting_run, hold_blocks, run_alike
from models.seams import NoSpace, Thread, WritebackControl
from models.site import Site
from models.vfs.superblock import MountedSuperblock
from sim.engine import Steps, Task, Wait
from sim.laws import require
from sim.units import PAGE_BYTES


class Ext4(DelallocFilesystem):
    """One mounted ext4, whose bitmaps nobody has read yet."""

    group_blocks = GROUP_BLOCKS
    group_label = "group"
    one_run_pages = STREAM_REQUEST_PAGES

    def __init__(
        self,
        *,
        site: Site,
        sb: MountedSuperblock,
        spec: Ext4Spec,
        rules: Ext4Rules,
        writer_costs: Ext4WriterCosts,
        flusher_costs: Ext4FlusherCosts,
        cache: PageCache,
    ) -> None:
        ioend_worker, self._ioend_ns = site.thread("kworker/ext4-rsv"), flusher_costs.ioend_ns
        super().__init__(
            site=site,
            sb=sb,
            unwritten=rules.unwritten,
            large_folios=rules.large_folios,
            inline_extents=ROOT_EXTENTS,
            costs=flusher_costs,
        )
        self._ioends = IoEnds(
            site.env, ioend_worker, rules.unwritten, self._run_ended, self._end_run, gives_way=False
        )
        self._map_credits = spec.journal.map_credits
        self._rules = rules
        self._geometry = geometry = spec.geometry
        self._blocks = geometry.groups * GROUP_BLOCKS
        self._mballoc = Mballoc(geometry, by_order=rules.by_order)
        self._goals = [0] * (1 if rules.goals == "one" else min(site.processors, -(-geometry.groups // 4)))
        self._locality_groups: list[list[tuple[int, int]]] = [[] for _ in range(site.processors)]
        self._tree_blocks = self._run_pages = 0  # of paged files' trees; in files of one run
        self._usable = spec.room // PAGE_BYTES
        self._journal = Journal(
            site=site, queue=self._queue, spec=spec.journal, block_ns=flusher_costs.journal_ns,
            start_block=geometry.journal_block, first_block=sb.first_block,
        )  # fmt: skip
        self._names = Ext4Names(
            site=site, sb=sb, spec=spec, costs=writer_costs, mballoc=self._mballoc, journal=self._journal,
            cache=cache,
        )  # fmt: skip

    @property
    def log_bytes(self) -> int:
        """See `Filesystem.log_bytes`."""
        return self._journal.written_bytes

    def check(self) -> None:
        """See `Filesystem.check`."""
        super().check()
        self._mballoc.check()
        self._journal.check()
        free = sum(self._mballoc.free_blocks(flex) for flex in range(self._geometry.flexes))
        free += sum(left for runs in self._locality_groups for _, left in runs)
        used = self._run_pages + self._tree_blocks + self._names.leaf_blocks
        for file in self._files:
            states = file.pages.states
            free += int(np.count_nonzero(states & HELD))
            used += int(np.count_nonzero(states & MAPPED))
        require(
            free + used == self._usable,
            f"{self._sb.name}: blocks are free or in pages, trees and directories: {free}, {used}",
        )

    def mkdir(self, thread: Thread) -> Generator[Wait, None, Directory]:
        """See `Filesystem.mkdir`."""
        return self._names.mkdir(thread)

    def create(
        self, thread: Thread, directory: Directory, lead_ns: int, factor: float, then_ns: int
    ) -> Generator[Wait, None, Ext4Inode]:
        """See `Filesystem.create`."""
        return self._names.create(thread, directory, lead_ns, factor, then_ns)

    def _free_tables(self) -> Iterable[NDArray[np.int64]]:
        for runs in (self._mballoc.extents(), *self._locality_groups):
            yield np.array(list(runs), np.int64).reshape(-1, 2)

    def group_of(self, inode: Ext4Inode) -> int:
        """See `Filesystem.group_of`."""
        return group_of(inode.number)

    def sync_fs(self, thread: Thread) -> Steps:
        """See `Filesystem.sync_fs`."""
        return self._journal.force(thread)

    def commit_log(self, thread: Thread) -> Steps:
        """See `Filesystem.commit_log`."""
        return self._journal.commit_log(thread)

    def _new_file(self, inode: Ext4Inode, is_open: bool) -> Ext4File:
        return Ext4File(is_open)

    def _room_for(self, size: int, call_pages: int) -> int:
        return (size // LARGEST_WINDOW + 1) * LARGEST_WINDOW

    def _write(self, file: Ext4File, indices: NDArray[np.int64], call_pages: int) -> tuple[int, int]:
        done, were_clean = write_all(file.pages, indices, file.end)
        return int(done), int(were_clean)

    def _released(self, inode: Any) -> None:
        """The last close gives up what is held for the file, unless pages still wait for their blocks."""
        if not np.any(_is_delayed(inode.file.pages.states)):
            self._give_up_held(inode.file)

    # -- the journal ---------------------------------------------------------------------------------------

    def _log_is_full(self) -> bool:
        return self._journal.is_full

    def _wait_for_log(self, thread: Thread) -> Steps:
        asked = self._map_credits
        yield from self._journal.start_handle(thread, asked)
        self._journal.stop_handle(asked, ())

    def _mapped(self, inode: Ext4Inode, extents: int, page: int) -> None:
        """Logs the inode (the tree's root), a bitmap, a descriptor and the leaf, if there is one."""
        self._log_extent(inode, inode.goal_group)
        self._log_leaf(inode, page)

    def _log_leaf(self, inode: Ext4Inode, page: int) -> None:
        file = inode.file
        if isinstance(file, Ext4File) and file.leaves:
            self._journal.log((file.leaves[file.leaf_of(page)].block,))

    def _log_extent(self, inode: Ext4Inode, group: int) -> None:
        geometry = self._geometry
        self._journal.log(
            (
                geometry.inode_block(inode.number), geometry.bitmap_block(group, inodes=False),
                geometry.descriptor_block(group),
            )
        )  # fmt: skip

    def _converted(self, inode: Ext4Inode, ranges: int) -> None:
        if isinstance(inode.file, Ext4File):
            inode.file.wrote(ranges)
        self._journal.log((self._geometry.inode_block(inode.number),))

    def _end_run(self, worker: Thread, folios: int) -> Wait:
        """ext4_end_io_rsv_work for a file of one run; those that it wakes let it go on (docs/measurements.md
        I).
        """
        ends_ns = self._ioend_ns + (folios - 1) * self._costs.end_folio_ns
        worker.spent.complete += ends_ns
        return ends_ns

    def _run_ended(self, inode: Ext4Inode) -> None:
        self._converted(inode, 1)
        if self._workers is not None:
            self._journal.release()

    # -- writeback -----------------------------------------------------------------------------------------

    def _write_run(self, thread: Thread, inode: Ext4Inode, wbc: WritebackControl) -> Steps:
        """ext4_map_blocks and ext4_io_submit for a file of one run, closed or not."""
        journal, asked, pages = self._journal, self._map_credits, inode.dirty_pages
        yield from journal.start_handle(thread, asked)
        if self._workers is not None:
            yield from journal.reserve(thread)
        map_ns, pages_ns = int(self._map_ns * self._dice.throw()), pages * self._page_cost_ns(inode)
        thread.spent.allocate += map_ns
        thread.spent.pages += pages_ns
        yield map_ns + pages_ns
        if self._rules.packs_closed or inode.file.open:
            block, got = self._from_locality_group(thread.task, inode.goal_group, pages)
        else:
            block, got = self._find(inode.goal_group, pages)
        if got < pages:
            self._mballoc.give_back(block, got)
            if self._workers is not None:
                journal.release()
            journal.stop_handle(asked, ())
            yield from self._write_in_pieces(thread, inode, wbc)
            return
        journal.stop_handle(asked, ())
        if not inode.file.open:
            self._run_pages += pages
        self._log_extent(inode, block // GROUP_BLOCKS)
        for bio in self._run_bios(inode, block, pages):
            if not thread.merge(bio):
                yield from thread.make_request(bio)
        wbc.nr_to_write -= pages

    def _prepare(self, inode: Ext4Inode, at: NDArray[np.int64], wbc: WritebackControl) -> None:
        file = inode.file
        assert isinstance(file, Ext4File)
        if not wbc.sync_all:
            at[LEFT] = max(at[LEFT], awaiting_run(file.pages, at[PAGE], self._rules.bump_pages))

    def _walk(
        self,
        inode: Ext4Inode,
        at: NDArray[np.int64],
        bio_pages: int,
        horizon_ns: int,
        bios: NDArray[np.int64],
    ) -> int:
        file = inode.file
        assert isinstance(file, Ext4File)
        terms = Terms(
            self._mean_map_ns(file), self._page_cost_ns(inode), 1 if self._rules.page_bios else bio_pages
        )
        page = int(at[PAGE])
        at[ROOM], at[BEHIND] = room, _ = file.room_at(page)
        ended = walk(file.pages, terms, at, horizon_ns, self._dice.array, bios)
        file.took(page, room - int(at[ROOM]), int(at[JOINS]), int(at[RANGES]))
        if self._workers is None:
            file.wrote(int(at[RANGES]))
        return int(ended)

    def _allocate(self, thread: Thread, inode: Ext4Inode, at: NDArray[np.int64]) -> Steps:
        """ext4_map_blocks: from what is held for the file, or set something aside first; then the tree
        grows.
        """
        file = inode.file
        assert isinstance(file, Ext4File)
        map_ns = self._varied_map_ns(file)
        thread.spent.allocate += map_ns
        yield map_ns
        page = int(at[PAGE])
        count = run_alike(file.pages, page, min(int(at[LEFT]), MAX_REQUEST_PAGES))
        if not file.pages.states[page] & HELD:
            self._hold(thread.task, inode, file, page, count)
            count = run_alike(file.pages, page, count)
        at[ROOM], at[JOINS] = 0, 0
        place(file.pages, at, page, count)
        if at[ROOM] and not file.room_at(page)[0] and not (file.leaves and file.has_room_behind(page)):
            block = int(file.pages.blocks[page])
            leaf, _ = self._find(block // GROUP_BLOCKS if file.leaves else inode.goal_group, 1)
            self._tree_blocks += 1
            file.grow(page, leaf)
        file.took(page, -int(at[ROOM]), int(at[JOINS]), 0)

    def _hold(self, task: Task, inode: Ext4Inode, file: Ext4File, page: int, count: int) -> None:
        """ext4_mb_group_or_file: have blocks held for the *count* pages from *page* on, or for more around
        them.
        """
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
        """Take blocks; where nothing is free, nothing is kept for later any more
        (ext4_mb_discard_preallocations).

        Raises:
            NoSpace: nothing is free even then.
        """
        found = self._mballoc.find(group, length)
        if not found[1]:
            for file in self._files:
                assert isinstance(file, Ext4File)
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
