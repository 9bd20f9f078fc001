"""A new name in XFS: its cost, its inode, and the blocks that it takes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

import pytest

from tests.harness import caller, inodes_of, page_cache
from wbsim.models.filesystems.blocks import Space
from wbsim.models.filesystems.xfs.free_space import FreeSpace
from wbsim.models.filesystems.xfs.groups import Group
from wbsim.models.filesystems.xfs.names import Directory, XfsInode, XfsNames
from wbsim.models.interfaces import NoSpace
from wbsim.models.page_cache.accounting import PageCache
from wbsim.models.page_cache.spec import DirtyLimits, MemorySpec
from wbsim.models.time_accounting import Spent
from wbsim.sim.engine import Environment, Steps, Task
from wbsim.sim.sync import HandOff, Semaphore, SpinLock, WakeUps
from wbsim.sim.units import MIB

TIMES: Final = {"lead_ns": 5, "factor": 1.5, "then_ns": 20}
"""The caller takes 5 ns before each file and 20 ns after it; creat(2) takes 1.5 times as long."""


class Names:
    """The names of two groups of 1 000 blocks, 16 of which mkfs uses; clusters of 32 inodes of 512 bytes."""

    def __init__(self, agi_ns: int = 0, cache: PageCache | None = None, inode_bytes: int = 512) -> None:
        self.env = env = Environment()
        self.read: list[tuple[str, int, int]] = []
        self.logged: list[tuple[int, int, list[int]]] = []
        self.sectors: list[int] = []
        self.made: list[XfsInode] = []
        self.groups = [
            Group(
                i,
                1_000 * i,
                FreeSpace(16, 984),
                Semaphore(env, "AGF", WakeUps(0)),
                Semaphore(env, "AGI", WakeUps(70)),
            )
            for i in range(2)
        ]
        self.log: Any = SimpleNamespace(
            full=False, checkpoint=7, insert_item=self._insert_item, commit=self._commit,
            commit_ns=lambda items: 10 * items,
            cil_section=SpinLock(env, "cil", HandOff(0, 0)).section,
        )  # fmt: skip
        self.cache = cache or page_cache()
        bdi: Any = SimpleNamespace(wb_of=lambda *place: place)
        self.inodes = inodes_of(env, bdi, self.cache, 10, {"unhash": "all"})
        sb: Any = SimpleNamespace(inodes=self.inodes, read=self._read)
        spec: Any = SimpleNamespace(
            inode_bytes=inode_bytes,
            cluster_bytes=32 * inode_bytes,
            dirent_bytes=32,
            inode_log_bytes=300,
            dirent_log_bytes=200,
            create_items=10,
            remove_items=8,
            inactivate_items=5,
        )
        costs: Any = SimpleNamespace(
            create_ns=1_000, agi_ns=agi_ns, chunk_ns=40_000, dir_block_ns=10_000, mkdir_ns=60_000,
            iget_ns=2_000, remove_ns=4_000, inactivate_ns=6_000,
        )  # fmt: skip
        self.spent = Spent()
        self.space = Space(2 * 984, 100)
        self.names = XfsNames(
            sb=sb, spec=spec, costs=costs, groups=self.groups, log=self.log, space=self.space
        )  # fmt: skip

    def _read(self, thread: Any, sector: int, sectors: int) -> Steps:
        self.read.append((thread.task.name, sector, sectors))
        yield 300

    def act(self, name: str, act: str, times: int) -> None:
        """Let the task *name* look up or unlink *times* files, 1.5 times as slowly, after 5 ns each."""
        thread: Any = SimpleNamespace(task=self.env.task(name), spent=self.spent, before_sleep=lambda: None)

        def body() -> Steps:
            for _ in range(times):
                yield from getattr(self.names, act)(caller(thread, lead_ns=5, factor=1.5))

        self.env.start(thread.task, body())
        self.env.run()

    def _insert_item(self, buffer: Any) -> None:
        self.sectors.append(buffer.start_sector)

    def _commit(self, size_bytes: int) -> None:
        self.logged.append((self.env.now, size_bytes, self.sectors))
        self.sectors = []

    def make(self, directories: int, files: int, **times: Any) -> Task:
        """Make *directories* directories and, in the last one, *files* files.

        *times* are the work around each call.
        """
        task = self.env.task("writer")

        def body() -> Steps:
            thread: Any = SimpleNamespace(task=task, spent=self.spent, before_sleep=lambda: None)
            for _ in range(directories):
                directory = yield from self.names.mkdir(thread)
            for _ in range(files):
                self.made.append((yield from self.names.create(caller(thread, **times), directory)))

        self.env.start(task, body())
        self.env.run()
        return task


def test_create_without_times_takes_its_own_time() -> None:
    """The third file takes 1 110 ns, and the caller takes none."""
    ends = []
    for files in (2, 3):
        of = Names()
        of.make(1, files)
        ends.append(of.env.now)
    assert ends[1] - ends[0] == 1_110


def test_each_name_takes_its_time_and_its_blocks() -> None:
    """The directory takes 60 000 ns in group 0, and each name takes 5 + 1 500 + 10 + 100 + 20 ns.

    name    also takes
    1       a chunk of 8 blocks from 16 on (40 000 ns), and a block for names at 24 (10 000 ns)
    65      a chunk from 25 on
    129     a chunk from 33 on, and a block for names at 41

    Each name logs the buffer of its inode, which has 32 sectors, and the block for names.
    """
    of = Names()
    of.make(1, 129, **TIMES)
    first = [60_000 + 50_000 + 1_635 * i for i in range(1, 65)]
    second = [first[-1] + 40_000 + 1_635 * i for i in range(1, 65)]
    assert [when for when, _, _ in of.logged] == [*first, *second, second[-1] + 50_000 + 1_635]
    assert {size for _, size, _ in of.logged} == {500}
    clusters = [8 * 16] * 32 + [8 * 16 + 32] * 32 + [8 * 25] * 32 + [8 * 25 + 32] * 32 + [8 * 33]
    blocks = [8 * 24] * 128 + [8 * 41]
    assert [buffers for _, _, buffers in of.logged] == [
        list(pair) for pair in zip(clusters, blocks, strict=True)
    ]
    assert of.spent.commit == 129 * 100
    assert of.spent.system == of.logged[-1][0] - 129 * (5 + 20), "the caller accounts for its own work"
    places: Any = [inode.wb for inode in of.made]
    assert {(group, cpu) for group, _, cpu in places} == {(0, -1)}
    assert len({number for _, number, _ in places}) == 129
    assert {(inode.checkpoint, inode.group.number) for inode in of.made} == {(7, 0)}
    assert of.cache.cached_inodes == 129
    assert (
        of.space.unclaimed == 2 * 984 - 100 - 3 * 8 - 2 == sum(group.free.blocks for group in of.groups) - 100
    )


@pytest.mark.parametrize(("blocks", "named"), [(0, 0), (8, 0), (9, 64)])
def test_a_name_without_free_blocks_claims_none(blocks: int, named: int) -> None:
    """A chunk of inodes needs 8 blocks, and names need a block; the 65th file needs a chunk more."""
    of = Names()
    of.groups[0].free.take_near(0, 984 - blocks)
    of.space.unclaimed = sum(group.free.blocks for group in of.groups) - of.space.reserve
    with pytest.raises(NoSpace):
        of.make(1, 65)
    assert len(of.made) == named
    of.space.check("xfs", sum(group.free.blocks for group in of.groups), 0)


def test_directories_take_the_groups_in_rotation() -> None:
    """The second directory lies in group 1, and the third in group 0 again; the files lie with them."""
    for directories, group in ((1, 0), (2, 1), (3, 0)):
        of = Names()
        of.make(directories, 1, **TIMES)
        assert of.made[0].group is of.groups[group]
        assert of.logged[0][2] == [8 * (1_000 * group + 16), 8 * (1_000 * group + 24)]


def test_a_name_waits_for_the_group_and_for_the_log() -> None:
    """The AGF is held until 70 000; the log is full until 150 000."""
    of = Names()
    agf = of.groups[0].agf
    assert agf.try_down()
    of.env.call_at(70_000, 0, lambda: agf.up(of.env.task("holder")))

    def wait_for_space(thread: Any) -> Steps:
        of.log.full = False
        yield 150_000 - of.env.now

    of.log.full, of.log.wait_for_space = True, wait_for_space
    of.make(1, 1, **TIMES)
    assert of.logged[0][0] == 150_000 + 1_635
    assert agf.stat.contentions == 1
    assert agf.free


def test_creation_evicts_a_batch_when_memory_is_full() -> None:
    """64 MiB have room for 64 inodes of 1 MiB; of 200 cached inodes, 128 are evicted before the creation."""
    memory = MemorySpec(memory=64 * MIB, kernel_reserve=0, inode_slab_bytes=MIB)
    for cached, left in ((200, 72), (60, 60)):
        of = Names(cache=PageCache(memory, DirtyLimits(dirty_background_ratio=10, dirty_ratio=20)))
        of.inodes.add_cached(cached)
        of.make(1, 1)
        assert of.cache.cached_inodes == of.inodes.cached == left + 1


def test_each_task_reads_a_cluster_for_its_next_32_inodes() -> None:
    """A cluster has 32 inodes of 256 B in 16 sectors, and a row of clusters begins at each group.

    Group 1 begins at sector 8 000.  The groups take turns, and the second round reads the next clusters.
    """
    of = Names(inode_bytes=256)
    of.act("a", "look_up", 3 * 32)
    of.act("b", "look_up", 1)
    of.act("a", "look_up", 1)
    assert of.read == [
        ("a", 8_000, 16), ("a", 16, 16), ("a", 8_016, 16), ("b", 32, 16), ("a", 8_032, 16),
    ]  # fmt: skip
    assert of.inodes.cached == 3 * 32 + 2


def test_looked_up_inode_takes_its_time_and_joins_the_lists() -> None:
    """The lookup takes 300 ns to read the cluster, 5 + 3 000 ns, and 10 ns on the superblock's list."""
    of = Names()
    of.act("a", "look_up", 2)
    assert of.env.now == 300 + 2 * 3_015
    assert of.spent.lookup == 2 * 3_000
    stats = [lines[0].lock.stat.acquisitions for lines in (of.inodes._locks.sb_lists, of.inodes._locks.lrus)]
    assert stats == [2, 2]


