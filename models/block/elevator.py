"""Requests that wait for the device, and merge while they wait.

Stands for elv_merge, elv_attempt_insert_merge (block/elevator.c), noop and deadline.  Pure.  The one-hit
cache ``last_merge`` is no mechanism of its own here: the hash of ends finds the same request.
Left out: CFQ, reads and their preference, the write expiry (5 s).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from typing import Literal

from models.block.bio import Bio, Request
from models.block.merge import BACK, FRONT, NEW, Merge, QueueLimits, try_back, try_front, try_join
from sim.param import Count, Spec


class ElevatorRules(Spec):
    """``scheduler`` as in sysfs; deadline dispatches by sector in batches of ``fifo_batch``."""

    scheduler: Literal["noop", "deadline"]
    fifo_batch: Count


class Elevator:
    """The requests of one queue that no driver has taken yet."""

    def __init__(self, rules: ElevatorRules, limits: QueueLimits) -> None:
        self._sorts = rules.scheduler == "deadline"
        self._batch = rules.fifo_batch
        self._limits = limits
        self._arrivals = 0
        self.waiting: OrderedDict[Request, int] = OrderedDict()  # each with its arrival, oldest first
        self._by_sector: list[tuple[int, int, Request]] = []
        self._by_end: dict[int, Request] = {}
        self._by_start: dict[int, Request] = {}
        self._head = 0
        self._left_in_batch = 0

    def attempt_merge(self, bio: Bio) -> Merge:
        """BACK by the hash of ends; FRONT only with a scheduler that sorts."""
        if not self.waiting or self._limits.nomerges:
            return NEW
        request = self._by_end.get(bio.start_sector)
        if request is not None:
            end = request.end_sector
            if try_back(request, bio, self._limits):
                self._end_moved(request, end)
                return BACK
        request = self._by_start.get(bio.end_sector) if self._sorts else None
        if request is not None:
            start = request.start_sector
            if try_front(request, bio, self._limits):
                self._start_moved(request, start)
                return FRONT
        return NEW

    def insert(self, request: Request) -> bool:
        """Add *request*, or append it to a waiting one (sort-merge insertion); whether it was added."""
        if self.waiting and not self._limits.nomerges:
            before = self._by_end.get(request.start_sector)
            if before is not None:
                end = before.end_sector
                if try_join(before, request, self._limits):
                    self._end_moved(before, end)
                    return False
        self.waiting[request] = self._arrivals
        self._arrivals += 1
        self._by_end[request.end_sector] = request
        if self._sorts:
            self._by_start[request.start_sector] = request
            insort(self._by_sector, self._key(request))
        return True

    def next(self) -> Request:
        """Take the request that goes to the driver now."""
        if self._sorts:
            request = self._next_in_sweep()
        else:
            request, _ = self.waiting.popitem(last=False)
        _forget(self._by_end, request.end_sector, request)
        return request

    def _next_in_sweep(self) -> Request:
        if self._left_in_batch == 0:
            self._left_in_batch = self._batch
            self._head = next(iter(self.waiting)).start_sector
        index = bisect_left(self._by_sector, (self._head,))
        _, _, request = self._by_sector.pop(index if index < len(self._by_sector) else 0)
        del self.waiting[request]
        _forget(self._by_start, request.start_sector, request)
        self._left_in_batch = self._left_in_batch - 1 if self.waiting else 0
        self._head = request.end_sector
        return request

    def _key(self, request: Request) -> tuple[int, int, Request]:
        return request.start_sector, self.waiting[request], request

    def _end_moved(self, request: Request, old_end: int) -> None:
        _forget(self._by_end, old_end, request)
        self._by_end[request.end_sector] = request

    def _start_moved(self, request: Request, old_start: int) -> None:
        _forget(self._by_start, old_start, request)
        self._by_start[request.start_sector] = request
        del self._by_sector[bisect_left(self._by_sector, (old_start, self.waiting[request]))]
        insort(self._by_sector, self._key(request))


def _forget(index: dict[int, Request], sector: int, request: Request) -> None:
    if index.get(sector) is request:
        del index[sector]
