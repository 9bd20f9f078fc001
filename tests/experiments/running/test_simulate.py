"""One run: its figures, its levels, and what it tells while it runs."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from tests.harness import FIO, loop_config
from wbsim.experiments.config.case import Case, Experiment
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.running import levels
from wbsim.experiments.running.outcome import Outcome
from wbsim.experiments.running.simulate import run_case

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
    """The only one."""
    (only,) = parse(text, "x.toml").cases
    return only


def test_a_run_s_counters_are_its_parts() -> None:
    """The figures of one run, each worked out from the others."""
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
    assert outcome.log_bytes == mount.log_bytes
    assert outcome.locks["loop0/list_lock"]["acquisitions"] > 0


def sweep(*overrides: str) -> Experiment:
    """Two points."""
    return parse(TEXT + SWEEP, "x.toml", overrides)


def test_a_sweep_s_point_goes_over_an_override_and_that_over_the_scenario() -> None:
    """What a point says counts; what it does not say is the override's, or the scenario's."""

    def read(of: Case) -> tuple[Any, int, Any]:
        (program,) = of.scenario.programs.values()
        size = program.workload.total_bytes // program.workload.total_files
        return of.point["MiB"], size, of.scenario.kernel.dirty.dirty_bytes

    assert [read(of) for of in sweep().cases] == [(2, 2 << 20, 2 << 20), (4, 4 << 20, 3 << 20)]
    everywhere = sweep("workload.filesize=1m", 'kernel.dirty.dirty_bytes="5 MiB"')
    assert [read(of) for of in everywhere.cases] == [(2, 2 << 20, 5 << 20), (4, 4 << 20, 3 << 20)]
    assert sweep().axes == ("MiB",)


def test_a_long_iteration_tells_how_far_it_is() -> None:
    """Every ten simulated seconds, and at its end."""
    heard: list[Any] = []
    text = loop_config("fs_mark -S0 -n 30 -s 4096 -L 2 -d a", dirty_mib=2, more='workload.fork_time = "25 s"')
    run_case(case(text), 1, tell=heard.append)
    assert [int(report.simulated_s) for report in heard] == [10, 20, 25, 30, 40, 50, 50]
    assert [report.share for report in heard] == [0, 0, 0.5, 0.5, 0.5, 0.5, 1]


def test_levels_are_evenly_spaced_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of 10 ms; with eight of them at most, they double as often as they must, and the last row is none
    of those that were dropped; what disks were given never falls.
    """
    whole = run_case(case(), 1).levels
    (ns,) = {b - a for a, b in pairwise(whole["time_ns"])}
    assert ns == levels.FIRST_STEP_NS == whole["time_ns"][0]
    assert max(whole["dirty_pages"]) > 0
    monkeypatch.setattr(levels, "MOST", 8)
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


def test_sampling_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand times as often, or not once: all else is the same."""

    def measured(step_ns: int) -> Outcome:
        monkeypatch.setattr(levels, "FIRST_STEP_NS", step_ns)
        return replace(run_case(case(), 1), levels={}, cpu_s=0.0, peak_rss_mib=0.0)

    assert measured(10_007) == measured(1 << 60) == measured(10_000_000)
