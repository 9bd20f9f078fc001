"""The conversion of unwritten extents once they were written.

Stands for xfs_end_io and ext4_end_io_rsv_work: a work item for each file converts what has been written, and
only then are the pages clean.  Each range is a transaction under the inode's lock and, where the filesystem
says so, its group's (`models.filesystems.locks`).  The workqueue has as many workers as there are processors.
Left out: that a page written for the second time needs none; that a worker stays on the processor of the
interrupt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from models.filesystems.map_costs import MapCosts
from models.filesystems.unwritten import Conversions, Landed
from models.scheduler.cpu import cond_resched
from models.seams import Thread
from models.site import Site
from sim.engine import PARK, Environment, Steps, Task


class Submission:
    """Pages of one file that went to the device together.

    *ranges*: how many ranges of blocks they are, by group; *folio_pages*: the pages of each of their folios.
    """

    __slots__ = ("_conversions", "_folio_pages", "_landed", "_pages", "_ranges", "_workers")

    def __init__(
        self,
        workers: Workers,
        conversions: Conversions,
        pages: int,
        ranges: dict[int, int],
        folio_pages: int,
        landed: Landed,
    ) -> None:
        self._workers = workers
        self._conversions = conversions
        self._pages = pages
        self._ranges = ranges
        self._folio_pages = folio_pages
        self._landed = landed

    def written(self, pages: int) -> None:
        """*pages* of them are on the device; their part of the ranges is to be converted."""
        ranges, conversions = self._ranges, self._conversions
        waiting = conversions.ranges
        for group, left in ranges.items():
            ended = left * pages // self._pages
            ranges[group] = left - ended
            waiting[group] = waiting.get(group, 0) + ended
        self._pages -= pages
        conversions.landed.append((self._landed, pages))
        conversions.folios += pages // self._folio_pages
        if not conversions.busy:
            conversions.busy = True
            self._workers.begin(conversions)


def conversion_threads(site: Site) -> list[Thread]:
    """A worker for each processor."""
    return [site.thread(f"kworker/conv-{number}") for number in range(site.processors)]


class Workers:
    """The workqueue of one filesystem, run by *threads*.

    *converted* is called with the inode and the number of ranges that became written extents.
    """

    def __init__(
        self,
        env: Environment,
        threads: Sequence[Thread],
        costs: MapCosts,
        converted: Callable[[Any, int], None],
    ) -> None:
        self._env = env
        self._costs = costs
        self._converted = converted
        self._queue: deque[Conversions] = deque()
        self._idle: list[Task] = []
        for number, thread in enumerate(threads):
            env.start(thread.task, self._run(thread, number))

    def begin(self, conversions: Conversions) -> None:
        """queue_work: convert what waits, and then what came meanwhile."""
        self._queue.append(conversions)
        if self._idle:
            self._env.wake(self._idle.pop())

    def _run(self, thread: Thread, number: int) -> Steps:
        queue, task = self._queue, thread.task
        while True:
            while queue:
                conversions = queue.popleft()
                while conversions.landed:
                    yield from self._convert(thread, number, conversions)
                conversions.busy = False
                if (ready := cond_resched(task)) is not None:
                    yield ready
            self._idle.append(task)
            yield PARK

    def _convert(self, thread: Thread, number: int, conversions: Conversions) -> Steps:
        """All that has landed by now."""
        landed, by_group = conversions.landed, conversions.ranges
        conversions.landed, conversions.ranges = [], {}
        costs, inode, lock = self._costs, conversions.inode, conversions.lock
        folios, conversions.folios = conversions.folios, 0
        ends_ns, range_ns = folios * costs.end_folio_ns, costs.range_ns(conversions)
        thread.spent.complete += ends_ns
        yield ends_ns
        for group, ranges in by_group.items():
            if ranges:  # the thread does all of the work, then it sleeps for as long as the locks delay it
                lock.begin(number, group, ranges, range_ns - costs.group_ns, costs.group_ns)
                thread.spent.complete += ranges * range_ns
                yield ranges * range_ns
                yield from lock.finish(thread, number)
        for land, pages in landed:
            land(pages)
        self._converted(inode, sum(by_group.values()))
