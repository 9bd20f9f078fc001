"""Judgements that are withdrawn if hidden requests were in the task's plug.

An unplug counts the requests of its plug.  A count above the number that the capture shows proves hidden
requests.  The replay then withdraws all judgements since the plug was known to be empty.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from wbsim.experiments.captures.requests import Seen
from wbsim.experiments.captures.verdict import Verdict


@dataclass(eq=False)
class Episode:
    """The judgements on one task since its plug was last known to be empty.

    ``is_over``: the plug was flushed; the task's next bio begins another episode.  ``hidden``: the plug held
    more requests than the capture shows.
    """

    decisions: int = 0
    decisions_equal: int = 0
    flushes: int = 0
    flushes_equal: int = 0
    requests_more: int = 0  # simulated requests less the kernel's
    request_unseen: int = 0  # decisions that are not judged, as in `Verdict`
    differing: set[int] = field(default_factory=set)  # lines of the mismatches
    requests: list[Seen] = field(default_factory=list)
    is_over: bool = False
    hidden: bool = False

    def withdraw(self, verdict: Verdict) -> None:
        """Take the judgements of this episode out of *verdict*, which is changed in place.

        The decisions count as ``unjudged`` and ``inside_plug``, and those that were ``request_unseen`` become
        ``inside_plug``.  The mismatches of the episode are dropped.  The replay calls this when an unplug or
        a merge proves hidden requests.  The episode and its requests become hidden, and its counts 0.
        """
        self.hidden = True
        for request in self.requests:
            request.hidden = True
        verdict.decisions_total -= self.decisions
        verdict.decisions_equal -= self.decisions_equal
        verdict.full_flush_total -= self.flushes
        verdict.full_flush_equal -= self.flushes_equal
        verdict.requests_simulated -= self.requests_more
        verdict.unjudged += self.decisions
        verdict.inside_plug += self.decisions + self.request_unseen
        verdict.request_unseen -= self.request_unseen
        verdict.mismatches = [m for m in verdict.mismatches if m.line not in self.differing]
        self.decisions = self.decisions_equal = self.flushes = self.flushes_equal = 0
        self.requests_more = self.request_unseen = 0
        self.differing.clear()
        self.requests.clear()
