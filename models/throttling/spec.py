"""What the spec of every throttle says."""

from __future__ import annotations

from typing import Annotated, ClassVar

from models.variants import variant_field
from sim.param import Spec


class ThrottlingSpec(Spec):
    """How writers are held back; ``needs_quota``: what it writes itself it counts against a quota of
    pages.
    """

    needs_quota: ClassVar[bool] = False
    kind: str


AnyThrottling = Annotated[ThrottlingSpec, variant_field("throttling")]
"""Any variant of this folder, told apart by its ``kind``."""
