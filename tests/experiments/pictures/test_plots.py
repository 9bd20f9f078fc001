"""The data behind each picture: which line has which points, and what it is called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.pictures.plots import (
    COLOURS,
    MARKERS,
    against,
    extents_against,
    operations_against,
    over_time,
    plot_directory,
)


def lines(panel: Any) -> dict[str, list[tuple[float, float]]]:
    """The points of each labelled line, and of those without a label together by their number."""
    found = {}
    for number, line in enumerate(panel.get_lines()):
        label = line.get_label()
        points = list(zip(map(float, line.get_xdata()), map(float, line.get_ydata()), strict=True))
        found[str(number) if label.startswith("_") else label] = points
    return found


def names(panel: Any) -> tuple[str, str]:
    """Of its axes."""
    return panel.get_xlabel(), panel.get_ylabel()


OUTCOMES = pd.DataFrame(
    {
        "variant": ["new", "old", "new", "old"],
        "point": [4, 1, 1, 4],
        "write_iops": [100.0, 800.0, 50.0, 400.0],
        "files": [2_000, 1_000, 4_000, 3_000],
        "wall_time": [2.0, 1.0, 2.0, 1.0],
        "write_bandwidth": [409_600.0, 3_276_800.0, 409_600.0, 1_638_400.0],
        "file_bytes": [4_194_304, 2_097_152, 1_048_576, 8_388_608],
        "extents": [(2, 2), (1, 1), (1, 0), (4, 4)],
        "extents_per_file": [2.0, 1.0, 0.5, 4.0],
    }
)
"""Two variants at two points, not in order."""


def test_a_sweep_s_picture() -> None:
    """Requests, thousands of files a second, KiB a request; each line from the smallest point on."""
    iops, rate, size = against("threads", "A title", OUTCOMES, 16).axes
    assert [names(panel) for panel in (iops, rate, size)] == [
        ("", "write requests / s"), ("", "thousand files / s"), ("threads", "mean request, KiB"),
    ]  # fmt: skip
    held = [(16.0, 0.0), (16.0, 1.0)]
    assert lines(iops) == {"new": [(1, 50), (4, 100)], "old": [(1, 800), (4, 400)], "2": held}
    assert lines(rate) == {"new": [(1, 2), (4, 1)], "old": [(1, 1), (4, 3)], "2": held}
    assert lines(size) == {"new": [(1, 8), (4, 4)], "old": [(1, 4), (4, 4)], "2": held}
    assert [text.get_text() for text in iops.get_legend().get_texts()] == ["new", "old"]
    assert (iops.get_yscale(), rate.get_ylim()[0], iops.get_xscale()) == ("log", 0.0, "log")
    assert list(size.get_xticks()) == [1, 4]
    assert lines(against("threads", "A title", OUTCOMES, None).axes[0]).keys() == {"new", "old"}


def test_a_sweep_s_picture_of_extents() -> None:
    """Extents a file, MiB an extent, MB a second."""
    extents, size, rate = extents_against("streams", "A title", OUTCOMES).axes
    assert [names(panel) for panel in (extents, size, rate)] == [
        ("", "extents per file"), ("", "mean extent, MiB"), ("streams", "file MB / s"),
    ]  # fmt: skip
    assert lines(extents) == {"new": [(1, 0.5), (4, 2)], "old": [(1, 1), (4, 4)]}
    assert lines(size) == {"new": [(1, 1), (4, 1)], "old": [(1, 1), (4, 1)]}
    assert lines(rate) == {
        "new": [(1, 0.524288), (4, 2.097152)], "old": [(1, 2.097152), (4, 8.388608)],
    }  # fmt: skip


def iterations(*rows: tuple[str, str, int, int, float, int, int]) -> pd.DataFrame:
    """Variant, program, replication, end (s), files a second, and the disks' requests and sectors so far."""
    columns = ("variant", "program", "replication", "end_ns", "files_per_sec", "ios", "sectors")
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(end_ns=table["end_ns"] * 10**9)


