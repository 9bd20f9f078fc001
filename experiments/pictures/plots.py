"""Pictures of what a command wrote: any figure against anything that differs between runs, and over time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from wbsim.experiments.config.problems import bad, unknown_key
from wbsim.experiments.formats.table import figure_text
from wbsim.experiments.pictures.axes import (
    COLOURS,
    MARKERS,
    are_numbers,
    legend_below,
    panels,
    save_png,
    scale_to,
    short,
    ticks_at,
)
from wbsim.experiments.pictures.time import over_time
from wbsim.experiments.running.results import Results, read_results, setting_of
from wbsim.experiments.running.store import replace_whole
from wbsim.experiments.statistics.dataset import tidy
from wbsim.experiments.statistics.figures import COLUMNS, FIGURES
from wbsim.experiments.statistics.knee import knee_of
from wbsim.sim.stats import confidence_95

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_OF_REQUESTS: Final = ("write_iops", "file_rate", "request_size")
_OF_LAYOUT: Final = ("extents_per_file", "mean_extent", "file_bandwidth")
_OF_OPERATIONS: Final = ("file_rate", "system_processors", "waiting_processors")


class Wanted(NamedTuple):
    """What is to be drawn: figures *y* against *x*, a line for each value of *by*; or a *heat* map of one
    figure over *x* and this.  What is not said follows from what was swept.
    """

    x: str | None = None
    y: tuple[str, ...] = ()
    by: str | None = None
    heat: str | None = None


def plot_directory(directory: Path, wanted: Wanted = Wanted()) -> Iterator[str]:  # noqa: B008
    """Draw what is in *directory*; yields the path of each picture, and where its lines have knees.

    Raises:
        BadInput: there is no result in it, or nothing of that name.
    """
    results = read_results(directory)
    frame = frame_of(results, wanted)
    if results.axes or any(wanted):
        name, figure, knees = _sweep_picture(results, frame, wanted)
        yield _written(directory / name, figure)
        yield from knees
    if not results.axes and not any(wanted) and any(of.levels["time_ns"] for of in results.outcomes):
        yield _written(directory / "time.png", over_time(results.title, results.outcomes))


def _written(path: Path, figure: Figure) -> str:
    replace_whole(path, partial(save_png, figure))
    return str(path)


def frame_of(results: Results, wanted: Wanted) -> pd.DataFrame:
    """The tidy dataset, with a column for each key of the configuration that is *wanted*.

    Raises:
        BadInput: a name is that of no column, figure or key.
    """
    frame = tidy(results.outcomes, results.axes)
    for name in (wanted.x, wanted.by, wanted.heat):
        if name is not None and name not in frame and name not in COLUMNS:
            frame[name] = [setting_of(configuration, name) for configuration in results.configurations()]
            if frame[name].isna().all():
                raise bad("plot", unknown_key(name, [*results.axes, "variant", *FIGURES]), name)
    for name in wanted.y:
        if name not in COLUMNS:
            raise bad("--y", unknown_key(name, list(FIGURES)), name)
    return frame.rename(columns={column: name for name, column in COLUMNS.items()})


def _sweep_picture(results: Results, frame: pd.DataFrame, wanted: Wanted) -> tuple[str, Figure, list[str]]:
    """A picture of what was swept: its name, itself, and the knees of its lines."""
    x = wanted.x or (results.axes[0] if results.axes else "variant")
    figures = wanted.y or _telling(frame)
    if wanted.heat is not None:
        if len({x, wanted.heat, figures[0]}) < 3:
            told = (
                f"a map of {figures[0]} over {x} and {wanted.heat} needs three of them; give --x and --heat"
            )
            raise bad("--heat", told)
        name = f"{_as_file(figures[0])}-{_as_file(x)}-{_as_file(wanted.heat)}.png"
        return name, heat_map(frame, x, wanted.heat, figures[0], results.title), []
    others = [axis for axis in results.axes if axis != x]
    by = [wanted.by] if wanted.by is not None else ["variant", *others]
    by = [column for column in by if column != x]
    held = _held(results) if "request_size" in figures and are_numbers(frame[x]) else None
    held = held if held is not None and min(frame[x]) < held < max(frame[x]) else None
    figure = against(frame, x, figures, by, results.title, held)
    return f"{_as_file(x)}.png", figure, [knee for name in figures for knee in _knees(frame, x, name, by)]


def _telling(frame: pd.DataFrame) -> tuple[str, ...]:
    """The figures that say most of these runs."""
    if frame["extents_per_file"].any():
        return _OF_LAYOUT
    return _OF_REQUESTS if frame["write_bandwidth"].any() and not _no_bytes(frame) else _OF_OPERATIONS


def _no_bytes(frame: pd.DataFrame) -> bool:
    """Whether all files are empty."""
    return not frame["file_bandwidth"].any()


def _as_file(name: str) -> str:
    """*name* as a part of a file's name: nothing in it leads elsewhere, and it is not too long for one."""
    return re.sub(r"[^\w.,=+-]", "_", name)[:60].lstrip(".") or "_"


