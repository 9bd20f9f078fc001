"""A thread that submits bios: its plug, and what it pays for requests.

Stands for current->plug, submit_bio, blk_queue_bio / blk_mq_submit_bio, blk_start_plug, blk_finish_plug and
what schedule() does to a plug (sched_submit_work).  A thread has no queue: each bio names its own, and one
plug may hold requests of several.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from wbsim.models.bio import Bio, Request
from wbsim.models.block.batch import Batch, EndIo
from wbsim.models.block.blk_plug import BlkPlug
from wbsim.models.block.merge import FATES, IS_NEW, NEW
from wbsim.models.block.pool import Pool
from wbsim.models.block.queue import Queue
from wbsim.models.block.runs import FLUSHED
from wbsim.models.block.spec import PlugRules
from wbsim.models.block.wbt import WritebackThrottling
from wbsim.models.seams import Thread
from wbsim.models.signals import Signals
from wbsim.models.spent import REQUEST, WBT, Spent
from wbsim.sim.engine import PARK, Steps, Task, Wait
from wbsim.sim.units import PAGE_SECTORS


class BlockThread(Thread):
    """See `models.seams.Thread`."""

    __slots__ = (
        "_fates",
        "_on_fate",
        "_on_plug",
        "_on_queue",
        "_on_request",
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
        # The lists themselves: an unwatched signal then costs one test of an empty list.
        self._on_queue = signals.block_bio_queue.observers
        self._on_plug = signals.block_plug.observers
        self._on_unplug = signals.block_unplug.observers
        # By number, in the order of FATES: an enum's members are slow to hash.
        self._fates = (signals.block_getrq, signals.block_bio_backmerge, signals.block_bio_frontmerge)
        self._on_fate = tuple(signal.observers for signal in self._fates)
        self._on_request = (signals.block_rq_issue.observers, signals.block_rq_complete.observers)
        self._own_plug = BlkPlug(rules)
        self._plug: BlkPlug | None = None  # the plug while it is open

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
        assert self._plug is not None, "there is a plug to be flushed"
        batches = self._taken(self._plug)
        return self._issue(batches) if batches else ()

    def before_sleep(self) -> None:
        """See `Thread.before_sleep`."""
        if self._plug is not None:
            for batch in self._taken(self._plug):
                queue: Queue = batch.queue
                queue.insert(batch, self.task)

    def submit_bio(self, bio: Bio) -> Steps | None:
        """See `Thread.submit_bio`."""
        if self._on_queue:
            self._signals.block_bio_queue.emit(bio=bio, task=self.task)
        plug = self._plug
        if plug is None or (fate := plug.attempt_merge(bio)) == IS_NEW:
            return self._make_request(bio)
        if self._on_fate[fate]:
            self._tell(fate, bio)
        return None

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
            yield from self._sleep_for_request(queue, pool)
        self._tell(IS_NEW, bio)
        self.spent.request += queue.request_ns
        yield queue.request_ns
        plug = self._plug
        if plug is None:
            yield from self._issue([Batch(queue, None, [], [Request(bio)])])
            return
        if plug.must_flush(queue):
            yield from self._issue(self._taken(plug))
        plug.add(bio)

    def submit_runs(self, queue: Queue, bios: NDArray[np.int64], segment_pages: int, end_io: EndIo) -> Steps:
        """See `Thread.submit_runs`."""
        plug, wbt = self._plug, queue.wbt
        if plug is None or not queue.takes_batches:
            for block, pages in bios.tolist():
                bio = Bio(
                    block * PAGE_SECTORS, pages * PAGE_SECTORS, segments=-(-pages // segment_pages),
                    queue=queue, end_io=end_io, context=pages,
                )  # fmt: skip
                if (rest := self.submit_bio(bio)) is not None:
                    yield from rest
            return
        pool, in_hand = queue.pool(sync=False), 0
        while True:
            room = pool.room + in_hand
            if wbt is not None:
                room = min(room, wbt.room(self.background))
            watched = self._watched()
            made, done, batches = plug.add_runs(queue, bios, segment_pages, end_io, room, watched)
            if wbt is not None:
                wbt.count += made
            pool.add(made - in_hand)
            if watched:
                for bio, fate in plug.seen_bios:
                    if self._on_queue:
                        self._signals.block_bio_queue.emit(bio=bio, task=self.task)
                    self._tell(fate & ~FLUSHED, bio)
            self.spent.request += made * queue.request_ns
            yield made * queue.request_ns
            if batches:
                self._tell_unplugged(batches)
                yield from self._issue(batches)
            bios = bios[done:]
            if not len(bios):
                return
            if wbt is not None and not wbt.room(self.background):
                yield from self._sleep_for_room(wbt)
                in_hand = 0
                continue
            if not pool.take(self.task):
                yield from self._sleep_for_request(queue, pool)
            in_hand = 1

    def _sleep_for_room(self, wbt: WritebackThrottling) -> Steps:
        """rq_qos_wait: until some of the writes that are in the queue are complete."""
        self.before_sleep()
        wbt.waiters.append(self.task)
        self.task.waits_for = WBT
        yield PARK

    def _sleep_for_request(self, queue: Queue, pool: Pool) -> Steps:
        """get_request_wait: until *pool* of *queue* has one for this thread."""
        while True:
            self.before_sleep()
            queue.unplug()
            pool.waiters.append(self.task)
            self.task.waits_for = REQUEST
            yield PARK
            pool.woken(self.task)
            if pool.take(self.task):
                return

    def _taken(self, plug: BlkPlug) -> list[Batch]:
        """What *plug* held."""
        batches = plug.take()
        if batches:
            self._tell_unplugged(batches)
        return batches

    def _tell_unplugged(self, batches: Sequence[Batch]) -> None:
        if self._on_unplug:
            requests = [request for batch in batches for request in batch.requests()]
            self._signals.block_unplug.emit(task=self.task, requests=requests)

    def _issue(self, batches: Sequence[Batch]) -> Steps:
        """Give the requests, queue by queue, to their elevators."""
        for batch in batches:
            queue: Queue = batch.queue
            count = len(batch)
            self.spent.insert += count * queue.insert_ns
            yield queue.lock.section(self.task, count * queue.insert_ns)
            queue.insert(batch, self.task)
            self.spent.dispatch += count * queue.dispatch_ns
            yield count * queue.dispatch_ns

    def _watched(self) -> bool:
        """Whether somebody wants to see single bios, or requests."""
        return bool(self._on_queue or self._on_unplug or any(self._on_fate) or any(self._on_request))

    def _tell(self, fate: int, bio: Bio) -> None:
        if self._on_fate[fate]:
            self._fates[fate].emit(bio=bio, task=self.task)
