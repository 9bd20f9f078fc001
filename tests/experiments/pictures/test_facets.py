"""Panels of a sweep: a band covers replications, and every other difference is shown or refused."""

from __future__ import annotations

from itertools import product
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.pictures.facets import (
    differing,
    lines_of,
    panels_of,
    select,
    settings_of,
    usual_lines,
    where_of,
)
from wbsim.experiments.pictures.maps import heat_map
from wbsim.experiments.pictures.plots import line_picture

NAN = float("nan")


def swept(replications: int = 2, **axes: list[Any]) -> pd.DataFrame:
    """Return the runs of a grid; the figure is ten times the number of the point plus the replication."""
    rows = [
        {
            "variant": "base", **dict(zip(axes, point, strict=True)), "replication": replication, "seed": 1,
            "write_iops": float(10 * number + replication),
        }
        for number, point in enumerate(product(*axes.values()))
        for replication in range(replications)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_another_swept_key_has_panels_and_no_band() -> None:
    """Device speeds are panels in order of size.

    Each panel has the lines of both kernels, without a band.
    """
    frame = swept(1, threads=[1, 2], speed=[4.0, 0.5, 1.0], kernel=["6.18", "5.15"])
    figure = line_picture(frame, "threads", ["write_iops"], ["kernel"], "t")
    assert [panel.get_title() for panel in figure.axes] == ["speed = 0.5", "speed = 1", "speed = 4"]
    for panel in figure.axes:
        assert [line.get_label() for line in panel.get_lines()] == ["6.18", "5.15"]
        assert all(len(set(of.get_paths()[0].vertices[:, 1])) <= 2 for of in panel.collections)
    slow = figure.axes[0].get_lines()
    assert [list(line.get_ydata()) for line in slow] == [[20, 80], [30, 90]]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["6.18", "5.15"]
    colours = {tuple(line.get_color() for line in panel.get_lines()) for panel in figure.axes}
    assert len(colours) == 1


def test_key_that_changes_with_x_has_no_panel() -> None:
    """Zips and Latin hypercubes give the other keys one value at each x."""
    frame = swept(2, threads=[1, 2, 3]).assign(memory=lambda of: of["threads"] * 7)
    (panel,) = line_picture(frame, "threads", ["write_iops"], [], "t").axes
    assert panel.get_title() == ""
    assert usual_lines(frame, "threads") == ["variant"]
    along = swept(1, threads=[1, 2], kernel=["a", "b"]).assign(
        plug=lambda of: of["kernel"].map({"a": 8, "b": 16})
    )
    assert usual_lines(along, "threads") == ["variant", "kernel"]
    assert len(line_picture(along, "threads", ["write_iops"], ["plug"], "t").axes) == 1


def test_more_lines_than_colours_become_panels() -> None:
    """Twelve lines are four panels of three lines.  Without room for panels every line has its own style."""
    frame = swept(1, threads=[1, 2], speed=[1, 2, 3, 4], kernel=["a", "b", "c"])
    assert usual_lines(frame, "threads") == ["variant", "kernel"]
    frame = swept(1, threads=[1, 2], speed=[*range(5)], depth=[*range(11)])
    assert usual_lines(frame, "threads") == ["variant", "speed", "depth"]
    (panel,) = line_picture(frame, "threads", ["write_iops"], usual_lines(frame, "threads"), "t").axes
    lines = panel.get_lines()
    assert len({(line.get_color(), line.get_marker()) for line in lines}) == len(lines) == 55
    assert lines[0].get_label() == "0, 0"


def test_variants_without_a_line_have_panels() -> None:
    """Lines by another key are not averages over variants."""
    frame = pd.concat([swept(1, threads=[1, 2], size=[1, 2]).assign(variant=name) for name in ("new", "old")])
    figure = line_picture(frame, "threads", ["write_iops"], ["size"], "t")
    assert [panel.get_title() for panel in figure.axes] == ["new", "old"]


def test_too_many_panels_are_refused_with_their_values() -> None:
    """Six panels are drawn.  For seven the message names the keys with all values, and the two options."""
    frame = swept(1, threads=[1, 2], speed=[1, 2, 3, 4, 5, 6])
    assert len(line_picture(frame, "threads", ["write_iops"], [], "t").axes) == 6
    frame = swept(1, threads=[1, 2], speed=[4, 3, 2, 1], kernel=["x", "y"])
    told = r"kernel \(x, y\).*8 panels.*give --by KEY or --where KEY=VALUE"
    with pytest.raises(BadInput, match=r"speed \(1, 2, 3, 4\); " + told):
        line_picture(frame, "threads", ["write_iops"], [], "t")
    with pytest.raises(BadInput, match=r"depth \(0, 1, 2, 3, 4, 5, 6\)"):
        heat_map(
            swept(1, threads=[1, 2], speed=[1, 2], depth=[*range(7)]), "threads", "speed", "write_iops", "t"
        )


def test_a_heat_map_has_panels_of_another_key() -> None:
    """Cells are means over replications, and four maps stand in two rows."""
    frame = swept(2, threads=[1, 2], speed=[1, 2], kernel=["a", "b", "c", "d"])
    *maps, _ = heat_map(frame, "threads", "speed", "write_iops", "t").axes
    assert [of.get_title() for of in maps] == [f"kernel = {name}" for name in "abcd"]
    numbers = {text.get_position(): text.get_text() for text in maps[1].texts}
    assert numbers == {(0, 0): "10.5", (0, 1): "50.5", (1, 0): "90.5", (1, 1): "130.5"}
    assert [on.get_subplotspec().rowspan.start for on in maps] == [0, 0, 1, 1]


def test_an_unknown_figure_is_left_out() -> None:
    """A nan is no point and no part of a mean.  An empty panel says so, and an empty cell has a dash."""
    frame = swept(2, threads=[1, 2, 3], kernel=["a", "b"])
    frame.loc[frame["kernel"] == "b", "write_iops"] = NAN
    frame.loc[0, "write_iops"] = NAN
    frame["file_rate"] = NAN
    iops, rate = line_picture(frame, "threads", ["write_iops", "file_rate"], ["kernel"], "t").axes
    (line,) = iops.get_lines()
    assert list(line.get_ydata()) == [1, 20.5, 40.5]
    assert not iops.texts
    assert [text.get_text() for text in rate.texts] == ["no run has this figure"]
    grid = heat_map(frame, "threads", "kernel", "write_iops", "t").axes[0]
    assert sorted(text.get_text() for text in grid.texts) == ["-", "-", "-", "1", "20.5", "40.5"]
    assert [
        text.get_text() for text in heat_map(frame, "threads", "kernel", "file_rate", "t").axes[0].texts
    ] == ["-"] * 6


KEYS = ("a", "b", "c")
POINTS = st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=8, unique=True)


