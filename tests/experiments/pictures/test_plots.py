"""The data behind each picture: the points and the label of each line."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from tests.experiments.outcomes import RUN, sample
from tests.harness import FIO, loop_config
from wbsim.experiments.cli import main
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.pictures import plots
from wbsim.experiments.pictures.axes import COLOURS, MARKERS, panels, scale_to, short, ticks_at
from wbsim.experiments.pictures.facets import lines_of, panels_of, select
from wbsim.experiments.pictures.maps import heat_map
from wbsim.experiments.pictures.plots import Wanted, _as_file, frame_of, knees, line_picture, plot_directory
from wbsim.experiments.pictures.time import over_time, rates_of
from wbsim.experiments.results.dataset import with_setting
from wbsim.experiments.results.figures import COLUMNS
from wbsim.experiments.running.results import read_results


def lines(panel: Any) -> dict[str, list[tuple[float, float]]]:
    """Return the points of each line by its label, or by its number if the line has no label."""
    found = {}
    for number, line in enumerate(panel.get_lines()):
        label = line.get_label()
        points = list(zip(map(float, line.get_xdata()), map(float, line.get_ydata()), strict=True))
        found[str(number) if label.startswith("_") else label] = points
    return found


FRAME = pd.DataFrame(
    {
        "variant": ["new", "old", "new", "old", "new"],
        "threads": [4, 1, 1, 4, 1],
        "write_iops": [100.0, 800.0, 50.0, 4_000.0, 70.0],
        "file_rate": [1.0, 2.0, 3.0, 4.0, 5.0],
    }
)
"""Two variants at two points, not in order; one point has two replications."""


def test_figure_is_drawn_against_the_swept_key() -> None:
    """Each variant has a line through its means, from the smallest point on, and bands at replications.

    A text names the limit of the plug, and the legend stands below all panels.
    """
    figure = line_picture(FRAME, "threads", ["write_iops", "file_rate"], ["variant"], "A title, " * 20, 2)
    iops, rate = figure.axes
    held = [(2.0, 0.0), (2.0, 1.0)]
    assert lines(iops) == {"new": [(1, 60), (4, 100)], "old": [(1, 800), (4, 4_000)], "2": held}
    assert lines(rate) == {"new": [(1, 4), (4, 1)], "old": [(1, 2), (4, 4)], "2": held}
    assert (iops.get_ylabel(), rate.get_ylabel()) == ("write IOPS, 1/s", "file rate, 1/s")
    assert (iops.get_xlabel(), rate.get_xlabel()) == ("", "threads")
    low, high = iops.collections[0].get_paths()[0].get_extents().get_points()[:, 1]
    assert (low, high) == (
        pytest.approx(60 - 12.7062 * 10, rel=1e-4),
        pytest.approx(60 + 12.7062 * 10, rel=1e-4),
    )
    new, old, limit = iops.get_lines()
    assert [line.get_color() for line in (new, old, limit)] == [COLOURS[0], COLOURS[1], "0.6"]
    assert [line.get_marker() for line in (new, old)] == [MARKERS[0], MARKERS[1]]
    assert (iops.get_yscale(), rate.get_yscale(), rate.get_ylim()[0]) == ("log", "linear", 0)
    (words,) = rate.texts
    assert words.get_text() == "a plug holds 2 requests"
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["new", "old"]
    assert figure.get_suptitle().count("\n") == 3
    assert list(rate.get_xticks()) == [1, 4]


def test_lines_are_drawn_by_the_given_keys() -> None:
    """Each pair of a variant and a size has a line.  A key that does not differ is not part of its label."""
    frame = FRAME.assign(size=[1, 1, 2, 2, 2], same=7)
    (panel,) = line_picture(frame, "threads", ["file_rate"], ["variant", "size", "same"], "t").axes
    assert set(lines(panel)) == {"new, 1", "new, 2", "old, 1", "old, 2"}
    (panel,) = line_picture(frame, "threads", ["file_rate"], ["size"], "t").axes
    assert lines(panel) == {"1": [(1, 2), (4, 1)], "2": [(1, 4), (4, 4)]}


def test_text_points_stand_apart_in_their_order() -> None:
    """The points are evenly spaced and not joined, and each has its interval."""
    frame = FRAME.assign(threads=["noop", "deadline", "deadline", "noop", "deadline"])
    (panel,) = line_picture(frame, "threads", ["file_rate"], ["variant"], "t").axes
    new = panel.containers[0]
    assert list(new.lines[0].get_xdata()) == ["noop", "deadline"]
    assert new.lines[0].get_linestyle() == "None"
    assert panel.margins()[0] == 0.25


def test_text_points_have_error_bars_of_their_interval() -> None:
    """Rates of 3 and 5 have a mean of 4, and an interval of 12.7062 on each side; a single run has none."""
    frame = FRAME.assign(threads=["noop", "deadline", "deadline", "noop", "deadline"])
    (panel,) = line_picture(frame, "threads", ["file_rate"], ["variant"], "t").axes
    (bars,) = panel.containers[0].lines[2]
    ends = [tuple(float(y) for _, y in segment) for segment in bars.get_segments()]
    assert ends == [(1, 1), pytest.approx((4 - 12.7062, 4 + 12.7062), rel=1e-4)]


def test_more_variants_than_colours_are_all_drawn() -> None:
    """All 13 variants have a line."""
    frame = pd.concat([FRAME.assign(variant=name) for name in "abcdefghijklm"])
    assert len(line_picture(frame, "threads", ["file_rate"], ["variant"], "t").axes[0].get_lines()) == 13


@pytest.mark.parametrize(
    ("values", "ticks", "scale"),
    [
        (range(1, 10), list(range(1, 10)), "log"),
        (range(1, 33), [1, 2, 4, 8, 16, 32], "log"),
        ((0, 1, 2), [0, 1, 2], "linear"),
        ((1, 2, 8), [1, 2, 8], "linear"),
        (range(3, 33, 3), [3, 9, 15, 21, 27], "log"),
        (range(1, 13), [1, 2, 4, 8], "log"),
        ((1, 2, 4, 5, 6, 7, 9, 10, 11, 12), [1, 4, 6, 9, 11], "log"),
        ((math.nan, 5.0, math.nan, 3.0), [3, 5], "linear"),
        ((5.0, math.nan), [5], "linear"),
    ],
)
def test_axis_has_as_many_ticks_as_can_be_read(values: Any, ticks: list[float], scale: str) -> None:
    """Nine values have a tick each, and more values have ticks at powers of two or at every n-th value.

    Four powers of two are enough, and three are not.  A zero makes the axis linear.  A nan has no tick.
    """
    (panel,) = panels(1, "t")[1]
    ticks_at(panel, list(values))
    assert list(panel.get_xticks()) == ticks
    assert panel.get_xscale() == scale


def test_runs_without_the_figure_on_the_axis_are_left_out() -> None:
    """If no run has the figure, the panel says so."""
    frame = FRAME.assign(write_iops=math.nan)
    (panel,) = line_picture(frame, "write_iops", ["file_rate"], ["variant"], "t").axes
    assert [text.get_text() for text in panel.texts] == ["no run has this figure"]
    frame.loc[frame.index[0], "write_iops"] = 5.0
    (panel,) = line_picture(frame, "write_iops", ["file_rate"], ["variant"], "t").axes
    assert [list(line.get_xdata()) for line in panel.get_lines()] == [[5.0]]


@pytest.mark.parametrize(
    ("value", "said"),
    [(4 << 30, "4 Gi"), (3 << 10, "3 Ki"), (1_000, "1000"), (123_456.0, "123 456"), (0.5, "0.5")],
)
def test_numbers_on_axes_are_short(value: float, said: str) -> None:
    """A whole multiple of a binary unit has a prefix."""
    assert short(value) == said


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        (["1 GiB", "1536 MiB"], ["1 GiB", "1536 MiB"]),
        (["200 us", "1 ms"], ["200 us", "1 ms"]),
        (["500 kB/s", "2 MB/s"], ["500 kB/s", "2 MB/s"]),
        ([1 << 20, "2 MiB"], ["1 Mi", "2 Mi"]),
        (["1 us", "1 MiB"], ["1000", "1 Mi"]),
        (["x1", "x2"], ["x1", "x2"]),
    ],
)
def test_axis_of_quantities_has_their_units(values: list[object], ticks: list[str]) -> None:
    """A number without a unit has none, and a factor has its x."""
    frame = with_setting(FRAME.iloc[:2], "key", values)
    (panel,) = line_picture(frame, "key", ["file_rate"], ["variant"], "t").axes
    panel.figure.canvas.draw()
    assert [tick.get_text() for tick in panel.get_xticklabels()] == ticks
    assert [text for text, _ in panels_of(frame, ["key"])] == [f"key = {tick}" for tick in ticks]
    lines_by_two = lines_of(frame.assign(n=1), ["n", "key"])
    assert [text for text, _ in lines_by_two] == [f"1, {tick}" for tick in ticks]


def test_factors_next_to_numbers_are_texts() -> None:
    """The number 2 and twice the value of the key have no place on one axis."""
    frame = with_setting(FRAME.iloc[:2], "key", [2, "x2"])
    assert list(frame["key"]) == ["2", "x2"]
    assert [*map(len, (select(frame, {"key": ["x2"]}), select(frame, {"key": ["2"]})))] == [1, 1]


@pytest.mark.parametrize(("low", "scale"), [(1.0, "linear"), (0.9, "log"), (0.0, "linear")])
def test_axis_is_logarithmic_if_figures_differ_twentyfold(low: float, scale: str) -> None:
    """The largest figure must be more than twenty times the smallest, and no figure may be 0."""
    (panel,) = panels(1, "t")[1]
    scale_to(panel, [low, 20.0, float("nan")])
    assert panel.get_yscale() == scale
    if scale == "linear":
        assert panel.get_ylim() == (0, pytest.approx(21.6)), "the largest figure has room above it"


def test_knee_of_a_quantity_has_its_unit() -> None:
    """The line names the figure, the variant, the key and its value."""
    sizes = [f"{size} MiB" for size in (1, 2, 3, 4)]
    frame = pd.DataFrame({"variant": ["new"] * 4, "file_rate": [0.0, 6.0, 8.0, 9.0]})
    frame = with_setting(frame, "size", sizes)
    beyond = "beyond, it rises less than half as fast"
    line = f"knee of file_rate of new: size = 2 MiB; {beyond}"
    assert list(knees(frame, "size", "file_rate", ["variant"])) == [line]
    costly = frame.rename(columns={"file_rate": "wall_time"})
    assert list(knees(costly, "size", "wall_time", ["variant"])) == [], "more of it is no gain"


def test_heat_map_of_quantities_has_their_units() -> None:
    """Both axes have the values as a user writes them."""
    frame = with_setting(FRAME, "size", ["1 KiB", "1 KiB", "2 KiB", "2 KiB", "2 KiB"])
    frame = with_setting(frame, "pause", ["5 us", "5 us", "5 us", "1 ms", "1 ms"])
    new, *_ = heat_map(frame, "size", "pause", "file_rate", "t").axes
    assert [tick.get_text() for tick in new.get_xticklabels()] == ["1 KiB", "2 KiB"]
    assert [tick.get_text() for tick in new.get_yticklabels()] == ["5 us", "1 ms"]


def test_heat_map_has_the_mean_of_each_cell() -> None:
    """Each variant has a map with its numbers, on one scale of colours.  An empty cell is blank."""
    frame = FRAME.assign(size=["a", "a", "b", "b", "b"])
    figure = heat_map(frame, "threads", "size", "file_rate", "t")
    new, old, bar = figure.axes
    assert sorted(text.get_text() for text in new.texts) == ["1", "4"]
    assert sorted(text.get_text() for text in old.texts) == ["2", "4"]
    assert new.images[0].get_clim() == old.images[0].get_clim() == (1, 4)
    assert (new.get_xlabel(), new.get_ylabel(), new.get_title()) == ("threads", "size", "new")
    assert bar.get_ylabel() == "file rate, 1/s"


@pytest.mark.parametrize(("held", "marked"), [(1, 0), (2, 1), (4, 0), (5, 0), (None, 0)])
def test_limit_of_the_plug_is_marked_inside_the_axis(
    held: int | None, marked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The points lie at 1 and 4 threads; a mark at an end or outside would widen the axis."""
    monkeypatch.setattr(plots, "_plug_requests", lambda *_: held)
    results: Any = SimpleNamespace(title="t", axes=("threads",))
    frame = FRAME.assign(request_size=FRAME["write_iops"])
    _, figure, _ = plots._sweep_picture(results, frame, Wanted(y=("request_size",)))
    assert len(figure.axes[0].texts) == marked


