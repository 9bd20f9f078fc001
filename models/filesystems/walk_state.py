"""The state of a walk over a file's dirty pages, which compiled code and events share.

Compiled code reads and changes a record, events the attributes of a `Walk`: `Walk.tell` and `Walk.look` copy
them, before and after compiled code runs.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Record = Any
"""A record with the fields of a `Walk`."""
NOT_YET: Final = -1
UNCOUNTED: Final = (1 << 62) - 1
"""``calls`` of a walk whose budget is in pages."""
FIELDS: Final = (
    "page", "left", "calls", "dice", "wrote", "start", "until", "room", "behind", "newest",
    "elapsed_ns", "pages", "bios", "ranges", "mapped_extents", "joins", "for_file_ns",
    "before",
)  # fmt: skip
"""In the order of `Walk.look` and `Walk.tell`."""
_RECORD: Final = np.dtype((np.record, [(name, "i8") for name in FIELDS]))


class Walk:
    """A walk that begins at *page* and may write *budget* pages.

    ``page``: the next one; ``left`` of wbc->nr_to_write; ``calls`` of writepage left, with the quota
    "calls_x4"; ``dice``: factors used; ``wrote`` (pages); ``start``: where it began; ``until``: where it ends
    once it has wrapped; ``room``: how many more extents the file's tree takes before page ``behind``;
    ``newest``: the page behind the newest extent.

    Of the present step alone: its time ``elapsed_ns``; ``pages`` put under writeback; rows of ``bios``;
    ``ranges`` of blocks; ``mapped_extents``, and the neighbours that these will join (``joins``); how long
    it slept for the inode's lock (``for_file_ns``); ``before``: where the last run ended.
    """

    def __init__(self, page: int, budget: int) -> None:
        self.record: NDArray[Any] = np.zeros(1, _RECORD)
        self.page = self.start = page
        self.left = budget
        self.calls = self.behind = UNCOUNTED
        self.until = self.newest = NOT_YET
        self.dice = self.wrote = self.room = 0
        self.elapsed_ns = self.pages = self.bios = self.ranges = 0
        self.mapped_extents = self.joins = 0
        self.for_file_ns = self.before = 0

    def tell(self) -> None:
        """Write all into the record, for compiled code."""
        self.record[0] = (
            self.page, self.left, self.calls, self.dice, self.wrote, self.start, self.until, self.room,
            self.behind, self.newest, self.elapsed_ns, self.pages, self.bios, self.ranges,
            self.mapped_extents, self.joins, self.for_file_ns, self.before,
        )  # fmt: skip

    def look(self) -> None:
        """Read all from the record, which compiled code has changed."""
        (
            self.page, self.left, self.calls, self.dice, self.wrote, self.start, self.until, self.room,
            self.behind, self.newest, self.elapsed_ns, self.pages, self.bios, self.ranges,
            self.mapped_extents, self.joins, self.for_file_ns, self.before,
        ) = self.record.item()  # fmt: skip