def test_a_sweep_s_picture_of_empty_files() -> None:
    """Thousands of operations a second; processors in the kernel; how many of them wait for locks: of the
    first 200 s for 1 000 operations, where 2 000 are made in 2 s, and 3 000 more are reckoned to be.
    """
    locks = [{"a": {"wait_ns": 150 * 10**9}, "b": {"wait_ns": 50 * 10**9}}, {}, {}, {}]
    programs = [
        {"p": {"reckoned_files": 500}, "q": {"reckoned_files": 500}},
        *[{"p": {"reckoned_files": 0}}] * 3,
    ]
    outcomes = OUTCOMES.assign(locks=locks, programs=programs, system_cpu_time=[8.0, 3.0, 4.0, 5.0])
    rate, burnt, waiting = operations_against("processors", "A title", outcomes).axes
    assert [names(panel) for panel in (rate, burnt, waiting)] == [
        ("", "thousand operations / s"), ("", "processors in the kernel"),
        ("processors", "waiting for locks"),
    ]  # fmt: skip
    assert lines(rate) == {"new": [(1, 2), (4, 1)], "old": [(1, 1), (4, 3)]}
    assert lines(burnt) == {"new": [(1, 2), (4, 4)], "old": [(1, 3), (4, 5)]}
    assert lines(waiting) == {"new": [(1, 0), (4, 200)], "old": [(1, 0), (4, 0)]}
    assert [text.get_text() for text in rate.get_legend().get_texts()] == ["new", "old"]


def test_a_run_over_time() -> None:
    """Rates from one iteration's end to the next; the first from the beginning. One replication is drawn."""
    table = iterations(
        ("a", "mark", 0, 1, 3_000.0, 100, 2_000), ("a", "mark", 0, 3, 2_000.0, 500, 6_000),
        ("a", "mark", 1, 1, 9_000.0, 900, 9_000), ("b", "mark", 0, 2, 1_000.0, 50, 1_000),
        ("b", "mark", 0, 4, 4_000.0, 70, 9_000),
    )  # fmt: skip
    rate, iops, bandwidth = over_time("A title", table).axes
    assert lines(rate) == {"a": [(1, 3), (3, 2)], "b": [(2, 1), (4, 4)]}
    assert lines(iops) == {"0": [(1, 100), (3, 200)], "1": [(2, 25), (4, 10)]}
    assert lines(bandwidth)["0"] == [(1, pytest.approx(1.024)), (3, pytest.approx(1.024))]
    assert lines(bandwidth)["1"] == [(2, pytest.approx(0.256)), (4, pytest.approx(2.048))]
    assert names(bandwidth) == ("simulated time, s", "MB / s")


def test_several_programs_have_a_line_each_and_share_the_disks() -> None:
    """One that reports its end alone has no rate to draw, but its end is one of the disks' points."""
    table = iterations(
        ("a", "mark", 0, 1, 3_000.0, 100, 2_000), ("a", "post", 0, 2, 500.0, 200, 4_000),
        ("a", "fio", 0, 5, 0.1, 900, 10_000), ("a", "mark", 0, 3, 2_000.0, 500, 6_000),
        ("a", "post", 0, 4, 400.0, 700, 8_000),
    )  # fmt: skip
    rate, iops, _ = over_time("A title", table).axes
    assert lines(rate) == {"a, mark": [(1, 3), (3, 2)], "a, post": [(2, 0.5), (4, 0.4)]}
    assert lines(iops) == {"0": [(1, 100), (2, 100), (3, 300), (4, 200), (5, 200)]}


def test_a_fifth_program_is_drawn_too() -> None:
    """Line styles begin anew."""
    rows = [("a", f"p{i}", 0, end, float(i), end, end) for i in range(5) for end in (1, 2)]
    assert len(lines(over_time("A title", iterations(*rows)).axes[0])) == 5


