"""`import wbsim`: the interface for scripts and notebooks."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import wbsim
from tests.experiments.outcomes import RUN
from tests.harness import FIO, loop_config
from wbsim.experiments.config.problems import BadInput

CAPTURES = Path(__file__).parents[2] / "captures"
TEXT = loop_config("fs_mark -S0 -n 200 -s 4096 -L 3 -d a -d b", dirty_mib=2) + (
    '[variants.a]\n[variants.b]\nkernel.writeback.plug_scope = "slice"\n'
)


@pytest.fixture(scope="module")
def found() -> wbsim.Findings:
    """Return the findings of two variants at two sizes, with two replications."""
    study = wbsim.experiment(TEXT).vary({"workload.files": [200, 300]})
    return study.run(replications=2, progress=False)


def test_frames_are_tidy(found: wbsim.Findings) -> None:
    """Each observation has a row, with the swept values and the replication."""
    frame = found.frame()
    assert len(frame) == 8
    assert list(frame.columns[:4]) == ["variant", "workload.files", "replication", "seed"]
    summary = found.summary("write_iops")
    assert list(summary["runs"]) == [2] * 4
    assert (summary["low"] <= summary["write_iops_per_s"]).all()
    levels = found.levels()
    assert {"time_s", "dirty_mib", "writeback_mib", "loop0_requests", "loop0_written_mib"} <= set(
        levels.columns
    )
    assert levels["dirty_mib"].max() > 0
    assert len(found.iterations()) == 8 * 3
    latencies = found.latencies()
    assert list(latencies.columns) == [
        "variant", "workload.files", "replication", "program", "call", "calls", "mean_us", "p50_us", "p90_us",
        "p99_us", "p99_9_us", "max_us",
    ]  # fmt: skip
    assert latencies.query("call == 'close'")["calls"].tolist() == list(frame["file_count"])
    assert (latencies["p50_us"] <= latencies["p99_us"]).all()
    assert latencies.query("call == 'write'")["max_us"].tolist() == list(frame["write_latency_max_us"])
    lives = found.lives()
    flusher = lives[lives["thread"].str.endswith("/flusher")]
    assert set(flusher["state"]) <= {"user", "system", "spinning", "ready", "waiting"}
    one = lives[(lives["variant"] == "a") & (lives["workload.files"] == 200) & (lives["replication"] == 0)]
    ends = one.groupby("thread")["time_s"].sum()
    assert ends.max() == pytest.approx(ends.median(), rel=1e-3), "the times of each thread add up to the run"


def test_levels_have_the_await_of_each_interval() -> None:
    """`RUN` has two samples and reads nothing.

    * first: 100 writes waited for 700 ms
    * second: 900 more writes waited for 1 800 ms
    """
    levels = wbsim.Findings("by hand", (), (RUN,)).levels()
    assert levels["vda_w_await_ms"].tolist() == [7.0, 2.0]
    assert levels["vda_write_wait_s"].tolist() == [0.7, 2.5]
    assert levels["vda_r_await_ms"].isna().all()


def test_findings_have_plots_and_texts(found: wbsim.Findings) -> None:
    """Findings are drawn as lines, as a map, over time and as thread times.

    The texts are an explanation and a table.
    """
    lines = found.plot(y=["write_iops", "file_rate"])
    assert [axes.get_xlabel() for axes in lines.axes] == ["", "workload.files"]
    assert {line.get_label() for line in lines.axes[0].get_lines()} == {"a", "b"}
    by_size = found.plot("variant", "write_iops", by="workload.files").axes[0]
    assert [text.get_text() for text in by_size.figure.legends[0].get_texts()] == ["200", "300"]
    assert len(found.heat_map("workload.files", "replication").axes) == 3
    chosen = found.plot(by=["variant", "replication"], where={"workload.files": [200], "variant": "b"})
    assert [line.get_label() for line in chosen.axes[0].get_lines()] == ["0", "1"]
    assert " ".join(chosen.get_suptitle().split()).endswith("(workload.files = 200, variant = b)")
    assert len(found.heat_map("workload.files", "replication", where={"variant": "b"}).axes) == 2
    assert len(found.over_time().axes) == 7
    assert found.where_time_goes().axes
    assert "held back by" in found.explain()
    assert repr(found).splitlines()[1].startswith("variant  workload.files")


def test_study_lists_its_cases_before_a_run() -> None:
    """Cases follow from changes of any kind of value, a variant, paired points or a Latin hypercube."""
    study = (
        wbsim.experiment(TEXT)
        .variant("b")
        .set({"workload.loops": 2, "kernel.dirty": {"dirty_bytes": "3 MiB"}})
    )
    (case,) = study.experiment().cases
    assert (case.variant, case.scenario.kernel.dirty.dirty_bytes) == ("b", 3 << 20)
    together = study.vary({"workload.files": [1, 2], "workload.loops": [3, 4]}, together=True)
    assert [case.point for case in together.experiment().cases] == [
        {"workload.files": 1, "workload.loops": 3}, {"workload.files": 2, "workload.loops": 4},
    ]  # fmt: skip
    assert len(study.vary({"workload.files": [1, 90]}, samples=7).experiment().cases) == 7
    assert wbsim.load("plug.toml").experiment().title.startswith("fs_mark of 9.6 million")
    with pytest.raises(BadInput, match=r"nowhere\.toml: No such file"):
        wbsim.load("nowhere.toml")
    with pytest.raises(BadInput, match="unknown key"):
        wbsim.experiment("titel = 3")
    with pytest.raises(wbsim.BadInput, match="has no results"):
        wbsim.results(CAPTURES)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        wbsim.nothing  # noqa: B018
    assert set(wbsim.__all__) < set(dir(wbsim))
    assert wbsim.__version__ == "0.1.0"


def test_kept_results_are_read_again(tmp_path: Path) -> None:
    """The outcomes are equal."""
    study = wbsim.experiment(TEXT).variant("a")
    ran = study.run(out=tmp_path / "out", progress=False)
    assert wbsim.results(tmp_path / "out").outcomes == ran.outcomes


def test_a_capture_is_judged_by_any_rules() -> None:
    """All decisions equal the kernel's under the kernel's rules, but not under other rules.

    `what_if` has the requests that each set of rules would issue.
    """
    capture = wbsim.Capture(CAPTURES / "fsmark-xfs-ag2.trace.xz")
    own = capture.judge()
    assert own.agrees
    other = capture.judge(capture.rules.model_copy(update={"max_requests": 1}))
    assert other.full_flush_equal != own.full_flush_equal or not other.agrees
    frame = capture.what_if({"a": capture.rules, "b": wbsim.PLUG_RULES["3.11"]})
    assert list(frame["rules"]) == ["a", "b"]
    assert (frame["requests"] > 0).all()
    assert capture.draw().axes
    (panel, *_) = capture.draw({"mine": wbsim.PLUG_RULES["3.11"]}).axes
    assert [label.get_text() for label in panel.get_yticklabels()] == ["6.17", "mine"]


def test_script_imports_the_modules_of_its_folder_next_to_wbsim(tmp_path: Path) -> None:
    """The folder has modules models, experiments and sim.  Only the name wbsim is taken by the package."""
    (tmp_path / "models.py").write_text("MINE = 1\n")
    for name in ("experiments", "sim"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("MINE = 2\n")
    code = (
        "import wbsim, models, experiments, sim\n"
        "assert (models.MINE, experiments.MINE, sim.MINE) == (1, 2, 2)\n"
        "print(wbsim.load('plug.toml').experiment().axes)\n"
    )
    light = {**os.environ, "WBSIM_ENGINE": os.environ.get("WBSIM_ENGINE", "light")}
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=light, capture_output=True, text=True
    )
    assert (ran.returncode, ran.stdout) == (0, "()\n"), ran.stderr


def test_list_of_texts_is_set_with_its_quotes() -> None:
    """A quote in a text is preserved."""
    case, *_ = wbsim.experiment(TEXT).set({"workload.directories": ["x", 'y"z']}).experiment().cases
    (program,) = case.scenario.programs.values()
    assert program.workload.directories == ("x", 'y"z')


BIG: Any = 10**5_000  # of more digits than Python prints


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda: wbsim.load(5), "load(): source: is 5; "),
        (lambda: wbsim.load("a\0b"), "load(): source: is 'a\\x00b'; give a text without a NUL character"),
        (lambda: wbsim.Capture("\0"), "__init__(): path: is '\\x00'; give a text without a NUL character"),
        (lambda: wbsim.load("x" * 300), f"{'x' * 300}: File name too long; give"),
        (lambda: wbsim.results("x" * 300), f"{'x' * 300}: has no results"),
        (lambda: wbsim.load(BIG), "load(): source: is a whole number of more than 64 bits"),
        (
            lambda: wbsim.experiment(TEXT).set({"a": [1, BIG]}),
            "set(): changes: is a whole number of",
        ),
        (lambda: wbsim.experiment(TEXT).set({BIG: 1}), "set(): changes: is a whole number of"),
        (lambda: wbsim.experiment(TEXT).run(seed=BIG), "run(): seed: is a whole number of more than"),
        (
            lambda: wbsim.experiment(TEXT).run(out=Path("\0")),
            "run(): out: is '\\x00'; give a text without a NUL character",
        ),
        (lambda: wbsim.experiment(None), "experiment(): text: is None; "),
        (lambda: wbsim.results(5), "results(): directory: is 5; "),
        (lambda: wbsim.Capture(5), "__init__(): path: is 5; "),
        (lambda: wbsim.experiment(TEXT).set(None), "set(): changes: is None; "),
        (lambda: wbsim.experiment(TEXT).variant(5), "variant(): name: is 5; "),
        (lambda: wbsim.experiment(TEXT).vary({"a": 5}), "vary(): a: is 5; a list of values was expected"),
        (
            lambda: wbsim.experiment(TEXT).vary({"a": "12"}),
            "vary(): a: is '12'; a list of values was expected",
        ),
        (lambda: wbsim.experiment(TEXT).vary({}, samples=True), "vary(): samples: is True; "),
        (lambda: wbsim.experiment(TEXT).vary({}, samples=0), "vary(): samples: is 0; "),
        (lambda: wbsim.experiment(TEXT).run(seed=-1), "run(): seed: is -1; "),
        (lambda: wbsim.experiment(TEXT).run(seed="1"), "run(): seed: is '1'; "),  # type: ignore[arg-type]
        (lambda: wbsim.experiment(TEXT).run(replications=0), "run(): replications: is 0; "),
        (lambda: wbsim.experiment(TEXT).run(jobs=-1), "run(): jobs: is -1; "),
        (lambda: wbsim.experiment(TEXT).run(out=""), "run(): out: is ''; "),
        (lambda: wbsim.experiment(TEXT).run(out=__file__), f"run(): out {__file__}: {__file__} is a file; "),
        (lambda: wbsim.experiment(TEXT).run(until_ci="x=2%"), "run(): until_ci: x: unknown"),
        (lambda: wbsim.experiment(TEXT).run(until_ci="write_iops=2"), "run(): until_ci: write_iops=2 has no"),
    ],
)
def test_wrong_argument_is_reported_by_its_name(ask: Any, told: str) -> None:
    """The error is raised before anything runs, as for a wrong command line."""
    with pytest.raises(wbsim.BadInput) as refused:
        ask()
    assert str(refused.value).startswith(told)


def test_wrong_argument_of_a_plot_is_reported_by_its_name() -> None:
    """The error proposes the nearest key, or lists all keys."""
    found = wbsim.Findings("t", ("n",), (replace(RUN, point={"n": 1}),))
    for ask, told in (
        (lambda: found.plot("nn"), "plot(): 'nn': unknown key"),
        (lambda: found.plot("n", "write_iop"), "plot(): 'write_iop': unknown key; did you mean write_iops?"),
        (lambda: found.plot("n", []), "plot(): y: is empty"),
        (lambda: found.plot("n", "write_iops", "by"), "plot(): 'by': unknown key"),
        (lambda: found.plot("n", where={"m": 1}), "plot(): 'm': unknown key"),
        (
            lambda: found.plot("n", where={"n": 7}),
            "plot(): where: n: no remaining run has 7; use one of ",
        ),
        (lambda: found.heat_map("n", "n"), "heat_map(): y: is n, the value of x too"),
        (lambda: found.heat_map("n", "variant", "x"), "heat_map(): 'x': unknown key"),
        (lambda: found.summary("x"), "summary(): 'x': unknown key"),
        (lambda: replace(found, outcomes=()).over_time(), "over_time(): all runs ended before"),
    ):
        with pytest.raises(wbsim.BadInput) as refused:
            ask()
        assert str(refused.value).startswith(told)


def test_views_for_notebooks_are_tables() -> None:
    """A study shows its changes and its cases, and findings a row for each case, with their texts escaped."""
    text = loop_config(f"{FIO} --rw=write --nrfiles=2 --filesize=1m --name=a", dirty_mib=2)
    study = wbsim.experiment(text.replace("on the machine", "<b>on</b> the machine"))
    view = study.vary({"workload.nrfiles": [1, 2]})._repr_html_()
    assert "<th>cases</th><td>2, which run() simulates</td>" in view
    assert "&lt;b&gt;on&lt;/b&gt;" in view
    assert "<th>lists</th>" in view
    assert "<th>together</th>" not in view, "only what differs from its default is shown"
    findings = study.vary({"workload.nrfiles": [1, 2]}).run(jobs=1)
    rows = findings._repr_html_()
    assert rows.count("<tr") == 3
    assert "<th>workload.nrfiles</th>" in rows
    assert "&lt;b&gt;" in rows


def test_study_with_several_cases_has_no_single_answer() -> None:
    study = wbsim.load("plug.toml")
    with pytest.raises(wbsim.BadInput, match=r"Study: has 2 cases, unpatched, patched; choose one with"):
        study.show()
    numbers = study.variant("patched").show()
    assert list(numbers.columns[:5]) == ["path", "value", "unit", "origin", "source"]
    assert set(numbers["origin"]) == {"specified", "measured", "calibrated", "assumed"}


def test_layout_of_a_study_has_every_extent() -> None:
    """Two files of 1 MiB: their extents add up to 2 MiB, and lie in groups of the filesystem."""
    text = loop_config(f"{FIO} --rw=write --nrfiles=2 --filesize=1m --name=a", dirty_mib=2)
    extents = wbsim.experiment(text).layout()
    assert int(extents["length_bytes"].sum()) == 2 * 2**20
    assert sorted(set(extents["file"])) == [0, 1]
    assert (extents.groupby("file")["file_offset_bytes"].min() == 0).all()


def test_progress_is_printed_in_terminals_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A saved notebook has no progress lines: stderr is no terminal there."""
    monkeypatch.setitem(sys.modules, "ipykernel", object())  # type: ignore[arg-type]
    text = loop_config("fs_mark -S0 -n 30 -s 4096 -L 2 -d a", dirty_mib=2)
    wbsim.experiment(text).run(jobs=1)
    assert capsys.readouterr().err == ""
