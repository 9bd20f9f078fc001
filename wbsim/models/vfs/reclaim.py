"""kswapd: evicts inodes and their pages when memory is full of them.

Stands for balance_pgdat and shrink_slab, one thread for each NUMA node.  Left out: zones, the LRU lists of
pages, swap; what is dirty is left to the flushers.
"""

from __future__ import annotations

from collections.abc import Sequence

from wbsim.models.page_cache.accounting import PageCache
from wbsim.models.parts import Parts
from wbsim.models.seams import Thread
from wbsim.models.vfs.inodes import BATCH, SuperblockInodes
from wbsim.sim.engine import PARK, Steps


class Kswapds:
    """So many threads as *nodes*; they sleep until *cache* is full, and evict until there is room."""

    def __init__(self, parts: Parts, nodes: int, cache: PageCache, of: Sequence[SuperblockInodes]) -> None:
        self._env = parts.env
        self._cache = cache
        self._of = of
        self._new = [parts.thread(f"kswapd{node}") for node in range(nodes)]
        self._idle: list[Thread] = []
        cache.on_full = self.wake

    def wake(self) -> None:
        """wakeup_kswapd; the first time, they begin."""
        new, idle, self._new, self._idle = self._new, self._idle, [], []
        for thread in new:
            self._env.start(thread.task, self._run(thread))
        for thread in idle:
            self._env.wake(thread.task)

    def _run(self, thread: Thread) -> Steps:
        while True:
            while self._cache.is_low and any(inodes.cached for inodes in self._of):
                for inodes in self._of:
                    if inodes.cached:
                        yield from inodes.evict(thread, BATCH)
            self._idle.append(thread)
            yield PARK
