"""Workers that convert and flushers take turns at the locks of allocation groups and of files.

A worker converts one range of a file after another, each in a transaction.  The transaction holds the inode's
lock; after a while it also holds the group's lock, if a range needs that (XFS with reverse mapping: the AGF
buffer).  A table has a row for the transactions of each worker.  Compiled code works them off, up to the
instant at which somebody looks: the flusher's walk, which contends with them, is compiled, too.

A group's lock is handed on to the task that asked first; this task is woken as its owner (struct semaphore).
A walk runs ahead of the clock.  Therefore the holds of a lock are kept as stretches of time, and a task that
asks for the lock at an earlier time finds it free between them.

The inode's lock is a struct rw_semaphore.  A worker that finds it taken sleeps; a flusher that comes back
before the worker is awake has the lock again.  A flusher that finds it taken is given it: the flusher only
reads at first, and a reader does not spin.  Pure.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.arrays.compiled import compiled

# The columns of a worker's row: the group of its ranges; when its next transaction begins; how many
# transactions are left; how long each holds the inode's lock alone; how long it then holds both locks; when
# the latest one ends.
GROUP, BEGINS, LEFT, ALONE, BOTH, ENDS = range(6)
NO_ROW: Final = -1
_FROM, _UNTIL = range(2)
_HOLDS: Final = 512
"""How many stretches are kept of a group; the oldest are forgotten."""
_FAR: Final = 1 << 62


class Locks(NamedTuple):
    """The table of workers, and the stretches of time in which each group's lock is held.

    ``workers``: rows with the columns above; ``holds``: the stretches of each group, in order; ``counts``:
    how many of these each group has; ``wake_ns``: the time that a wake-up takes.
    """

    workers: NDArray[np.int64]
    holds: NDArray[np.int64]
    counts: NDArray[np.int64]
    wake_ns: int


@compiled
def _last_before(locks: Locks, group: int, at_ns: int) -> int:
    """The last stretch that begins at *at_ns* or before."""
    i = locks.counts[group] - 1
    while i >= 0 and locks.holds[group, i, _FROM] > at_ns:
        i -= 1
    return int(i)


@compiled
def is_free(locks: Locks, group: int, at_ns: int) -> bool:
    """Whether the group's lock is free at *at_ns*, given the tasks that have asked for it by now."""
    i = _last_before(locks, group, at_ns)
    return bool(i < 0 or locks.holds[group, i, _UNTIL] <= at_ns)


