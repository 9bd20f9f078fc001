"""What is configured of the virtual filesystem: what a write(2) costs, and a new inode."""

from __future__ import annotations

from sim.param import Ns, Spec


class WriteCosts(Spec):
    """Processor time of a write(2) call, of each page of it, and of the close(2) after it.

    ``mark_ns`` is spent under the flusher's list lock when a clean inode becomes dirty, ``sb_list_ns`` under
    that of the superblock's inodes when one is made.
    """

    call_ns: Ns
    page_ns: Ns
    close_ns: Ns
    mark_ns: Ns
    sb_list_ns: Ns
