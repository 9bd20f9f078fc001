"""A bio of an array that its members have not finished (struct md_io_clone)."""

from __future__ import annotations

from collections.abc import Callable

from wbsim.models.bio import Bio


class Flight:
    """A *bio* that came at *since_ns*; *on_end* is called when all its parts have ended.

    ``parts`` is the number of parts that have not ended, and one more while the bio is submitted.
    """

    __slots__ = ("_on_end", "bio", "parts", "since_ns")

    def __init__(self, bio: Bio, since_ns: int, on_end: Callable[[Flight], None]) -> None:
        self.bio = bio
        self.since_ns = since_ns
        self.parts = 1
        self._on_end = on_end

    def end_part(self) -> None:
        """Count a part that has ended; the last part ends the bio (*on_end*)."""
        self.parts -= 1
        if not self.parts:
            self._on_end(self)
