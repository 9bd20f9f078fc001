"""A stream of write(2)s: the calls between two calls of the throttle are one event.

Nothing else of the process happens between them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wbsim.models.syscalls.process import Process
from wbsim.sim.engine import Wait

Order = Callable[[int], NDArray[np.int64]]
"""Called with a number; returns that many blocks (or pages) of a file, which are to be written next."""


class Calls(NamedTuple):
    """The write(2)s of a stream, all alike.

    A call writes *pages* pages, or else a page takes *a_page* calls.  Around each call the program takes
    *user_ns* of user time, and *system_ns* of system time in other calls.
    """

    pages: int = 1
    a_page: int = 1
    user_ns: int = 0
    system_ns: int = 0


class Stream:
    """The writes of *process* to the open files *inodes*, one page (or part of a page) of each in turn.

    *orders* has the order of the pages of each file.  An event has at most *most* pages, or parts of pages.
    """

    def __init__(
        self, process: Process, inodes: Sequence[Any], orders: Sequence[Order], calls: Calls, most: int
    ) -> None:
        self._process = process
        self._files = list(zip(inodes, orders, strict=True))
        self._calls = calls
        self._most = most
        self._wb = inodes[0].wb
        self.done = 0
        """The pages, or parts of pages, that are written."""
        sb = inodes[0].sb
        one_ns, call_ns = process.write_ns(1, sb), process.write_ns(calls.pages, sb)
        page_ns = one_ns - process.call_ns
        self._write_ns = call_ns / calls.pages - page_ns * (1 - 1 / calls.a_page)
        self._user_ns, self._system_ns = calls.user_ns / calls.pages, calls.system_ns / calls.pages

    def write(self, at_most: int) -> Generator[Wait, None, None]:
        """Write up to *at_most* pages, or parts of pages, until the throttle is due."""
        process, turns = self._process, len(self._files)
        burst = min(process.room(self._wb) * self._calls.a_page, self._most, at_most)
        factor = burst * process.vary()
        yield from process.runs(
            int(factor * self._user_ns), int(factor * self._system_ns), int(factor * self._write_ns)
        )
        for turn, (inode, order) in enumerate(self._files):
            count = _share(self.done + burst, turn, turns) - _share(self.done, turn, turns)
            if count:
                self._wb = inode.wb
                yield from process.put(inode, order(count) // self._calls.a_page, self._calls.pages)
        self.done += burst
        if process.due(self._wb):
            yield from process.balance(self._wb)
        if (ready := process.returns()) is not None:
            yield ready


def _share(writes: int, turn: int, turns: int) -> int:
    """Return how many of the first *writes* writes, dealt out in turn, go to the file at *turn*."""
    return (writes + turns - 1 - turn) // turns
