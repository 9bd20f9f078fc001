"""One run: its figures, its levels and its progress reports."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import Any

import pytest

from tests.harness import FIO, loop_config
from wbsim.experiments.config.case import Case, Experiment
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.results.figures import FIGURES, READ
from wbsim.experiments.results.outcome import DiskResult, Outcome
from wbsim.experiments.running import reading
from wbsim.experiments.running.simulate import run_case, simulate
from wbsim.models.machine import Machine, build
from wbsim.models.time_accounting import THROTTLED
from wbsim.sim.units import MIB, S

TEXT = loop_config(f"{FIO} --rw=randwrite --nrfiles=2 --filesize=4m --name=a", dirty_mib=2)
SWEEP = """
[sweep]
name = "MiB"
points = [
    { value = 2, workload.filesize = "2 MiB" },
    { value = 4, workload.filesize = "4 MiB", kernel.dirty.dirty_bytes = "3 MiB" },
]
"""


def case(text: str = TEXT) -> Case:
    """Return the only case of *text*."""
    (only,) = parse(text, "x.toml").cases
    return only


def test_figures_of_a_run_follow_from_each_other() -> None:
    """Each figure of one run is computed from other figures."""
    outcome = run_case(case(), 1)
    (program,), (disk,), (mount,) = (
        [*of.values()] for of in (outcome.programs, outcome.disks, outcome.mounts)
    )
    last = outcome.samples[-1]
    assert (outcome.files, program.files, last.count) == (2, 2, 2)
    assert outcome.file_bytes == program.file_bytes == mount.extent_bytes == 8 << 20
    assert outcome.wall_time == program.wall_time == last.end_ns / 1e9
    assert (disk.ios, disk.merges, disk.sectors) == (last.ios, last.merges, last.sectors)
    assert outcome.write_iops == pytest.approx(disk.ios / outcome.wall_time)
    assert outcome.write_bandwidth == pytest.approx(disk.sectors * 512 / outcome.wall_time)
    assert outcome.system_cpu_time == program.system_cpu_time == pytest.approx(last.system_ns / 1e9)
    assert 0 < outcome.system_cpu_time < outcome.wall_time
    assert outcome.extents == mount.extents
    assert len(outcome.extents) == 2
    assert FIGURES["log_size"].whole(outcome) == mount.log_bytes / MIB
    assert outcome.locks["loop0/list_lock"]["acquisitions"] > 0


def test_on_disk_time_is_the_return_of_sync() -> None:
    """The run of a machine ends when sync(2) returns, with every page clean and every request counted."""
    of = case(TEXT.replace("--filesize=4m", "--filesize=64k"))
    machine = simulate(of, 1)
    outcome = run_case(of, 1)
    (disk,), (at_end,), (queue,) = (
        [*of.values()] for of in (outcome.disks, outcome.disks_at_end, machine.queues)
    )
    assert outcome.on_disk_time == pytest.approx(machine.env.now / 1e9, rel=1e-12)
    assert outcome.on_disk_time > outcome.wall_time
    nothing = DiskResult(0, 0, 0, 0.0, reads=0, r_await=None, w_await=None)
    assert disk == nothing, "the files are smaller than the background limit"
    reads, writes = queue.stat.reads, queue.stat.writes
    assert at_end == DiskResult(
        writes.ios, writes.merges, writes.sectors, queue.busy_ns / 1e9, reads.ios,
        r_await=reads.wait_ns / reads.ios / 1e6 if reads.ios else None,
        w_await=writes.wait_ns / writes.ios / 1e6,
    )  # fmt: skip
    assert at_end.sectors * 512 >= outcome.file_bytes == 128 << 10
    assert outcome.readings["dirty_at_end"] == 0
    assert outcome.write_iops == 0.0


def test_on_disk_time_follows_the_last_of_two_programs() -> None:
    """One sync(2) follows the program that ends last; both disks are counted until it returns."""
    of = case(TWO)
    machine = simulate(of, 1)
    outcome = run_case(of, 1)
    ends = {sample.program: sample.end_ns for sample in outcome.samples}
    assert len(set(ends.values())) == 2
    assert outcome.on_disk_time == pytest.approx(machine.env.now / S, rel=1e-12)
    assert {name: disk.ios for name, disk in outcome.disks_at_end.items()} == {
        name: queue.stat.writes.ios for name, queue in machine.queues.items()
    }


def test_dirty_bytes_include_pages_under_writeback() -> None:
    """The last program ends while its flusher writes: these pages are not on disk yet."""
    of = case(TEXT + "sync_after = false\n")
    cache = simulate(of, 1).cache
    assert cache.writeback > 0
    assert run_case(of, 1).readings["dirty_at_end"] == (cache.dirty + cache.writeback) / 256


def test_on_disk_time_includes_reckoned_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sync(2) follows the last program, including its files that were not simulated."""
    of = case(TEXT)
    plain = run_case(of, 1)
    real = Machine.run

    def reckoning(machine: Machine) -> None:
        real(machine)
        for program in machine.programs.values():
            program.reckoned = program.reckoned._replace(ns=3 * S)

    monkeypatch.setattr(Machine, "run", reckoning)
    longer = run_case(of, 1)
    assert plain.on_disk_time is not None
    assert longer.on_disk_time == pytest.approx(plain.on_disk_time + 3)
    assert longer.wall_time == pytest.approx(plain.wall_time + 3)


