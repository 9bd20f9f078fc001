"""The request queue: get a request, plug it or insert it, run the driver, complete.

Stands for blk_queue_bio, get_request, blk_flush_plug_list, __blk_run_queue (block/blk-core.c) and the legacy
request pool; `BlockSubmitter` is the thread as it sees it (current->plug).  Left out: the
queue lock's use by completions, congestion_wait, multi-queue software contexts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from models.block.bio import Bio, Request
from models.block.elevator import Elevator, ElevatorRules
from models.block.merge import BACK, FRONT, NEW, Merge, Plug, PlugRules, QueueLimits
from models.block.run_plug import RunPlug
from models.seams import BatchDevice, BlockDevice, Site
from sim.cpu import Processors
from sim.engine import PARK, Environment, Steps, Task, Wait
from sim.param import Count, Ns, Spec
from sim.units import MS, PAGE_SECTORS


def _nothing(pages: int) -> None:
    """No end_io yet."""


BATCH_REQUESTS = 32  # BLK_BATCH_REQ
BATCH_NS = 20 * MS  # BLK_BATCH_TIME


class QueueSpec(Spec):
    """One request queue: its limits, its scheduler, its pool and the driver's depth."""

    limits: QueueLimits
    elevator: ElevatorRules
    nr_requests: Count
    driver_depth: Count


class BlockCosts(Spec):
    """Processor time per request: of the submitter to make, to insert (under the queue lock) and to issue
    it, and of the interrupt that completes it, whoever is interrupted.
    """

    request_ns: Ns
    insert_ns: Ns
    dispatch_ns: Ns
    complete_ns: Ns


@dataclass(slots=True)
class DiskStats:
    """The write half of /proc/diskstats, with exact times: ``wait_ns`` is summed over the requests."""

    ios: int = 0
    merges: int = 0
    sectors: int = 0
    in_flight: int = 0
    wait_ns: int = 0


class _Pool:
    """request_list: ``nr_requests`` of one sync class, with batching (mechanisms.md 1.6)."""

    __slots__ = ("_batchers", "_env", "_full", "_nr", "count", "waiters")

    def __init__(self, env: Environment, nr_requests: int) -> None:
        self._env = env
        self._nr = nr_requests
        self._full = False
        self._batchers: dict[Task, tuple[int, int]] = {}
        self.count = 0
        self.waiters: deque[Task] = deque()

    def take(self, task: Task) -> bool:
        """Allocate one request for *task*, if it may have one now."""
        if self.count + 1 >= self._nr:
            if not self._full:
                self._full = True
                self.make_batcher(task)
            elif not self._may_batch(task):
                return False
        if self.count >= 3 * self._nr // 2:
            return False
        self.count += 1
        return True

    def make_batcher(self, task: Task) -> None:
        """Let *task* overdraw the pool a little, for a little while."""
        self._batchers[task] = (BATCH_REQUESTS, self._env.now + BATCH_NS)

    def _may_batch(self, task: Task) -> bool:
        left, until_ns = self._batchers.pop(task, (0, 0))
        if left == 0 or self._env.now > until_ns:
            return False
        self._batchers[task] = (left - 1, until_ns)
        return True

    def has_room(self, requests: int) -> bool:
        """Whether so many can be taken at once; an empty pool lets any number pass."""
        return self.count == 0 or self.count + requests <= self._nr

    def free(self, requests: int = 1) -> None:
        """Return *requests*; wake the first sleeper if there is room."""
        self.count -= requests
        if self.count + 1 <= self._nr:
            if self.waiters:
                self._env.wake(self.waiters.popleft())
            else:
                self._full = False


