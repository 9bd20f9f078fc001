"""Waiting requests by arrival and by sector, for schedulers that sort."""

from __future__ import annotations

from bisect import bisect_left, insort

from wbsim.models.bio import IoScheduler, Request
from wbsim.sim.invariants import require


class Lane:
    """Waiting requests of one kind, by arrival and by sector.

    ``head``: the sector at which the request that left last ended; `Lanes.next` sets it.  A request expires
    *expire_ns* after its ``started_ns``.
    """

    __slots__ = ("_arrivals", "_by_sector", "_expire_ns", "head")

    def __init__(self, expire_ns: int) -> None:
        self._expire_ns = expire_ns
        self._arrivals: dict[Request, int] = {}  # of the waiting requests, oldest first
        self._by_sector: list[tuple[int, int, Request]] = []
        self.head = 0

    def __bool__(self) -> bool:
        return bool(self._arrivals)

    def add(self, request: Request, arrival: int) -> None:
        """Add *request*, which waits from now on; its *arrival* is larger than that of each earlier one."""
        self._arrivals[request] = arrival
        # No two requests have one arrival, so a comparison never reaches the requests, which have no order.
        insort(self._by_sector, (request.start_sector, arrival, request))

    def remove(self, request: Request) -> None:
        """Remove *request*, which waits here."""
        del self._by_sector[self._place(request, request.start_sector)]
        del self._arrivals[request]

    def move(self, request: Request, old_start: int) -> None:
        """Sort *request* again by its start, which was sector *old_start* before it grew at its front."""
        del self._by_sector[self._place(request, old_start)]
        insort(self._by_sector, (request.start_sector, self._arrivals[request], request))

    def oldest(self) -> Request:
        """Return the waiting request that came first; it stays, and there must be one."""
        return next(iter(self._arrivals))

    def expired(self, now_ns: int) -> bool:
        """Return whether the oldest request has waited for *expire_ns* (fifo_expire); one must wait."""
        return now_ns - self.oldest().started_ns >= self._expire_ns

    def next_ahead(self) -> Request | None:
        """Return the waiting request with the lowest start sector at or above the head, or None; it stays."""
        place = bisect_left(self._by_sector, (self.head,))
        return self._by_sector[place][2] if place < len(self._by_sector) else None

    def lowest(self) -> Request:
        """Return the waiting request with the lowest start sector; it stays, and there must be one."""
        return self._by_sector[0][2]

    def sectors(self) -> list[int]:
        """Return the start sectors of the waiting requests, ascending, for `Lanes.check`."""
        return [start for start, _, _ in self._by_sector]

    def _place(self, request: Request, start: int) -> int:
        return bisect_left(self._by_sector, (start, self._arrivals[request]))


class Lanes(IoScheduler):
    """A scheduler with two lanes, which hold all waiting requests."""

    lanes: tuple[Lane, Lane]

    def lane_of(self, request: Request) -> Lane:
        """Return the lane in which *request* waits, by its direction or its REQ_SYNC."""
        raise NotImplementedError

    def choose(self, now_ns: int) -> Request | None:
        """Return the request that leaves at *now_ns*, which stays in its lane; None: none may leave yet.

        `next` calls this while a request waits, and the elevator then removes the request.
        """
        raise NotImplementedError

    def arrived(self, request: Request) -> None:
        """Take note of *request*, which begins to wait; only a scheduler that preempts overrides this."""

    def allows(self, request: Request, sync: bool) -> bool:
        """Return True: *request* may grow by a bio or a request with either REQ_SYNC (*sync*)."""
        return True

    def add(self, request: Request, arrival: int) -> None:
        """Add *request* to its lane; *arrival* is its number, from 1, in the order in which requests came."""
        self.lane_of(request).add(request, arrival)
        self.arrived(request)

    def remove(self, request: Request) -> None:
        """Remove *request*, which another request took in or which leaves for the driver, from its lane."""
        self.lane_of(request).remove(request)

    def move(self, request: Request, old_start: int) -> None:
        """Sort *request*, which began at sector *old_start* and has grown at its front, again in its lane."""
        self.lane_of(request).move(request, old_start)

    def next(self, now_ns: int) -> Request | None:
        """Return the request that leaves at *now_ns*, behind which the head of its lane is then.

        None: none may leave yet.  At least one must wait.  The elevator removes the request.
        """
        request = self.choose(now_ns)
        if request is not None:
            self.lane_of(request).head = request.end_sector
        return request

    def complete(self, request: Request, now_ns: int) -> None:
        """Do nothing; a scheduler that must know what the device has completed overrides this."""

    def check(self, requests: list[Request]) -> None:
        """Check that each lane has its part of *requests*, all that wait, sorted by sector.

        Raises:
            LawBroken: a request is missing, or has another place.
        """
        for lane in self.lanes:
            starts = [request.start_sector for request in requests if self.lane_of(request) is lane]
            require(
                lane.sectors() == sorted(starts), "elevator: the waiting requests must be sorted by sector"
            )
