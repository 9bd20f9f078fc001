"""write(2) into the page cache: dirty the pages, put the inode on its list, and throttle the writer.

Stands for generic_file_buffered_write, __set_page_dirty, __mark_inode_dirty and
balance_dirty_pages_ratelimited.  A write into existing pages costs as much as a write into new pages, with
folios and blocks.  Left out: reads before partial writes, O_DIRECT, page faults.
"""

from __future__ import annotations

from wbsim.models.interfaces import Inode, Superblock, Thread, Throttle, Wb
from wbsim.models.vfs.spec import WriteCosts
from wbsim.sim.engine import Environment, Steps, Wait


class BufferedWriter:
    """One process that writes, and its account with the throttle (`models.interfaces.Dirtier`).

    ``call_ns`` is the mean time of a write(2) without its pages, and ``close_ns`` that of a close(2).
    """

    __slots__ = (
        "_current",
        "_dirtier",
        "_env",
        "_folio_ns",
        "_mark_ns",
        "_page_ns",
        "_spent",
        "_task",
        "_throttle",
        "call_ns",
        "close_ns",
    )

    def __init__(self, *, env: Environment, thread: Thread, costs: WriteCosts, throttle: Throttle) -> None:
        self._env = env
        self._current = thread
        self._task = thread.task
        self._spent = thread.spent
        self.call_ns = costs.call_ns
        self._folio_ns = costs.folio_ns or 0
        self._page_ns = costs.page_ns
        self.close_ns = costs.close_ns
        self._mark_ns = costs.mark_ns
        self._throttle = throttle
        self._dirtier = throttle.dirtier()

    def copy_ns(self, pages: int, sb: Superblock) -> int:
        """Return the mean processor time of a call that copies *pages* new pages into a file on *sb*."""
        folios = -(-pages // sb.folio_pages(pages))
        return self.call_ns + folios * self._folio_ns + pages * (self._page_ns + sb.block_ns)

    def dirty(self, inode: Inode, pages: int, then_ns: int) -> Wait:
        """Make the copied *pages* of *inode* dirty, then close it for *then_ns* (0: no close).

        Yield the result, and call `due` after it.
        """
        wb, spent = inode.wb, self._spent
        wb.account_dirtied(pages)
        self._dirtier.dirtied(pages)
        clean = inode.dirty_pages == 0 and pages > 0 and inode.i_sync is None
        inode.dirty_pages += pages
        spent.close += then_ns
        if clean:
            wb.add(inode, self._env.now)
            inode.sb.has_pages()
            spent.write += self._mark_ns
            return wb.lock.section(self._task, self._mark_ns, then_ns)
        return then_ns

    def room(self, wb: Wb) -> int:
        """Return how many pages of *wb* this writer may dirty before `balance` is due; at least one."""
        dirtier = self._dirtier
        return max(1, self._throttle.poll_pages(wb, dirtier) - dirtier.nr_dirtied)

    def due(self, wb: Wb) -> bool:
        """Return whether `balance` is due after a write to an inode of *wb*."""
        dirtier = self._dirtier
        return dirtier.nr_dirtied >= self._throttle.poll_pages(wb, dirtier)

    def balance(self, wb: Wb) -> Steps:
        """Let the throttle hold this writer back because of *wb*."""
        return self._throttle.balance(self._current, wb, self._dirtier)
