"""How fast a context's pages reach the device: bdi_update_write_bandwidth (mm/page-writeback.c).

In the kernel's integer arithmetic: times are jiffies, rates pages per second.
"""

from __future__ import annotations

from wbsim.models.seams import Bandwidth


class WriteBandwidth(Bandwidth):
    """The estimates in struct bdi_writeback; whoever throttles says from where they start, and moves them."""

    __slots__ = (
        "avg_write",
        "balanced_ratelimit",
        "dirtied_stamp",
        "dirty_ratelimit",
        "stamp",
        "write",
        "written_stamp",
    )

    def __init__(self) -> None:
        self.start(0)

    def start(self, pages_per_s: int) -> None:
        """See `Bandwidth.start`: INIT_BW."""
        self.write = self.avg_write = self.dirty_ratelimit = self.balanced_ratelimit = pages_per_s
        self.stamp = self.dirtied_stamp = self.written_stamp = 0

    def update_write(self, elapsed: int, written: int, hz: int) -> None:
        """See `Bandwidth.update_write`."""
        period = roundup_pow2(3 * hz)
        bandwidth = written * hz
        if elapsed > period:
            self.write = self.avg_write = bandwidth // elapsed
            return
        bandwidth = (bandwidth + self.write * (period - elapsed)) // period
        average, previous = self.avg_write, self.write
        if average > previous >= bandwidth:
            average -= (average - previous) >> 3
        if average < previous <= bandwidth:
            average += (previous - average) >> 3
        self.write, self.avg_write = bandwidth, average


def roundup_pow2(value: int) -> int:
    """roundup_pow_of_two."""
    return 1 << (value - 1).bit_length()
