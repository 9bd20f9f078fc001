"""Results on disk: each has the name of all that decides the run, and is complete or absent."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.experiments.outcomes import RUN
from tests.harness import FIO, loop_config
from wbsim.experiments.cli import main
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.config.resolved_scenario import resolved
from wbsim.experiments.results.dataset import number_of, tidy
from wbsim.experiments.running import store as store_module
from wbsim.experiments.running.execute import How, Runs
from wbsim.experiments.running.jobs import Failure, Job
from wbsim.experiments.running.plan import PLAN as PLAN_FILE
from wbsim.experiments.running.plan import read_plan
from wbsim.experiments.running.results import read_results, setting_of
from wbsim.experiments.running.store import Names, Store, read_configuration, replace_whole
from wbsim.experiments.sweeps.status import status_of

TEXT = loop_config(f"{FIO} --rw=randwrite --nrfiles=2 --filesize=1m --name=a", dirty_mib=2)


def job(*overrides: str, seed: int = 1, replication: int = 0) -> Job:
    """Return the job of the only case of `TEXT`."""
    (case,) = parse(TEXT, "x.toml", overrides).cases
    return Job(case, seed, replication)


def test_name_of_a_run_covers_all_its_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name depends on every number of the scenario, the seed, the replication and the model.

    The place and the unit of a number do not count, nor does the name of the variant.
    """
    name = Names().name
    base = name(job())
    alike = parse(TEXT.replace("filesize=1m", "filesize=1024k") + "[variants.x]\n", "y.toml").cases[0]
    assert name(Job(alike, 1, 0)) == base
    others = [
        job("workload.nrfiles=3"), job(seed=2), job(replication=1),
        job('machine.processors.wake_time="5001 ns"'),
        job('kernel.writeback.plug_scope="mapping"'), job('machine.processors.paths.inodes.visit_ns="1 ns"'),
    ]  # fmt: skip
    found = {base, *(name(other) for other in others)}
    assert len(found) == 7
    monkeypatch.setattr(store_module, "model_version", lambda: "another")
    assert name(job()) not in found


def test_kept_result_is_found_again(tmp_path: Path) -> None:
    """Each field has its value to the digit.

    Any variant and point with the same scenario finds the result.
    """
    store = Store(tmp_path / "out", Names())
    assert store.find(job()) is None
    outcome = replace(RUN, extents=(3, 1), locks={"l": {"wait_ns": 7}}, uses={"processors": 0.1})
    store.keep(job(), outcome)
    asked = job()
    other = Job(replace(asked.case, variant="v", point={"n": 1}), 1, 0)
    assert store.find(other) == replace(outcome, variant="v", point={"n": 1})
    assert store.find(job(seed=2)) is None
    (run,) = (tmp_path / "out" / "runs").iterdir()
    assert sorted(path.name for path in run.iterdir()) == [
        "config.json", "iterations.parquet", "levels.parquet", "run.json", "summary.json",
    ]  # fmt: skip
    kept = json.loads((run / "config.json").read_text())
    assert kept["scenario"] == resolved(asked.case.scenario)
    assert (kept["seed"], kept["replication"]) == (1, 0)
    summary = json.loads((run / "summary.json").read_text())
    apart = {"variant", "point", "seed", "replication", "samples", "levels", "cpu_s", "peak_rss_mib"}
    assert set(asdict(outcome)) - set(summary) == apart
    told = json.loads((run / "run.json").read_text())
    assert (told["state"], told["cpu_s"], told["peak_rss_mib"]) == ("done", 0.5, 99.6)
    assert {"numpy", "wbsim"} <= set(told["libraries"])
    assert told.keys() == {
        "state", "command", "host", "engine", "python", "model", "libraries", "cpu_s", "peak_rss_mib",
    }  # fmt: skip
    store.keep(job(seed=2), replace(RUN, peak_rss_mib=50.0))
    assert store.peaks_mib([asked, job(seed=2), job(seed=9)]) == {"base": 99.6}


