"""The request pools of the eras, which decide whether a task may have a request now.

Stands for get_request and its batching (block/blk-core.c, the legacy path), and for the tags of blk-mq
(blk_mq_get_tag).  The legacy path has one list for synchronous and one for asynchronous requests.  blk-mq has
one set of tags for both (docs/kernel/schedulers.md#the-pool-of-requests and #tags).  Left out: tags that
several queues share.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from wbsim.sim.engine import Environment, Task
from wbsim.sim.units import MS

BATCH_REQUESTS: Final = 32  # BLK_BATCH_REQ
BATCH_NS: Final = 20 * MS  # BLK_BATCH_TIME


class Tags:
    """The *nr* blk-mq tags of one queue, of which ``count`` are taken; the ``waiters`` sleep for one."""

    __slots__ = ("count", "nr", "waiters")

    def __init__(self, nr: int) -> None:
        self.nr = nr
        self.count = 0
        self.waiters: deque[Task] = deque()


class TagClass:
    """The synchronous or the asynchronous requests that have one of *tags*; ``count`` is their number."""

    __slots__ = ("_env", "_tags", "congested", "count", "waiters")

    def __init__(self, env: Environment, tags: Tags) -> None:
        self._env = env
        self._tags = tags
        self.congested = False  # only code of eras before blk-mq reads it
        self.count = 0
        self.waiters = tags.waiters

    def take(self, task: Task) -> bool:
        """Take a tag for a request of *task*, if one is free; return whether it was taken.

        If not, the task puts itself on ``waiters`` and sleeps.
        """
        if self._tags.count >= self._tags.nr:
            return False
        self._tags.count += 1
        self.count += 1
        return True

    def woken(self, task: Task) -> None:
        """Do nothing: *task*, which has slept for a request, gets no privilege here."""

    def free(self) -> None:
        """Give back the tag of a request, and wake the task that has waited longest."""
        self._tags.count -= 1
        self.count -= 1
        if self.waiters:
            self._env.wake(self.waiters.popleft())


class RequestList:
    """request_list: *nr_requests* synchronous or asynchronous requests, of which ``count`` are taken.

    Some tasks may take more requests for a while (`woken`), but no more than 3/2 of *nr_requests* are taken.
    The list is ``congested`` from about 7/8 of *nr_requests* on, until fewer than about 13/16 are taken
    (blk_queue_congestion_threshold).  Then *uncongested* is called.
    """

    __slots__ = (
        "_batchers", "_congestion_off", "_congestion_on", "_env", "_full", "_nr", "_uncongested", "congested",
        "count", "waiters",
    )  # fmt: skip

    def __init__(
        self, env: Environment, nr_requests: int, uncongested: Callable[[], None] = lambda: None
    ) -> None:
        self._env = env
        self._nr = nr_requests
        self._congestion_on = min(nr_requests - nr_requests // 8 + 1, nr_requests)
        self._congestion_off = max(nr_requests - nr_requests // 8 - nr_requests // 16 - 1, 1)
        self._uncongested = uncongested
        self.congested = False
        self._full = False
        self._batchers: dict[Task, tuple[int, int]] = {}
        self.count = 0
        self.waiters: deque[Task] = deque()

    def take(self, task: Task) -> bool:
        """Take a request for *task*, if it may have one now; return whether it was taken.

        If not, the task puts itself on ``waiters`` and sleeps.
        """
        if self.count + 1 >= self._nr:
            if not self._full:
                self._full = True
                self.woken(task)
            elif not self._may_batch(task):
                return False
        # Without this second limit, tasks that batch could take requests without end (get_request).
        if self.count >= 3 * self._nr // 2:
            return False
        self.count += 1
        if self.count >= self._congestion_on:
            self.congested = True
        return True

    def woken(self, task: Task) -> None:
        """Let *task*, which filled the list or has slept, exceed the limit for a while (ioc_set_batching).

        The task may take `BATCH_REQUESTS` more requests within `BATCH_NS`.  A thread calls this when it
        wakes.
        """
        self._batchers[task] = (BATCH_REQUESTS, self._env.now + BATCH_NS)

    def _may_batch(self, task: Task) -> bool:
        requests_left, until_ns = self._batchers.pop(task, (0, 0))
        if requests_left == 0 or self._env.now > until_ns:
            return False
        self._batchers[task] = (requests_left - 1, until_ns)
        return True

    def free(self) -> None:
        """Give back a request; if the list has room now, wake the task that has waited longest.

        The list may leave congestion, which calls *uncongested* (freed_request).
        """
        self.count -= 1
        if self.congested and self.count < self._congestion_off:
            self.congested = False
            self._uncongested()
        if self.count < self._nr:
            self._full = False
            if self.waiters:
                self._env.wake(self.waiters.popleft())


Pool = TagClass | RequestList


def tag_classes(
    env: Environment, nr_requests: int, uncongested: Callable[[], None] = lambda: None
) -> tuple[Pool, Pool]:
    """Return the asynchronous and the synchronous requests of one set of *nr_requests* tags.

    *uncongested* has no effect, because tags know no congestion.
    """
    tags = Tags(nr_requests)
    return TagClass(env, tags), TagClass(env, tags)


def request_lists(
    env: Environment, nr_requests: int, uncongested: Callable[[], None] = lambda: None
) -> tuple[Pool, Pool]:
    """Return a list for asynchronous and a list for synchronous requests, of *nr_requests* each.

    Only the asynchronous list calls *uncongested*, when its congestion ends, because tasks wait for that.
    """
    return RequestList(env, nr_requests, uncongested), RequestList(env, nr_requests)


POOLS: Final = {"request_list": request_lists, "tags": tag_classes}
"""Functions that return the asynchronous and the synchronous pool of a queue, by the name in a kernel."""
