"""What stands on the agenda: something that is due at a time."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

FAR_NS: Final = (1 << 62) - 1
"""Later than any run, and still a machine word with a bit for a tag."""


class Entry:
    """Due at *when* (ns); of what is due then, the lower *rank* goes first, and of one rank the lower
    *number*.
    """

    __slots__ = ("number", "rank", "when")

    def __init__(self, when: int, rank: int, number: int) -> None:
        self.when: i64 = when
        self.rank: i64 = rank
        self.number: i64 = number
