"""A new name in ext4: its cost, its inode, and the blocks that it dirties."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import pytest

from tests.harness import caller, inodes_of, page_cache
from wbsim.models.filesystems.blocks import Space
from wbsim.models.filesystems.ext4.geometry import GROUP_BLOCKS, Geometry
from wbsim.models.filesystems.ext4.inodes import Ext4Inode
from wbsim.models.filesystems.ext4.names import Ext4Names
from wbsim.models.interfaces import NoSpace
from wbsim.models.time_accounting import Spent
from wbsim.sim.engine import Environment, Steps, Task
from wbsim.sim.streams import Draws
from wbsim.sim.sync import Mutex, WakeUps

GEOMETRY = Geometry(blocks=32 * GROUP_BLOCKS, flex_groups=16, descriptor_blocks=1, journal_blocks=1_024)
"""Two flex groups of 16 groups of 8 192 inodes."""

TIMES: Final = {"lead_ns": 5, "factor": 1.5, "then_ns": 20}
"""The caller takes 5 ns before each file and 20 ns after it; creat(2) takes 1.5 times as long."""


class Names:
    """The names of an ext4 with 3 names in a leaf.

    Flex group 0 has 900 free blocks, and flex group 1 has *free*.
    """

    def __init__(self, free: int = 900, first_in_hash_order: int = 0, geometry: Geometry = GEOMETRY) -> None:
        self.env = Environment()
        self.made: list[Ext4Inode] = []
        self.stopped: list[tuple[int, int, tuple[int, ...]]] = []
        self.read: list[int] = []
        self.directories: list[Any] = []
        leaves = count(5_000)
        self.mballoc: Any = SimpleNamespace(
            find_in=lambda group, blocks: (next(leaves) + 10_000 * group, blocks),
            free_blocks=lambda flex: (900, free)[flex],
            read_bitmaps=self.read.append,
        )
        self.journal: Any = SimpleNamespace(start_handle=self._start, stop_handle=self._stop, number=6)
        self.cache = page_cache()
        parts: Any = SimpleNamespace(
            random=lambda name: SimpleNamespace(integers=lambda flexes: first_in_hash_order),
            uniforms=lambda name: Draws(lambda count: np.full(count, 0.99)),
            mutex=lambda name: Mutex(self.env, name, WakeUps(0)),
        )
        bdi: Any = SimpleNamespace(wb_of=lambda *place: place)
        sb: Any = SimpleNamespace(inodes=inodes_of(self.env, bdi, self.cache, 10))
        spec: Any = SimpleNamespace(
            geometry=geometry, journal=SimpleNamespace(create_credits=33, names_per_leaf=3)
        )
        costs: Any = SimpleNamespace(create_ns=1_000, mkdir_ns=60_000)
        self.spent = Spent()
        self.space = Space(900 + free, 50)
        self.names = Ext4Names(
            parts=parts, sb=sb, spec=spec, costs=costs, mballoc=self.mballoc, journal=self.journal,
            space=self.space,
        )  # fmt: skip

    def _start(self, thread: Any, credits_asked: int) -> Steps:
        assert credits_asked == 33
        yield 7

    def _stop(self, credits_asked: int, blocks: tuple[int, ...]) -> None:
        self.stopped.append((self.env.now, credits_asked, blocks))

    def make(self, directories: int, files: int, **times: Any) -> Task:
        """Make *directories* directories and, in the last one, *files* files.

        *times* are the work around each call.
        """
        task = self.env.task("writer")

        def body() -> Steps:
            thread: Any = SimpleNamespace(task=task, spent=self.spent)
            for _ in range(directories):
                self.directories.append((yield from self.names.mkdir(thread)))
            for _ in range(files):
                self.made.append(
                    (yield from self.names.create(caller(thread, **times), self.directories[-1]))
                )

        self.env.start(task, body())
        self.env.run()
        return task


def test_create_without_times_takes_its_own_time() -> None:
    """The third file takes 1 007 ns, and the caller takes none."""
    ends = []
    for files in (2, 3):
        of = Names()
        of.make(1, files)
        ends.append(of.env.now)
    assert ends[1] - ends[0] == 1_007


def test_each_name_takes_its_time_and_dirties_its_blocks() -> None:
    """The directory takes 60 000 ns, and each file 7 ns for its handle and then 5 + 1 500 + 20 ns.

    * The directory takes flex group 1, because group 0 has two directories, the root and lost+found.
    * The directory has the first inode of block group 16, and the files have the next inodes.
    * The first and the fourth name begin a leaf.

    Each file dirties five blocks: its inode, the leaf, the inode bitmap, the descriptor and the superblock.

    block      content
    0          superblock
    1          descriptors of groups 0 to 63
    524 288    16 * 32 768: group 16 has no superblock, so the 16 bitmaps of its flex group's blocks begin it
    524 304    the bitmap of the inodes of group 16, the first of 16
    524 320    the inode table of group 16: the inodes 131 073 to 131 088, 16 in a block

    Groups 0 and 16 are for directories, so the data of the files go to group 17.
    """
    of = Names()
    of.make(1, 4, **TIMES)
    assert of.read == [1]
    ends = [60_000 + 1_532 * i for i in range(1, 5)]
    first = 16 * 8_192 + 1
    assert [inode.number for inode in of.made] == [first + i for i in range(1, 5)]
    leaves = [165_000, 165_000, 165_000, 165_001]
    assert of.stopped == [
        (end, 33, (524_320, leaf, 524_304, 1, 0)) for end, leaf in zip(ends, leaves, strict=True)
    ]  # fmt: skip
    assert (of.names.leaf_blocks, of.space.unclaimed) == (2, 1_800 - 50 - 2)
    assert of.spent.system == 60_000 + 4 * 1_500, "the caller accounts for its own work"
    assert [inode.wb for inode in of.made] == [(0, first + i, -1) for i in range(1, 5)]  # type: ignore[comparison-overlap]
    assert {(inode.goal_group, inode.transaction) for inode in of.made} == {(17, 6)}
    assert of.cache.cached_inodes == 4


def test_directory_goes_to_the_flex_group_with_the_fewest_directories() -> None:
    """Flex group 1 has more free inodes than the average until ten directories have taken one each.

    mkfs keeps 11 inodes in flex group 0.  If neither group has both blocks and inodes above the average, both
    groups count.  If each then has two directories, the hash selects the first group.
    """
    assert _flexes(Names(), 13) == [1] * 10 + [0, 1, 0]
    assert _flexes(Names(free=100), 4) == [1, 1, 0, 1]
    assert _flexes(Names(free=100, first_in_hash_order=1), 4) == [1, 1, 1, 0]


def _flexes(of: Names, directories: int) -> list[int]:
    of.make(directories, 0, **TIMES)
    assert of.env.now == 60_000 * directories
    return [directory.flex.number for directory in of.directories]


FEW = GEOMETRY._replace(blocks=24 * GROUP_BLOCKS, group_inodes=16)
"""256 inodes in the first flex group, 128 in the second."""


def test_files_go_to_the_next_flex_group_with_inodes() -> None:
    """The directory's own flex group has 256 inodes, of which mkfs uses 11 and the directory one."""
    of = Names(geometry=FEW)
    of.make(1, 250, **TIMES)
    numbers = [inode.number for inode in of.made]
    assert numbers == [*range(13, 257), *range(257, 263)]
    assert of.made[244].goal_group == 17
    assert of.directories[0].flex.number == 0


