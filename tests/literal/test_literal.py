"""The model, compared with a literal writeback to the nanosecond: small files that one sync(2) writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice, product, zip_longest
from typing import Any, Final

import numpy as np
import pytest

from tests.harness import caller, only
from tests.literal.block import Link, Log, NullDevice, Queue
from tests.literal.clock import Clock, LockCounts, Steps, Task
from tests.literal.ext4 import Ext4
from tests.literal.file import Times
from tests.literal.mballoc import GROUP_BLOCKS, Group, Mballoc
from tests.literal.xfs import Group as XfsGroup
from tests.literal.xfs import Xfs
from wbsim.experiments.config.experiment import parse
from wbsim.models.machine import build
from wbsim.models.scenario import Scenario
from wbsim.models.syscalls.latency import Latency
from wbsim.models.syscalls.process import Process
from wbsim.models.syscalls.stream import Calls, Stream
from wbsim.models.tracepoints import Signals
from wbsim.sim.units import MS, PAGE_SECTORS

SYNC_NS: Final = 40 * MS
AFTER_NS: Final = 50_000
"""The time from the begin of writeback to the begin of a program that writes."""
USER_NS: Final = 700
EVENTS: Final = (
    "block_bio_queue", "block_getrq", "block_bio_backmerge", "block_bio_frontmerge", "block_unplug",
    "block_rq_issue", "block_rq_complete",
)  # fmt: skip


def scenario(filesystem: str, disk: str, nr_requests: int, more: str = "") -> Scenario:
    """Return a scenario with a sync(2) and no other writeback, in which all paths take their mean times."""
    (case,) = parse(
        f"""\
