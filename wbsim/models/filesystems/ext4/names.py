"""Names in an ext4: making files and directories, looking them up, removing them.

Stands for ext4_create, __ext4_new_inode, find_group_orlov, ext4_add_entry; ext4_iget; ext4_unlink,
ext4_orphan_add and ext4_evict_inode (fs/ext4/ialloc.c, namei.c).  Left out: directories below another one,
and the leaf that follows from a name's hash.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from wbsim.models.filesystems.blocks import Space
from wbsim.models.filesystems.ext4.inodes import Directory, Ext4Inode, Flex
from wbsim.models.filesystems.ext4.journal import Journal
from wbsim.models.filesystems.ext4.mballoc import Mballoc
from wbsim.models.filesystems.ext4.spec import Ext4Spec, Ext4WriterCosts
from wbsim.models.interfaces import Caller, Names, NoSpace, Thread
from wbsim.models.parts import Parts
from wbsim.models.vfs.inodes import BATCH
from wbsim.models.vfs.superblock import MountedSuperblock
from wbsim.sim.engine import Steps, Task, Wait
from wbsim.sim.units import PAGE_BYTES, PAGE_SECTORS

_READAHEAD_BLOCKS: Final = 32
"""inode_readahead_blks: the number of blocks that are read ahead."""
_NO_INODE: Final = (
    "every inode of the filesystem is in use; give more inodes_per_group, fewer files or a larger filesystem"
)
_READAHEAD_INODES: Final = _READAHEAD_BLOCKS * PAGE_BYTES // 256


class Ext4Names(Names):
    """The directories and inodes of one ext4; ``leaf_blocks``: the number of blocks of the names.

    The methods account for the processor time of a call, and the process for ``lead_ns`` (`Caller`).
    """

    def __init__(
        self,
        *,
        parts: Parts,
        sb: MountedSuperblock,
        spec: Ext4Spec,
        costs: Ext4WriterCosts,
        mballoc: Mballoc,
        journal: Journal,
        space: Space,
    ) -> None:
        self._sb = sb
        self._space = space
        self._journal = journal
        self._mballoc = mballoc
        self._costs = costs
        self._reads = 0
        self._read_ahead: dict[Task, int] = {}
        self._mkdir_ns, self._create_ns = costs.mkdir_ns, costs.create_ns
        self._orphans = parts.mutex("s_orphan_lock")
        self._credits = spec.journal.create_credits
        self._names_per_leaf = spec.journal.names_per_leaf
        self._geometry = geometry = spec.geometry
        inodes = geometry.flex_groups * geometry.group_inodes
        self._flexes = [
            Flex(i, i * inodes, min((i + 1) * inodes, geometry.inodes)) for i in range(geometry.flexes)
        ]
        self._orlov = parts.random("orlov")
        self._leaf = parts.uniforms("leaf")
        self.leaf_blocks = 0

    def root(self) -> Directory:
        """See `Names.root`: the root directory lies in group 0.  Each call returns another object."""
        return Directory(self._flexes[0])

    def new_directory(self) -> Directory:
        """See `Names.new_directory`; it takes an inode of the flex group with the fewest directories.

        Only flex groups with at least the mean number of free blocks and inodes count, if there are any.

        Raises:
            NoSpace: every inode is in use.
        """
        return Directory(self._orlov_flex())

    def mkdir(self, thread: Thread) -> Generator[Wait, None, Directory]:
        """See `Names.mkdir`."""
        directory = self.new_directory()
        thread.spent.create += self._mkdir_ns
        yield self._mkdir_ns
        return directory

    def create(self, caller: Caller, directory: Directory) -> Generator[Wait, None, Ext4Inode]:
        """See `Names.create`."""
        journal, geometry, inodes, thread = self._journal, self._geometry, self._sb.inodes, caller.thread
        create_ns = int(self._create_ns * caller.factor)
        yield from journal.start_handle(thread, self._credits)
        if inodes.must_reclaim:
            yield from inodes.evict(thread, BATCH)
        caller.spent.create += create_ns - inodes.add_ns
        yield caller.lead_ns + create_ns - inodes.add_ns
        yield inodes.sb_list_add(thread)
        yield inodes.add_to_hash(thread, caller.then_ns)
        try:
            inode = self.new_inode(caller.task.cpu, directory)
        except NoSpace:
            journal.stop_handle(self._credits, ())
            raise
        inode.transaction = journal.number
        group = geometry.group_of(inode.number)
        leaf = directory.leaves[int(self._leaf.next() * len(directory.leaves))]
        bitmap = geometry.bitmap_block(group, inodes=True)
        journal.stop_handle(
            self._credits,
            (geometry.inode_block(inode.number), leaf, bitmap, geometry.descriptor_block(group), 0),
        )
        return inode

    def new_inode(self, cpu: int, directory: Directory) -> Ext4Inode:
        """See `Names.new_inode`.

        Raises:
            NoSpace: every inode is in use, or no block is free for the name.
        """
        geometry, flex = self._geometry, self._flex_with_inodes(directory.flex)
        first = flex.number * geometry.flex_groups
        goal = min(first + 1 if geometry.keeps_off_data(first) else first, geometry.groups - 1)
        if directory.names == len(directory.leaves) * self._names_per_leaf:
            self._add_leaf(directory, first)
        directory.names += 1
        number = flex.new_inode()
        return Ext4Inode(self._sb, self._sb.inodes.new(cpu, 0, number), number, goal)

    def _add_leaf(self, directory: Directory, group: int) -> None:
        """Give *directory* a block for more names, in *group* or behind it.

        Raises:
            NoSpace: no block is free.
        """
        leaf, count = self._mballoc.find_in(group, 1)
        if not count:
            raise NoSpace("No space left on device")
        directory.leaves.append(leaf)
        self.leaf_blocks += 1
        self._space.unclaimed -= 1

    def look_up(self, caller: Caller) -> Steps:
        """See `Names.look_up`."""
        inodes = self._sb.inodes
        if inodes.must_reclaim:
            yield from inodes.evict(caller.thread, BATCH)
        yield from self._iget(caller)
        yield inodes.lru_add(caller.thread)
        inodes.add_cached()

    def _iget(self, caller: Caller) -> Steps:
        """ext4_lookup, and iget_locked of an inode that is not cached; *caller* then uses the inode.

        NOTE: as in XFS, a thread visits inodes in the order in which they lie.  It reads as many blocks of
        the inode table at once as are read ahead.
        """
        inodes, thread, task = self._sb.inodes, caller.thread, caller.task
        iget_ns = int(self._costs.iget_ns * caller.factor)
        inodes_left = self._read_ahead.get(task, 0)
        self._read_ahead[task] = (inodes_left or _READAHEAD_INODES) - 1
        if not inodes_left:
            self._reads += 1
            sectors = _READAHEAD_BLOCKS * PAGE_SECTORS
            yield from self._sb.read(thread, self._reads * sectors, sectors)
        caller.spent.lookup += iget_ns
        yield caller.lead_ns
        yield inodes.look_up(thread)
        yield inodes.add_to_hash(thread)
        yield inodes.sb_list_add(thread, iget_ns)

    def bulkstat(self, caller: Caller) -> Steps:
        """Raise `NotImplementedError`: ext4 has no `Names.bulkstat` (`FilesystemSpec.has_bulkstat`)."""
        raise NotImplementedError

    def unlink(self, caller: Caller) -> Steps:
        """See `Names.unlink`: read the inode, put it on the list of orphans, evict it and take it off.

        Left out: the blocks that the journal logs for this.
        """
        inodes, thread, task, costs = self._sb.inodes, caller.thread, caller.task, self._costs
        yield from self._iget(caller)
        work_ns = int(costs.unlink_ns * caller.factor) - 2 * costs.orphan_ns
        for part_ns in (work_ns // 2, work_ns - work_ns // 2):
            yield from self._journal.start_handle(thread, self._credits)
            thread.spent.unlink += part_ns
            yield part_ns
            if not self._orphans.try_acquire(task):
                yield self._orphans.wait(task)
            thread.spent.unlink += costs.orphan_ns
            yield costs.orphan_ns
            if waker_ns := self._orphans.release():
                yield waker_ns
            self._journal.stop_handle(self._credits, ())
        thread.spent.reclaim += inodes.evict_ns
        yield inodes.sb_list_del(thread)
        yield inodes.unhash(thread, inodes.evict_ns)

    def remove_name(self, caller: Caller, inode: Ext4Inode) -> Steps:
        """See `Names.remove_name`: ext4_unlink, and ext4_orphan_add."""
        return self._change_name(caller, inode)

    def rename(self, caller: Caller, inode: Ext4Inode) -> Steps:
        """See `Names.rename`: ext4_rename, which takes as long as the removal of a name."""
        return self._change_name(caller, inode)

    def _change_name(self, caller: Caller, inode: Ext4Inode) -> Steps:
        """Run a handle that changes a name of *inode* and logs the inode."""
        half_ns = int(self._costs.unlink_ns * caller.factor) // 2
        yield from self._journal.start_handle(caller.thread, self._credits)
        caller.spent.unlink += half_ns
        yield caller.lead_ns + half_ns
        inode.transaction = self._journal.number
        self._journal.stop_handle(self._credits, (self._geometry.inode_block(inode.number),))

    def free_inode(self, thread: Thread, inode: Ext4Inode) -> Steps:
        """See `Names.free_inode`: the end of ext4_evict_inode; no other file gets the inode's number."""
        inodes, half_ns = self._sb.inodes, self._costs.unlink_ns // 2
        group = self._geometry.group_of(inode.number)
        yield from self._journal.start_handle(thread, self._credits)
        thread.spent.unlink += half_ns
        yield half_ns
        blocks = self._geometry.inode_block(inode.number), self._geometry.bitmap_block(group, inodes=True)
        self._journal.stop_handle(self._credits, blocks)
        inodes.forget(1)
        thread.spent.reclaim += inodes.evict_ns
        yield inodes.sb_list_del(thread)
        yield inodes.unhash(thread, inodes.evict_ns)

    def _flex_with_inodes(self, parent: Flex) -> Flex:
        """Return the flex group for a file in a directory of *parent* (find_group_other).

        This is *parent*, or the next flex group with free inodes.

        Raises:
            NoSpace: every inode is in use.
        """
        if parent.free_inodes:
            return parent
        flexes = self._flexes
        for flex in (*flexes[parent.number + 1 :], *flexes[: parent.number]):
            if flex.free_inodes:
                return flex
        raise NoSpace(_NO_INODE)

    def _orlov_flex(self) -> Flex:
        """find_group_orlov for a directory in the root: return the flex group with the fewest directories.

        Only groups with at least average room count, if there are any.  The search begins at a random group,
        as with the hash of a name.  Among equals, the first wins.
        """
        flexes, start = self._flexes, int(self._orlov.integers(len(self._flexes)))
        blocks = [self._mballoc.free_blocks(flex.number) for flex in flexes]
        inodes = [flex.free_inodes for flex in flexes]
        in_turn = [flex for flex in (*flexes[start:], *flexes[:start]) if flex.free_inodes]
        if not in_turn:
            raise NoSpace(_NO_INODE)
        roomy = [
            flex
            for flex in in_turn
            if inodes[flex.number] >= sum(inodes) // len(flexes)
            and blocks[flex.number] >= sum(blocks) // len(flexes)
        ]
        flex = min(roomy or in_turn, key=lambda flex: flex.directories)
        flex.directories += 1
        flex.new_inode()  # that of the directory, of which nothing else is modelled
        self._mballoc.read_bitmaps(flex.number)
        return flex
