"""The pool of pdflush threads: the threads that get work, start and exit; and the passes of a thread."""

from __future__ import annotations

from collections.abc import Generator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from tests.harness import FIO, BlockLayer, loop_config, run_for
from wbsim.experiments.config.experiment import parse
from wbsim.models.flushers.pdflush import PdflushSpec, pdflush
from wbsim.models.interfaces import Work
from wbsim.models.machine import Machine, build
from wbsim.models.page_cache.accounting import Thresholds
from wbsim.models.writeback.pdflush import PASS_PAGES, Pass
from wbsim.sim.engine import Wait
from wbsim.sim.units import MS, S


class Bdi:
    """A device with one context; the test sets ``queue.congested``."""

    def __init__(self, parts: Any, name: str) -> None:
        self.name = name
        self.parts = parts
        self.queue = SimpleNamespace(congested=False)
        self.wbs: list[Any] = []


class Pool:
    """A pool whose passes take *takes_ns*, one after another, and then 1 ns.

    ``began``: (time, thread, reason) of each pass; ``asked``: (device, pages) of each pass; ``writes``: the
    pages that the next passes write.
    """

    def __init__(self, *takes_ns: int, interval_ns: int = 1_000 * S, **spec: int) -> None:
        self.block = block = BlockLayer()
        self.env = block.env
        self.takes_ns = list(takes_ns)
        self.began: list[tuple[int, str, str]] = []
        self.asked: list[tuple[str, int]] = []
        self.writes: list[int] = []
        self.cache: Any = SimpleNamespace(
            dirty=10, wbs=[], thresholds=lambda: Thresholds(background=5, limit=20)
        )
        self.of = pdflush(
            parts=block.parts, spec=PdflushSpec(**spec), cache=self.cache, writeback=self,  # type: ignore[arg-type]
            interval_ns=interval_ns,
        )  # fmt: skip
        self.bdi = Bdi(block.parts, "sda")
        self.of.register(self.bdi)  # type: ignore[arg-type]
        self.wb = self.bdi.wbs[0]
        self.wb.b_dirty.append(object())
        run_for(self.env, 0)

    def pass_over(self, thread: Any, wb: Any, work: Work, pages: int) -> Generator[Wait, None, Any]:
        """Stand for `Writeback.pass_over`; take an inode from b_more_io, if there is one."""
        self.began.append((self.env.now, thread.task.name, work.reason))
        self.asked.append((wb.name, pages))
        yield self.takes_ns.pop(0) if self.takes_ns else 1
        if wb.b_more_io:
            wb.b_more_io.pop()
        return SimpleNamespace(wrote=self.writes.pop(0) if self.writes else 0, cleaned=0)

    def ask(self) -> bool:
        """Give background work to an idle thread; return whether there was one."""
        return self.of.operation(Work("background", 0))

    def runs(self, ns: int) -> int:
        """Let *ns* pass; return the number of threads then."""
        run_for(self.env, ns)
        return self.of.alive


def test_thread_that_became_idle_last_gets_the_next_work() -> None:
    """pdflush_operation wakes the thread that became idle last, and drops work if no thread is idle."""
    pool = Pool(30, 10, 5)
    assert pool.ask()
    pool.runs(1)
    assert [pool.ask(), pool.ask()] == [True, False]
    pool.runs(19)
    assert pool.ask(), "the thread with the job of 10 is free again"
    pool.runs(20)
    names = [name for _, name, _ in pool.began]
    assert names == ["pdflush1/flusher", "pdflush0/flusher", "pdflush0/flusher"]


@pytest.mark.parametrize(("busy_ns", "threads"), [(S, 2), (S + 1, 3)])
def test_pool_grows_after_it_was_empty_for_a_second(busy_ns: int, threads: int) -> None:
    """A thread that ends its work starts another one if the pool has been empty for more than a second."""
    pool = Pool(busy_ns, 10 * S)
    pool.ask()
    pool.ask()
    assert pool.runs(busy_ns + 1) == threads