def test_text_on_a_dark_cell_is_white() -> None:
    """The means are 10, 16, 17 and 20: above 16, which is 0.6 of the way up, a cell is dark.

    The larger setting is in the upper row, and a cell's text stands in its cell.
    """
    frame = pd.DataFrame({
        "variant": "v", "threads": [1, 2, 1, 2], "size": [3, 3, 5, 5], "file_rate": [10.0, 16.0, 17.0, 20.0],
    })  # fmt: skip
    grid, _ = heat_map(frame, "threads", "size", "file_rate", "t").axes
    assert {text.get_text(): text.get_color() for text in grid.texts} == {
        "10": "0.2", "16": "0.2", "17": "w", "20": "w",
    }  # fmt: skip
    assert grid.get_ylim() == (-0.5, 1.5), "row 0 is at the bottom"
    assert [tick.get_text() for tick in grid.get_yticklabels()] == ["3", "5"]
    assert grid.images[0].get_array().tolist() == [[10, 16], [17, 20]]
    assert grid.images[0].origin == "lower"


def test_bytes_over_time_are_decimal_megabytes() -> None:
    """2 000 sectors in the first of two seconds are 1.024 MB/s, and 6 000 in the second 3.072 MB/s."""
    levels = {**RUN.levels, "vda sectors": (2_000, 8_000), "time_ns": (10**9, 2 * 10**9)}
    figure = over_time("t", [replace(RUN, levels=levels)])
    (bandwidth,) = (axes for axes in figure.axes if axes.get_ylabel() == "MB / s")
    (points,) = lines(bandwidth).values()
    first, second = (
        [round(y, 6) for x, y in points if low < x < high] for low, high in ((0.1, 0.9), (1.1, 1.9))
    )
    assert {*first} == {1.024}
    assert {*second} == {3.072}