def test_run_without_sync_leaves_pages_dirty() -> None:
    """Two files of 64 KiB stay below the background limit: no block, no request, 32 dirty pages."""
    outcome = run_case(case(TEXT.replace("--filesize=4m", "--filesize=64k") + "sync_after = false\n"), 1)
    assert (outcome.on_disk_time, outcome.readings["dirty_at_end"]) == (None, 0.125)
    assert outcome.disks_at_end == outcome.disks
    assert outcome.extents == (0, 0)
    assert [mount.extent_bytes for mount in outcome.mounts.values()] == [0]


def test_extents_count_only_allocated_files() -> None:
    """Each file of 1 MiB is one extent, or has no block yet: the mean extent is 1 MiB."""
    text = loop_config("fs_mark -k -S0 -n 8 -s 1048576 -L 3 -d a", dirty_mib=16)
    outcome = run_case(case(text), 1)
    assert 0 < outcome.extents.count(0) < len(outcome.extents) == 24
    assert FIGURES["extents_per_file"].whole(outcome) == 1.0
    assert FIGURES["mean_extent"].whole(outcome) == 1_024.0


def sweep(*overrides: str) -> Experiment:
    """Return an experiment of two points."""
    return parse(TEXT + SWEEP, "x.toml", overrides)


def test_sweep_point_goes_over_override_and_override_over_scenario() -> None:
    """A key that a point does not set has the value of the override, or else of the scenario."""

    def read(of: Case) -> tuple[Any, int, Any]:
        (program,) = of.scenario.programs.values()
        size = program.workload.total_bytes // program.workload.total_files
        return of.point["MiB"], size, of.scenario.kernel.dirty.dirty_bytes

    assert [read(of) for of in sweep().cases] == [(2, 2 << 20, 2 << 20), (4, 4 << 20, 3 << 20)]
    everywhere = sweep("workload.filesize=1m", 'kernel.dirty.dirty_bytes="5 MiB"')
    assert [read(of) for of in everywhere.cases] == [(2, 2 << 20, 5 << 20), (4, 4 << 20, 3 << 20)]
    assert sweep().axes == ("MiB",)


def test_long_iteration_reports_its_progress() -> None:
    """Reports come every ten simulated seconds, and at the end of an iteration."""
    heard: list[Any] = []
    text = loop_config("fs_mark -S0 -n 30 -s 4096 -L 2 -d a", dirty_mib=2, more='workload.fork_time = "25 s"')
    run_case(case(text), 1, on_progress=heard.append)
    assert [int(report.simulated_s) for report in heard] == [10, 20, 25, 30, 40, 50, 50]
    assert [report.share for report in heard] == [0, 0, 0.5, 0.5, 0.5, 0.5, 1]