class RequestQueue:
    """The queue of one block device."""

    def __init__(
        self,
        *,
        site: Site,
        spec: QueueSpec,
        rules: PlugRules,
        complete_ns: int,
        device: BlockDevice,
        processors: Processors,
    ) -> None:
        self._env = env = site.env
        self._device = device
        self._complete_ns = complete_ns
        self._processors = processors
        self._depth = spec.driver_depth
        self.elevator = Elevator(spec.elevator, spec.limits)
        self._batches: BatchDevice | None = None
        if (
            spec.driver_depth >= spec.nr_requests
            and spec.elevator.scheduler == "noop"
            and isinstance(device, BatchDevice)
        ):
            self._batches = device
        self._async, self._sync = _Pool(env, spec.nr_requests), _Pool(env, spec.nr_requests)
        self.limits = spec.limits
        self.rules = rules
        self.lock = site.spin_lock("queue_lock")
        self.signals = site.signals
        self.stat = DiskStats()

    def pool(self, sync: bool) -> _Pool:
        """The request pool of the sync or the async class."""
        return self._sync if sync else self._async

    def insert(self, requests: Sequence[Request]) -> None:
        """Put *requests* into the elevator and run the queue."""
        stat, elevator = self.stat, self.elevator
        for request in requests:
            if not elevator.waiting and stat.in_flight < self._depth:
                self._dispatch(request)
            elif not elevator.insert(request):
                stat.merges += 1
                self.pool(request.sync).free()

    @property
    def takes_batches(self) -> bool:
        """Whether nothing ever waits in the elevator, and the device does not look at where a write goes."""
        return self._batches is not None

    def submit_batch(self, requests: NDArray[np.int64], end_io: Callable[[int], None]) -> None:
        """Give the device *requests*, rows of first block and pages; *end_io* is told when the last has completed."""
        assert self._batches is not None, "the queue does not take batches"
        count, pages, submitted_ns = len(requests), int(requests[:, 1].sum()), self._env.now
        self.stat.in_flight += count
        self._async.count += count

        def complete() -> None:
            stat = self.stat
            stat.in_flight -= count
            stat.ios += count
            stat.sectors += pages * PAGE_SECTORS
            stat.wait_ns += count * (self._env.now - submitted_ns)
            self._processors.interrupt(count * self._complete_ns)
            self._async.free(count)
            end_io(pages)

        self._batches.submit_batch(requests, complete)

    def _feed_driver(self) -> None:
        stat, elevator = self.stat, self.elevator
        while elevator.waiting and stat.in_flight < self._depth:
            self._dispatch(elevator.next())

    def _dispatch(self, request: Request) -> None:
        request.submitted_ns = self._env.now
        self.stat.in_flight += 1
        if self.signals.block_rq_issue.observers:
            self.signals.block_rq_issue.emit(request=request)
        self._device.submit(request, partial(self._complete, request))

    def _complete(self, request: Request) -> None:
        stat, bios = self.stat, request.bios
        stat.in_flight -= 1
        stat.ios += 1
        stat.merges += len(bios) - 1
        stat.sectors += request.end_sector - request.start_sector
        stat.wait_ns += self._env.now - request.submitted_ns
        self._processors.interrupt(self._complete_ns)
        if self.signals.block_rq_complete.observers:
            self.signals.block_rq_complete.emit(request=request)
        (self._sync if request.sync else self._async).free()
        for bio in bios:
            if bio.end_io is not None:
                bio.end_io(bio.context)
        if self.elevator.waiting:
            self._feed_driver()


