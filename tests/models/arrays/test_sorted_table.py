"""A sorted table in arrays against a sorted list: every place, every neighbour, through splits and joins."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from models.arrays.sorted_table import (
    WIDTH,
    Table,
    after,
    before,
    entries,
    find,
    insert,
    is_in,
    key_at,
    new_table,
    remove_at,
    replace_key,
    value_at,
    with_room,
)


def filled(keys: Any, valued: bool = True) -> Table:
    """A table of *keys*, each with itself times ten as its value."""
    table = with_room(new_table(2, valued), len(keys))
    for key in keys:
        insert(table, key, 10 * key)
    return table


def walked(table: Table) -> list[int]:
    """All keys, by going from place to place."""
    found, place = [], (0, 0)
    while is_in(table, *place):
        found.append(key_at(table, *place))
        place = after(table, *place)
    return found


class Tables(RuleBasedStateMachine):
    """Hundreds of keys, so that rows are split and emptied."""

    @initialize(valued=st.booleans(), first=st.integers(0, 400))
    def begin(self, valued: bool, first: int) -> None:
        self.valued = valued
        self.table = filled(range(0, 7 * first, 7), valued)
        self.keys = list(range(0, 7 * first, 7))

    @rule(keys=st.lists(st.integers(-50, 3_000), min_size=1, max_size=200, unique=True))
    def add(self, keys: list[int]) -> None:
        """With room for them all."""
        self.table = with_room(self.table, len(keys))
        for key in keys:
            at = bisect_left(self.keys, key)
            if at == len(self.keys) or self.keys[at] != key:
                insert(self.table, key, 10 * key)
                insort(self.keys, key)

    @precondition(lambda self: getattr(self, "keys", None))
    @rule(data=st.data(), count=st.integers(1, 150))
    def remove(self, data: st.DataObject, count: int) -> None:
        """So many in a row."""
        first = data.draw(st.integers(0, len(self.keys) - 1))
        for key in self.keys[first : first + count]:
            place = find(self.table, key)
            assert key_at(self.table, *place) == key
            remove_at(self.table, *place)
        del self.keys[first : first + count]

    @precondition(lambda self: getattr(self, "keys", None))
    @rule(data=st.data())
    def change(self, data: st.DataObject) -> None:
        """To any key between its neighbours."""
        at = data.draw(st.integers(0, len(self.keys) - 1))
        low = self.keys[at - 1] + 1 if at else -100
        high = self.keys[at + 1] - 1 if at + 1 < len(self.keys) else 4_000
        key = data.draw(st.integers(low, high))
        place = find(self.table, self.keys[at])
        replace_key(self.table, *place, key)
        if self.valued:
            self.table.values[self.table.order[place[0]], place[1]] = 10 * key
        self.keys[at] = key

    @rule(key=st.integers(-60, 3_100))
    def look(self, key: int) -> None:
        """The first that is not below, and those around it."""
        at = bisect_left(self.keys, key)
        place = find(self.table, key)
        assert is_in(self.table, *place) == (at < len(self.keys))
        if at < len(self.keys):
            assert key_at(self.table, *place) == self.keys[at]
            if self.valued:
                assert value_at(self.table, *place) == 10 * self.keys[at]
        if self.keys:
            left = before(self.table, *place)
            assert is_in(self.table, *left) == (at > 0)
            assert not at or key_at(self.table, *left) == self.keys[at - 1]

    @invariant()
    def it_is_the_list(self) -> None:
        if hasattr(self, "table"):
            values = [10 * key if self.valued else 0 for key in self.keys]
            assert entries(self.table) == list(zip(self.keys, values, strict=True))
            assert walked(self.table) == self.keys
            table = self.table
            used = table.order[: table.sizes[0]].tolist()
            assert len(set(used)) == len(used)
            assert [int(table.keys[row, 0]) for row in used] == table.lowest[: len(used)].tolist()
            assert all(0 < table.counts[row] <= WIDTH for row in used)
            assert len(used) + table.sizes[2] == table.sizes[1], "a row is in use, or to be used again"


Tables.TestCase.settings = settings(max_examples=40, stateful_step_count=15)
TestTables: Any = Tables.TestCase


def test_an_empty_table() -> None:
    """Nothing is found, and there is nothing beside it."""
    table = new_table(2, valued=True)
    assert find(table, 5) == (0, 0)
    assert not is_in(table, 0, 0)
    assert not is_in(table, -1, 0)
    assert entries(table) == []
    assert (table.keys.shape, table.values.shape) == ((2, WIDTH), (2, WIDTH))
    assert new_table(2, valued=False).values.shape == (0, WIDTH)


def test_a_full_row_is_split_in_the_middle() -> None:
    """128 keys fill one; the 129th makes two, of 64 and 65, whichever half it goes to."""
    for new, counts in ((5, [65, 64]), (1_005, [64, 65]), (635, [65, 64]), (645, [64, 65])):
        table = filled(range(0, 10 * WIDTH, 10))
        assert table.sizes.tolist() == [1, 1, 0]
        insert(table, new, 7)
        assert table.sizes.tolist() == [2, 2, 0]
        assert table.counts[table.order[:2]].tolist() == counts
        assert value_at(table, *find(table, new)) == 7
        assert table.lowest[:2].tolist() == [0, 640]
        assert walked(table) == sorted([*range(0, 10 * WIDTH, 10), new])


def test_a_key_behind_a_row_s_last_goes_there() -> None:
    """Not in front of the next one's first."""
    table = filled(range(0, 10 * (WIDTH + 1), 10))
    counts = table.counts[table.order[:2]].tolist()
    insert(table, 635, 1)
    assert table.counts[table.order[:2]].tolist() == [counts[0] + 1, counts[1]]
    assert table.lowest[:2].tolist() == [0, 640]


def test_an_empty_row_is_used_again() -> None:
    """The first row empties; the next that opens is that one."""
    table = filled(range(0, 10 * (WIDTH + 1), 10))
    first = int(table.order[0])
    for _ in range(int(table.counts[first])):
        remove_at(table, 0, 0)
    assert (table.sizes.tolist(), int(table.again[0])) == ([1, 2, 1], first)
    assert table.lowest[0] == 640
    for key in range(2_000, 2_100):
        insert(table, key, 0)
    assert table.sizes.tolist() == [2, 2, 0]
    assert int(table.order[1]) == first


@pytest.mark.parametrize(("rows", "additions", "larger"), [(4, 2, 0), (4, 3, 12), (4, 10, 19)])
def test_room_is_made_for_as_many_rows_as_may_open(rows: int, additions: int, larger: int) -> None:
    """Each addition may open one, and one is there anyhow; else a copy, twice as large and that."""
    table = new_table(rows, valued=True)
    insert(table, 5, 50)
    found = with_room(table, additions)
    assert (found is table) == (not larger)
    if larger:
        assert len(found.counts) == larger == len(found.keys) == len(found.values)
        assert entries(found) == [(5, 50)]
        assert found.sizes.tolist() == table.sizes.tolist()
        assert found.sizes is not table.sizes
        insert(found, 6, 60)
        assert entries(table) == [(5, 50)]
        assert with_room(new_table(1, valued=False), 3).values.shape == (0, WIDTH)
        assert found.values.dtype == np.int32
