"""deadline and mq-deadline: batches of requests in one direction, by sector.

Stands for deadline_dispatch_requests, dd_dispatch_request and deadline_check_fifo (deadline-iosched.c,
mq-deadline.c; docs/kernel/schedulers.md#deadline-and-mq-deadline).  Pure.  Left out:

* priorities (5.14 and later)
* the choice of a request when the one before it leaves (to 6.4); here it is chosen when it leaves itself
"""

from __future__ import annotations

from typing import Final

from wbsim.models.bio import READ, Request
from wbsim.models.io_schedulers.lanes import Lane, Lanes
from wbsim.models.io_schedulers.spec import DeadlineRules, DeadlineSpec
from wbsim.sim.units import MS, S

READ_EXPIRE_NS: Final = 500 * MS
WRITE_EXPIRE_NS: Final = 5 * S
WRITES_STARVED: Final = 2
"""The number of batches of reads that go before waiting writes."""


class Deadline(Lanes):
    """deadline and mq-deadline: batches of ``fifo_batch`` requests in one direction, by sector.

    A batch goes on where the last one of its direction ended.  It begins with the oldest request if that has
    expired, or if no request is ahead.  Without the rule ``resumes`` it also does if the direction changes.
    Two batches of reads go before a batch of writes that wait.
    """

    def __init__(self, *, spec: DeadlineSpec, rules: DeadlineRules) -> None:
        self.sorts = True
        self._reads, self._writes = Lane(READ_EXPIRE_NS), Lane(WRITE_EXPIRE_NS)
        self.lanes = self._reads, self._writes
        self._fifo_batch = spec.fifo_batch
        self._resumes = rules.resumes
        self._lane = self._writes
        self._requests_left = self._starved = 0

    def lane_of(self, request: Request) -> Lane:
        """Return the lane in which *request* waits: that of reads or of writes."""
        return self._reads if request.op == READ else self._writes

    def choose(self, now_ns: int) -> Request:
        """Return the request that leaves at *now_ns*, which stays in its lane; at least one must wait.

        The request counts in the present batch, or begins another one.
        """
        if self._requests_left:
            next_request = self._lane.next_ahead()
            if next_request is not None:
                self._requests_left -= 1
                return next_request
        self._requests_left = self._fifo_batch - 1
        old_lane = self._lane
        self._lane = lane = self._next_direction()
        next_request = lane.next_ahead() if self._resumes or lane is old_lane else None
        return lane.oldest() if next_request is None or lane.expired(now_ns) else next_request

    def _next_direction(self) -> Lane:
        if self._reads and not (self._writes and self._starved >= WRITES_STARVED):
            self._starved += bool(self._writes)
            return self._reads
        self._starved = 0
        return self._writes


SPEC, COMPONENT = DeadlineSpec, Deadline
