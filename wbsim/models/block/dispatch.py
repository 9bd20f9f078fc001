"""The order in which a scheduler that sorts gives the waiting requests to the driver.

Stands for deadline_dispatch_requests, dd_dispatch_request and deadline_check_fifo (deadline-iosched.c,
mq-deadline.c), and for cfq_select_queue, cfq_should_preempt and cfq_check_fifo (cfq-iosched.c).  Pure.

Left out of deadline:

* priorities (5.14 and later)
* the start of a batch in another direction with its oldest request (to 5.13); here it goes on by sector
* the choice of a request when the one before it leaves (to 6.4); here it is chosen when it leaves itself

Left out of CFQ:

* a queue for each task; here all synchronous requests are in one queue, in order of arrival
* idling, and priorities
* the end of an asynchronous slice before its first request; here each slice has one, so none starves
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Final, Protocol

from wbsim.models.bio import READ, Request
from wbsim.sim.units import MS, S

READ_EXPIRE_NS: Final = 500 * MS
WRITE_EXPIRE_NS: Final = 5 * S
WRITES_STARVED: Final = 2
"""deadline: the number of batches of reads that go before waiting writes."""
SYNC_SLICE_NS: Final = 100 * MS
ASYNC_SLICE_NS: Final = 40 * MS
ASYNC_REQUESTS: Final = 16
"""CFQ: the most asynchronous requests of a slice while synchronous ones wait (cfq_prio_to_maxrq)."""
ASYNC_EXPIRE_NS: Final = 250 * MS
ASYNC_DEPTH: Final = 16
"""CFQ to 2.6.31: the most asynchronous requests in the device (4 times cfq_quantum)."""
DELAYED_NS: Final = 125 * MS
"""CFQ: the time from which on a synchronous request counts as delayed (cfq_fifo_expire)."""


class Lane:
    """Waiting requests of one kind, by arrival and by sector; the ``head`` is where the last one ended."""

    __slots__ = ("_by_sector", "_expire_ns", "_waiting", "head")

    def __init__(self, expire_ns: int) -> None:
        self._expire_ns = expire_ns
        self._waiting: dict[Request, int] = {}  # with their arrivals, oldest first
        self._by_sector: list[tuple[int, int, Request]] = []
        self.head = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, request: Request, arrival: int) -> None:
        """Add *request*, which came after *arrival* others of its queue."""
        self._waiting[request] = arrival
        insort(self._by_sector, (request.start_sector, arrival, request))

    def remove(self, request: Request) -> None:
        """Remove *request*."""
        del self._by_sector[self._place(request, request.start_sector)]
        del self._waiting[request]

    def moved(self, request: Request, old_start: int) -> None:
        """Sort *request* again, which began at sector *old_start* before it grew at its front."""
        del self._by_sector[self._place(request, old_start)]
        insort(self._by_sector, (request.start_sector, self._waiting[request], request))

    def oldest(self) -> Request:
        """Return the request that came first."""
        return next(iter(self._waiting))

    def expired(self, now_ns: int) -> bool:
        """Return whether the oldest request has waited for the lane's fifo_expire."""
        return now_ns - self.oldest().started_ns >= self._expire_ns

    def ahead(self) -> Request | None:
        """Return the first request, by sector, at or behind the head; None: there is none."""
        at = bisect_left(self._by_sector, (self.head,))
        return self._by_sector[at][2] if at < len(self._by_sector) else None

    def lowest(self) -> Request:
        """Return the request with the lowest sector."""
        return self._by_sector[0][2]

    def sectors(self) -> list[int]:
        """Return the start sectors in the order in which a sweep finds them."""
        return [start for start, _, _ in self._by_sector]

    def _place(self, request: Request, start: int) -> int:
        return bisect_left(self._by_sector, (start, self._waiting[request]))


class Dispatch(Protocol):
    """A scheduler's choice of the next request; ``lanes`` hold all waiting requests."""

    lanes: tuple[Lane, Lane]

    def lane_of(self, request: Request) -> Lane:
        """Return the lane in which *request* waits."""

    def arrived(self, request: Request) -> None:
        """Take note of *request*, which begins to wait."""

    def choose(self, now_ns: int) -> Request | None:
        """Return the waiting request that leaves now; at least one waits.

        None: none may leave before a request of the device is complete.
        """

    def completed(self, request: Request, now_ns: int) -> None:
        """Take note of *request*, which the device has completed; flushes pass by `choose`."""


