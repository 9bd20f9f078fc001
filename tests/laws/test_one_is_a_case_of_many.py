"""Laws of observers, independent disks, sync(2), inode lists, and one or several contexts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import FIO, attributes_of, loop_config, only
from wbsim.experiments.config.experiment import parse
from wbsim.models.interfaces import Thread
from wbsim.models.machine import Machine, build
from wbsim.models.scenario import Scenario
from wbsim.models.tracepoints import Signals
from wbsim.sim.engine import Steps
from wbsim.sim.units import MS, S

RANDOM = f"{FIO} --rw=randwrite --nrfiles=3 --filesize=8m"
ONE = loop_config(f"{RANDOM} --name=a --directory=/a --name=b --directory=/b", dirty_mib=8)
FS_MARK = 'workload.command="fs_mark -S0 -n 700 -s 20480 -L 3 -D 9 -d a -d b"'


def scenario(text: str, *overrides: str) -> Scenario:
    """Return the only scenario of *text*."""
    (case,) = parse(text, "x.toml", overrides).cases
    return case.scenario


def run(what: Scenario, signals: Signals | None = None) -> Machine:
    """Run *what* to its end; return the machine."""
    machine = build(what, 1, signals=signals)
    machine.run()
    return machine


def measured(machine: Machine) -> tuple[Any, ...]:
    """Return the figures of a run, to the last event."""
    return (
        machine.env.now,
        [queue.stat for queue in machine.queues.values()],
        [sb.filesystem.extents_per_file() for sb in machine.mounts.values()],
        [sb.filesystem.log_bytes for sb in machine.mounts.values()],
        [(program.system_ns, program.user_ns) for program in machine.programs.values()],
        [lock.stat for lock in machine.locks],
        machine.cache.written_pages,
    )


@pytest.mark.parametrize(
    "overrides", [(), (FS_MARK,), ('filesystem.like="loop-ext4"',)], ids=["xfs", "small", "ext4"]
)
def test_observer_of_any_signal_changes_no_result(overrides: tuple[str, ...]) -> None:
    """An observer of any single signal is called, and changes no time, request, merge, extent or lock."""
    what = scenario(ONE, *overrides)
    unwatched = measured(run(what))
    heard = {}
    for name in attributes_of(Signals()):
        signals, told = Signals(), [0]

        def count(_: str, told: list[int] = told, **__: object) -> None:
            told[0] += 1

        getattr(signals, name).observers.append(count)
        assert measured(run(what, signals)) == unwatched, name
        heard[name] = told[0]
    assert heard["block_bio_queue"] == (
        heard["block_getrq"] + heard["block_bio_backmerge"] + heard["block_bio_frontmerge"]
    )
    assert heard["block_rq_issue"] == heard["block_rq_complete"] > 0
    assert heard["block_plug"] > 0
    assert heard["block_unplug"] > 0
    assert heard["writeback_single_inode"] > 0


TWO = """\
title = "an SSD with XFS and a disk with ext4, and nothing between them"
[scenario]
machine.like = "p13-vm"
machine.disks.one = {{ like = "sata-ssd" }}
machine.disks.two = {{ like = "sata-disk", device.speed = "x8" }}
machine.processors.exit_time = "0 s"
machine.processors.paths.block.complete_ns = "0 ns" # an interrupt hits anybody
kernel.like = "{kernel}"
kernel.inodes.sb_list = "s_inode_list_lock" # one for all superblocks to 4.2
kernel.writeback.interval = "70 ms"
kernel.writeback.expire = "50 ms"
[scenario.mounts]
x = {{ like = "xfs", disk = "one", at = "/x" }}
e = {{ like = "loop-ext4", disk = "two", at = "/e" }}
[scenario.programs]
a = "{a}"
b = {{ command = "{b}", start = "3 ms" }}
"""
SMALL = {
    "a": "fs_mark -S0 -n 900 -s 8192 -L 3 -D 9 -d /x/a -d /x/b",
    "b": "fs_mark -S0 -n 500 -s 4096 -L 4 -D 9 -d /e/a",
}
LARGE = {
    name: f"{RANDOM} --numjobs=3 --name={name} --directory={at}"
    for name, at in (("a", "/x/a"), ("b", "/e/b"))
}


def requests_of(text: str) -> dict[str, list[tuple[Any, ...]]]:
    """Return the issues and completions of the requests of each disk, with their times."""
    signals = Signals()
    log: dict[str, list[tuple[Any, ...]]] = {}

    def note(name: str, request: Any) -> None:
        log.setdefault(request.queue.name, []).append(
            (machine.env.now, name, request.op, request.start_sector, request.end_sector)
        )

    signals.block_rq_issue.observers.append(note)
    signals.block_rq_complete.observers.append(note)
    machine = build(scenario(text), 1, signals=signals)
    for program in machine.programs.values():
        program.on_end = lambda: None
    machine.env.call_at(680 * MS, 0, machine.env.halt)  # fio begins after 280
    machine.run()
    return log


@pytest.mark.parametrize(
    ("kernel", "commands"), [("3.11", SMALL), ("3.11", LARGE), ("6.18", LARGE)], ids=["small", "3.11", "6.18"]
)
def test_two_disks_that_share_nothing_run_as_if_alone(kernel: str, commands: dict[str, str]) -> None:
    """Two disks have the same events together as alone if their programs share nothing.

    Both are below every threshold, with a processor for each thread and separate random streams.
    """
    text = TWO.format(kernel=kernel, **commands)
    together = requests_of(text)
    lines = {line[0]: line for line in text.splitlines() if line.startswith(("a =", "b ="))}
    without_b, without_a = text.replace(lines["b"], ""), text.replace(lines["a"], "")
    alone = requests_of(without_b)["one"], requests_of(without_a)["two"]
    assert min(map(len, alone)) > 200
    assert (together["one"], together["two"]) == alone


def test_sync_waits_for_pages_that_were_dirty_at_its_call() -> None:
    """A sync(2) in the middle of a run returns when each page that was dirty at its call is clean.

    Other pages are dirty by then.
    """
    text = ONE.replace("workload.command", "programs.fio.command")
    text += 'programs.dd = {command = "dd if=/dev/zero of=/c/x bs=1024k count=6", start = "280 ms"}\n'
    limits = ('kernel.dirty.dirty_bytes="1 GiB"', 'kernel.dirty.dirty_background_bytes="512 MiB"')
    machine = build(scenario(text, *limits), 1)
    thread = _thread(machine)
    dirty: dict[Any, Any] = {}
    left: list[int] = []

    def body() -> Steps:
        yield 310 * MS  # fio begins after 280
        (wb,) = machine.cache.wbs
        for inode in (*wb.b_dirty, *wb.b_io, *wb.b_more_io):
            dirty[inode] = inode.file.pages.states.copy() & 1
        written, at_call = machine.cache.written_pages, machine.cache.dirty_and_writeback
        yield from machine.calls.syncs.sync(thread)
        assert machine.cache.written_pages - written >= at_call
        left.extend(int((inode.file.pages.states[: len(was)] & was).sum()) for inode, was in dirty.items())

    machine.env.start(thread.task, body())
    machine.run()
    assert sum(int(was.sum()) for was in dirty.values()) > 1_000
    assert left == [0] * 7


def _thread(machine: Machine) -> Thread:
    """Return a thread that belongs to no program."""
    from wbsim.models.block.thread import BlockThread
    from wbsim.models.catalogue.kernels import PLUG_RULES

    return BlockThread(machine.env.task("sync"), PLUG_RULES["6.17"], machine.signals)


@pytest.mark.parametrize(
    ("flusher", "contexts"),
    [('{kind = "per_bdi"}', 1), ('{kind = "parallel", by = "hash", contexts = 4}', 4)],
)
def test_each_dirty_inode_is_on_one_list_of_its_context(flusher: str, contexts: int) -> None:
    """The lists are checked every half millisecond; with four contexts, each one has inodes."""
    machine = build(scenario(ONE, f"kernel.flusher={flusher}"), 1)
    rank, most = machine.env.next_rank(), dict.fromkeys(range(4), 0)

    def look() -> None:
        for number, wb in enumerate(machine.cache.wbs):
            wb.check()
            most[number] = max(most[number], len(wb))
        if machine.env.now < 10 * S:
            machine.env.call_at(machine.env.now + MS // 2, rank, look)

    look()
    machine.run()
    assert len(machine.cache.wbs) == contexts
    assert all(most[number] for number in range(contexts))
    assert machine.cache.written_pages == 6 * 2048


def test_parallel_with_one_context_equals_per_bdi() -> None:
    """The flusher parallel with one context gives exactly the run of per_bdi."""
    runs = [measured(run(scenario(ONE, f"kernel.flusher={flusher}"))) for flusher in (
        '{kind = "per_bdi"}', '{kind = "parallel", by = "hash", contexts = 1}')]  # fmt: skip
    assert runs[0] == runs[1]


@pytest.mark.parametrize(("groups", "same"), [(1, True), (2, False)])
def test_parallel_by_group_equals_per_bdi_with_one_group(groups: int, same: bool) -> None:
    """One allocation group gives exactly the run of per_bdi; two groups give another run."""
    on = f"filesystem.agcount={groups}"
    runs = [measured(run(scenario(ONE, on, f"kernel.flusher={flusher}"))) for flusher in (
        '{kind = "per_bdi"}', '{kind = "parallel", by = "allocation_group"}')]  # fmt: skip
    assert (runs[0] == runs[1]) == same


def test_every_bio_is_a_request_or_a_merge() -> None:
    """bios = ios + merges, for small and large files, with and without a plug."""
    for overrides in ((), (FS_MARK,), ('kernel.like="3.11"', FS_MARK), ('kernel.like="2.6.39"',)):
        signals, bios = Signals(), [0]

        def count(_: str, bios: list[int] = bios, **__: object) -> None:
            bios[0] += 1

        signals.block_bio_queue.observers.append(count)
        machine = build(scenario(ONE, "sync_after=true", *overrides), 1, signals=signals)
        machine.run()
        stat = only(machine.queues).stat
        assert bios[0] == stat.writes.ios + stat.writes.merges + stat.in_flight > 100