def test_pool_grows_to_eight_threads_and_shrinks_to_two() -> None:
    """The pool grows to eight threads and shrinks to two, by at most one thread a second."""
    pool = Pool()
    grown = []
    for _ in range(12):
        while pool.of._idle:
            pool.takes_ns = [S + 20]
            pool.ask()
            run_for(pool.env, 1)
        grown.append(pool.runs(S + 40))
    assert max(grown) == 8
    assert all(b - a <= 1 for a, b in pairwise(grown))
    pool.takes_ns = []
    shrunk = []
    for _ in range(20):
        pool.runs(S + 1)
        pool.ask()
        shrunk.append(pool.runs(2))
    assert shrunk[-1] == 2
    assert all(a - b <= 1 for a, b in pairwise(shrunk))


@pytest.mark.parametrize(("idle_ns", "threads"), [(S, 3), (S + 1, 2)])
def test_thread_exits_if_another_was_idle_for_a_second(idle_ns: int, threads: int) -> None:
    """A thread that ends its work exits if another thread has been idle for more than a second.

    One of three threads exits; of two threads, the minimum, none exits.
    """
    pool = Pool(min_threads=2, max_threads=3)
    pool.of.start_thread()
    run_for(pool.env, 0)
    pool.runs(idle_ns - 1)
    pool.ask()
    assert pool.runs(1) == threads
    pool.runs(3 * S)
    pool.ask()
    pool.runs(2)
    pool.runs(3 * S)
    pool.ask()
    assert pool.runs(2) == 2


def test_two_simultaneous_ends_start_or_stop_one_thread() -> None:
    """Two threads that end their work at once start one thread, or stop one thread.

    * The first thread starts another one, so for the second thread the pool has been empty since now.
    * The first thread exits and renews the idle time of the longest idle thread, so the second one stays.
    """
    comes = Pool(S + 1, S + 1)
    comes.ask()
    comes.ask()
    assert comes.runs(S + 2) == 3
    goes = Pool(5, 5, min_threads=2, max_threads=4)
    goes.of.start_thread()
    goes.of.start_thread()
    goes.runs(2 * S)
    goes.ask()
    goes.ask()
    assert goes.runs(9) == 3


def test_longest_idle_thread_decides_whether_a_thread_exits() -> None:
    """A thread exits because of the longest idle thread, not because of the one that became idle last.

    Of the other two threads, one has been idle for two seconds, the other one for an instant.
    """
    pool = Pool(5, 9, max_threads=3)
    pool.of.start_thread()
    pool.runs(2 * S)
    pool.of._alive = 2  # the thread that ends first stays
    pool.ask()
    pool.ask()
    pool.runs(6)
    pool.of._alive = 3
    assert pool.runs(9) == 2


def test_kupdate_starts_each_interval_or_a_second_after_its_end() -> None:
    """wb_kupdate starts every 5 s, and not earlier than 1 s after its last end.

    * 10 s: wb_kupdate starts and runs for 4.5 s, until 14.5 s.
    * 15.5 s: wb_kupdate starts again, and then every 5 s.

    If no thread is idle, the timer tries again a second later.  Both threads are busy until 6.5 s, so the
    timer fails at 5 s and 6 s, and wb_kupdate starts at 7 s.
    """
    pool = Pool(1, 4_500 * MS, 1, interval_ns=5 * S)
    run_for(pool.env, 40 * S)
    assert [at for at, _, _ in pool.began] == [
        5 * S,
        10 * S,
        10 * S + 5_500 * MS,
        20_500 * MS,
        25_500 * MS,
        30_500 * MS,
        35_500 * MS,
    ]
    dropped = Pool(6_500 * MS, 6_500 * MS, interval_ns=5 * S)
    dropped.ask()
    dropped.ask()
    run_for(dropped.env, 8 * S)
    assert [at for at, _, reason in dropped.began if reason == "periodic"] == [7 * S]


def test_sync_starts_one_pdflush_and_writes_the_rest_itself() -> None:
    """sync(2) calls wakeup_pdflush once for all devices, and writes the rest itself."""
    pool = Pool()
    assert pool.of.queue(pool.wb, Work("start", 100)) is None
    assert pool.of.queue(pool.wb, Work("start", 100)) is None
    assert pool.of.queue(pool.wb, Work("sync")) is None
    run_for(pool.env, 10)
    assert [reason for _, _, reason in pool.began] == ["background"]


