"""Flushes of a device with a volatile cache: one at a time, for all requests that wait for it.

Stands for block/blk-flush.c.  A request with PREFLUSH and FUA takes up to three steps; one with FUA alone
begins with the second:

1. A flush, so that all earlier writes are safe.
2. Its data.  With FUA, a device that knows it completes the data when it is safe.
3. With FUA on another device, a second flush.

While a flush is at the device, other requests come to wait for one, and share the next.  The next flush is
sent when no data of step 2 is at the device, because this data may need a flush, too.

Left out: barriers of 2.6.36 and older drain the queue before step 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from wbsim.models.bio import FLUSH_FUA, FUA, BlockDevice, Piece, Request
from wbsim.sim.engine import Environment
from wbsim.sim.units import S

TIMEOUT_NS: Final = 5 * S
"""FLUSH_PENDING_TIMEOUT: after it, a flush does not wait for data."""
_WITH_FUA: Final = (FLUSH_FUA, FUA)


class Step(NamedTuple):
    """A request that waits for its first flush, or for the one behind its data."""

    request: Request
    done: Callable[[], None]
    is_first: bool


class FlushQueue:
    """blk_flush_queue: the flushes of *device*; *fua*: it completes a write with FUA when it is safe."""

    def __init__(self, env: Environment, device: BlockDevice, fua: bool) -> None:
        self._env = env
        self._device = device
        self._fua = fua
        self._pending: list[Step] = []
        self._pending_since_ns = 0
        self._at_device: list[Step] = []
        self._data = 0  # the requests in step 2

    def submit(self, request: Request, done: Callable[[], None]) -> None:
        """Start *request*, which has PREFLUSH or FUA; call *done* when it completes (blk_insert_flush).

        Its flush may wait until other flushes and data are complete; all requests that wait share it.
        """
        if request.op == FUA:
            self._send_data(request, done)
        else:
            self._add(Step(request, done, is_first=True))

    def _add(self, step: Step) -> None:
        if not self._pending:
            self._pending_since_ns = self._env.now
        self._pending.append(step)
        self._kick()

    def _kick(self) -> None:
        """blk_kick_flush: send a flush for all requests that wait for one."""
        if self._at_device or not self._pending:
            return
        if self._data and self._env.now < self._pending_since_ns + TIMEOUT_NS:
            return
        self._at_device, self._pending = self._pending, []
        self._device.submit(Piece(0, 0, "F"), self._end_flush)

    def _end_flush(self) -> None:
        """flush_end_io: let each of the requests take its next step."""
        steps, self._at_device = self._at_device, []
        for request, done, is_first in steps:
            if is_first and request.end_sector > request.start_sector:
                self._send_data(request, done)
            else:
                done()
            self._kick()  # after each request, as in blk_flush_complete_seq, and not once after all of them

    def _send_data(self, request: Request, done: Callable[[], None]) -> None:
        self._data += 1
        fua = self._fua and request.op in _WITH_FUA
        data = Piece(request.start_sector, request.end_sector, FUA if fua else "W")
        self._device.submit(data, partial(self._end_data, request, done))

    def _end_data(self, request: Request, done: Callable[[], None]) -> None:
        """mq_flush_data_end_io."""
        self._data -= 1
        if self._fua or request.op not in _WITH_FUA:
            done()
            self._kick()
        else:
            self._add(Step(request, done, is_first=False))
