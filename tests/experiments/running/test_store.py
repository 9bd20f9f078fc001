"""What is kept of runs: named by what decides them, whole or not at all."""

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
from wbsim.experiments.running import store as store_module
from wbsim.experiments.running.jobs import Failure, Job
from wbsim.experiments.running.plan import read_plan
from wbsim.experiments.running.results import read_results, setting_of
from wbsim.experiments.running.store import Names, Store, read_configuration, replace_whole
from wbsim.experiments.statistics.dataset import number_of, tidy
from wbsim.experiments.sweeps.status import status_of

TEXT = loop_config(f"{FIO} --rw=randwrite --nrfiles=2 --filesize=1m --name=a", dirty_mib=2)


def job(*overrides: str, seed: int = 1, replication: int = 0) -> Job:
    """The only case."""
    (case,) = parse(TEXT, "x.toml", overrides).cases
    return Job(case, seed, replication)


def test_a_run_s_name_is_all_that_decides_what_it_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any number of the configuration, the seed, the replication, the model; not where a number was written,
    nor in which unit, nor the variant's name.
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


def test_what_is_kept_is_found_again(tmp_path: Path) -> None:
    """Every field, to the digit; under any variant and point that comes to the same."""
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


def test_what_is_found_is_of_the_job_s_own_dice(tmp_path: Path) -> None:
    """Its seed and its replication, which the files of a run do not tell: pairs go by them."""
    store = Store(tmp_path, Names())
    for dice in range(3):
        store.keep(job(seed=5, replication=dice), replace(RUN, seed=5, replication=dice, files=100 + dice))
    found = [store.find(job(seed=5, replication=dice)) for dice in range(3)]
    assert [of and (of.seed, of.replication, of.files) for of in found] == [
        (5, 0, 100), (5, 1, 101), (5, 2, 102),
    ]  # fmt: skip


def test_a_failure_is_kept_until_it_succeeds(tmp_path: Path) -> None:
    """With its traceback; a later one takes its place; a run that is done does away with it."""
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
    assert found.files == RUN.files, "who was first is kept"