def test_levels_are_evenly_spaced_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first step is 10 ms.  If fewer than eight samples are allowed, the step doubles as often as needed.

    Samples that are left keep their values, and counters of disks never fall.
    """
    whole = run_case(case(), 1).levels
    (ns,) = {b - a for a, b in pairwise(whole["time_ns"])}
    assert ns == whole["time_ns"][0] == 10_000_000
    assert max(whole["dirty"]) > 0
    monkeypatch.setattr(reading, "MOST", 8)
    few = run_case(case(), 1).levels
    assert 4 <= len(few["time_ns"]) < 8
    (step_ns,) = {b - a for a, b in pairwise(few["time_ns"])}
    assert step_ns > ns
    at = [whole["time_ns"].index(ns) for ns in few["time_ns"]]
    for name, values in few.items():
        assert values == tuple(whole[name][place] for place in at)
    for name in ("loop0 ios", "loop0 sectors"):
        assert list(whole[name]) == sorted(whole[name])
        assert whole[name][-1] > 0


def test_sampling_does_not_change_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures are equal with a thousand times as many samples, and without samples."""

    def measured(step_ns: int) -> Outcome:
        monkeypatch.setattr(reading, "FIRST_STEP_NS", step_ns)
        return replace(run_case(case(), 1), levels={}, cpu_s=0.0, peak_rss_mib=0.0)

    assert measured(10_007) == measured(1 << 60) == measured(10_000_000)


TWO = """\
title = "two mounts on two disks"
[scenario]
machine.like = "loop-vm"
machine.disks.fast.like = "pm9a3"
machine.disks.slow.like = "sata-disk"
kernel.like = "6.18"
kernel.dirty.dirty_bytes = "3 MiB"
kernel.dirty.dirty_background_bytes = "1 MiB"
mounts.a = { like = "loop-xfs", disk = "fast", at = "/a", size = "4 GiB" }
mounts.b = { like = "loop-ext4", disk = "slow", at = "/b", size = "4 GiB" }
programs.p = "fs_mark -k -S0 -n 150 -s 8192 -L 2 -d /a/0 -d /a/1"
programs.q = { command = "dd if=/dev/zero of=/b/x bs=64k count=200", start = "5 ms" }
sync_after = true
"""


