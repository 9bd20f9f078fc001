"""Who takes turns at the lock of an allocation group and at those of its files: workers and a flusher.

A worker converts range after range of a file, each in a transaction that has the inode's lock, and after a
while also the group's, where that is needed for a range (XFS with reverse mapping: the AGF buffer).  The
transactions are rows of a table, worked off up to the instant at which somebody looks, by compiled code, as
the flusher's walk that contends with them is compiled, too.  The group's lock is handed on to whoever has
waited longest, who is woken as its owner (struct semaphore); the flusher only tries it.  Pure.

A flusher's walk runs ahead of the clock by a step at most: a worker that comes meanwhile finds the lock taken
until the step's last allocation.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.arrays.compiled import compiled

# Of a worker: when its next transaction begins; how many are left; for how long one has the inode's lock
# alone, and then both; when the latest one ends.
BEGINS, LEFT, ALONE, BOTH, ENDS = range(5)
# Of the group's lock: until when it is held; what the wake-up of its next owner takes.
HELD_UNTIL, WAKE_NS = range(2)
NO_ROW: Final = -1
_FAR: Final = 1 << 62


@compiled
def advance(rows: NDArray[np.int64], lock: NDArray[np.int64], until_ns: int) -> None:
    """Work off what asks for the group's lock until then, in the order of asking."""
    while True:
        first, asks_ns = NO_ROW, until_ns + 1
        for i in range(len(rows)):
            if rows[i, LEFT] > 0 and rows[i, BEGINS] + rows[i, ALONE] < asks_ns:
                first, asks_ns = i, rows[i, BEGINS] + rows[i, ALONE]
        if first == NO_ROW:
            return
        ends_ns = asks_ns
        if rows[first, BOTH] > 0:
            if lock[HELD_UNTIL] > asks_ns:
                ends_ns = lock[HELD_UNTIL] + lock[WAKE_NS]
            ends_ns += rows[first, BOTH]
            lock[HELD_UNTIL] = ends_ns
        rows[first, ENDS] = rows[first, BEGINS] = ends_ns
        rows[first, LEFT] -= 1


@compiled
def file_free(rows: NDArray[np.int64], lock: NDArray[np.int64], own: int, at_ns: int) -> int:
    """From when on, at *at_ns* or later, the worker of row *own* leaves the inode's lock to who waits."""
    advance(rows, lock, at_ns)
    if own == NO_ROW:
        return at_ns
    if rows[own, LEFT] > 0 and rows[own, BEGINS] < at_ns:
        advance(rows, lock, rows[own, BEGINS] + rows[own, ALONE])
    free_ns = max(at_ns, rows[own, ENDS])
    begins_ns, rows[own, BEGINS] = rows[own, BEGINS], _FAR
    advance(rows, lock, free_ns)
    rows[own, BEGINS] = begins_ns
    return int(free_ns)


@compiled
def keep_file(rows: NDArray[np.int64], own: int, until_ns: int) -> None:
    """Somebody has the lock of the inode of row *own* until then."""
    if own != NO_ROW:
        rows[own, BEGINS] = max(rows[own, BEGINS], until_ns)


class Turns:
    """The workers at one group, whose lock's next owner wakes *wake_ns* after it was given it."""

    def __init__(self, wake_ns: int) -> None:
        self.rows = np.zeros((4, 5), np.int64)
        self.lock = np.array([0, wake_ns], np.int64)
        self._free = list(range(3, -1, -1))

    def begin(self, now_ns: int, ranges: int, alone_ns: int, both_ns: int) -> int:
        """A worker begins with so many *ranges* of a file; its row."""
        if not self._free:
            count = len(self.rows)
            self.rows = np.vstack([self.rows, np.zeros_like(self.rows)])
            self._free = list(range(2 * count - 1, count - 1, -1))
        advance(self.rows, self.lock, now_ns)
        row = self._free.pop()
        self.rows[row] = now_ns, ranges, alone_ns, both_ns, now_ns
        return row

    def ends_ns(self, row: int, now_ns: int) -> int:
        """When that worker is through, unless a flusher comes between."""
        advance(self.rows, self.lock, now_ns)
        begins_ns, left, alone_ns, both_ns, _ = self.rows[row].tolist()
        return int(begins_ns + left * (alone_ns + both_ns))

    def end(self, row: int) -> None:
        """It is through."""
        assert self.rows[row, LEFT] == 0, "a worker ends when nothing is left"
        self.rows[row] = 0
        self._free.append(row)

    def held(self, now_ns: int) -> bool:
        """Whether somebody has the group's lock."""
        return self.free_ns(now_ns) > now_ns

    def free_ns(self, now_ns: int) -> int:
        """When who waits for the group's lock gets it, with nobody before it."""
        advance(self.rows, self.lock, now_ns)
        held_until = int(self.lock[HELD_UNTIL])
        return held_until + int(self.lock[WAKE_NS]) if held_until > now_ns else now_ns

    def file_free_ns(self, row: int, now_ns: int) -> int:
        """When the worker of that row leaves its inode's lock to who waits for it."""
        return int(file_free(self.rows, self.lock, row, now_ns))

    def hold(self, row: int, until_ns: int) -> None:
        """Somebody has the group's lock, which is free, and that of the inode of that row until then."""
        self.lock[HELD_UNTIL] = until_ns
        keep_file(self.rows, row, until_ns)