def test_found_result_has_seed_and_replication_of_the_job(tmp_path: Path) -> None:
    """The files of a run do not have these numbers, which form the pairs of a comparison."""
    store = Store(tmp_path, Names())
    for dice in range(3):
        store.keep(job(seed=5, replication=dice), replace(RUN, seed=5, replication=dice, files=100 + dice))
    found = [store.find(job(seed=5, replication=dice)) for dice in range(3)]
    assert [of and (of.seed, of.replication, of.files) for of in found] == [
        (5, 0, 100), (5, 1, 101), (5, 2, 102),
    ]  # fmt: skip


def test_failure_is_kept_until_the_job_succeeds(tmp_path: Path) -> None:
    """A failure has its traceback and replaces an earlier one.  A finished run removes the failure.

    The first result of a job is never replaced.
    """
    store = Store(tmp_path, Names())
    store.keep(job(), Failure("error", "first", "Traceback 1", 3))
    store.keep(job(), Failure("error", "second", "Traceback 2", 3))
    (failed,) = (tmp_path / "failed").iterdir()
    assert (failed / "traceback.txt").read_text() == "Traceback 2"
    assert json.loads((failed / "run.json").read_text())["attempts"] == 3
    assert store.find(job()) is None
    store.keep(job(), RUN)
    assert list((tmp_path / "failed").iterdir()) == []
    assert store.find(job()) is not None
    store.keep(job(), replace(RUN, files=7))
    found = store.find(job())
    assert found is not None
    assert found.files == RUN.files, "the first stored result is kept"