def test_levels_equal_the_state_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run has two mounts and two disks, and a second observer records all levels at the same instants."""
    machine = build(case(TWO).scenario, 1)
    monkeypatch.setattr(reading, "FIRST_STEP_NS", 700_000)
    sampler, looked = reading.LevelsOverTime(machine), []

    def look() -> None:
        cache, thresholds = machine.cache, machine.cache.thresholds()
        pages = [sum(getattr(wb, of) for wb in cache.wbs) for of in ("dirty", "dirty_and_writeback")]
        held = [t for t in machine.threads if t.task.seated and t.task.waits_for == THROTTLED]
        row = {
            "time_ns": machine.env.now, "dirty": pages[0] / 256, "writeback": (pages[1] - pages[0]) / 256,
            "background": thresholds.background / 256, "limit": thresholds.limit / 256,
            "held_writers": len(held), "flushers": machine.flushers.alive, "dirty_at_end": pages[1] / 256,
            "written_back": cache.written_pages / 256,
            "flushed": sum(wb.flushed_pages for wb in cache.wbs) / 256,
            "flushed_files": sum(wb.flushed_inodes for wb in cache.wbs),
            "flusher_spin_time": sum(of.task.spin_ns for of in machine.flushers.threads) / 1e9,
        }  # fmt: skip
        for name, queue in machine.queues.items():
            row |= {
                f"{name} ios": queue.stat.writes.ios, f"{name} sectors": queue.stat.writes.sectors,
                f"{name} write_wait_ns": queue.stat.writes.wait_ns, f"{name} reads": queue.stat.reads.ios,
                f"{name} read_wait_ns": queue.stat.reads.wait_ns,
                f"{name} busy_ns": queue.busy_ns,
                f"{name} queued": len(queue.elevator.requests) + queue.stat.in_flight,
            }  # fmt: skip
        looked.append(row)

    machine.watch(lambda: 700_000, look)
    machine.run()
    found = sampler.levels()
    assert looked[0].keys() - READ.keys() == found.keys() - READ.keys()
    count = len(found["time_ns"])
    assert 20 < count < reading.MOST
    assert looked[0].keys() <= found.keys()
    for name in looked[0]:
        assert found[name] == tuple(row[name] for row in looked[:count])
    moving = [name for name in looked[0] if not name.startswith("loop0 ") and "read" not in name]
    still = [name for name in moving if not max(found[name])]
    assert still == [], "each series must change during the run"


READS = """\
title = "a find that reads all inodes"
[scenario]
machine.like = "v13-vm"
kernel.like = "3.11-mmotm"
mounts.scratch = { like = "v13-xfs", at = "/mnt", files = 4_000 }
programs.find = { command = "find /mnt -ctime 1", times = 2 }
"""


def test_reads_are_counted_in_every_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples, levels and disks of a run that only reads have the counters of its queue."""
    monkeypatch.setattr(reading, "FIRST_STEP_NS", 1_000_000)
    of = case(READS)
    (queue,) = simulate(of, 1).queues.values()
    outcome = run_case(of, 1)
    reads = queue.stat.reads
    assert reads.ios > 10
    assert reads.wait_ns > reads.ios * queue.request_ns
    (disk,) = outcome.disks.values()
    await_ms = reads.wait_ns / reads.ios / 1e6
    assert (disk.reads, disk.r_await, disk.w_await) == (reads.ios, await_ms, None)
    assert (outcome.samples[-1].reads, outcome.samples[-1].read_wait_ns) == (reads.ios, reads.wait_ns)
    seen = [outcome.levels[f"{queue.name} {of}"] for of in ("reads", "read_wait_ns")]
    assert all(column[-1] > 0 for column in seen)
    assert all(list(column) == sorted(column) for column in seen)
    assert FIGURES["r_await"].whole(outcome) == await_ms


def test_figures_are_sums_over_programs_mounts_and_disks() -> None:
    """The run has two programs, two mounts and two disks, whose figures add up."""
    outcome = run_case(case(TWO), 1)
    programs, mounts, disks = outcome.programs, outcome.mounts, outcome.disks
    assert (programs["p"].files, programs["q"].files, outcome.files) == (600, 1, 601)
    assert (programs["p"].file_bytes, programs["q"].file_bytes) == (600 * 8_192, 200 << 16)
    assert outcome.file_bytes == outcome.readings["flushed"] * MIB == 600 * 8_192 + (200 << 16)
    assert outcome.readings["flushed_files"] >= 601
    log_bytes = FIGURES["log_size"].whole(outcome) * MIB
    assert log_bytes == mounts["a"].log_bytes + mounts["b"].log_bytes > mounts["a"].log_bytes > 0
    assert outcome.extents == mounts["a"].extents + mounts["b"].extents
    assert outcome.wall_time == pytest.approx(max(programs["p"].wall_time, 0.005 + programs["q"].wall_time))
    assert outcome.system_cpu_time == programs["p"].system_cpu_time + programs["q"].system_cpu_time
    last = outcome.samples[-1]
    for name in ("ios", "merges", "sectors"):
        assert getattr(last, name) == sum(getattr(disk, name) for disk in disks.values())
    waits_ms = sum(disk.ios * disk.w_await for disk in disks.values() if disk.w_await is not None)
    assert last.write_wait_ns == pytest.approx(1e6 * waits_ms)


def test_program_without_files_has_no_part_in_create_rate() -> None:
    """The rate is the mean over the iterations of fs_mark and dd, without those of sync(1)."""
    outcome = run_case(case(TWO + 'programs.s = { command = "sync", start = "2 ms" }\n'), 1)
    rates = {name: [of.files_per_sec for of in outcome.samples if of.program == name] for name in "pqs"}
    assert rates["s"] == [0.0]
    assert len(rates["p"]) == 2
    assert outcome.create_rate == pytest.approx(fmean([*rates["p"], *rates["q"]]))
