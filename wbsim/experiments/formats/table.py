"""Tables and numbers as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isnan
from typing import Final

from wbsim.sim.units import MS, US, S


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left_columns: int = 1) -> str:
    """Return a table: the first *left_columns* columns are aligned to the left, the others to the right."""
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]

    def format_line(cells: Sequence[str]) -> str:
        padded = (
            cell.ljust(width) if i < left_columns else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join(padded).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([format_line(lines[0]), rule, *map(format_line, lines[1:])])


def figure_text(value: float, digits: int | None = None) -> str:
    """Return *value* with *digits* digits after the point, or "-" if *value* is unknown (nan).

    Without *digits* the text has four significant digits, and a space between groups of thousands.
    """
    if isnan(value):
        return "-"
    if digits is not None:
        return f"{value:.{digits}f}"
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.4g}"


_UNITS: Final = ((S, "s"), (MS, "ms"), (US, "us"), (1, "ns"))


def duration_text(ns: float) -> str:
    """Return a time with three significant digits, in the largest unit in which it is at least 1.

    >>> duration_text(2_412), duration_text(306_000_000), duration_text(999_960), duration_text(0)
    ('2.41 us', '306 ms', '1 ms', '0 ns')
    """
    rounded = float(f"{ns:.3g}")
    size, unit = next((entry for entry in _UNITS if rounded >= entry[0]), _UNITS[-1])
    value = rounded / size
    return f"{value:,.0f} {unit}".replace(",", " ") if value >= 1000 else f"{value:.3g} {unit}"


def interval_texts(
    intervals: Iterable[tuple[float, float, float]], digits: Iterable[int | None]
) -> list[str]:
    """Return a text for each interval (mean, low, high): its mean, and half of its width if that is known.

    A mean that would round to 0 with its *digits* has four significant digits.
    """
    texts = []
    for (mean, _, high), places in zip(intervals, digits, strict=True):
        text = figure_text(mean, places)
        if mean and text.strip("-0.") == "":
            text = figure_text(mean)
        texts.append(text if isnan(high) else f"{text} ±{figure_text(high - mean, places)}")
    return texts