def test_work_for_one_superblock_starts_no_pdflush() -> None:
    """syncfs(2) writes its superblock itself; only wakeup_pdflush, for all devices, gives a thread work."""
    pool, sb = Pool(), object()
    assert pool.of.queue(pool.wb, Work("start", 100, sb)) is None  # type: ignore[arg-type]
    pool.runs(10)
    assert pool.began == []
    assert pool.of.queue(pool.wb, Work("start", 100)) is None
    pool.runs(10)
    assert len(pool.began) == 1, "the work of one superblock must not count as a start of all devices"


@pytest.mark.parametrize(("dirty", "passes"), [(4, 0), (5, 1)])
def test_background_work_begins_at_the_threshold_and_not_below(dirty: int, passes: int) -> None:
    """background_writeout begins with five dirty pages, the threshold, and not with four."""
    pool = Pool()
    pool.cache.dirty = dirty
    pool.ask()
    pool.runs(10)
    assert len(pool.began) == passes


def test_pass_is_repeated_if_any_device_has_more_io() -> None:
    """A pass is repeated if any device has inodes on b_more_io.

    The newest device, sdb, comes first.  It has two such inodes, and one is left after the first pass.
    """
    pool = Pool()
    other = Bdi(pool.block.parts, "sdb")
    pool.of.register(other)  # type: ignore[arg-type]
    other.wbs[0].b_dirty.append(object())
    other.wbs[0].b_more_io.extend([object(), object()])
    pool.ask()
    pool.runs(S)
    assert [name for name, _ in pool.asked] == ["sdb", "sda"] * 2


@pytest.mark.parametrize(
    ("writes", "asked"),
    [
        ([600, 424, 100], [("sdb", 1024), ("sda", 424), ("sdb", 1024), ("sda", 924)]),
        ([1024, 100], [("sdb", 1024), ("sdb", 1024), ("sda", 924)]),
    ],
)
def test_a_pass_shares_1024_pages_among_all_devices(writes: list[int], asked: list[tuple[str, int]]) -> None:
    """A pass writes up to 1 024 pages, of the newest device first.

    Passes follow until one writes fewer pages and leaves no inode on b_more_io.
    """
    pool = Pool()
    other = Bdi(pool.block.parts, "sdb")
    pool.of.register(other)  # type: ignore[arg-type]
    other.wbs[0].b_dirty.append(object())
    pool.writes = writes
    pool.ask()
    run_for(pool.env, 10)
    assert pool.asked == asked


def test_pass_is_repeated_after_100_ms_or_end_of_congestion() -> None:
    """A pass that leaves inodes on b_more_io is repeated after 100 ms, or when congestion ends.

    * 0: the first of three inodes is taken.
    * 30 ms: congestion ends; the second inode is taken.
    * 130 ms: the third inode is taken; the work ends, although the threshold is still exceeded.
    """
    pool = Pool()
    pool.wb.b_more_io.extend([object(), object(), object()])
    pool.ask()
    pool.env.call_at(30 * MS, 0, pool.block.parts.congestion.end)
    run_for(pool.env, S)
    assert [at for at, _, _ in pool.began] == [0, 30 * MS, 130 * MS + 1]


# -- on a machine ----------------------------------------------------------------------------------------

TWO = """\
title = "two disks, and two filesystems on one of them"
[scenario]
machine.like = "loop-vm"
machine.disks.a = {{ like = "sata-ssd" }}
machine.disks.b = {{ like = "sata-ssd" }}
kernel.like = "{kernel}"
kernel.dirty.dirty_bytes = "{dirty} MiB"
kernel.dirty.dirty_background_bytes = "{background} MiB"
mounts.x = {{ like = "loop-ext4", disk = "a", at = "/x" }}
mounts.y = {{ like = "loop-xfs", disk = "b", at = "/y", size = "4 GiB" }}
mounts.z = {{ like = "loop-xfs", disk = "b", at = "/z", size = "4 GiB" }}
programs.x = "{fio} --rw=randwrite --nrfiles=2 --filesize=3m --name=a --directory=/x"
programs.y = "{fio} --rw=write --nrfiles=2 --filesize=4m --name=a --directory=/y"
programs.z = "fs_mark -S0 -n 300 -s 8192 -L 2 -d /z/a -d /z/b"
programs.sync = {{ command = "sync", start = "40 ms" }}
sync_after = true
"""


