"""A stream of write(2)s of any size at any place of their files, a call at a time.

`models.syscalls.stream` joins calls that are whole pages, or parts of them that divide a page.  Other calls
may share their first and last page with their neighbours, and have different sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wbsim.models.syscalls.process import Process
from wbsim.models.syscalls.stream import Calls
from wbsim.sim.engine import Environment, Steps
from wbsim.sim.entry import FAR_NS
from wbsim.sim.units import PAGE_BYTES


class Blocks(NamedTuple):
    """The blocks of a file in the order in which they are written: their ``places`` and ``sizes`` (bytes)."""

    places: NDArray[np.int64]
    sizes: NDArray[np.int64]


class BlockStream:
    """The calls of *process* that write *blocks* to the open files *inodes*, one call to each file in turn.

    The *calls* have the program's own times for each block, and the flag of open(2).  No call begins at
    *until_ns* or later.

    Left out: reads of the pages that a call writes in part.
    """

    def __init__(
        self, env: Environment, process: Process, inodes: Sequence[Any], blocks: Sequence[Blocks],
        calls: Calls, until_ns: int = FAR_NS,
    ) -> None:  # fmt: skip
        self._env = env
        self._process = process
        self._inodes = inodes
        self._blocks = blocks
        self._calls = calls
        self._until_ns = until_ns
        self._next = [0] * len(inodes)  # the number of the next block of each file
        self._turn = 0
        self.total = sum(len(of_file.places) for of_file in blocks)
        """The calls of all files."""
        self.done = 0
        """The calls that have been made."""
        self.written_bytes = 0
        """The bytes that are written."""

    @property
    def total_bytes(self) -> int:
        """The bytes that all calls of the stream write to all its files, whether written yet or not."""
        return sum(int(of_file.sizes.sum()) for of_file in self._blocks)

    def steps_for(self, count: int) -> int:
        """Return the fewest calls, from the first of the stream on, that write at least *count* bytes.

        The result is at least 1, and at most ``total``, even if all calls write less.
        """
        in_turn = zip_longest(*(of_file.sizes.tolist() for of_file in self._blocks), fillvalue=0)
        sizes = [size for turn in in_turn for size in turn if size]
        return min(int(np.searchsorted(np.cumsum(sizes), count)) + 1, self.total)

    def write(self, count: int) -> Steps:
        """Make the next *count* calls, or fewer if ``until_ns`` comes before.  Use: `yield from`.

        As many calls must be left; ``done`` and ``written_bytes`` grow with each.

        Raises:
            NoSpace: too few blocks of the filesystem are free for a call.
        """
        process, calls, end = self._process, self._calls, self.done + count
        while self.done < end and self._env.now < self._until_ns:
            turn = self._next_turn()
            inode, number = self._inodes[turn], self._next[turn]
            place, size = int(self._blocks[turn].places[number]), int(self._blocks[turn].sizes[number])
            first, last = place // PAGE_BYTES, (place + size - 1) // PAGE_BYTES
            share = process.vary()
            user_ns, system_ns = int(share * calls.user_ns), int(share * calls.system_ns)
            write_ns = int(share * self._write_ns(inode, size, last - first + 1))
            if (i_rwsem := process.i_rwsem_of(inode)) is not None:
                yield process.runs(user_ns, system_ns)
                process.began(0)
                call = self._call(inode, first, last, write_ns)
                yield i_rwsem.own_for(process.task, call, process.thread.before_sleep)
            else:
                owed_ns = process.task.owed_ns
                yield process.runs(user_ns, system_ns, write_ns)
                process.began(write_ns + owed_ns)
                yield from self._dirty_pages(inode, first, last)
            if calls.sync:
                yield process.write_sync(inode, calls.sync == "O_DSYNC")
            self._next[turn] += 1
            self._turn = (turn + 1) % len(self._inodes)
            self.done += 1
            self.written_bytes += size
            if (ready := process.returns()) is not None:
                yield ready
            process.end_call(process.latencies.write)

    def _call(self, inode: Any, first: int, last: int, write_ns: int) -> Steps:
        """Do a call of *write_ns* that writes the pages *first* to *last*, without the program's own time."""
        yield self._process.runs(0, 0, write_ns)
        yield from self._dirty_pages(inode, first, last)

    def _dirty_pages(self, inode: Any, first: int, last: int) -> Steps:
        """Make the pages *first* to *last* dirty, and let the throttle hold the process back."""
        process, pages = self._process, last - first + 1
        if wait := process.put(inode, np.arange(first, last + 1), pages):
            yield wait
        if process.due(inode.wb):
            yield process.balance(inode.wb)

    def _write_ns(self, inode: Any, size: int, pages: int) -> float:
        """Return the mean time of a call that copies *size* bytes into *pages* pages."""
        process = self._process
        call_ns = process.call_ns
        return call_ns + (process.write_ns(pages, inode.sb) - call_ns) * size / (pages * PAGE_BYTES)

    def _next_turn(self) -> int:
        """Return the number of the file whose turn it is; a file that is complete is passed."""
        turn = self._turn
        while self._next[turn] == len(self._blocks[turn].places):
            turn = (turn + 1) % len(self._inodes)
        return turn

    def pass_turn(self) -> Any:
        """See `Stream.pass_turn`."""
        turn = self._next_turn() if self.done < self.total else self._turn
        self._turn = (turn + 1) % len(self._inodes)
        return self._inodes[turn]
