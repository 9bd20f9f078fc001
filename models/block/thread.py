"""A thread that submits bios: its plug, and what it pays for requests.

Stands for current->plug, submit_bio, blk_queue_bio / blk_mq_submit_bio, blk_start_plug, blk_finish_plug and
what schedule() does to a plug (sched_submit_work).  A thread has no queue: each bio names its own, and one
plug may hold requests of several.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from models.bio import Bio, Request
from models.block.merge import FATES, IS_NEW, NEW, keep_bio
from models.block.plug import Plug, walk
from models.block.pool import Pool
from models.block.queue import Queue
from models.block.runs import FLUSHED, Batch, EndIo, PluggedRuns
from models.block.spec import PlugRules
from models.block.wbt import WritebackThrottling
from models.seams import Thread
from models.signals import Signals
from models.spent import Spent
from sim.engine import PARK, Steps, Task, Wait
from sim.units import PAGE_SECTORS

_queue_of = attrgetter("queue")


class BlockThread(Thread):
    """See `models.seams.Thread`."""

    __slots__ = (
        "_fates",
        "_in_rows",
        "_on_fate",
        "_on_plug",
        "_on_queue",
        "_on_request",
        "_on_unplug",
        "_own_plug",
        "_plug",
        "_runs",
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
        # The lists themselves: an unwatched signal then costs one test of an empty list.
        self._on_queue = signals.block_bio_queue.observers
        self._on_plug = signals.block_plug.observers
        self._on_unplug = signals.block_unplug.observers
        # By number, in the order of FATES: an enum's members are slow to hash.
        self._fates = (signals.block_getrq, signals.block_bio_backmerge, signals.block_bio_frontmerge)
        self._on_fate = tuple(signal.observers for signal in self._fates)
        self._on_request = (signals.block_rq_issue.observers, signals.block_rq_complete.observers)
        self._own_plug = Plug(rules)
        self._runs = PluggedRuns(rules)
        self._in_rows = False  # whether `_runs` holds the plugged requests
        self._plug: Plug | None = None  # the plug while it is open

    def start_plug(self) -> bool:
        """See `Thread.start_plug`."""
        if self._plug is not None:
            return False
        self._plug = self._own_plug
        if self._on_plug:
            self._signals.block_plug.emit(task=self.task)
        return True

    def finish_plug(self) -> Iterable[Wait]:
        """See `Thread.finish_plug`."""
        issue = self.flush_plug()
        self._plug = None
        return issue

    def flush_plug(self) -> Iterable[Wait]:
        """See `Thread.flush_plug`."""
        plug = self._plug
        assert plug is not None, "there is a plug to be flushed"
        if self._in_rows:
            return self._issue_batches(self._taken_runs())
        return self._issue(self._taken(plug)) if plug.requests else ()

    def before_sleep(self) -> None:
        """See `Thread.before_sleep`."""
        if self._plug is None:
            return
        if self._in_rows:
            for batch in self._taken_runs():
                batch.queue.insert_batch(batch, self.task)
        elif self._plug.requests:
            for queue, requests in groupby(self._taken(self._plug), _queue_of):
                queue.insert(list(requests), self.task)

    def submit_bio(self, bio: Bio) -> Steps | None:
        """See `Thread.submit_bio`."""
        return None if self._merge(bio) else self._make_request(bio)

    def _merge(self, bio: Bio) -> bool:
        """blk_attempt_plug_merge: whether *bio* joined a plugged request."""
        if self._on_queue:
            self._signals.block_bio_queue.emit(bio=bio, task=self.task)
        plug = self._plug
        if plug is None:
            return False
        if self._in_rows:
            plug.requests = self._runs.requests()
            self._in_rows = False
        requests = plug.requests
        if not requests:
            return False
        queue: Queue = bio.queue
        fate, at = walk(requests, len(requests), bio, plug.rules, queue.bounds)
        if fate == IS_NEW:
            return False
        keep_bio(requests[at], bio, fate)
        if self._on_fate[fate]:
            self._tell(fate, bio)
        return True

    def _make_request(self, bio: Bio) -> Steps:
        """The rest of blk_mq_submit_bio: elevator, or a request of its own."""
        queue: Queue = bio.queue
        if queue.elevator.waiting:
            merge = queue.elevator.attempt_merge(bio)
            if merge is not NEW:
                self._tell(FATES.index(merge), bio)
                self.spent.insert += queue.insert_ns
                yield queue.lock.section(self.task, queue.insert_ns)
                return
        pool = queue.pool(bio.sync)
        if queue.wbt is not None and not bio.sync:
            while not queue.wbt.room(self.background):
                yield from self._sleep_for_room(queue.wbt)
            queue.wbt.count += 1
        if not pool.take(self.task):
            yield from self._sleep_for_request(pool)
        self._tell(IS_NEW, bio)
        self.spent.request += queue.request_ns
        yield queue.request_ns
        plug = self._plug
        if plug is None:
            yield from self._issue([Request(bio)])
            return
        if plug.requests and plug.must_flush(queue, queue.bounds):
            yield from self._issue(self._taken(plug))
        plug.add(Request(bio))

    def submit_runs(self, queue: Queue, bios: NDArray[np.int64], segment_pages: int, end_io: EndIo) -> Steps:
        """See `Thread.submit_runs`."""
        if self._plug is None or not queue.takes_batches:
            for block, pages in bios.tolist():
                bio = Bio(
                    block * PAGE_SECTORS, pages * PAGE_SECTORS, segments=-(-pages // segment_pages),
                    queue=queue, end_io=end_io, context=pages,
                )  # fmt: skip
                if (rest := self.submit_bio(bio)) is not None:
                    yield from rest
            return
        runs, pool, in_hand = self._runs, queue.pool(sync=False), 0
        wbt = queue.wbt
        while True:
            if self._plug.requests:
                runs.load(self._plug.requests)
                self._plug.requests = []
            room = pool.room + in_hand
            if wbt is not None:
                room = min(room, wbt.room(self.background))
            watched = self._watched()
            made, done, batches = runs.add(queue, bios, segment_pages, end_io, queue.bounds, room, watched)
            if wbt is not None:
                wbt.count += made
            self._in_rows = runs.held > 0
            pool.add(made - in_hand)
            if watched:
                for bio, fate in runs.seen_bios:
                    if self._on_queue:
                        self._signals.block_bio_queue.emit(bio=bio, task=self.task)
                    self._tell(fate & ~FLUSHED, bio)
            self.spent.request += made * queue.request_ns
            yield made * queue.request_ns
            if batches:
                self._tell_unplugged(batches)
                yield from self._issue_batches(batches)
            bios = bios[done:]
            if not len(bios):
                return
            if wbt is not None and not wbt.room(self.background):
                yield from self._sleep_for_room(wbt)
                in_hand = 0
                continue
            if not pool.take(self.task):
                yield from self._sleep_for_request(pool)
            in_hand = 1

    def _sleep_for_room(self, wbt: WritebackThrottling) -> Steps:
        """rq_qos_wait: until some of the writes that are in the queue are complete."""
        self.before_sleep()
        wbt.waiters.append(self.task)
        self.task.waits_for = "wbt"
        yield PARK

    def _sleep_for_request(self, pool: Pool) -> Steps:
        """get_request_wait: until *pool* has one for this thread."""
        while True:
            self.before_sleep()
            pool.waiters.append(self.task)
            self.task.waits_for = "a request"
            yield PARK
            pool.woken(self.task)
            if pool.take(self.task):
                return

    def _taken(self, plug: Plug) -> list[Request]:
        requests = plug.take()
        if self._on_unplug:
            self._signals.block_unplug.emit(task=self.task, requests=requests)
        return requests

    def _taken_runs(self) -> list[Batch]:
        batches = self._runs.take()
        self._in_rows = False
        self._tell_unplugged(batches)
        return batches

    def _tell_unplugged(self, batches: Sequence[Batch]) -> None:
        if self._on_unplug:
            requests = [request for batch in batches for request in batch.requests()]
            self._signals.block_unplug.emit(task=self.task, requests=requests)

    def _issue(self, requests: list[Request]) -> Steps:
        """Give *requests*, queue by queue, to their elevators."""
        if requests[0].queue is not requests[-1].queue:
            for _, mine in groupby(requests, _queue_of):
                yield from self._issue(list(mine))
            return
        queue: Queue = requests[0].queue
        count = len(requests)
        self.spent.insert += count * queue.insert_ns
        yield queue.lock.section(self.task, count * queue.insert_ns)
        queue.insert(requests, self.task)
        self.spent.dispatch += count * queue.dispatch_ns
        yield count * queue.dispatch_ns

    def _issue_batches(self, batches: Sequence[Batch]) -> Steps:
        for batch in batches:
            queue, count = batch.queue, len(batch.rows)
            self.spent.insert += count * queue.insert_ns
            yield queue.lock.section(self.task, count * queue.insert_ns)
            queue.insert_batch(batch, self.task)
            self.spent.dispatch += count * queue.dispatch_ns
            yield count * queue.dispatch_ns

    def _watched(self) -> bool:
        """Whether somebody wants to see single bios, or requests."""
        return bool(self._on_queue or self._on_unplug or any(self._on_fate) or any(self._on_request))

    def _tell(self, fate: int, bio: Bio) -> None:
        if self._on_fate[fate]:
            self._fates[fate].emit(bio=bio, task=self.task)