class BlockSubmitter:
    """A thread that submits bios: its plug, and what it pays for requests."""

    __slots__ = (
        "_dispatch_ns", "_insert_ns", "_on_plug", "_on_queue", "_on_unplug", "_own_plug", "_plug", "_queue",
        "_request_ns", "_runs", "_runs_end", "_signals", "limits", "owner", "task",
    )  # fmt: skip

    def __init__(self, task: Task, queue: RequestQueue, costs: BlockCosts) -> None:
        self.task = task
        self.owner: object = queue
        self.limits = queue.limits
        self._queue = queue
        self._signals = queue.signals
        # The lists themselves: an unwatched signal then costs one test of an empty list.
        self._on_queue = queue.signals.block_bio_queue.observers
        self._on_plug = queue.signals.block_plug.observers
        self._on_unplug = queue.signals.block_unplug.observers
        self._request_ns = costs.request_ns
        self._insert_ns = costs.insert_ns
        self._dispatch_ns = costs.dispatch_ns
        self._own_plug = Plug(queue.rules, queue.limits)
        self._runs = RunPlug(queue.rules, queue.limits)
        self._runs_end: Callable[[int], None] = _nothing
        self._plug: Plug | None = None  # the plug while it is open

    def start_plug(self) -> bool:
        """See `Submitter.start_plug`."""
        if self._plug is not None:
            return False
        self._plug = self._own_plug
        if self._on_plug:
            self._signals.block_plug.emit(task=self.task)
        return True

    def finish_plug(self) -> Iterable[Wait]:
        """See `Submitter.finish_plug`."""
        plug, self._plug = self._plug, None
        assert plug is not None, "finish_plug without start_plug"
        if self._runs.requests:
            return self._issue_runs(self._runs.take())
        return self._issue(self._taken(plug)) if plug.requests else ()

    def before_sleep(self) -> None:
        """See `Submitter.before_sleep`."""
        if self._plug is not None and self._plug.requests:
            self._queue.insert(self._taken(self._plug))
        if self._runs.requests:
            self._queue.submit_batch(self._runs.take(), self._runs_end)

    def merge(self, bio: Bio) -> bool:
        """See `Submitter.merge`."""
        if self._on_queue:
            self._signals.block_bio_queue.emit(bio=bio, task=self.task)
        plug = self._plug
        if plug is None or not plug.requests:
            return False
        merge = plug.attempt_merge(bio)
        if merge is NEW:
            return False
        self._tell(merge, bio)
        return True

    def make_request(self, bio: Bio) -> Steps:
        """See `Submitter.make_request`."""
        queue = self._queue
        if queue.elevator.waiting:
            merge = queue.elevator.attempt_merge(bio)
            if merge is not NEW:
                self._tell(merge, bio)
                yield queue.lock.section(self.task, self._insert_ns)
                return
        pool = queue.pool(bio.sync)
        while not pool.take(self.task):
            self.before_sleep()
            pool.waiters.append(self.task)
            yield PARK
            pool.make_batcher(self.task)
        self._tell(NEW, bio)
        yield self._request_ns
        plug = self._plug
        if plug is None:
            yield from self._issue([Request(bio)])
            return
        if plug.requests and plug.must_flush(bio.owner):
            yield from self._issue(self._taken(plug))
        plug.add(Request(bio))

    def submit_runs(self, bios: NDArray[np.int64], end_io: Callable[[int], None]) -> Steps:
        """See `Submitter.submit_runs`."""
        if not self._queue.takes_batches or self._watched():
            for block, pages in bios.tolist():
                bio = Bio(
                    block * PAGE_SECTORS, pages * PAGE_SECTORS, segments=pages, owner=self.owner, end_io=end_io,
                    context=pages,
                )  # fmt: skip
                if not self.merge(bio):
                    yield from self.make_request(bio)
            return
        self._runs_end = end_io
        made, issued = self._runs.add(bios)
        self._queue.stat.merges += len(bios) - made
        yield made * self._request_ns
        if self._plug is None:
            issued = np.concatenate([issued, self._runs.take()])
        if len(issued):
            yield from self._issue_runs(issued)

    def _watched(self) -> bool:
        """Whether somebody wants to see single bios or requests."""
        signals = self._signals
        return bool(
            self._on_queue or self._on_plug or signals.block_getrq.observers or signals.block_rq_issue.observers
        )

    def _issue_runs(self, requests: NDArray[np.int64]) -> Steps:
        queue, count = self._queue, len(requests)
        pool = queue.pool(sync=False)
        while not pool.has_room(count):
            pool.waiters.append(self.task)
            yield PARK
        yield queue.lock.section(self.task, count * self._insert_ns)
        queue.submit_batch(requests, self._runs_end)
        yield count * self._dispatch_ns

    def _taken(self, plug: Plug) -> list[Request]:
        requests = plug.take()
        if self._on_unplug:
            self._signals.block_unplug.emit(task=self.task, requests=requests)
        return requests

    def _issue(self, requests: list[Request]) -> Steps:
        queue = self._queue
        n = len(requests)
        yield queue.lock.section(self.task, n * self._insert_ns)
        queue.insert(requests)
        yield n * self._dispatch_ns

    def _tell(self, merge: Merge, bio: Bio) -> None:
        signals = self._signals
        if merge is BACK:
            signal = signals.block_bio_backmerge
        elif merge is FRONT:
            signal = signals.block_bio_frontmerge
        else:
            signal = signals.block_getrq
        if signal.observers:
            signal.emit(bio=bio, task=self.task)