class Deadline(Dispatch):
    """deadline and mq-deadline: batches of *fifo_batch* requests in one direction, by sector.

    A batch goes on where the last one of its direction ended.  It begins with the oldest request if that has
    expired, or if no request is ahead.  Two batches of reads go before a batch of writes that wait.
    """

    def __init__(self, fifo_batch: int) -> None:
        self._reads, self._writes = Lane(READ_EXPIRE_NS), Lane(WRITE_EXPIRE_NS)
        self.lanes = self._reads, self._writes
        self._fifo_batch = fifo_batch
        self._lane = self._writes
        self._left = self._starved = 0

    def lane_of(self, request: Request) -> Lane:
        """See `Dispatch.lane_of`."""
        return self._reads if request.op == READ else self._writes

    def arrived(self, request: Request) -> None:
        """See `Dispatch.arrived`."""

    def completed(self, request: Request, now_ns: int) -> None:
        """See `Dispatch.completed`."""

    def choose(self, now_ns: int) -> Request:
        """See `Dispatch.choose`."""
        if self._left:
            ahead = self._lane.ahead()
            if ahead is not None:
                self._left -= 1
                return ahead
        self._left = self._fifo_batch - 1
        self._lane = lane = self._next_direction()
        ahead = lane.ahead()
        return lane.oldest() if ahead is None or lane.expired(now_ns) else ahead

    def _next_direction(self) -> Lane:
        if self._reads and not (self._writes and self._starved >= WRITES_STARVED):
            self._starved += bool(self._writes)
            return self._reads
        self._starved = 0
        return self._writes


class Cfq(Dispatch):
    """CFQ: a slice for synchronous requests, then one for asynchronous requests, as long as both wait.

    A synchronous request that arrives ends the slice of the asynchronous ones, which then has had at least
    one request.  Asynchronous requests leave by sector.  If the oldest has expired, their slice begins with
    it; a new slice begins at the end of each, even if no synchronous request waits.

    No asynchronous request leaves while the device has a synchronous one (cfq_may_dispatch).

    With *low_latency* (2.6.32 and later), a synchronous request that took 125 ms or more is followed by one
    asynchronous request at a time.  One more is allowed after each 100 ms.  Without *low_latency*, the device
    may have `ASYNC_DEPTH` of them.
    """

    def __init__(self, low_latency: bool) -> None:
        self._low_latency = low_latency
        self._sync, self._async = Lane(0), Lane(ASYNC_EXPIRE_NS)
        self.lanes = self._sync, self._async
        self._serves_sync = False
        self._ends_ns = 0
        self._left = 0  # of the requests of an asynchronous slice
        self._in_device = {
            True: set[Request](),
            False: set[Request](),
        }  # synchronous requests, and the others
        self._delayed_ns: int | None = None  # when a delayed request was complete

    def lane_of(self, request: Request) -> Lane:
        """See `Dispatch.lane_of`."""
        return self._sync if request.sync else self._async

    def arrived(self, request: Request) -> None:
        """See `Dispatch.arrived`: cfq_should_preempt."""
        if request.sync and not self._serves_sync:
            self._left = 0

    def choose(self, now_ns: int) -> Request | None:
        """See `Dispatch.choose`."""
        is_over = now_ns >= self._ends_ns
        if self._sync and self._async:
            is_over = is_over or not (self._serves_sync or self._left > 0)
            serves_sync = self._serves_sync != is_over
        else:
            serves_sync = bool(self._sync)
        if not serves_sync and not self._may_leave(now_ns):
            return None
        begins = is_over or serves_sync != self._serves_sync
        if begins:
            self._serves_sync = serves_sync
            self._ends_ns = now_ns + (SYNC_SLICE_NS if serves_sync else ASYNC_SLICE_NS)
            self._left = 0 if serves_sync else ASYNC_REQUESTS
        request = self._sync.oldest() if serves_sync else self._next_async(now_ns, begins)
        self._in_device[serves_sync].add(request)
        return request

    def _may_leave(self, now_ns: int) -> bool:
        """cfq_may_dispatch for an asynchronous request."""
        if self._in_device[True]:
            return False
        if not self._low_latency:
            return len(self._in_device[False]) < ASYNC_DEPTH
        if self._delayed_ns is None:
            return True
        depth = (now_ns - self._delayed_ns) // SYNC_SLICE_NS
        return len(self._in_device[False]) < max(depth, 1)

    def _next_async(self, now_ns: int, begins: bool) -> Request:
        """Return the next asynchronous request; *begins*: it is the first of a slice."""
        self._left -= 1
        if begins and self._async.expired(now_ns):
            return self._async.oldest()
        ahead = self._async.ahead()
        return self._async.lowest() if ahead is None else ahead

    def completed(self, request: Request, now_ns: int) -> None:
        """See `Dispatch.completed`: cfq_completed_request."""
        in_device = self._in_device[request.sync]
        if request not in in_device:
            return
        in_device.remove(request)
        if request.sync and now_ns - request.started_ns >= DELAYED_NS:
            self._delayed_ns = now_ns
