"""What stands on the agenda: something that is due at a time."""

from __future__ import annotations

from typing import Final

FAR_NS: Final = 1 << 62
"""Later than any run."""


class Entry:
    """Due at *when* (ns); of what is due then, the lower *rank* goes first, and of one rank the lower
    *number*.
    """

    __slots__ = ("number", "rank", "when")

    def __init__(self, when: int, rank: int, number: int) -> None:
        self.when = when
        self.rank = rank
        self.number = number
