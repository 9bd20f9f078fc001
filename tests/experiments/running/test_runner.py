"""Runs of cases: seeds and replications, sweeps, and what is written of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import wbsim.experiments.running.runner
from tests.harness import FIO, loop_config
from wbsim.experiments.config.experiment import Case, Experiment, parse
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.running.runner import Outcome, run_all, run_case, write_outcomes

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


def of_the_model(outcome: Outcome) -> Outcome:
    """Without what the machine that simulates adds."""
    return replace(outcome, cpu_s=0.0, peak_rss_mib=0.0)


def test_all_jobs_are_run_in_the_order_given_each_with_its_replication() -> None:
    """As one by one; each replication and each seed has dice of its own."""
    of = case()
    one_by_one = [of_the_model(run_case(of, 3, replication)) for replication in (1, 0)]
    assert [of_the_model(outcome) for outcome in run_all([(of, 1), (of, 0)], 3, False)] == one_by_one
    assert [(outcome.seed, outcome.replication) for outcome in one_by_one] == [(3, 1), (3, 0)]
    layouts = {outcome.wall_time for outcome in (*one_by_one, run_case(of, 4, 0))}
    assert len(layouts) == 3


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
        return of.point, size, of.scenario.kernel.dirty.dirty_bytes

    assert [read(of) for of in sweep().cases] == [(2, 2 << 20, 2 << 20), (4, 4 << 20, 3 << 20)]
    everywhere = sweep("workload.filesize=1m", 'kernel.dirty.dirty_bytes="5 MiB"')
    assert [read(of) for of in everywhere.cases] == [(2, 2 << 20, 5 << 20), (4, 4 << 20, 3 << 20)]
    assert sweep().axis == "MiB"


def test_what_is_written_is_what_was_run(tmp_path: Path) -> None:
    """Every sample a row with its variant, point and replication; every outcome in the document."""
    outcomes = run_all([(of, replication) for of in sweep().cases for replication in (0, 1)], 1, False)
    scenarios = {of.label: of.scenario for of in sweep().cases}
    write_outcomes(tmp_path / "out", "a title", "MiB", outcomes, scenarios)
    document = json.loads((tmp_path / "out" / "case.json").read_text())
    assert (document["title"], document["axis"]) == ("a title", "MiB")
    assert [(o["point"], o["replication"]) for o in document["outcomes"]] == [(2, 0), (2, 1), (4, 0), (4, 1)]
    assert [o["wall_time"] for o in document["outcomes"]] == [outcome.wall_time for outcome in outcomes]
    assert set(document["scenarios"]) == {of.label for of in sweep().cases}
    rows = pd.read_parquet(tmp_path / "out" / "iterations.parquet")
    assert list(rows["end_ns"]) == [sample.end_ns for outcome in outcomes for sample in outcome.samples]
    assert list(rows["point"]) == [2, 2, 4, 4]
    with pytest.raises(BadInput, match="give a directory"):
        write_outcomes(tmp_path / "out" / "case.json", "a title", None, outcomes, scenarios)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["case.json", "iterations.parquet"]


def test_progress_is_told_by_each_run_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every iteration of each replication under a name of its own; the line is shown, and taken away."""
    heard: list[tuple[str, Any]] = []
    shown: list[str] = []

    class Meter:
        def __init__(self, runs: int) -> None:
            shown.append(f"of {runs}")

        def note(self, key: str, report: Any) -> None:
            heard.append((key, report))

        def show(self) -> None:
            shown.append("shown")

        def clear(self) -> None:
            shown.append("cleared")

    monkeypatch.setattr(wbsim.experiments.running.runner, "Meter", Meter)
    text = loop_config("fs_mark -S0 -n 2500 -s 4096 -L 8 -d a -d b", dirty_mib=2)
    of = case(text)
    told = run_all([(of, 0), (of, 1)], 1, True)
    assert {key for key, _ in heard} == {"base 0", "base 1"}
    for key in ("base 0", "base 1"):
        reports = [report for name, report in heard if name == key]
        shares = [report.share for report in reports]
        assert shares == sorted(shares)
        assert {8 * share for share in shares} <= set(range(9))
        assert {report.label for report in reports} == {"base"}
        assert reports[0].simulated_s > 0
    assert (shown[0], shown[-1]) == ("of 2", "cleared")
    assert set(shown[1:-1]) == {"shown"}
    assert [outcome.replication for outcome in told] == [0, 1]
    run_all([(case(), 0)], 1, False)
    assert shown[-1] == "of 1", "nothing is cleared where nothing was shown"


def test_a_long_iteration_tells_how_far_it_is() -> None:
    """Every ten simulated seconds, and at its end."""
    heard: list[Any] = []
    text = loop_config("fs_mark -S0 -n 30 -s 4096 -L 2 -d a", dirty_mib=2, more='workload.fork_time = "25 s"')
    run_case(case(text), 1, tell=heard.append)
    assert [int(report.simulated_s) for report in heard] == [10, 20, 25, 30, 40, 50, 50]
    assert [report.share for report in heard] == [0, 0, 0.5, 0.5, 0.5, 0.5, 1]
