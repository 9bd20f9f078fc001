"""What the spec of every throttle says."""

from __future__ import annotations

from typing import Annotated, Literal

from wbsim.models.kinds import kind_field
from wbsim.sim.param import BytesPerS, Count, Spec


class ThrottlingSpec(Spec):
    """How writers are held back."""

    kind: str

    @property
    def needs_nr_to_write(self) -> bool:
        """Whether nothing estimates a bandwidth, so that the flusher needs a fixed nr_to_write."""
        return False


AnyThrottling = Annotated[ThrottlingSpec, kind_field("throttling")]
"""The spec of any kind in this folder."""


class CallerWritesSpec(ThrottlingSpec):
    """``hz``: CONFIG_HZ; ``initial_bandwidth``: INIT_BW where the write bandwidth is estimated (3.1).

    ``writes_back``: a writer that is to wait writes back whatever is dirty on the device (to 2.6.30), or what
    is above its limit; ``waits``: it sleeps until a queue leaves congestion, 100 ms at most (to 2.6.31), or
    for jiffies, twice as many each time.
    """

    kind: Literal["caller_writes"] = "caller_writes"
    writes_back: Literal["any", "above_limit"] = "above_limit"
    waits: Literal["congestion", "jiffies"] = "jiffies"
    hz: Count
    initial_bandwidth: BytesPerS | None = None

    @property
    def needs_nr_to_write(self) -> bool:
        """See `ThrottlingSpec.needs_nr_to_write`."""
        return self.initial_bandwidth is None


class IoLessSpec(ThrottlingSpec):
    """``hz``: CONFIG_HZ; ``initial_bandwidth``: INIT_BW, 100 MiB/s."""

    kind: Literal["io_less"] = "io_less"
    hz: Count
    initial_bandwidth: BytesPerS
