"""The verdict of a replay: counts of judged and unjudged decisions, and the first differences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

SHOWN: Final = 20
"""The number of mismatches that are kept."""


class Mismatch(NamedTuple):
    """One judgement in which simulator and kernel differ."""

    line: int
    what: str
    kernel: str
    simulated: str


@dataclass
class Verdict:
    """The comparison of the simulator's block layer with the kernel's, on one device.

    The totals include only judged decisions and judged full flushes.

    * ``full_flush_unknown``: flushes that may have been a sleep, or may follow the end of the capture.
    * ``by_segments``: merges that prove that a bio has fewer segments than pages.
    * ``in_dispatch``: bios that did not join a request because it had left its queue, as its issue shows.
    * ``unjudged``: decisions that are not judged, for three reasons: ``inside_plug``, ``request_unseen``, or
      lost events before them.
    * ``inside_plug``: unjudged decisions on a plug that the capture shows only in part.
    * ``request_unseen``: unjudged decisions on a request whose beginning the capture does not show.
    * ``uncounted_losses``: places where the recorder lost events without counting them.
    * ``without_sectors``: events of requests without sectors, which are skipped.
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
        """Return whether all judged decisions and full flushes are equal."""
        return self.decisions_equal == self.decisions_total and self.full_flush_equal == self.full_flush_total
