"""What the spec of every device says: what it holds, and which devices it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from models.variants import variant_field
from sim.param import Spec


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
