"""write(2) into the page cache: its price, the pages that it makes dirty, and the throttle.

Stands for generic_file_buffered_write, __set_page_dirty, __mark_inode_dirty and
balance_dirty_pages_ratelimited.  A write into existing pages costs as much as a write into new pages, with
folios and blocks.  Left out: reads before partial writes, O_DIRECT, page faults.
"""

from __future__ import annotations

from math import log2
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wbsim.models.interfaces import Inode, Superblock, Thread, Throttle, Wb
from wbsim.models.syscalls.latency import Latencies
from wbsim.models.syscalls.timing import TimedCaller
from wbsim.models.vfs.spec import WriteCosts
from wbsim.sim.engine import Environment, Steps, Wait
from wbsim.sim.streams import Draws

_CACHED_PAGES: Final = 2_048
_CACHED_EXTENTS: Final = 32
"""The pages and the extents of a file whose tree nodes a processor keeps in its caches (measurements S)."""


class Writer(TimedCaller):
    """A process that writes, and its account with the throttle (`models.interfaces.Dirtier`).

    ``call_ns`` is the mean time of a write(2) without its pages (ns), and ``punt_ns`` that of a write that
    io_uring hands to a worker.
    """

    __slots__ = ("_costs", "_dirtier", "_mark_ns", "_throttle", "call_ns", "punt_ns")

    def __init__(
        self, env: Environment, thread: Thread, factors: Draws, latencies: Latencies, costs: WriteCosts,
        throttle: Throttle,
    ) -> None:  # fmt: skip
        super().__init__(env, thread, factors, latencies)
        self._costs = costs
        self._mark_ns = costs.mark_ns
        self._throttle = throttle
        self._dirtier = throttle.dirtier()
        self.call_ns = costs.call_ns
        self.punt_ns = costs.punt_ns or 0

    def forked(self) -> None:
        """Begin as a new process: its account with the throttle is empty.

        A child does not inherit what its parent has dirtied.  `Family.fork` calls this.
        """
        self._dirtier = self._throttle.dirtier()

    def write_ns(self, pages: int, sb: Superblock) -> int:
        """Return the mean processor time of a write(2) that copies *pages* new pages into a file on *sb*."""
        costs = self._costs
        folios = -(-pages // sb.folio_pages(pages))
        return costs.call_ns + folios * (costs.folio_ns or 0) + pages * (costs.page_ns + sb.block_ns)

    def search_ns(self, pages: int, extents: float, sb: Superblock) -> float:
        """Return the mean time (ns) that a write(2) at a random place takes longer than one that goes on.

        The file on *sb* has *pages* pages, and its tree in memory *extents* extents.
        """
        of_page = (self._costs.cold_page_ns or 0) * _doublings(pages, _CACHED_PAGES)
        return of_page + sb.cold_extent_ns * _doublings(extents, _CACHED_EXTENTS)

    def put(self, inode: Inode, pages: NDArray[np.int64], call_pages: int, calls: int = 1) -> Wait:
        """Make the copied *pages* (numbers) of *inode* dirty, *call_pages* pages in each call.

        The filesystem's work between, and the inode's lock, are included; the time of the copy has passed
        before.  *calls* calls begin with these pages.  Yield the result unless it is 0, and then ask `due`.

        Raises:
            NoSpace: no block is free; the error comes up where the result is yielded.
        """
        waits = inode.sb.filesystem.write_lock(self.thread, inode, pages, calls)
        if waits is not None:
            return self._put_rest(inode, pages, call_pages, waits)
        return self.put_locked(inode, pages, call_pages)

    def put_locked(self, inode: Inode, pages: NDArray[np.int64], call_pages: int) -> Wait:
        """Do what `put` does, with its result and errors; the call took the inode's lock at its begin."""
        done, wait = self._dirty(inode, pages, call_pages)
        if done == len(pages):
            return wait
        return self._put_rest(inode, pages[done:], call_pages, wait, zeroes=True)

    def _put_rest(
        self, inode: Inode, pages: NDArray[np.int64], call_pages: int, wait: Wait, zeroes: bool = False
    ) -> Steps:
        """Make *pages* dirty after *wait*; with *zeroes*, `make_way` is due before."""
        if wait:
            yield wait
        while True:
            if zeroes:
                yield from inode.sb.filesystem.make_way(self.thread, inode)
            done, wait = self._dirty(inode, pages, call_pages)
            if wait:
                yield wait
            if done == len(pages):
                return
            pages, zeroes = pages[done:], True

    def _dirty(self, inode: Inode, pages: NDArray[np.int64], call_pages: int) -> tuple[int, Wait]:
        """Make *pages* dirty up to the first that needs `make_way`; return their number and the wait."""
        done, clean = inode.sb.filesystem.write(inode, pages, call_pages)
        if not clean:
            return done, 0
        self.account(inode.wb, clean)
        return done, self.mark_dirty(inode, clean, 0)

    def account(self, wb: Wb, pages: int) -> None:
        """Count *pages* pages of an inode of *wb* that become dirty, in *wb* and with the throttle.

        The caller calls `mark_dirty` next.
        """
        wb.account_dirtied(pages)
        self._dirtier.dirtied(pages)

    def mark_dirty(self, inode: Inode, pages: int, then_ns: int) -> Wait:
        """Add *pages*, which were clean, to the dirty pages of *inode*; then work for *then_ns*.

        Yield the result.

        A clean inode goes on the list of its context, under the list lock.  Otherwise the result is *then_ns*
        (__mark_inode_dirty).
        """
        clean = inode.dirty_pages == 0 and pages > 0 and inode.i_sync is None
        inode.dirty_pages += pages
        if not clean:
            return then_ns
        inode.wb.add(inode, self._env.now)
        inode.sb.has_pages()
        self.spent.write += self._mark_ns
        return inode.wb.lock.section(self.task, self._mark_ns, then_ns)

    def mark_and_balance(self, inode: Inode, pages: int) -> Steps:
        """Do what `mark_dirty` and then `balance` do, after `account`.  Use: `yield from`."""
        yield self.mark_dirty(inode, pages, 0)
        yield from self.balance(inode.wb)

    def room(self, wb: Wb) -> int:
        """Return how many pages of *wb* this process may dirty before `balance` is due; at least one.

        A stream of calls is cut there, so that no page is dirtied behind a check.
        """
        dirtier = self._dirtier
        return max(1, self._throttle.poll_pages(wb, dirtier) - dirtier.nr_dirtied)

    def due(self, wb: Wb) -> bool:
        """Return whether `balance` is due after a write to an inode of *wb*."""
        dirtier = self._dirtier
        return dirtier.nr_dirtied >= self._throttle.poll_pages(wb, dirtier)

    def passes(self, wb: Wb) -> bool:
        """Return whether `balance` would not hold this process back.

        If so, its account is settled as after `balance`.  Background writeback may start.  A ring asks this
        (BDP_ASYNC).
        """
        return self._throttle.passes(wb, self._dirtier)

    def balance(self, wb: Wb) -> Steps:
        """Let the throttle hold this process back because of *wb*, for as long as it says.

        Use: `yield from`.
        The process calls this when it is `due`, after a write (balance_dirty_pages).
        """
        return self._throttle.balance(self.thread, wb, self._dirtier)


def _doublings(number: float, cached: int) -> float:
    """Return how often *cached* is doubled until it is *number* (log2 of the ratio); 0 up to *cached*.

    >>> _doublings(8_192, 2_048), _doublings(100, 2_048)
    (2.0, 0.0)
    """
    return max(0.0, log2(number / cached)) if number else 0.0