title = "a sync(2)"
[scenario]
machine.like = "loop-vm"
machine.processors.count = 8
machine.processors.cv = 0
machine.processors.line_own = "0 ns"
machine.processors.line_time = "0 ns"
machine.processors.waker_time = "2300 ns"
machine.processors.paths.filesystems.xfs.flusher.reserve_ns = "1900 ns"
machine.disks.d.like = "{disk}"
machine.disks.d.queue.wbt = false
machine.disks.d.queue.interrupts = "any"
machine.disks.d.queue.nr_requests = {nr_requests}
{more}
kernel.like = "6.18"
mounts.m = {{ like = "{filesystem}", disk = "d", at = "/m", size = "4 GiB" }}
programs.s = {{ command = "sync", start = "{SYNC_NS} ns" }}
""",
        "x.toml",
    ).cases
    return case.scenario


class Both:
    """A file with the *dirty* pages: the model writes it back, then the literal kernel does.

    ``of_model`` and ``literal`` are the events of each, ``locks`` the counts of the locks of both, by name.
    While it is written back, a program writes to the holes *written* in this order.  ``latencies_ns`` has the
    figures of its calls in the model, and in the literal kernel.

    On a *worn* disk, the free space of ext4's groups is in pieces.

    The first log record is submitted at ``log_ns`` in the model; ``log_follows_ns`` is the literal time.
    """

    def __init__(
        self, what: Scenario, dirty: Sequence[int], written: Sequence[int] = (), worn: bool = False
    ) -> None:
        signals = Signals()
        self._written = written
        self._program: Process | None = None
        self._scenario = what
        self._dirty = dirty
        self._machine = machine = build(what, 1, signals=signals)
        self._sb: Any = only(machine.mounts)
        if worn:
            wear(self._sb.filesystem.placement.mballoc)
        self._inode: Any = None
        self._clock: Clock | None = None
        self._heard: list[tuple[tuple[int, int], tuple[Any, ...]]] = []
        self.literal: Log = []
        self._counts: dict[str, LockCounts] = {}
        self.log_ns: int | None = None
        for name in EVENTS:
            getattr(signals, name).observers.append(self._hear)
        signals.block_plug.observers.append(self._begins)
        writer = machine.thread("writer")
        machine.env.start(writer.task, self._write(writer))
        machine.run()
        assert self._clock is not None, "a flusher must begin"
        self._clock.run()
        self.log_follows_ns: int | None = None
        if self._spec.kind == "xfs" and what.machine.disks["d"].device.kind != "null":
            self.log_follows_ns = self._file.clean_ns + self._record_ns()
        else:  # the sync(2) does not wait for pages alone
            self.log_ns = None
        self.latencies_ns = (
            figures_of(Latency() if self._program is None else self._program.latencies.write),
            figures_of(latency_of(self._file.latencies_ns)),
        )
        of_file = self._sectors()
        self.of_model = [event for (first, _), event in self._heard if first in of_file]
        self.locks = {
            name: (
                [after - self._before[name][at] for at, after in enumerate(self._locks_of_model(name))],
                [counts.acquisitions, counts.contentions, counts.hold_ns, counts.wait_ns],
            )
            for name, counts in self._counts.items()
        }

    def _record_ns(self) -> int:
        """Return the time of the first log record: the share of a full record that its bytes take.

        The file is made in one transaction, which logs its inode and its name; each other one logs an extent.
        """
        costs: Any = self._scenario.machine.processors.paths.filesystems["xfs"].flusher
        spec = self._spec
        log_bytes = spec.inode_log_bytes + spec.dirent_log_bytes
        log_bytes += self._file.transactions * spec.extent_log_bytes
        full_bytes = spec.log.iclog_bytes - spec.log.record_header
        share_ns: int = costs.log.record_ns * min(log_bytes, full_bytes) // full_bytes
        return share_ns

    def _locks_of_model(self, name: str) -> list[int]:
        """Return the figures of the locks with *name*, in the order of `LockCounts`."""
        (stat,) = [lock.stat for lock in self._machine.locks if lock.name.endswith(f"/{name}")]
        return [stat.acquisitions, stat.contentions, stat.hold_ns, stat.wait_ns]

    def _write(self, writer: Any) -> Any:
        """Make the file and dirty its pages, the last one first, so that no later block is reserved."""
        filesystem = self._sb.filesystem
        directory = yield from filesystem.names.mkdir(writer)
        inode = yield from filesystem.names.create(caller(writer), directory)
        for pages in ([max(self._dirty)], sorted(self._dirty)):
            filesystem.write(inode, np.array(pages), 1)
        filesystem.close(inode)
        # sync(2) first asks for as many pages as are dirty.  It must also ask for the program's.
        inode.wb.account_dirtied(len(self._dirty) + len(self._written))
        inode.dirty_pages = len(self._dirty)
        inode.wb.add(inode, self._machine.env.now)
        self._sb.has_pages()
        self._inode = inode

    def _begins(self, _: str, task: Any) -> None:
        """Begin the literal writeback, in the same state, when the flusher of the model begins."""
        if self._inode is None or self._clock is not None:
            return
        self._clock = clock = Clock(self._machine.env.now)
        cpu, drive = self._scenario.machine.processors, self._scenario.machine.disks["d"]
        flusher, worker = Task(clock, 2), Task(clock, 1)
        device = NullDevice() if drive.device.kind == "null" else Link(drive.device)
        queue = Queue(clock, self.literal, flusher, drive.queue, cpu.paths.block, device)
        make = self._xfs if self._spec.kind == "xfs" else self._ext4
        self._file = file = make(clock, queue, flusher, worker, task)

        def flush() -> Steps:
            loop = cpu.paths.writeback
            yield loop.move_ns
            yield loop.take_ns + loop.inode_ns
            yield from file.writepages()
            yield loop.requeue_ns + loop.take_ns + loop.inode_ns
            yield from queue.flush()

        flusher.start(flush())
        if self._written:
            self._begin_writers(Task(clock, 3))
        self._before = {name: self._locks_of_model(name) for name in self._counts}

    def _begin_writers(self, literal: Task) -> None:
        """Begin the program in the model and as the task *literal*, `AFTER_NS` after the flusher."""
        machine, calls = self._machine, Calls(user_ns=USER_NS)
        self._program = process = machine.process("program")
        self._inode.wb.account_dirtied(-len(self._written))
        order = iter(self._written)

        def take(count: int) -> Any:
            return np.fromiter(islice(order, count), np.int64, count)

        stream = Stream(machine.env, process, [self._inode], [take], calls, len(self._written), 256)
        machine.env.start(process.task, stream.write(len(self._written)), AFTER_NS)

        def body() -> Steps:
            yield AFTER_NS
            yield from self._file.write(literal, self._written, USER_NS, process.write_ns(1, self._sb))

        literal.start(body())

    @property
    def _spec(self) -> Any:
        return only(self._scenario.mounts).filesystem

    def _given(self, inline: int) -> dict[str, Any]:
        """Return the parts of a file on both filesystems; its inode holds *inline* extents."""
        cpu, queue = self._scenario.machine.processors, self._sb.bdi.queue
        costs: Any = cpu.paths.filesystems[self._spec.kind].flusher
        segment = queue.segment_pages(1)
        map_outside_ns = range_outside_ns = getattr(costs, "reserve_ns", None) or 0
        if costs.map_locked_ns is not None:
            map_outside_ns = costs.map_ns - costs.map_locked_ns
            range_outside_ns = costs.ioend_ns - costs.ioend_locked_ns
        times = Times(
            map_outside_ns=map_outside_ns, range_outside_ns=range_outside_ns,
            map_ns=costs.map_ns - map_outside_ns,
            tree_map_ns=(costs.tree_map_ns or costs.map_ns) - map_outside_ns,
            page_ns=costs.page_ns + (costs.folio_ns or 0), range_ns=costs.ioend_ns - range_outside_ns,
            tree_range_ns=(costs.tree_ioend_ns or costs.ioend_ns) - range_outside_ns,
            end_page_ns=costs.end_folio_ns or 0,
            inline=inline, wake_ns=cpu.wake_time, waker_ns=cpu.waker_time, line_ns=cpu.line_time,
            spin_ns=self._scenario.kernel.rwsem_spin,
        )  # fmt: skip
        return {
            "times": times, "dirty": self._dirty, "bio_pages": queue.bio_pages(segment),
            "segment_pages": segment,
        }  # fmt: skip

    def _xfs(self, *parts: Any) -> Xfs:
        *parts, _ = parts
        placement, home = self._sb.filesystem.placement, self._inode.group.number
        costs: Any = self._scenario.machine.processors.paths.filesystems["xfs"].flusher
        file = Xfs(
            *parts, **self._given((self._spec.inode_bytes - 176) // 16), home=home,
            base=self._sb.first_block + home * placement.group_blocks, group_blocks=placement.group_blocks,
            groups=[XfsGroup(group.free.table().tolist()) for group in placement.groups],
            commit_ns=costs.log.commit_ns,
            rmap_ns=costs.rmap_ns if self._spec.rmapbt else 0,
            rmap_ioend_ns=costs.rmap_ioend_ns if self._spec.rmapbt else 0,
        )  # fmt: skip
        self._counts = {"ILOCK": file.inode_counts, "AGF": file.group_counts}
        return file

    def _ext4(self, *parts: Any) -> Ext4:
        *parts, _ = parts
        placement, inode = self._sb.filesystem.placement, self._inode
        groups = {number: Group(of.runs()) for number, of in placement.mballoc.groups.items()}
        geometry = self._spec.geometry
        mballoc = Mballoc(groups, geometry.groups, geometry.flex_groups, last_groups=[0] * 8)
        file = Ext4(
            *parts, **self._given(4), mballoc=mballoc, number=inode.number,
            goal=inode.goal_group * GROUP_BLOCKS, size=max(self._dirty) + 1, base=self._sb.first_block,
        )  # fmt: skip
        self._counts = {"i_data_sem": file.inode_counts}
        return file

    def _sectors(self) -> set[int]:
        """Return the first sectors of all blocks of the file; other requests are of logs and journals."""
        base = self._sb.first_block + self._inode.file.base
        return {
            (base + block) * PAGE_SECTORS
            for _, first, length in self._inode.file.extent_table().tolist()
            for block in range(first - self._inode.file.base, first - self._inode.file.base + length)
        }

    def _hear(self, name: str, **fields: Any) -> None:
        if self._clock is None:
            return
        requests = fields.get("requests") or [fields.get("bio") or fields["request"]]
        sectors = [(of.start_sector, of.end_sector) for of in requests]
        what: Any = sectors if name == "block_unplug" else sectors[0]
        if name == "block_rq_complete":
            what = *sectors[0], self._machine.env.now - fields["request"].started_ns
        if name == "block_bio_queue" and "F" in fields["bio"].op and self.log_ns is None:
            self.log_ns = self._machine.env.now
        self._heard.append((sectors[0], (self._machine.env.now, name, *what)))


def wear(mballoc: Any) -> None:
    """Take pieces of several sizes out of the groups whose bitmaps have been read."""
    random = np.random.default_rng(7)
    for number in list(mballoc.groups):
        for length in random.permutation([1, 2, 5, 30, 100, 300, 700] * (number + 1)):
            mballoc.take_exactly(number * GROUP_BLOCKS + int(random.integers(GROUP_BLOCKS)), int(length))


def runs(count: int, pages: int, apart: int) -> list[int]:
    """Return *count* runs of *pages* pages, which begin *apart* pages from each other."""
    return [first + page for first in range(0, count * apart, apart) for page in range(pages)]


FILES: Final = {
    "page": runs(1, 1, 1), "run": runs(1, 8, 8), "long": runs(1, 700, 700), "five": runs(5, 2, 7),
    "plug": runs(31, 1, 3), "hundred": runs(100, 1, 5), "32 pages": runs(4, 32, 100),
    "small, large, small": [0, *range(10, 50), 60, 70], "full requests": runs(45, 16, 100),
    "16 pages": runs(3, 2, 7), "leaves": runs(400, 1, 3), "windows": runs(40, 100, 130),
}  # fmt: skip
"""The dirty pages of files with one bio, several bios in one extent, and extents in one or several plugs.

