"""The calls of a process for files by their paths: open, rename, remove, resize, exit, and their errors."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.harness import only
from tests.models.syscalls.test_toy_program import Toys
from wbsim.experiments.config.experiment import parse
from wbsim.models.interfaces import NoFile
from wbsim.models.machine import build
from wbsim.models.syscalls.process import Process
from wbsim.sim.engine import CallError, Steps

Body = Callable[[Process], Steps]
on_both = pytest.mark.parametrize("filesystem", ["xfs", "ext4"])


def sizes(toys: Toys) -> dict[str, int]:
    """Return the size of each file that has a name (pages)."""
    sb: Any = only(toys.machine.mounts)
    return {path: sb.filesystem.size_of(dentry.inode) for path, dentry in sb.dentries.items()}


def counts(process: Process) -> dict[str, int]:
    """Return the number of calls of each kind."""
    return {name: latency.count for name, latency in process.latencies.by_call().items() if latency.count}


def close_file(process: Process, inode: Any) -> Steps:
    """Close *inode*."""
    if (ready := process.close(inode)) is not None:
        yield ready


def make_file(process: Process, path: str, pages: int = 4) -> Steps:
    """Make a file of *pages* pages and close it."""
    inode = yield from process.open(path)
    if pages:
        yield process.write(inode, pages)
    yield from close_file(process, inode)


def run(filesystem: str, *bodies: Body) -> tuple[Toys, list[Process]]:
    """Run a process with each of *bodies*, one millisecond apart."""
    toys = Toys(filesystem)
    processes = [toys.start(body, number * 1_000_000) for number, body in enumerate(bodies)]
    toys.run()
    return toys, processes


@on_both
def test_open_makes_a_file_only_if_it_may(filesystem: str) -> None:
    """Without O_CREAT a path without a file is an error, and leaves no name."""
    errors: list[str] = []

    def toy(process: Process) -> Steps:
        try:
            yield from process.open("/m/none", creates=False)
        except NoFile as error:
            errors.append(str(error))
        yield from make_file(process, "/m/f")
        inode = yield from process.open("/m/f", creates=False)
        yield from close_file(process, inode)

    toys, (process,) = run(filesystem, toy)
    assert errors == ["/m/none: No such file or directory"]
    assert sizes(toys) == {"/m/f": 4}
    assert counts(process)["creat"] == 1


@on_both
def test_open_truncates_only_a_file_with_pages(filesystem: str) -> None:
    """O_TRUNC of a file of four pages is a call with a latency; of an empty one it takes no time."""
    times: list[int] = []

    def toy(process: Process) -> Steps:
        yield from make_file(process, "/m/f")
        for _ in range(2):
            began_ns = toys_env().now
            inode = yield from process.open("/m/f", truncates=True)
            times.append(toys_env().now - began_ns)
            assert process.pages_of("/m/f") == 0
            yield from close_file(process, inode)

    toys = Toys(filesystem)

    def toys_env() -> Any:
        return toys.machine.env

    process = toys.start(toy)
    toys.run()
    assert times[0] > 0 == times[1]
    assert counts(process)["open"] == 1
    assert sizes(toys) == {"/m/f": 0}


@on_both
def test_second_open_waits_for_the_creation(filesystem: str) -> None:
    """A process that opens the file while it is made gets the same inode, later, and makes none."""
    inodes: list[Any] = []

    def toy(process: Process) -> Steps:
        inode = yield from process.open("/m/f")
        inodes.append(inode)
        yield from close_file(process, inode)

    toys = Toys(filesystem)
    first, second = toys.start(toy), toys.start(toy, 1)
    toys.run()
    assert inodes[0] is inodes[1]
    assert (counts(first)["creat"], counts(second).get("creat", 0)) == (1, 0)
    assert counts(second)["open"] == 1


@on_both
def test_size_of_a_path_is_asked_without_time(filesystem: str) -> None:
    """-1: there is no file."""
    results: list[int] = []

    def toy(process: Process) -> Steps:
        results.append(process.pages_of("/m/f"))
        yield from make_file(process, "/m/f", 0)
        results.append(process.pages_of("/m/f"))
        yield from make_file(process, "/m/g", 7)
        results.append(process.pages_of("/m/g"))
        yield from process.unlink_file("/m/g")
        results.append(process.pages_of("/m/g"))

    run(filesystem, toy)
    assert results == [-1, 0, 7, -1]


@on_both
def test_rename_gives_a_file_another_path(filesystem: str) -> None:
    """A file at the new path is replaced, and its blocks are free again."""

    def toy(process: Process) -> Steps:
        yield from make_file(process, "/m/f", 3)
        yield from make_file(process, "/m/g", 9)
        yield from process.sync()
        yield from process.rename("/m/f", "/m/h")
        yield from process.rename("/m/h", "/m/g")

    toys, (process,) = run(filesystem, toy)
    assert sizes(toys) == {"/m/g": 3}
    assert counts(process)["rename"] == 2
    filesystem_of: Any = only(toys.machine.mounts).filesystem
    assert [file.size for file in filesystem_of.layouts()] == [3]


@on_both
@pytest.mark.parametrize("call", ["remove", "rename"])
def test_call_of_a_missing_file_is_an_error(filesystem: str, call: str) -> None:
    """It names the path, and nothing else changes."""
    errors: list[str] = []

    def toy(process: Process) -> Steps:
        yield from make_file(process, "/m/g")
        try:
            if call == "remove":
                yield from process.unlink_file("/m/f")
            else:
                yield from process.rename("/m/f", "/m/g")
        except NoFile as error:
            errors.append(str(error))

    toys, (process,) = run(filesystem, toy)
    assert errors == ["/m/f: No such file or directory"]
    assert sizes(toys) == {"/m/g": 4}
    assert not {"unlink", "rename"} & counts(process).keys()


TWO_MOUNTS = """\
title = "two filesystems"
[scenario]
machine.like = "desktop-2018"
kernel.like = "6.12"
mounts.m = { like = "ext4", size = "20 GB", at = "/m" }
mounts.n = { like = "ext4", size = "20 GB", at = "/n" }
programs.s = { command = "sync", start = "1 s" }
"""


def test_rename_to_another_filesystem_is_an_error() -> None:
    """EXDEV; the file keeps its path."""
    (case,) = parse(TWO_MOUNTS, "x.toml").cases
    machine = build(case.scenario, 1)
    errors: list[str] = []

    def toy(process: Process) -> Steps:
        yield from make_file(process, "/m/f")
        try:
            yield from process.rename("/m/f", "/n/f")
        except CallError as error:
            errors.append(str(error))
        assert process.pages_of("/m/f") == 4

    process = machine.process("toy")
    machine.env.start(process.task, toy(process))
    machine.run()
    assert errors == ["/n/f: Invalid cross-device link"]


@on_both
def test_removed_file_stays_until_its_last_close(filesystem: str) -> None:
    """Its blocks stay while a process has it open; a new file may have its path meanwhile."""
    files: list[int] = []

    def toy(process: Process) -> Steps:
        disk: Any = only(toys.machine.mounts).filesystem
        inode = yield from process.open("/m/f")
        yield process.write(inode, 5)
        yield from process.unlink_file("/m/f")
        yield process.write(inode, 2)
        yield from process.fsync(inode)
        files.append(sum(file.size for file in disk.layouts()))
        yield from make_file(process, "/m/f", 1)
        yield from close_file(process, inode)
        yield from process.sync()
        files.append(sum(file.size for file in disk.layouts()))

    toys = Toys(filesystem)
    process = toys.start(toy)
    toys.run()
    assert files == [7, 1]
    assert sizes(toys) == {"/m/f": 1}
    assert counts(process)["unlink"] == 1


@on_both
def test_exit_closes_the_files_that_are_open(filesystem: str) -> None:
    """It closes each file with a name once; this frees a removed file."""

    def toy(process: Process) -> Steps:
        for path in ("/m/f", "/m/g", "/m/h"):
            inode = yield from process.open(path)
            yield process.write(inode, 2)
        yield from close_file(process, inode)
        yield from process.sync()
        yield from process.unlink_file("/m/g")
        yield from process.exits()
        yield from process.exits()

    toys, (process,) = run(filesystem, toy)
    assert counts(process)["close"] == 3
    assert sizes(toys) == {"/m/f": 2, "/m/h": 2}
    disk: Any = only(toys.machine.mounts).filesystem
    assert [file.size for file in disk.layouts()] == [2, 2]


@on_both
@pytest.mark.parametrize(("keeps", "size"), [(False, 64), (True, 4)])
def test_fallocate_gives_blocks_and_perhaps_a_size(filesystem: str, keeps: bool, size: int) -> None:
    """A file of four pages gets 64 blocks; it is as long, or not."""
    results: list[int] = []

    def toy(process: Process) -> Steps:
        disk: Any = only(toys.machine.mounts).filesystem
        inode = yield from process.open("/m/f")
        yield process.write(inode, 4)
        yield from process.fsync(inode)
        free_blocks_before = disk.placement.free_blocks
        yield from process.fallocate(inode, 64, keeps)
        results.extend([free_blocks_before - disk.placement.free_blocks, process.pages_of("/m/f")])
        yield from close_file(process, inode)

    toys = Toys(filesystem)
    process = toys.start(toy)
    toys.run()
    assert results[1] == size
    assert results[0] >= 0
    assert counts(process)["fallocate"] == 1


@on_both
@pytest.mark.parametrize("pages", [0, 1, 3, 9])
def test_ftruncate_makes_a_file_as_long(filesystem: str, pages: int) -> None:
    """A file of four pages becomes shorter, or longer; the dirty pages behind its end are gone."""
    results: list[int] = []

    def toy(process: Process) -> Steps:
        inode: Any = yield from process.open("/m/f")
        yield process.write(inode, 4)
        yield from process.ftruncate(inode, pages)
        results.extend([process.pages_of("/m/f"), inode.dirty_pages])
        yield from close_file(process, inode)

    _, (process,) = run(filesystem, toy)
    assert results == [pages, min(pages, 4)]
    assert counts(process)["ftruncate"] == 1


@pytest.mark.parametrize(
    ("filesystem", "kernel", "plugs"),
    [
        ("xfs", "3.11", True), ("xfs", "4.4", True), ("xfs", "4.9", False), ("xfs", "6.18", False),
        ("ext4", "3.11", True), ("ext4", "4.9", True), ("ext4", "6.18", True),
    ],
)  # fmt: skip
def test_xfs_opens_no_plug_for_fsync_since_4_6(filesystem: str, kernel: str, plugs: bool) -> None:
    """write_cache_pages has none, unlike generic_writepages and ext4_writepages."""
    toys = Toys(filesystem, kernel=kernel)
    assert only(toys.machine.mounts).filesystem.plugs_files is plugs
    plugged: list[str] = []
    toys.machine.queues["d"].signals.block_plug.observers.append(lambda _, task: plugged.append(task.name))

    def toy(process: Process) -> Steps:
        inode = yield from process.open("/m/f")
        yield process.write(inode, 4)
        yield from process.fsync(inode)
        yield from close_file(process, inode)

    process = toys.start(toy)
    toys.run()
    assert (process.task.name in plugged) is plugs


@pytest.mark.parametrize(("kernel", "unwritten"), [("3.11", False), ("6.18", True)])
@pytest.mark.parametrize("pages", [4, 64])
def test_xfs_converts_new_extents_but_no_overwritten_ones(kernel: str, unwritten: bool, pages: int) -> None:
    """While fsync(2) waits, pages are converted if their blocks are unwritten until then."""
    toys, results = Toys("xfs", kernel=kernel), list[set[bool]]()
    files: list[Any] = []
    watching = SimpleNamespace(results=set[bool](), ends=False)

    def writer(process: Process) -> Steps:
        inode: Any = yield from process.open("/m/f")
        files.append(inode)
        yield from process.pwrite(inode, 0, pages)
        yield from process.pwrite(inode, 0, 1)  # its pages are kept one by one
        for _ in range(2):
            watching.results = set()
            yield from process.fsync(inode)
            results.append(watching.results)
            yield from process.pwrite(inode, 0, pages)
        watching.ends = True
        yield from close_file(process, inode)

    def watcher(process: Process) -> Steps:
        disk: Any = only(toys.machine.mounts).filesystem
        while not watching.ends:
            if files:
                watching.results.add(disk.converts(files[0]))
            yield 500

    toys.start(writer)
    toys.start(watcher)
    toys.run()
    assert (True in results[0]) is unwritten
    assert results[1] == {False}


@pytest.mark.parametrize(
    ("filesystem", "pages", "starts"),
    [("xfs", 0, True), ("xfs", 1, True), ("ext4", 0, True), ("ext4", 1, False)],
)
def test_close_starts_the_writeback_of_a_truncated_file(filesystem: str, pages: int, starts: bool) -> None:
    """XFS does so after any truncation, and ext4 only after one to nothing (auto_da_alloc)."""
    answers: list[bool] = []

    def toy(process: Process) -> Steps:
        yield from make_file(process, "/m/f")
        inode = yield from process.open("/m/f")
        yield from process.ftruncate(inode, pages)
        yield process.write(inode, 2)
        answers.append(inode.sb.filesystem.writes_before_close(inode))
        answers.append(inode.sb.filesystem.writes_before_close(inode))
        yield from close_file(process, inode)

    run(filesystem, toy)
    assert answers == [starts, False]


@pytest.mark.source  # it replaces a method
@pytest.mark.parametrize("datasync", [False, True])
def test_o_dsync_asks_for_the_data_alone(datasync: bool) -> None:
    """The call that follows the write(2) gets the flag of open(2)."""
    flags: list[bool] = []

    def toy(process: Process) -> Steps:
        inode = yield from process.open("/m/f")
        yield process.write(inode, 1)
        filesystem, commit = inode.sb.filesystem, inode.sb.filesystem.commit_inode

        def hears(thread: Any, inode: Any, flag: bool) -> Steps:
            flags.append(flag)
            yield from commit(thread, inode, flag)

        filesystem.commit_inode = hears
        yield from process.write_sync(inode, datasync)
        filesystem.commit_inode = commit
        yield from close_file(process, inode)

    run("xfs", toy)
    assert flags == [datasync]


@on_both
@pytest.mark.parametrize("resize", ["fallocate", "ftruncate"])
def test_calls_that_resize_a_shared_file_wait_for_its_writers(filesystem: str, resize: str) -> None:
    """They own i_rwsem; the lock exists only while two processes have the file open."""
    ends: dict[str, int] = {}
    locks: list[bool] = []

    def owner(process: Process) -> Steps:
        inode = yield from process.open("/m/f")
        locks.append(process.i_rwsem_of(inode) is None)
        yield 2_000_000
        i_rwsem = process.i_rwsem_of(inode)
        assert i_rwsem is not None, "the other process has the file open"
        yield i_rwsem.own_for(process.task, hold(process), process.thread.before_sleep)
        ends["owner"] = toys.machine.env.now
        yield 10_000_000
        locks.append(process.i_rwsem_of(inode) is None)
        yield from close_file(process, inode)

    def hold(process: Process) -> Steps:
        yield 5_000_000

    def resizes(process: Process) -> Steps:
        inode = yield from process.open("/m/f")
        yield 2_000_000
        yield getattr(process, resize)(inode, 8)
        ends[resize] = toys.machine.env.now
        yield from close_file(process, inode)

    toys = Toys(filesystem)
    toys.start(owner)
    toys.start(resizes, 1_000_000)
    toys.run()
    assert ends["owner"] < ends[resize] < ends["owner"] + 1_000_000
    assert locks == [True, True]
