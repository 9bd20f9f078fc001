"""What the spec of every flusher says."""

from __future__ import annotations

from typing import Annotated

from wbsim.models.kinds import kind_field
from wbsim.sim.param import Spec


class FlusherSpec(Spec):
    """Which threads write back what."""

    kind: str


AnyFlusher = Annotated[FlusherSpec, kind_field("flushers")]
"""The spec of any kind in this folder."""
