"""Sorted tables in arrays against sorted lists: every place and neighbour, with split and emptied rows."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from wbsim.models.arrays.sorted_table import (
    WIDTH,
    Table,
    entries,
    find,
    insert,
    is_in,
    key_at,
    new_tables,
    place_after,
    place_before,
    remove_at,
    replace_key,
    value_at,
    with_room,
)
from wbsim.models.arrays.sorted_table import table_of as compiled_table_of

table_of = getattr(compiled_table_of, "py_func", compiled_table_of)
"""The Python function, because compiled code cannot return arrays to this interpreted test."""


def filled(keys: Any, valued: bool = True) -> Table:
    """Return a table of *keys*; the value of a key is ten times the key."""
    table = table_of(with_room(new_tables(1, valued), len(keys)), 0)
    for key in keys:
        insert(table, key, 10 * key)
    return table


def walked(table: Table) -> list[int]:
    """Return all keys, found by going from place to place."""
    found, place = [], (0, 0)
    while is_in(table, *place):
        found.append(key_at(table, *place))
        place = place_after(table, *place)
    return found


class ThreeTables(RuleBasedStateMachine):
    """Three tables of hundreds of keys, so that rows are split, emptied, and used again by another table."""

    @initialize(valued=st.booleans(), first=st.integers(0, 400))
    def begin(self, valued: bool, first: int) -> None:
        self.valued = valued
        self.tables = new_tables(3, valued)
        self.all_keys: list[list[int]] = [[], [], []]
        self.which(0)
        self.add(list(range(0, 7 * first, 7)))

    @rule(number=st.integers(0, 2))
    def which(self, number: int) -> None:
        """Use table *number* in the next steps."""
        self.number, self.keys, self.table = number, self.all_keys[number], table_of(self.tables, number)

    @rule(keys=st.lists(st.integers(-50, 3_000), min_size=1, max_size=200, unique=True))
    def add(self, keys: list[int]) -> None:
        """Insert *keys*, after `with_room` has made room for all of them."""
        self.tables = with_room(self.tables, len(keys))
        self.table = table_of(self.tables, self.number)
        for key in keys:
            at = bisect_left(self.keys, key)
            if at == len(self.keys) or self.keys[at] != key:
                insert(self.table, key, 10 * key)
                insort(self.keys, key)

    @precondition(lambda self: getattr(self, "keys", None))
    @rule(data=st.data(), count=st.integers(1, 150))
    def remove(self, data: st.DataObject, count: int) -> None:
        """Remove *count* keys in a row."""
        first = data.draw(st.integers(0, len(self.keys) - 1))
        for key in self.keys[first : first + count]:
            place = find(self.table, key)
            assert key_at(self.table, *place) == key
            remove_at(self.table, *place)
        del self.keys[first : first + count]

    @precondition(lambda self: getattr(self, "keys", None))
    @rule(data=st.data())
    def change(self, data: st.DataObject) -> None:
        """Replace a key by any key between its neighbours."""
        at = data.draw(st.integers(0, len(self.keys) - 1))
        low = self.keys[at - 1] + 1 if at else -100
        high = self.keys[at + 1] - 1 if at + 1 < len(self.keys) else 4_000
        key = data.draw(st.integers(low, high))
        place = find(self.table, self.keys[at])
        replace_key(self.table, *place, key)
        if self.valued:
            self.table.rows.values[self.table.order[place[0]], place[1]] = 10 * key
        self.keys[at] = key

    @rule(key=st.integers(-60, 3_100))
    def look(self, key: int) -> None:
        """Compare the place of the first key that is not below *key*, and the key in front of that place."""
        at = bisect_left(self.keys, key)
        place = find(self.table, key)
        assert is_in(self.table, *place) == (at < len(self.keys))
        if at < len(self.keys):
            assert key_at(self.table, *place) == self.keys[at]
            if self.valued:
                assert value_at(self.table, *place) == 10 * self.keys[at]
        if self.keys:
            left = place_before(self.table, *place)
            assert is_in(self.table, *left) == (at > 0)
            assert not at or key_at(self.table, *left) == self.keys[at - 1]

    @invariant()
    def it_is_the_list(self) -> None:
        if hasattr(self, "tables"):
            tables, all_used = self.tables, []
            for number, expected in enumerate(self.all_keys):
                values = [10 * key if self.valued else 0 for key in expected]
                assert entries(tables, number).T.tolist() == [expected, values]
                table = table_of(tables, number)
                assert walked(table) == expected
                used = table.order[: table.lengths[0]].tolist()
                assert [int(table.rows.keys[row, 0]) for row in used] == table.lowest[: len(used)].tolist()
                assert all(0 < table.rows.counts[row] <= WIDTH for row in used)
                all_used += used
            assert len(set(all_used)) == len(all_used), "a row belongs to two tables"
            ever, again = tables.rows.sizes.tolist()
            assert len(all_used) + again == ever, "a row is neither in use nor free for reuse"


ThreeTables.TestCase.settings = settings(max_examples=40, stateful_step_count=15)
TestTables: Any = ThreeTables.TestCase


def test_empty_table_has_no_key_and_no_place() -> None:
    """The place that a search returns is outside of the table, and so is its neighbour."""
    table = filled([])
    assert find(table, 5) == (0, 0)
    assert not is_in(table, 0, 0)
    assert not is_in(table, -1, 0)
    assert walked(table) == []
    assert (table.rows.keys.shape, table.rows.values.shape) == ((1, WIDTH), (1, WIDTH))
    assert filled([], valued=False).rows.values.shape == (1, 0)


def test_a_full_row_is_split_in_the_middle() -> None:
    """A row has room for 128 keys.  Key 129 splits the row into halves of 64, and belongs to either half."""
    for new, counts in ((5, [65, 64]), (1_005, [64, 65]), (635, [65, 64]), (645, [64, 65])):
        table = filled(range(0, 10 * WIDTH, 10))
        assert (*table.lengths, *table.rows.sizes) == (1, 1, 0)
        insert(table, new, 7)
        assert (*table.lengths, *table.rows.sizes) == (2, 2, 0)
        assert table.rows.counts[table.order[:2]].tolist() == counts
        assert value_at(table, *find(table, new)) == 7
        assert table.lowest[:2].tolist() == [0, 640]
        assert walked(table) == sorted([*range(0, 10 * WIDTH, 10), new])


def test_key_between_two_rows_is_added_to_the_first() -> None:
    """The key becomes the last key of the first row, not the first key of the second row."""
    table = filled(range(0, 10 * (WIDTH + 1), 10))
    counts = table.rows.counts[table.order[:2]].tolist()
    insert(table, 635, 1)
    assert table.rows.counts[table.order[:2]].tolist() == [counts[0] + 1, counts[1]]
    assert table.lowest[:2].tolist() == [0, 640]


def test_an_empty_row_is_used_again() -> None:
    """The first row becomes empty, and the next row that opens uses its memory."""
    table = filled(range(0, 10 * (WIDTH + 1), 10))
    first = int(table.order[0])
    for _ in range(int(table.rows.counts[first])):
        remove_at(table, 0, 0)
    assert (*table.lengths, *table.rows.sizes, table.rows.again[0]) == (1, 2, 1, first)
    assert table.lowest[0] == 640
    for key in range(2_000, 2_100):
        insert(table, key, 0)
    assert (*table.lengths, *table.rows.sizes) == (2, 2, 0)
    assert int(table.order[1]) == first


@pytest.mark.parametrize(("additions", "larger"), [(2, 0), (3, 12), (10, 19)])
def test_arrays_grow_if_the_additions_might_open_too_many_rows(additions: int, larger: int) -> None:
    """The tables use two of four rows, and each addition may open a row.

    One more row must stay free.  Larger arrays have twice the rows, plus one for each addition, plus one.
    """
    tables = with_room(new_tables(2, valued=True), 3)
    for number in range(2):
        insert(table_of(tables, number), 5 + number, 50)
    found = with_room(tables, additions - 1)
    assert (found is tables) == (not larger)
    assert [entries(found, number).tolist() for number in range(2)] == [[[5, 50]], [[6, 50]]]
    if larger:
        assert (
            len(found.rows.counts)
            == larger - 1
            == len(found.rows.keys)
            == len(found.rows.values)
            == len(found.rows.again)
        )
        assert found.rows.values.dtype == np.int32


def test_order_grows_if_a_table_might_open_too_many_rows() -> None:
    """One table uses two of four rows.  Two additions may open two rows, and one more row must stay free."""
    tables = with_room(new_tables(2, valued=False), 3)
    for key in range(WIDTH + 1):
        insert(table_of(tables, 1), key, 0)
    assert with_room(tables, 1).order.shape == tables.order.shape == (2, 4)
    wider = with_room(tables, 2)
    assert wider.order.shape == wider.lowest.shape == (2, 11)
    assert entries(wider, 1)[:, 0].tolist() == list(range(WIDTH + 1))
