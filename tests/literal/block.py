"""A plug, a request queue without a scheduler, and devices, for one task that submits bios."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from tests.literal.clock import SLEEP, Clock, Steps, Task
from wbsim.models.bio import Bio, Request
from wbsim.models.block.merge import BACK, FRONT, NEW, bounds_of
from wbsim.models.block.plug import Plug
from wbsim.models.block.spec import BlockCosts, PlugRules, QueueSpec
from wbsim.models.devices.spec import SsdSpec
from wbsim.sim.units import SECTOR_BYTES, S

Log = list[tuple[Any, ...]]
"""Events: (time (ns), name, sectors)."""
_DEVICE_RANK: Final = 0
_EVENTS: Final = {NEW: "block_getrq", BACK: "block_bio_backmerge", FRONT: "block_bio_frontmerge"}
"""The event of a bio, by its merge."""


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
        self, clock: Clock, log: Log, task: Task, spec: QueueSpec, rules: PlugRules, costs: BlockCosts,
        device: NullDevice | Link,
    ) -> None:  # fmt: skip
        self._clock = clock
        self._log = log
        self._task = task
        self._costs = costs
        self._device = device
        self._plug = Plug(rules)
        self._bounds = bounds_of(spec.limits, rules)
        self._free_tags = spec.nr_requests
        self._waiters: deque[Task] = deque()
        task.before_sleep = self._unplug_at_once

    def submit(self, bio: Bio) -> Steps:
        """submit_bio: add *bio* to a request of the plug, or to a new request."""
        self._note("block_bio_queue", bio)
        merge = self._plug.attempt_merge(bio, self._bounds)
        if merge is not NEW:
            self._note(_EVENTS[merge], bio)
            return
        while not self._free_tags:
            self._waiters.append(self._task)
            yield SLEEP
        self._free_tags -= 1
        self._note(_EVENTS[NEW], bio)
        request = Request(bio, self._clock.now)
        yield self._costs.request_ns
        if self._plug.must_flush(bio.queue, self._bounds):
            yield from self.flush()
        self._plug.add(request)

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
        """Take the plugged requests in their order of issue."""
        requests = self._plug.take(direct=True)
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
                assert bio.end_io is not None, "each bio must belong to a file"
                bio.end_io(bio.context)

        return complete

    def _note(self, what: str, of: Bio | Request) -> None:
        self._log.append((self._clock.now, what, of.start_sector, of.end_sector))
