"""The common look of all pictures: panels, colours, scales and ticks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from wbsim.experiments.config.values import amount
from wbsim.experiments.results.dataset import FACTOR
from wbsim.experiments.results.figures import FIGURES

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS: Final = (
    "#b2432f", "#27647b", "#c9a227", "#5b8c5a", "#6b4e71",
    "#d98c5f", "#7fa8b8", "#8a8a3c", "#a06a8c", "#4a4a4a",
)  # fmt: skip
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
LINES: Final = ("-", "--", ":", "-.")
TITLE_WIDTH: Final = 40
"""The largest number of characters in a line of a panel's title."""
PICTURE_WIDTH: Final = 4.8
"""The width of a picture with one panel in a row (inches).

Printed in a column of 8 cm, texts of 9 points then have 6 points, which are readable.
"""
DOTS: Final = 216
"""The dots an inch of a PNG."""
_TITLE_LETTERS: Final = 58
"""The letters in a line of a title over `PICTURE_WIDTH`."""
_LEGEND_LETTERS: Final = 62
"""The letters in a line of a legend, with those that a sample of each line takes."""
_SAMPLE_LETTERS: Final = 6
_LEGIBLE_TICKS: Final = 9
_WIDE: Final = 20
"""A scale is logarithmic if its largest value is more than this many times its smallest."""


def panels(count: int, title: str, height: float = 1.7) -> tuple[Figure, list[Axes]]:
    """Return a figure of *count* panels, one below the other, with a common horizontal axis.

    *title* is above all panels, and *height* (inches) is that of each.
    """
    figure, rows = grid_of(count, 1, title, height)
    return figure, [panel for (panel,) in rows]


