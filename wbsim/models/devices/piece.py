"""Pieces of requests for the members of a composed device, and the uses of such members."""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from wbsim.models.bio import BlockDevice, Write


@mypyc_attr(free_list_len=1)
class Piece(Write):
    """A part of a request, for one member of a composed device (`models.bio.Write`)."""

    __slots__ = ("end_sector", "op", "start_sector")

    def __init__(self, start_sector: int, end_sector: int, op: str) -> None:
        self.start_sector = start_sector
        self.end_sector = end_sector
        self.op = op


def uses_behind(device: BlockDevice, name: str) -> dict[str, float]:
    """Return the `BlockDevice.uses` of *device*, a member called *name* of a composed device."""
    return {f"{name} {part}": used_ns for part, used_ns in device.uses().items()}
