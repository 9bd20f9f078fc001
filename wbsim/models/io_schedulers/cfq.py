"""CFQ: synchronous requests in the order of arrival, and a part of the time for the others, by sector.

Stands for cfq_select_queue, cfq_should_preempt, cfq_check_fifo and cfq_allow_merge (cfq-iosched.c;
docs/kernel/schedulers.md#cfq).  Pure.  Left out:

* a queue for each task; here all synchronous requests are in one queue, in order of arrival
* idling, and priorities
* the end of an asynchronous slice before its first request; here each slice has one, so none starves
"""

from __future__ import annotations

from typing import Final

from wbsim.models.bio import Request
from wbsim.models.io_schedulers.lanes import Lane, Lanes
from wbsim.models.io_schedulers.spec import CfqRules, CfqSpec
from wbsim.sim.units import MS

SYNC_SLICE_NS: Final = 100 * MS
ASYNC_SLICE_NS: Final = 40 * MS
ASYNC_REQUESTS: Final = 16
"""The most asynchronous requests of a slice while synchronous ones wait (cfq_prio_to_maxrq)."""
ASYNC_EXPIRE_NS: Final = 250 * MS
ASYNC_DEPTH: Final = 16
"""To 2.6.31: the most asynchronous requests in the device (4 times cfq_quantum)."""
DELAYED_NS: Final = 125 * MS
"""The time from which on a synchronous request counts as delayed (cfq_fifo_expire)."""


class Cfq(Lanes):
    """CFQ: a slice for synchronous requests, then one for asynchronous requests, as long as both wait.

    A synchronous request that arrives ends the slice of the asynchronous ones, which then has had at least
    one request.  Asynchronous requests leave by sector.  If the oldest has expired, their slice begins with
    it; a new slice begins at the end of each, even if no synchronous request waits.

    No asynchronous request leaves while the device has a synchronous one (cfq_may_dispatch).

    With the rule ``low_latency`` (2.6.32 and later), a synchronous request that took 125 ms or more is
    followed by one asynchronous request at a time.  One more is allowed after each 100 ms.  Without it, the
    device may have `ASYNC_DEPTH` of them.
    """

    def __init__(self, *, spec: CfqSpec, rules: CfqRules) -> None:
        self.sorts = True
        self._low_latency = rules.low_latency
        self._sync, self._async = Lane(0), Lane(ASYNC_EXPIRE_NS)
        self.lanes = self._sync, self._async
        self._serves_sync = False
        self._ends_ns = 0
        self._requests_left = 0  # of an asynchronous slice
        self._in_device = {
            True: set[Request](),
            False: set[Request](),
        }  # synchronous requests, and the others
        self._delayed_ns: int | None = None  # when a delayed request was complete

    def lane_of(self, request: Request) -> Lane:
        """Return the lane in which *request* waits: that of synchronous or of asynchronous requests."""
        return self._sync if request.sync else self._async

    def allows(self, request: Request, sync: bool) -> bool:
        """Return whether *request* has the REQ_SYNC *sync*, so that it may grow (cfq_allow_merge)."""
        return request.sync == sync

    def arrived(self, request: Request) -> None:
        """Let *request*, which begins to wait, end an asynchronous slice if it is synchronous."""
        if request.sync and not self._serves_sync:
            self._requests_left = 0

    def choose(self, now_ns: int) -> Request | None:
        """Return the request that leaves at *now_ns*, which stays in its lane; None: none may leave yet.

        At least one must wait.  The request counts as in the device from now on, until `complete`.
        """
        is_over = now_ns >= self._ends_ns
        if self._sync and self._async:
            is_over = is_over or not (self._serves_sync or self._requests_left > 0)
            serves_sync = self._serves_sync != is_over
        else:
            serves_sync = bool(self._sync)
        if not serves_sync and not self._may_leave(now_ns):
            return None
        begins = is_over or serves_sync != self._serves_sync
        if begins:
            self._serves_sync = serves_sync
            self._ends_ns = now_ns + (SYNC_SLICE_NS if serves_sync else ASYNC_SLICE_NS)
            self._requests_left = 0 if serves_sync else ASYNC_REQUESTS
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
        self._requests_left -= 1
        if begins and self._async.expired(now_ns):
            return self._async.oldest()
        next_request = self._async.next_ahead()
        return self._async.lowest() if next_request is None else next_request

    def complete(self, request: Request, now_ns: int) -> None:
        """Take note of *request*, which the device has completed at *now_ns* (cfq_completed_request).

        A request that `choose` did not return, such as a flush, changes nothing.
        """
        in_device = self._in_device[request.sync]
        if request not in in_device:
            return
        in_device.remove(request)
        if request.sync and now_ns - request.started_ns >= DELAYED_NS:
            self._delayed_ns = now_ns


SPEC, COMPONENT = CfqSpec, Cfq
