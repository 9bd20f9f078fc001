"""The contents of a controller's cache: strips with dirty sectors, in rows of an array.  Pure.

A line of the cache holds one strip, however little of it is dirty.  A row leaves with all its lines.  While
it is on its way to the members, later writes to it make a new row, which leaves after it.

In each range of sectors, the end is exclusive.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from sortedcontainers import SortedDict

Runs = list[tuple[int, int]]
"""Sectors of a strip: runs of first sector and the sector behind the last, ascending, with gaps between."""


class Row:
    """The dirty lines of row ``number``, by their position in it; the first write came at ``since_ns``.

    The controller calls ``ends`` when the row is on the members.
    """

    __slots__ = ("ends", "lines", "number", "since_ns")

    def __init__(self, number: int, since_ns: int) -> None:
        self.number = number
        self.since_ns = since_ns
        self.lines: dict[int, Runs] = {}
        self.ends: list[Callable[[], None]] = []


class DirtyRows:
    """The dirty rows, of which each has *data* data strips of *strip_sectors* sectors.

    ``lines``: the lines of the rows that wait, and ``leaving_lines`` those of rows on their way.
    """

    def __init__(self, data: int, strip_sectors: int) -> None:
        self._data = data
        self._strip = strip_sectors
        self.lines = self.leaving_lines = 0
        self._rows: dict[int, Row] = {}
        self._by_age: deque[Row] = deque()  # in the order of their first writes, with some that have left
        self._on_way: dict[int, Row] = {}
        self._complete: SortedDict[int, Row] = SortedDict()  # rows that may leave, complete or not
        self._partial: SortedDict[int, Row] = SortedDict()

    def strips_of(self, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield each strip that sectors *start* to *end* of the array touch: row, position, first, behind.

        *position*: the strip's place in its row.  *first* and *behind*: its sectors that are touched, from
        its start on.

        >>> list(DirtyRows(2, 8).strips_of(12, 20))
        [(0, 1, 4, 8), (1, 0, 0, 4)]
        """
        while start < end:
            number, first = divmod(start, self._strip)
            row, position = divmod(number, self._data)
            behind = min(self._strip, first + end - start)
            yield row, position, first, behind
            start += behind - first

    def new_lines(self, start: int, end: int) -> int:
        """Return how many lines of the cache a write of sectors *start* to *end* takes in addition.

        Nothing changes; the controller asks this before it lets a write onto the link.
        """
        count = 0
        for row, position, _, _ in self.strips_of(start, end):
            dirty = self._rows.get(row)
            count += dirty is None or position not in dirty.lines
        return count

    def add(self, start: int, end: int, now_ns: int) -> list[Row]:
        """Take a write of sectors *start* to *end* (exclusive) at *now_ns*; return the rows that have it."""
        rows: list[Row] = []
        for number, position, first, behind in self.strips_of(start, end):
            row = self._rows.get(number)
            if row is None:
                row = self._rows[number] = Row(number, now_ns)
                self._by_age.append(row)
                if number not in self._on_way:
                    self._partial[number] = row
            if not rows or rows[-1] is not row:
                rows.append(row)
            runs = row.lines.get(position)
            if runs is None:
                self.lines += 1
                runs = []
            row.lines[position] = with_run(runs, first, behind)
            if number in self._partial and self._is_complete(row):
                del self._partial[number]
                self._complete[number] = row
        return rows

    def _is_complete(self, row: Row) -> bool:
        whole = [(0, self._strip)]
        return len(row.lines) == self._data and all(runs == whole for runs in row.lines.values())

    def take(self, position: int) -> Row | None:
        """Take the row that leaves next; None: no row may leave.  Its lines count as leaving until `end`.

        Complete rows go before all others.  Within each group, the first from row number *position* on
        leaves, or the lowest if none is left there (C-LOOK).
        """
        rows: SortedDict[int, Row] = self._complete or self._partial
        if not rows:
            return None
        place = rows.bisect_left(position)
        number: int
        row: Row
        number, row = rows.popitem(place if place < len(rows) else 0)
        del self._rows[number]
        self._on_way[number] = row
        self.lines -= len(row.lines)
        self.leaving_lines += len(row.lines)
        return row

    def end(self, row: Row) -> None:
        """Free the lines of *row*, which is on the members; a later row of this number may leave now.

        The caller then calls the ``ends`` of *row*.
        """
        del self._on_way[row.number]
        self.leaving_lines -= len(row.lines)
        behind = self._rows.get(row.number)
        if behind is not None:
            (self._complete if self._is_complete(behind) else self._partial)[row.number] = behind

    @property
    def oldest_ns(self) -> int | None:
        """The time (ns) of the first write to the row that has waited longest; None: no row waits."""
        rows = self._by_age
        while rows and self._rows.get(rows[0].number) is not rows[0]:
            rows.popleft()
        return rows[0].since_ns if rows else None

    def has(self, number: int, position: int, first: int, behind: int) -> bool:
        """Return whether sectors *first* to *behind* of a strip are all in the cache.

        *number*: the row of the strip; *position*: its place in the row.  The sectors count from its start.
        Rows on their way to the members count, too.
        """
        runs: Runs = []
        for rows in (self._on_way, self._rows):
            row = rows.get(number)
            if row is not None:
                for run in row.lines.get(position, ()):
                    runs = with_run(runs, *run)
        return any(start <= first and behind <= end for start, end in runs)


def with_run(runs: Runs, start: int, end: int) -> Runs:
    """Return *runs* with sectors *start* to *end*, joined with the runs that they touch.

    >>> with_run([(0, 8), (16, 24), (32, 40)], 8, 20)
    [(0, 24), (32, 40)]
    """
    lower = [run for run in runs if run[1] < start]
    behind = [run for run in runs if run[0] > end]
    middle = runs[len(lower) : len(runs) - len(behind)]
    if middle:
        start, end = min(start, middle[0][0]), max(end, middle[-1][1])
    return [*lower, (start, end), *behind]
