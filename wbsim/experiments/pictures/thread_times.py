"""A picture of the time of threads: each bar is as long as a thread was active (%), divided by cause.

Work has warm colours in the order of a page's path, spinning is red, and waiting has cold colours.  Idle time
is white.  Causes that are short in every bar are drawn as one part.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

from wbsim.experiments.formats.table import figure_text
from wbsim.experiments.pictures.axes import head, legend_columns
from wbsim.experiments.why.bottlenecks import AWAY, SEEN, Kind, busy_ns
from wbsim.experiments.why.explain import (
    Result,
    Run,
    by_variant,
    in_order,
    kind_named,
    rates_of,
    seen_causes,
    seen_kinds,
    seen_names,
    titled,
    verdict,
)
from wbsim.models.time_accounting import PATHS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


SHORT: Final = "all shorter causes"
_SEEN_IN_A_BAR: Final = 0.03
"""Causes that take less than this part of the run in every bar are drawn together, as `SHORT`."""
_WARM: Final = (
    "#f3d27a", "#e8a33d", "#c96f2b", "#8c3b1e", "#f2b8a0",
    "#d97f63", "#a8503c", "#6e4a2a", "#d9c3a0", "#b0894f",
    "#c7c24a", "#7d7a1f", "#f5e6b3", "#4a3318", "#c9a0a0",
)  # fmt: skip
_COLD: Final = (
    "#9cd3b8", "#4f9fb0", "#2a5f8a", "#8fa8d9", "#5d5a9c",
    "#b9d9e8", "#2f7d5b", "#1c3557", "#7fb069", "#a99fd1",
)  # fmt: skip
_RED: Final = ("#d6163a", "#7a0f24", "#ee7a8f", "#a8456b", "#f7b5c4")
_STATES: Final = {
    "user": ("#8a8a8a",), "ready": ("#8e6fa8",), "system": _WARM, "waiting": _COLD, "spinning": _RED,
}  # fmt: skip
_TITLE_LETTERS: Final = 60
_PLACES: Final = 30
"""The number of places by name; a place beyond the end of a palette is another shade of a colour."""
_WIDTH: Final = 5.6
"""The width of the picture (inches); its bars have texts, so it is wider than others."""
_WORTH: Final = 0.1
"""In a sweep, a kind of thread that was active for at most this part of every run has no panel."""


class _Bar(NamedTuple):
    label: str
    run: Run
    kind: Kind | None


class _Panel(NamedTuple):
    title: str
    bars: list[_Bar]


def thread_times_picture(result: Result) -> Figure:
    """Return a picture with a panel for each run and a bar for each kind of thread that was active.

    *result* has the first replication of each case, which counts as a run here.  A sweep has a panel for each
    kind that was active for more than a tenth of a run, with a bar for each run.  If no thread was active,
    all kinds are shown.
    """
    if not result.axes:
        return _figure(result.title, [_panel_of(run) for run in result.runs])
    variants = by_variant(result.runs)
    panels = []
    for variant, runs in variants:
        suffix = f" of {variant}" if len(variants) > 1 else ""
        active_names = seen_names(runs)
        names = [name for name in active_names if any(_did_much(name, run) for run in runs)] or active_names
        names = names or list(dict.fromkeys(kind.name for run in runs for kind in run.kinds))
        panels += [_panel_along(f"{name}{suffix}, by {', '.join(result.axes)}", name, runs) for name in names]
    return _figure(result.title, panels)


def _did_much(name: str, run: Run) -> bool:
    kind = kind_named(name, run)
    return kind is not None and busy_ns(kind.life) > _WORTH * run.length_ns


def _panel_of(run: Run) -> _Panel:
    return _Panel(
        verdict(run, count=0), [_Bar(titled(kind), run, kind) for kind in seen_kinds(run) or run.kinds]
    )


def _panel_along(title: str, name: str, runs: Sequence[Run]) -> _Panel:
    unit, rates = rates_of(runs)
    return _Panel(
        title,
        [
            _Bar(f"{run.place} ({figure_text(rate, 0)} {unit})", run, kind_named(name, run))
            for run, rate in zip(runs, rates, strict=True)
        ],
    )


def _figure(title: str, panels: Sequence[_Panel]) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    pairs = [(bar.run, bar.kind) for panel in panels for bar in panel.bars if bar.kind is not None]
    causes = in_order({cause for run, kind in pairs for cause in seen_causes(run, [kind])})
    large = _large(causes, pairs)
    colours = _colours([cause for cause in causes if cause in large])
    if any(_rest_ns(kind, large) >= SEEN * run.length_ns for run, kind in pairs):
        colours[SHORT] = (0.72, 0.7, 0.68, 1.0)
    ratios = [len(panel.bars) + 1 for panel in panels]
    height = 0.3 * sum(ratios) + 0.9 + 0.18 * len(colours) / 3
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=ratios)[:, 0]
    for panel, subplot in zip(panels, axes, strict=True):
        for place, bar in enumerate(panel.bars):
            if bar.kind is not None:
                _draw(subplot, place, bar.kind, bar.run.length_ns, colours)
        subplot.set(
            xlim=(0, 100), ylim=(len(panel.bars) - 0.5, -0.5),
            yticks=range(len(panel.bars)), yticklabels=[bar.label for bar in panel.bars],
        )  # fmt: skip
        subplot.tick_params(length=0, labelsize=8)
        subplot.spines[["top", "right", "left"]].set_visible(False)
        subplot.set_title(fill(panel.title, _TITLE_LETTERS), fontsize=9, loc="left")
    axes[-1].set_xlabel("% of the run; white: idle", fontsize=9)
    handles = [Patch(color=colour, label=cause) for cause, colour in colours.items()]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=legend_columns(figure, [*colours]), frameon=False,
        fontsize=8,
    )  # fmt: skip
    head(figure, title)
    return figure


def _large(causes: Sequence[str], pairs: Sequence[tuple[Run, Kind]]) -> set[str]:
    """Return the causes that take at least `_SEEN_IN_A_BAR` of the run in some bar."""
    return {
        cause
        for cause in causes
        if cause not in AWAY
        and any(kind.life.get(cause, 0) >= _SEEN_IN_A_BAR * run.length_ns for run, kind in pairs)
    }


def _rest_ns(kind: Kind, coloured: Container[str]) -> float:
    """Return the time of *kind* in causes that are neither *coloured* nor idle."""
    return sum(ns for cause, ns in kind.life.items() if cause not in coloured and cause not in AWAY)


def _draw(panel: Axes, place: int, kind: Kind, length_ns: float, colours: dict[str, object]) -> None:
    """Draw one bar: a part for each cause in *colours*, then the rest if `SHORT` has a colour.

    `SHORT` has no colour if the rest takes less than `SEEN` of the run in every bar; then the rest is white.
    """
    start = 0.0
    parts = [(cause, kind.life[cause]) for cause in in_order(colours.keys() & kind.life.keys())]
    if SHORT in colours:
        parts.append((SHORT, _rest_ns(kind, colours)))
    for cause, ns in parts:
        share = 100 * ns / length_ns
        if share:
            panel.barh(place, share, left=start, color=colours[cause], height=0.72, ec="w", lw=0.4)
            _label_part(panel, cause, start + share / 2, place, share, colours[cause])
        start += share


def _label_part(panel: Axes, cause: str, x: float, y: int, share: float, colour: Any) -> None:
    """Write the cause and the share into a part of a bar, if the part has room for the text."""
    text = f"{cause.partition(' ')[2] or cause} {share:.0f}"
    if share > 1.9 * len(text):
        dark = sum(weight * part for weight, part in zip((0.3, 0.59, 0.11), colour, strict=False)) < 0.6
        panel.text(x, y, text, ha="center", va="center", fontsize=7.5, color="white" if dark else "0.15")


def _colours(causes: Sequence[str]) -> dict[str, Any]:
    """Return a different colour for each cause, from the palette of its state.

    A cause has the same colour in all pictures.  If two causes of one picture would share a colour, the later
    one has another shade.
    """
    from matplotlib.colors import to_rgba

    colours: dict[str, Any] = {}
    for cause in causes:
        state, _, detail = cause.partition(" ")
        palette = _STATES[state]
        again, place = divmod(_usual_place(state, detail), len(palette))
        while (colour := _shade(to_rgba(palette[place]), again)) in colours.values():
            again += 1
        colours[cause] = colour
    return colours


def _usual_place(state: str, detail: str) -> int:
    """Return the place of a cause in the palette of its *state*: in the order of a page's path, or by name.

    >>> _usual_place("system", "create") < _usual_place("system", "write") < _usual_place("system", "commit")
    True
    """
    paths = list(PATHS)
    return paths.index(detail) if state == "system" and detail in paths else crc32(detail.encode()) % _PLACES


def _shade(colour: Sequence[float], again: int) -> tuple[float, ...]:
    """Return *colour* (red, green, blue, alpha) for the use *again* of its palette; 0 is the first use.

    Further uses are in turn lighter and darker, and each pair of them more so than the last.
    """
    *parts, alpha = colour
    white, share = again % 2, 1 - 0.7 ** ((again + 1) // 2)
    return (*(part + share * (white - part) for part in parts), alpha)
