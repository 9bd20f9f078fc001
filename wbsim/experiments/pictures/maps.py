"""Heat maps: one figure over two settings, with its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Final

import numpy as np

from wbsim.experiments.formats.table import figure_text
from wbsim.experiments.pictures.axes import TITLE_WIDTH, figure_label
from wbsim.experiments.pictures.facets import differing, names_of, ordered, panels_of, settings_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

_MAPS_IN_A_ROW: Final = 3
Cell = tuple[object, object]
"""A value of the vertical setting, and a value of the horizontal setting."""


def heat_map(frame: pd.DataFrame, x: str, y: str, name: str, title: str) -> Figure:
    """Return a map with numbers: the mean of the figure *name* over the settings *x* and *y*.

    Each variant has a map, and so has each value of another setting that differs between runs of one cell.
    A cell without a run is blank.  A cell has "-" if none of its runs has the figure.

    Raises:
        BadInput: there would be too many maps.
    """
    from matplotlib.figure import Figure

    apart = ["variant"] if "variant" not in (x, y) and frame["variant"].nunique() > 1 else []
    parts = panels_of(frame, [*apart, *differing(frame, settings_of(frame), [x, y, *apart])])
    across, up = ordered(frame[x]), ordered(frame[y])
    cells = [_cells(part, x, y, name) for _, part in parts]
    known = [value for of in cells for value in of.values() if value == value]
    low, high = min(known, default=0.0), max(known, default=1.0)
    columns = min(len(parts), _MAPS_IN_A_ROW)
    rows = -(-len(parts) // columns)
    size = (max(5.2, 3.6 * columns, 0.55 * len(across) * columns), rows * (1.6 + 0.42 * len(up)))
    figure = Figure(figsize=size, layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for on in panels[len(parts) :]:
        on.remove()
    for on, (part_title, _), of in zip(panels, parts, cells, strict=False):
        image = _draw(on, of, across, up, (low, high))
        on.set_xticks(range(len(across)), names_of(frame, x, across))
        on.set_yticks(range(len(up)), names_of(frame, y, up))
        on.set(xlabel=x, ylabel=y)
        on.set_title(fill(part_title, TITLE_WIDTH), fontsize=9)
    figure.colorbar(image, ax=panels[: len(parts)], label=figure_label(name))
    figure.suptitle(title, fontsize=10, x=0.02, ha="left", wrap=True)
    return figure


def _draw(
    on: Axes,
    of: Mapping[Cell, float],
    across: Sequence[object],
    up: Sequence[object],
    ends: tuple[float, float],
) -> AxesImage:
    """Draw the cells *of* one map with their numbers; the colours range from ``ends[0]`` to ``ends[1]``."""
    low, high = ends
    values = np.array([[of.get((row, column), np.nan) for column in across] for row in up])
    image = on.imshow(values, aspect="auto", origin="lower", cmap="YlGnBu", vmin=low, vmax=high)
    on.spines[:].set_visible(False)
    for (row, column), value in of.items():
        dark = value - low > 0.6 * (high - low)
        on.text(
            across.index(column), up.index(row), figure_text(value) if value == value else "-",
            ha="center", va="center", fontsize=8, color="w" if dark else "0.2",
        )  # fmt: skip
    return image


def _cells(frame: pd.DataFrame, x: str, y: str, name: str) -> dict[Cell, float]:
    """Return the mean of the figure *name* at each pair of a *y* and an *x*; nan if no run has the figure."""
    return {(up, across): float(runs[name].mean()) for (up, across), runs in frame.groupby([y, x])}
