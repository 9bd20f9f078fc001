"""`wbsim compare-drives`: inputs and predictions of the drives, and their error."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from wbsim.experiments.cli import main
from wbsim.experiments.drives.compare import (
    Comparison,
    comparisons,
    known_figures,
    median_error,
)
from wbsim.experiments.drives.describe import sheet_names
from wbsim.models.catalogue.data_files import part_in


def row(published: float, model: float, is_input: bool) -> Comparison:
    """Return a comparison of the two figures."""
    return Comparison("d", "random_write_qd1", "/s", published, model, is_input, "measured", "")


def test_median_is_that_of_the_predictions() -> None:
    """Errors of -50, +20 and +10 %; an input does not count."""
    rows = [row(100, 50, False), row(100, 120, False), row(100, 110, False), row(100, 900, True)]
    assert median_error(rows) == pytest.approx(0.2)
    assert median_error(rows[3:]) is None


def test_inputs_come_out_and_predictions_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    """The PM883 is built from its sheet; the rate of 16 requests follows, 59 338 a second measured."""
    assert main(["compare-drives", "pm883-7680gb"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines[2:5]] == ["input", "input", "predicted"]
    assert "random_write_qd16" in lines[4]
    assert "59 338 /s" in lines[4]
    assert lines[-1] == "1 predicted figures: the median error is 0 %"


def test_json_has_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    """The rates are in B/s and a second."""
    assert main(["compare-drives", "savvio-10k4", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [entry["figure"] for entry in document["figures"]] == ["sequential_write", "mean_seek"]
    assert document["figures"][0]["published"] == 141_000_000
    assert document["median_error_of_predictions"] == document["figures"][1]["error"]


def test_unknown_drive_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Drives without a sheet have no figures either."""
    assert main(["compare-drives", "pm883-7680g"]) == 2
    assert capsys.readouterr().err == (
        "wbsim: pm883-7680g: No such file or directory; did you mean pm883-7680gb?\n"
    )


def test_own_sheet_can_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All its figures are inputs, so there is no prediction."""
    path = tmp_path / "sheet.toml"
    path.write_text(
        '[sheet]\nmedium = "MLC"\ninterface = "SATA 6 Gb/s"\ncapacity = "1 TB"\n'
        'sequential_write = "500 MB/s"\nprotected = false\ndurable_writes = 400\n'
    )
    assert main(["compare-drives", str(path)]) == 0
    text = capsys.readouterr().out
    assert re.search(r"sequential_write +specified +500.0 MB/s +[45]\d\d", text)
    assert re.search(r"durable_writes_1 +specified +400.0 /s +400.0 /s +[+-]0.0 % +input\n$", text)


def test_figures_of_a_list_prefer_a_worn_drive() -> None:
    """The S3700's steady rate counts; the 860 EVO has the most of any run."""
    assert known_figures(part_in("drives", "s3700-800gb"))["random_write"] == 36_000
    assert known_figures(part_in("drives", "860-evo-1tb")) == {
        "sequential_write": 520_000_000, "random_write": 90_000, "durable_writes": 490,
    }  # fmt: skip
    assert known_figures(part_in("drives", "sata-ssd")) == {}


@pytest.mark.long
def test_predictions_stay_as_good_as_they_are() -> None:
    """Inputs come out within 7 %, and the median error of the predictions is at most 18.5 %."""
    rows = list(comparisons(sheet_names()))
    assert {row.drive for row in rows if row.is_input and abs(row.error) > 0.07} == set()
    assert (median_error(rows) or 1) <= 0.185