def test_unlink_logs_two_transactions() -> None:
    """The name and two inodes take 2 * 300 + 200 bytes, and the inode that is freed takes 300 + 200.

    event                          at
    the cluster is read              300
    inode and name are removed     9 305    5 + 1.5 * (2 000 + 4 000)
    the inode leaves the list      9 315    10 ns to join it
    the first commit               9 395    8 items of 10 ns; then 1.5 * 6 000 ns of inactivation
    the second commit             18 445    5 items of 10 ns
    """
    of = Names()
    of.inodes.add_cached(1)
    of.act("a", "unlink", 1)
    assert [(when, size) for when, size, _ in of.logged] == [(18_395, 800), (18_445, 500)]
    assert (of.spent.unlink, of.spent.commit) == (9_000 + 9_000, 80 + 50)


def test_files_of_one_group_are_made_one_at_a_time() -> None:
    """A creat(2) holds the AGI for 600 of 1 500 ns and for the commit, and 50 000 ns more for a new chunk.

    The second writer asks for the lock with the first, sleeps, and owns the lock while it wakes up for 70 ns.
    """
    of = Names(agi_ns=400)
    tasks = [of.env.task(name) for name in ("a", "b")]
    ends: list[int] = []

    def body(task: Task) -> Steps:
        thread: Any = SimpleNamespace(task=task, spent=of.spent, before_sleep=lambda: None)
        yield from of.names.create(caller(thread, **TIMES), directory)
        ends.append(of.env.now)

    directory = Directory(of.groups[0])
    for task in tasks:
        of.env.start(task, body(task))
    of.env.run()
    first = 905 + 50_000 + 600 + 10 + 100
    second = first + 70 + 600 + 10 + 100
    assert [when for when, _, _ in of.logged] == [first, second]
    assert ends == [first + 20, second + 20]
    assert (of.spent.create, of.spent.commit) == (50_000 + 2 * 1_500, 200)
    stat = of.groups[0].agi.stat
    assert (stat.acquisitions, stat.contentions, stat.hold_ns) == (2, 1, second - 905)
    assert of.groups[1].agi.stat.acquisitions == 0


