"""Programs on a filesystem with round times: every call, its time, and the account that is charged."""

from __future__ import annotations

from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.harness import loop_config, only
from wbsim.experiments.config.experiment import parse
from wbsim.models.interfaces import Caller
from wbsim.models.machine import build
from wbsim.models.scheduler.cpu import Processors
from wbsim.models.scheduler.runqueue import SchedulerRules
from wbsim.models.step_lengths import StepLengths
from wbsim.models.syscalls.block_stream import Blocks
from wbsim.models.syscalls.process import SystemCalls
from wbsim.models.syscalls.stream import Calls, Order
from wbsim.models.time_accounting import Spent
from wbsim.models.vfs.spec import WriteCosts
from wbsim.models.workloads.dd import DdSpec, dd
from wbsim.models.workloads.file_writers import Bounds, Files, FileWriters, Job, Syncs, in_pages, sequential
from wbsim.models.workloads.fio import FioSpec, fio
from wbsim.models.workloads.fs_mark import FsMarkSpec, fs_mark
from wbsim.models.workloads.fs_mark_processes import FsMark
from wbsim.sim.engine import Environment, Steps, Task, Wait
from wbsim.sim.streams import Draws
from wbsim.sim.units import KIB, MS, S

PAGE = 4 * KIB
COSTS = WriteCosts(call_ns=2, page_ns=10, close_ns=5, mark_ns=0)
ENDLESS = SchedulerRules(10**12, granularity_ns=10**12)


class Stage:
    """A mount with round times, and *count* processors with endless slices.

    find or make a directory    100 ns
    create a file               the lead of the caller, 1 000 ns, what the caller does then
    write n pages               2 + 10 n ns; a stop at page *stops_at* to zero the end of the file
    zero the end of a file      77 ns
    close a file                5 ns
    balance_dirty_pages         500 ns, after at most *room* pages
    """

    def __init__(self, room: int = 1_000, count: int = 3, stops_at: int | None = None) -> None:
        self.env = Environment()
        self.log: list[tuple[Any, ...]] = []
        self.room, self.stops_at, self.lock_ns = room, stops_at, 0
        self.processors = Processors(self.env, count, ENDLESS, lambda: 0.0)
        self.streams: list[str] = []
        self.names = self
        self.factors: dict[str, float] = {}
        self.ended: list[int] = []

    @property
    def parts(self) -> dict[str, Any]:
        """Return the arguments that a workload is made with."""
        parts = SimpleNamespace(
            env=self.env, thread=self._thread, process=self._process, random=self._numbers,
            lengths=StepLengths(), begin=self.env.start,
            variation=lambda name: Draws(lambda count: np.full(count, self.factors.get(name, 1.0))),
        )  # fmt: skip
        return {
            "parts": parts,
            "calls": SystemCalls(
                self.env, self._mount_of, COSTS, self, self, 1,  # type: ignore[arg-type]
            ),
            "on_end": lambda: self.ended.append(self.env.now),
        }  # fmt: skip

    def _thread(self, name: str) -> Any:
        return SimpleNamespace(task=self.env.task(name), spent=Spent())

    def _process(self, name: str) -> Any:
        return SimpleNamespace(task=self.processors.adopt(self.env.task(name), seated=True), spent=Spent())

    def _numbers(self, name: str) -> Any:
        self.streams.append(name)
        return np.random.default_rng(len(self.streams))

    def fsync(self, thread: Any, inode: Any, datasync: bool = False) -> Steps:
        """Record fsync(2) or fdatasync(2), which takes 33 ns."""
        self.log.append((self.env.now, "fdatasync" if datasync else "fsync", inode.name))
        yield 33

    def sync(self, thread: Any) -> Steps:
        """Record sync(2), which takes 44 ns."""
        self.log.append((self.env.now, "sync"))
        yield 44

    def _mount_of(self, path: str) -> Any:
        mount = SimpleNamespace(
            directory=self._directory, filesystem=self, folio_pages=lambda pages: 1, block_ns=0,
            has_pages=lambda: None,
        )  # fmt: skip
        self.log.append((self.env.now, "mount of", path))
        return mount

    def _directory(self, thread: Any, path: str) -> Generator[Wait, None, str]:
        yield 100
        self.log.append((self.env.now, thread.task.name, "directory", path))
        return path

    def dirtier(self) -> Any:
        """Return the account of a writer: in the place of the throttle."""
        account = SimpleNamespace(nr_dirtied=0)

        def dirtied(pages: int) -> None:
            account.nr_dirtied += pages

        account.dirtied = dirtied
        return account

    def poll_pages(self, wb: Any, dirtier: Any) -> int:
        """Return *room*, the pages after which a writer asks the throttle."""
        return self.room

    def balance(self, thread: Any, wb: Any, dirtier: Any) -> Steps:
        """Record balance_dirty_pages, which takes 500 ns."""
        self.log.append((self.env.now, thread.task.name, "balance"))
        dirtier.nr_dirtied = 0
        yield 500

    def create(self, caller: Caller, directory: str) -> Generator[Wait, None, Any]:
        """Create a file for a directory: in the place of the filesystem's `Names.create`."""
        lead_ns, factor, then_ns = caller.lead_ns, caller.factor, caller.then_ns
        yield lead_ns + int(1_000 * factor) + then_ns
        made = SimpleNamespace(name=f"{directory}:{self.env.now}", dirty_pages=0, i_sync=None)
        made.sb = self._mount_of(directory)
        made.wb = SimpleNamespace(
            account_dirtied=lambda pages: self.log.append((self.env.now, "dirty", made.name, pages)),
            add=lambda inode, now_ns: None,
            lock=SimpleNamespace(section=lambda task, hold_ns, then_ns: hold_ns + then_ns),
        )
        self.log.append((self.env.now, caller.task.name, "create", directory, lead_ns, factor, then_ns))
        return made

    def append(self, inode: Any, pages: int) -> int:
        """Return the pages that were clean: all of them."""
        return pages

    def write(self, inode: Any, pages: Any, call_pages: int) -> tuple[int, int]:
        """Record a write of *pages*; stop at the page ``stops_at`` until the end of the file is zeroed."""
        self.log.append((self.env.now, "write", pages.tolist(), call_pages))
        if self.stops_at is not None and self.stops_at in pages.tolist():
            done = pages.tolist().index(self.stops_at)
            return done, done
        return len(pages), len(pages)

    def writes_at_once(self, inode: Any, pages: Any) -> int:
        """Return the pages up to ``stops_at``; none if ``lock_ns`` is not 0."""
        return 0 if self.lock_ns else [*pages.tolist(), self.stops_at].index(self.stops_at)

    def write_lock(self, thread: Any, inode: Any, pages: Any, calls: int) -> Steps | None:
        """Record a wait of ``lock_ns``; return None if ``lock_ns`` is 0."""
        if not self.lock_ns:
            return None
        self.log.append((self.env.now, "lock", pages.tolist(), calls))
        return (ns for ns in (self.lock_ns,))

    def make_way(self, thread: Any, inode: Any) -> Steps:
        """Record that the end of the file is zeroed, which takes 77 ns."""
        self.log.append((self.env.now, "make_way"))
        self.stops_at = None
        yield 77

    def writes_before_close(self, inode: Any) -> bool:
        """Return False: no file was truncated."""
        return False

    def close(self, inode: Any, named: bool = False) -> None:
        """Record the close of a file."""
        self.log.append((self.env.now, "close"))

    def run(self) -> None:
        """Run all tasks to their end."""
        self.env.run()
        assert self.env.live_tasks == 0


