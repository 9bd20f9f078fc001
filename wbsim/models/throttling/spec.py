"""The specs of throttling."""

from __future__ import annotations

from typing import Annotated, Literal

from wbsim.models.kinds import kind_field
from wbsim.sim.param import BytesPerS, Count, Spec


class ThrottlingSpec(Spec):
    """The design of throttling: how writers are held back."""

    kind: str

    @property
    def needs_nr_to_write(self) -> bool:
        """True if the flusher needs a fixed nr_to_write, because the era estimates no bandwidth."""
        return False


AnyThrottling = Annotated[ThrottlingSpec, kind_field("throttling")]
"""The spec of any kind in this folder."""


class CallerWritesSpec(ThrottlingSpec):
    """The settings of throttling to 3.1.

    * ``writes_back``: a throttled writer writes back if the device has any dirty page (to 2.6.30), or more
      dirty pages than the limit.
    * ``waits``: a throttled writer sleeps until a queue leaves congestion, at most 100 ms (to 2.6.31), or for
      jiffies that double each time.
    * ``hz``: CONFIG_HZ, the jiffies a second.
    * ``initial_bandwidth``: the first estimate of a device's write bandwidth (INIT_BW, 3.1); without it, the
      era estimates no bandwidth.
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
    """The settings of IO-less throttling.

    * ``hz``: CONFIG_HZ, the jiffies a second.
    * ``initial_bandwidth``: the first estimate of a device's write bandwidth; INIT_BW is 100 MiB/s.
    """

    kind: Literal["io_less"] = "io_less"
    hz: Count
    initial_bandwidth: BytesPerS
