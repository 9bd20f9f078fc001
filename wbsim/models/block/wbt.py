"""Writeback throttling, which limits the number of buffered writes in the queue.

Stands for block/blk-wbt.c (from 4.10) on a device that is only written to.  There each window lets the depth
grow (LAT_UNKNOWN_WRITES).  Within a second it reaches three quarters of the queue's depth, where the model
begins.  Seen on 6.18: docs/measurements.md I.  Left out: reads, and the effect of their latency on the depth;
discards; swap; direct I/O.
"""

from __future__ import annotations

from collections import deque

from wbsim.models.bio import Bio, Request
from wbsim.models.interfaces import Wb
from wbsim.sim.engine import Environment, Task
from wbsim.sim.units import S


def throttled(bio: Bio | Request) -> bool:
    """Return whether *bio* is a buffered write, which counts and may have to wait.

    That also holds for a write of fsync(2), which carries REQ_SYNC.  A log write carries REQ_SYNC and
    REQ_IDLE, so it never waits; here a synchronous bio with REQ_META is a log write or a read
    (wbt_should_throttle).
    """
    return not (bio.sync and bio.meta)


class WritebackThrottling:
    """The throttling of a queue of *depth* requests; *write_cache*: the device has a volatile write cache.

    ``count`` is the number of requests of buffered writes in the queue.  A thread asks `room`, and counts its
    request, or puts its task on ``waiters`` and sleeps.  `done` takes a request away.
    """

    def __init__(self, env: Environment, depth: int, write_cache: bool) -> None:
        self._env = env
        self._write_cache = write_cache
        self.most = 2 if depth == 1 else max(1, 3 * depth // 4)
        """The largest number of requests of buffered writes in the queue."""
        self._normal = self.most if self.most <= 2 else (self.most + 1) // 2  # calc_wb_limits
        self._background = (self.most + 3) // 4
        self.count = 0
        self.waiters: deque[Task] = deque()
        self.wbs: list[Wb] = []
        """The writeback contexts of the device; see `_held_back_lately`."""

    def room(self, background: bool, sync: bool = False) -> int:
        """Return how many more requests a thread may submit now; 0: it must sleep (get_limit).

        *background*: the thread does background or periodic writeback.  *sync*: the write carries REQ_SYNC.
        With *sync*, or if a writer slept in balance_dirty_pages within the last second, ``count`` may reach
        ``most``.  Otherwise it may reach about half of ``most``, or a quarter with *background*.
        """
        limit = self._background if background else self._normal
        return max(0, (self.most if sync or self._held_back_lately() else limit) - self.count)

    def done(self) -> None:
        """Count one buffered write less; wake all sleeping tasks if there is room for several requests.

        The queue calls this when it frees a request of a buffered write.  Room for half as many requests as
        background writeback may have is enough.  With a write cache, and without recently throttled writers,
        the tasks wake only when ``count`` is 0 (wbt_rqw_done).
        """
        self.count -= 1
        if not self.waiters:
            return
        limit = 0 if self._write_cache and not self._held_back_lately() else self._normal
        if not self.count or limit - self.count >= max(1, self._background // 2):
            while self.waiters:
                self._env.wake(self.waiters.popleft())

    def _held_back_lately(self) -> bool:
        """wb_recent_wait: return whether a writer slept in balance_dirty_pages within the last second."""
        now = self._env.now
        return any(now - wb.held_back_ns < S for wb in self.wbs)