def test_fio_process_writes_its_files_in_turn_between_throttle_calls() -> None:
    """A process of fio creates its files and writes one page of each in turn; a page takes 12 + 7 ns.

    t        parent            process 0
    0        makes /d
    100      forks
    150                        finds /d
    250                        creates a file
    1 250                      creates the second file
    2 250                      writes 3 pages, each for 19 ns
    2 307                      in balance_dirty_pages
    2 807                      writes 3 pages
    2 864                      in balance_dirty_pages
    3 364                      writes 3 pages
    3 421                      in balance_dirty_pages
    3 921                      writes the last page
    3 940                      closes both files
    3 950    ends
    """
    stage = Stage(room=3)
    jobs = [Job("/d", 2, lambda: [sequential(), sequential()], 5, Calls(user_ns=7))]
    writers = FileWriters(jobs=jobs, fork_ns=50, start_ns=0, **stage.parts)
    lines: list[Any] = []
    writers.on_iteration = lines.append
    stage.run()
    of = "process 0"
    burst, rest = 3 * (12 + 7), 1 * (12 + 7)
    begins = 150 + 100 + 2_000
    assert [entry for entry in stage.log if entry[1] != "mount of"][:5] == [
        (100, "parent", "directory", "/d"),
        (250, of, "directory", "/d"),
        (1_250, of, "create", "/d", 0, 1.0, 0),
        (2_250, of, "create", "/d", 0, 1.0, 0),
        (begins + rest, "write", [0], 1),
    ]
    writes = [entry[2] for entry in stage.log if entry[1] == "write"]
    assert writes == [[page] for page in (0, 0, 1, 1, 2, 2, 3, 3, 4, 4)], "a page of each file in turn"
    assert [entry[0] for entry in stage.log if entry[-1] == "balance"] == [
        begins + burst, begins + 2 * burst + 500, begins + 3 * burst + 1_000,
    ]  # fmt: skip
    end = begins + 3 * burst + rest + 1_500
    assert [entry for entry in stage.log if entry[1] == "close"] == [(end, "close"), (end + 5, "close")]
    assert stage.ended == [end + 10]
    assert (writers.system_ns, writers.user_ns) == (10 * 12 + 2 * 5, 10 * 7)
    assert writers.share_done == 1.0
    (line,) = lines
    assert (line.count, line.app_overhead_us, line.end_ns) == (2, 0, end + 10)
    assert line.files_per_sec == pytest.approx(2 * S / (end + 10))


def test_forked_process_waits_for_the_only_processor() -> None:
    """The parent finds both directories first, and the second process begins when the first has ended."""
    stage = Stage(count=1)
    stage.factors["process 1"] = 2.0
    jobs = [Job(f"/{name}", 1, lambda: [sequential()], 10, Calls(2, 1, 8, 4)) for name in "ab"]
    writers = FileWriters(jobs=jobs, fork_ns=50, start_ns=7, **stage.parts)
    stage.run()
    made = [entry for entry in stage.log if "directory" in entry]
    assert made[:2] == [(107, "parent", "directory", "/a"), (207, "parent", "directory", "/b")]
    first = 257 + 100 + 1_000 + 10 * (11 + 4 + 2)
    second = first + 5 + 100 + 1_000 + 2 * 10 * (11 + 4 + 2)
    assert [entry[0] for entry in stage.log if entry[1] == "close"] == [first, second]
    assert (writers.system_ns, writers.user_ns) == (130 + 260 + 5 + 10, 40 + 80)
    writes = [entry[2] for entry in stage.log if entry[1] == "write"]
    assert writes[:5] == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]], "the other process waits"
    assert writes[5:] == [[0, 1], list(range(2, 10))], "nobody waits"
    assert stage.ended == [second + 10]
    assert writers.family.parent.spent.fork == 2 * 50


def test_calls_are_one_event_from_the_second_on() -> None:
    """The first call puts the inode on its list.  An event has at most `StepLengths.calls` calls."""
    stage = Stage()
    FileWriters(
        jobs=[Job("/d", 1, lambda: [sequential()], StepLengths().calls + 44)], fork_ns=0, start_ns=0,
        **stage.parts,
    )  # fmt: skip
    stage.run()
    assert [len(entry[2]) for entry in stage.log if entry[1] == "write"] == [1, StepLengths().calls - 1, 44]


def test_write_continues_after_the_end_of_the_file_is_zeroed() -> None:
    """Page 0, pages 1 and 2, the end of the file in 77 ns, page 3 and page 4: calls are joined around it."""
    stage = Stage(stops_at=3)
    FileWriters(jobs=[Job("/d", 1, lambda: [sequential()], 5)], fork_ns=0, start_ns=0, **stage.parts)
    stage.run()
    events = [entry[1:] for entry in stage.log if entry[1] in ("write", "make_way") or "dirty" in entry]
    assert [entry for entry in events if entry[0] in ("write", "make_way")] == [
        ("write", [0], 1), ("write", [1, 2], 1), ("write", [3], 1), ("make_way",),
        ("write", [3], 1), ("write", [4], 1),
    ]  # fmt: skip
    assert [entry[2] for entry in events if "dirty" in entry] == [1, 2, 1, 1]


