"""struct wb_writeback_work: what others ask a flusher to do."""

from __future__ import annotations

from typing import Literal, NamedTuple

from models.seams import UNLIMITED_PAGES, Superblock
from sim.sync import Completion


class Work(NamedTuple):
    """What to write and until when; of one superblock alone if ``sb`` says so; ``done`` hears of its end.

    A sync(2) is two kinds: "start" (wakeup_flusher_threads: so many pages, in chunks) and "sync"
    (WB_SYNC_ALL).
    """

    reason: Literal["background", "periodic", "start", "sync"]
    nr_pages: int = UNLIMITED_PAGES
    sb: Superblock | None = None
    done: Completion | None = None
