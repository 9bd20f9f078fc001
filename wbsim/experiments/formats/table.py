"""Tables and numbers as text; `WIDTH` is 100 characters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import floor, isfinite, isnan, log10
from textwrap import fill, wrap
from typing import Final

from wbsim.sim.units import MS, US, S


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left_columns: int = 1) -> str:
    """Return a table of *header*, a rule and *rows*, whose columns have two spaces between them.

    The first *left_columns* columns are aligned to the left, the others to the right.  Each row has a cell
    for each column.
    """
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


WIDTH: Final = 100
"""A terminal of this many columns shows a line of `fitted_table` without a break."""
_MOST_DECIMALS: Final = 4
"""A column has so many decimals at most, or so many that its largest value has three digits."""
_NARROWEST: Final = 20
UNKNOWN: Final = "-"
"""The text of an unknown number."""


def fitted_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], left_columns: int = 1, title: str = ""
) -> str:
    """Return a table as `table` does, of lines of at most `WIDTH` characters.

    A column in which all rows agree is left out, and a line below the table names its value.  Of a single
    row, the unknown values are left out.  A table that is still too wide continues below itself, as in
    `split_table`.  There must be at least one row.

    *title*: a heading that names the table, and not a column; its column is never named below.
    """
    cells = list(zip(*rows, strict=True))
    shared = [len(set(column)) == 1 and (len(rows) > 1 or column[0] == UNKNOWN) for column in cells]
    labels = [number for number in range(left_columns) if not shared[number]] or [0]
    others = [number for number in range(left_columns, len(header)) if not shared[number]]
    text = _in_parts(labels, others, header, rows)
    common = [
        f"{header[number]} {cells[number][0]}"
        for number, alike in enumerate(shared)
        if alike and number not in labels and cells[number][0] != UNKNOWN and header[number] != title
    ]
    return "\n".join([text, wrapped(f"in every row: {', '.join(common)}")]) if common else text


def wrapped_table(header: Sequence[str], rows: Sequence[Sequence[str]], left_columns: int = 1) -> str:
    """Return a table as `table` does; texts are broken into lines, so that it is at most `WIDTH` wide.

    The widest of the left columns becomes narrower first, and none becomes narrower than `_NARROWEST` (20).
    """
    lines = [header, *rows]
    widths = [max(len(line[number]) for line in lines) for number in range(len(header))]
    while (excess := sum(widths) + 2 * (len(widths) - 1) - WIDTH) > 0:
        widest = max(range(left_columns), key=lambda number: widths[number])
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] = max(_NARROWEST, widths[widest] - excess)
    broken: list[list[str]] = []
    for row in rows:
        cells = zip(row, widths, strict=True)
        parts = [
            # A parenthesis stays with its word: a space that does not break keeps them in one line.
            [
                part.replace("\u00a0", " ")
                for part in wrap(
                    cell.replace(" (", "\u00a0("), width, break_on_hyphens=False, break_long_words=False
                )
            ]
            or [""]
            for cell, width in cells
        ]
        for number in range(max(map(len, parts))):
            broken.append([part[number] if number < len(part) else "" for part in parts])
    return table(header, broken, left_columns)


def wrapped(note: str) -> str:
    """Return the *note* below a table in lines of at most `WIDTH` characters; further lines are indented."""
    return fill(note, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def split_table(header: Sequence[str], rows: Sequence[Sequence[str]], left_columns: int = 1) -> str:
    """Return a table as `table` does; one of more than `WIDTH` characters continues below itself.

    Each part repeats the left columns, and leaves out rows in which all of its other cells are `UNKNOWN`.
    """
    return _in_parts(range(left_columns), range(left_columns, len(header)), header, rows)


def _in_parts(
    labels: Sequence[int], others: Sequence[int], header: Sequence[str], rows: Sequence[Sequence[str]]
) -> str:
    """Return tables of at most `WIDTH` characters: each has the columns *labels*, and some of *others*.

    If there are several, a table leaves out rows in which all of its other columns are unknown.
    """
    parts: list[list[int]] = [[]]
    for number in others:
        if parts[-1] and _width([*labels, *parts[-1], number], header, rows) > WIDTH:
            parts.append([])
        parts[-1].append(number)
    return "\n\n".join(
        table(
            [header[number] for number in (*labels, *part)],
            [
                [row[number] for number in (*labels, *part)]
                for row in rows
                if len(parts) == 1 or any(row[number] != UNKNOWN for number in part)
            ],
            left_columns=len(labels),
        )
        for part in parts
    )


def _width(columns: Sequence[int], header: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Return the width of a table of these *columns*, which have two spaces between them."""
    widths = (max(len(line[number]) for line in (header, *rows)) for number in columns)
    return sum(widths) + 2 * (len(columns) - 1)


def figure_text(value: float, digits: int | None = None) -> str:
    """Return *value* with *digits* decimals and spaces between thousands, or "-" if it is unknown (nan).

    Without *digits* the text has four significant digits, and from 1000 on all digits before the point.

    >>> figure_text(1_234_567.8), figure_text(0.12345), figure_text(12_345.678, 1), figure_text(float("nan"))
    ('1 234 568', '0.1235', '12 345.7', '-')
    """
    if isnan(value):
        return UNKNOWN
    if digits is not None:
        return f"{value:,.{digits}f}".replace(",", " ")
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


def column_texts(values: Sequence[float], halves: Sequence[float] = ()) -> list[str]:
    """Return the texts of a column of numbers, which have equal numbers of decimals.

    The largest value has four significant digits, or so many that its interval has two.  A smaller value may
    add one decimal, so that it has two digits.  A value that would round to 0 has four significant digits.
    Zeros at the end of all values are left out, and nan is "-".

    *halves*: half of the width of each value's interval, or nan; a text ends with it, after ±.

    >>> column_texts([20_163, 917.2, 3.4]), column_texts([8.593, 0.1376]), column_texts([30.21], [1.4])
    (['20 163.0', '917.2', '3.4'], ['8.593', '0.138'], ['30.2 ±1.4'])
    """
    places = _decimals(values, halves)
    texts = []
    for value, half in zip(values, halves or [float("nan")] * len(values), strict=True):
        text = figure_text(value, places)
        if value and text.strip("-0.") == "":
            text = figure_text(value)
        texts.append(text if isnan(half) else f"{text} ±{figure_text(half, places)}")
    return texts


def _decimals(values: Sequence[float], halves: Sequence[float]) -> int:
    """Return the number of decimals of a column; see `column_texts`."""
    sizes = [abs(value) for value in values if value and isfinite(value)]
    widths = [half for half in halves if half and isfinite(half)]
    if not sizes or (not widths and all(size == int(size) for size in sizes)):
        return 0
    places = max(0, 3 - floor(log10(max(sizes))))
    if widths:
        places = min(places, 1 - floor(log10(max(widths))))
    else:
        places = max(places, min(places + 1, 1 - floor(log10(min(sizes)))))
    places = max(0, min(places, max(_MOST_DECIMALS, 2 - floor(log10(max(sizes))))))
    while not widths and places and all(f"{size:.{places}f}".endswith("0") for size in sizes):
        places -= 1
    return places
