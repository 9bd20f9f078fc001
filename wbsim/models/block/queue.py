"""The request queue: requests in the elevator, requests in the driver, and completions.

Stands for __elv_add_request, __blk_run_queue and blk_account_io_done (block/blk-core.c).  `flush` sends the
flushes.  Left out: the queue lock in completions, several hardware queues and their software contexts.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Final, Literal

from wbsim.models.bio import (
    FLUSH,
    FLUSH_FUA,
    FUA,
    READ,
    Bio,
    BlockDevice,
    IoScheduler,
    Request,
    programmed_bytes,
)
from wbsim.models.block.elevator import Elevator
from wbsim.models.block.flush import FlushQueue
from wbsim.models.block.gendisk import GenDisk
from wbsim.models.block.merge import bounds_of
from wbsim.models.block.plug import QueuePlug, plug_of
from wbsim.models.block.request_pool import POOLS, Pool
from wbsim.models.block.spec import BlockCosts, PlugRules, QueueSpec
from wbsim.models.block.wbt import WritebackThrottling, throttled
from wbsim.models.parts import Parts
from wbsim.models.scheduler.cpu import ANY_CPU, Processors
from wbsim.sim.engine import Task
from wbsim.sim.invariants import require

_FLUSHES: Final = (FLUSH, FLUSH_FUA, FUA)


class Queue(GenDisk):
    """request_queue: the queue of a disk that takes requests."""

    def __init__(
        self,
        *,
        parts: Parts,
        name: str,
        spec: QueueSpec,
        rules: PlugRules,
        pool: Literal["request_list", "tags"],
        costs: BlockCosts,
        device: BlockDevice,
        processors: Processors,
        scheduler: IoScheduler,
        volatile: bool = False,
        wbt: bool = False,
    ) -> None:
        env = parts.env
        super().__init__(env, name, spec.limits, volatile)
        self._device = device
        self._processors = processors
        self._depth = spec.driver_depth
        self._to_submitter = spec.interrupts == "submitter"
        size = spec.elevator.pool_size(spec.nr_requests)
        self._async, self._sync = POOLS[pool](env, size, parts.congestion.end)
        self._plug = plug_of(rules, env, parts.urgent, self._feed_driver)
        self._flushes: deque[Request] = deque()  # they pass the elevator
        if wbt:
            depth = spec.queue_depth or spec.nr_requests
            self.wbt = WritebackThrottling(env, depth, volatile)
        self.request_ns, self.insert_ns = costs.request_ns, costs.insert_ns
        self.dispatch_ns, self.complete_ns = costs.dispatch_ns, costs.complete_ns
        self.bounds = bounds_of(spec.limits, rules)
        self.elevator = Elevator(scheduler, self.bounds, self._put)
        self._flush = FlushQueue(env, device, spec.fua) if volatile else None
        self.lock = parts.spin_lock("queue_lock")
        self.signals = parts.signals
        self._on_complete = self._complete  # a bound method that is made once

    def uses(self) -> dict[str, float]:
        """Return how long (ns) each part of the device was used so far, by name; see `BlockDevice.uses`."""
        return self._device.uses()

    def programmed_bytes(self) -> int:
        """Return how many bytes the flash of the device programmed so far; 0: the device has no flash."""
        return programmed_bytes(self._device)

    def new_request(self, bio: Bio) -> Request:
        """Return a new request of *bio*, whose wait begins now.

        The caller has taken a place in the `pool` for it.
        """
        return Request(bio, self._env.now)

    def pool(self, sync: bool) -> Pool:
        """Return the pool of synchronous (*sync*) or of asynchronous requests.

        A thread takes a place there before it makes a request.
        """
        return self._sync if sync else self._async

    @property
    def congested(self) -> bool:
        """True if most of the asynchronous requests are taken; False with tags (bdi_write_congested)."""
        return self._async.congested

    @property
    def queue_length(self) -> int:
        """The number of requests that the driver has not taken yet, without those in plugs of tasks."""
        return len(self.elevator.requests) + len(self._flushes)

    def unplug(self) -> None:
        """Open the queue's plug (to 2.6.38) for a task that waits, and feed the driver; else do nothing."""
        if self._plug is not None and self._plug.closed:
            self._plug.closed = False
            self._feed_driver()

    def check(self) -> None:
        """Check that each request has a place in the pool, and that the elevator finds each waiting request.

        Raises:
            LawBroken: a request was lost or has no place in the pool, or a part was used for longer than the
                run lasted.
        """
        queue_length, places, stat = self.queue_length, self._async.count + self._sync.count, self.stat
        require(
            queue_length >= 0 and 0 <= stat.in_flight <= min(self._depth, places - queue_length),
            f"{self.name}: every request must have a place in the pool: {queue_length} wait,"
            f" {stat.in_flight} of at most {self._depth} are in the driver, {places} places are taken",
        )
        require(min(self._async.count, self._sync.count) >= 0, f"{self.name}: a request was freed twice")
        require(
            self.wbt is None or self._async.count <= self.wbt.count <= self.wbt.most,
            f"{self.name}: writeback throttling must count every buffered write in the queue, and admit at"
            " most its limit",
        )
        for part, ns in {"queue": self.busy_ns, **self.uses()}.items():
            require(
                0 <= ns <= self._env.now,
                f"{self.name}: {part} was in use for {ns:.0f} ns of {self._env.now} ns",
            )
        self.elevator.check()

    def _put(self, request: Request) -> None:
        """Free *request*, whose bios another request of the elevator has now."""
        if self.signals.block_rq_merge.observers:
            self.signals.block_rq_merge.emit(request=request)
        self._free(request)

    def _free(self, request: Request) -> None:
        """Return the place of *request* to the pool."""
        self.pool(request.sync).free()
        if self.wbt is not None and throttled(request):
            self.wbt.done()

    def insert(self, requests: list[Request], task: Task) -> None:
        """Put *requests* of *task* into the elevator, in order, and feed the driver; in no time.

        Each has a place in the `pool`.  The caller accounts for the time of the insertion.  Completions
        interrupt the processor that *task* has now, or a random one (``interrupts`` of `QueueSpec`).

        A scheduler that sorts sees all requests before the driver gets one.  A flush passes the elevator: it
        leaves as soon as the driver takes a request.
        """
        stat, elevator = self.stat, self.elevator
        cpu = task.cpu if self._to_submitter else ANY_CPU  # the processor that the completions interrupt
        if self._busy_since is None:
            self._becomes_busy()
        sorts = elevator.sorts
        for request in requests:
            request.cpu = cpu
            if self._plug is not None:
                self._gather(request, self._plug)
            elif request.nomerge and request.op in _FLUSHES:
                self._flushes.append(request)
            elif not sorts and not elevator.requests and stat.in_flight < self._depth:
                self._dispatch(request)
            elif elevator.insert(request):
                self._waits(request)
        if (sorts or self._flushes) and self._plug is None:
            self._feed_driver()

    def _gather(self, request: Request, plug: QueuePlug) -> None:
        """The end of __make_request (to 2.6.38): put *request* into the elevator, behind the queue's plug."""
        if not self.elevator.requests:
            plug.close()
        self.elevator.add(request)
        self._waits(request)
        queued = self._async.count + self._sync.count - self.stat.in_flight
        if request.bios[0].unplug or queued >= plug.requests:
            self.unplug()

    def _waits(self, request: Request) -> None:
        if self.signals.block_rq_insert.observers:
            self.signals.block_rq_insert.emit(request=request)

    def _run_on(self) -> None:
        """blk_run_queue after a completion: open the queue's plug and feed the driver.

        If no request is left, the busy time ends.
        """
        if self._plug is not None:
            self._plug.closed = False
        if self.elevator.requests or self._flushes:
            self._feed_driver()
        elif not self.stat.in_flight:
            self._becomes_idle()

    def _feed_driver(self) -> None:
        stat, elevator, flushes = self.stat, self.elevator, self._flushes
        while flushes and stat.in_flight < self._depth:
            self._dispatch(flushes.popleft())
        while elevator.requests and stat.in_flight < self._depth:
            request = elevator.next(self._env.now)
            if request is None:
                return
            self._dispatch(request)

    def _dispatch(self, request: Request) -> None:
        self.stat.in_flight += 1
        if self.signals.block_rq_issue.observers:
            self.signals.block_rq_issue.emit(request=request)
        done = partial(self._on_complete, request)
        if self._flush is not None and request.op in _FLUSHES:
            self._flush.submit(request, done)
        else:
            self._device.submit(request, done)

    def _complete(self, request: Request) -> None:
        self.stat.in_flight -= 1
        # A flush without data is a write of no sectors in /proc/diskstats, too (measured with 6.18).
        stat = self.stat.reads if request.op == READ else self.stat.writes
        stat.ios += 1
        stat.merges += request.merges
        stat.sectors += request.end_sector - request.start_sector
        stat.wait_ns += self._env.now - request.started_ns
        self._processors.interrupt(self.complete_ns, request.cpu)
        self.ends_on = request.cpu
        if self.signals.block_rq_complete.observers:
            self.signals.block_rq_complete.emit(request=request)
        self._free(request)
        self.elevator.complete(request, self._env.now)
        for bio in request.bios:
            if bio.end_io is not None:
                bio.end_io(bio.context)
        self._run_on()