def grid_of(rows: int, columns: int, title: str, height: float = 1.7) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure and its panels, as a list for each row; *height*: of a row (inches).

    *title* is above all panels.  All panels share the horizontal axis, and the panels of a row share the
    vertical axis.
    """
    from matplotlib.figure import Figure

    width = max(PICTURE_WIDTH, 2.6 * columns)
    figure = Figure(figsize=(width, height * rows + 0.8), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, sharey="row", squeeze=False)
    head(figure, title)
    for panel in grid.flat:
        panel.tick_params(labelsize=8)
        panel.grid(True, which="major", color="0.9", linewidth=0.8)
        panel.spines[["top", "right"]].set_visible(False)
    return figure, [list(row) for row in grid]


def head(figure: Figure, title: str) -> None:
    """Write *title* above all panels, in lines that fit the width of *figure*."""
    letters = round(_TITLE_LETTERS * figure.get_figwidth() / PICTURE_WIDTH)
    figure.suptitle(fill(title, letters), fontsize=9.5, x=0.02, ha="left")


def legend_below(figure: Figure, *axes: Axes, keys: Sequence[str] = ()) -> None:
    """Add a legend below all panels, where it covers nothing, with each label of a line in *axes* once.

    *axes* are panels of *figure*.  Lines without a label are left out.  A single line called "base" needs no
    legend.  *keys*: the settings whose values the legend has; they are its title.
    """
    handles: dict[str, Any] = {}
    for panel in axes:
        handles = {**dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True)), **handles}
    if len(handles) > 1 or (handles and "base" not in handles):
        figure.legend(
            [*handles.values()],
            [*handles],
            title=", ".join(keys),
            title_fontsize=8.5,
            loc="outside lower center",
            ncols=legend_columns(figure, [*handles]),
            frameon=False,
            fontsize=8.5,
        )


def legend_columns(figure: Figure, labels: Sequence[str]) -> int:
    """Return the number of columns of a legend with *labels* that fits the width of *figure*, from 1 to 4."""
    letters = _LEGEND_LETTERS * figure.get_figwidth() / PICTURE_WIDTH
    return max(1, min(4, len(labels), int(letters / (_SAMPLE_LETTERS + max(map(len, labels), default=0)))))


def ticks_at(panel: Axes, values: Sequence[Any], unit: str = "") -> None:
    """Put ticks on the horizontal axis of *panel* at *values*: at all of them, or at as many as are legible.

    *unit*: the unit of the values, "ns", "B", "B/s" or `FACTOR`; "": none.  Positive values that span more
    than a factor of 8 get a logarithmic scale.  An unknown value (nan) has no tick.  With a text among
    *values*, the ticks of *panel* stay, and only its margins change.
    """
    from matplotlib.ticker import NullLocator

    ticks = sorted({value for value in values if value == value}) if are_numbers(values) else []
    if not ticks:
        panel.margins(x=0.5 / max(1, len(set(values))))
        return
    if ticks[0] > 0 and ticks[-1] > 8 * ticks[0]:
        panel.set_xscale("log", base=2)
    panel.set_xticks(_legible(ticks))
    panel.xaxis.set_major_formatter(lambda value, _: short(value, unit))
    panel.xaxis.set_minor_locator(NullLocator())


def _legible(ticks: Sequence[float]) -> list[float]:
    """Return the ticks to show: of too many, the powers of two, or else every n-th tick."""
    if len(ticks) <= _LEGIBLE_TICKS:
        return list(ticks)
    powers = [tick for tick in ticks if float(tick).is_integer() and int(tick) & (int(tick) - 1) == 0]
    return powers if len(powers) > 3 else list(ticks[:: -(-len(ticks) // _LEGIBLE_TICKS)])


def short(value: float, unit: str = "") -> str:
    """Return *value* as a short text, for ticks and labels.

    *unit*: the unit of *value*: "ns", "B", "B/s", `FACTOR`, or "" for none.  A value in ns, B or B/s is cut
    to a whole number.  A multiple of 1024 without a unit has the prefix Ki, Mi or Gi.  Other numbers without
    a unit have at most six digits, or from 100 000 on no decimals.  A factor has at most six digits.

    >>> short(4294967296), short(4294967296, "B"), short(0.25), short(0.25, "x")
    ('4 Gi', '4 GiB', '0.25', 'x0.25')
    """
    if unit == FACTOR:
        return f"{FACTOR}{value:g}"
    if unit:
        return amount(int(value), unit)
    for power, prefix in ((30, "Gi"), (20, "Mi"), (10, "Ki")):
        if value >= 2**power and value % 2**power == 0:
            return f"{int(value) >> power} {prefix}"
    if abs(value) >= 100_000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:g}"


def figure_label(name: str) -> str:
    """Return the *name* of a figure of `FIGURES` with its unit, as the label of an axis; "1" is left out.

    >>> figure_label("write_iops")
    'write IOPS, 1/s'
    """
    unit = FIGURES[name].unit
    return name.replace("_", " ").replace("iops", "IOPS") + ("" if unit == "1" else f", {unit}")


def scale_to(panel: Axes, values: Iterable[float]) -> None:
    """Scale the vertical axis of *panel* for *values*: from zero, or by the logarithm if they differ much.

    The logarithm needs positive values, and a largest value of more than 20 times the smallest.  Unknown
    values (nan) do not count.
    """
    numbers = [value for value in values if value == value]
    if numbers and max(numbers) > _WIDE * min(numbers) > 0:
        panel.set_yscale("log")
    else:
        panel.set_ylim(0, 1.08 * max(numbers, default=1) or 1)
        panel.yaxis.set_major_formatter(lambda value, _: f"{value:,g}".replace(",", " "))


def are_numbers(values: Iterable[object]) -> bool:
    """Return whether all *values* are numbers; True and False are not.  True without values."""
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def save_png(figure: Figure, path: Path) -> None:
    """Write *figure* as PNG to *path*, also if the name has another suffix; see `save_as`."""
    save_as("png", figure, path)


FORMATS: Final = ("png", "svg", "pdf")
_UNDATED: Final[dict[str, dict[str, None]]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}


def save_as(kind: str, figure: Figure, path: Path | BinaryIO) -> None:
    """Write *figure* in the format *kind* of `FORMATS` to *path*; equal figures give equal bytes.

    *path* may be a file that is open for bytes.  An existing file is overwritten.

    Raises:
        OSError: *path* cannot be written.
    """
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "wbsim"}):
        figure.savefig(path, format=kind, dpi=DOTS, metadata=_UNDATED[kind])
