"""The time that requests take, counted from the signals of the block layer alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

from wbsim.models.block.queue import Queue
from wbsim.models.tracepoints import Signals


class Clock(Protocol):
    """An object with the simulated time."""

    @property
    def now(self) -> int:
        """Return the time (ns)."""


class Gauge:
    """A level over time; ``area`` is its exact integral (level times ns)."""

    __slots__ = ("_area", "_clock", "_since_ns", "level", "peak")

    def __init__(self, clock: Clock, level: int = 0) -> None:
        self._clock = clock
        self._area = 0
        self._since_ns = clock.now
        self.level = level
        self.peak = level

    def add(self, change: int) -> None:
        """Change the level by *change*."""
        now = self._clock.now
        self._area += self.level * (now - self._since_ns)
        self._since_ns = now
        self.level += change
        if self.level > self.peak:
            self.peak = self.level

    @property
    def area(self) -> int:
        """Return the integral of the level up to now (level times ns)."""
        return self._area + self.level * (self._clock.now - self._since_ns)


class Waits:
    """The requests of each queue, from block_getrq to block_rq_complete.

    ``waits_ns``: the summed waits by name of the queue and op; a request that took in another one counts from
    the block_getrq of the older.  ``joined_ns``: the time of each younger one until it was taken in.
    ``made`` and ``driven``: the requests of the queue and those of the driver (``stat.in_flight``) over time.
    ``driver_ns``: the summed times from block_rq_issue to block_rq_complete.
    """

    def __init__(self, signals: Signals, clock: Clock) -> None:
        self._clock = clock
        self._made_ns: dict[Any, int] = {}  # by the bio of each block_getrq
        self._issued_ns: dict[Any, int] = {}
        self.waits_ns = Counter[tuple[str, str]]()
        self.joined_ns = Counter[str]()
        self.driver_ns = Counter[str]()
        self.made: dict[str, Gauge] = {}
        self.driven: dict[str, Gauge] = {}
        signals.block_getrq.observers.append(self._getrq)
        signals.block_rq_merge.observers.append(self._merge)
        signals.block_rq_issue.observers.append(self._issue)
        signals.block_rq_complete.observers.append(self._complete)

    @property
    def unfinished(self) -> int:
        """Return the number of requests that have not completed."""
        return sum(gauge.level for gauge in self.made.values())

    def check(self, queues: Mapping[str, Queue]) -> None:
        """Check Little's law: the summed times of requests are the integral of their number, to the ns."""
        assert self.unfinished == 0
        for name, queue in queues.items():
            reads = self.waits_ns[name, "R"]
            writes = sum(ns for (of, op), ns in self.waits_ns.items() if of == name and op != "R")
            assert (queue.stat.reads.wait_ns, queue.stat.writes.wait_ns) == (reads, writes)
            if name in self.made:
                assert self.made[name].area == reads + writes + self.joined_ns[name]
                assert self.driven[name].area == self.driver_ns[name]

    def _getrq(self, _: str, bio: Any, task: Any) -> None:
        name = bio.queue.name
        self._made_ns[bio] = self._clock.now
        if name not in self.made:
            self.made[name], self.driven[name] = Gauge(self._clock), Gauge(self._clock)
        self.made[name].add(1)

    def _merge(self, _: str, request: Any) -> None:
        (heir,) = (
            of
            for of in request.queue.elevator.requests
            if of.end_sector == request.end_sector and request.bios[0] in of.bios
        )
        own = self._since_ns(bio for bio in heir.bios if bio not in request.bios)
        self.joined_ns[request.queue.name] += self._clock.now - max(own, self._since_ns(request.bios))
        self.made[request.queue.name].add(-1)

    def _since_ns(self, bios: Any) -> int:
        return min(self._made_ns[bio] for bio in bios if bio in self._made_ns)

    def _issue(self, _: str, request: Any) -> None:
        self._issued_ns[request] = self._clock.now
        self._count_driven(request.queue)

    def _complete(self, _: str, request: Any) -> None:
        name = request.queue.name
        self.waits_ns[name, request.op] += self._clock.now - self._since_ns(request.bios)
        self.driver_ns[name] += self._clock.now - self._issued_ns.pop(request)
        self.made[name].add(-1)
        self._count_driven(request.queue)

    def _count_driven(self, queue: Queue) -> None:
        gauge = self.driven[queue.name]
        gauge.add(queue.stat.in_flight - gauge.level)