Some requests have exactly the size at which a plug is flushed, or the largest size of a request.
"""


@pytest.mark.parametrize(
    ("file", "filesystem", "disk"), list(product(FILES, ("loop-xfs", "loop-ext4"), ("loop", "pm9a3")))
)
def test_model_matches_the_literal_kernel(file: str, filesystem: str, disk: str) -> None:
    """Each bio and each request has the same times in both, and all locks have the same counts."""
    compare(Both(scenario(filesystem, disk, nr_requests=1_000), FILES[file]))


@pytest.mark.parametrize("file", FILES)
def test_blocks_match_the_literal_kernel_on_a_worn_disk(file: str) -> None:
    """No group has a free run of the size of a window, for some windows."""
    compare(Both(scenario("loop-ext4", "pm9a3", nr_requests=1_000), FILES[file], worn=True))


def test_wait_for_a_request_ends_with_the_first_completion() -> None:
    """A queue of eight requests gets nine; the last request waits for the end of the first."""
    compare(Both(scenario("loop-xfs", "pm9a3", nr_requests=8), runs(9, 1, 3)))


def test_a_request_may_be_full_of_sectors_first() -> None:
    """Sixteen pages more would be too many for 128 pages, with segments left."""
    few = scenario("loop-xfs", "pm9a3", 1_000, 'machine.disks.d.queue.limits.max_sectors_bytes = "512 KiB"')
    compare(Both(few, FILES["full requests"]))


@pytest.mark.parametrize(
    ("filesystem", "disk", "apart"), list(product(("loop-xfs", "loop-ext4"), ("loop", "pm9a3"), (1, 3, 40)))
)
def test_a_program_writes_while_its_file_is_written_back(filesystem: str, disk: str, apart: int) -> None:
    """Its calls wait for the inode's lock as long as in the literal kernel, and so does the flusher.

    They are ahead of the flusher, which writes their pages too.
    """
    dirty = [*FILES["hundred"], 6_000]
    written = list(range(1_000, 1_000 + 60 * apart, apart))
    np.random.default_rng(1).shuffle(written)
    both = Both(scenario(filesystem, disk, nr_requests=1_000), dirty, written)
    compare(both)
    name = "ILOCK" if filesystem == "loop-xfs" else "i_data_sem"
    assert both.locks[name][1][1] > 10, "the calls and the flusher must meet"


def latency_of(calls_ns: Iterable[int]) -> Latency:
    """Return calls of these lengths (ns)."""
    latency = Latency()
    for ns in calls_ns:
        latency.add(ns)
    return latency


def figures_of(of: Latency) -> tuple[object, ...]:
    """Return the figures of calls: their sum, the shortest, the longest, and their bins."""
    return int(of.total_ns), int(of.min_ns), int(of.max_ns), of.bins()


def compare(both: Both) -> None:
    """Assert that all events and then all locks are the same; XFS's log follows the last clean page."""
    assert both.literal
    assert both.latencies_ns[0] == both.latencies_ns[1]
    for at, (event, literal) in enumerate(zip_longest(both.of_model, both.literal)):
        assert event == literal, f"event {at} of {len(both.literal)}"
    for name, (of_model, of_literal) in both.locks.items():
        assert of_model == of_literal, name
    assert both.log_ns == both.log_follows_ns
