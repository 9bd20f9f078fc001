"""Verdict of a replay: counts of what was judged, of what was not and why, and the first differences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

SHOWN: Final = 20
"""Number of mismatches that are kept."""


class Mismatch(NamedTuple):
    """One judgement in which simulator and kernel differ."""

    line: int
    what: str
    kernel: str
    simulated: str


@dataclass
class Verdict:
    """Comparison of the simulator's block layer with the kernel's, on one device.

    The totals hold judged decisions and full flushes only.

    ``full_flush_unknown``: flushes that may as well have been a sleep, or follow the capture's end.
    ``by_segments``: merges that show a bio to have fewer segments than pages.
    ``in_dispatch``: bios that came for a request which had left its queue, as its issue shows.
    ``unjudged``: decisions that cannot be judged, for three reasons.
    ``inside_plug``: of these, decisions on a plug that the capture shows only in part.
    ``request_unseen``: of these, decisions on a request that is not shown from its beginning.
    The other unjudged decisions follow lost events.
    ``uncounted_losses``: places at which the recorder lost events without counting them.
    ``without_sectors``: events of requests without sectors, which are passed over.
    """

    bios: int = 0
    decisions_equal: int = 0
    decisions_total: int = 0
    full_flush_equal: int = 0
    full_flush_total: int = 0
    full_flush_unknown: int = 0
    by_segments: int = 0
    in_dispatch: int = 0
    unjudged: int = 0
    inside_plug: int = 0
    request_unseen: int = 0
    events_lost: int = 0
    uncounted_losses: int = 0
    without_sectors: int = 0
    requests_kernel: int = 0
    requests_simulated: int = 0
    mismatches: list[Mismatch] = field(default_factory=list)

    @property
    def agrees(self) -> bool:
        """True if everything that was judged is equal."""
        return self.decisions_equal == self.decisions_total and self.full_flush_equal == self.full_flush_total
