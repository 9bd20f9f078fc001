"""sync(2) and fsync(2): the work that they queue, the writeback that they wait for, and the order of both."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from types import SimpleNamespace
from typing import Any

import pytest

from tests.harness import context, loop_config, only, page_cache
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.running.simulate import simulate
from wbsim.models.interfaces import LONG_MAX, InodeSync, WritebackControl
from wbsim.models.machine import build
from wbsim.models.syscalls.sync import Syncs
from wbsim.models.time_accounting import WAKE_UP, Spent
from wbsim.models.tracepoints import Signals
from wbsim.sim.engine import ABSENT, Environment, Steps
from wbsim.sim.sync import Completion, WakeUps
from wbsim.sim.units import MIB, PAGE_BYTES, SECTOR_BYTES


class Wb(list[int]):
    """A context with *inodes* listed inodes."""

    def __init__(self, name: str, inodes: int) -> None:
        super().__init__([0] * inodes)
        self.name = name

    __hash__ = object.__hash__  # type: ignore[assignment]


class Stage:
    """Two filesystems and three dirty pages; the second context of the first filesystem is clean.

    A flusher takes 10 ns for a work; with *drops* every work is dropped, and takes the syncing thread 20 ns.
    A wait for the writeback of a superblock takes 5 ns, and its log takes 1 ns.
    """

    def __init__(self, drops: bool = False) -> None:
        self.env = Environment()
        self.log: list[tuple[Any, ...]] = []
        self.drops = drops
        self.superblocks = [
            self._superblock("one", Wb("a", 1), Wb("b", 0)),
            self._superblock("two", Wb("c", 1)),
        ]
        self.syncs = Syncs(
            env=self.env, superblocks=self.superblocks, flushers=self,  # type: ignore[arg-type]
            cache=SimpleNamespace(dirty=3), perform=self._perform,  # type: ignore[arg-type]
            wakes=WakeUps(1_000_000),
        )  # fmt: skip

    def queue(self, wb: Wb, work: Any) -> Completion | None:
        """Queue *work* for *wb*: in the place of the flushers."""
        if self.drops:
            return None
        done = Completion(self.env, "it")
        asks = work.nr_pages if work.reason == "start" else work.sb.name
        self.log.append((self.env.now, work.reason, wb.name, asks))
        self.env.call_at(self.env.now + 10, 0, done.complete)
        return done

    def _perform(self, thread: Any, wb: Any, work: Any) -> Steps:
        yield 20
        self.log.append((self.env.now, "did", work.reason, wb.name))

    def _superblock(self, name: str, *wbs: Wb) -> Any:
        def wait_sb_inodes(thread: Any) -> Steps:
            yield 5
            self.log.append((self.env.now, "waited", name))

        def sync_fs(thread: Any) -> Steps:
            yield 1
            self.log.append((self.env.now, "sync_fs", name))

        return SimpleNamespace(
            name=name, bdi=Bdi(wbs=wbs), wait_sb_inodes=wait_sb_inodes,
            filesystem=SimpleNamespace(sync_fs=sync_fs),
        )  # fmt: skip

    def run(self, body: Callable[[Any], Steps]) -> list[tuple[Any, ...]]:
        """Run *body*, and return what happened and when."""
        task = self.env.task("sync")
        thread: Any = SimpleNamespace(task=task, spent=Spent())
        self.env.start(task, body(thread))
        self.env.run()
        return self.log


class Bdi(SimpleNamespace):
    """A device with contexts."""

    __hash__ = object.__hash__  # type: ignore[assignment]


def test_sync_starts_all_waits_for_each_then_forces_the_logs() -> None:
    """sync(2) does not start the writeback of a clean context, but does queue its work for data integrity."""
    stage = Stage()
    assert stage.run(stage.syncs.sync) == [
        (0, "start", "a", 3), (0, "start", "c", 3),
        (0, "sync", "a", "one"), (10, "sync", "b", "one"), (25, "waited", "one"),
        (25, "sync", "c", "two"), (40, "waited", "two"),
        (41, "sync_fs", "one"), (42, "sync_fs", "two"),
    ]  # fmt: skip


def test_a_device_of_two_filesystems_is_started_once() -> None:
    """wakeup_flusher_threads starts each device once; work for data integrity follows for each filesystem."""
    stage = Stage()
    stage.superblocks[1].bdi = stage.superblocks[0].bdi
    assert stage.run(stage.syncs.sync) == [
        (0, "start", "a", 3),
        (0, "sync", "a", "one"), (10, "sync", "b", "one"), (25, "waited", "one"),
        (25, "sync", "a", "two"), (35, "sync", "b", "two"), (50, "waited", "two"),
        (51, "sync_fs", "one"), (52, "sync_fs", "two"),
    ]  # fmt: skip


def test_syncfs_starts_waits_for_and_forces_one_filesystem() -> None:
    """syncfs(2) also waits for the first work, which starts writeback."""
    stage = Stage()
    assert stage.run(lambda thread: stage.syncs.syncfs(thread, stage.superblocks[0])) == [
        (0, "start", "a", 3),
        (10, "sync", "a", "one"), (20, "sync", "b", "one"), (35, "waited", "one"), (36, "sync_fs", "one"),
    ]  # fmt: skip


def test_syncing_thread_does_the_work_that_is_dropped() -> None:
    """The thread leaves out the first work of each device, because sync(2) does not wait for that work."""
    stage = Stage(drops=True)
    assert stage.run(stage.syncs.sync) == [
        (20, "did", "sync", "a"), (40, "did", "sync", "b"), (45, "waited", "one"),
        (65, "did", "sync", "c"), (70, "waited", "two"),
        (71, "sync_fs", "one"), (72, "sync_fs", "two"),
    ]  # fmt: skip


class Synced:
    """A file of a context, on a filesystem that takes 100 ns to write the file and 7 ns to commit its log.

    A wait for writeback takes *waits_ns*, and a wake-up 1 000 ns.  A worker *converts* the pages, or not.
    """

    def __init__(
        self, dirty_pages: int, dirtied_meanwhile: int = 0, converts: bool = False, plugs: bool = True,
        waits_ns: int = 50, commits_ns: int = 7,
    ) -> None:  # fmt: skip
        self.does_convert, self.plugs_files = converts, plugs
        self.waits_ns, self.commits_ns = waits_ns, commits_ns
        self.returned: list[int] = []
        self.env = Environment()
        self.log: list[tuple[int, str]] = []
        self.meanwhile = dirtied_meanwhile
        self.modes: list[tuple[str, bool]] = []
        self.wb = context(self.env)
        self.inode: Any = SimpleNamespace(
            wb=self.wb, sb=self, dirty_pages=dirty_pages, i_sync=None, dirtied_when=0
        )
        self.filesystem = self
        self.other: Any = SimpleNamespace(wb=self.wb, dirty_pages=1, i_sync=None, dirtied_when=0)
        self.wb.b_io.extend([self.other, self.inode] if dirty_pages else [self.other])
        task = self.env.task("dd")
        self.thread: Any = SimpleNamespace(
            task=task, spent=Spent(), start_plug=lambda: self._tell("plug"), finish_plug=self._finish_plug,
            before_sleep=lambda: self._tell("before sleep"),
        )  # fmt: skip
        none: Any = None
        self.syncs = Syncs(
            env=self.env, superblocks=(), flushers=none, cache=page_cache(), perform=none,
            wakes=WakeUps(1_000),
        )  # fmt: skip

    def _tell(self, what: str) -> bool:
        self.log.append((self.env.now, what))
        return True

    def _finish_plug(self) -> Steps:
        self._tell("unplug")
        yield 1

    def write_pages(self, thread: Any, inode: Any, wbc: WritebackControl) -> Steps:
        """Write all pages in 100 ns, in the place of the filesystem, and dirty *dirtied_meanwhile* pages."""
        assert inode.i_sync in self.wb.i_syncs
        assert (wbc.nr_to_write, wbc.from_start) == (LONG_MAX, True)
        self.modes.append((wbc.reason, wbc.sync_all))
        yield 100
        inode.dirty_pages = self.meanwhile
        self._tell("written")

    def converts(self, inode: Any) -> bool:
        """Return whether a worker converts the pages of the file."""
        assert inode is self.inode
        return self.does_convert

    def wait_for_writeback(self, thread: Any, inode: Any) -> Steps:
        """Wait for ``waits_ns``: in the place of the filesystem."""
        assert inode is self.inode
        yield self.waits_ns
        self._tell("on disk")

    def commit_inode(self, thread: Any, inode: Any, datasync: bool) -> Steps:
        """Commit the last change of the file in ``commits_ns``: in the place of the filesystem."""
        assert inode is self.inode
        yield self.commits_ns
        self._tell("data logged" if datasync else "logged")

    def run(self, call: str = "fsync", **options: bool) -> list[tuple[int, str]]:
        """Run *call*, fsync(2) or filemap_flush, and return what happened and when."""
        self.env.start(
            self.thread.task, self.until(getattr(self.syncs, call)(self.thread, self.inode, **options))
        )
        self.env.run()
        return self.log

    def until(self, call: Steps) -> Steps:
        """Run *call*, and note when it returned."""
        yield from call
        self.returned.append(self.env.now)


def test_fsync_writes_waits_and_commits_the_log() -> None:
    """fsync(2) takes the file off its list, and the other file stays on the list."""
    synced = Synced(3)
    assert synced.run() == [
        (0, "plug"), (100, "written"), (100, "unplug"), (151, "on disk"), (1_158, "logged"),
    ]  # fmt: skip
    assert synced.returned == [1_158 + 3_000]
    assert (list(synced.wb.b_io), list(synced.wb.b_dirty), synced.inode.i_sync, synced.wb.i_syncs) == (
        [synced.other], [], None, []
    )  # fmt: skip
    assert synced.modes == [("sync", True)]


def test_fdatasync_waits_for_no_time_stamps() -> None:
    """It differs from fsync(2) in the commit alone."""
    assert Synced(3).run(datasync=True) == [
        (0, "plug"), (100, "written"), (100, "unplug"), (151, "on disk"), (1_158, "data logged"),
    ]  # fmt: skip
    assert Synced(0).run(datasync=True) == [(50, "on disk"), (1_057, "data logged")]


@pytest.mark.parametrize("call", ["fsync", "flush"])
def test_filesystem_without_plugs_for_files_gets_none(call: str) -> None:
    """The bios of the file go to the device one by one, so nothing is left to empty."""
    synced = Synced(3, plugs=False)
    assert [what for _, what in synced.run(call)][:2] == ["written", "on disk"][: 1 + (call == "fsync")]
    assert {"plug", "unplug"}.isdisjoint(what for _, what in synced.log)


@pytest.mark.parametrize(
    ("options", "logged_ns", "returned_ns"),
    [
        ({}, 1_057, 4_057),
        ({"converts": True}, 2_057, 5_057),
        ({"waits_ns": 0}, 7, 3_007),
        ({"waits_ns": 0, "converts": True}, 7, 3_007),
        ({"commits_ns": 0}, 1_050, 1_050),
        ({"waits_ns": 0, "commits_ns": 0, "converts": True}, 0, 0),
    ],
)
def test_each_sleep_of_fsync_ends_with_wake_ups(
    options: dict[str, Any], logged_ns: int, returned_ns: int
) -> None:
    """One wake-up follows the data, and two with a conversion; three follow the log.

    None follows a wait without a sleep.
    """
    synced = Synced(0, **options)
    assert synced.run()[-1] == (logged_ns, "logged")
    assert synced.returned == [returned_ns]


@pytest.mark.parametrize("scheduled", [False, True])
def test_time_of_the_wake_ups_is_slept(scheduled: bool) -> None:
    """The task gives up its processor for them, and the last one is the time of a wake-up."""
    synced, leaves = Synced(0, converts=True), list[int]()
    if scheduled:
        synced.thread.task.scheduler = SimpleNamespace(
            leave=lambda task: leaves.append(synced.env.now), wants=lambda task, waker=None: True,
            sleeps=lambda task: None,
        )  # fmt: skip
    synced.run()
    assert synced.thread.task.waits_for in (WAKE_UP, ABSENT)
    assert leaves == ([50, 2_057, 5_057] if scheduled else [])


def test_flush_writes_all_pages_and_waits_for_none() -> None:
    """The task takes the file off its list, and the file returns there if pages become dirty meanwhile."""
    synced = Synced(3, dirtied_meanwhile=2)
    assert synced.run("flush") == [(0, "plug"), (100, "written"), (100, "unplug")]
    assert synced.returned == [101]
    assert synced.modes == [("start", False)]
    assert (list(synced.wb.b_io), list(synced.wb.b_dirty), synced.inode.i_sync, synced.wb.i_syncs) == (
        [synced.other], [synced.inode], None, []
    )  # fmt: skip
    assert Synced(0).run("flush") == []


def test_flush_waits_for_the_flusher_of_the_file() -> None:
    """The flusher leaves the file with three dirty pages at 150 001."""
    synced = Synced(3)
    i_sync = InodeSync(synced.env)
    i_sync.begin(synced.inode)
    synced.env.call_at(150_001, 0, lambda: i_sync.end(synced.inode))
    assert synced.run("flush") == [
        (0, "before sleep"), (150_001, "plug"), (150_101, "written"), (150_101, "unplug"),
    ]  # fmt: skip


def test_file_dirtied_during_fsync_is_listed_with_its_age() -> None:
    """The file is listed in front of younger files, so a sync(2) that began during the fsync(2) finds it."""
    synced = Synced(3, dirtied_meanwhile=2)
    synced.inode.dirtied_when = 7
    young: Any = SimpleNamespace(wb=synced.wb, dirty_pages=1, i_sync=None)
    synced.wb.add(young, 50)
    synced.run()
    assert (list(synced.wb.b_io), list(synced.wb.b_dirty), synced.inode.dirtied_when) == (
        [synced.other], [synced.inode, young], 7
    )  # fmt: skip


def test_fsync_of_a_clean_file_waits_and_commits() -> None:
    """The task waits for pages under writeback and commits the log, but writes no page."""
    assert Synced(0).run() == [(50, "on disk"), (1_057, "logged")]


def test_fsync_waits_for_the_flusher_of_the_file() -> None:
    """The task empties its plug before it sleeps, and the flusher leaves the file clean at 150 001."""
    synced = Synced(0)
    i_sync = InodeSync(synced.env)
    i_sync.begin(synced.inode)
    synced.env.call_at(150_001, 0, lambda: i_sync.end(synced.inode))
    assert synced.run() == [(0, "before sleep"), (150_051, "on disk"), (151_058, "logged")]


def test_fsync_waits_for_the_next_flusher_of_the_file() -> None:
    """A second thread takes the file at the instant at which the first leaves it."""
    synced = Synced(0)
    first, second = InodeSync(synced.env), InodeSync(synced.env)
    first.begin(synced.inode)

    def taken_over() -> None:
        first.end(synced.inode)
        second.begin(synced.inode)

    synced.env.call_at(150_001, 0, taken_over)
    synced.env.call_at(300_001, 0, lambda: second.end(synced.inode))
    assert synced.run()[-2:] == [(300_051, "on disk"), (301_058, "logged")]


def test_second_fsync_of_a_file_waits_for_the_first_write() -> None:
    """The second fsync(2) writes no page itself.

    t      first                    second
    0      writes the pages
    30                              comes, and waits for the first
    100    empties its plug
    101    waits for writeback      waits for writeback
    151    wakes up                 wakes up
    1151   commits the log          commits the log
    1158   wakes up                 wakes up
    4158   returns                  returns
    """
    synced = Synced(3)
    task = synced.env.task("another dd")
    other: Any = SimpleNamespace(**{**vars(synced.thread), "task": task, "spent": Spent()})
    synced.env.start(other.task, synced.until(synced.syncs.fsync(other, synced.inode)), 30)
    synced.run()
    assert synced.log == [
        (0, "plug"), (30, "before sleep"), (100, "written"), (100, "unplug"), (151, "on disk"),
        (151, "on disk"), (1_158, "logged"), (1_158, "logged"),
    ]  # fmt: skip
    assert synced.returned == [4_158, 4_158]


@pytest.mark.parametrize("filesystem", ["loop-xfs", "loop-ext4"])
def test_dd_with_fsync_ends_when_its_file_is_on_disk(filesystem: str) -> None:
    """All sectors of the file are written, and the log is committed.

    Without conv=fsync a part of the file is still dirty.
    """
    disks = []
    for conv in ("", " conv=fsync"):
        text = loop_config(
            f"dd if=/dev/zero of=/f bs=1M count=12{conv}", dirty_mib=16, filesystem=filesystem,
            more="sync_after = false",
        )  # fmt: skip
        (case,) = parse(text, "x.toml").cases
        machine = simulate(case, 1)
        disks.append(only(machine.queues).stat.writes.sectors)
        dirty = only(machine.mounts).filesystem.layouts()[0].dirty
        assert (dirty == 0) == bool(conv)
        assert (only(machine.mounts).filesystem.log_bytes > 0) == bool(conv)
    assert disks[0] < 12 * MIB // SECTOR_BYTES <= disks[1]


BESIDE_A_STREAM = """\
title = "a file of a page is saved while 60 MiB of another one are written back"
[scenario]
machine.like = "loop-vm"
machine.processors.count = 4
machine.disks.d.like = "sata-disk"
machine.disks.d.device.speed = 0.1
kernel.like = "3.11"
kernel.dirty = {{ dirty_bytes = "64 MiB", dirty_background_bytes = "1 MiB" }}
sync_after = true
mounts.m = {{ like = "loop-{filesystem}", disk = "d", at = "/m", size = "4 GiB" }}
programs.stream = "dd if=/dev/zero of=/m/a bs=1M count=60"
programs.save = {{ command = "dd if=/dev/zero of=/m/b bs=4k count=1 conv=fsync", start = "100 ms" }}
"""


@pytest.mark.parametrize("filesystem", ["xfs", "ext4"])
def test_fsync_waits_for_no_other_file(filesystem: str) -> None:
    """CFQ serves the save before the stream, of which 12 MiB at least are still under writeback."""
    (case,) = parse(BESIDE_A_STREAM.format(filesystem=filesystem), "x.toml").cases
    machine = build(case.scenario, 1)
    program, under_writeback = machine.programs["save"], list[int]()
    ends = program.on_end

    def saved() -> None:
        under_writeback.append(machine.cache.writeback)
        ends()

    program.on_end = saved
    machine.run()
    assert under_writeback[0] > 12 * MIB // PAGE_BYTES


@pytest.mark.parametrize(
    ("filesystem", "kernel", "synchronous"),
    [
        ("loop-xfs", "2.6.32", False), ("loop-xfs", "2.6.34", True), ("loop-xfs", "6.18", True),
        ("loop-ext4", "2.6.29", False), ("loop-ext4", "2.6.32", True), ("loop-ext4", "6.18", True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", ["4k", "64k"])
def test_data_of_fsync_is_synchronous_and_other_data_is_not(
    filesystem: str, kernel: str, synchronous: bool, size: str
) -> None:
    """REQ_SYNC: of a small file and a large one, with fsync(2), and with the first pass of sync(2).

    The bios in front of the first one with REQ_META, which is the log's, are data.
    A file of 4 KiB is one run; of a file with 20 calls of 64 KiB each page is kept.
    """
    marks = []
    count = 1 if size == "4k" else 20
    for more in (" conv=fsync", ""):
        text = loop_config(
            f"dd if=/dev/zero of=/f bs={size} count={count}{more}", dirty_mib=40, kernel=kernel,
            filesystem=filesystem, more="sync_after = true",
        )  # fmt: skip
        (case,) = parse(text, "x.toml").cases
        signals, bios = Signals(), list[Any]()
        signals.block_bio_queue.observers.append(lambda _, bio, task, bios=bios: bios.append(bio))
        build(case.scenario, 1, signals=signals).run()
        marks.append({bio.sync for bio in takewhile(lambda bio: not bio.meta, bios)})
    assert marks == [{synchronous}, {False}]