def of_two(kernel: str, dirty: int = 4) -> Machine:
    """Return a machine with two disks and two filesystems on one of them, with one program on each mount."""
    text = TWO.format(kernel=kernel, dirty=dirty, background=dirty // 2, fio=FIO)
    return build(parse(text, "x.toml").cases[0].scenario, 1)


@pytest.mark.parametrize("kernel", ["2.6.29", "2.6.30", "2.6.31", "2.6.32", "2.6.37"])
@pytest.mark.parametrize("dirty", [2, 64])
def test_sync_writes_all_pages_although_the_pool_drops_work(kernel: str, dirty: int) -> None:
    """sync(2) writes all pages, also if the busy pool drops background work (with a limit of 2 MiB)."""
    machine = of_two(kernel, dirty)
    machine.run()
    cache = machine.cache
    assert (cache.dirty, cache.writeback) == (0, 0)
    assert cache.dirtied == cache.written_pages == 2 * 768 + 2 * 1024 + 1_200 * 2


def test_a_device_has_one_pdflush_at_a_time() -> None:
    """A pass claims a device while it writes an inode; another pass may claim another device."""
    pool = Pool()
    other = Bdi(pool.block.parts, "sdb")
    pool.of.register(other)  # type: ignore[arg-type]
    one, second = Pass(pool.of), Pass(pool.of)
    assert one.enter(pool.wb)
    assert (second.enter(pool.wb), second.encountered_congestion) == (False, False)
    assert second.enter(other.wbs[0])
    assert (pool.of.in_progress(pool.wb), pool.of.in_progress(other.wbs[0])) == (True, True)
    one.leave(pool.wb)
    assert (pool.of.in_progress(pool.wb), pool.of.in_progress(other.wbs[0])) == (False, True)
    pool.bdi.queue.congested = True
    assert not second.gives_up(), "the queue of the other device is not congested"
    second.leave(other.wbs[0])
    assert (second.enter(pool.wb), second.encountered_congestion) == (False, True)


def test_pdflush_skips_a_congested_queue_and_never_waits_for_requests() -> None:
    """pdflush on a slow disk sleeps for congestion but never for a request; writers do sleep for requests."""
    slow = 'machine.device = { kind = "loop", command_time = "200 us", page_time = "1 us" }'
    text = loop_config(
        f"{FIO} --rw=randwrite --nrfiles=2 --filesize=16m --name=a", dirty_mib=16, kernel="2.6.30",
        filesystem="loop-ext4", more=f"sync_after = true\n{slow}",
    )  # fmt: skip
    machine = build(parse(text, "x.toml").cases[0].scenario, 1)
    machine.run()
    slept = dict.fromkeys(("a request", "congestion"), 0)
    for thread in machine.flushers.threads:
        for what in slept:
            slept[what] += thread.task.slept_ns.get(what, 0)
    assert slept["a request"] == 0
    assert slept["congestion"] > 0
    writers = [thread for thread in machine.threads if "process" in thread.task.name]
    assert sum(thread.task.slept_ns.get("a request", 0) for thread in writers) > 0
    assert PASS_PAGES == 1024


def test_lone_pdflush_leaves_a_file_before_the_queue_is_full() -> None:
    """pdflush leaves a file before the queue is full, also if no other event interrupts its steps.

    A queue of 128 requests is congested from 113 on, so 15 requests are left to notice the congestion.
    """
    text = (
        """\
title = "a writer that ends, and pdflush after it"
[scenario]
machine.like = "loop-vm"
machine.device = { kind = "loop", command_time = "200 us", page_time = "1 us" }
kernel.like = "2.6.30"
kernel.dirty.dirty_bytes = "64 MiB"
kernel.dirty.dirty_background_bytes = "8 MiB"
mounts.m = { like = "loop-ext4", disk = "loop0", at = "/" }
programs.sync = { command = "sync", start = "4 s" }
programs.fio = \""""
        + FIO
        + """ --rw=randwrite --nrfiles=1 --filesize=24m --name=a"
"""
    )
    machine = build(parse(text, "x.toml").cases[0].scenario, 1)
    machine.run()
    slept = [thread.task.slept_ns for thread in machine.flushers.threads]
    assert any("congestion" in of for of in slept)
    assert not any("a request" in of for of in slept)


def test_max_threads_below_min_threads_is_refused() -> None:
    """The error gives both numbers."""
    with pytest.raises(ValueError, match="1 is less than min_threads; give at least 2"):
        PdflushSpec(max_threads=1)


def test_flusher_threads_start_when_needed_and_exit_when_idle() -> None:
    """2.6.37 starts a flusher thread when a device first needs one, and stops it after 30 idle seconds.

    Programs write to two of twenty devices, the first for a moment only.

    * 5 s: the forker looks at all devices and starts two threads.
    * 35 s: the first device is written back.
    * 70 s: the thread of the first device has been idle for more than 30 s and exits.

    From 3.10 on the flusher is a work of a workqueue, which exists only while it works.
    """
    text = f"""\
title = "many disks"
[scenario]
machine.like = "loop-vm"
machine.disks.s = {{ like = "sata-ssd", count = 20 }}
kernel.like = "2.6.37"
kernel.flusher.exits_after = "30 s"
sync_after = false
mounts.d = {{ like = "loop-ext4", each = "s", at = "/d{{n}}" }}
programs.short = "{FIO} --rw=write --nrfiles=1 --filesize=64k --name=a --directory=/d1"
programs.long = "{FIO} --rw=write --nrfiles=1 --filesize=400k --rate=4k --name=a --directory=/d7"
"""
    (case,) = parse(text, "x.toml").cases
    machine, seen = build(case.scenario, 1), list[tuple[float, int]]()
    machine.watch(lambda: S, lambda: seen.append((machine.env.now / S, machine.flushers.alive)))
    machine.run()
    alive = dict(seen)
    assert alive[4.0] == 0
    assert alive[6.0] == 2
    assert max(alive.values()) == 2
    # The first file is written back when it is 30 s old, at the tick of 35 s; its thread exists at 64 s.
    assert (alive[64.0], alive[71.0]) == (2, 1)
    assert machine.flushers.alive == 1
    text = text.replace("2.6.37", "3.11").replace('exits_after = "30 s"', 'kind = "per_bdi"')
    newer = build(parse(text, "x.toml").cases[0].scenario, 1)
    newer.run()
    assert newer.flushers.alive == 0


@pytest.mark.parametrize(("inodes", "passes"), [(1, 2), (2, 2), (0, 1)])
def test_kupdate_writes_dirty_pages_plus_one_for_each_inode(inodes: int, passes: int) -> None:
    """wb_kupdate writes as many pages as are dirty, plus one for each inode.

    A pass has 1 024 pages, so 1 024 dirty pages and an inode need two passes.
    """
    pool = Pool(interval_ns=5 * S)
    pool.cache.dirty = 1_024
    pool.wb.b_dirty.clear()
    pool.wb.b_dirty.extend(object() for _ in range(max(1, inodes)))
    if not inodes:
        pool.cache.dirty -= 1
    pool.writes = [1_024, 1_024, 0]
    pool.runs(6 * S)
    assert len(pool.asked) == passes


def test_pool_is_empty_when_its_last_idle_thread_gets_work() -> None:
    """The pool counts as empty from the moment when its last idle thread gets work.

    * 1 s: the first of two threads gets work for 1.9 s.
    * 2 s: the second thread gets work, so the pool is empty from now on.
    * 2.9 s: the first thread ends; the pool was empty for 0.9 s, so no thread is started.
    """
    pool = Pool(1_900 * MS, 10 * S)
    pool.runs(S)
    assert pool.ask()
    pool.runs(S)
    assert pool.ask()
    assert pool.runs(950 * MS) == 2


def test_pages_written_by_a_pass_count_with_their_context() -> None:
    """A context has ten dirty pages before a pass and three after it, so seven pages count as flushed."""
    pool = Pool(5)
    wb = pool.wb
    wb.dirty = 10

    def writes() -> None:
        wb.dirty -= 7

    pool.env.call_at(pool.env.now + 2, 0, writes)
    pool.ask()
    pool.runs(10)
    assert wb.flushed_pages == 7