def test_unfinished_result_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk while the last file is written gives one error with the place, and no file is left.

    A new store removes files of a process that has ended, and keeps those of a running process.
    """
    from wbsim.experiments.running import store as module

    store = Store(tmp_path, Names())

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_write_columns", full)
    with pytest.raises(BadInput, match=rf"{tmp_path}: No space left on device; give a writable directory"):
        store.keep(job(), RUN)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["failed", "runs"]
    assert list((tmp_path / "runs").iterdir()) == []
    host = os.uname().nodename
    gone, here = (tmp_path / f".aside-{host}-{pid}-x" for pid in (4_194_303, os.getpid()))
    for aside in (gone, here):
        aside.mkdir()
    Store(tmp_path, Names())
    assert (gone.exists(), here.exists()) == (False, True)


def test_unwritable_directory_is_refused_before_anything_runs(tmp_path: Path) -> None:
    """The directory lies below a file, because root may write anywhere else."""
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=r"give a writable directory$"):
        Store(tmp_path / "file" / "out", Names())


def test_file_is_replaced_completely_or_not_at_all(tmp_path: Path) -> None:
    """A write that fails half-way leaves the earlier file."""

    def half(path: Path) -> None:
        path.write_text("half")
        raise OSError(5, "Input/output error")

    replace_whole(tmp_path / "deep" / "x", lambda path: path.write_text("whole"))
    with pytest.raises(BadInput, match="Input/output error"):
        replace_whole(tmp_path / "deep" / "x", half)
    assert [(path.name, path.read_text()) for path in (tmp_path / "deep").iterdir()] == [("x", "whole")]


def test_status_counts_done_failed_and_missing_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs are counted by their names alone.

    The text also has the messages of failures, runs of earlier plans and a change of the model.
    """
    cases = parse(f"{TEXT}[variants.a]\n[variants.b]\nworkload.nrfiles = 3\n", "x.toml").cases
    jobs = [Job(case, 1, dice) for case in cases for dice in range(2)]
    store = Store(tmp_path, Names())
    store.plan("A title", (), jobs)
    store.keep(jobs[0], RUN)
    store.keep(jobs[2], Failure("error", "poison\nmore", "", 3))
    store.keep(job(seed=99), RUN)
    status = status_of(tmp_path)
    assert status.counts == {"done": 1, "failed": 1, "missing": 2}
    assert status.by_variant == {
        "a": {"done": 1, "failed": 0, "missing": 1}, "b": {"done": 0, "failed": 1, "missing": 1},
    }  # fmt: skip
    failures = {"b, replication 0": "poison\nmore"}
    assert (status.failures, status.others, status.other_model) == (failures, 1, False)
    assert main(["status", str(tmp_path)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "A title"
    assert told[1].split() == ["variant", "done", "failed", "missing"]
    assert [line.split() for line in told[3:6]] == [
        ["a", "1", "0", "1"], ["b", "0", "1", "1"], ["all", "1", "1", "2"],
    ]  # fmt: skip
    assert told[6:] == ["failed: b, replication 0: poison", "the directory also has 1 runs of earlier plans"]
    assert main(["status", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"] == status.counts
    plan = json.loads((tmp_path / "plan.json").read_text())
    (tmp_path / "plan.json").write_text(json.dumps({**plan, "model": "old"}))
    assert "the same command repeats all of them" in status_of(tmp_path).text()


def test_status_names_each_failed_replication(tmp_path: Path) -> None:
    """Eleven replications of one point failed; ten messages are printed, and the rest is counted."""
    (case,) = parse(TEXT, "x.toml").cases
    jobs = [Job(case, 1, dice) for dice in range(11)]
    store = Store(tmp_path, Names())
    store.plan("A title", (), jobs)
    for number, failed in enumerate(jobs):
        store.keep(failed, Failure("error", f"message {number}", "", 3))
    lines = status_of(tmp_path).text().splitlines()
    assert lines[4] == "failed: base, replication 0: message 0"
    assert lines[13:] == ["failed: base, replication 9: message 9", "and 1 more failed runs"]


def test_dataset_is_tidy(tmp_path: Path) -> None:
    """Each run has a row.  Swept quantities are numbers in base units, and names of figures have the unit."""
    runs = [replace(RUN, point={"size": size, "kind": "a"}) for size in ("1 KiB", "2 MiB")]
    frame = tidy(runs, ("size", "kind"))
    assert list(frame["size"]) == [1 << 10, 2 << 20]
    assert list(frame["kind"]) == ["a", "a"]
    assert list(frame.columns[:5]) == ["variant", "size", "kind", "replication", "seed"]
    assert frame["write_iops_per_s"].tolist() == [250.0, 250.0]
    assert {"wall_time_s", "write_bandwidth_mb_per_s", "request_size_kib", "merged_percent"} <= set(
        frame.columns
    )
    frame.to_parquet(tmp_path / "x.parquet")
    assert pd.read_parquet(tmp_path / "x.parquet").equals(frame)
    assert tidy([], ("n",)).columns[1] == "n"


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (3, 3),
        (0.5, 0.5),
        ("x2", 2.0),
        ("5 ms", 5_000_000),
        ("3.11", None),
        (True, None),
        ("xfs", None),
        ([1], None),
    ],
)
def test_swept_factor_or_quantity_is_a_number(value: Any, number: float | None) -> None:
    """Names, truth values and lists are not numbers."""
    assert number_of(value) == number


def test_setting_of_any_key_is_found(tmp_path: Path) -> None:
    """The key is written as in a configuration, so a single disk or mount needs no name.

    A key without a single value gives None.
    """
    config = tmp_path / "x.toml"
    config.write_text(TEXT)
    assert main(["run", str(config), "--out", str(tmp_path / "out")]) == 0
    (scenario,) = read_results(tmp_path / "out").configurations()
    assert setting_of(scenario, "workload.nrfiles") == 2
    assert setting_of(scenario, "kernel.dirty.dirty_bytes") == 2 << 20
    assert setting_of(scenario, "machine.disks.loop0.device.kind") == "null"
    assert setting_of(scenario, "machine.device.kind") == setting_of(scenario, "device.kind") == "null"
    assert setting_of(scenario, "filesystem.kind") == "xfs"
    nr_requests = scenario["machine"]["disks"]["loop0"]["queue"]["nr_requests"]
    assert setting_of(scenario, "machine.queue.nr_requests") == nr_requests > 0
    assert setting_of(scenario, "queue.nr_requests") == nr_requests
    scenario["machine"]["disks"]["other"] = scenario["machine"]["disks"]["loop0"]
    assert setting_of(scenario, "queue.nr_requests") is None, "with two disks the setting is ambiguous"
    assert setting_of(scenario, "machine.disks.other.queue.nr_requests") == nr_requests
    assert setting_of(scenario, "machine") is None
    assert setting_of(scenario, "no.such.key") is None


PLANNED: Final = {"name": "0a", "variant": "base", "point": {"n": 1}, "seed": 1, "replication": 0}
PLAN: Final = {"title": "t", "axes": ["n"], "command": ["wbsim"], "model": "m", "runs": [PLANNED]}


@pytest.mark.parametrize(
    "plan",
    [
        "null", "[]", "{}", "{",
        *({**PLAN, key: value} for key, value in (
            ("title", None), ("title", [1]), ("axes", "n"), ("axes", [0]), ("axes", ["n", "m"]),
            ("command", 0), ("model", None), ("runs", {}), ("runs", [1]),
        )),
        *({**PLAN, "runs": [{**PLANNED, key: value}]} for key, value in (
            ("name", "../x"), ("name", ""), ("variant", 0), ("variant", None), ("variant", "a\0"),
            ("point", []), ("point", {"n": [1]}), ("point", {"n": None}), ("point", {"m": 1}),
            ("seed", -1), ("seed", 10**30), ("seed", True), ("replication", "x"),
        )),
    ],
)  # fmt: skip
def test_a_damaged_plan_is_one_error(plan: Any, tmp_path: Path) -> None:
    """The plan or a part of it has another type or an impossible value."""
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    assert read_plan(tmp_path).runs[0].point == {"n": 1}
    (tmp_path / "plan.json").write_text(plan if isinstance(plan, str) else json.dumps(plan))
    with pytest.raises(BadInput, match=r"plan\.json is damaged"):
        read_plan(tmp_path)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "-0.0", "0"])
