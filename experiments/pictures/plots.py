"""Pictures of what a run wrote: a sweep against its axis, or a run over time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wbsim.experiments.config.problems import bad
from wbsim.experiments.running.runner import CASE_FILE, replace_whole
from wbsim.sim.units import MIB, SECTOR_BYTES, S

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS: Final = ("#b2432f", "#27647b", "#c9a227", "#5b8c5a", "#6b4e71")
MARKERS: Final = ("o", "s", "^", "D", "v")
_LINES: Final = ("-", "--", ":", "-.")
"""Of the programs of a variant, in turn."""
_LEGIBLE_TICKS: Final = 9


def plot_directory(directory: Path) -> list[Path]:
    """Draw what `wbsim run --out DIRECTORY` wrote; the pictures' paths.

    Raises:
        BadInput: there is no result in *directory*.
    """
    import pandas as pd

    try:
        document = json.loads((directory / CASE_FILE).read_text())
        iterations = pd.read_parquet(directory / "iterations.parquet")
        outcomes = pd.DataFrame(document["outcomes"])
    except (OSError, ValueError, KeyError) as error:
        missing = getattr(error, "filename", None)
        why = str(error).strip() if missing is None else f"no {Path(missing).name} in it"
        raise bad(
            str(directory), f"holds no result ({why}); make one with wbsim run CONFIG.toml --out DIR"
        ) from None
    outcomes["extents_per_file"] = [
        sum(counts) / len(counts) if counts else 0.0 for counts in outcomes["extents"]
    ]
    by_run = iterations.groupby(["variant", "point", "replication", "program"], dropna=False).size()
    pictures = {"iterations.png": over_time(document["title"], iterations)} if by_run.max() > 1 else {}
    if document["axis"] and outcomes["extents_per_file"].any():
        pictures[f"{document['axis']}.png"] = extents_against(document["axis"], document["title"], outcomes)
    elif document["axis"] and not outcomes["file_bytes"].any():
        pictures = {
            f"{document['axis']}.png": operations_against(document["axis"], document["title"], outcomes)
        }
    elif document["axis"]:
        held = next(iter(document["scenarios"].values()))["kernel"]["plug"]["max_requests"]
        pictures = {f"{document['axis']}.png": against(document["axis"], document["title"], outcomes, held)}
    if not pictures:
        raise bad(
            str(directory), "has neither a sweep nor iterations to draw; the disk is drawn by wbsim layout"
        )
    paths = []
    for name, figure in pictures.items():
        path = directory / name
        replace_whole(path, partial(save_png, figure))
        paths.append(path)
    return paths


def against(axis: str, title: str, outcomes: pd.DataFrame, held: int | None) -> Figure:
    """IOPS, files/s and mean request size against the swept number, one line per variant.

    *outcomes* has the columns of `experiments.running.runner.Outcome`; *held* is how many requests a plug
    holds.
    """
    figure, (iops, rate, size) = _panels(3, title)
    for of, style in _lines(outcomes):
        iops.plot(of["point"], of["write_iops"], **style)
        rate.plot(of["point"], of["files"] / of["wall_time"] / 1e3, **style)
        size.plot(of["point"], of["write_bandwidth"] / of["write_iops"] / 1024, **style)
    iops.set(ylabel="write requests / s", yscale=_scale(outcomes["write_iops"]))
    rate.set(ylabel="thousand files / s", ylim=(0, None))
    size.set(ylabel="mean request, KiB", yscale=_scale(outcomes["write_iops"]), xlabel=axis)
    held = held if _are_numbers(outcomes["point"]) else None
    for panel in (iops, rate, size):
        _label_points(panel, outcomes["point"])
        if held is not None:
            panel.axvline(held, color="0.6", linewidth=1, linestyle=":")
    if held is not None:
        size.annotate(
            f"a plug holds {held} requests", (held, 1), xycoords=("data", "axes fraction"), xytext=(4, -11),
            textcoords="offset points", fontsize=8, color="0.35",
        )  # fmt: skip
    iops.legend(frameon=False)
    return figure


def operations_against(axis: str, title: str, outcomes: pd.DataFrame) -> Figure:
    """Operations on empty files a second, and the processors that they burn, against the swept number: in
    the kernel in all, and while they wait for locks; one line per variant.

    *outcomes* has the columns of `experiments.running.runner.Outcome`.
    """
    outcomes = outcomes.assign(rate=outcomes["files"] / outcomes["wall_time"])
    waits_s = outcomes["locks"].map(lambda locks: sum(lock["wait_ns"] for lock in locks.values()) / 1e9)
    reckoned = outcomes["programs"].map(lambda of: sum(program["reckoned_files"] for program in of.values()))
    outcomes["waiting"] = waits_s / (outcomes["files"] - reckoned) * outcomes["rate"]
    figure, (rate, burnt, waiting) = _panels(3, title)
    for of, style in _lines(outcomes):
        rate.plot(of["point"], of["rate"] / 1e3, **style)
        burnt.plot(of["point"], of["system_cpu_time"] / of["wall_time"], **style)
        waiting.plot(of["point"], of["waiting"], **style)
    rate.set(ylabel="thousand operations / s", ylim=(0, None))
    burnt.set(ylabel="processors in the kernel", ylim=(0, None))
    waiting.set(ylabel="waiting for locks", ylim=(0, None), xlabel=axis)
    for panel in (rate, burnt, waiting):
        _label_points(panel, outcomes["point"])
    rate.legend(frameon=False)
    return figure


def extents_against(axis: str, title: str, outcomes: pd.DataFrame) -> Figure:
    """Extents per file, their size, and throughput against the swept number, one line per variant.

    *outcomes* has the columns of `experiments.running.runner.Outcome` and ``extents_per_file``.
    """
    outcomes = outcomes.assign(mean_extent=outcomes["file_bytes"] / outcomes["extents"].map(sum))
    figure, (extents, size, rate) = _panels(3, title)
    for of, style in _lines(outcomes):
        extents.plot(of["point"], of["extents_per_file"], **style)
        size.plot(of["point"], of["mean_extent"] / MIB, **style)
        rate.plot(of["point"], of["file_bytes"] / of["wall_time"] / 1e6, **style)
    _scale_wide(extents, "extents per file", outcomes["extents_per_file"])
    _scale_wide(size, "mean extent, MiB", outcomes["mean_extent"] / MIB)
    rate.set(ylabel="file MB / s", ylim=(0, None), xlabel=axis)
    for panel in (extents, size, rate):
        _label_points(panel, outcomes["point"])
    extents.legend(frameon=False)
    return figure


def over_time(title: str, iterations: pd.DataFrame) -> Figure:
    """The rate of each program that has iterations, and IOPS and bandwidth of all disks from one iteration's
    end to the next, over simulated time; one colour per variant.
    """
    figure, (rate, iops, bandwidth) = _panels(3, title)
    for (variant, of), colour in zip(iterations.groupby("variant", sort=False), cycle(COLOURS), strict=False):
        of = of[of["replication"] == of["replication"].min()].sort_values("end_ns", kind="stable")
        seconds = of["end_ns"] / S
        took = seconds.diff().fillna(seconds.iloc[0])
        style: dict[str, Any] = {"color": colour, "linewidth": 1.4}
        several = of["program"].nunique() > 1
        for (program, own), line in zip(of.groupby("program", sort=False), cycle(_LINES), strict=False):
            if len(own) > 1:
                label = f"{variant}, {program}" if several else str(variant)
                rate.plot(own["end_ns"] / S, own["files_per_sec"] / 1e3, label=label, linestyle=line, **style)
        iops.plot(seconds, of["ios"].diff().fillna(of["ios"].iloc[0]) / took, **style)
        megabytes = of["sectors"].diff().fillna(of["sectors"].iloc[0]) * SECTOR_BYTES / 1e6
        bandwidth.plot(seconds, megabytes / took, **style)
    rate.set(ylabel="thousand files / s", ylim=(0, None))
    iops.set(ylabel="write requests / s", yscale=_scale(iterations["ios"]))
    bandwidth.set(ylabel="MB / s", ylim=(0, None), xlabel="simulated time, s")
    rate.legend(frameon=False)
    return figure


def _lines(outcomes: pd.DataFrame) -> Iterator[tuple[pd.DataFrame, dict[str, Any]]]:
    """The points of each variant and how they are drawn: numbers in their order and joined, texts as
    configured.
    """
    for (variant, of), colour, marker in zip(
        outcomes.groupby("variant", sort=False), cycle(COLOURS), cycle(MARKERS), strict=False
    ):
        style: dict[str, Any] = {"color": colour, "marker": marker, "label": variant, "markersize": 5}
        if _are_numbers(of["point"]):
            yield of.sort_values("point"), style
        else:
            yield of.astype({"point": str}), {**style, "linestyle": "none", "markersize": 7}


def _are_numbers(points: pd.Series) -> bool:
    from pandas.api.types import is_numeric_dtype

    return is_numeric_dtype(points)


def _label_points(panel: Axes, points: pd.Series) -> None:
    """Ticks at the swept values: all of them, or as many as are legible; texts are spaced evenly."""
    if not _are_numbers(points):
        panel.margins(x=0.5 / len(points.unique()))
        return
    ticks = sorted(points.unique())
    if min(ticks) > 0:
        panel.set_xscale("log", base=2)
    if len(ticks) > _LEGIBLE_TICKS:
        ticks = [
            t
            for t in ticks
            if float(t).is_integer() and (int(t) & (int(t) - 1) == 0 or t in (12, 20, 24, 48))
        ]
    panel.set_xticks(ticks)
    panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    panel.xaxis.set_minor_locator(_no_ticks())


def _scale_wide(panel: Axes, label: str, values: pd.Series) -> None:
    """From zero on, unless *values* are so far apart that most of them would lie there."""
    panel.set_ylabel(label)
    if values.max() > 20 * values.min() > 0:
        panel.set_yscale("log")
    else:
        panel.set_ylim(0, None)


def _scale(values: pd.Series) -> str:
    """Logarithmic, unless nothing was written at all."""
    return "log" if (values > 0).any() else "linear"


def save_png(figure: Figure, path: Path) -> None:
    """Write *figure* to *path*, whatever its name ends in."""
    figure.savefig(path, format="png", dpi=144)


def _panels(count: int, title: str) -> tuple[Figure, list[Axes]]:
    from textwrap import fill

    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 2.3 * count + 0.7), layout="constrained")
    panels = list(figure.subplots(count, 1, sharex=True))
    figure.suptitle(fill(title, 84), fontsize=10, x=0.02, ha="left")
    for panel in panels:
        panel.grid(True, which="major", color="0.9", linewidth=0.8)
        panel.spines[["top", "right"]].set_visible(False)
    return figure, panels


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()