@compiled
def hold(locks: Locks, group: int, asks_ns: int, length_ns: int) -> int:
    """A task asks for the group's lock at *asks_ns*, to hold it for *length_ns*; returns when that ends."""
    counts, holds, wake_ns = locks.counts, locks.holds, locks.wake_ns
    at = _last_before(locks, group, asks_ns)
    from_ns = begins_ns = asks_ns
    if at >= 0 and holds[group, at, _UNTIL] > asks_ns:
        from_ns = holds[group, at, _UNTIL]
        begins_ns = from_ns + wake_ns
    at += 1
    while at < counts[group] and holds[group, at, _FROM] < begins_ns + length_ns:
        from_ns = holds[group, at, _UNTIL]
        begins_ns = from_ns + wake_ns
        at += 1
    until_ns = begins_ns + length_ns
    if at > 0 and holds[group, at - 1, _UNTIL] == from_ns:
        holds[group, at - 1, _UNTIL] = until_ns
        return int(until_ns)
    if counts[group] == len(holds[group]):
        _forget(locks, group)
        at = max(at - len(holds[group]) // 2, 0)
    for i in range(counts[group], at, -1):
        holds[group, i, _FROM], holds[group, i, _UNTIL] = (
            holds[group, i - 1, _FROM],
            holds[group, i - 1, _UNTIL],
        )
    holds[group, at, _FROM], holds[group, at, _UNTIL] = from_ns, until_ns
    counts[group] += 1
    return int(until_ns)


@compiled
def _forget(locks: Locks, group: int) -> None:
    """Forget the older half of the group's stretches."""
    half = len(locks.holds[group]) // 2
    for i in range(half, locks.counts[group]):
        locks.holds[group, i - half, _FROM] = locks.holds[group, i, _FROM]
        locks.holds[group, i - half, _UNTIL] = locks.holds[group, i, _UNTIL]
    locks.counts[group] -= half


@compiled
def advance(locks: Locks, group: int, until_ns: int) -> None:
    """Work off the transactions that ask for the group's lock by *until_ns*, in the order of asking."""
    workers = locks.workers
    while True:
        first, asks_ns = NO_ROW, until_ns + 1
        for i in range(len(workers)):
            if (
                workers[i, LEFT] > 0
                and workers[i, GROUP] == group
                and workers[i, BEGINS] + workers[i, ALONE] < asks_ns
            ):
                first, asks_ns = i, workers[i, BEGINS] + workers[i, ALONE]
        if first == NO_ROW:
            return
        ends_ns = asks_ns
        if workers[first, BOTH] > 0:
            ends_ns = hold(locks, group, asks_ns, workers[first, BOTH])
        workers[first, ENDS] = workers[first, BEGINS] = ends_ns
        workers[first, LEFT] -= 1


@compiled
def take_file(locks: Locks, own: int, at_ns: int) -> int:
    """A flusher asks for the lock of the inode that worker *own* converts; returns when it gets it."""
    if own == NO_ROW:
        return at_ns
    worker = locks.workers[own]
    if worker[LEFT] > 0 and worker[BEGINS] < at_ns:
        advance(locks, worker[GROUP], at_ns)
        if worker[LEFT] > 0 and worker[BEGINS] < at_ns:  # in the midst of a transaction
            advance(locks, worker[GROUP], worker[BEGINS] + worker[ALONE])
    worker[BEGINS] = _FAR
    return int(at_ns if worker[ENDS] <= at_ns else worker[ENDS] + locks.wake_ns)


@compiled
def leave_file(locks: Locks, own: int, at_ns: int) -> None:
    """The flusher gives it back: the worker is woken."""
    if own != NO_ROW:
        locks.workers[own, BEGINS] = at_ns + locks.wake_ns


class Turns:
    """The locks and workers of one filesystem: *groups* groups, and *workers* workers, a row for each."""

    def __init__(self, groups: int, workers: int, wake_ns: int) -> None:
        self.locks = Locks(
            np.zeros((workers, 6), np.int64), np.zeros((groups, _HOLDS, 2), np.int64),
            np.zeros(groups, np.int64), wake_ns,
        )  # fmt: skip

    def begin(self, row: int, group: int, at_ns: int, ranges: int, alone_ns: int, both_ns: int) -> None:
        """The worker of *row* begins at *at_ns* to convert *ranges* ranges of a file in *group*."""
        advance(self.locks, group, at_ns)
        self.locks.workers[row] = group, at_ns, ranges, alone_ns, both_ns, at_ns

    def ends_ns(self, row: int, now_ns: int) -> int:
        """When that worker is through, unless a flusher comes between."""
        group = int(self.locks.workers[row, GROUP])
        advance(self.locks, group, now_ns)
        _, begins_ns, left, alone_ns, both_ns, _ = self.locks.workers[row].tolist()
        return int(begins_ns + left * (alone_ns + both_ns))

    def held(self, group: int, now_ns: int) -> bool:
        """Whether somebody has the group's lock."""
        advance(self.locks, group, now_ns)
        return not is_free(self.locks, group, now_ns)

    def hold(self, group: int, now_ns: int, length_ns: int) -> int:
        """Ask for the group's lock, to hold it for *length_ns*; returns when the hold ends."""
        advance(self.locks, group, now_ns)
        return int(hold(self.locks, group, now_ns, length_ns))

    def keep_file(self, row: int, now_ns: int, length_ns: int) -> int:
        """Ask for the lock of worker *row*'s inode, to hold it for *length_ns*; returns when it gets it."""
        taken_ns = int(take_file(self.locks, row, now_ns))
        leave_file(self.locks, row, taken_ns + length_ns)
        return taken_ns
