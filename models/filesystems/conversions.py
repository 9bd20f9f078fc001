"""The conversion of unwritten extents once they were written.

Stands for xfs_end_io and ext4_end_io_rsv_work: a work item for each file converts what has been written, in a
transaction for each range under the inode's lock, and only then are the pages clean; the workqueue has as
many workers as there are processors.  Where a filesystem says so, workers and flusher take turns at the locks
(`models.filesystems.turns`).  Left out: that a page written for the second time needs none; that a worker
stays on the processor of the interrupt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from models.filesystems.map_costs import MapCosts
from models.filesystems.turns import NO_ROW, Turns
from models.filesystems.unwritten import Conversions, Landed
from models.scheduler.cpu import cond_resched, sleep
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

    Flusher and worker contend for a file's inode lock also where they do not take turns: each is then charged
    half of the other's hold, every time.  *converted* is called with the inode and the number of ranges that
    became written extents.
    """

    def __init__(
        self,
        env: Environment,
        threads: Sequence[Thread],
        costs: MapCosts,
        converted: Callable[[Any, int], None],
        turns: Turns | None,
    ) -> None:
        self._env = env
        self._costs = costs
        self._turns = turns
        self._converted = converted
        costs.waits_ns = self._waits_ns
        self._queue: deque[Conversions] = deque()
        self._idle: list[Task] = []
        for number, thread in enumerate(threads):
            env.start(thread.task, self._run(thread, number))

    def _waits_ns(self, conversions: Conversions) -> int:
        """How long an allocation of that file waits at present, unless it takes turns."""
        if self._turns is not None or not conversions.busy:
            return 0
        return self._costs.range_ns(conversions) // 2

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
        costs, inode, ranges = self._costs, conversions.inode, sum(by_group.values())
        folios, conversions.folios = conversions.folios, 0
        ends_ns = folios * costs.end_folio_ns
        if self._turns is not None:
            thread.spent.complete += ends_ns
            yield ends_ns
            conversions.row = number
            for group, count in by_group.items():
                if count:
                    yield from self._take_turns(thread, conversions, self._turns, group, count)
            conversions.row = NO_ROW
        else:
            work_ns = ends_ns + ranges * costs.range_ns(conversions)
            wait_ns = ranges * (costs.map_ns(conversions) // 2) if inode.i_sync is not None else 0
            thread.spent.complete += work_ns
            yield work_ns
            if wait_ns:
                yield from sleep(thread.task, wait_ns, "lock ILOCK")
        for land, pages in landed:
            land(pages)
        self._converted(inode, ranges)

    def _take_turns(
        self, thread: Thread, conversions: Conversions, turns: Turns, group: int, ranges: int
    ) -> Steps:
        """Convert *ranges* in one group where others want the locks, too.

        The thread first does all of the work; then it sleeps for as long as the locks delay it.
        """
        env, row, group_ns, range_ns = (
            self._env, conversions.row, self._costs.group_ns, self._costs.range_ns(conversions),
        )  # fmt: skip
        turns.begin(row, group, max(env.now, conversions.kept_ns), ranges, range_ns - group_ns, group_ns)
        thread.spent.complete += ranges * range_ns
        yield ranges * range_ns
        while (ends_ns := turns.ends_ns(row, env.now)) > env.now:
            yield from sleep(thread.task, ends_ns - env.now, "lock AGF" if group_ns else "lock ILOCK")
