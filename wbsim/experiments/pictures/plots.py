"""Pictures of a directory of results: figures against any setting that differs between runs, or over time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from io import BytesIO
from itertools import chain
from pathlib import Path
from textwrap import fill
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wbsim.experiments.config.problems import bad, unknown_key
from wbsim.experiments.pictures.axes import (
    COLOURS,
    FORMATS,
    MARKERS,
    TITLE_WIDTH,
    are_numbers,
    figure_label,
    grid_of,
    legend_below,
    save_as,
    scale_to,
    short,
    ticks_at,
)
from wbsim.experiments.pictures.facets import (
    differing,
    lines_of,
    narrowed,
    panels_of,
    select,
    settings_of,
    telling_keys,
    usual_lines,
)
from wbsim.experiments.pictures.latency import latency_picture
from wbsim.experiments.pictures.maps import heat_map
from wbsim.experiments.pictures.time import over_time
from wbsim.experiments.results.dataset import tidy, unit_of, with_setting
from wbsim.experiments.results.figures import COLUMNS, FIGURES
from wbsim.experiments.results.intervals import knee_of
from wbsim.experiments.running.results import Results, read_results, setting_of
from wbsim.experiments.running.store import replace_whole
from wbsim.sim.stats import confidence_95

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KNEE: Final = "knee of "
"""A line of `plot_directory` that begins so is a knee, and any other line is the path of a picture."""
_MOST: Final = 1_000
"""The number from which on a picture replaces another one of its name."""
_OF_REQUESTS: Final = ("write_iops", "file_rate", "request_size")
_OF_LAYOUT: Final = ("extents_per_file", "mean_extent", "file_bandwidth")
_OF_OPERATIONS: Final = ("file_rate", "system_processors", "waiting_processors")


class Wanted(NamedTuple):
    """A picture to draw: figures *y* against *x*, with a line for each combination of values of *line_keys*.

    With *heat* the picture is a map of one figure over *x* and *heat*.  *where* chooses the runs that have
    one of the given values of each of its keys.  Missing settings follow from the swept keys.  With *latency*
    the picture shows the distribution of the latencies of this system call, and has neither *x* nor *y*.
    """

    x: str | None = None
    y: tuple[str, ...] = ()
    line_keys: tuple[str, ...] = ()
    heat: str | None = None
    where: Mapping[str, Sequence[str]] = MappingProxyType({})
    latency: str | None = None


def plot_directory(
    directory: Path,
    options: Wanted = Wanted(),  # noqa: B008
    file: Path | None = None,
) -> Iterator[str]:
    """Draw the results in *directory*; yield the path of each picture, then a line for each knee (`KNEE`).

    Without *options*, results without a sweep are drawn over time, or not at all if they have no levels.  The
    picture is written to *file*, or into *directory* under a name that its axes give.  If the directory has
    another picture of this name, a number is added to the name, and the line says so after the path.

    Raises:
        BadInput: the directory has no result, a wanted name is unknown, or one picture cannot show all runs.
            Or the suffix of *file* is none of a picture, or the picture cannot be written.
    """
    if file is not None and file.suffix[1:] not in FORMATS:
        raise bad(f"-o {file}", f"is no picture; give a name that ends with .{', .'.join(FORMATS)}")
    results = read_results(directory)
    frame = frame_of(results, options)
    if results.axes or any(options):
        name, figure, knees = _sweep_picture(results, frame, options)
        yield _write(directory / name, figure, file)
        yield from knees
    if (
        not results.axes
        and not any(options)
        and any(outcome.levels["time_ns"] for outcome in results.outcomes)
    ):
        yield _write(directory / "time.png", over_time(results.title, results.outcomes), file)


def _write(path: Path, figure: Figure, file: Path | None) -> str:
    """Write *figure* to *file*, or to *path*, and return the line that says where it is.

    If another picture is at *path*, the figure is written next to it, under a name with a number.
    """
    if file is not None:
        replace_whole(file, partial(save_as, file.suffix[1:], figure))
        return str(file)
    picture = BytesIO()
    save_as("png", figure, picture)
    places = (path, *(path.with_name(f"{path.stem}-{number}{path.suffix}") for number in range(2, _MOST)))
    free = next(
        (place for place in places if not place.is_file() or place.read_bytes() == picture.getvalue()), path
    )
    replace_whole(free, lambda target: target.write_bytes(picture.getvalue()))
    return str(free) if free == path else f"{free}, next to another picture {path.name}"


def frame_of(results: Results, options: Wanted) -> pd.DataFrame:
    """Return the tidy dataset of *results*, with a column for each configuration key in *options*.

    ``where`` of *options* chooses the rows, one for each run.  The index of a row is the place of the run.
    The columns of figures have the names of the figures, without their units.  A run that lacks a key of
    ``line_keys`` has "-" there.

    Raises:
        BadInput: a name is not a column, figure or key, some runs lack an axis, or no run has a chosen value.
    """
    frame = tidy(results.outcomes, results.axes)
    axes = [name for name in (options.x, options.heat) if name is not None]
    settings = [
        name
        for name in dict.fromkeys([*axes, *options.line_keys, *options.where])
        if name not in frame and (name not in COLUMNS or name in options.where)
    ]
    for name in settings:
        values = [setting_of(configuration, name) for configuration in results.configurations()]
        if all(value is None for value in values):
            names = [*results.axes, "variant", *(() if name in options.where else FIGURES)]
            raise bad("--where" if name in options.where else "plot", unknown_key(name, names), name)
        frame[name] = ["-" if value is None else value for value in values]
    for name in options.y:
        if name not in COLUMNS:
            raise bad("--y", unknown_key(name, list(FIGURES)), name)
    frame = select(frame, options.where)
    for name in settings:
        if name in axes and (blanks := list(frame[name]).count("-")):
            message = f"{blanks} of {len(frame)} runs lack this key; leave them out with --where KEY=VALUE"
            raise bad("plot", message, name)
        frame = with_setting(frame, name, list(frame[name]))
    return frame.rename(columns={column: name for name, column in COLUMNS.items()})


def _sweep_picture(results: Results, frame: pd.DataFrame, options: Wanted) -> tuple[str, Figure, list[str]]:
    """Return the picture of a sweep: the name of its file, the figure, and the knees of its lines."""
    if options.latency is not None:
        _check_latency(options)
        keys = options.line_keys or usual_lines(frame, "replication")
        title = narrowed(results.title, options.where)
        figure = latency_picture(frame, results.outcomes, options.latency, keys, title)
        return f"{options.latency}_latency.png", figure, []
    x = options.x or _usual_x(frame, results.axes)
    figures = options.y or _telling(frame)
    title = narrowed(results.title, options.where)
    if options.heat is not None:
        _check_map(x, options, figures)
        name = f"{_as_file(figures[0])}-{_as_file(x)}-{_as_file(options.heat)}.png"
        return name, heat_map(frame, x, options.heat, figures[0], title), []
    keys = [key for key in options.line_keys if key != x] if options.line_keys else usual_lines(frame, x)
    plug_requests = (
        _plug_requests(results, frame) if "request_size" in figures and are_numbers(frame[x]) else None
    )
    plug_requests = (
        plug_requests if plug_requests is not None and min(frame[x]) < plug_requests < max(frame[x]) else None
    )
    figure = line_picture(frame, x, figures, keys, title, plug_requests)
    return f"{_as_file(x)}.png", figure, [knee for name in figures for knee in knees(frame, x, name, keys)]


def _usual_x(frame: pd.DataFrame, axes: Sequence[str]) -> str:
    """Return the first of the swept *axes* whose values are numbers, which a line can follow.

    Without such an axis, return the first axis, and without any axis the variant.
    """
    return next((axis for axis in axes if are_numbers(frame[axis])), axes[0] if axes else "variant")


def _check_latency(options: Wanted) -> None:
    """Check the options of a picture of the latencies of one system call.

    Raises:
        BadInput: an option of another picture is given, too.
    """
    others = {"--x": options.x, "--y": ", ".join(options.y), "--heat": options.heat}
    for name, value in others.items():
        if value:
            problem = (
                f"is {value}; a picture of latencies has no other figure or axis: leave it out, or --latency"
            )
            raise bad(name, problem)


def _check_map(x: str, options: Wanted, figures: Sequence[str]) -> None:
    """Check the options of a map of one figure over *x* and ``options.heat``.

    Raises:
        BadInput: two of the three are equal, or several figures or lines are wanted.
    """
    if len({x, options.heat, figures[0]}) < 3:
        problem = f"a map of {figures[0]} over {x} and {options.heat} needs three different names"
        message = f"{problem}; give --x and --heat"
        raise bad("--heat", message)
    if options.line_keys:
        raise bad("--by", f"is {', '.join(options.line_keys)}; a map has no lines: leave --by out, or --heat")
    if len(options.y) > 1:
        raise bad("--y", f"is {', '.join(options.y)}; a map shows one figure: give one --y")


def _telling(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return the usual figures for these runs: of layout, of requests, or of operations on files."""
    if frame["extents_per_file"].any():
        return _with_values(frame, _OF_LAYOUT)
    requests = frame["write_bandwidth"].any() and not _no_bytes(frame)
    return _with_values(frame, _OF_REQUESTS if requests else _OF_OPERATIONS)


