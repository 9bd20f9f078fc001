"""The choice of the blocks that an ext4 sets aside for pages.

Stands for ext4_mb_new_blocks, ext4_mb_group_or_file, ext4_mb_use_group_pa and ext4_mb_discard_preallocations.
"""

from __future__ import annotations

from collections.abc import Sequence

from wbsim.models.filesystems.ext4.extent_tree import NO_BLOCK
from wbsim.models.filesystems.ext4.geometry import GROUP_BLOCKS
from wbsim.models.filesystems.ext4.inodes import Ext4File, Ext4Inode
from wbsim.models.filesystems.ext4.layout import GROUP_PREALLOC_PAGES, STREAM_REQUEST_PAGES, placed_in, window
from wbsim.models.filesystems.ext4.mballoc import Mballoc
from wbsim.models.filesystems.ext4.spec import Ext4Rules
from wbsim.models.filesystems.files import PagedFile
from wbsim.models.interfaces import NoSpace
from wbsim.models.page_cache.pages import HAS_BLOCK, hold_blocks
from wbsim.sim.engine import Task


class NewBlocks:
    """The choice of blocks in one mounted ext4 with *groups* groups.

    The paged *files* may have blocks held for them.  Block numbers are those of the filesystem.  Each method
    that takes blocks raises `NoSpace` if none is free.  None of them changes `Space.unclaimed`.

    * ``goals``: the groups in which large files continued last.
    * ``locality_groups``: for each processor, the runs of blocks (first, number) that it keeps for small
      files.
    """

    def __init__(
        self,
        mballoc: Mballoc,
        rules: Ext4Rules,
        processors: int,
        groups: int,
        files: Sequence[PagedFile],
    ) -> None:
        self._mballoc = mballoc
        self._rules = rules
        self._files = files
        self.goals = [0] * (1 if rules.goals == "one" else min(processors, -(-groups // 4)))
        self.locality_groups: list[list[tuple[int, int]]] = [[] for _ in range(processors)]
        stripe = mballoc.stripe or 1
        self._group_prealloc = -(-GROUP_PREALLOC_PAGES // stripe) * stripe

    def hold(self, task: Task, inode: Ext4Inode, file: Ext4File, page: int, count: int) -> None:
        """Hold blocks for *count* pages of *file* from *page* on, or for more around them; in no time.

        If too few blocks lie together, fewer pages get one, but *page* does.  The pages are delayed, and had
        no block held for them.  Files of at most `STREAM_REQUEST_PAGES` pages get blocks of a locality group,
        which the processor of *task* chooses (ext4_mb_group_or_file).  A closed file may be an exception
        (``packs_closed`` of `Ext4Rules`).
        """
        goal = self.goal(inode, file, page)
        closed = not file.open and page + count == file.size
        small = max(page + count, file.size) <= STREAM_REQUEST_PAGES
        start, end = page, page + count
        if small and (self._rules.packs_closed or not closed):
            block, length = self.of_locality_group(task, goal, count)
        elif closed:
            block, length = self.find(goal // GROUP_BLOCKS, count)
        else:
            start, end = window(file.pages, page, count)
            block, length = self.extend(inode, file, start, end)
        file.reach(block, length)
        hold_blocks(file.pages, placed_in(start, end, page, count, length), block, length)

    def grow_tree(self, inode: Ext4Inode, file: Ext4File, page: int) -> int:
        """Make room in the tree of *file* for an extent at *page*; return the number of blocks taken, 0 or 1.

        The caller subtracts the number from `Space.unclaimed`.
        """
        if file.tree.has_room(page):
            return 0
        goal = self.goal(inode, file, page) // GROUP_BLOCKS
        leaf, _ = self.find(goal if file.tree.blocks else inode.goal_group, 1)
        file.tree.grow(page, leaf)
        return 1

    def goal(self, inode: Ext4Inode, file: Ext4File, page: int) -> int:
        """Return the block near which the search for *page* begins, from the start of the filesystem.

        The block follows from the extent next to *page*, or is the start of the inode's goal group.  Returns
        0 if that block would lie outside the filesystem (ext4_ext_find_goal).
        """
        goal = file.tree.goal(page)
        if goal == NO_BLOCK:
            return inode.goal_group * GROUP_BLOCKS
        return goal if 0 <= goal < self._mballoc.geometry.blocks else 0

    def extend(self, inode: Ext4Inode, file: Ext4File, start: int, end: int) -> tuple[int, int]:
        """Take blocks for pages *start* to *end* (exclusive); return the first block and their number.

        They lie next to the blocks of a neighbouring page, so that its extent grows.  If that is not
        possible, the search begins in the group where files continued last, and may find fewer blocks.  In
        both cases, large files continue in the group of the result from now on (``goals``).
        """
        states, blocks = file.pages.states, file.pages.blocks
        slot, length = inode.number % len(self.goals), end - start
        block = -1
        if start > 0 and states[start - 1] & HAS_BLOCK:
            block = int(blocks[start - 1]) + 1
        elif end < len(states) and states[end] & HAS_BLOCK:
            block = int(blocks[end]) - length
        if block < 0 or not self._mballoc.take_exactly(block, length):
            block, length = self.find(self.goals[slot], length)
        self.goals[slot] = block // GROUP_BLOCKS
        return block, length

    def of_locality_group(self, task: Task, goal: int, count: int) -> tuple[int, int]:
        """Take *count* blocks for a small file, or fewer; return the first block, and the number of blocks.

        They are the next blocks of a run that the processor of *task* keeps, the one next to block *goal*.
        If none is long enough, a new run is taken, and its rest is kept.
        """
        runs = self.locality_groups[task.rank % len(self.locality_groups)]
        enough = [run for run in runs if run[1] >= count]
        if enough:
            run = min(enough, key=lambda run: abs(run[0] - goal))
            runs.remove(run)
        else:
            run = self.find(goal // GROUP_BLOCKS, max(self._group_prealloc, count))
        block, free = run
        if free > count:
            runs.append((block + count, free - count))
        return block, min(count, free)

    def find(self, group: int, length: int) -> tuple[int, int]:
        """Take *length* blocks together, or fewer; return the first block and the number of blocks.

        The search begins in group *group*.  If no block is free, first give up all blocks that are kept for
        later (ext4_mb_discard_preallocations).

        Raises:
            NoSpace: no block is free even then.
        """
        extent = self._mballoc.find(group, length)
        if not extent[1]:
            for file in self._files:
                assert isinstance(file, Ext4File)
                self.give_up(file)
            for runs in self.locality_groups:
                for block, count in runs:
                    self._mballoc.give_back(block, count)
                runs.clear()
            extent = self._mballoc.find(group, length)
        if not extent[1]:
            raise NoSpace("the filesystem is full; give a larger filesystem, or fewer or smaller files")
        return extent

    def give_up(self, file: Ext4File) -> None:
        """Free the blocks that are held for *file*, at its last close or because others need them.

        Stands for ext4_discard_preallocations.
        """
        for block, count in file.give_up_held():
            self._mballoc.give_back(block, count)
