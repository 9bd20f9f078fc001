"""Writeback throttling: how many buffered writes may be in the queue at once.

Stands for block/blk-wbt.c (from 4.10) on a device that is only written to: each of its windows then lets the
depth grow (LAT_UNKNOWN_WRITES), up to three quarters of the queue's, within a second; there the model begins.
Seen on 6.18: docs/measurements.md I.  Left out: reads, and what their latency makes of the depth; discards;
swap.
"""

from __future__ import annotations

from collections import deque

from wbsim.models.interfaces import Wb
from wbsim.sim.engine import Environment, Task
from wbsim.sim.units import S


class WritebackThrottling:
    """The throttling of a queue of *depth* requests, whose device has a volatile *write_cache* or none.

    ``count`` requests of buffered writes were submitted and are not complete; log writes are not among them.
    """

    def __init__(self, env: Environment, depth: int, write_cache: bool) -> None:
        self._env = env
        self._write_cache = write_cache
        self.most = 2 if depth == 1 else max(1, 3 * depth // 4)
        """How many requests may ever be in the queue."""
        self._normal = self.most if self.most <= 2 else (self.most + 1) // 2  # calc_wb_limits
        self._background = (self.most + 3) // 4
        self.count = 0
        self.waiters: deque[Task] = deque()
        self.wbs: list[Wb] = []
        """The contexts of the device: whether their writers were held back lately."""

    def room(self, background: bool) -> int:
        """How many more requests a thread may submit now (get_limit), which does *background* writeback or
        other.
        """
        limit = self._background if background else self._normal
        return max(0, (self.most if self._held_back_lately() else limit) - self.count)

    def done(self) -> None:
        """wbt_rqw_done: a request is complete; who sleeps is woken once there is room for several.

        With a write cache, and nobody held back, that is when nothing is left.
        """
        self.count -= 1
        if not self.waiters:
            return
        limit = 0 if self._write_cache and not self._held_back_lately() else self._normal
        if not self.count or limit - self.count >= max(1, self._background // 2):
            while self.waiters:
                self._env.wake(self.waiters.popleft())

    def _held_back_lately(self) -> bool:
        """wb_recent_wait: a writer slept in balance_dirty_pages within the last second."""
        now = self._env.now
        return any(now - wb.held_back_ns < S for wb in self.wbs)