def _with_values(frame: pd.DataFrame, figures: Sequence[str]) -> tuple[str, ...]:
    """Return those of the *figures* that any run has, or all if there is none."""
    return tuple(name for name in figures if frame[name].notna().any()) or tuple(figures)


def _no_bytes(frame: pd.DataFrame) -> bool:
    """Return whether all files are empty."""
    return not frame["file_bandwidth"].any()


def _as_file(name: str) -> str:
    """Return *name* as a part of a file name: without slashes, and with at most 60 characters."""
    return re.sub(r"[^\w.,=+-]", "_", name)[:60].lstrip(".") or "_"


def line_picture(
    frame: pd.DataFrame,
    x: str,
    figures: Sequence[str],
    keys: Sequence[str],
    title: str,
    plug_requests: int | None = None,
) -> Figure:
    """Return a picture of *figures* against *x*: a row of panels for each, and lines by the settings *keys*.

    Each combination of values of *keys* has a line.  A point is the mean of replications, and a band is their
    95 % interval.  If another setting differs between the runs at one point of a line, a row has one panel
    for each of its values.

    *frame* is like a result of `frame_of`: the columns of figures have no units in their names.  *title*
    heads the picture.  *plug_requests*: mark this value of *x*, the number of requests that a plug holds;
    None: no mark.

    Raises:
        BadInput: there would be too many panels.
    """
    frame = frame.reset_index(drop=True)
    keys = telling_keys(frame, keys)
    parts = _parts(frame, x, keys)
    picture, rows = grid_of(len(figures), len(parts), title)
    if not are_numbers(frame[x]):
        rows[0][0].xaxis.update_units([str(value) for value in frame[x]])  # type: ignore[no-untyped-call]
    for name, row in zip(figures, rows, strict=True):
        heights = [
            _draw_lines(panel, frame, x, keys, name, part)
            for panel, (_, part) in zip(row, parts, strict=True)
        ]
        row[0].set_ylabel(figure_label(name), fontsize=9)
        for panel, panel_heights in zip(row, heights, strict=True):
            scale_to(panel, chain.from_iterable(heights))
            ticks_at(panel, list(frame[x]), unit_of(frame, x))
            if not panel_heights:
                message = "no run has this figure"
                panel.text(0.5, 0.5, message, transform=panel.transAxes, ha="center", color="0.35")
    for (part_title, _), top, bottom in zip(parts, rows[0], rows[-1], strict=True):
        top.set_title(fill(part_title, TITLE_WIDTH), fontsize=9)
        bottom.set_xlabel(x, fontsize=9)
    if plug_requests is not None:
        _mark(rows, plug_requests)
    legend_below(picture, *chain.from_iterable(rows), keys=[key for key in keys if key != "variant"])
    return picture


