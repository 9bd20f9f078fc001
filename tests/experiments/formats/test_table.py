"""Tables of numbers: one number of decimals in a column, and lines of at most 100 characters."""

from __future__ import annotations

from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wbsim.experiments.formats.table import (
    WIDTH,
    column_texts,
    figure_text,
    fitted_table,
    wrapped,
    wrapped_table,
)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([20_163.4, 917.21, 3.44], ["20 163.4", "917.2", "3.4"]),
        ([8.593, 0.13764], ["8.593", "0.138"]),
        ([57.318, nan, 57.3], ["57.32", "-", "57.30"]),
        ([4.0, 12.0], ["4", "12"]),
        ([2.5, 0.25], ["2.50", "0.25"]),
        ([0.0, 0.00012, 15.25], ["0.00", "0.00012", "15.25"]),
        ([1_234_567.0], ["1 234 567"]),
        ([0.0032123], ["0.00321"]),
        ([], []),
    ],
)
def test_column_has_equal_decimals(values: list[float], texts: list[str]) -> None:
    """The largest value has four digits; a value that would round to 0 has four digits of itself."""
    assert column_texts(values) == texts


def test_digits_follow_the_interval() -> None:
    assert column_texts([1_087.3, 20.0], [121.4, nan]) == ["1 087 ±121", "20"]
    assert column_texts([0.32981], [0.00264]) == ["0.3298 ±0.0026"]
    assert column_texts([30.21], [1.4]) == ["30.2 ±1.4"], "two digits of the interval are enough"


def test_unknown_number_is_a_dash() -> None:
    assert figure_text(nan) == "-"


HEADER = ("variant", "x", "wall s", "merges")


def test_shared_columns_stand_below() -> None:
    rows = [("base", "1", "2", "7"), ("base", "2", "3", "7")]
    assert fitted_table(HEADER, rows, 2).splitlines() == [
        "x  wall s", "-  ------", "1       2", "2       3", "in every row: variant base, merges 7",
    ]  # fmt: skip


def test_unknown_columns_are_left_out() -> None:
    rows = [("base", "1", "-", "7")]
    assert fitted_table(HEADER, rows, 2).splitlines()[0] == "variant  x  merges"
    lines = fitted_table(HEADER, [*rows, ("new", "1", "-", "8")], 2).splitlines()
    assert (lines[0], lines[-1]) == ("variant  merges", "in every row: x 1")


@given(
    st.lists(
        st.tuples(st.text("ab", min_size=1, max_size=30), st.integers(0, 10**9)), min_size=1, max_size=14
    )
)
def test_no_line_is_wider_than_a_terminal(columns: list[tuple[str, int]]) -> None:
    """Every column stays, in order, and each part has the labels of its rows."""
    header = ("case", *(f"{name}{number}" for number, (name, _) in enumerate(columns)))
    rows = [("p", *(str(value) for _, value in columns)), ("q", *(str(value + 1) for _, value in columns))]
    text = fitted_table(header, rows)
    assert max(map(len, text.splitlines())) <= WIDTH
    parts = [part.splitlines()[0].split() for part in text.split("\n\n")]
    assert [word for part in parts for word in part[1:]] == list(header[1:])
    assert {part[0] for part in parts} == {"case"}


def test_long_note_continues_with_an_indent() -> None:
    first, second = wrapped("word " * 24).splitlines()
    assert len(first) <= WIDTH
    assert second.startswith("  word")


def test_wrapped_table_keeps_a_parenthesis_with_its_word() -> None:
    """A line is broken in front of the word, although the word alone would fit."""
    values = ", ".join(f"value{number} (6.{number})" for number in range(10, 20))
    lines = wrapped_table(("rule", "values"), [("a", values)], left_columns=2).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert all(line.count("value") == line.count("(6.") for line in lines[2:])
