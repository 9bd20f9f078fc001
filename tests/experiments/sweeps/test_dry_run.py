"""`--dry-run`: the runs of an experiment, their amounts, and the estimate of their time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness import loop_config
from wbsim.experiments.cli import main
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.running import execute
from wbsim.experiments.sweeps.dry_run import plan_document, plan_text, planned

SMALL = loop_config("fs_mark -S0 -n 500 -s 4096 -L 2 -d a -d b", dirty_mib=2)


def test_estimate_counts_files_and_pages() -> None:
    """2 000 files of a page take 65 + 25 us each, and three runs of them 0.54 s; compiled 0.4 of it."""
    experiment = parse(SMALL, "x.toml")
    (entry,) = planned(experiment, 3, compiled=False)
    assert (entry.runs, entry.files, entry.file_bytes) == (3, 2_000, 2_000 * 4_096)
    assert entry.seconds == pytest.approx(3 * 2_000 * 90e-6)
    (compiled,) = planned(experiment, 3, compiled=True)
    assert compiled.seconds == pytest.approx(0.4 * entry.seconds)
    (once,) = planned(experiment, None, compiled=False)
    assert once.runs == 1


def test_text_has_a_line_for_each_case() -> None:
    variants = f"{SMALL}[variants.a]\n[variants.b]\nworkload.files = 250\n"
    cases = planned(parse(variants, "x.toml"), 2, compiled=False)
    assert plan_text(cases, (), 3).splitlines() == [
        "variant  runs  files     MB",
        "-------  ----  -----  -----",
        "a           2  2 000  8.192",
        "b           2  1 000  4.096",
        "",
        "4 runs, 3 at a time: about 0 s (a factor of three either way); nothing was simulated",
    ]  # fmt: skip
    assert "4 at a time" in plan_text(cases, (), 16), "no more run at a time than there are"
    document = plan_document(cases, ())
    assert document["runs"] == 4
    assert document["cpu_s"] == pytest.approx(2 * 3_000 * 90e-6)


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_dry_run_simulates_nothing(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("something was run")

    monkeypatch.setattr(execute, "Workers", never)
    config = tmp_path / "x.toml"
    config.write_text(f"{SMALL}[variants.a]\n[variants.b]\n")
    assert main([command, str(config), "--dry-run", "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.startswith("on the machine that was measured\nvariant  runs")
    assert not (tmp_path / "out").exists()
    assert main([command, str(config), "--dry-run", "--variant", "b", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [case["variant"] for case in document["cases"]] == ["b"]
