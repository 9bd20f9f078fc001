"""What the spec of every throttle says."""

from __future__ import annotations

from typing import Annotated

from models.variants import variant_field
from sim.param import Spec


class ThrottlingSpec(Spec):
    """How writers are held back."""

    kind: str

    @property
    def needs_quota(self) -> bool:
        """Whether nothing estimates a bandwidth, so that the flusher needs a quota of pages."""
        return False


AnyThrottling = Annotated[ThrottlingSpec, variant_field("throttling")]
"""Any variant of this folder, told apart by its ``kind``."""