def test_impossible_wall_time_is_a_damaged_result(number: str, tmp_path: Path) -> None:
    """Figures divide by the wall time."""
    store = Store(tmp_path, Names())
    store.keep(job(), RUN)
    (run,) = (tmp_path / "runs").iterdir()
    text = (run / "summary.json").read_text()
    (run / "summary.json").write_text(re.sub(r'"wall_time": [^,]*', f'"wall_time": {number}', text, count=1))
    with pytest.raises(BadInput, match="is a damaged result"):
        store.find(job())


@pytest.mark.parametrize("figure", ["on_disk_time", "flushed"])
@pytest.mark.parametrize(
    ("model", "told"),
    [("0123456789abcdef", "was written by another version of wbsim"), (None, "is a damaged result")],
)
def test_result_without_new_figures_is_one_error(
    model: str | None, told: str, figure: str, tmp_path: Path
) -> None:
    """The summary of another version lacks a figure.  A summary of this version without it is damaged."""
    store = Store(tmp_path, Names())
    store.keep(job(), replace(RUN, on_disk_time=5.0))
    (run,) = (tmp_path / "runs").iterdir()
    summary, made_by = (json.loads((run / name).read_text()) for name in ("summary.json", "run.json"))
    if model is not None:
        (run / "run.json").write_text(json.dumps(made_by | {"model": model}))
    found = store.find(job())
    assert found is not None
    assert found.on_disk_time == 5.0, "the summary has every figure"
    del (summary if figure in summary else summary["readings"])[figure]
    (run / "summary.json").write_text(json.dumps(summary))
    with pytest.raises(BadInput) as error:
        store.find(job())
    (problem,) = error.value.problems
    assert problem.place == str(run / "summary.json")
    assert told in str(error.value)
    assert figure in str(error.value)


