"""The claims: the published figures, from mechanism."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from wbsim.experiments.cli import main
from wbsim.experiments.published.figures import published_rows
from wbsim.experiments.published.reproduce import Reproduction, Row, reproduce
from wbsim.experiments.running.execute import How


@pytest.mark.long
def test_every_published_row_of_a_named_report_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """None is hidden; nothing is fitted but the device to its own figure."""
    assert main(["reproduce", "J09", "--json", "--quick"]) == 0
    document = json.loads(capsys.readouterr().out)
    expected = [row.id for row in published_rows() if row.report == "J09"]
    assert [row["id"] for row in document["rows"]] == expected
    roles = {row["id"]: row["role"] for row in document["rows"]}
    assert roles.pop("J09-seqbw") == "calibrated"
    assert set(roles.values()) == {"predicted"}
    assert all(row["simulated"] > 0 for row in document["rows"])


@pytest.mark.long
@pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.fullsize)])
def test_a_flusher_of_its_own_takes_work_off_the_writers(quick: bool) -> None:
    """J09's claim of order; at a similar throughput, which a job of a second does not tell."""
    made = reproduce(["J09"], quick=quick, replications=1, how=How())
    of = {outcome.variant: outcome for outcome in made.outcomes}
    assert of["per_bdi"].system_cpu_time < of["pdflush"].system_cpu_time
    if not quick:
        assert of["per_bdi"].wall_time < 1.01 * of["pdflush"].wall_time


@pytest.mark.long
def test_quick_reproduction_shows_the_patch(capsys: pytest.CaptureFixture[str]) -> None:
    """A fiftieth of the files: same document, same roles, and the same direction of every figure."""
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
    """P13, every file."""
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
    """The constants were fitted to this column."""
    (error,) = (row.relative_error for row in full.rows if row.id == name)
    assert error is not None
    assert abs(error) <= 0.05, error


@pytest.mark.fullsize
def test_patched_rows_are_within_15_percent(full: Reproduction) -> None:
    """The column that is predicted, but for its wall time and its IOPS."""
    errors = {row.id: row.relative_error for row in full.rows if row.id.endswith("-p")}
    assert len(errors) == 5
    assert all(error is not None and abs(error) <= 0.15 for error in errors.values()), errors


@pytest.fixture(scope="module")
def w25() -> dict[str, Row]:
    """Return W25's rows: 144 GiB in 144 files and 120 GiB in 6, every page."""
    rows = reproduce(["W25"], quick=False, replications=1, how=How()).rows
    return {row.id.removeprefix("W25-"): row for row in rows}


@pytest.mark.fullsize
def test_only_one_flusher_of_w25_is_calibrated(w25: dict[str, Row]) -> None:
    assert {name for name, row in w25.items() if row.role == "calibrated"} == {"A-pm-u", "B-pm-u"}
    assert {row.role for row in w25.values()} == {"calibrated", "predicted"}


_OF_SEVERAL: Final = pytest.mark.xfail(
    strict=True, reason="several flushers share something that the model lacks: docs/n10-w25.md"
)


@pytest.mark.fullsize
@pytest.mark.parametrize(
    ("name", "bound"),
    [
        *((f"frag{job}-{flushers}", 0.12) for job in "ABC" for flushers in "up"),
        ("A-pm-u", 0.16), ("B-pm-u", 0.16), ("A-bm-u", 0.35), ("B-bm-u", 0.35),
        ("A-bm-p", 0.5), ("B-bm-p", 0.5),
        pytest.param("A-pm-p", 0.5, marks=_OF_SEVERAL), pytest.param("B-pm-p", 0.5, marks=_OF_SEVERAL),
    ],
)  # fmt: skip
def test_rows_of_w25_are_within_their_bounds(w25: dict[str, Row], name: str, bound: float) -> None:
    error = w25[name].relative_error
    assert error is not None
    assert abs(error) <= bound


@pytest.mark.fullsize
def test_several_flushers_gain_as_published_on_the_bm1743(w25: dict[str, Row]) -> None:
    """The gain is within three tenths of the report's, and least on the drive with units of 16 KiB."""
    gain = {
        name: (w25[f"{name}-p"].simulated or 0) / (w25[f"{name}-u"].simulated or 1)
        for name in ("A-bm", "A-pm", "B-bm", "B-pm")
    }
    published = {"A-bm": 759 / 243, "B-bm": 706 / 305}
    assert all(abs(gain[name] / of - 1) < 0.3 for name, of in published.items()), gain
    assert gain["A-bm"] < gain["A-pm"]
    assert gain["B-bm"] < gain["B-pm"]


@pytest.mark.fullsize
def test_the_barrier_separates_the_two_rates(full: Reproduction) -> None:
    """fs_mark's mean rate is well above files by wall time, as published (32 500 against 27 100)."""
    unpatched = next(outcome for outcome in full.outcomes if outcome.variant == "unpatched")
    assert unpatched.create_rate is not None
    assert unpatched.create_rate > 1.1 * 9_600_000 / unpatched.wall_time