def test_nothing_half_written_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk while the last file is written: one error with the place, and nothing is left; nor of a
    process that is no more, while what a living one writes stays.
    """
    from wbsim.experiments.running import store as module

    store = Store(tmp_path, Names())

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_write_columns", full)
    with pytest.raises(BadInput, match=rf"{tmp_path}: No space left on device; give a directory"):
        store.keep(job(), RUN)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["failed", "runs"]
    assert list((tmp_path / "runs").iterdir()) == []
    host = os.uname().nodename
    gone, here = (tmp_path / f".aside-{host}-{pid}-x" for pid in (4_194_303, os.getpid()))
    for aside in (gone, here):
        aside.mkdir()
    Store(tmp_path, Names())
    assert (gone.exists(), here.exists()) == (False, True)


def test_a_directory_that_cannot_be_written_is_refused_before_anything_is_run(tmp_path: Path) -> None:
    """Below a file; root may write anywhere else."""
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="give a directory that can be written with --out"):
        Store(tmp_path / "file" / "out", Names())


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    """What fails half-way leaves what was there."""

    def half(path: Path) -> None:
        path.write_text("half")
        raise OSError(5, "Input/output error")

    replace_whole(tmp_path / "deep" / "x", lambda path: path.write_text("whole"))
    with pytest.raises(BadInput, match="Input/output error"):
        replace_whole(tmp_path / "deep" / "x", half)
    assert [(path.name, path.read_text()) for path in (tmp_path / "deep").iterdir()] == [("x", "whole")]


def test_status_counts_by_names_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Done, failed with its message, missing; runs of earlier plans; another model."""
    cases = parse(f"{TEXT}[variants.a]\n[variants.b]\nworkload.nrfiles = 3\n", "x.toml").cases
    jobs = [Job(case, 1, dice) for case in cases for dice in range(2)]
    store = Store(tmp_path, Names())
    store.plan("A title", (), jobs)
    store.keep(jobs[0], RUN)
    store.keep(jobs[2], Failure("error", "poison\nmore", "", 3))
    store.keep(job(seed=99), RUN)
    status = status_of(tmp_path)
    assert status.counts == {"done": 1, "failed": 1, "missing": 2}
    assert status.by_variant == {"a": {"done": 1, "missing": 1}, "b": {"failed": 1, "missing": 1}}
    assert (status.failures, status.others, status.other_model) == ({"b": "poison\nmore"}, 1, False)
    assert main(["status", str(tmp_path)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "A title"
    assert told[1].split() == ["variant", "done", "failed", "missing"]
    assert [line.split() for line in told[3:6]] == [
        ["a", "1", "0", "1"], ["b", "0", "1", "1"], ["all", "1", "1", "2"],
    ]  # fmt: skip
    assert told[6:] == ["failed: b: poison", "1 runs of earlier plans are kept there, too"]
    assert main(["status", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"] == status.counts
    plan = json.loads((tmp_path / "plan.json").read_text())
    (tmp_path / "plan.json").write_text(json.dumps({**plan, "model": "old"}))
    assert "the same command runs all of it again" in status_of(tmp_path).text()


def test_the_dataset_is_tidy(tmp_path: Path) -> None:
    """A row a run; swept quantities are numbers in base units; figures bear their units."""
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
def test_what_was_swept_as_a_number(value: Any, number: float | None) -> None:
    """Factors and quantities are; names are not."""
    assert number_of(value) == number


def test_any_key_of_a_configuration_can_be_asked_for(tmp_path: Path) -> None:
    """As a configuration writes it, also where one of a kind has no name; what is no single value is None."""
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
    assert setting_of(scenario, "queue.nr_requests") is None, "of two disks none is meant"
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
    """Whatever it is instead, in whole or in part."""
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    assert read_plan(tmp_path).runs[0].point == {"n": 1}
    (tmp_path / "plan.json").write_text(plan if isinstance(plan, str) else json.dumps(plan))
    with pytest.raises(BadInput, match=r"plan\.json is damaged"):
        read_plan(tmp_path)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "-0.0", "0"])
def test_a_result_whose_numbers_are_none_is_damaged(number: str, tmp_path: Path) -> None:
    """A wall time above all: figures divide by it."""
    store = Store(tmp_path, Names())
    store.keep(job(), RUN)
    (run,) = (tmp_path / "runs").iterdir()
    text = (run / "summary.json").read_text()
    (run / "summary.json").write_text(re.sub(r'"wall_time": [^,]*', f'"wall_time": {number}', text, count=1))
    with pytest.raises(BadInput, match="is a damaged result"):
        store.find(job())


@pytest.mark.parametrize(
    ("model", "told"),
    [("0123456789abcdef", "is of another version of wbsim"), (None, "is a damaged result")],
)
def test_result_without_new_figures_is_one_error(model: str | None, told: str, tmp_path: Path) -> None:
    """Another version's summary lacks on_disk_time; our version's summary without it is damaged."""
    store = Store(tmp_path, Names())
    store.keep(job(), replace(RUN, on_disk_time=5.0))
    (run,) = (tmp_path / "runs").iterdir()
    summary, made_by = (json.loads((run / name).read_text()) for name in ("summary.json", "run.json"))
    if model is not None:
        (run / "run.json").write_text(json.dumps(made_by | {"model": model}))
    found = store.find(job())
    assert found is not None
    assert found.on_disk_time == 5.0, "the summary has every figure"
    del summary["on_disk_time"]
    (run / "summary.json").write_text(json.dumps(summary))
    with pytest.raises(BadInput) as error:
        store.find(job())
    (problem,) = error.value.problems
    assert problem.place == str(run / "summary.json")
    assert told in str(error.value)
    assert "on_disk_time" in str(error.value)


@pytest.mark.parametrize("name", ["summary.json", "run.json", "levels.parquet", "iterations.parquet"])
@pytest.mark.parametrize("how", ["gone", "empty", "null", "a directory"])
def test_a_damaged_run_is_one_error(name: str, how: str, tmp_path: Path) -> None:
    """By the command that reads it, and by the one that would go on with it."""
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
        ("summary.json", '"merges": ', f'"merges": {"9" * 5_000}', "ValueError: 999999"),
        ("summary.json", '"merges": ', '"merges": {}, "_": ', "merges: Input should be a valid integer"),
        ("run.json", "cpu_s", "cpu", "KeyError: 'cpu_s'"),
    ],
)
def test_which_file_is_damaged_is_told_in_one_short_line(
    name: str, before: str, after: str, told: str, tmp_path: Path
) -> None:
    """And that the whole run is to be made again."""
    store = Store(tmp_path, Names())
    store.keep(job(), RUN)
    (run,) = (tmp_path / "runs").iterdir()
    text = (run / name).read_text()
    assert before in text
    (run / name).write_text(text.replace(before, after, 1))
    with pytest.raises(BadInput) as refused:
        store.find(job())
    assert str(refused.value).startswith(f"{run}/{name}: is a damaged result ({told}")
    assert str(refused.value).endswith(f"); remove {run} and run it again")
    assert len(str(refused.value)) < 600


@pytest.mark.parametrize("lacks", ["time_ns", "limit_pages", "vda queued"])
def test_levels_have_every_column(lacks: str, tmp_path: Path) -> None:
    """Of each disk, too."""
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
    """Which only pictures read."""
    store = Store(tmp_path, Names())
    store.keep(job(), RUN)
    (run,) = (tmp_path / "runs").iterdir()
    assert read_configuration(run)["machine"]["disks"]
    (run / "config.json").unlink()
    if text != "gone":
        (run / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(BadInput, match=r"config\.json: is a damaged result"):
        read_configuration(run)