@pytest.mark.parametrize("name", ["summary.json", "run.json", "levels.parquet", "iterations.parquet"])
@pytest.mark.parametrize("how", ["gone", "empty", "null", "a directory"])
def test_a_damaged_run_is_one_error(name: str, how: str, tmp_path: Path) -> None:
    """The command that reads the run and the command that would continue it report the error."""
    config = tmp_path / "x.toml"
    config.write_text(loop_config(f"{FIO} --rw=write --filesize=64k --name=a", dirty_mib=2))
    out = str(tmp_path / "out")
    assert main(["run", str(config), "--out", out]) == 0
    (run,) = (tmp_path / "out" / "runs").iterdir()
    (run / name).unlink()
    if how == "a directory":
        (run / name).mkdir()
    elif how != "gone":
        (run / name).write_text("null" if how == "null" else "")
    for command in (["timeline", out], ["run", str(config), "--out", out]):
        assert main(command) == 2


@pytest.mark.parametrize(
    ("name", "before", "after", "told"),
    [
        ("summary.json", '"disks"', '"discs"', "disks: Field required"),
        ("summary.json", '"files": ', f'"files": {"9" * 5_000}', "ValueError: 999999"),
        ("summary.json", '"files": ', '"files": {}, "_": ', "files: Input should be a valid integer"),
        ("summary.json", '"flushed_files"', '"flushed_fils"', "ValueError: lacks flushed_files"),
        ("run.json", "cpu_s", "cpu", "KeyError: 'cpu_s'"),
    ],
)
def test_damaged_file_is_named_in_one_short_line(
    name: str, before: str, after: str, told: str, tmp_path: Path
) -> None:
    """The remedy is to remove the complete run."""
    store = Store(tmp_path, Names())
    store.keep(job(), RUN)
    (run,) = (tmp_path / "runs").iterdir()
    text = (run / name).read_text()
    assert before in text
    (run / name).write_text(text.replace(before, after, 1))
    with pytest.raises(BadInput) as refused:
        store.find(job())
    assert str(refused.value).startswith(f"{run}/{name}: is a damaged result ({told}")
    assert str(refused.value).endswith(f"); delete {run} and run the command again")
    assert len(str(refused.value)) < 600


@pytest.mark.parametrize("lacks", ["time_ns", "limit", "vda queued"])
def test_levels_have_every_column(lacks: str, tmp_path: Path) -> None:
    """The columns of each disk are needed, too."""
    store = Store(tmp_path, Names())
    store.keep(job(), RUN)
    (run,) = (tmp_path / "runs").iterdir()
    levels = pq.read_table(run / "levels.parquet")
    pq.write_table(levels.drop_columns([lacks]), run / "levels.parquet")
    with pytest.raises(
        BadInput, match=rf"levels\.parquet: is a damaged result \(ValueError: lacks {lacks}\)"
    ):
        store.find(job())


@pytest.mark.parametrize("text", ["", "null", "{}", '{"scenario": {"machine": 5}}', "\xff", "gone"])
def test_a_damaged_configuration_of_a_run_is_one_error(text: str, tmp_path: Path) -> None:
    """The configuration of a run is read for pictures only."""
    store = Store(tmp_path, Names())
    store.keep(job(), RUN)
    (run,) = (tmp_path / "runs").iterdir()
    assert read_configuration(run)["machine"]["disks"]
    (run / "config.json").unlink()
    if text != "gone":
        (run / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(BadInput, match=r"config\.json: is a damaged result"):
        read_configuration(run)


def test_directory_of_another_experiment_is_refused(tmp_path: Path) -> None:
    """Another title or other axes are another experiment; nothing of the first one changes.

    The same command may continue, and a plan that is damaged or empty may be replaced.
    """
    how, place = How(directory=tmp_path), tmp_path / PLAN_FILE
    place.write_text(json.dumps(PLAN))
    for title, axes in (("Two", ("n",)), ("t", ()), ("t", ("n", "m"))):
        with pytest.raises(BadInput) as refused:
            Runs(how, title, axes)
        assert str(refused.value) == (
            f"--out {tmp_path}: has the results of another experiment (t over n); give another directory"
        )
    assert place.read_text() == json.dumps(PLAN)
    Runs(how, "t", ("n",))
    Runs(how, "Two", shared=True)
    for replaced in ("{", json.dumps({**PLAN, "runs": []})):
        place.write_text(replaced)
        Runs(how, "Two")
