"""struct blk_plug: the requests that a thread holds back, until it flushes them or sleeps.

It holds them as objects (`models.block.plug`) or, while bios come by the thousand, as rows of an array
(`models.block.runs`); what it gives away is batches, whichever way it held them.
"""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import Any

from numpy.typing import NDArray

from wbsim.models.bio import Bio, Request
from wbsim.models.block.batch import Batch, EndIo
from wbsim.models.block.merge import IS_NEW, keep_bio
from wbsim.models.block.plug import Plug, walk
from wbsim.models.block.queue import Queue
from wbsim.models.block.runs import PluggedRuns
from wbsim.models.block.spec import PlugRules

_queue_of = attrgetter("queue")


class BlkPlug:
    """That of one thread, by the *rules* of an era."""

    __slots__ = ("_objects", "_runs")

    def __init__(self, rules: PlugRules) -> None:
        self._objects = Plug(rules)
        self._runs = PluggedRuns(rules)

    def attempt_merge(self, bio: Bio) -> int:
        """blk_attempt_plug_merge: the fate of *bio*, an index into `models.block.merge.FATES`."""
        plug = self._objects
        if self._runs.held:
            plug.requests = self._runs.requests()
        requests = plug.requests
        if not requests:
            return IS_NEW
        queue: Queue = bio.queue
        fate, at = walk(requests, len(requests), bio, plug.rules, queue.bounds)
        if fate != IS_NEW:
            keep_bio(requests[at], bio, fate)
        return fate

    def must_flush(self, queue: Queue) -> bool:
        """Whether it has to be flushed before one more request of *queue* is added."""
        return bool(self._objects.requests) and self._objects.must_flush(queue, queue.bounds)

    def add(self, bio: Bio) -> None:
        """blk_add_rq_to_plug: *bio*, which `attempt_merge` has looked at, gets a request of its own."""
        self._objects.requests.append(Request(bio))

    def add_runs(
        self, queue: Queue, bios: NDArray[Any], segment_pages: int, end_io: EndIo, room: int, watched: bool
    ) -> tuple[int, int, list[Batch]]:
        """Many bios at once, until *room* requests were made; see `PluggedRuns.add`."""
        runs, plug = self._runs, self._objects
        if plug.requests:
            runs.load(plug.requests)
            plug.requests = []
        return runs.add(queue, bios, segment_pages, end_io, queue.bounds, room, watched)

    @property
    def seen_bios(self) -> list[tuple[Bio, int]]:
        """See `PluggedRuns.seen_bios`."""
        return self._runs.seen_bios

    def take(self) -> list[Batch]:
        """Empty it: its requests in the order in which they are issued, queue by queue."""
        if self._runs.held:
            return self._runs.take()
        if not self._objects.requests:
            return []
        requests = self._objects.take()
        if requests[0].queue is requests[-1].queue:
            return [Batch(requests[0].queue, None, [], requests)]
        return [Batch(queue, None, [], list(mine)) for queue, mine in groupby(requests, _queue_of)]
