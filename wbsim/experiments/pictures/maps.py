"""Heat maps: one figure over two settings, with its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Final

import numpy as np

from wbsim.experiments.formats.table import figure_text
from wbsim.experiments.pictures.axes import PICTURE_WIDTH, TITLE_WIDTH, figure_label, head
from wbsim.experiments.pictures.facets import differing, names_of, ordered, panels_of, settings_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

_MAPS_IN_A_ROW: Final = 2
Cell = tuple[object, object]
"""A value of the vertical setting, and a value of the horizontal setting."""


def heat_map(frame: pd.DataFrame, x: str, y: str, name: str, title: str) -> Figure:
    """Return a map with numbers: the mean of the figure *name* over the settings *x* and *y*.

    *frame* has a row for each run, and columns for *x*, *y* and *name* (without unit), as
    `pictures.plots.frame_of` returns it.  *x* is horizontal, *y* is vertical, and *title* heads the picture.

    Each variant has a map, and so has each value of another setting that differs between runs of one cell.
    A cell without a run is blank.  A cell has "-" if none of its runs has the figure.

    Raises:
        BadInput: there would be too many maps.
    """
    from matplotlib.figure import Figure

    variant = ["variant"] if "variant" not in (x, y) and frame["variant"].nunique() > 1 else []
    parts = panels_of(frame, [*variant, *differing(frame, settings_of(frame), [x, y, *variant])])
    x_values, y_values = ordered(frame[x]), ordered(frame[y])
    cells = [_cells(part, x, y, name) for _, part in parts]
    numbers = [value for cell_means in cells for value in cell_means.values() if value == value]
    low, high = min(numbers, default=0.0), max(numbers, default=1.0)
    columns = min(len(parts), _MAPS_IN_A_ROW)
    rows = -(-len(parts) // columns)
    size = (
        max(PICTURE_WIDTH, 3.0 * columns, 0.5 * len(x_values) * columns),
        rows * (1.6 + 0.42 * len(y_values)),
    )
    figure = Figure(figsize=size, layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for panel in panels[len(parts) :]:
        panel.remove()
    for panel, (part_title, _), means in zip(panels, parts, cells, strict=False):
        image = _draw(panel, means, x_values, y_values, (low, high))
        panel.set_xticks(range(len(x_values)), names_of(frame, x, x_values))
        panel.set_yticks(range(len(y_values)), names_of(frame, y, y_values))
        panel.set(xlabel=x, ylabel=y)
        panel.set_title(fill(part_title, TITLE_WIDTH), fontsize=9)
    figure.colorbar(image, ax=panels[: len(parts)], label=figure_label(name))
    head(figure, title)
    return figure


def _draw(
    panel: Axes,
    means: Mapping[Cell, float],
    x_values: Sequence[object],
    y_values: Sequence[object],
    ends: tuple[float, float],
) -> AxesImage:
    """Draw the cells of one map with their *means*; the colours range from ``ends[0]`` to ``ends[1]``."""
    low, high = ends
    values = np.array([[means.get((row, column), np.nan) for column in x_values] for row in y_values])
    image = panel.imshow(values, aspect="auto", origin="lower", cmap="YlGnBu", vmin=low, vmax=high)
    panel.spines[:].set_visible(False)
    for (row, column), value in means.items():
        dark = value - low > 0.6 * (high - low)
        panel.text(
            x_values.index(column), y_values.index(row), figure_text(value) if value == value else "-",
            ha="center", va="center", fontsize=8, color="w" if dark else "0.2",
        )  # fmt: skip
    return image


def _cells(frame: pd.DataFrame, x: str, y: str, name: str) -> dict[Cell, float]:
    """Return the mean of the figure *name* at each pair of a *y* and an *x*; nan if no run has the figure."""
    return {(row, column): float(runs[name].mean()) for (row, column), runs in frame.groupby([y, x])}
