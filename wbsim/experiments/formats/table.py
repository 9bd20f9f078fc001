"""Tables and numbers as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isnan


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Return a table: the first *left* columns are aligned to the left, the others to the right."""
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]

    def format_line(cells: Sequence[str]) -> str:
        padded = (
            cell.ljust(width) if i < left else cell.rjust(width)
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