def test_a_writer_that_waits_for_log_space_has_no_agi() -> None:
    """The log is full until 150 000, and the AGI is free until then."""
    of = Names(agi_ns=400)

    def wait_for_space(thread: Any) -> Steps:
        of.log.full = False
        assert of.groups[0].agi.try_down()
        of.groups[0].agi.up(of.env.task("holder"))
        yield 150_000 - of.env.now

    of.log.full, of.log.wait_for_space = True, wait_for_space
    of.make(1, 1, **TIMES)
    assert of.logged[0][0] == 150_000 + 905 + 50_000 + 600 + 10 + 100


def test_transaction_with_space_continues_although_the_log_fills() -> None:
    """The log fills before the writer takes the AGI, but its transaction has its space already."""
    of = Names(agi_ns=400)

    def wait_for_space(thread: Any) -> Steps:
        raise AssertionError(thread)

    of.log.wait_for_space = wait_for_space
    of.env.call_at(60_500, 0, lambda: setattr(of.log, "full", True))
    of.make(1, 1, **TIMES)
    assert of.logged[0][0] == 60_000 + 905 + 50_000 + 600 + 10 + 100


def test_root_lies_in_group_0_and_takes_no_turn() -> None:
    """The first subdirectory takes group 0 and the next one group 1, whether the root was used before or not.

    The root lies in group 0 whenever it is used.
    """
    of = Names()
    assert of.names.root().group is of.groups[0]
    of.make(1, 0, **TIMES)
    assert of.names.root().group is of.groups[0]
    assert of.names._rotor == 1