def against(
    frame: pd.DataFrame,
    x: str,
    figures: Sequence[str],
    by: Sequence[str],
    title: str,
    held: int | None = None,
) -> Figure:
    """A panel for each of *figures* against *x*, a line for each value of *by*: means, with bands of their 95
    % intervals where there are replications.

    *frame* has a row for each run and a column for each of these (`experiments.statistics.dataset`); *held*
    is how many requests a plug holds, where that stands on the axis.
    """
    picture, on = panels(len(figures), title)
    heights: dict[str, list[float]] = {name: [] for name in figures}
    for (label, of), colour, marker in zip(
        _lines(frame, x, by), cycle(COLOURS), cycle(MARKERS), strict=False
    ):
        for panel, name in zip(on, figures, strict=True):
            points = _points(of, x, name)
            heights[name] += [*points["mean"], *points["high"]]
            style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 5, "label": label}
            if are_numbers(points["x"]):
                panel.plot(points["x"], points["mean"], **style)
                panel.fill_between(points["x"], points["low"], points["high"], color=colour, alpha=0.18, lw=0)
            else:
                half = points["high"] - points["mean"]
                panel.errorbar(points["x"], points["mean"], half, linestyle="none", capsize=3, **style)
    for panel, name in zip(on, figures, strict=True):
        panel.set_ylabel(_label(name), fontsize=9)
        scale_to(panel, heights[name])
        ticks_at(panel, list(frame[x]))
        if held is not None:
            panel.axvline(held, color="0.6", linewidth=1, linestyle=":")
    on[-1].set_xlabel(x)
    if held is not None:
        on[-1].annotate(
            f"a plug holds {held} requests", (held, 1), xycoords=("data", "axes fraction"), xytext=(4, -11),
            textcoords="offset points", fontsize=8, color="0.35",
        )  # fmt: skip
    legend_below(picture, on[0])
    return picture


def _lines(frame: pd.DataFrame, x: str, by: Sequence[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    """The runs of each line, and what it is called: by nothing that goes along with *x*."""
    by = [column for column in by if column == "variant" or frame.groupby(x)[column].nunique().max() > 1]
    if not by:
        yield "", frame
        return
    for values, of in frame.groupby(list(by), sort=False):
        yield (
            ", ".join(short(value) if isinstance(value, float | int) else str(value) for value in values),
            of,
        )


def _points(of: pd.DataFrame, x: str, name: str) -> pd.DataFrame:
    """Mean and interval of a figure at each x, numbers in their order; a single run's interval is itself."""
    import pandas as pd

    rows = []
    for at, runs in of.groupby(x, sort=are_numbers(of[x])):
        values = [float(value) for value in runs[name]]
        interval = confidence_95(values) if len(values) > 1 else (values[0],) * 3
        rows.append((at, *interval))
    return pd.DataFrame(rows, columns=["x", "mean", "low", "high"])


def _knees(frame: pd.DataFrame, x: str, name: str, by: Sequence[str]) -> Iterator[str]:
    if not are_numbers(frame[x]):
        return
    for label, of in _lines(frame, x, by):
        points = _points(of, x, name)
        knee = knee_of(list(points["x"]), list(points["mean"]))
        if knee is not None:
            yield f"knee of {name}{f' of {label}' if label else ''}: {x} = {short(knee)}"


def heat_map(frame: pd.DataFrame, x: str, y: str, name: str, title: str) -> Figure:
    """One figure over two things that were swept, as a map with its numbers; replications by their mean."""
    from matplotlib.figure import Figure

    variants = list(dict.fromkeys(frame["variant"])) if "variant" not in (x, y) else [None]
    tables = []
    for variant in variants:
        of = frame if variant is None else frame[frame["variant"] == variant]
        tables.append((variant, of.pivot_table(index=y, columns=x, values=name, sort=are_numbers(frame[x]))))
    high, low = max(t.max().max() for _, t in tables), min(t.min().min() for _, t in tables)
    height = 1.6 + 0.42 * max(len(t) for _, t in tables)
    figure = Figure(figsize=(max(5.2, 3.6 * len(tables)), height), layout="constrained")
    for on, (variant, values) in zip(figure.subplots(1, len(tables), squeeze=False)[0], tables, strict=True):
        image = on.imshow(values, aspect="auto", origin="lower", cmap="YlGnBu", vmin=low, vmax=high)
        on.set_xticks(range(len(values.columns)), [_named(value) for value in values.columns])
        on.set_yticks(range(len(values.index)), [_named(value) for value in values.index])
        on.set(xlabel=x, ylabel=y)
        on.spines[:].set_visible(False)
        if variant not in (None, "base"):
            on.set_title(variant, fontsize=9)
        for (row, column), value in _cells(values):
            dark = value - low > 0.6 * (high - low)
            on.text(
                column,
                row,
                figure_text(value),
                ha="center",
                va="center",
                fontsize=8,
                color="w" if dark else "0.2",
            )
    figure.colorbar(image, ax=figure.axes, label=_label(name))
    figure.suptitle(title, fontsize=10, x=0.02, ha="left", wrap=True)
    return figure


def _label(name: str) -> str:
    """A figure with its unit, as it stands beside an axis."""
    unit = FIGURES[name].unit
    return name.replace("_", " ").replace("iops", "IOPS") + ("" if unit == "1" else f", {unit}")


def _named(value: Any) -> str:
    return short(value) if isinstance(value, int | float) else str(value)


def _cells(values: pd.DataFrame) -> Iterator[tuple[tuple[int, int], float]]:
    """The cells that have a value, with their places."""
    for (row, column), value in np.ndenumerate(values.to_numpy(dtype=float)):
        if value == value:
            yield (row, column), float(value)


def _held(results: Results) -> int | None:
    """How many requests a plug holds, if that is the same in all runs and has a bound."""
    held = {
        setting_of(configuration, "kernel.plug.max_requests") for configuration in results.configurations()
    }
    (only,) = held if len(held) == 1 else (None,)
    return int(only) if isinstance(only, int) else None