def test_held_writers_are_a_mean_over_each_part() -> None:
    """No writer is held until 1 s, and 3 are held until 4 s; the run has 80 parts of 50 ms."""
    figure = over_time("t", [RUN])
    (held,) = (axes for axes in figure.axes if axes.get_ylabel() == "writers held")
    (points,) = lines(held).values()
    assert [round(y, 6) for _, y in points] == [0] * 20 + [3] * 60


def test_number_of_flushers_changes_in_steps() -> None:
    """A flusher begins at once, so no slope connects two numbers."""
    figure = over_time("t", [RUN])
    (flushers,) = (axes for axes in figure.axes if axes.get_ylabel() == "flushers")
    assert [line.get_drawstyle() for line in flushers.lines] == ["steps-post"]


def test_run_is_drawn_over_time() -> None:
    """Files have a rate for each iteration, and disks have requests and bytes over time.

    The last panel has dirty pages.
    """
    levels = {
        "time_ns": tuple(range(10**9, 81 * 10**9, 10**9)), "dirty": (1.0,) * 80,
        "writeback": (1.0,) * 80, "vda ios": tuple(range(10, 810, 10)), "vda sectors": (0,) * 80,
        "vda busy_ns": tuple(range(10**9 // 4, 81 * 10**9 // 4, 10**9 // 4)),
        "flushers": (1,) * 40 + (2,) * 40, "held_writers": (0,) * 40 + (3, 5) * 20,
        "background": (2.0,) * 80, "limit": (4.0,) * 80,
        "vda write_wait_ns": tuple(range(20 * 10**6, 1_620 * 10**6, 20 * 10**6)),
        "vda reads": (0,) * 40 + (5,) * 40, "vda read_wait_ns": (0,) * 40 + (15 * 10**6,) * 40,
    }  # fmt: skip
    samples = (sample(1, 4_000, 1, 1, 1, 1, 1), sample(80, 3_000, 1, 1, 1, 1, 1))
    run = replace(RUN, levels=levels, samples=samples)
    other = replace(run, variant="b", replication=1)
    files, requests, bandwidth, writes, reads, *rest = over_time("t", [run, other]).axes
    busy, flushers, waiting, dirty = rest
    assert lines(files) == {"unpatched": [(1, 4_000), (80, 3_000)]}
    assert {round(y) for _, y in lines(requests)["unpatched"]} == {10}
    assert len(lines(requests)["unpatched"]) == 80
    assert {y for _, y in lines(bandwidth)["unpatched"]} == {0}
    assert {round(y) for _, y in lines(busy)["unpatched"]} == {25}
    assert [round(y, 9) for _, y in lines(writes)["unpatched"]] == [2] * 80
    assert [(x, round(y, 9)) for x, y in lines(reads)["unpatched"]] == [(40.5, 3)], (
        "the other columns are not read"
    )
    assert [y for _, y in lines(flushers)["0"]] == [1] * 40 + [2] * 40
    assert [round(y) for _, y in lines(waiting)["0"]] == [0] * 40 + [3, 5] * 20
    held, background, limit = (line.get_ydata()[0] for line in dirty.lines)
    assert (held, background, limit) == (2, 2, 4)
    assert dirty.get_xlabel() == "simulated time, s"
    without = replace(run, samples=samples[:1], levels={**levels, "vda reads": (0,) * 80})
    assert len(over_time("t", [without]).axes) == 7, "panels of files and of reads are left out"


def test_panel_of_w_await_is_logarithmic_if_values_differ_tenfold() -> None:
    """All values must be positive.  A run without requests has a linear panel."""
    idle = {name: (0, 0) if name.startswith("vda") else of for name, of in RUN.levels.items()}
    apart = {**RUN.levels, "vda write_wait_ns": (10**6, 2_500 * 10**6)}
    zero = {**RUN.levels, "vda write_wait_ns": (0, 0)}
    for levels, scale in ((apart, "log"), (RUN.levels, "linear"), (idle, "linear"), (zero, "linear")):
        figure = over_time("t", [replace(RUN, levels=levels)])
        (waits,) = (axes for axes in figure.axes if axes.get_ylabel() == "w_await, ms")
        assert waits.get_yscale() == scale
        figure.canvas.draw()


def test_counter_becomes_a_rate_between_samples() -> None:
    """A counter rises by 10 in the first second and by 30 in the second.

    A run that is shorter than a step has one rate.
    """
    import numpy as np

    at, rate = rates_of(np.array([1.0, 2.0]), np.array([10, 40]), 1.0)
    assert (at.tolist(), rate.tolist()) == ([0.5, 1.5], [10, 30])
    at, rate = rates_of(np.array([0.5]), np.array([10]), 9.0)
    assert (at.tolist(), rate.tolist()) == ([0.25], [20])


def swept(tmp_path: Path) -> Path:
    """Return the results of one sweep with two numbers of files at two sizes."""
    config, out = tmp_path / "x.toml", tmp_path / "out"
    config.write_text(loop_config(f"{FIO} --rw=write --nrfiles=2 --filesize=1m --name=a", dirty_mib=2))
    words = ["--set", "workload.nrfiles=1,2", "--set", 'workload.filesize="1 MiB","2 MiB"']
    assert main(["sweep", str(config), *words, "--out", str(out)]) == 0
    return out


def test_plot_command_draws_figures_against_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command draws the swept keys, any figure against any key, or a map.

    Unknown keys, figures and values are refused.
    """
    out = swept(tmp_path)
    capsys.readouterr()
    assert main(["plot", str(out)]) == 0
    assert (
        main(["plot", str(out), "--x", "workload.filesize", "--y", "mean_extent", "--by", "workload.nrfiles"])
        == 0
    )
    words = ["--x", "workload.filesize", "--y", "write_iops", "--heat", "workload.nrfiles"]
    assert main(["plot", str(out), *words]) == 0
    drawn = ("workload.nrfiles", "workload.filesize", "write_iops-workload.filesize-workload.nrfiles")
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("/")]
    assert told == [str(out / f"{name}.png") for name in drawn]
    assert (
        main(["plot", str(out), "--where", "workload.filesize=2 MiB", "--where", "filesystem.kind=xfs"]) == 0
    )
    frame = frame_of(read_results(out), Wanted(where={"workload.filesize": ["2 MiB"]}))
    assert list(frame["workload.nrfiles"]) == [1, 2]
    frame = frame_of(
        read_results(out), Wanted(x="kernel.dirty.dirty_bytes", line_keys=("filesystem.agcount",))
    )
    assert set(frame["kernel.dirty.dirty_bytes"]) == {2 << 20}
    assert frame["filesystem.agcount"].nunique() == 1
    assert set(COLUMNS) <= set(frame.columns)
    for more, told in (
        (["--x", "workload.nrfile"], "plot: workload.nrfile: unknown key; did you mean workload.nrfiles?"),
        (["--y", "iops"], "--y: iops: unknown key; "),
        (["--where", "nrfiles=1"], "--where: nrfiles: unknown key; use one of workload.nrfiles, workload.f"),
        (["--where", "workload.filesize=3 MiB"], "has 3 MiB; use one of 1 MiB, 2 MiB"),
        (["--where", "workload.nrfiles"], "--where: is 'workload.nrfiles'; give KEY=VALUE"),
        ([*words, "--by", "variant"], "--by: is variant; a map has no lines"),
        ([*words, "--y", "file_rate"], "--y: is write_iops, file_rate; a map shows one figure"),
    ):
        assert main(["plot", str(out), *more]) == 2
        assert told in capsys.readouterr().err


def test_runs_without_the_key_of_an_axis_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The key agcount exists for XFS only.  The option --where chooses the XFS runs.

    Lines by the key have a dash for ext4.
    """
    config, out = tmp_path / "x.toml", str(tmp_path / "out")
    text = loop_config(f"{FIO} --rw=write --filesize=1m --name=a", dirty_mib=2)
    config.write_text(f'{text}[variants.xfs]\n[variants.ext4]\nfilesystem.like = "loop-ext4"\n')
    assert main(["run", str(config), "--out", out]) == 0
    assert main(["plot", out, "--x", "filesystem.agcount"]) == 2
    assert "filesystem.agcount: 1 of 2 runs lack this key; leave them out" in capsys.readouterr().err
    assert main(["plot", out, "--x", "filesystem.agcount", "--where", "variant=xfs"]) == 0
    frame = frame_of(read_results(Path(out)), Wanted(line_keys=("filesystem.agcount",)))
    assert list(frame["filesystem.agcount"]) == ["4", "-"]


def test_unreadable_result_is_one_error(tmp_path: Path) -> None:
    """No plan, a plan that is no JSON, a plan without finished runs and a damaged run are errors.

    Each error states the remedy.
    """

    def told() -> str:
        with pytest.raises(BadInput) as refused:
            list(plot_directory(tmp_path / "out"))
        return str(refused.value)

    (tmp_path / "out").mkdir()
    assert "has no results (plan.json is missing); make some with wbsim run" in told()
    (tmp_path / "out" / "plan.json").write_text("{")
    assert "plan.json is damaged" in told()
    (tmp_path / "out" / "plan.json").write_text(
        '{"title": "t", "axes": [], "command": [], "model": "m", "runs": []}'
    )
    assert "has no finished run" in told()
    out = swept(tmp_path)
    (run, *_) = (out / "runs").iterdir()
    (run / "levels.parquet").write_bytes(b"PAR1")
    assert "is a damaged result" in told()


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("workload.numjobs", "workload.numjobs"), ("../evil", "_evil"), ("/abs/evil", "_abs_evil"),
        ("..", "_"), ("a\0b $x^{$", "a_b__x___"), ("x" * 300, "x" * 60),
    ],
)  # fmt: skip
def test_name_of_a_picture_contains_no_path(name: str, file: str) -> None:
    """Unusual letters of the swept key become underscores, and a long name is cut off."""
    assert _as_file(name) == file


