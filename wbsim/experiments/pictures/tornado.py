"""The tornado picture: the change of a figure when a guess moves from one end of its range to the other.

A guess is an assumed number with a range (`experiments.why.guesses`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wbsim.experiments.pictures.axes import COLOURS, PICTURE_WIDTH, figure_label, head
from wbsim.experiments.why.guesses import distinct_ends
from wbsim.experiments.why.sensitivity import TORNADO, Sensitivity

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def tornado(result: Sensitivity) -> Figure:
    """Return a picture with a bar for each of the `TORNADO` guesses that matter most, the longest on top.

    Guesses that lack the figure at an end of the range are left out.  A bar is red towards the figure at the
    guess's low end, and blue towards the figure at its high end.  A grey band has the middle 95 % of Sobol's
    runs, in which the few guesses with the largest effects vary together.  Without Sobol there is no band.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    effects = [
        effect for effect in result.effects[:TORNADO] if effect.low is not None and effect.high is not None
    ]
    effects.sort(key=lambda effect: abs((effect.high or 0) - (effect.low or 0)))
    figure = Figure(figsize=(PICTURE_WIDTH, 1.5 + 0.34 * len(effects)), layout="constrained")
    panel = figure.subplots()
    for place, effect in enumerate(effects):
        ends = [(effect.low, COLOURS[0]), (effect.high, COLOURS[1])]
        # If both ends lie on one side, the shorter half is drawn last, so that the longer one hides nothing.
        for end, colour in sorted(ends, key=lambda end: -abs((end[0] or 0) - result.value)):
            assert end is not None
            panel.barh(place, end - result.value, left=result.value, color=colour, height=0.7)
    paths = distinct_ends([effect.guess.path for effect in effects])
    names = [f"{path}\n{effect.guess.range_text}" for path, effect in zip(paths, effects, strict=True)]
    panel.set_yticks(range(len(effects)), names, fontsize=7.5)
    panel.axvline(result.value, color="0.3", linewidth=1)
    if result.interval is not None:
        panel.axvspan(*result.interval, color="0.92", zorder=0)
    panel.set_xlabel(figure_label(result.figure), fontsize=9)
    panel.tick_params(axis="x", labelsize=8)
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.tick_params(axis="y", length=0)
    figure.legend(
        handles=[
            Patch(color=colour, label=f"{end} end of the range")
            for colour, end in zip(COLOURS, ("low", "high"), strict=False)
        ],
        loc="outside lower center", ncols=2, frameon=False, fontsize=8,
    )  # fmt: skip
    head(figure, result.title)
    return figure