def _draw_lines(
    panel: Axes, frame: pd.DataFrame, x: str, keys: Sequence[str], name: str, part: pd.DataFrame
) -> list[float]:
    """Draw the runs *part* of *frame*; return the heights of points and bands.

    A line has a colour and a marker by its place among all lines of *frame*, so it looks equal in all panels.
    A hundred lines have different pairs of a colour and a marker.
    """
    heights: list[float] = []
    connect = are_numbers(frame[x])
    for number, (label, runs) in enumerate(lines_of(frame, keys)):
        colour = COLOURS[number % len(COLOURS)]
        marker = MARKERS[(number + number // len(COLOURS)) % len(MARKERS)]
        points = _points(runs.loc[runs.index.intersection(part.index)], x, name)
        if len(points):
            heights += [*points["mean"], *points["high"]]
            style = {"color": colour, "marker": marker, "markersize": 5, "label": label}
            _draw_line(panel, points, connect, style)
    return heights


def _draw_line(panel: Axes, points: pd.DataFrame, connect: bool, style: dict[str, Any]) -> None:
    """Draw the *points* of one line: with *connect* joined, with a band; else separate, with error bars."""
    if connect:
        panel.plot(points["x"], points["mean"], **style)
        panel.fill_between(points["x"], points["low"], points["high"], color=style["color"], alpha=0.18, lw=0)
    else:
        half = points["high"] - points["mean"]
        panel.errorbar(points["x"], points["mean"], half, linestyle="none", capsize=3, **style)


def _mark(rows: Sequence[Sequence[Axes]], plug_requests: int) -> None:
    """Mark the number of requests that a plug holds in all panels, with a text in the last panel."""
    for panel in chain.from_iterable(rows):
        panel.axvline(plug_requests, color="0.6", linewidth=1, linestyle=":")
    rows[-1][-1].annotate(
        f"a plug holds {plug_requests} requests", (plug_requests, 1), xycoords=("data", "axes fraction"),
        xytext=(4, -11), textcoords="offset points", fontsize=8, color="0.35",
    )  # fmt: skip


def _parts(frame: pd.DataFrame, x: str, keys: Sequence[str]) -> list[tuple[str, pd.DataFrame]]:
    """Return a title and the runs of each panel; runs at one point of a line are then replications."""
    return panels_of(frame, differing(frame, settings_of(frame), [x, *keys]))


def _points(frame: pd.DataFrame, x: str, name: str) -> pd.DataFrame:
    """Return the mean and the interval of a figure at each *x*, sorted if *x* is a number.

    Runs without the figure are left out.  The interval of a single run is its value.
    """
    import pandas as pd

    rows = []
    for position, runs in frame.groupby(x, sort=are_numbers(frame[x])):
        values = [float(value) for value in runs[name] if value == value]
        if values:
            interval = confidence_95(values) if len(values) > 1 else (values[0],) * 3
            rows.append((position, *interval))
    return pd.DataFrame(rows, columns=["x", "mean", "low", "high"])


def knees(frame: pd.DataFrame, x: str, name: str, keys: Sequence[str]) -> Iterator[str]:
    """Yield a line of text for each line of each panel that has a knee (`results.intervals.knee_of`).

    The lines are those of `line_picture` with the same *frame*: the figure *name* against *x*, by *keys*.  A
    figure of which more is no gain has no knee, and neither has an *x* of texts.
    """
    if not FIGURES[name].gains or not are_numbers(frame[x]):
        return
    keys = telling_keys(frame, keys)
    for title, part in _parts(frame, x, keys):
        for label, runs in lines_of(part, keys):
            points = _points(runs, x, name)
            knee = knee_of(list(points["x"]), list(points["mean"]), list(points["high"] - points["mean"]))
            if knee is not None:
                whose = ", ".join(text for text in (label, title) if text)
                position = short(knee, unit_of(frame, x))
                line = f"{name}{f' of {whose}' if whose else ''}"
                yield f"{KNEE}{line}: {x} = {position}; beyond, it rises less than half as fast"


def _plug_requests(results: Results, frame: pd.DataFrame) -> int | None:
    """Return the number of requests that a plug holds; None if runs of *frame* differ in this bound."""
    rows = set(frame.index)
    bounds = {
        setting_of(configuration, "kernel.plug.max_requests")
        for row, configuration in enumerate(results.configurations())
        if row in rows
    }
    (bound,) = bounds if len(bounds) == 1 else (None,)
    return int(bound) if isinstance(bound, int) else None
