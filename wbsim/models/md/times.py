"""The times of md (ns), as plain numbers: the attributes of a spec are slow to read."""

from __future__ import annotations

from wbsim.models.md.spec import MdCosts


class Times:
    """The times of `MdCosts`."""

    __slots__ = ("bio", "copy", "handle", "move", "stripe", "syndrome", "xor")

    def __init__(self, costs: MdCosts) -> None:
        self.bio = costs.bio_ns
        self.stripe = costs.stripe_ns
        self.move = costs.list_ns
        self.handle = costs.handle_ns
        self.copy = costs.copy_ns
        self.xor = costs.xor_ns
        self.syndrome = costs.syndrome_ns