@given(POINTS, st.sampled_from(KEYS), st.lists(st.sampled_from(KEYS), unique=True), st.integers(1, 3))
def test_runs_at_one_point_of_a_line_are_replications(
    points: list[tuple[int, int, int]], x: str, by: list[str], replications: int
) -> None:
    """Each run of any plan is in one panel and one line, and the runs at one x of a line have one setting."""
    frame = pd.DataFrame(
        [{"variant": "base", **dict(zip(KEYS, point, strict=True)), "replication": r, "write_iops": 1.0}
         for point in points for r in range(replications)]
    )  # fmt: skip
    try:
        parts = panels_of(frame, differing(frame, settings_of(frame), [x, *by]))
    except BadInput:
        assert len({tuple(row) for row in frame[[key for key in KEYS if key not in (x, *by)]].to_numpy()}) > 6
        return
    assert sum(len(part) for _, part in parts) == len(frame)
    for _, part in parts:
        lines = lines_of(part, by)
        assert sum(len(of) for _, of in lines) == len(part)
        for _, of in lines:
            for _, runs in of.groupby(x):
                assert len(runs) == runs["replication"].nunique() == replications


@pytest.mark.parametrize(
    ("key", "text", "rows"),
    [
        ("size", "4 KiB", [0]), ("size", "4096", [0]), ("size", "4 Ki", [0]), ("size", "5000", [1]),
        ("speed", "x0.5", [0]), ("speed", "0.50", [0]), ("speed", 2, [1]), ("kernel", "6.18", [1]),
        ("wbt", "True", [0]), ("replication", "1", [1]),
    ],
)  # fmt: skip
def test_where_accepts_values_in_any_written_form(key: str, text: Any, rows: list[int]) -> None:
    """A quantity has its unit, its base unit or the form of a label.  A factor may be a number."""
    frame = pd.DataFrame({
        "size": [4096, 5000], "speed": [0.5, 2.0], "kernel": ["5.15", "6.18"], "wbt": ["True", "False"],
        "replication": [0, 1],
    })  # fmt: skip
    assert list(select(frame, {key: [text]}).index) == rows


def test_where_chooses_by_all_keys_and_any_value_of_each() -> None:
    """Values of one key are alternatives, and several keys narrow the choice.

    An absent value is refused, and the message lists the values that are left.
    """
    frame = swept(1, threads=[1, 2, 3], kernel=["a", "b"])
    where = where_of(["threads=1", "kernel=b", "threads=3"])
    assert where == {"threads": ["1", "3"], "kernel": ["b"]}
    assert list(select(frame, where)["write_iops"]) == [10, 50]
    with pytest.raises(BadInput, match="--where: threads: no remaining run has 4; use one of 1, 2, 3"):
        select(frame, {"threads": ["1", "4"]})
    for wrong in ("kernel", "=a", "kernel="):
        with pytest.raises(BadInput, match=r"--where: is .*give KEY=VALUE"):
            where_of([wrong])
