"""The spec that all flushers share."""

from __future__ import annotations

from typing import Annotated

from wbsim.models.kinds import kind_field
from wbsim.sim.param import Spec


class FlusherSpec(Spec):
    """The design of flushers: which threads write back which inodes."""

    kind: str


AnyFlusher = Annotated[FlusherSpec, kind_field("flushers")]
"""The spec of any kind in this folder."""
