"""What is configured of the virtual filesystem: what a write(2) costs."""

from __future__ import annotations

from sim.param import Ns, Spec


class WriteCosts(Spec):
    """Processor time of a write(2) call, of each page of it, and of the close(2) after it.

    ``mark_ns`` is spent under the flusher's list lock when a clean inode becomes dirty.
    """

    call_ns: Ns
    page_ns: Ns
    close_ns: Ns
    mark_ns: Ns
