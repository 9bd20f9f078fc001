"""The plug: a task's private list of requests, and the rules of each era for it.

Stands for struct blk_plug, attempt_plug_merge / blk_attempt_plug_merge and blk_flush_plug_list
(block/blk-core.c, later blk-merge.c and blk-mq.c).  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from wbsim.models.bio import Bio, Request
from wbsim.models.block.merge import FATES, IS_NEW, NEW, Bounds, Merge, bounds_of, grow, keep_bio
from wbsim.models.block.spec import PlugRules, QueueLimits
from wbsim.sim.units import SECTOR_BYTES

ALL: Final = 0
NEWEST: Final = 1
OLDEST: Final = 2
TAIL: Final = 3
_UNBOUNDED: Final = 1 << 40


@dataclass(frozen=True)
class Rules:
    """`PlugRules` as the walk reads them: numbers alone."""

    tried: int
    max_requests: int
    max_requests_mixed: int
    counts_all: bool
    flush_sectors: int
    flush_of_newest: bool


def rules_of(spec: PlugRules) -> Rules:
    """The same as numbers."""
    return Rules(
        {"all": ALL, "newest": NEWEST, "oldest": OLDEST, "tail": TAIL}[spec.tried],
        spec.max_requests or _UNBOUNDED,
        spec.max_requests_mixed or _UNBOUNDED,
        spec.max_requests_mixed is not None,
        _UNBOUNDED if spec.flush_bytes is None else -(-spec.flush_bytes // SECTOR_BYTES),
        spec.flush_of == "newest",
    )


def walk(requests: list[Request], bio: Bio, rules: Rules, bounds: Bounds) -> tuple[int, int]:
    """Try *bio* against the plugged *requests*, oldest first in the list.

    Returns what became of it (`models.block.merge.FATES`), and the place of the request that it joined.
    """
    held = len(requests)
    if held == 0 or not bounds.merges:
        return IS_NEW, 0
    queue, start, end = bio.queue, bio.start_sector, bio.end_sector
    tried, tries_all = rules.tried, rules.tried == ALL
    first, behind, step = held - 1, -1, -1
    if tried == OLDEST or (tried == TAIL and requests[first].queue != queue):
        first, behind, step = 0, held, 1
    at = first
    while at != behind:
        request = requests[at]
        # Most requests touch nowhere: that is seen first, and spares the calls.
        touches = request.end_sector == start or request.start_sector == end
        if (touches or not tries_all) and request.queue == queue:
            fate = grow(request, bio, bounds)
            if fate != IS_NEW or not tries_all:
                return fate, at
        at += step
    return IS_NEW, 0


def is_full(requests: list[Request], queue: Any, rules: Rules, bounds: Bounds) -> bool:
    """Whether the plug has to be flushed before one more request of *queue* is added."""
    held = len(requests)
    if held == 0:
        return False
    if held >= rules.max_requests:
        own = 0
        for at in range(held):
            own += requests[at].queue == queue
        if rules.counts_all:
            if held >= (rules.max_requests_mixed if own < held else rules.max_requests):
                return True
        elif own >= rules.max_requests:
            return True
    judged = requests[held - 1 if rules.flush_of_newest else 0]
    return bool(bounds.merges and judged.end_sector - judged.start_sector >= rules.flush_sectors)


class Plug:
    """The requests of one plug, oldest first."""

    __slots__ = ("_spec", "requests", "rules")

    def __init__(self, rules: PlugRules) -> None:
        self._spec = rules
        self.rules = rules_of(rules)
        self.requests: list[Request] = []

    def attempt_merge(self, bio: Bio, bounds: Bounds) -> Merge:
        """BACK or FRONT if *bio* joined a plugged request, else NEW; *bounds* are those of its queue."""
        requests = self.requests
        if not requests:
            return NEW
        fate, at = walk(requests, bio, self.rules, bounds)
        if fate == IS_NEW:
            return NEW
        keep_bio(requests[at], bio, fate)
        return FATES[fate]

    def must_flush(self, queue: object, bounds: Bounds) -> bool:
        """Whether the plug has to be flushed before one more request of *queue* is added."""
        return is_full(self.requests, queue, self.rules, bounds)

    def add(self, request: Request) -> None:
        """Plug *request*."""
        self.requests.append(request)

    def take(self) -> list[Request]:
        """Empty the plug: its requests in the order in which they are issued, queue by queue."""
        requests = self.requests
        self.requests = []
        if len(requests) > 1:
            queues = list(dict.fromkeys(request.queue for request in requests))
            order = issue_order(
                self._spec, [r.start_sector for r in requests], [queues.index(r.queue) for r in requests]
            )
            return requests if order is None else [requests[at] for at in order]
        return requests


def issue_order(rules: PlugRules, starts: Sequence[int], queues: Sequence[int]) -> list[int] | None:
    """In which order the requests of a plug are issued, by their place in it: queue by queue; None: as they
    came.

    *starts* are their start sectors, *queues* numbers that tell their queues apart.
    """
    mixed = any(queue != queues[0] for queue in queues)
    order = rules.order_mixed if mixed and len(starts) > rules.mixed_above else rules.order
    if not mixed and order in ("fifo", "queue"):
        return None
    places: list[int] = list(range(len(starts)))
    if order == "lifo":
        places.reverse()
    elif order == "sector":
        places.sort(key=starts.__getitem__)
    if mixed:
        first = {queue: at for at, queue in reversed(list(enumerate(queues[place] for place in places)))}
        places.sort(key=lambda place: first[queues[place]])
    return places


class Decision(NamedTuple):
    """One bio's fate: how it merged, and whether the plug was flushed to make room for it."""

    merge: Merge
    full_flush: bool


def plug_decisions(
    bios: Iterable[Bio], rules: PlugRules, limits: QueueLimits
) -> tuple[list[Decision], list[Sequence[Request]]]:
    """Send *bios* through one plug, without a simulation; all queues have these *limits*.

    Returns:
        One decision a bio, and the batches of requests as they were flushed, the last one by the
        plug's finish.
    """
    plug, bounds = Plug(rules), bounds_of(limits, rules)
    decisions: list[Decision] = []
    batches: list[Sequence[Request]] = []
    for bio in bios:
        merge = plug.attempt_merge(bio, bounds)
        full = merge is NEW and plug.must_flush(bio.queue, bounds)
        if full:
            batches.append(plug.take())
        if merge is NEW:
            plug.add(Request(bio))
        decisions.append(Decision(merge, full))
    if plug.requests:
        batches.append(plug.take())
    return decisions, batches
