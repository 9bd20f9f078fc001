"""Sorted tables of int64 keys with values, in arrays, for compiled code.

A table is a list of short sorted rows, as in sortedcontainers.  A change moves half a row on average, and a
search bisects first the rows and then one row.  Several tables share a pool of rows, and each table takes as
many rows as it needs.  A place is a pair: the position of the row in the table, and the index in the row.
`insert` and `remove_at` move other keys, so a place that was found before must be found again.

Numba compiles the functions that search and change tables.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wbsim.models.arrays.compiled import compiled

WIDTH: Final = 128
_LOAD: Final = WIDTH // 2


class Rows(NamedTuple):
    """The rows that tables share.

    * ``keys`` and ``values``: the contents of each row, up to its number in ``counts``.
    * ``again``: the numbers of rows that a table has given back.
    * ``sizes``: two numbers, of rows ever used and of rows in ``again``.
    """

    keys: NDArray[np.int64]
    values: NDArray[np.int32]
    counts: NDArray[np.int64]
    again: NDArray[np.int64]
    sizes: NDArray[np.int64]


class Tables(NamedTuple):
    """Several tables: table i has the rows ``order[i, : lengths[i]]`` by key, with first keys ``lowest``."""

    rows: Rows
    order: NDArray[np.int32]
    lowest: NDArray[np.int64]
    lengths: NDArray[np.int64]


class Table(NamedTuple):
    """One of several `Tables`, with its part of ``order``, ``lowest`` and ``lengths`` (one number)."""

    rows: Rows
    order: NDArray[np.int32]
    lowest: NDArray[np.int64]
    lengths: NDArray[np.int64]


def new_tables(count: int, valued: bool) -> Tables:
    """Return *count* empty tables without room (`with_room`); their keys have values only if *valued*."""
    return Tables(
        rows=Rows(
            keys=np.empty((0, WIDTH), np.int64),
            values=np.empty((0, WIDTH if valued else 0), np.int32),
            counts=np.empty(0, np.int64),
            again=np.empty(0, np.int64),
            sizes=np.zeros(2, np.int64),
        ),
        order=np.empty((count, 0), np.int32),
        lowest=np.empty((count, 0), np.int64),
        lengths=np.zeros(count, np.int64),
    )


def with_room(tables: Tables, additions: int) -> Tables:
    """Return *tables* if all together have room for *additions* more keys, or larger tables.

    Compiled code makes no arrays, so the caller makes room before it calls `insert`.  Larger tables have the
    same keys; the old *tables* must not be used any more.
    """
    rows, room = tables.rows, len(tables.rows.counts)
    ever = int(rows.sizes[0])
    if ever + additions + 1 > room:  # each addition may open a row
        room = 2 * room + additions + 1
        grown = {
            name: _grown(getattr(rows, name), ever, room) for name in ("keys", "values", "counts", "again")
        }
        tables = tables._replace(rows=rows._replace(**grown))
    length, room = int(tables.lengths.max()), tables.order.shape[1]
    if length + additions + 1 > room:
        room = 2 * room + additions + 1
        tables = tables._replace(
            order=_grown(tables.order, length, room, 1), lowest=_grown(tables.lowest, length, room, 1)
        )
    return tables


def _grown(old: NDArray[Any], length: int, room: int, axis: int = 0) -> NDArray[Any]:
    """Return a copy of *old* with *room* along *axis*; only the first *length* entries are copied."""
    shape = list(old.shape)
    shape[axis] = room
    larger = np.empty(shape, old.dtype)
    copied = (slice(None),) * axis + (slice(length),)
    larger[copied] = old[copied]
    return larger


def entries(tables: Tables, number: int = 0) -> NDArray[np.int64]:
    """Return all keys of table *number* in order, each with its value (n x 2); without values, 0."""
    rows, order = tables.rows, tables.order[number, : tables.lengths[number]]
    filled = np.arange(WIDTH) < rows.counts[order][:, None]
    keys = rows.keys[order][filled]
    values = rows.values[order][filled] if rows.values.shape[1] else np.zeros(len(keys), np.int64)
    return np.column_stack([keys, values])


@compiled
def table_of(tables: Tables, number: int) -> Table:
    """Return the table *number*, which shares its arrays with *tables*."""
    return Table(
        tables.rows, tables.order[number], tables.lowest[number], tables.lengths[number : number + 1]
    )


@compiled
def find(table: Table, key: int) -> tuple[int, int]:
    """Return the place of the first key that is not below *key*, or a place behind the last key.

    It is the position of a row and an index in that row; for a place with a key, `is_in` is true.
    """
    low, high = 0, table.lengths[0]
    while low < high:
        middle = (low + high) // 2
        if table.lowest[middle] <= key:
            low = middle + 1
        else:
            high = middle
    position = max(low - 1, 0)
    if table.lengths[0] == 0:
        return 0, 0
    row = table.order[position]
    low, high = 0, table.rows.counts[row]
    while low < high:
        middle = (low + high) // 2
        if table.rows.keys[row, middle] < key:
            low = middle + 1
        else:
            high = middle
    if low == table.rows.counts[row]:
        return position + 1, 0
    return position, low


@compiled
def is_in(table: Table, position: int, index: int) -> bool:
    """Return whether the place (*position*, *index*) has a key."""
    return bool(0 <= position < table.lengths[0] and 0 <= index < table.rows.counts[table.order[position]])


@compiled
def key_at(table: Table, position: int, index: int) -> int:
    """Return the key at a place for which `is_in` is true."""
    return int(table.rows.keys[table.order[position], index])


@compiled
def value_at(table: Table, position: int, index: int) -> int:
    """Return the value at a place for which `is_in` is true; the table must have values (`new_tables`)."""
    return int(table.rows.values[table.order[position], index])


@compiled
def place_after(table: Table, position: int, index: int) -> tuple[int, int]:
    """Return the place after one that has a key; behind the last key, a place for which `is_in` is false."""
    if index + 1 < table.rows.counts[table.order[position]]:
        return position, index + 1
    return position + 1, 0


@compiled
def place_before(table: Table, position: int, index: int) -> tuple[int, int]:
    """Return the place before (*position*, *index*), a place with a key or the one behind the last key.

    Before the first key, return (-1, 0), for which `is_in` is false.
    """
    if index > 0:
        return position, index - 1
    if position == 0:
        return -1, 0
    return position - 1, table.rows.counts[table.order[position - 1]] - 1


@compiled
def insert(table: Table, key: int, value: int) -> None:
    """Add *key*, which is not in the table yet, with its *value*; the table must have room (`with_room`).

    A table without values ignores *value*.
    """
    if table.lengths[0] == 0:
        _open_row(table, 0)
    position, index = find(table, key)
    if index == 0 and position > 0:  # add the key at the end of the row before instead
        position -= 1
        index = table.rows.counts[table.order[position]]
    row = table.order[position]
    if table.rows.counts[row] == WIDTH:
        _open_row(table, position + 1)
        upper = table.order[position + 1]
        for i in range(_LOAD):
            table.rows.keys[upper, i] = table.rows.keys[row, _LOAD + i]
        if table.rows.values.shape[1]:
            for i in range(_LOAD):
                table.rows.values[upper, i] = table.rows.values[row, _LOAD + i]
        table.rows.counts[upper] = _LOAD
        table.rows.counts[row] = _LOAD
        table.lowest[position + 1] = table.rows.keys[upper, 0]
        if index > _LOAD:
            position, index, row = position + 1, index - _LOAD, upper
    count = table.rows.counts[row]
    for i in range(count, index, -1):
        table.rows.keys[row, i] = table.rows.keys[row, i - 1]
    table.rows.keys[row, index] = key
    if table.rows.values.shape[1]:
        for i in range(count, index, -1):
            table.rows.values[row, i] = table.rows.values[row, i - 1]
        table.rows.values[row, index] = value
    table.rows.counts[row] = count + 1
    table.lowest[position] = table.rows.keys[row, 0]


@compiled
def replace_key(table: Table, position: int, index: int, key: int) -> None:
    """Change the key at a place to *key*, which must have the same place in the order; its value stays."""
    table.rows.keys[table.order[position], index] = key
    if index == 0:
        table.lowest[position] = key


@compiled
def remove_at(table: Table, position: int, index: int) -> None:
    """Remove the key at a place for which `is_in` is true, with its value.

    A row that is empty then goes back to the pool.
    """
    row = table.order[position]
    count = table.rows.counts[row] - 1
    for i in range(index, count):
        table.rows.keys[row, i] = table.rows.keys[row, i + 1]
    if table.rows.values.shape[1]:
        for i in range(index, count):
            table.rows.values[row, i] = table.rows.values[row, i + 1]
    table.rows.counts[row] = count
    if count:
        table.lowest[position] = table.rows.keys[row, 0]
        return
    length = table.lengths[0] - 1
    for i in range(position, length):
        table.order[i] = table.order[i + 1]
        table.lowest[i] = table.lowest[i + 1]
    table.lengths[0] = length
    table.rows.again[table.rows.sizes[1]] = row
    table.rows.sizes[1] += 1


@compiled
def _open_row(table: Table, position: int) -> None:
    """Put an empty row at *position*."""
    sizes = table.rows.sizes
    if sizes[1]:
        sizes[1] -= 1
        row = table.rows.again[sizes[1]]
    else:
        row = sizes[0]
        sizes[0] += 1
    for i in range(table.lengths[0], position, -1):
        table.order[i] = table.order[i - 1]
        table.lowest[i] = table.lowest[i - 1]
    table.order[position] = row
    table.rows.counts[row] = 0
    table.lengths[0] += 1
