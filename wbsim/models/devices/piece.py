"""The uses of the members of composed devices."""

from __future__ import annotations

from wbsim.models.bio import BlockDevice


def uses_behind(device: BlockDevice, name: str) -> dict[str, float]:
    """Return the `BlockDevice.uses` of *device* (ns), by names such as ``0 head``.

    *name*, that of a member (``0``), stands before the name of each part, with a blank between them.
    """
    return {f"{name} {part}": used_ns for part, used_ns in device.uses().items()}
