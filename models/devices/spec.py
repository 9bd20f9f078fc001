"""What the spec of every device says: what it holds, and which devices it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from models.variants import variant_field
from sim.param import Spec


class Piece:
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


class DeviceSpec(Spec):
    """A device, or several that act as one."""

    kind: str

    @property
    def capacity(self) -> int | None:
        """What it holds (bytes); None where that does not matter."""
        return None

    def parts(self) -> Mapping[str, DeviceSpec | tuple[DeviceSpec, ...]]:
        """The devices that it is made of, by the name under which its component takes them."""
        return {}


AnyDevice = Annotated[DeviceSpec, variant_field("devices")]
"""Any variant of this folder, told apart by its ``kind``."""
