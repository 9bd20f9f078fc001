"""The entries of an agenda, each of which is due at a time."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

FAR_NS: Final = (1 << 62) - 1
"""A time (ns) later than any run.  It fits into a machine word next to the tag bit of mypyc."""


class Entry:
    """An entry of the agenda, which is due at *when* (ns).

    Of entries that are due at one time, the entry with the lowest *rank* comes first.  Of entries with the
    same rank, the entry with the lowest *number* comes first.  Tasks and calls are entries, so putting one on
    the agenda makes no other object.
    """

    __slots__ = ("number", "rank", "when")

    def __init__(self, when: int, rank: int, number: int) -> None:
        self.when: i64 = when
        self.rank: i64 = rank
        self.number: i64 = number
