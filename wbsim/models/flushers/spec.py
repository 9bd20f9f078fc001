"""What the spec of every flusher says."""

from __future__ import annotations

from typing import Annotated

from wbsim.models.variants import variant_field
from wbsim.sim.param import Spec


class FlusherSpec(Spec):
    """Which threads write back what."""

    kind: str


AnyFlusher = Annotated[FlusherSpec, variant_field("flushers")]
"""Any variant of this folder, told apart by its ``kind``."""
