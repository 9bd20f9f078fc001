"""The plug: a task's private list of requests, and the rules of each era for it.

Stands for struct blk_plug, attempt_plug_merge / blk_attempt_plug_merge and blk_flush_plug_list
(block/blk-core.c, later blk-merge.c and blk-mq.c).  Pure.

`QueuePlug` is the plug of a request queue (to 2.6.38).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import Final, NamedTuple

from wbsim.models.bio import Bio, Request
from wbsim.models.block.merge import NEW, Bounds, Merge, bounds_of, try_merge
from wbsim.models.block.spec import PlugRules, QueueLimits
from wbsim.sim.engine import Environment
from wbsim.sim.units import SECTOR_BYTES

_UNBOUNDED: Final = 1 << 40
_start_of = attrgetter("start_sector")


class Plug:
    """The requests of one plug, oldest first."""

    __slots__ = (
        "_candidates", "_counts_all", "_flush_of_newest", "_flush_sectors", "_max_requests",
        "_max_requests_mixed", "_mixed_above", "_order", "_order_mixed", "_order_scheduler", "requests",
    )  # fmt: skip

    def __init__(self, rules: PlugRules) -> None:
        # Copies: a spec's own attributes are slow to read.
        self._candidates = rules.tried
        self._max_requests = rules.max_requests or _UNBOUNDED
        self._max_requests_mixed = rules.max_requests_mixed or _UNBOUNDED
        self._counts_all = rules.max_requests_mixed is not None
        self._flush_sectors = (
            _UNBOUNDED if rules.flush_bytes is None else -(-rules.flush_bytes // SECTOR_BYTES)
        )
        self._flush_of_newest = rules.flush_of == "newest"
        self._order: str = rules.order
        self._order_scheduler: str = rules.order_scheduler
        self._order_mixed: str = rules.order_mixed
        self._mixed_above = rules.mixed_above
        self.requests: list[Request] = []

    def attempt_merge(self, bio: Bio, bounds: Bounds) -> Merge:
        """Merge *bio* into a plugged request, if the era's rule (``tried`` of `PlugRules`) finds one.

        Return BACK if *bio* is the new end of the request, FRONT if it is the new beginning, and NEW if no
        request took it.

        *bounds* are those of the queue of *bio*.  A request that only a limit stops is flagged NOMERGE
        (`try_merge`).
        """
        requests = self.requests
        count = len(requests)
        if count == 0 or not bounds.merges:
            return NEW
        queue, start, end = bio.queue, bio.start_sector, bio.end_sector
        candidates = self._candidates
        tries_all = candidates == "all"
        if candidates == "last" and requests[-1].queue != queue:
            return NEW
        place, step = count - 1, -1
        if candidates == "oldest" or (candidates == "tail" and requests[place].queue != queue):
            place, step = 0, 1
        for _ in range(count):
            request = requests[place]
            # Most requests do not touch the bio.  Test this first and save two calls.
            touches = request.end_sector == start or request.start_sector == end
            if (touches or not tries_all) and request.queue == queue:
                merge = try_merge(request, bio, bounds)
                if merge is not NEW or not tries_all:
                    return merge
            place += step
        return NEW

    def must_flush(self, queue: object, bounds: Bounds) -> bool:
        """Return whether the plug must be flushed before another request of *queue* is added.

        The limits are a number of requests, and the size of one of them (`PlugRules`).  *bounds* say whether
        *queue* merges at all.  The caller then takes all.  An empty plug need not be flushed.
        """
        requests = self.requests
        count = len(requests)
        if count == 0:
            return False
        if count >= self._max_requests:
            if self._counts_all:
                if count >= self._max_requests_mixed or not _is_mixed(requests, queue):
                    return True
            elif sum(request.queue == queue for request in requests) >= self._max_requests:
                return True
        judged = requests[-1 if self._flush_of_newest else 0]
        return bounds.merges and judged.end_sector - judged.start_sector >= self._flush_sectors

    def add(self, request: Request) -> None:
        """Add *request* to the plug, as its newest; the caller has asked `must_flush`."""
        self.requests.append(request)

    def take(self, direct: bool) -> list[Request]:
        """Empty the plug; return its requests in the order in which they are issued, queue by queue.

        *direct*: requests of a single queue go to its driver directly, not through a scheduler.
        """
        requests, self.requests = self.requests, []
        if len(requests) < 2:
            return requests
        mixed = _is_mixed(requests, requests[0].queue)
        order = self._order if direct else self._order_scheduler
        if mixed:
            order = self._order_mixed if len(requests) > self._mixed_above else self._order_scheduler
        if order == "lifo":
            requests.reverse()
        elif order == "sector":
            requests.sort(key=_start_of)
        return _by_queue(requests) if mixed else requests


def _is_mixed(requests: list[Request], queue: object) -> bool:
    """Return whether some of *requests* belong to another queue than *queue*."""
    return any(request.queue is not queue for request in requests)


def _by_queue(requests: list[Request]) -> list[Request]:
    """Return *requests* queue by queue, otherwise in the same order."""
    groups: dict[object, list[Request]] = {}
    for request in requests:
        group = groups.get(request.queue)
        if group is None:
            groups[request.queue] = [request]
        else:
            group.append(request)
    return [request for group in groups.values() for request in group]


class Decision(NamedTuple):
    """The fate of one bio: how it merged, and whether the plug was flushed to make room for it."""

    merge: Merge
    full_flush: bool


def plug_decisions(
    bios: Iterable[Bio], rules: PlugRules, limits: QueueLimits, direct: bool = True
) -> tuple[list[Decision], list[Sequence[Request]]]:
    """Send *bios* through one plug, without a simulation; all their queues have these *limits*.

    *direct*: the queues have no scheduler.

    Returns:
        One decision for each bio, and the batches of requests as they were flushed.  The last batch is what
        the plug held at the end.
    """
    plug, bounds = Plug(rules), bounds_of(limits, rules)
    decisions: list[Decision] = []
    batches: list[Sequence[Request]] = []
    for bio in bios:
        merge = plug.attempt_merge(bio, bounds)
        full = merge is NEW and plug.must_flush(bio.queue, bounds)
        if full:
            batches.append(plug.take(direct))
        if merge is NEW:
            plug.add(Request(bio))
        decisions.append(Decision(merge, full))
    if plug.requests:
        batches.append(plug.take(direct))
    return decisions, batches


class QueuePlug:
    """The plug of a request queue (to 2.6.38): while it is ``closed``, requests wait for others to come.

    Stands for blk_plug_device, blk_remove_plug, blk_unplug_timeout and their use in elv_insert
    (block/blk-core.c, block/elevator.c; docs/kernel/plugs.md#the-plug-of-a-queue).  A request that comes to
    an empty elevator closes the plug.  One of these opens it:

    * *requests* requests are queued.
    * *delay_ns* has passed; then *feed* is called at *rank*.
    * A synchronous request comes.
    * A task waits for a request, or for writeback in sync(2) or fsync(2).
    * A request ends.

    The timer is here.  In all other cases the queue sets ``closed`` to False.
    Left out: a task that waits for a page otherwise opens the plug, too; kblockd, which runs the queue
    for the timer.
    """

    def __init__(
        self, env: Environment, rank: int, requests: int, delay_ns: int, feed: Callable[[], None]
    ) -> None:
        self._env = env
        self._rank = rank
        self._delay_ns = delay_ns
        self._feed = feed
        self._closings = 0
        self.requests = requests
        self.closed = False

    def close(self) -> None:
        """Close the plug; the timer opens it after *delay_ns* and calls *feed* (blk_plug_device).

        A closed plug stays as it is.  If the plug was opened and closed again meanwhile, the earlier timer
        has no effect.
        """
        if not self.closed:
            self.closed = True
            self._closings += 1
            self._env.call_at(
                self._env.now + self._delay_ns, self._rank, partial(self._timeout, self._closings)
            )

    def _timeout(self, closing: int) -> None:
        if self.closed and closing == self._closings:
            self.closed = False
            self._feed()


def plug_of(rules: PlugRules, env: Environment, rank: int, feed: Callable[[], None]) -> QueuePlug | None:
    """Return the plug of a queue, whose timer calls *feed* at *rank*; None in eras without such plugs.

    *rules* have the number of requests and the time (ns) of `QueuePlug`.
    """
    if rules.unplug_requests is None or rules.unplug_time is None:
        return None
    return QueuePlug(env, rank, rules.unplug_requests, rules.unplug_time, feed)
