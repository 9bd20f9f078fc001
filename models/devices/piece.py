"""What a device made of others gives them."""

from __future__ import annotations

from models.seams import Write


class Piece(Write):
    """A part of a request, for one of the devices that another is made of (`models.seams.Write`)."""

    __slots__ = ("end_sector", "op", "start_sector")

    def __init__(self, start_sector: int, end_sector: int, op: str) -> None:
        self.start_sector = start_sector
        self.end_sector = end_sector
        self.op = op

    @property
    def sectors(self) -> int:
        """The length (sectors)."""
        return self.end_sector - self.start_sector
