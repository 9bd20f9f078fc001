"""A program in a few lines: it opens files by path, overwrites, appends, shares and fsyncs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.harness import only
from wbsim.experiments.config.experiment import parse
from wbsim.models.interfaces import NoSpace
from wbsim.models.machine import Machine, build
from wbsim.models.page_cache.pages import DIRTY_BIT, MAPPED_BIT
from wbsim.models.syscalls.process import Process
from wbsim.sim.engine import Steps

TEXT = """\
title = "a toy"
[scenario]
machine.like = "loop-vm"
machine.processors.count = 4
machine.processors.cv = 0
machine.disks.d.like = "loop"
kernel.like = "6.18"
mounts.m = { like = "loop-FILESYSTEM", disk = "d", at = "/m", size = "4 GiB" }
programs.s = { command = "sync", start = "20 s" }
"""


class Toys:
    """A machine that runs toy programs until the last one ends."""

    def __init__(
        self, filesystem: str = "xfs", disk: str = "loop", processors: int = 4, more: str = "",
        size: str = "4 GiB", kernel: str = "6.18",
    ) -> None:  # fmt: skip
        text = TEXT.replace("FILESYSTEM", filesystem).replace('d.like = "loop"', f'd.like = "{disk}"')
        text = (
            text.replace("count = 4", f"count = {processors}")
            .replace("4 GiB", size)
            .replace('kernel.like = "6.18"', f'kernel.like = "{kernel}"\n{more}')
        )
        self.machine: Machine = build(parse(text, "x.toml").cases[0].scenario, 1)
        only(self.machine.programs).on_end = lambda: None
        self.running = 0

    def start(self, body: Callable[[Process], Steps], delay_ns: int = 0) -> Process:
        """Let a new process run *body*, which begins after *delay_ns*."""
        process = self.machine.process(f"toy {self.running}")
        self.running += 1
        process.task.on_exit = self._count_down
        self.machine.env.start(process.task, body(process), delay_ns)
        return process

    def _count_down(self) -> None:
        self.running -= 1
        if not self.running:
            self.machine.env.halt()

    def run(self) -> None:
        """Run all toys, and check the laws."""
        self.machine.run()


def dirty_of(inode: Any) -> list[int]:
    """Return the dirty pages of a file."""
    return np.flatnonzero(inode.file.pages.states & DIRTY_BIT).tolist()


def mapped_of(inode: Any) -> int:
    """Return the number of pages of a file, up to its end, that have blocks."""
    return int(np.count_nonzero(inode.file.pages.states[: inode.file.size] & MAPPED_BIT))


@pytest.mark.parametrize("filesystem", ["xfs", "ext4"])
def test_toy_overwrites_appends_and_fsyncs_its_file(filesystem: str) -> None:
    """A file of 64 pages: four pages are written twice, two come behind the end, and fsync(2) writes them."""
    toys = Toys(filesystem)
    seen: list[Any] = []

    def toy(process: Process) -> Steps:
        inode: Any = yield from process.open("/m/a/file")
        process.works(1_000, 500)
        yield process.write(inode, 64)
        yield from process.fsync(inode)
        seen.append(inode.dirty_pages)
        yield from process.pwrite(inode, 8, 4)
        yield from process.pwrite(inode, 10, 1)
        yield process.write(inode, 2)
        seen.append((inode.dirty_pages, dirty_of(inode)))
        yield from process.fsync(inode)
        seen.append((inode.dirty_pages, mapped_of(inode)))
        yield process.close(inode) or 0

    process = toys.start(toy)
    toys.run()
    assert seen == [0, (6, [8, 9, 10, 11, 64, 65]), (0, 66)]
    assert (process.spent.user, process.spent.program) == (1_000, 500)
    calls = process.latencies.by_call()
    assert {name: latency.count for name, latency in calls.items()} == {
        "mkdir": 1, "creat": 1, "write": 4, "close": 1, "fsync": 2,
    }  # fmt: skip
    assert sum(latency.total_ns for latency in calls.values()) == process.task.ran_ns + sum(
        process.task.slept_ns.values()
    ) - (1_000 + 500)


def test_two_processes_share_the_file_of_a_path() -> None:
    """Both open it while it is made; one closes it, and the other still writes to it."""
    toys = Toys()
    inodes: list[Any] = []

    def writes(pages: int) -> Callable[[Process], Steps]:
        def body(process: Process) -> Steps:
            inode = yield from process.open("/m/file")
            inodes.append(inode)
            yield from process.pwrite(inode, 0, pages)
            yield pages * 1_000_000
            yield from process.pwrite(inode, 8, 1)
            inodes.append(inode.file.open)
            yield process.close(inode) or 0
            inodes.append(inode.file.open)

        return body

    first, second = [toys.start(writes(pages)) for pages in (1, 4)]
    toys.run()
    assert first.latencies.creat.count == second.latencies.open.count == 1
    assert first.latencies.creat.max_ns == second.latencies.open.max_ns > 0, "both began at once"
    assert second.latencies.creat.count == first.latencies.open.count == 0
    assert inodes[0] is inodes[1]
    assert inodes[2:] == [True, True, True, False]
    assert inodes[0].dirty_pages == 4 + 1


def test_each_call_is_counted_once_next_to_an_open_file() -> None:
    """A process that has a file open by its name makes another one; its directory exists the second time."""
    toys = Toys()

    def toy(process: Process) -> Steps:
        yield from process.open("/m/a/file")
        for _ in range(2):
            folder = yield from process.mkdir("/m/a")
            inode = yield from process.creat(folder, 1)
            yield process.write(inode, 1, closes=True)
            yield process.close(inode) or 0

    latencies = toys.start(toy).latencies
    toys.run()
    assert {name: latency.count for name, latency in latencies.by_call().items()} == {
        "mkdir": 1, "creat": 3, "write": 2, "close": 2,
    }  # fmt: skip


@pytest.mark.parametrize("pages", [4, 64])
@pytest.mark.parametrize("kernel", ["3.11", "6.18"])
@pytest.mark.parametrize("filesystem", ["xfs", "ext4"])
def test_a_closed_file_is_opened_again_and_overwritten(filesystem: str, kernel: str, pages: int) -> None:
    """The second writeback goes to the same blocks: nothing is allocated, and no extent is converted."""
    toys = Toys(filesystem, kernel=kernel)
    of: Any = only(toys.machine.mounts).filesystem
    seen: list[tuple[Any, ...]] = []
    sectors: list[list[tuple[int, int]]] = []
    bios: list[tuple[int, int]] = []

    def note(_: str, *, bio: Any, task: Any) -> None:
        if not bio.meta and bio.op == "W":
            bios.append((bio.start_sector, bio.end_sector))

    toys.machine.queues["d"].signals.block_bio_queue.observers.append(note)

    def toy(process: Process) -> Steps:
        first: Any = yield from process.open("/m/file")
        yield process.write(first, pages)
        yield process.close(first) or 0
        for _ in range(2):
            inode: Any = yield from process.open("/m/file")
            assert inode is first
            yield from process.pwrite(inode, 0, pages)
            assert (inode.dirty_pages, of.size_of(inode)) == (pages, pages)
            allocated_ns = sum(thread.spent.allocate for thread in toys.machine.threads)
            yield from process.fsync(inode)
            allocated_ns = sum(thread.spent.allocate for thread in toys.machine.threads) - allocated_ns
            seen.append(
                (inode.file.extents(), allocated_ns > 0, of.space.unclaimed, of.placement.free_blocks)
            )
            sectors.append(sorted(bios))
            bios.clear()
            yield process.close(inode) or 0
            yield 2_000_000_000

    process = toys.start(toy)
    toys.run()
    (extents, allocates, *free), (extents_again, allocates_again, *free_again) = seen
    assert extents == extents_again
    assert sum(extent.pages for extent in extents) == pages
    assert sectors[0] == sectors[1] != []
    assert free == free_again
    assert (allocates, allocates_again) == (True, False)
    calls = process.latencies.by_call()
    assert {name: latency.count for name, latency in calls.items()} == {
        "creat": 1, "write": 3, "close": 3, "fsync": 2,
    }  # fmt: skip


@pytest.mark.parametrize("left", [0, -1])
@pytest.mark.parametrize("filesystem", ["xfs", "ext4"])
def test_write_without_an_unclaimed_block_fails(filesystem: str, left: int) -> None:
    """Fewer than no blocks are unclaimed if inodes, names or trees have taken blocks that were kept."""
    toys, failed = Toys(filesystem), list[str]()
    of: Any = only(toys.machine.mounts).filesystem

    def toy(process: Process) -> Steps:
        inode: Any = yield from process.open("/m/file")
        yield process.write(inode, 4)
        yield from process.fsync(inode)
        before, of.space.unclaimed = of.space.unclaimed, left
        try:
            yield from of.make_way(process.thread, inode)
        except NoSpace as error:
            failed.append(str(error))
        of.space.unclaimed += before - left

    toys.start(toy)
    toys.run()
    assert failed == ["No space left on device"]


@pytest.mark.parametrize("filesystem", ["xfs", "ext4"])
def test_log_follows_the_data_of_fsync(filesystem: str) -> None:
    """No block of the log leaves before the data of a small file, which is one run, is on disk."""
    toys, events = Toys(filesystem, disk="sata-disk"), list[str]()
    signals = toys.machine.queues["d"].signals

    def note(name: str, *, bio: Any = None, request: Any = None, **_: Any) -> None:
        of = bio or request.bios[0]
        events.append(("log" if of.meta else "data") + (" queued" if bio else " on disk"))

    signals.block_bio_queue.observers.append(note)
    signals.block_rq_complete.observers.append(note)

    def toy(process: Process) -> Steps:
        inode: Any = yield from process.open("/m/a/file")
        process.works(1_000, 500)
        yield process.write(inode, 4)
        yield from process.fsync(inode)

    toys.start(toy)
    toys.run()
    assert events[:3] == ["data queued", "data on disk", "log queued"]


def test_a_close_lasts_until_the_process_has_a_processor_again() -> None:
    """Two processes make files on one processor: some return from close(2) only after the other's slice."""
    toys = Toys(processors=1)

    def toy(process: Process) -> Steps:
        folder = yield from process.mkdir("/m/a")
        for _ in range(4_000):
            process.works(1_000, 0)
            inode = yield from process.creat(folder, 1)
            yield process.write(inode, 1, closes=True)
            if (ready := process.close(inode)) is not None:
                yield ready

    first, second = toys.start(toy), toys.start(toy)
    toys.run()
    for process in (first, second):
        close = process.latencies.close
        assert close.count == 4_000
        assert 0.5 * process.task.ready_ns < close.total_ns - 4_000 * close.min_ns <= process.task.ready_ns
        assert [*close.slowest().waits_ns] == ["a processor"]


def test_the_longest_wait_of_a_call_is_its_cause() -> None:
    """A write(2) behind the limit of dirty pages is throttled; fsync(2) waits for the log's flush."""
    toys = Toys(disk="sata-disk", more='kernel.dirty.dirty_bytes = "8 MiB"')

    def toy(process: Process) -> Steps:
        inode = yield from process.open("/m/file")
        for _ in range(4_096):
            yield process.write(inode, 4)
        yield from process.fsync(inode)

    process = toys.start(toy)
    toys.run()
    write, fsync = process.latencies.write.slowest(), process.latencies.fsync.slowest()
    throttled_ns = process.task.slept_ns.pop("throttled")
    assert list(write.waits_ns) == ["throttled"]
    assert 0.99 * throttled_ns < write.waits_ns["throttled"] <= throttled_ns
    assert write.waits_ns["throttled"] > 0.95 * write.total_ns
    assert fsync.waits_ns == {"the log's write": sum(process.task.slept_ns.values())}, (
        "with all shorter waits"
    )
    assert len(process.task.slept_ns) > 1
