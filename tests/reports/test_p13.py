"""The claims about report P13: its published figures follow from the mechanism."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wbsim.experiments.cli import main
from wbsim.experiments.published.reproduce import Reproduction, reproduce
from wbsim.experiments.running.execute import How


@pytest.mark.long
def test_quick_reproduction_shows_the_patch(capsys: pytest.CaptureFixture[str]) -> None:
    """A fiftieth of the files gives the same document and roles, and the same direction of every figure."""
    assert main(["reproduce", "P13", "--quick", "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    rows = {row["id"]: row for row in document["rows"]}
    assert len(rows) == 10
    roles = {key: row["role"] for key, row in rows.items()}
    assert {key for key, role in roles.items() if role == "calibrated"} == {
        "P13-sys-u", "P13-wall-u", "P13-rate-u", "P13-iops-u", "P13-bw-u", "P13-wall-p",
    }  # fmt: skip
    assert document["constants"]["calibrated"] <= 4
    assert rows["P13-wall-p"]["simulated"] < 0.8 * rows["P13-wall-u"]["simulated"]
    assert rows["P13-rate-p"]["simulated"] > 1.2 * rows["P13-rate-u"]["simulated"]
    assert rows["P13-iops-p"]["simulated"] < 0.15 * rows["P13-iops-u"]["simulated"]
    assert rows["P13-bw-p"]["simulated"] > 1.2 * rows["P13-bw-u"]["simulated"]
    for row in rows.values():
        assert row["ci95"][0] <= row["simulated"] <= row["ci95"][1]
        if "-wall-" in row["id"] or "-sys-" in row["id"]:
            assert row["relative_error"] is None, "a fiftieth of the files takes a fiftieth of the time"
        else:
            assert row["relative_error"] == pytest.approx(row["simulated"] / row["published"] - 1)


@pytest.fixture(scope="module")
def full() -> Reproduction:
    """Return the reproduction of P13 with all files."""
    return reproduce(["P13"], quick=False, replications=1, how=How())


@pytest.mark.fullsize
@pytest.mark.parametrize(
    "name",
    [
        "P13-wall-u", "P13-sys-u", "P13-rate-u", "P13-iops-u",
        # One constant moves these four rows together; their errors lie between -3.8 and +5.5 %.
        pytest.param("P13-bw-u", marks=pytest.mark.xfail(strict=True, reason="+5.5 %: docs/p13.md")),
    ],
)  # fmt: skip
def test_unpatched_rows_are_within_5_percent(full: Reproduction, name: str) -> None:
    """The constants were fitted to the unpatched column."""
    (error,) = (row.relative_error for row in full.rows if row.id == name)
    assert error is not None
    assert abs(error) <= 0.05, error


@pytest.mark.fullsize
def test_patched_rows_are_within_15_percent(full: Reproduction) -> None:
    """The patched column is predicted, except its wall time.

    Its IOPS had been seen before the size of the log buffers was found (docs/p13.md).
    """
    errors = {row.id: row.relative_error for row in full.rows if row.id.endswith("-p")}
    assert len(errors) == 5
    assert all(error is not None and abs(error) <= 0.15 for error in errors.values()), errors


@pytest.mark.fullsize
def test_rate_of_fs_mark_exceeds_files_by_wall_time(full: Reproduction) -> None:
    """The barrier makes fs_mark's mean rate larger than files by wall time (published: 32 500, 27 100)."""
    unpatched = next(outcome for outcome in full.outcomes if outcome.variant == "unpatched")
    assert unpatched.create_rate is not None
    assert unpatched.create_rate > 1.1 * 9_600_000 / unpatched.wall_time
