"""ext4 for files of many pages: where their blocks lie.

Stands for ext4_map_blocks and ext4_mb_new_blocks with delayed allocation, ext4_mb_group_or_file, find_group_orlov,
ext4_release_file; the decisions are in `extents/ext4_layout.py`, the free space in `extents/mballoc.py`.  Left out:
the journal, what metadata is written, the locks of groups and locality groups (one flusher takes them alone),
bigalloc, what reclaim makes of preallocations.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from models.extents.ext4_layout import (
    GROUP_PREALLOC_PAGES,
    LEAF_EXTENTS,
    MAX_REQUEST_PAGES,
    ROOT_EXTENTS,
    STREAM_REQUEST_PAGES,
    Ext4Rules,
    Terms,
    placed_in,
    walk,
    window,
    write_all,
)
from models.extents.file_pages import (
    DELAYED,
    HELD,
    MAPPED,
    awaiting_run,
    hold_blocks,
    run_alike,
    use_held,
)
from models.extents.mballoc import GROUP_BLOCKS, Geometry, Mballoc
from models.extents.page_walk import LEFT, PAGE, ROOM
from models.large_files import LargeFile, LargeFiles, LargeFilesSpec
from models.page_cache import PageCache
from models.seams import UNLIMITED_PAGES, NoSpace, Site, Submitter
from sim.engine import Steps, Task
from sim.param import Bytes, Count
from sim.units import PAGE_BYTES

_GROUP_INODES: Final = 8_192
_FIRST_INODE: Final = 11
_WINDOW_PAGES: Final = 2_048
_GROUP_BYTES: Final = GROUP_BLOCKS * PAGE_BYTES


class Ext4Spec(LargeFilesSpec):
    """What mkfs.ext4 made: ``flex_groups`` share a place for their metadata; ``descriptors``: the group descriptors and
    what is kept for more of them; ``journal``: its size.
    """

    FAMILY: ClassVar = "ext4"
    kind: Literal["ext4"] = "ext4"
    flex_groups: Count
    descriptors: Bytes
    journal: Bytes

    @model_validator(mode="after")
    def _check(self) -> Ext4Spec:
        if not self.flex_groups or self.flex_groups & (self.flex_groups - 1):
            raise ValueError(f"flex_groups {self.flex_groups} has to be a power of two")
        if self.size < 2 * _GROUP_BYTES or self.size % _GROUP_BYTES:
            whole = max(2, self.size // _GROUP_BYTES) * 128
            raise ValueError(f"size {self.size} B has to be groups of 128 MiB, two at least; give {whole} MiB")
        for name in ("descriptors", "journal"):
            if getattr(self, name) % PAGE_BYTES:
                raise ValueError(f"{name} {getattr(self, name)} B has to be whole blocks of {PAGE_BYTES} B")
        geometry = self.geometry
        for group in {0, 1, geometry.journal_group}:
            if geometry.head_blocks(group) >= GROUP_BLOCKS:
                raise ValueError(
                    f"what mkfs keeps in group {group} does not fit into its 128 MiB: the inode tables of"
                    f" {self.flex_groups} flex_groups (2 MiB each), descriptors or journal; make them fewer or smaller"
                )
        return self

    @property
    def geometry(self) -> Geometry:
        """The same in groups and blocks."""
        return Geometry(
            self.size // _GROUP_BYTES, self.flex_groups, self.descriptors // PAGE_BYTES, self.journal // PAGE_BYTES
        )

    @property
    def room(self) -> int:
        """What files can take (bytes)."""
        geometry = self.geometry
        return self.size - sum(geometry.head_blocks(group) for group in range(geometry.groups)) * PAGE_BYTES


class Flex:
    """A flex group: its directories, and the number of its next inode."""

    __slots__ = ("_behind", "_next_inode", "directories", "number")

    def __init__(self, number: int, inodes: int) -> None:
        self.number = number
        self.directories = 2 if number == 0 else 0  # the root and lost+found
        self._next_inode = number * inodes + (_FIRST_INODE if number == 0 else 0)
        self._behind = (number + 1) * inodes

    @property
    def free_inodes(self) -> int:
        """How many inodes it has left."""
        return self._behind - self._next_inode

    def new_inode(self) -> int:
        """The number of a new inode."""
        self._next_inode += 1
        return self._next_inode


class Ext4File(LargeFile):
    """A file: its number, where the search for its blocks begins, whether a process has it open, whether its tree of
    extents has outgrown the inode, and how many more that takes.
    """

    __slots__ = ("goal_group", "has_leaves", "number", "open", "tree_room")

    def __init__(self, number: int, goal_group: int, pages: int) -> None:
        super().__init__(pages, base=0)
        self.number = number
        self.goal_group = goal_group
        self.open = True
        self.has_leaves = False
        self.tree_room = ROOT_EXTENTS


class Ext4(LargeFiles):
    """One mounted ext4, whose bitmaps nobody has read yet."""

    group_blocks = GROUP_BLOCKS
    group_label = "group"

    def __init__(
        self,
        *,
        site: Site,
        spec: Ext4Spec,
        rules: Ext4Rules,
        largest_file: int,
        writer_costs: Any,
        flusher_costs: Any,
        cache: PageCache,
    ) -> None:
        super().__init__(
            name="ext4 flusher", site=site, unwritten=rules.unwritten, writer_costs=writer_costs,
            flusher_costs=flusher_costs, cache=cache,
        )  # fmt: skip
        self._rules = rules
        self._geometry = geometry = spec.geometry
        self._mballoc = Mballoc(geometry, by_order=rules.by_order)
        self._goals = [0] * (1 if rules.goals == "one" else min(site.processors, -(-geometry.groups // 4)))
        self._file_pages = -(-max(largest_file // PAGE_BYTES + 1, _WINDOW_PAGES) // _WINDOW_PAGES) * _WINDOW_PAGES
        self._flexes = [Flex(i, geometry.flex_groups * _GROUP_INODES) for i in range(geometry.flexes)]
        self._orlov = site.dice("orlov")
        self._locality_groups: list[list[tuple[int, int]]] = [[] for _ in range(site.processors)]
        self.tree_blocks = 0

    @property
    def free_blocks(self) -> int:
        """Blocks that neither pages nor trees of files (``tree_blocks``) have; those held for pages are among them."""
        free = sum(self._mballoc.free_blocks(flex.number) for flex in self._flexes)
        kept = sum(left for runs in self._locality_groups for _, left in runs)
        return free + kept + sum(int(np.count_nonzero(inode.file.pages.states & HELD)) for inode in self.inodes)

    def write(self, inode: Ext4File, indices: NDArray[np.int64], call_pages: int) -> tuple[int, int]:
        """See `LargeFiles.write`; nothing is ever in its way."""
        return len(indices), int(write_all(inode.file.pages, indices))

    def close(self, inode: Ext4File) -> None:
        """The last close gives up what is held for the file, unless pages still wait for their blocks."""
        inode.open = False
        if not np.any(_is_delayed(inode.file.pages.states)):
            self._give_up_held(inode)

    def _new_directory(self) -> Flex:
        """find_group_orlov for a directory of the root: the flex group with the fewest, of those with room above the
        average; equals are told apart by where a hash of the name begins.
        """
        flexes, start = self._flexes, int(self._orlov.integers(len(self._flexes)))
        blocks = [self._mballoc.free_blocks(flex.number) for flex in flexes]
        inodes = [flex.free_inodes for flex in flexes]
        in_turn = [*flexes[start:], *flexes[:start]]
        roomy = [
            flex
            for flex in in_turn
            if inodes[flex.number] >= sum(inodes) // len(flexes) and blocks[flex.number] >= sum(blocks) // len(flexes)
        ]
        flex = min(roomy or in_turn, key=lambda flex: flex.directories)
        flex.directories += 1
        flex.new_inode()
        self._mballoc.read_bitmaps(flex.number)
        return flex

    def _new_file(self, directory: Flex) -> Ext4File:
        first = directory.number * self._geometry.flex_groups
        goal = first + 1 if self._geometry.keeps_off_data(first) else first
        return Ext4File(directory.new_inode(), min(goal, self._geometry.groups - 1), self._file_pages)

    def _prepare(self, inode: Ext4File, at: NDArray[np.int64]) -> None:
        at[ROOM] = inode.tree_room
        if at[LEFT] != UNLIMITED_PAGES:
            at[LEFT] = max(at[LEFT], awaiting_run(inode.file.pages, at[PAGE], self._rules.bump_pages))

    def _walk(
        self, inode: Ext4File, at: NDArray[np.int64], bio_pages: int, horizon_ns: int, bios: NDArray[np.int64]
    ) -> int:
        terms = Terms(self._mean_map_ns(inode), self._page_ns, 1 if self._rules.page_bios else bio_pages)
        ended = walk(inode.file.pages, terms, at, horizon_ns, self._dice, bios)
        inode.tree_room = int(at[ROOM])
        return int(ended)

    def _place(self, submitter: Submitter, inode: Ext4File, at: NDArray[np.int64]) -> Steps:
        """ext4_map_blocks: from what is held for the file, or set something aside first; then the tree grows."""
        yield self._varied_map_ns(inode)
        page = int(at[PAGE])
        count = run_alike(inode.file.pages, page, min(int(at[LEFT]), MAX_REQUEST_PAGES))
        if not inode.file.pages.states[page] & HELD:
            self._hold(submitter.task, inode, page, count)
            count = run_alike(inode.file.pages, page, count)
        at[ROOM] -= use_held(inode.file.pages, page, count)
        if at[ROOM] < 0:
            block = int(inode.file.pages.blocks[page])
            self._find(block // GROUP_BLOCKS if inode.has_leaves else inode.goal_group, 1)
            self.tree_blocks += 1
            at[ROOM] += LEAF_EXTENTS - (0 if inode.has_leaves else ROOT_EXTENTS)
            inode.has_leaves = True
        inode.tree_room = int(at[ROOM])

    def _hold(self, task: Task, inode: Ext4File, page: int, count: int) -> None:
        """ext4_mb_group_or_file: have blocks held for the *count* pages from *page* on, or for more around them."""
        closed = not inode.open and page + count == inode.file.size
        small = max(page + count, inode.file.size) <= STREAM_REQUEST_PAGES
        start, end = page, page + count
        if small and (self._rules.packs_closed or not closed):
            block, got = self._from_locality_group(task, inode.goal_group, count)
        elif closed:
            block, got = self._find(self._group_in_front(inode, page), count)
        else:
            start, end = window(inode.file.pages, page, count)
            block, got = self._beside(inode, start, end)
        inode.file.reach(block, got)
        hold_blocks(inode.file.pages, placed_in(start, end, page, count, got), block, got)

    def _beside(self, inode: Ext4File, start: int, end: int) -> tuple[int, int]:
        """Blocks for pages *start* to *end*: next to those of the neighbours, or where files went on last."""
        states, blocks = inode.file.pages.states, inode.file.pages.blocks
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

    def _group_in_front(self, inode: Ext4File, page: int) -> int:
        """The group of the block in front of *page*, or the file's own."""
        pages = inode.file.pages
        if page and pages.states[page - 1] & MAPPED:
            return int(pages.blocks[page - 1]) // GROUP_BLOCKS
        return inode.goal_group

    def _find(self, group: int, length: int) -> tuple[int, int]:
        """Take blocks; where nothing is free, nothing is kept for later any more (ext4_mb_discard_preallocations).

        Raises:
            NoSpace: nothing is free even then.
        """
        found = self._mballoc.find(group, length)
        if not found[1]:
            for inode in self.inodes:
                self._give_up_held(inode)
            for runs in self._locality_groups:
                for block, count in runs:
                    self._mballoc.give_back(block, count)
                runs.clear()
            found = self._mballoc.find(group, length)
        if not found[1]:
            raise NoSpace("the filesystem is full; give a larger one, or fewer or smaller files")
        return found

    def _give_up_held(self, inode: Ext4File) -> None:
        for block, count in inode.file.give_up_held():
            self._mballoc.give_back(block, count)


def _is_delayed(states: Any) -> Any:
    """Whether pages in *states* wait for a block, held for them or not."""
    return states & (DELAYED | MAPPED) == DELAYED


SPEC, COMPONENT = Ext4Spec, Ext4
