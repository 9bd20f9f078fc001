"""A picture of the latencies of one system call: what a share of the calls does not exceed.

The horizontal axis has percentiles, and its right end is stretched: 90, 99 and 99.9 % are equally far apart.
So the few slow calls, which users feel, take as much room as the many fast ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from textwrap import fill
from typing import TYPE_CHECKING, Final, NamedTuple

from wbsim.experiments.config.problems import bad, list_names
from wbsim.experiments.config.values import amount
from wbsim.experiments.pictures.axes import COLOURS, LINES, TITLE_WIDTH, grid_of, legend_below
from wbsim.experiments.pictures.facets import differing, lines_of, panels_of, settings_of, telling_keys
from wbsim.models.syscalls.latency import merge_bins

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from wbsim.experiments.results.outcome import Outcome

_HEIGHT: Final = 3.4


class Steps(NamedTuple):
    """The corners of a distribution: each latency (ns) has two, where its step begins and where it ends.

    ``slower`` has the share of the calls (0 to 1) that take the latency or longer, then the share that take
    longer.  The shares fall from 1, and ``latencies_ns`` rise.
    """

    slower: list[float]
    latencies_ns: list[int]


def steps_of(bins: Mapping[int, int]) -> Steps:
    """Return the corners of the distribution of *bins*, which has the number of calls by latency (ns).

    The last share is that of half a call, 0.5 / all, because 0 has no place on a logarithmic axis.

    >>> steps_of({100: 3, 200: 1})
    Steps(slower=[1.0, 0.25, 0.25, 0.125], latencies_ns=[100, 100, 200, 200])
    """
    latencies = sorted(bins)
    total = sum(bins.values())
    ends = list(accumulate(bins[latency] for latency in latencies))
    begins = [0, *ends[:-1]]
    slower, at = [], []
    for latency, begin, end in zip(latencies, begins, ends, strict=True):
        slower += [(total - begin) / total, max(total - end, 0.5) / total]
        at += [latency, latency]
    return Steps(slower, at)


def latency_picture(
    frame: pd.DataFrame, outcomes: Sequence[Outcome], call: str, keys: Sequence[str], title: str
) -> Figure:
    """Return a picture of the latencies of *call* over all programs, with lines by the settings *keys*.

    Each combination of values of *keys* has a line.  Runs that differ only in their replication are one line.
    If another setting differs between the runs of a line, each of its values has a panel.  *frame* has a row
    for each run (`results.dataset`), whose label is the place of its outcome in *outcomes*.  *title* heads
    the picture.

    Raises:
        BadInput: no run has a *call*, or there would be too many panels.
    """
    programs = {row: list(outcomes[row].programs.values()) for row in frame.index}
    names = {name for row in programs.values() for program in row for name in program.calls}
    if call not in names:
        raise bad("latency", f"is {call}, and no run has such a call; use one of {list_names(sorted(names))}")
    keys = telling_keys(frame, keys)
    parts = panels_of(frame, differing(frame, settings_of(frame), keys or ["variant"]))
    figure, (row,) = grid_of(1, len(parts), title, _HEIGHT)
    most = 0.0
    for panel, (part_title, part) in zip(row, parts, strict=True):
        for number, (label, runs) in enumerate(lines_of(frame, keys)):
            of_line = chain.from_iterable(programs[row] for row in runs.index.intersection(part.index))
            bins = merge_bins(program.calls[call].bins_ns for program in of_line if call in program.calls)
            if bins:
                steps = steps_of(bins)
                most = max(most, 1 / min(steps.slower))
                colour, dashes = COLOURS[number % len(COLOURS)], LINES[number // len(COLOURS) % len(LINES)]
                calls = [1 / slower for slower in steps.slower]
                panel.plot(calls, steps.latencies_ns, label=label, color=colour, linestyle=dashes)
        panel.set_title(fill(part_title, TITLE_WIDTH), fontsize=9)
        panel.set_xlabel(f"% of the calls of {call}(2)", fontsize=9)
    for panel in row:
        _scale(panel, most)
    row[0].set_ylabel("take at most", fontsize=9)
    legend_below(figure, *row, keys=[key for key in keys if key != "variant"])
    return figure


def _scale(panel: Axes, most: float) -> None:
    """Scale the axes of *panel*, up to the share of one call in *most*."""
    from matplotlib.ticker import LogLocator, NullLocator

    nines = [10**power for power in range(1, 10) if 10**power <= most]
    panel.set_xscale("log")
    panel.set_xlim(1, max(most, 2))
    panel.set_xticks([1, 2, *nines], ["0", "50", *(_percent(nine) for nine in nines)])
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.yaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_formatter(lambda ns, _: amount(round(ns), "ns"))


def _percent(calls: int) -> str:
    """Return the percentage of the calls that all but one of *calls* are: 99.9 for 1000."""
    return f"{100 - 100 / calls:.10g}"
