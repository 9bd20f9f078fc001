"""A thread that submits bios: its plug, and its processor time for requests.

Stands for current->plug, submit_bio, blk_queue_bio / blk_mq_submit_bio, blk_start_plug, blk_finish_plug and
the flush of a plug in schedule() (sched_submit_work).  A thread has no queue: each bio names its queue, and
one plug may hold requests of several queues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import attrgetter

from wbsim.models.bio import Bio, Request
from wbsim.models.block.gendisk import GenDisk
from wbsim.models.block.merge import BACK, NEW, Merge
from wbsim.models.block.plug import Plug
from wbsim.models.block.queue import Queue
from wbsim.models.block.request_pool import Pool
from wbsim.models.block.spec import PlugRules
from wbsim.models.block.wbt import WritebackThrottling, throttled
from wbsim.models.interfaces import PlugCallback, Thread
from wbsim.models.time_accounting import REQUEST, WBT, Spent
from wbsim.models.tracepoints import Signals
from wbsim.sim.engine import PARK, Steps, Task, Wait

_queue_of = attrgetter("queue")


class BlockThread(Thread):
    """A task that submits bios, and may have a plug; see `models.interfaces.Thread`."""

    __slots__ = (
        "_callbacks",
        "_on_plug",
        "_on_queue",
        "_on_unplug",
        "_own_plug",
        "_plug",
        "_signals",
        "background",
        "spent",
        "task",
    )

    def __init__(self, task: Task, rules: PlugRules, signals: Signals) -> None:
        self.task = task
        self.spent = Spent()
        self.background = False
        self._signals = signals
        # References to the lists: a signal without observers costs one test of an empty list.
        self._on_queue = signals.block_bio_queue.observers
        self._on_plug = signals.block_plug.observers
        self._on_unplug = signals.block_unplug.observers
        self._own_plug = Plug(rules)
        self._plug: Plug | None = None  # the plug while it is open
        self._callbacks: dict[GenDisk, PlugCallback] = {}

    def start_plug(self) -> bool:
        """Open the thread's plug; return False if one is open already (see `Thread.start_plug`)."""
        if self._plug is not None:
            return False
        self._plug = self._own_plug
        if self._on_plug:
            self._signals.block_plug.emit(task=self.task)
        return True

    def finish_plug(self) -> Iterable[Wait]:
        """Issue the plug's requests, and close the plug; see `Thread.finish_plug`.  Use: `yield from`."""
        if self._callbacks:
            return self._finish_callbacks()
        issue = self.flush_plug()
        self._plug = None
        return issue

    def flush_plug(self) -> Iterable[Wait]:
        """Issue the plug's requests, but leave the plug open; see `Thread.flush_plug`.  Use: `yield from`."""
        assert self._plug is not None, "flush_plug needs a plug"
        if self._callbacks:
            return self._flush_callbacks()
        requests = self._take(self._plug)
        return self._issue(requests) if requests else ()

    def _finish_callbacks(self) -> Steps:
        yield from self._flush_callbacks()
        self._plug = None

    def _flush_callbacks(self) -> Steps:
        """flush_plug_callbacks: let the arrays submit what they kept in the plug, and issue all requests."""
        while self._callbacks:
            callbacks, self._callbacks = self._callbacks, {}
            for callback in callbacks.values():
                yield from callback.call_back(self)
        if self._plug is not None and self._plug.requests:
            yield from self._issue(self._take(self._plug))

    def check_plugged(self, array: GenDisk, make: Callable[[], PlugCallback]) -> PlugCallback | None:
        """Return what *array* keeps in the plug, from *make* at first; None: no plug is open.

        The plug calls the result back when it is flushed, unless `drop_callback` comes before.
        """
        if self._plug is None:
            return None
        callback = self._callbacks.get(array)
        if callback is None:
            callback = self._callbacks[array] = make()
        return callback

    def drop_callback(self, array: GenDisk) -> None:
        """Remove from the plug what *array* keeps in it (`check_plugged`); the array submits that now."""
        del self._callbacks[array]

    def before_sleep(self) -> None:
        """Empty the plug, in no time, before the thread sleeps; see `Thread.before_sleep`."""
        if self._callbacks:
            callbacks, self._callbacks = self._callbacks, {}
            for callback in callbacks.values():
                callback.hand_over()
        if self._plug is not None:
            for queue, requests in groupby(self._take(self._plug, asleep=True), _queue_of):
                queue.insert(list(requests), self.task)

    def submit_bio(self, bio: Bio) -> Steps | None:
        """Submit *bio*; return None if it joined a plugged request, which takes no time.

        Otherwise, use `yield from` on the result.  See `Thread.submit_bio`.
        """
        if self._on_queue:
            self._signals.block_bio_queue.emit(bio=bio, task=self.task)
        disk: GenDisk = bio.queue
        if disk.takes_bios:
            return disk.take_bio(self, bio)
        plug = self._plug
        if plug is None:
            return self._make_request(bio)
        queue: Queue = bio.queue
        merge = plug.attempt_merge(bio, queue.bounds)
        if merge is NEW:
            return self._make_request(bio)
        self._tell(merge, bio)
        return None

    def submit_bios(self, bios: Sequence[Bio]) -> Steps:
        """Submit *bios* in order, to queues of disks; see `Thread.submit_bios`.  Use: `yield from`."""
        ns = 0
        for bio in bios:
            if self._on_queue:
                self._signals.block_bio_queue.emit(bio=bio, task=self.task)
            queue: Queue = bio.queue
            merge = NEW if self._plug is None else self._plug.attempt_merge(bio, queue.bounds)
            if merge is not NEW:
                self._tell(merge, bio)
            elif self._plugs_at_once(queue, bio):
                ns += queue.request_ns
            else:
                if ns:
                    yield ns
                    ns = 0
                yield from self._make_request(bio)
        if ns:
            yield ns

    def _plugs_at_once(self, queue: Queue, bio: Bio) -> bool:
        """Plug a request of *bio* and return True, unless `_make_request` must merge, flush or wait."""
        plug, wbt = self._plug, queue.wbt if throttled(bio) else None
        if plug is None or queue.elevator.requests or plug.must_flush(queue, queue.bounds):
            return False
        if wbt is not None and not wbt.room(self.background, bio.sync):
            return False
        if not queue.pool(bio.sync).take(self.task):
            return False
        if wbt is not None:
            wbt.count += 1
        self._tell(NEW, bio)
        plug.add(queue.new_request(bio))
        self.spent.request += queue.request_ns
        return True

    def _make_request(self, bio: Bio) -> Steps:
        """The rest of blk_mq_submit_bio: merge *bio* in the elevator, or make a new request of it."""
        queue: Queue = bio.queue
        if queue.elevator.requests:
            merge = queue.elevator.attempt_merge(bio)
            if merge is not NEW:
                self._tell(merge, bio)
                self.spent.insert += queue.insert_ns
                yield queue.lock.section(self.task, queue.insert_ns)
                return
        pool = queue.pool(bio.sync)
        if queue.wbt is not None and throttled(bio):
            while not queue.wbt.room(self.background, bio.sync):
                yield from self._sleep_for_room(queue.wbt)
            queue.wbt.count += 1
        if not pool.take(self.task):
            yield from self._sleep_for_request(queue, pool)
        self._tell(NEW, bio)
        request = queue.new_request(bio)
        self.spent.request += queue.request_ns
        yield queue.request_ns
        plug = self._plug
        if plug is None:
            yield from self._issue([request])
            return
        if plug.must_flush(queue, queue.bounds):
            yield from self._issue(self._take(plug))
        plug.add(request)

    def _sleep_for_room(self, wbt: WritebackThrottling) -> Steps:
        """rq_qos_wait: sleep until some of the writes in the queue are complete."""
        self.before_sleep()
        wbt.waiters.append(self.task)
        self.task.waits_for = WBT
        yield PARK

    def _sleep_for_request(self, queue: Queue, pool: Pool) -> Steps:
        """get_request_wait: sleep until *pool* of *queue* has a request for this thread."""
        while True:
            self.before_sleep()
            queue.unplug()
            pool.waiters.append(self.task)
            self.task.waits_for = REQUEST
            yield PARK
            pool.woken(self.task)
            if pool.take(self.task):
                return

    def _take(self, plug: Plug, asleep: bool = False) -> list[Request]:
        """Empty *plug*, and return its requests, queue by queue; *asleep*: the thread goes to sleep."""
        requests, direct = plug.requests, not asleep
        if direct and len(requests) > 1:
            queue: Queue = requests[0].queue
            direct = not queue.elevator.sorts
        requests = plug.take(direct)
        if requests and self._on_unplug:
            self._signals.block_unplug.emit(task=self.task, requests=requests)
        return requests

    def _issue(self, requests: list[Request]) -> Steps:
        """Insert *requests* into their elevators, queue by queue."""
        if requests[0].queue is requests[-1].queue:
            return self._issue_to(requests[0].queue, requests)
        return self._issue_to_each(requests)

    def _issue_to_each(self, requests: list[Request]) -> Steps:
        start = 0
        for end in range(1, len(requests) + 1):
            queue: Queue = requests[start].queue
            if end == len(requests) or requests[end].queue is not queue:
                yield from self._issue_to(queue, requests[start:end])
                start = end

    def _issue_to(self, queue: Queue, requests: list[Request]) -> Steps:
        count = len(requests)
        self.spent.insert += count * queue.insert_ns
        yield queue.lock.section(self.task, count * queue.insert_ns)
        queue.insert(requests, self.task)
        self.spent.dispatch += count * queue.dispatch_ns
        yield count * queue.dispatch_ns

    def _tell(self, merge: Merge, bio: Bio) -> None:
        signals = self._signals
        if merge is NEW:
            signal = signals.block_getrq
        else:
            signal = signals.block_bio_backmerge if merge is BACK else signals.block_bio_frontmerge
        if signal.observers:
            signal.emit(bio=bio, task=self.task)
