"""The levels of arrays: the class of each."""

from __future__ import annotations

from collections.abc import Sequence

from wbsim.models.md.array import Array, Member
from wbsim.models.md.mirror import Mirror
from wbsim.models.md.parity import Parity
from wbsim.models.md.spec import ArraySpec, MdCosts, MdRules
from wbsim.models.md.striping import Striping
from wbsim.models.parts import Parts


def new_array(
    parts: Parts, name: str, spec: ArraySpec, rules: MdRules, costs: MdCosts, members: Sequence[Member]
) -> Array:
    """Return an array of *members*, of the level of *spec*; *parts* makes its threads and locks."""
    if spec.level == "raid0":
        return Striping(parts, name, spec, rules, costs, members)
    if spec.parities:
        return Parity(parts, name, spec, rules, costs, members)
    return Mirror(parts, name, spec, rules, costs, members)
