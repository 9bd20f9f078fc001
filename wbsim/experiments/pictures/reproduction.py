"""The picture of a reproduction: each simulated figure as a multiple of the published one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wbsim.experiments.pictures.axes import COLOURS, PICTURE_WIDTH, head

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from wbsim.experiments.published.reproduce import Reproduction

_CLOSE: Final = 1.1
"""The band has the figures within 10 % of the published ones, as multiples: 1 / 1.1 to 1.1."""
_LEAST_WIDTH: Final = 1.5
"""The axis reaches from 1 / 1.5 to 1.5 at least, so that errors of one percent do not look large."""


def reproduction_picture(result: Reproduction) -> Figure:
    """Return a picture with a point for each row that has an error, in the order of the table.

    A point is filled if the row is a prediction, and empty if a number was fitted to it.  A bar is the 95 %
    interval, and a band the figures within 10 % of the published ones.  The axis is logarithmic.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter, NullLocator

    rows = [row for row in result.rows if row.relative_error is not None and row.published]
    figure = Figure(figsize=(PICTURE_WIDTH, 1.4 + 0.19 * len(rows)), layout="constrained")
    panel = figure.subplots()
    panel.axvspan(1 / _CLOSE, _CLOSE, color="0.93", zorder=0)
    panel.axvline(1, color="0.5", linewidth=1)
    reach = _LEAST_WIDTH
    for role, face in (("predicted", COLOURS[1]), ("calibrated", "white")):
        places = [place for place, row in enumerate(rows) if row.role == role]
        ratios = [1 + float(rows[place].relative_error or 0) for place in places]
        reach = max([reach, *(max(ratio, 1 / ratio) for ratio in ratios if ratio > 0)])
        panel.plot(
            ratios, places, "o", color=COLOURS[1], markerfacecolor=face, markersize=6, label=role, zorder=3
        )
    for place, row in enumerate(rows):
        if row.ci95 is not None and row.published:
            low, high = (end / row.published for end in row.ci95)
            panel.plot([low, high], [place, place], color=COLOURS[1], linewidth=1.5)
    panel.set_xscale("log")
    panel.set_xlim(1 / (1.1 * reach), 1.1 * reach)
    ticks = [tick for tick in (0.1, 0.25, 0.5, 0.8, 1, 1.25, 2, 4, 10, 30) if 1 / reach <= tick <= reach]
    panel.set_xticks(ticks)
    panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.set_yticks(range(len(rows)), [row.id for row in rows], fontsize=8)
    panel.set_ylim(len(rows) - 0.5, -0.5)
    panel.set_xlabel("simulated / published", fontsize=9)
    panel.tick_params(axis="x", labelsize=8)
    panel.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    head(figure, "Simulated figures against the published ones")
    return figure