def test_a_result_that_cannot_be_read_is_one_error(tmp_path: Path) -> None:
    """Nothing there, a stump, a table whose foot is broken: each is told with the remedy."""
    (tmp_path / "case.json").write_text('{"outcomes": []}')
    for held in (None, b"PAR1", b"PAR1" + bytes(8) + b"\x08\0\0\0PAR1"):
        if held is not None:
            (tmp_path / "iterations.parquet").write_bytes(held)
        with pytest.raises(BadInput, match=r"holds no result .*make one with wbsim run"):
            plot_directory(tmp_path)


def test_how_a_sweep_is_drawn() -> None:
    """A colour and a marker a variant, joined; ticks at the swept numbers; the plug's limit in words."""
    figure = against("threads", "A title that is long enough to be broken into two lines, " * 2, OUTCOMES, 16)
    iops, rate, size = figure.axes
    new, old, held = iops.get_lines()
    assert [line.get_color() for line in (new, old, held)] == [COLOURS[0], COLOURS[1], "0.6"]
    assert [line.get_marker() for line in (new, old)] == [MARKERS[0], MARKERS[1]]
    assert [line.get_linestyle() for line in (new, old, held)] == ["-", "-", ":"]
    assert [line.get_markersize() for line in (new, old)] == [5, 5]
    (words,) = size.texts
    assert words.get_text() == "a plug holds 16 requests"
    assert words.xy == (16, 1)
    assert not iops.texts
    assert not rate.texts
    assert figure.get_suptitle().count("\n") == 1
    assert figure.get_size_inches().tolist() == [7.2, 3 * 2.3 + 0.7]
    assert figure.get_layout_engine() is not None
    for panel in (iops, rate, size):
        assert panel.get_xgridlines()[0].get_color() == "0.9"
        assert panel.get_xscale() == "log"
        assert [panel.spines[side].get_visible() for side in ("top", "right", "left")] == [False, False, True]
        assert list(panel.get_xticks(minor=True)) == []
    assert size.xaxis.get_major_formatter()(4.0) == "4"
    assert size.xaxis.get_transform().base == 2
    assert not iops.get_legend().get_frame_on()
    assert iops.get_shared_x_axes().joined(iops, size)


def points(*values: Any) -> pd.DataFrame:
    """A variant at so many points."""
    return pd.DataFrame(
        {
            "variant": "v", "point": values, "write_iops": 0.0, "files": 1, "wall_time": 1.0,
            "write_bandwidth": 1.0, "file_bytes": 1 << 20, "extents": [(1,)] * len(values),
            "extents_per_file": 1.0,
        }
    )  # fmt: skip


def test_points_that_are_texts_stand_apart_in_their_order() -> None:
    """Not joined, larger, evenly spaced; and there is no plug's limit among them."""
    iops, *_ = against("scheduler", "A title", points("noop", "deadline"), 16).axes
    (line,) = iops.get_lines()
    assert list(line.get_xdata()) == ["noop", "deadline"]
    assert (line.get_linestyle(), line.get_markersize()) == ("None", 7)
    assert iops.margins()[0] == 0.25
    assert iops.get_yscale() == "linear", "nothing was written"


@pytest.mark.parametrize(
    ("values", "ticks", "scale"),
    [
        (range(1, 10), list(range(1, 10)), "log"),
        (range(1, 33), [1, 2, 4, 8, 12, 16, 20, 24, 32], "log"),
        ((0, 1, 2), [0, 1, 2], "linear"),
        ((0.5, 1.5, 2, 3, 4, 5, 6, 7, 8, 9), [2, 4, 8], "log"),
    ],
)
def test_as_many_ticks_as_can_be_read(values: Any, ticks: list[float], scale: str) -> None:
    """All of nine; of more, the powers of two and a few others; a zero has no logarithm."""
    panel = against("n", "A title", points(*values), None).axes[0]
    assert list(panel.get_xticks()) == ticks
    assert panel.get_xscale() == scale


