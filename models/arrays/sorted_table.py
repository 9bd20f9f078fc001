"""A sorted table of int64 keys with values, in arrays, for compiled code.

A list of short sorted rows, as in sortedcontainers: a change moves half a row, a search halves the rows and
then one row.  All functions are compiled by Numba; a place is a pair (position of the row, index in it).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.arrays.compiled import compiled

WIDTH: Final = 128
_LOAD: Final = WIDTH // 2


class Table(NamedTuple):
    """``order[:rows]`` are the rows in use, by key; ``lowest`` is the first key of each of them.

    ``sizes``: [rows in use, rows ever used, rows to use again].
    """

    keys: NDArray[np.int64]
    values: NDArray[np.int32]
    counts: NDArray[np.int64]
    order: NDArray[np.int64]
    lowest: NDArray[np.int64]
    again: NDArray[np.int64]
    sizes: NDArray[np.int64]


def new_table(rows: int, valued: bool) -> Table:
    """An empty table with room for *rows* rows; without values if they are not *valued*."""
    return Table(
        keys=np.empty((rows, WIDTH), np.int64),
        values=np.empty((rows if valued else 0, WIDTH), np.int32),
        counts=np.empty(rows, np.int64),
        order=np.empty(rows, np.int64),
        lowest=np.empty(rows, np.int64),
        again=np.empty(rows, np.int64),
        sizes=np.zeros(3, np.int64),
    )


def with_room(table: Table, additions: int) -> Table:
    """*table*, or a larger copy of it, with room for so many *additions*."""
    rows, used = len(table.counts), int(table.sizes[1])
    if used + additions + 1 <= rows:  # each may open a row
        return table
    larger = new_table(2 * rows + additions + 1, len(table.values) > 0)
    for name in ("keys", "values", "counts", "order", "lowest", "again"):
        old, new = getattr(table, name), getattr(larger, name)
        new[: min(used, len(old))] = old[:used]  # what was never used is not touched
    larger.sizes[:] = table.sizes
    return larger


def entries(table: Table) -> list[tuple[int, int]]:
    """All keys in order, each with its value; 0 where the table has none."""
    found: list[tuple[int, int]] = []
    for row in table.order[: table.sizes[0]].tolist():
        keys = table.keys[row, : table.counts[row]].tolist()
        values = table.values[row, : len(keys)].tolist() if len(table.values) else [0] * len(keys)
        found += zip(keys, values, strict=True)
    return found


@compiled
def find(table: Table, key: int) -> tuple[int, int]:
    """The place of the first key that is not below *key*; the place behind the last if there is none."""
    low, high = 0, table.sizes[0]
    while low < high:
        middle = (low + high) // 2
        if table.lowest[middle] <= key:
            low = middle + 1
        else:
            high = middle
    position = max(low - 1, 0)
    if table.sizes[0] == 0:
        return 0, 0
    row = table.order[position]
    low, high = 0, table.counts[row]
    while low < high:
        middle = (low + high) // 2
        if table.keys[row, middle] < key:
            low = middle + 1
        else:
            high = middle
    if low == table.counts[row]:
        return position + 1, 0
    return position, low


@compiled
def is_in(table: Table, position: int, index: int) -> bool:
    """Whether there is a key at that place."""
    return bool(0 <= position < table.sizes[0] and 0 <= index < table.counts[table.order[position]])


@compiled
def key_at(table: Table, position: int, index: int) -> int:
    """The key at a place that `is_in`."""
    return int(table.keys[table.order[position], index])


@compiled
def value_at(table: Table, position: int, index: int) -> int:
    """The value at a place that `is_in`."""
    return int(table.values[table.order[position], index])


@compiled
def after(table: Table, position: int, index: int) -> tuple[int, int]:
    """The next place."""
    if index + 1 < table.counts[table.order[position]]:
        return position, index + 1
    return position + 1, 0


@compiled
def before(table: Table, position: int, index: int) -> tuple[int, int]:
    """The place in front of this one; one that is not `is_in` if there is none."""
    if index > 0:
        return position, index - 1
    if position == 0:
        return -1, 0
    return position - 1, table.counts[table.order[position - 1]] - 1


@compiled
def insert(table: Table, key: int, value: int) -> None:
    """Add *key*, which is not in the table yet."""
    if table.sizes[0] == 0:
        _open_row(table, 0)
    position, index = find(table, key)
    if index == 0 and position > 0:  # behind the last key of a row is as good as before the first of the next
        position -= 1
        index = table.counts[table.order[position]]
    row = table.order[position]
    if table.counts[row] == WIDTH:
        _open_row(table, position + 1)
        upper = table.order[position + 1]
        for i in range(_LOAD):
            table.keys[upper, i] = table.keys[row, _LOAD + i]
        if len(table.values):
            for i in range(_LOAD):
                table.values[upper, i] = table.values[row, _LOAD + i]
        table.counts[upper] = _LOAD
        table.counts[row] = _LOAD
        table.lowest[position + 1] = table.keys[upper, 0]
        if index > _LOAD:
            position, index, row = position + 1, index - _LOAD, upper
    count = table.counts[row]
    for i in range(count, index, -1):
        table.keys[row, i] = table.keys[row, i - 1]
    table.keys[row, index] = key
    if len(table.values):
        for i in range(count, index, -1):
            table.values[row, i] = table.values[row, i - 1]
        table.values[row, index] = value
    table.counts[row] = count + 1
    table.lowest[position] = table.keys[row, 0]


@compiled
def replace_key(table: Table, position: int, index: int, key: int) -> None:
    """Change the key at that place to one that sorts alike."""
    table.keys[table.order[position], index] = key
    if index == 0:
        table.lowest[position] = key


@compiled
def remove_at(table: Table, position: int, index: int) -> None:
    """Take the key at that place out."""
    row = table.order[position]
    count = table.counts[row] - 1
    for i in range(index, count):
        table.keys[row, i] = table.keys[row, i + 1]
    if len(table.values):
        for i in range(index, count):
            table.values[row, i] = table.values[row, i + 1]
    table.counts[row] = count
    if count:
        table.lowest[position] = table.keys[row, 0]
        return
    rows = table.sizes[0] - 1
    for i in range(position, rows):
        table.order[i] = table.order[i + 1]
        table.lowest[i] = table.lowest[i + 1]
    table.sizes[0] = rows
    table.again[table.sizes[2]] = row
    table.sizes[2] += 1


@compiled
def _open_row(table: Table, position: int) -> None:
    """Put an empty row at *position*."""
    sizes = table.sizes
    if sizes[2]:
        sizes[2] -= 1
        row = table.again[sizes[2]]
    else:
        row = sizes[1]
        sizes[1] += 1
    for i in range(sizes[0], position, -1):
        table.order[i] = table.order[i - 1]
        table.lowest[i] = table.lowest[i - 1]
    table.order[position] = row
    table.counts[row] = 0
    sizes[0] += 1
