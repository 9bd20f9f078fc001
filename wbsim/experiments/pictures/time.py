"""Pictures of a run over time: files, requests and bytes a second, flushers, held writers, dirty memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from wbsim.experiments.pictures.axes import COLOURS, LINES, legend_below, panels
from wbsim.experiments.results.outcome import Outcome, disks_with_requests
from wbsim.sim.units import MS, SECTOR_BYTES, S

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BINS: Final = 80
"""The number of parts of the longest run; a rate is the mean of one part."""


def over_time(title: str, outcomes: Sequence[Outcome]) -> Figure:
    """Return panels over simulated time for the first replications; each variant and point has a colour.

    At least one first replication in *outcomes* must have levels; runs without levels are left out.  *title*
    heads the picture.

    * files a second, of each program with several iterations.
    * of each disk that completed requests: write requests and written MB a second, w_await (ms), the
      utilisation (%), and r_await (ms) if any disk reads.
    * the number of flushers, and of threads that the throttle holds if it holds any.
    * MiB that are dirty or under writeback, with the thresholds.
    """
    from matplotlib.ticker import MaxNLocator, NullFormatter

    runs = [outcome for outcome in outcomes if outcome.replication == 0 and outcome.levels.get("time_ns")]
    iterations = any(len(outcome.samples) > 1 for outcome in runs)
    reads = any(outcome.levels[f"{disk} reads"][-1] for outcome in runs for disk in outcome.disks)
    throttles = any(any(outcome.levels["held_writers"]) for outcome in runs)
    panels_with_values = {_FILES: iterations, _R_AWAIT: reads, _HELD: throttles}
    absent = {name for name, has_values in panels_with_values.items() if not has_values}
    names = [name for name in _PANELS if name not in absent]
    figure, rows = panels(len(names), title, height=1.2)
    panel = dict(zip(names, rows, strict=True))
    step_s = max(outcome.levels["time_ns"][-1] for outcome in runs) / S / _BINS
    for outcome, colour in zip(runs, cycle(COLOURS), strict=False):
        label = " ".join([outcome.variant, *map(str, outcome.point.values())])
        style: dict[str, Any] = {"color": colour, "linewidth": 1.3}
        if iterations:
            _files(panel[_FILES], outcome, label, style)
        levels = {name: np.array(values) for name, values in outcome.levels.items()}
        seconds = levels["time_ns"] / S
        disks = disks_with_requests(outcome.levels, outcome.disks)
        for disk, line in zip(disks, cycle(LINES), strict=False):
            disk_label = label if len(disks) == 1 else f"{label}: {disk}"
            _disk(panel, disk, levels, step_s, {**style, "linestyle": line, "label": disk_label})
        panel[_FLUSHERS].plot(seconds, levels["flushers"], drawstyle="steps-post", **style)
        if throttles:
            panel[_HELD].plot(*means_of(seconds, levels["held_writers"], step_s), **style)
        panel[_DIRTY].plot(seconds, levels["dirty"] + levels["writeback"], **style)
        for threshold in ("background", "limit"):
            panel[_DIRTY].plot(seconds, levels[threshold], color=colour, linewidth=0.7, linestyle=":")
    for name, axes in panel.items():
        axes.set_ylabel(name, fontsize=9)
        values = [float(y) for line in axes.lines for y in np.asarray(line.get_ydata(), float)]
        if name in (_W_AWAIT, _R_AWAIT) and values and max(values) > 10 * min(values) > 0:
            axes.set_yscale("log")  # a flash drive and a disk differ by three powers of ten
            axes.yaxis.set_minor_formatter(NullFormatter())
        else:
            axes.set_ylim(0, None)
    panel[_FLUSHERS].yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if throttles:
        panel[_HELD].set_ylim(0, max(1, panel[_HELD].get_ylim()[1]))
    panel[_DIRTY].set_xlabel("simulated time, s")
    panel[_DIRTY].set_xlim(0, None)
    legend_below(figure, panel[_REQUESTS])
    return figure


_FILES: Final = "files / s"
_REQUESTS: Final = "requests / s"
_BANDWIDTH: Final = "MB / s"
_W_AWAIT: Final = "w_await, ms"
_R_AWAIT: Final = "r_await, ms"
_BUSY: Final = "% busy"
_FLUSHERS: Final = "flushers"
_HELD: Final = "writers held"
_DIRTY: Final = "MiB dirty or\nunder writeback;\nthresholds"
_PANELS: Final = (
    _FILES, _REQUESTS, _BANDWIDTH, _W_AWAIT, _R_AWAIT, _BUSY, _FLUSHERS, _HELD, _DIRTY,
)  # fmt: skip
"""The labels of all panels, from top to bottom."""


def _disk(
    panel: dict[str, Any], disk: str, levels: dict[str, NDArray[Any]], step_s: float, style: dict[str, object]
) -> None:
    """Draw the requests of one *disk*, their waits, and its utilisation."""
    seconds = levels["time_ns"] / S
    panel[_REQUESTS].plot(*rates_of(seconds, levels[f"{disk} ios"], step_s), **style)
    panel[_BANDWIDTH].plot(
        *rates_of(seconds, levels[f"{disk} sectors"] * (SECTOR_BYTES / 1e6), step_s), **style
    )
    panel[_W_AWAIT].plot(*awaits_of(levels, f"{disk} write_wait_ns", f"{disk} ios", step_s), **style)
    if _R_AWAIT in panel:
        panel[_R_AWAIT].plot(*awaits_of(levels, f"{disk} read_wait_ns", f"{disk} reads", step_s), **style)
    panel[_BUSY].plot(*rates_of(seconds, levels[f"{disk} busy_ns"] * (100 / S), step_s), **style)


def _files(panel: Any, outcome: Outcome, label: str, style: dict[str, object]) -> None:
    """Draw the files a second of each program, at the ends of its iterations."""
    programs = list(dict.fromkeys(sample.program for sample in outcome.samples))
    for program, line in zip(programs, cycle(LINES), strict=False):
        own = [sample for sample in outcome.samples if sample.program == program]
        if len(own) > 1:
            ends = [sample.end_ns / S for sample in own]
            panel.plot(ends, [sample.files_per_sec for sample in own], linestyle=line, label=label, **style)


def rates_of(
    seconds: NDArray[np.float64], counts: NDArray[Any], step_s: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the rates of a counter in parts of *step_s*: the middles of the parts (s), and the rates (1/s).

    *counts* are its samples at *seconds*, one or more; at 0 s the counter is 0.  A shorter rest at the end is
    left out.  A run that is shorter than *step_s* is one part.
    """
    ends = np.arange(0, seconds[-1] + step_s / 2, step_s)
    if len(ends) < 2:
        ends = np.array([0.0, seconds[-1]])
    at_ends = np.interp(ends, np.concatenate(([0.0], seconds)), np.concatenate(([0.0], counts)))
    return (ends[1:] + ends[:-1]) / 2, np.diff(at_ends) / np.diff(ends)


def awaits_of(
    levels: dict[str, NDArray[Any]], waits: str, counter: str, step_s: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the middle (s) of each part of a run, and the mean wait (ms) of the requests completed in it.

    A part has the length *step_s*, and *levels* are those of an outcome, as arrays.  *waits* names the level
    with the sum of the waits (ns), and *counter* the level with the completed requests.  Parts without
    requests are left out.
    """
    seconds = levels["time_ns"] / S
    middles, counts = rates_of(seconds, levels[counter], step_s)
    _, waits_ns = rates_of(seconds, levels[waits], step_s)
    mask = counts > 0
    return middles[mask], waits_ns[mask] / counts[mask] / MS


def means_of(
    seconds: NDArray[np.float64], levels: NDArray[Any], step_s: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the middles (s) and the mean levels of the parts that `rates_of` makes of a run.

    *levels* are samples at *seconds*, and the means have their unit.
    """
    return rates_of(seconds, np.cumsum(levels * np.diff(seconds, prepend=0.0)), step_s)
