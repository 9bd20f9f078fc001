"""What a run did over time: files, requests and bytes a second, who was at work or held, what was dirty."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from wbsim.experiments.pictures.axes import COLOURS, LINES, legend_below, panels
from wbsim.experiments.running.outcome import Outcome
from wbsim.sim.units import MIB, PAGE_BYTES, SECTOR_BYTES, S

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BINS: Final = 80
"""Rates are those of so many parts of the longest run."""


def over_time(title: str, outcomes: Sequence[Outcome]) -> Figure:
    """Files a second of each program that has iterations, write requests and MB a second of each disk and how
    busy it was, how many flushers there were, how many of the programs' threads the throttle held, and MiB
    that are dirty or under writeback between the thresholds, over simulated time: a colour for each variant
    and point, of several replications the first.
    """
    from matplotlib.ticker import MaxNLocator

    shown = [outcome for outcome in outcomes if outcome.replication == 0 and outcome.levels.get("time_ns")]
    made = any(len(outcome.samples) > 1 for outcome in shown)
    figure, of = panels(6 + made, title, height=1.6)
    *rates, requests, bandwidth, busy, flushers, held, dirty = of
    step_s = max(outcome.levels["time_ns"][-1] for outcome in shown) / S / _BINS
    for outcome, colour in zip(shown, cycle(COLOURS), strict=False):
        label = " ".join([outcome.variant, *map(str, outcome.point.values())])
        style: dict[str, Any] = {"color": colour, "linewidth": 1.3}
        for panel in rates:
            _files(panel, outcome, label, style)
        levels = {name: np.array(values) for name, values in outcome.levels.items()}
        seconds = levels["time_ns"] / S
        for disk, line in zip(outcome.disks, cycle(LINES), strict=False):
            named = label if len(outcome.disks) == 1 else f"{label}: {disk}"
            at, rate = rates_of(seconds, levels[f"{disk} ios"], step_s)
            requests.plot(at, rate, label=named, linestyle=line, **style)
            at, rate = rates_of(seconds, levels[f"{disk} sectors"] * (SECTOR_BYTES / 1e6), step_s)
            bandwidth.plot(at, rate, linestyle=line, **style)
            at, rate = rates_of(seconds, levels[f"{disk} busy_ns"] * (100 / S), step_s)
            busy.plot(at, rate, linestyle=line, **style)
        flushers.plot(seconds, levels["flushers"], drawstyle="steps-post", **style)
        held.plot(*means_of(seconds, levels["held"], step_s), **style)
        pages = levels["dirty_pages"] + levels["writeback_pages"]
        dirty.plot(seconds, pages * (PAGE_BYTES / MIB), **style)
        for threshold in ("background_pages", "limit_pages"):
            levels_mib = levels[threshold] * (PAGE_BYTES / MIB)
            dirty.plot(seconds, levels_mib, color=colour, linewidth=0.7, linestyle=":")
    for panel, name in zip(of, _NAMES[-6 - made :], strict=True):
        panel.set_ylabel(name, fontsize=9)
        panel.set_ylim(0, None)
    flushers.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    held.set_ylim(0, max(1, held.get_ylim()[1]))
    dirty.set_xlabel("simulated time, s")
    dirty.set_xlim(0, None)
    legend_below(figure, requests)
    return figure


_NAMES: Final = (
    "files / s", "write requests / s", "MB / s", "% busy", "flushers", "writers held",
    "MiB dirty or\nunder writeback;\nthresholds",
)  # fmt: skip


def _files(panel: Any, outcome: Outcome, label: str, style: dict[str, Any]) -> None:
    """Files a second of each program, from one iteration's end to the next."""
    programs = list(dict.fromkeys(sample.program for sample in outcome.samples))
    for program, line in zip(programs, cycle(LINES), strict=False):
        own = [sample for sample in outcome.samples if sample.program == program]
        if len(own) > 1:
            ends = [sample.end_ns / S for sample in own]
            panel.plot(ends, [sample.files_per_sec for sample in own], linestyle=line, label=label, **style)


def rates_of(
    seconds: NDArray[np.float64], counts: NDArray[Any], step_s: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The rate of a counter in parts of a run, of *step_s* each: where their middles are, and the rates."""
    ends = np.arange(0, seconds[-1] + step_s / 2, step_s)
    if len(ends) < 2:
        ends = np.array([0.0, seconds[-1]])
    at_ends = np.interp(ends, np.concatenate(([0.0], seconds)), np.concatenate(([0.0], counts)))
    return (ends[1:] + ends[:-1]) / 2, np.diff(at_ends) / np.diff(ends)


def means_of(
    seconds: NDArray[np.float64], levels: NDArray[Any], step_s: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean of a level that was seen at *seconds* in parts of a run, as `rates_of` has them."""
    return rates_of(seconds, np.cumsum(levels * np.diff(seconds, prepend=0.0)), step_s)
