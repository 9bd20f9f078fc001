"""Requests that wait for the device, and merge while they wait.

Stands for elv_merge, elv_attempt_insert_merge, attempt_back_merge and attempt_front_merge (block/elevator.c,
blk-merge.c).  An I/O scheduler (`models.io_schedulers`) has the order in which they leave.  Also stands for
the software queues of blk-mq without a scheduler (blk_bio_list_merge).  Pure.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Final

from wbsim.models.bio import Bio, IoScheduler, Request
from wbsim.models.block.merge import BACK, FRONT, NEW, Bounds, Merge, try_join, try_merge
from wbsim.sim.invariants import require

SOFTWARE_QUEUE_TRIED: Final = 8
"""A bio is tried against this number of requests of a software queue [V 6.1, 6.12].

The rule is docs/kernel/merging.md#finding-a-request-to-join.
"""


class Elevator:
    """The requests of one queue that the driver has not taken yet.

    A bio is first tried against the request that merged last.  Unless nomerges is 1, the hash of ends is
    tried next and, with a *scheduler* that ``sorts``, the hash of starts.  With such a scheduler a request
    that has grown is joined with a neighbour that it touches.  *put* is called with each request that another
    request has taken in (blk_put_request).
    """

    def __init__(
        self, scheduler: IoScheduler, bounds: Bounds, put: Callable[[Request], None] = lambda _: None
    ) -> None:
        self._put = put
        self._scheduler = scheduler
        self.sorts = scheduler.sorts
        self._only_cheap = bounds.only_cheap
        self._bounds = bounds
        self._arrivals = 0
        self.requests: OrderedDict[Request, int] = OrderedDict()  # with their arrivals, oldest first
        self._by_end: dict[int, Request] = {}
        self._by_start: dict[int, Request] = {}
        self._last_merge: Request | None = None

    def attempt_merge(self, bio: Bio) -> Merge:
        """Merge *bio* into a waiting request, if one takes it.

        Return BACK if *bio* is the new end of the request, FRONT if it is the new beginning, and NEW if no
        request took it.

        *bio* must be of this queue.  After NEW the thread makes a request of it.  A request that only a limit
        stops is flagged NOMERGE (`try_merge`).
        """
        if not self.requests or not self._bounds.merges:
            return NEW
        last = self._last_merge
        if last is not None and self._alike(last, bio.sync):
            if last.end_sector == bio.start_sector:
                return self._back(last, bio)
            if last.start_sector == bio.end_sector:
                return self._front(last, bio)
        if self._only_cheap:
            return NEW
        request = self._by_end.get(bio.start_sector)
        if request is not None and self._alike(request, bio.sync) and self._back(request, bio) is BACK:
            return BACK
        request = self._by_start.get(bio.end_sector) if self.sorts else None
        return self._front(request, bio) if request is not None and self._alike(request, bio.sync) else NEW

    def neighbours(self, bio: Bio) -> list[Request]:
        """Return the waiting requests against which *bio* is tried because it would continue them.

        The one that ends where *bio* begins comes first, then the one that begins where *bio* ends.  The
        second is found only with a scheduler that sorts.  A replay of a capture asks this, to find the
        request that should have taken *bio*.
        """
        neighbours = (self._by_end.get(bio.start_sector), self._by_start.get(bio.end_sector))
        return [
            request
            for request in neighbours
            if request is not None
            and self._alike(request, bio.sync)
            and self._bounds.merges
            and (not self._only_cheap or request is self._last_merge)
        ]

    def set_one_hit(self, bio: Bio) -> None:
        """Treat the request that waits next to *bio* as the one that merged last.

        The request that ends where *bio* begins goes before one that begins where *bio* ends.  A replay calls
        this when the captured kernel merged the two.  If no request waits next to *bio*, nothing changes.
        """
        self._last_merge = (
            self._by_end.get(bio.start_sector) or self._by_start.get(bio.end_sector) or self._last_merge
        )

    def insert(self, request: Request) -> bool:
        """Add *request*, or append it to a waiting request (sort-merge insertion).

        Return whether it was added; if not, *put* was called with it.
        """
        if self.requests and self._bounds.merges:
            last = self._last_merge
            if last is not None and self._join(last, request):
                return False
            if not self._only_cheap:
                predecessor = self._by_end.get(request.start_sector)
                if predecessor is not None and self._join(predecessor, request):
                    if self._bounds.insertion_repeats:
                        self._join_with_predecessors(predecessor)
                    return False
        self.add(request)
        return True

    def add(self, request: Request) -> None:
        """Add *request* without a try to merge it.

        `insert` has tried, or only its bio is tried (to 2.6.38).
        """
        self._arrivals += 1
        self.requests[request] = self._arrivals
        if not request.nomerge:
            self._by_end[request.end_sector] = request
            if self._last_merge is None:  # so that the next bio is tried against it even with nomerges 1
                self._last_merge = request
        if self.sorts:
            self._by_start[request.start_sector] = request
            self._scheduler.add(request, self._arrivals)

    def next(self, now_ns: int) -> Request | None:
        """Remove the request that goes to the driver at *now_ns*, and return it; at least one must wait.

        None: the scheduler lets none go yet.
        """
        request = self._scheduler.next(now_ns) if self.sorts else next(iter(self.requests))
        if request is not None:
            self.remove(request)
        return request

    def complete(self, request: Request, now_ns: int) -> None:
        """Tell the scheduler, if it sorts, that the device has completed *request* at *now_ns*."""
        if self.sorts:
            self._scheduler.complete(request, now_ns)

    def remove(self, request: Request) -> None:
        """Remove *request*, which waits here, also from the scheduler."""
        if self.sorts:
            self._scheduler.remove(request)
            _forget(self._by_start, request.start_sector, request)
        _forget(self._by_end, request.end_sector, request)
        del self.requests[request]
        if self._last_merge is request:
            self._last_merge = None

    def check(self) -> None:
        """Check that the indexes hold only waiting requests at their sectors, and the sorted index all.

        Raises:
            LawBroken: a request is missing in an index, or has left the elevator.
        """
        for index, edge in ((self._by_end, "end_sector"), (self._by_start, "start_sector")):
            for sector, request in index.items():
                require(
                    request in self.requests and getattr(request, edge) == sector,
                    f"elevator: the request at {edge} {sector} must wait there: {request}",
                )
        if self.sorts:
            self._scheduler.check(list(self.requests))

    def _back(self, request: Request, bio: Bio) -> Merge:
        end = request.end_sector
        if try_merge(request, bio, self._bounds) is NEW:
            self._note_refusal(request)
            return NEW
        self._end_moved(request, end)
        self._last_merge = request
        if self.sorts:
            successor = self._by_start.get(request.end_sector)
            if successor is not None:
                self._join(request, successor)
        return BACK

    def _front(self, request: Request, bio: Bio) -> Merge:
        start = request.start_sector
        if try_merge(request, bio, self._bounds) is NEW:
            self._note_refusal(request)
            return NEW
        self._start_moved(request, start)
        self._last_merge = request
        if self.sorts:
            self._join_with_predecessors(request)
        return FRONT

    def _alike(self, request: Request, sync: bool) -> bool:
        """Return whether *request* may grow by a bio or a request with this REQ_SYNC."""
        return not self.sorts or self._scheduler.allows(request, sync)

    def _note_refusal(self, request: Request) -> None:
        if request.nomerge and self._last_merge is request:
            self._last_merge = None

    def _join_with_predecessors(self, request: Request) -> None:
        while (predecessor := self._by_end.get(request.start_sector)) is not None and self._join(
            predecessor, request
        ):
            request = predecessor

    def _join(self, request: Request, follower: Request) -> bool:
        """Append *follower* to *request*; return whether they joined.  *follower* need not wait here."""
        end = request.end_sector
        if not self._alike(request, follower.sync) or not try_join(request, follower, self._bounds):
            return False
        if follower in self.requests:
            self.remove(follower)
        self._end_moved(request, end)
        self._last_merge = request
        self._put(follower)
        return True

    def _end_moved(self, request: Request, old_end: int) -> None:
        _forget(self._by_end, old_end, request)
        self._by_end[request.end_sector] = request

    def _start_moved(self, request: Request, old_start: int) -> None:
        if not self.sorts:
            return
        _forget(self._by_start, old_start, request)
        self._by_start[request.start_sector] = request
        self._scheduler.move(request, old_start)


class SoftwareQueue:
    """The requests that one processor inserted without a scheduler, until the queue runs.

    Stands for ctx->rq_lists, or kyber's kcq.  Only a replay of a capture has these queues; a run gives
    requests to the driver at once.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.requests: dict[Request, None] = {}

    def attempt_merge(self, bio: Bio) -> Merge:
        """Merge *bio* into one of the newest `SOFTWARE_QUEUE_TRIED` requests, if one takes it.

        Return BACK if *bio* is the new end of the request, FRONT if it is the new beginning, and NEW if no
        request took it.

        The newest of them that touches *bio*, has its op, and is not flagged NOMERGE decides.  If a limit or
        REQ_META forbids that merge, the result is NEW.
        """
        for request in self.neighbours(bio):
            if request.nomerge or bio.nomerge or request.op != bio.op:
                continue
            return try_merge(request, bio, self._bounds)
        return NEW

    def neighbours(self, bio: Bio) -> list[Request]:
        """Return the waiting requests that end where *bio* begins, or begin where *bio* ends.

        Only the newest `SOFTWARE_QUEUE_TRIED` requests count, newest first.  With nomerges 2, none does.
        """
        if not self._bounds.merges:
            return []
        newest = islice(reversed(self.requests), SOFTWARE_QUEUE_TRIED)
        return [r for r in newest if r.end_sector == bio.start_sector or r.start_sector == bio.end_sector]

    def insert(self, request: Request) -> bool:
        """Add *request*, and return True, because no request joins another one here."""
        self.requests[request] = None
        return True

    def remove(self, request: Request) -> None:
        """Remove *request*, which waits here."""
        del self.requests[request]


def _forget(index: dict[int, Request], sector: int, request: Request) -> None:
    if index.get(sector) is request:
        del index[sector]
