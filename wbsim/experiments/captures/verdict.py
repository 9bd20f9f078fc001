"""The verdict of a replay: counts of judged and unjudged decisions, and the first differences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

SHOWN: Final = 20
"""The number of mismatches that are kept."""


class Mismatch(NamedTuple):
    """One judgement in which simulator and kernel differ.

    Attributes:
        line: The line of the capture.
        what: The judgement: "decision" or "full flush".
        kernel: The kernel's decision.
        simulated: The simulator's decision.

    Example:
        >>> import wbsim
        >>> capture = wbsim.Capture("tests/captures/deadline.trace.xz")
        >>> judged = capture.judge(capture.rules.model_copy(update={"max_requests": 1}))
        >>> judged.mismatches[0].what
        'full flush'
    """

    line: int
    what: str
    kernel: str
    simulated: str


@dataclass
class Verdict:
    """The comparison of the simulator's block layer with the kernel's, on one device.

    A decision is made for each piece of a bio: it merges with a request, or it becomes a request.  A full
    flush is judged when a request enters a plug: the plug was flushed first because it was full, or not.  The
    totals include only judged decisions and judged full flushes.

    * ``bios``: submitted bios, judged or not.
    * ``decisions_equal`` of ``decisions_total`` decisions are the kernel's.
    * ``full_flush_equal`` of ``full_flush_total`` judged full flushes are the kernel's.
    * ``full_flush_unknown``: flushes that may have been a sleep, or may follow the end of the capture.
    * ``by_segments``: merges that prove that a bio has fewer segments than pages.
    * ``in_dispatch``: bios that did not join a request because it had left its queue, as its issue shows.
    * ``unjudged``: decisions that are not judged, for three reasons: ``inside_plug``, ``request_unseen``, or
      lost events before them.
    * ``inside_plug``: unjudged decisions on a plug that the capture shows only in part.
    * ``request_unseen``: unjudged decisions on a request whose beginning the capture does not show.
    * ``events_lost``: events that the recorder lost and counted.
    * ``uncounted_losses``: places where the recorder lost events without counting them.
    * ``without_sectors``: events of requests without sectors, which are skipped.
    * ``requests_kernel`` and ``requests_simulated``: requests of the kernel and of the simulator.
    * ``mismatches``: the first differences, at most 20.

    Example:
        >>> import wbsim
        >>> judged = wbsim.Capture("tests/captures/dd12.trace.xz").judge()
        >>> judged.decisions_equal == judged.decisions_total
        True
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
        """True if all judged decisions and full flushes are equal, also if none was judged.

        Example:
            >>> import wbsim
            >>> wbsim.Capture("tests/captures/dd12.trace.xz").judge().agrees
            True
        """
        return self.decisions_equal == self.decisions_total and self.full_flush_equal == self.full_flush_total
