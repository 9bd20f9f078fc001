"""Bios, requests, a plug, a request queue without a scheduler, and devices, for one task that submits bios.

Stands for blk_attempt_plug_merge, bio_attempt_back_merge, bio_attempt_front_merge and blk_add_rq_to_plug of
Linux 6.18.  All bios are writes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.literal.clock import SLEEP, Clock, Steps, Task
from wbsim.models.block.spec import BlockCosts, QueueSpec
from wbsim.models.devices.spec import SsdSpec
from wbsim.sim.units import SECTOR_BYTES, S

Log = list[tuple[Any, ...]]
"""Events: (time (ns), name, sectors)."""
_DEVICE_RANK: Final = 0
_MAX_REQUEST_COUNT: Final = 32
"""BLK_MAX_REQUEST_COUNT: the requests of a plug that has one queue."""
_PLUG_FLUSH_BYTES: Final = 128 * 1024
"""BLK_PLUG_FLUSH_SIZE."""


@dataclass
class Bio:
    """Pages that lie together on disk; *end_io* is called with *context* when they are written."""

    start_sector: int
    end_sector: int
    segments: int
    end_io: Callable[[Any], None]
    context: Any


@dataclass
class Request:
    """struct request: its bios in the order of their sectors; it was made at ``started_ns``.

    ``nomerge``: a bio did not fit once, so no other bio is tried (REQ_NOMERGE).
    """

    bios: list[Bio]
    started_ns: int
    nomerge: bool = False

    @property
    def start_sector(self) -> int:
        """Return the first sector."""
        return self.bios[0].start_sector

    @property
    def end_sector(self) -> int:
        """Return the sector behind the last one."""
        return self.bios[-1].end_sector

    def takes(self, bio: Bio, max_sectors: int, max_segments: int) -> str:
        """Merge *bio*, and return the event; "" if it does not touch the request, or if it does not fit."""
        back, front = self.end_sector == bio.start_sector, bio.end_sector == self.start_sector
        if self.nomerge or not (back or front):
            return ""
        sectors = sum(of.end_sector - of.start_sector for of in [*self.bios, bio])
        if sectors > max_sectors or sum(of.segments for of in [*self.bios, bio]) > max_segments:
            self.nomerge = True
            return ""
        self.bios.insert(len(self.bios) if back else 0, bio)
        return "block_bio_backmerge" if back else "block_bio_frontmerge"


@dataclass
class Plug:
    """struct blk_plug of requests of one queue, oldest first; a bio is tried with the newest alone."""

    requests: list[Request] = field(default_factory=list)

    def must_flush(self) -> bool:
        """Return whether the plug is flushed before another request; rq_list_peek returns the oldest."""
        if not self.requests:
            return False
        oldest = self.requests[0]
        size = (oldest.end_sector - oldest.start_sector) * SECTOR_BYTES
        return len(self.requests) >= _MAX_REQUEST_COUNT or size >= _PLUG_FLUSH_BYTES


class NullDevice:
    """A device that ends each request at once."""

    def end_ns(self, now: int, sectors: int) -> int:
        """Return the end (ns) of a request that comes *now*."""
        return now


class Link:
    """A flash drive with enough cache: its link takes one command after another."""

    def __init__(self, spec: SsdSpec) -> None:
        self._spec = spec
        self._free_ns = 0

    def end_ns(self, now: int, sectors: int) -> int:
        """Return the end (ns) of a request that comes *now*."""
        took_ns = self._spec.command_time + sectors * SECTOR_BYTES * S // self._spec.link
        self._free_ns = max(self._free_ns, now) + took_ns
        return self._free_ns + self._spec.latency


class Queue:
    """A queue with *device*, whose driver takes all requests, and the plug of one *task*."""

    def __init__(
        self, clock: Clock, log: Log, task: Task, spec: QueueSpec, costs: BlockCosts,
        device: NullDevice | Link,
    ) -> None:  # fmt: skip
        self._clock = clock
        self._log = log
        self._task = task
        self._costs = costs
        self._device = device
        self._plug = Plug()
        self._max_sectors = spec.limits.max_sectors_bytes // SECTOR_BYTES
        self._max_segments = spec.limits.max_segments
        self._free_tags = spec.nr_requests
        self._waiters: deque[Task] = deque()
        task.before_sleep = self._unplug_at_once

    def submit(self, bio: Bio) -> Steps:
        """submit_bio: add *bio* to a request of the plug, or to a new request."""
        self._note("block_bio_queue", bio)
        if self._plug.requests:
            merge = self._plug.requests[-1].takes(bio, self._max_sectors, self._max_segments)
            if merge:
                self._note(merge, bio)
                return
        while not self._free_tags:
            self._waiters.append(self._task)
            yield SLEEP
        self._free_tags -= 1
        self._note("block_getrq", bio)
        request = Request([bio], self._clock.now)
        yield self._costs.request_ns
        if self._plug.must_flush():
            yield from self.flush()
        self._plug.requests.append(request)

    def flush(self) -> Steps:
        """blk_flush_plug: insert all requests, then issue them."""
        requests = self._take()
        if not requests:
            return
        yield len(requests) * self._costs.insert_ns
        self._issue(requests)
        yield len(requests) * self._costs.dispatch_ns

    def _unplug_at_once(self) -> None:
        """sched_submit_work: a worker issues the plugged requests, which takes no time of the task."""
        self._issue(self._take())

    def _take(self) -> list[Request]:
        """Take the plugged requests, which are issued in the order in which they came."""
        requests, self._plug.requests = self._plug.requests, []
        if requests:
            sectors = ((request.start_sector, request.end_sector) for request in requests)
            self._log.append((self._clock.now, "block_unplug", *sectors))
        return requests

    def _issue(self, requests: list[Request]) -> None:
        """Issue *requests* to the device, and schedule the end of each request."""
        now = self._clock.now
        for request in requests:
            self._note("block_rq_issue", request)
            end_ns = self._device.end_ns(now, request.end_sector - request.start_sector)
            self._clock.at(end_ns, _DEVICE_RANK, self._completion(request))

    def _completion(self, request: Request) -> Callable[[], None]:
        def complete() -> None:
            wait_ns = self._clock.now - request.started_ns
            self._log.append(
                (self._clock.now, "block_rq_complete", request.start_sector, request.end_sector, wait_ns)
            )
            self._free_tags += 1
            if self._waiters:
                self._waiters.popleft().wake(0)
            for bio in request.bios:
                bio.end_io(bio.context)

        return complete

    def _note(self, what: str, of: Bio | Request) -> None:
        self._log.append((self._clock.now, what, of.start_sector, of.end_sector))