def test_a_file_without_a_free_inode_is_refused() -> None:
    """372 of 384 inodes are left after the first directory; a second directory is refused, too."""
    of = Names(geometry=FEW)
    with pytest.raises(NoSpace, match="every inode of the filesystem is in use"):
        of.make(1, 373, **TIMES)
    assert len(of.made) == 372
    with pytest.raises(NoSpace, match="every inode"):
        of.make(1, 0, **TIMES)


def test_a_file_without_a_block_for_names_is_refused() -> None:
    """The fourth name needs a leaf, and no block is free."""
    of = Names()
    of.make(1, 3, **TIMES)
    left = of.space.unclaimed
    of.mballoc.find_in = lambda group, blocks: (0, 0)
    with pytest.raises(NoSpace):
        of.make(0, 1, **TIMES)
    assert (len(of.made), of.names.leaf_blocks, of.space.unclaimed) == (3, 1, left)


def test_tables_of_a_short_flex_group_follow_its_own_bitmaps() -> None:
    """dumpe2fs of 10 GB: flex group 4 has 11 groups, so 11 bitmaps of blocks and 11 of inodes lie in front.

    Group 74 has its bitmap of inodes at block 2 097 173, and its inodes at 2 102 264.
    """
    geometry = Geometry(2_441_406, 16, descriptor_blocks=1_026, journal_blocks=16_384, group_inodes=8_144)
    assert (geometry.groups, geometry.size_of(74)) == (75, 16_574)
    assert [geometry.bitmap_block(74, inodes=inodes) for inodes in (False, True)] == [2_097_162, 2_097_173]
    assert geometry.inode_block(74 * 8_144 + 1) == 2_102_264


def test_root_lies_in_group_0_and_files_in_1() -> None:
    """The root takes no time and reads no bitmap; its files have the inodes behind that of lost+found."""
    of = Names(first_in_hash_order=1)
    root = of.names.root()
    assert (of.env.now, of.read, root.flex.number) == (0, [], 0)
    task = of.env.task("writer")

    def body() -> Steps:
        thread: Any = SimpleNamespace(task=task, spent=of.spent)
        of.made.append((yield from of.names.create(caller(thread), root)))

    of.env.start(task, body())
    of.env.run()
    assert [(inode.number, inode.goal_group) for inode in of.made] == [(12, 1)]