def test_call_continues_behind_the_zeroed_end() -> None:
    """A call of four pages stops in front of page 2, and does not write its first two pages again."""
    stage = Stage(stops_at=2)
    FileWriters(
        jobs=[Job("/d", 1, lambda: [sequential()], 4, Calls(4))], fork_ns=0, start_ns=0, **stage.parts
    )
    stage.run()
    assert [entry[1:] for entry in stage.log if entry[1] in ("write", "make_way")] == [
        ("write", [0, 1, 2, 3], 4), ("make_way",), ("write", [2, 3], 4),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "room", "locks"),
    [
        (Calls(3), 1_000, [([0, 1, 2], 1), ([3, 4], 1)]),
        (Calls(3), 2, [([0, 1], 1), ([2], 0), ([3], 1), ([4], 0)]),
        (Calls(a_page=2), 1_000, [([0], 1), ([0], 1), ([1], 1), ([1], 1), ([2], 1)]),
    ],
    ids=["of pages", "in parts", "of parts"],
)
def test_calls_wait_for_the_inode_s_lock(given: Calls, room: int, locks: list[tuple[list[int], int]]) -> None:
    """Each call takes the lock once, before its pages are dirty; with a busy lock, each call is an event.

    The rest of a call that stops to zero the end of the file does not take the lock again.
    """
    stage = Stage(room, stops_at=2)
    stage.lock_ns = 30
    FileWriters(jobs=[Job("/d", 1, lambda: [sequential()], 5, given)], fork_ns=0, start_ns=0, **stage.parts)
    stage.run()
    locked = [entry for entry in stage.log if entry[1] == "lock"]
    assert [entry[2:] for entry in locked] == locks
    for entry in locked:
        assert stage.log[stage.log.index(entry) + 1][:2] == (entry[0] + 30, "write")


def writes_of(stage: Stage) -> list[tuple[int, list[int]]]:
    """Return the time and the pages of each write: its end or, of joined calls, the begin of the first."""
    return [(entry[0], entry[2]) for entry in stage.log if entry[1] == "write"]


def test_a_call_may_write_a_part_of_a_page() -> None:
    """A page takes four calls, each of 2 + 10 / 4 ns and 3 ns of the program, in complete nanoseconds."""
    stage = Stage(room=1)
    job = Job("/d", 1, lambda: [sequential()], 6, Calls(a_page=4, user_ns=3))
    writers = FileWriters(jobs=[job], fork_ns=0, start_ns=0, **stage.parts)
    stage.run()
    begins = 100 + 100 + 1_000
    assert writes_of(stage) == [(begins + 7, [0]), (begins + 507, [0, 0, 0, 1]), (begins + 1_035, [1])]
    assert stage.ended == [begins + 1_035 + 7 + 500 + 5]
    assert (writers.system_ns, writers.user_ns, writers.share_done) == (6 * 4 + 5, 18, 1.0)


def test_blocks_of_several_pages_are_written_in_any_order() -> None:
    """A burst may end inside a block; the next burst begins with the rest of the block."""
    blocks = iter([2, 0, 1])
    order = in_pages(lambda count: np.array([next(blocks) for _ in range(count)]), 4)
    assert [order(count).tolist() for count in (3, 2, 0, 3, 4)] == [
        [8, 9, 10], [11, 0], [], [1, 2, 3], [4, 5, 6, 7],
    ]  # fmt: skip
    plain = sequential()
    assert in_pages(plain, 1) is plain


def test_job_sleeps_for_its_think_time_after_two_calls() -> None:
    """Two calls of two pages take 44 ns, and a pause of 1 000 ns follows them, also after the last call."""
    stage = Stage()
    job = Job("/d", 1, lambda: [sequential()], 10, Calls(2), think_ns=1_000, think_calls=2)
    FileWriters(jobs=[job], fork_ns=0, start_ns=0, **stage.parts)
    stage.run()
    begins = 100 + 100 + 1_000
    assert writes_of(stage) == [
        (begins + 22, [0, 1]), (begins + 22, [2, 3]),
        (begins + 1_044, [4, 5, 6, 7]), (begins + 2_088, [8, 9]),
    ]  # fmt: skip
    assert stage.ended == [begins + 2_115]
    stage = Stage()
    FileWriters(jobs=[job._replace(length=8)], fork_ns=0, start_ns=0, **stage.parts)
    stage.run()
    assert stage.ended == [begins + 2_093]


def test_period_of_calls_counts_from_the_first_call() -> None:
    """A call of 12 ns begins every 100 ns, and no pause follows the last call.

    If balance_dirty_pages takes 500 ns, the next call is late and begins at once.
    """
    stage = Stage(room=1)
    FileWriters(
        jobs=[Job("/d", 1, lambda: [sequential()], 8, period_ns=100)], fork_ns=0, start_ns=0, **stage.parts
    )
    stage.run()
    begins = 100 + 100 + 1_000
    later = [begins + 512 * call for call in range(1, 8)]
    assert [when for when, _ in writes_of(stage)] == [begins + 12, *later]
    stage = Stage()
    FileWriters(
        jobs=[Job("/d", 1, lambda: [sequential()], 3, period_ns=100)], fork_ns=0, start_ns=0, **stage.parts
    )
    stage.run()
    assert [when for when, _ in writes_of(stage)] == [begins + 12, begins + 100, begins + 200]
    assert stage.ended == [begins + 217]


def test_job_spins_through_a_pause_below_spin_ns() -> None:
    """Two pauses of 88 ns count as user time if *spin_ns* is 89, and are slept through if *spin_ns* is 88."""
    stage = Stage()
    job = Job("/d", 1, lambda: [sequential()], 3, period_ns=100, spin_ns=89)
    writers = FileWriters(jobs=[job], fork_ns=0, start_ns=0, **stage.parts)
    stage.run()
    assert writers.user_ns == 2 * 88
    stage = Stage()
    writers = FileWriters(jobs=[job._replace(spin_ns=88)], fork_ns=0, start_ns=0, **stage.parts)
    stage.run()
    assert writers.user_ns == 0