@pytest.mark.parametrize(("low", "scale"), [(1.0, "linear"), (0.9, "log"), (0.0, "linear")])
def test_figures_that_lie_far_apart_are_drawn_by_their_logarithm(low: float, scale: str) -> None:
    """More than twenty times; none is 0."""
    outcomes = points(1, 2).assign(extents_per_file=[low, 20.0])
    extents, size, rate = extents_against("n", "A title", outcomes).axes
    assert extents.get_yscale() == scale
    assert scale == "log" or extents.get_ylim()[0] == 0
    assert size.get_yscale() == "linear"
    assert rate.get_ylim()[0] == 0
    assert not extents.get_legend().get_frame_on()


def test_each_variant_and_program_over_time_has_its_own_line() -> None:
    """A colour a variant, a line style a program; a sixth variant has the first colour again."""
    rows = [(v, p, 0, end, 1.0, end, end) for v in "abcdef" for p in ("p", "q") for end in (1, 2)]
    rate, iops, bandwidth = over_time("A title", iterations(*rows)).axes
    drawn = [(line.get_label(), line.get_color(), line.get_linestyle()) for line in rate.get_lines()]
    assert drawn[:3] == [("a, p", COLOURS[0], "-"), ("a, q", COLOURS[0], "--"), ("b, p", COLOURS[1], "-")]
    assert drawn[-2:] == [("f, p", COLOURS[0], "-"), ("f, q", COLOURS[0], "--")]
    assert {line.get_linewidth() for line in rate.get_lines()} == {1.4}
    assert (iops.get_yscale(), bandwidth.get_ylim()[0], rate.get_ylim()[0]) == ("log", 0, 0)
    assert names(rate) == ("", "thousand files / s")
    assert names(iops) == ("", "write requests / s")


def test_a_sixth_variant_of_a_sweep_is_drawn_too() -> None:
    """None is left out."""
    outcomes = pd.concat([points(1, 2).assign(variant=name) for name in "abcdefg"])
    assert len(against("n", "A title", outcomes, None).axes[0].get_lines()) == 7


def result(directory: Path, axis: str | None, outcomes: pd.DataFrame, samples: int) -> Path:
    """What a run leaves."""
    directory.mkdir()
    rows = [("v", "p", 0, end, 1.0, end, end) for end in range(1, samples + 1)]
    iterations(*rows).assign(point=None).to_parquet(directory / "iterations.parquet")
    document = {
        "title": "A title", "axis": axis, "outcomes": json.loads(outcomes.to_json(orient="records")),
        "scenarios": {"v": {"kernel": {"plug": {"max_requests": 16}}}},
    }  # fmt: skip
    (directory / "case.json").write_text(json.dumps(document))
    return directory


def test_which_pictures_a_result_has(tmp_path: Path) -> None:
    """Iterations over time; a sweep against its number, by extents where it has any; else an error."""
    none = points(1).assign(extents=[[]])

    def drawn(name: str, *parts: Any) -> list[str]:
        return [path.name for path in plot_directory(result(tmp_path / name, *parts))]

    assert drawn("a", None, none, 2) == ["iterations.png"]
    assert drawn("b", "n", none, 2) == ["n.png"]
    assert drawn("c", "n", points(1, 2), 1) == ["n.png"]
    empty = points(1, 2).assign(
        extents=[[], []], file_bytes=0, locks=[{}, {}], programs=[{}, {}], system_cpu_time=1.0
    )
    assert drawn("f", "n", empty, 1) == ["n.png"]
    assert drawn("d", "n", points(1, 2), 3) == ["iterations.png", "n.png"]
    with pytest.raises(BadInput, match="has neither a sweep nor iterations to draw; the disk is drawn by"):
        drawn("e", None, none, 1)
    assert (tmp_path / "d" / "n.png").read_bytes().startswith(b"\x89PNG")
