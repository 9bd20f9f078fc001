"""The requests that another kernel would have issued for the bios of a capture.

The plugs begin and end as in the capture, and follow the rules of each era.  The result is the number and the
sizes of the requests that leave the plugs.  Left out, for all eras: later merges of
requests that wait for the device.  They depend on the times of dispatches, which the capture shows only for
its own kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from wbsim.experiments.captures.merge_decisions import Emptied, Piece, Placed, Step
from wbsim.experiments.captures.replay import bio_of
from wbsim.models.bio import Request
from wbsim.models.block.merge import NEW, bounds_of
from wbsim.models.block.plug import Plug
from wbsim.models.block.spec import PlugRules, QueueLimits


class Issued(NamedTuple):
    """The number of requests that left one era's plugs, by length (sectors)."""

    lengths: Counter[int]

    @property
    def requests(self) -> int:
        """Return the number of requests of all lengths."""
        return self.lengths.total()


def what_if(
    steps: Iterable[Step], eras: Mapping[str, PlugRules], limits: QueueLimits, device: str
) -> dict[str, Issued]:
    """Return, by the name of the era, the requests that its plugs would have issued to *device*.

    Each result counts requests by their length (sectors).  *steps* are those of `steps_of`.  *eras* has the
    plug rules of each era by its name.  *limits* are those of *device*, which is "major,minor".
    `wbsim replay --kernel` shows the result.
    """
    kernels = {name: _Kernel(rules, limits) for name, rules in eras.items()}
    for step in steps:
        if isinstance(step, Piece):
            if step.merge is not NEW and step.device == device:
                for kernel in kernels.values():
                    kernel.submit(step, plugged=True)
        elif isinstance(step, Placed):
            if step.piece.device == device:
                for kernel in kernels.values():
                    kernel.submit(step.piece, step.plugged)
        elif isinstance(step, Emptied):
            for kernel in kernels.values():
                kernel.flush(step.pid)
    return {name: kernel.finish() for name, kernel in kernels.items()}


class _Kernel:
    """The plugs of one era, one for each task."""

    def __init__(self, rules: PlugRules, limits: QueueLimits) -> None:
        self._rules = rules
        self._limits = limits
        self._bounds = bounds_of(limits, rules)
        self._plugs: dict[int, Plug] = {}
        self._outcome = Issued(Counter())

    def submit(self, piece: Piece, plugged: bool) -> None:
        """Merge the bio of *piece* into its task's plug, or give it a request.

        *plugged*: the request goes into the plug; otherwise it is issued at once.
        """
        plug = self._plugs.get(piece.pid)
        if plug is None:
            plug = self._plugs[piece.pid] = Plug(self._rules)
        bio = bio_of(piece)
        bio.segments = min(bio.segments, self._limits.max_segments)
        if plug.attempt_merge(bio, self._bounds) is not NEW:
            return
        if not plugged:
            self._outcome.lengths[bio.sectors] += 1
            return
        if plug.must_flush(bio.queue, self._bounds):
            self._issue(plug)
        plug.add(Request(bio))

    def flush(self, pid: int) -> None:
        """Flush the plug of task *pid*, which ended its plug or sleeps."""
        plug = self._plugs.get(pid)
        if plug is not None:
            self._issue(plug)

    def finish(self) -> Issued:
        """Flush all plugs; return all requests that left them."""
        for plug in self._plugs.values():
            self._issue(plug)
        return self._outcome

    def _issue(self, plug: Plug) -> None:
        self._outcome.lengths.update(request.sectors for request in plug.take(direct=True))
