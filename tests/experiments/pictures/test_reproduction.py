"""The picture of a reproduction: a point for each row that has an error."""

from __future__ import annotations

from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from wbsim.experiments.pictures.reproduction import reproduction_picture
from wbsim.experiments.published.reproduce import Reproduction, Row

ROWS = [
    Row("P13-a", 100.0, "s", 120.0, (110.0, 130.0), 0.2, "predicted"),
    Row("P13-b", 100.0, "s", 90.0, None, -0.1, "calibrated"),
    Row("P13-c", None, "s", 3.0, None, None, "predicted"),
    Row("W25-d", 10.0, "1", 300.0, None, 29.0, "predicted"),
]


def drawn(rows: list[Row]) -> Figure:
    """Return the picture of *rows*."""
    return reproduction_picture(Reproduction(rows, {}, 1.0, 1.0, 1, "t", quick=False, outcomes=[]))


def test_point_is_the_multiple_of_the_published_figure() -> None:
    """Points lie at 1.2 and 30 (predicted), and at 0.9 (fitted); a row without an error has none."""
    (panel,) = drawn(ROWS).axes
    points = {
        str(line.get_label()): list(zip(line.get_xdata(), line.get_ydata(), strict=True))
        for line in panel.lines
        if line.get_marker() == "o"
    }
    assert points["predicted"] == [(pytest.approx(1.2), 0), (pytest.approx(30.0), 2)]
    assert points["calibrated"] == [(pytest.approx(0.9), 1)]
    assert [label.get_text() for label in panel.get_yticklabels()] == ["P13-a", "P13-b", "W25-d"]
    assert panel.get_ylim() == (2.5, -0.5), "the first row is on top"


def test_bar_is_the_interval() -> None:
    (panel,) = drawn(ROWS[:2]).axes
    bars = [line for line in panel.lines if line.get_marker() == "None" and len(set(line.get_ydata())) == 1]
    assert [list(bar.get_xdata()) for bar in bars] == [[1.1, 1.3]]


def test_axis_reaches_the_largest_error_on_both_sides() -> None:
    (panel,) = drawn(ROWS).axes
    low, high = panel.get_xlim()
    assert panel.get_xscale() == "log"
    assert low < 1 / 30 < 30 < high
    (small,) = drawn([replace(ROWS[1], relative_error=-0.01)]).axes
    assert small.get_xlim() == (pytest.approx(1 / 1.65), pytest.approx(1.65)), "small errors look small"


def test_predicted_points_are_filled() -> None:
    (panel,) = drawn(ROWS).axes
    faces = {
        str(line.get_label()): line.get_markerfacecolor() for line in panel.lines if line.get_marker() == "o"
    }
    assert faces["calibrated"] == "white"
    assert faces["predicted"] != "white"