def test_jobs_begin_late_or_after_others() -> None:
    """The parent looks every 100 ms whether the next job may begin.

    ms     event
    0      /a begins, and runs for 260 ms
    100    /b waits, because its delay is 150 ms
    200    /b begins; /c waits, because others run, and /d waits behind /c
    300    /c and /d begin
    """
    stage = Stage(count=4)
    jobs = [
        Job("/a", 1, lambda: [sequential()], 2, think_ns=130 * MS),
        Job("/b", 1, lambda: [sequential()], 1, delay_ns=150 * MS),
        Job("/c", 1, lambda: [sequential()], 1, after_others=True),
        Job("/d", 1, lambda: [sequential()], 1),
    ]
    FileWriters(jobs=jobs, fork_ns=0, start_ns=0, **stage.parts)
    stage.run()
    made = {entry[3]: entry[0] // MS for entry in stage.log if "create" in entry}
    assert made == {"/a": 0, "/b": 200, "/c": 300, "/d": 300}
    assert stage.ended[0] // MS == 300


def test_a_file_is_synced_before_it_is_closed() -> None:
    """A job that syncs at its end calls fsync(2) and then close(2) for each of its files."""
    stage = Stage()
    jobs = [Job("/d", 2, lambda: [sequential(), sequential()], 1, syncs=Syncs(at_end="fsync"))]
    FileWriters(jobs=jobs, fork_ns=0, start_ns=0, **stage.parts)
    stage.run()
    assert [entry[1] for entry in stage.log[-4:]] == ["fsync", "close", "fsync", "close"]


def test_fio_and_dd_make_jobs_of_their_options() -> None:
    """A job of fio has a directory, its own random numbers and scaled times.

    A job of dd writes complete calls.
    """
    stage = Stage()
    spec = FioSpec(
        rw=("randwrite", "write", "randwrite"), numjobs=3, directories=("/a", "/b", "/c"), nrfiles=2,
        filesize=8 * PAGE, app_time=10, fork_time=100, start_time=0, idle_time=0, spin_time=0,
    )  # fmt: skip
    writers = fio(spec=spec, program_scale=1.5, start_ns=3, **stage.parts)
    assert stage.streams == ["job 0", "job 1", "job 2"]
    assert [(job.directory, len(job.orders()), job.length) for job in writers.jobs] == [
        ("/a", 2, 8), ("/b", 2, 8), ("/c", 2, 8),
    ]  # fmt: skip
    orders = [job.orders()[0](8).tolist() for job in writers.jobs]
    assert orders[1] == list(range(8)) != orders[0]
    assert sorted(orders[0]) == sorted(orders[2]) == list(range(8))
    assert {(job.calls, job.syncs) for job in writers.jobs} == {
        (Calls(user_ns=15, random=True), Syncs()), (Calls(user_ns=15), Syncs()),
    }  # fmt: skip
    assert [job.calls.random for job in writers.jobs] == [True, False, True]
    assert writers.fork_ns == 150
    dds = DdSpec(directories=("/d",), streams=2, bs=4 * PAGE, count=3, zero_page_time=10, fork_time=7,
                app_user_time=5, read_time=6)  # fmt: skip
    copies = dd(spec=dds, program_scale=2.0, start_ns=3, **stage.parts)
    assert [(job.directory, len(job.orders()), job.length) for job in copies.jobs] == 2 * [("/d", 1, 12)]
    assert {job.calls for job in copies.jobs} == {Calls(4, 1, 10, 92)}
    assert copies.fork_ns == 14
    assert (dds.total_files, dds.bytes_each, spec.total_files, spec.total_bytes) == (
        2, 12 * PAGE, 6, 48 * PAGE,
    )  # fmt: skip
    apart = dds.model_copy(update={"directories": ("/a", "/b")})
    assert [job.directory for job in dd(spec=apart, program_scale=1.0, start_ns=0, **stage.parts).jobs] == [
        "/a", "/b",
    ]  # fmt: skip


def run_fs_mark(stage: Stage, **changes: Any) -> FsMark:
    """Return an fs_mark of two processes with two files of one page each, in two directories.

    The program takes 40 + 60 ns a file, 50 ns a fork, 20 ns to start, and 30 ns between two iterations.
    """
    fields = {
        "processes": 2, "files": 2, "file_size": PAGE, "write_size": 4 * PAGE, "loops": 2, "subdirs": 0,
        "per_subdir": 0, "directories": ("/a", "/b"), "app_user_time": 40, "app_system_time": 60,
        "fork_time": 50, "start_time": 20, "report_time": 30,
    }  # fmt: skip
    spec = FsMarkSpec.model_validate({**fields, **changes})
    return fs_mark(spec=spec, program_scale=1.0, start_ns=0, **stage.parts)


def test_fs_mark_iteration_ends_when_all_its_processes_end() -> None:
    """A file takes 100 ns of the program, 1 000 ns to create, 12 ns to copy and 5 ns to close.

    In process 1 the creation, the copy and the close take twice as long.

    t        parent                process 0             process 1
    0        forks process 0
    50       forks process 1
    70                             finds its directory
    120                                                  finds its directory
    170                            makes two files
    220                                                  makes two files
    2 404                          ends
    4 488    ends the iteration                          ends
    4 518    begins the next one
    """
    stage = Stage()
    stage.factors["process 1"] = 2.0
    program = run_fs_mark(stage)
    stage.run()
    first, second = 70 + 100 + 2 * 1_117, 120 + 100 + 2 * (100 + 2_000 + 24 + 10)
    again = second + 30
    ends = [second, again + second]
    assert [line.end_ns for line in program.iterations] == ends
    assert [line.count for line in program.iterations] == [4, 8]
    assert [line.app_overhead_us for line in program.iterations] == [0, 0]
    rate = 2 * S / (first - 70) + 2 * S / (second - 120)
    assert [line.files_per_sec for line in program.iterations] == 2 * [pytest.approx(rate)]
    assert program.user_ns == 8 * 40
    assert program.system_ns == 8 * 60 + 4 * (12 + 5) + 4 * (24 + 10)
    assert stage.ended == [ends[1]]
    assert program.share_done == 1.0
    assert {entry[3] for entry in stage.log if "create" in entry} == {"/a", "/b"}
    assert next(entry for entry in stage.log if "dirty" in entry) == (
        70 + 100 + 1_112, "dirty", "/a:1282", 1,
    )  # fmt: skip


def test_throttle_is_called_after_each_write_of_a_file() -> None:
    """Ten pages are written by calls of 4, 4 and 2 pages, and each asks the throttle; a close follows."""
    stage = Stage(room=1)
    program = run_fs_mark(
        stage, processes=1, directories=("/a",), files=1, loops=1, file_size=10 * PAGE, write_size=4 * PAGE
    )
    stage.run()
    assert [entry[3] for entry in stage.log if "dirty" in entry] == [4, 4, 2]
    assert sum(entry[-1] == "balance" for entry in stage.log) == 3
    assert program.system_ns == 60 + 42 + 42 + 22 + 5
    assert program.iterations[0].end_ns == 70 + 100 + 100 + 1_000 + 42 + 42 + 22 + 3 * 500 + 5


@pytest.mark.parametrize(
    ("size", "step", "pages"),
    [
        (PAGE, 4 * PAGE, [1]), (10 * PAGE, 4 * PAGE, [4, 4, 2]), (8 * PAGE, 4 * PAGE, [4, 4]),
        (3_000, 1_000, [1, 0, 0]), (9_000, 4_500, [2, 1]), (1, PAGE, [1]),
    ],
)  # fmt: skip
def test_write_inside_a_page_shares_the_page_with_the_next(size: int, step: int, pages: list[int]) -> None:
    """A page counts for the first write that reaches it."""
    assert run_fs_mark(Stage(), file_size=size, write_size=step).plan.write_pages == pages


def test_subdirectory_changes_by_file_count_or_by_the_clock() -> None:
    """The next subdirectory follows after *per_subdir* files, in a circle.

    Without *per_subdir* the number is the second at which the process starts, and changes after 180 s.
    """
    stage = Stage()
    run_fs_mark(stage, processes=1, directories=("/a",), files=5, loops=1, subdirs=2, per_subdir=2)
    stage.run()
    assert [entry[3] for entry in stage.log if "create" in entry] == [
        "/a/0000", "/a/0000", "/a/0001", "/a/0001", "/a/0000",
    ]  # fmt: skip
    stage = Stage()
    stage.factors["process 0"] = (180 * S - 100) / 1_000  # a file takes 100 ns of the program, too
    run_fs_mark(stage, processes=1, directories=("/a",), files=4, loops=1, subdirs=200, start_time=31 * S)
    stage.run()
    assert [entry[3] for entry in stage.log if "create" in entry] == [
        "/a/001f", "/a/0020", "/a/0021", "/a/0022",
    ]  # fmt: skip


@pytest.mark.parametrize(("file_s", "used"), [(89.8, ["001f"] * 3), (90.2, ["001f", "001f", "0020"])])
def test_subdirectory_changes_after_180_seconds(file_s: float, used: list[str]) -> None:
    """The third file begins 179.6 or 180.4 s after the process.

    A file takes 1 000 ns for its creation, 12 for the copy and 5 for the close, each times the factor.
    """
    stage = Stage()
    stage.factors["process 0"] = file_s * S / 1_017
    run_fs_mark(stage, processes=1, directories=("/a",), files=3, loops=1, subdirs=200, start_time=31 * S)
    stage.run()
    assert [entry[3] for entry in stage.log if "create" in entry] == [f"/a/{name}" for name in used]


def test_subdirectory_clock_begins_with_the_process() -> None:
    """A process that starts after 100 s uses subdirectory 100, and stays there for 180 s."""
    stage = Stage()
    run_fs_mark(stage, processes=1, directories=("/a",), files=2, loops=1, subdirs=200, start_time=100 * S)
    stage.run()
    assert [entry[3] for entry in stage.log if "create" in entry] == ["/a/0064", "/a/0064"]


def test_interrupt_time_lengthens_the_next_file() -> None:
    """The next file takes the 333 ns that an interrupt took, and then the task owes no time."""
    stage = Stage()
    program = run_fs_mark(stage, processes=1, directories=("/a",), loops=1)
    task: Task = program.family.children[0].task
    stage.env.call_at(300, 0, lambda: setattr(task, "owed_ns", 333))
    stage.run()
    assert [entry[4] for entry in stage.log if "create" in entry] == [100, 433]
    assert task.owed_ns == 0


def test_program_scale_lengthens_the_own_time_of_fs_mark() -> None:
    """A scale of 2 doubles all times of fs_mark itself, but not those of system calls."""
    fields = {
        "processes": 1, "files": 1, "file_size": PAGE, "write_size": PAGE, "loops": 2, "subdirs": 0,
        "per_subdir": 0, "directories": ("/a",), "app_user_time": 40, "app_system_time": 60, "fork_time": 50,
        "start_time": 20, "report_time": 30,
    }  # fmt: skip
    stage = Stage()
    program = fs_mark(
        spec=FsMarkSpec.model_validate(fields), program_scale=2.0, start_ns=1_000, **stage.parts
    )
    stage.run()
    each = 100 + 40 + 100 + (80 + 120) + 1_000 + 12 + 5
    assert [line.end_ns for line in program.iterations] == [1_000 + each, 1_000 + each + 60 + each]
    assert (program.user_ns, program.system_ns) == (2 * 80, 2 * (120 + 12 + 5))


def no_order() -> list[Order]:
    """Stand for the orders of a job."""
    return []


def test_options_of_fio_become_fields_of_a_job() -> None:
    """Blocks of 8 KiB at 4 MiB/s are 1/512 s apart, and blocks of 1 KiB are quarters of a page.

    Pauses, delays and fsync are passed on unchanged.
    """
    stage = Stage()
    spec = FioSpec(
        rw="write", numjobs=2, directories=("/a",), nrfiles=1, filesize=8 * PAGE, bs=(2 * PAGE, PAGE // 4),
        rate=(4 * KIB * KIB, None), thinktime=(0, 5), thinktime_blocks=3, startdelay=7,
        stonewall=(False, True), end_fsync=(True, False), app_time=10, fork_time=0, start_time=0, idle_time=0,
        spin_time=89,
    )  # fmt: skip
    first, second = fio(spec=spec, program_scale=1.0, start_ns=0, **stage.parts).jobs
    assert first._replace(orders=no_order) == Job(
        "/a",
        1,
        no_order,
        8,
        Calls(2, 1, 10),
        period_ns=S // 512,
        think_calls=3,
        delay_ns=7,
        files=Files([], pages=8),
        syncs=Syncs(at_end="fsync"),
        spin_ns=89,
        after=[],
    )
    assert second._replace(orders=no_order) == Job(
        "/a",
        1,
        no_order,
        32,
        Calls(1, 4, 10),
        think_ns=5,
        think_calls=3,
        delay_ns=7,
        after_others=True,
        files=Files([], pages=8),
        spin_ns=89,
        after=[],
    )


def test_writes_within_a_page_cost_their_calls() -> None:
    """Four files of a page, written by calls of 4096 B or by four calls of 1024 B: twelve calls more."""
    times = []
    for step in (4_096, 1_024):
        text = loop_config(f"fs_mark -S0 -k -n 4 -s 4096 -w {step} -d /m/a", dirty_mib=8)
        (case,) = parse(text.replace("machine.like", "machine.processors.cv = 0\nmachine.like", 1), "x").cases
        machine = build(case.scenario, 1)
        machine.run()
        times.append(only(machine.programs).system_ns)
    costs = case.scenario.machine.processors
    assert times[1] - times[0] == 4 * 3 * round(costs.paths.write.call_ns * costs.writer_scale)


def wrote(stage: Stage, **job: Any) -> list[tuple[int, Any]]:
    """Run a job, whose files are made at 1 200 ns, 2 200 ns ...; return its writes, syncs and closes.

    The times count from the last creation on.
    """
    fields = {"directory": "/d", "file_count": 1, "orders": lambda: [sequential()], "length": 4, **job}
    one_job = Job(**fields)
    FileWriters(jobs=[one_job], fork_ns=0, start_ns=0, **stage.parts)
    stage.run()
    begins = 200 + 1_000 * one_job.file_count
    calls = []
    for when, what, *more in stage.log:
        if what == "write":
            calls.append((when - begins, more[0]))
        elif what in ("fsync", "fdatasync"):
            calls.append((when - begins, f"{what} {(int(more[0].split(':')[1]) - 200) // 1_000}"))
        elif what == "close":
            calls.append((when - begins, what))
    return calls


@pytest.mark.parametrize(("datasync", "call"), [(False, "fsync 1"), (True, "fdatasync 1")])
def test_job_syncs_after_each_second_write(datasync: bool, call: str) -> None:
    """The first call of 12 ns is an event, and later ones are joined up to the sync of 33 ns.

    No sync follows the last write.
    """
    syncs = Syncs(2, datasync)
    assert wrote(Stage(), length=6, syncs=syncs) == [
        (12, [0]), (12, [1]), (24, call), (57, [2, 3]), (81, call), (114, [4, 5]), (138, "close"),
    ]  # fmt: skip
    assert [when for when, what in wrote(Stage(), length=5, syncs=syncs) if what == call] == [24, 81]
    assert [when for when, what in wrote(Stage(), length=2, syncs=syncs) if what == call] == []


def test_sync_comes_before_a_pause_of_the_same_call() -> None:
    """The pause of 100 ns follows the sync of 33 ns; a joined call is logged at its begin."""
    job: dict[str, Any] = {"syncs": Syncs(1), "think_ns": 100, "think_calls": 2}
    assert [(when, what) for when, what in wrote(Stage(), length=3, **job) if what != "close"] == [
        (12, [0]), (12, "fsync 1"), (45, [1]), (57, "fsync 1"), (190, [2]),
    ]  # fmt: skip


@pytest.mark.parametrize(("at_end", "calls"), [("fsync", 2), ("fdatasync", 2), ("", 0)])
def test_each_file_is_synced_at_the_end(at_end: Any, calls: int) -> None:
    """In the order of the files, each before its close."""
    job: dict[str, Any] = {"file_count": 2, "orders": lambda: [sequential(), sequential()], "length": 1}
    closes = wrote(Stage(), syncs=Syncs(at_end=at_end), **job)[2:]
    names = [what for _, what in closes]
    assert names == ([f"{at_end} 1", "close", f"{at_end} 2", "close"] if calls else ["close", "close"])


def pages_of(calls: list[tuple[int, Any]]) -> list[int]:
    """Return the pages that *calls* write, in their order."""
    return [page for _, pages in calls if isinstance(pages, list) for page in pages]


@pytest.mark.parametrize(
    ("bounds", "pages"),
    [
        (Bounds(), 4), (Bounds(passes=3), 12), (Bounds(total_bytes=PAGE), 1),
        (Bounds(total_bytes=4 * PAGE), 4), (Bounds(total_bytes=10 * PAGE), 10),
        (Bounds(passes=2, total_bytes=3 * PAGE), 3), (Bounds(runtime_ns=1), 1),
        (Bounds(runtime_ns=12), 1), (Bounds(runtime_ns=13), 2), (Bounds(runtime_ns=1_000), 4),
        (Bounds(passes=3, runtime_ns=61), 6), (Bounds(runtime_ns=61, only_time=True), 6),
        (Bounds(runtime_ns=24, ramp_ns=37, only_time=True), 6),
    ],
)  # fmt: skip
def test_bounds_end_the_writes_of_a_job(bounds: Bounds, pages: int) -> None:
    """A file of four pages, each of which takes 12 ns: 61 ns are over within the sixth call.

    The number of passes, a number of pages, a time, or a time that begins after another one.
    """
    assert pages_of(wrote(Stage(), bounds=bounds)) == [page % 4 for page in range(pages)]


def test_syncs_and_pauses_count_the_calls_of_all_passes() -> None:
    """A file of three pages is written twice: the syncs follow the second call and the fourth."""
    job: dict[str, Any] = {"length": 3, "bounds": Bounds(passes=2)}
    calls = [what for _, what in wrote(Stage(), syncs=Syncs(2), **job)]
    assert calls == [[0], [1], "fsync 1", [2], [0], "fsync 1", [1, 2], "close"]
    calls = wrote(Stage(), think_ns=1_000, think_calls=2, **job)
    assert sum(when >= 1_000 for when, what in calls if isinstance(what, list)) >= 2
    assert calls[-1] == (6 * 12 + 3 * 1_000, "close")


def test_blocks_of_a_job_are_its_calls() -> None:
    """Two files with blocks of 3 000 B, which take 2 ns and 10 ns for 4 096 B: 9 ns a call."""

    def blocks() -> list[Blocks]:
        return [Blocks(np.array([0, 3_000]), np.array([3_000, 3_000])) for _ in range(2)]

    job: dict[str, Any] = {"file_count": 2, "length": 2, "blocks": blocks, "syncs": Syncs(3)}
    calls = wrote(Stage(), bounds=Bounds(passes=2), **job)
    assert calls[:5] == [(9, [0]), (18, [0]), (27, [0, 1]), (27, "fsync 2"), (69, [0, 1])]
    assert len(pages_of(calls)) == 2 * 6
    assert [what for _, what in calls if not isinstance(what, list)] == [
        "fsync 2",
        "fsync 1",
        "close",
        "close",
    ]


def test_job_begins_when_its_awaited_jobs_are_over() -> None:
    """The parent looks every 100 ms; /b waits for /a alone, and /c for both."""
    stage = Stage(count=4)
    jobs = [
        Job("/a", 1, lambda: [sequential()], 1, think_ns=130 * MS),
        Job("/b", 1, lambda: [sequential()], 1, after=[0], think_ns=50 * MS),
        Job("/c", 1, lambda: [sequential()], 1, after=[0, 1]),
        Job("/d", 1, lambda: [sequential()], 1),
    ]
    FileWriters(jobs=jobs, fork_ns=0, start_ns=0, **stage.parts)
    stage.run()
    creations = {entry[3]: entry[0] // MS for entry in stage.log if "create" in entry}
    assert creations == {"/a": 0, "/d": 0, "/b": 200, "/c": 300}


def test_jobs_of_one_name_are_counted_together() -> None:
    """Job a has two processes: one ends later; the other begins earlier."""
    stage = Stage(count=4)
    jobs = [
        Job("/a", 1, lambda: [sequential()], 3, Calls(user_ns=5), name="a"),
        Job("/b", 2, lambda: [sequential(), sequential()], 2, Calls(user_ns=7), name="b"),
        Job("/c", 1, lambda: [sequential()], 10, Calls(user_ns=5), name="a"),
    ]
    writers = FileWriters(jobs=jobs, fork_ns=50, start_ns=0, **stage.parts)
    stage.run()
    done = writers.jobs_done
    a, b = done["a"], done["b"]
    assert list(done) == ["a", "b"]
    assert (a.files, a.bytes, a.writes, a.user_ns) == (2, 13 * PAGE, 13, 13 * 5)
    assert (b.files, b.bytes, b.writes, b.user_ns) == (2, 4 * PAGE, 4, 4 * 7)
    assert (a.system_ns, b.system_ns) == (13 * 12 + 2 * 5, 4 * 12 + 2 * 5)
    # The first begins 100 ns earlier, and the last writes for 119 ns longer.
    assert a.took_ns == 2 * 50 + 100 + 1_000 + 10 * 17 + 5
    assert b.took_ns == 100 + 2_000 + 4 * 19 + 2 * 5
    assert (a.latencies.write.count, b.latencies.creat.count) == (13, 2)
    assert writers.latencies.write.count == 17
    assert writers.written_bytes == 17 * PAGE


@pytest.mark.parametrize(
    ("method", "calls"),
    [
        (0, ["close", "close", "close"]),
        (1, ["fsync 0", "close", "fsync 1", "close", "fsync 2", "close"]),
        (2, ["close", "close", "close", "sync", "fsync 0"]),
        (3, ["close", "close", "close", "fsync 2", "fsync 1", "fsync 0"]),
        (4, ["close", "close", "close", "sync", "fsync 2", "fsync 1", "fsync 0"]),
        (5, ["close", "close", "close", "fsync 0", "fsync 1", "fsync 2"]),
        (6, ["close", "close", "close", "sync", "fsync 0", "fsync 1", "fsync 2"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [0, PAGE, 10 * PAGE])
def test_sync_method_of_fs_mark_orders_its_calls(method: int, calls: list[str], size: int) -> None:
    """Three files; their syncs are part of the loop, and so of the rate."""
    stage = Stage()
    program = run_fs_mark(
        stage, processes=1, directories=("/a",), files=3, loops=1, file_size=size, sync_method=method
    )
    stage.run()
    names = list(dict.fromkeys(entry[2] for entry in stage.log if entry[1] == "fsync"))
    if method in (3, 4):
        names.reverse()
    creations = sorted(names, key=lambda name: int(name.split(":")[1]))
    assert names == creations, "files have the time of their creation as a name"
    assert [
        f"fsync {creations.index(entry[2])}" if entry[1] == "fsync" else entry[1]
        for entry in stage.log if entry[1] in ("fsync", "sync", "close")
    ] == calls  # fmt: skip
    writes_ns = {0: 0, PAGE: 12, 10 * PAGE: 42 + 42 + 22}[size]
    syncs_ns = 33 * sum(call.startswith("fsync") for call in calls) + 44 * calls.count("sync")
    loop_ns = 100 + 3 * (100 + 1_000 + writes_ns + 5) + syncs_ns
    assert program.iterations[0].end_ns == 70 + loop_ns
    assert program.iterations[0].files_per_sec == pytest.approx(3 * S / loop_ns)


def dd_job(bs: int, **fields: Any) -> Job:
    """Return the job of a dd of three blocks of *bs* bytes into /d/f, with 5 + 6 ns a block, 10 ns a page."""
    spec = DdSpec.model_validate({
        "directories": ("/d",), "names": ("f",), "streams": 1, "bs": bs, "count": 3, "zero_page_time": 10,
        "fork_time": 7, "app_user_time": 5, "read_time": 6, **fields,
    })  # fmt: skip
    (job,) = dd(spec=spec, program_scale=1.0, start_ns=0, **Stage().parts).jobs
    return job


@pytest.mark.parametrize(
    ("bs", "length", "calls"),
    [
        (PAGE, 3, Calls(1, 1, 5, 16)), (4 * PAGE, 12, Calls(4, 1, 5, 46)), (1_024, 3, Calls(1, 4, 5, 8)),
        (6_144, 3, Calls(1, 1, 5, 21)), (3_000, 3, Calls(1, 1, 5, 13)),
    ],
)  # fmt: skip
def test_block_of_dd_is_read_and_written(bs: int, length: int, calls: Calls) -> None:
    """read(2) clears the share of pages that the block has."""
    job = dd_job(bs)
    assert (job.length, job.calls) == (length, calls)
    assert (job.blocks is None) == (bs not in (6_144, 3_000))


@pytest.mark.parametrize(
    ("fields", "cut_at", "first"),
    [
        ({}, 0, 0), ({"keeps": True}, -1, 0), ({"seek": 2}, 8, 8), ({"seek": 2, "keeps": True}, -1, 8),
    ],
)  # fmt: skip
def test_dd_skips_and_keeps_what_its_operands_say(fields: dict[str, Any], cut_at: int, first: int) -> None:
    """A file loses the pages behind the skipped ones, unless it is not truncated."""
    job = dd_job(4 * PAGE, **fields)
    assert job.files == Files(["/d/f"], cut_at=cut_at)
    assert job.orders()[0](3).tolist() == [first, first + 1, first + 2]


def test_odd_blocks_of_dd_follow_the_skipped_ones() -> None:
    """Blocks of 6 144 B from the second on, which is the third page."""
    blocks = dd_job(6_144, seek=2).blocks
    assert blocks is not None
    (of_file,) = blocks()
    assert (of_file.places.tolist(), of_file.sizes.tolist()) == ([12_288, 18_432, 24_576], [6_144] * 3)


def test_flags_and_syncs_of_dd_reach_its_calls() -> None:
    """oflag=append, oflag=sync or dsync, conv=fsync or fdatasync."""
    assert dd_job(PAGE, appends=True).calls == Calls(1, 1, 5, 16, appends=True)
    for sync in ("O_SYNC", "O_DSYNC"):
        assert dd_job(PAGE, sync=sync).calls.sync == sync
    for at_end in ("fsync", "fdatasync", ""):
        assert dd_job(PAGE, at_end=at_end).syncs == Syncs(at_end=at_end)


def fio_job(**fields: Any) -> Job:
    """Return the only job of a fio with files of 16 pages and *fields*."""
    spec = FioSpec.model_validate({
        "rw": "write", "numjobs": 1, "directories": ("/a",), "nrfiles": 1, "filesize": 16 * PAGE,
        "app_time": 10, "fork_time": 0, "start_time": 0, "idle_time": 0, "spin_time": 89, **fields,
    })  # fmt: skip
    (job,) = fio(spec=spec, program_scale=1.0, start_ns=0, **Stage().parts).jobs
    return job


@pytest.mark.parametrize(
    ("fields", "bounds"),
    [
        ({}, Bounds()), ({"loops": 3}, Bounds(passes=3)),
        ({"io_size": 5 * PAGE}, Bounds(total_bytes=5 * PAGE)),
        ({"io_size": 5 * PAGE, "loops": 2}, Bounds(passes=2, total_bytes=10 * PAGE)),
        ({"io_size": 5 * PAGE, "bs": PAGE // 2}, Bounds(total_bytes=5 * PAGE)),
        ({"runtime": 7, "ramp_time": 2, "time_based": True}, Bounds(1, 0, 7, 2, True)),
        ({"runtime": 7, "time_based": True, "io_size": 5 * PAGE}, Bounds(1, 0, 7, 0, True)),
    ],
)  # fmt: skip
def test_bounds_of_a_fio_job_follow_from_its_options(fields: dict[str, Any], bounds: Bounds) -> None:
    """The size that is written counts for all passes together."""
    assert fio_job(**fields).bounds == bounds


def test_rate_of_blocks_of_several_sizes_counts_bytes() -> None:
    """A call of one size has a period; with several sizes, each byte counts."""
    assert (fio_job(rate=4_000).period_ns, fio_job(rate=4_000).rate) == (1_024_000_000, 0)
    uneven = fio_job(rate=4_000, bs_max=2 * PAGE)
    assert (uneven.period_ns, uneven.rate) == (0, 4_000)


@pytest.mark.parametrize(
    ("fields", "syncs"),
    [
        ({}, Syncs()), ({"fsync": 3}, Syncs(3)), ({"fdatasync": 3}, Syncs(3, True)),
        ({"end_fsync": True}, Syncs(at_end="fsync")), ({"fsync_on_close": True}, Syncs(at_end="fsync")),
        ({"unlink": True}, Syncs(unlinks=True)),
        ({"fdatasync": 2, "end_fsync": True}, Syncs(2, True, "fsync")),
    ],
)  # fmt: skip
def test_syncs_of_a_fio_job_follow_from_its_options(fields: dict[str, Any], syncs: Syncs) -> None:
    """fsync and fdatasync count writes."""
    assert fio_job(**fields).syncs == syncs


@pytest.mark.parametrize(
    ("fields", "files"),
    [
        ({}, Files(["/a/j.0.0"], prepares="", pages=16)),
        ({"create_on_open": False}, Files(["/a/j.0.0"], prepares="none", pages=16)),
        ({"create_on_open": False, "fallocate": "native"}, Files(["/a/j.0.0"], prepares="native", pages=16)),
        ({"create_on_open": False, "fallocate": "keep", "file_append": True},
         Files(["/a/j.0.0"], prepares="", pages=16)),
        ({"filesize": 16 * PAGE + 1, "filename": "x"}, Files(["/a/x"], prepares="", pages=17)),
    ],
)  # fmt: skip
def test_files_of_a_fio_job_follow_from_its_options(fields: dict[str, Any], files: Files) -> None:
    """A file that exists keeps its pages; the parent makes the others, unless the job does."""
    assert fio_job(names=("j",), **fields).files == files


def test_paces_of_a_fio_job_follow_from_its_options() -> None:
    """A rate in bytes or in blocks a second, and the depth of io_uring alone."""
    assert fio_job(rate=PAGE * 4).period_ns == S // 4
    assert fio_job(rate=PAGE * 4, bs=2 * PAGE).period_ns == S // 2
    assert fio_job(rate_iops=250).period_ns == 4 * MS
    assert fio_job(iodepth=8).in_flight == 0
    assert fio_job(iodepth=8, ioengine="io_uring").in_flight == 8
    assert fio_job(file_append=True).calls.appends
    assert fio_job(sync="O_DSYNC").calls.sync == "O_DSYNC"


def test_job_waits_for_all_clones_of_the_awaited_one() -> None:
    """The fourth job waits for both clones of the first one."""
    spec = FioSpec.model_validate({
        "rw": "write", "numjobs": 4, "directories": ("/a",), "nrfiles": 1, "filesize": PAGE,
        "names": ("a", "a", "b", "c"), "wait_for": ("", "", "", "a"), "app_time": 10, "fork_time": 0,
        "start_time": 0, "idle_time": 0, "spin_time": 0,
    })  # fmt: skip
    jobs = fio(spec=spec, program_scale=1.0, start_ns=0, **Stage().parts).jobs
    assert [list(job.after) for job in jobs] == [[], [], [], [0, 1]]
    assert [job.name for job in jobs] == ["a", "a", "b", "c"]
