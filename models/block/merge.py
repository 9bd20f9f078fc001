"""Which bio joins which request: the size limits, the plug's rules of each era, and the elevator's.

Stands for blk_try_merge, ll_back_merge_fn, ll_front_merge_fn, ll_merge_requests_fn (block/blk-merge.c)
and attempt_plug_merge / blk_attempt_plug_merge (block/blk-core.c, later blk-merge.c).  Pure: no clock,
no dice.  Left out: discards of several ranges, integrity, write hints, priorities.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final, Literal, NamedTuple

from models.block.bio import Bio, Request
from sim.param import Bytes, Count, Spec
from sim.units import PAGE_BYTES, SECTOR_BYTES

MAX_DISCARD_BYTES: Final = (1 << 32) - SECTOR_BYTES
"""What a bio can hold, and hence a discard on a device that does not say."""


class QueueLimits(Spec):
    """The limits in /sys/block/*/queue; ``nomerges`` 0 merges all, 1 only cheap ones, 2 none.

    Discards have a limit of their own (discard_max_bytes) and no segments.
    """

    max_sectors_bytes: Bytes
    max_segments: Count
    max_segment_bytes: Bytes
    nomerges: Literal[0, 1, 2]
    max_discard_bytes: Bytes = MAX_DISCARD_BYTES

    def segments_of(self, size_bytes: int, page_bytes: int = PAGE_BYTES) -> int:
        """Physical segments of *size_bytes* in memory whose runs are *page_bytes* long."""
        run = min(self.max_segment_bytes, page_bytes)
        return -(-size_bytes // run)


class PlugRules(Spec):
    """The rules of a plug in one era (mechanisms.md 1.2, 1.3).

    ``tried``: which plugged requests of its queue a bio is tried against (tail: the newest of all or, where
    that is another queue's, the oldest of its own); ``max_requests`` and
    ``max_requests_mixed``: how many requests a plug holds at most (a plug of several queues may
    hold more); ``flush_bytes``: a new request flushes the plug first if the ``flush_of`` request has
    this size and the queue merges at all; ``order``: in which order a flush issues.
    """

    tried: Literal["all", "newest", "oldest", "tail"]
    max_requests: Count | None
    max_requests_mixed: Count | None
    flush_bytes: Bytes | None
    flush_of: Literal["newest", "oldest"]
    order: Literal["sector", "fifo", "lifo"]


class Merge(Enum):
    """What became of a bio."""

    BACK = "backmerge"
    FRONT = "frontmerge"
    NEW = "getrq"


BACK, FRONT, NEW = Merge.BACK, Merge.FRONT, Merge.NEW  # an enum's members are slow to look up


class Decision(NamedTuple):
    """One bio's fate: how it merged, and whether the plug was flushed to make room for it."""

    merge: Merge
    full_flush: bool


def try_back(request: Request, bio: Bio, limits: QueueLimits) -> bool:
    """Append *bio* if it starts where *request* ends and the limits allow; else flag NOMERGE."""
    if request.end_sector != bio.start_sector or not _mergeable(request, bio):
        return False
    if not _fits(request, bio.sectors, bio.segments, limits):
        request.nomerge = True
        return False
    request.end_sector += bio.sectors
    request.segments += bio.segments
    request.bios.append(bio)
    return True


def try_front(request: Request, bio: Bio, limits: QueueLimits) -> bool:
    """Prepend *bio* if it ends where *request* starts and the limits allow; else flag NOMERGE."""
    if bio.start_sector + bio.sectors != request.start_sector or not _mergeable(request, bio):
        return False
    if not _fits(request, bio.sectors, bio.segments, limits):
        request.nomerge = True
        return False
    request.start_sector = bio.start_sector
    request.segments += bio.segments
    request.bios.insert(0, bio)
    return True


def try_join(request: Request, follower: Request, limits: QueueLimits) -> bool:
    """Append *follower*, a whole request, to *request* (the elevator's sort-merge insertion)."""
    if not would_join(request, follower, limits):
        return False
    request.end_sector = follower.end_sector
    request.segments += follower.segments
    request.bios += follower.bios
    return True


def would_merge(request: Request, bio: Bio, limits: QueueLimits) -> bool:
    """Whether *request*, which *bio* continues, would take it."""
    return _mergeable(request, bio) and _fits(request, bio.sectors, bio.segments, limits)


def would_join(request: Request, follower: Request, limits: QueueLimits) -> bool:
    """Whether *request* would take the whole of *follower* behind it."""
    return (
        request.end_sector == follower.start_sector
        and not request.nomerge
        and not follower.nomerge
        and request.op == follower.op
        and _fits(request, follower.sectors, follower.segments, limits)
    )


def _mergeable(request: Request, bio: Bio) -> bool:
    return not request.nomerge and not bio.nomerge and request.op == bio.op


def _fits(request: Request, sectors: int, segments: int, limits: QueueLimits) -> bool:
    most = limits.max_discard_bytes if request.op == "D" else limits.max_sectors_bytes
    return (
        request.segments + segments <= limits.max_segments
        and (request.end_sector - request.start_sector + sectors) * SECTOR_BYTES <= most
    )


class Plug:
    """struct blk_plug: a task's private list of requests, oldest first."""

    __slots__ = ("_limits", "_merges", "_rules", "_tries_all", "_tries_oldest", "_tries_tail", "requests")

    def __init__(self, rules: PlugRules, limits: QueueLimits) -> None:
        self._rules = rules
        self._limits = limits
        # Copies: a spec's own attributes are slow to read, and the walk is the hottest loop of all.
        self._merges = limits.nomerges != 2
        self._tries_all = rules.tried == "all"
        self._tries_oldest = rules.tried == "oldest"
        self._tries_tail = rules.tried == "tail"
        self.requests: list[Request] = []

    def attempt_merge(self, bio: Bio) -> Merge:
        """BACK or FRONT if *bio* joined a plugged request, else NEW."""
        requests = self.requests
        if not requests or not self._merges:
            return NEW
        owner = bio.owner
        start = bio.start_sector
        end = start + bio.sectors
        oldest_first = self._tries_oldest or (self._tries_tail and requests[-1].owner is not owner)
        for request in requests if oldest_first else reversed(requests):
            if request.owner is not owner:
                continue
            # The two comparisons spare the calls on the walk: most requests touch nowhere.
            if request.end_sector == start and try_back(request, bio, self._limits):
                return BACK
            if request.start_sector == end and try_front(request, bio, self._limits):
                return FRONT
            if not self._tries_all:
                break
        return NEW

    def must_flush(self, owner: object) -> bool:
        """Whether the plug has to be flushed before one more request of *owner* is added."""
        requests = self.requests
        if not requests:
            return False
        rules = self._rules
        if rules.max_requests is not None:
            if rules.max_requests_mixed is None:
                if sum(request.owner is owner for request in requests) >= rules.max_requests:
                    return True
            elif len(requests) >= (rules.max_requests_mixed if self._mixed(owner) else rules.max_requests):
                return True
        if rules.flush_bytes is None or not self._merges:
            return False
        judged = requests[-1] if rules.flush_of == "newest" else requests[0]
        return judged.sectors * SECTOR_BYTES >= rules.flush_bytes

    def add(self, request: Request) -> None:
        """Plug *request*."""
        self.requests.append(request)

    def take(self) -> list[Request]:
        """Empty the plug: its requests in the order in which they are issued."""
        requests = self.requests
        self.requests = []
        if len(requests) > 1:
            if self._rules.order == "sector":
                requests.sort(key=_place)
            elif self._rules.order == "lifo":
                requests.reverse()
        return requests

    def _mixed(self, owner: object) -> bool:
        return any(request.owner is not owner for request in self.requests)


def _place(request: Request) -> int:
    return request.start_sector


def plug_decisions(
    bios: Iterable[Bio], rules: PlugRules, limits: QueueLimits
) -> tuple[list[Decision], list[Sequence[Request]]]:
    """Send *bios* through one plug, without a simulation.

    Returns:
        One decision a bio, and the batches of requests as they were flushed, the last one by the
        plug's finish.
    """
    plug = Plug(rules, limits)
    decisions: list[Decision] = []
    batches: list[Sequence[Request]] = []
    for bio in bios:
        merge = plug.attempt_merge(bio)
        full = merge is NEW and plug.must_flush(bio.owner)
        if full:
            batches.append(plug.take())
        if merge is NEW:
            plug.add(Request(bio))
        decisions.append(Decision(merge, full))
    if plug.requests:
        batches.append(plug.take())
    return decisions, batches