def test_second_picture_of_a_name_gets_a_number(tmp_path: Path) -> None:
    """An equal picture keeps its name.  The suffix of a named file decides its format."""
    swept(tmp_path)
    out = tmp_path / "out"

    def pictures(out: Path, wanted: Wanted, file: Path | None = None) -> list[str]:
        return [line for line in plot_directory(out, wanted, file) if not line.startswith("knee")]

    (first,) = pictures(out, Wanted(y=("wall_time",)))
    before = Path(first).read_bytes()
    assert pictures(out, Wanted(y=("wall_time",))) == [first]
    (second,) = pictures(out, Wanted(y=("write_iops",)))
    stem = Path(first).stem
    assert second == f"{out / stem}-2.png, next to another picture {stem}.png"
    assert Path(first).read_bytes() == before
    assert pictures(out, Wanted(y=("write_iops",))) == [second], "the same picture takes no third name"
    for suffix, begins in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        file = tmp_path / f"mine.{suffix}"
        assert pictures(out, Wanted(y=("wall_time",)), file) == [str(file)]
        written = file.read_bytes()
        assert written.startswith(begins)
        assert pictures(out, Wanted(y=("wall_time",)), file) == [str(file)]
        assert file.read_bytes() == written
    with pytest.raises(BadInput, match=r"mine.gif: is no picture; give a name .* .png, .svg, .pdf"):
        pictures(out, Wanted(), tmp_path / "mine.gif")
