"""The locks of ext4's inodes (i_data_sem), as times: what compiled steps and events share.

A compiled step runs ahead of the clock, and the worker that converts unwritten extents is worked off only
when an event looks.  Therefore a lock is a record of times.  It is a struct rw_semaphore: a worker that finds
it taken sleeps, and a flusher that comes back before the worker is awake has the lock again, for at most
`HANDOFF_NS`.  A flusher that finds it taken is given it after the present transaction: it only reads at
first.  A worker converts one range of a file after another, each in a transaction under the lock.  Pure;
compiled by Numba.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wbsim.models.arrays.compiled import compiled

FAR: Final = 1 << 62
"""Until when something is held whose end no task knows yet (ns)."""
HANDOFF_NS: Final = 4_000_000
"""RWSEM_WAIT_TIMEOUT: how long a task that sleeps for an inode's lock may be overtaken."""

# The columns of a worker's row: its inode's; when its next transaction begins; how many are left; how long
# each holds the lock; since when it waits for a flusher to leave the inode, or `FAR`.
INODE, BEGINS, LEFT, HOLDS, ASKED = range(5)
NO_ROW: Final = -1
# The columns of a lock's row: until when it is held; the worker that converts the inode; the sum of the
# squares of the holds; and the counters of `LockStat`.
UNTIL, WORKER, SQUARES, ACQUISITIONS, CONTENTIONS, WAIT, WAIT_MAX, HOLD = range(8)
LOCK_COLUMNS: Final = 8


class Locks(NamedTuple):
    """All locks of one filesystem, with a row for each of the ``workers`` and ``inodes``.

    ``wake_ns`` is the time that a wake-up takes.  The worker that waits for a lock has it ``relay_ns`` after
    it is given up: less than ``wake_ns`` if the worker spins.
    """

    workers: NDArray[np.int64]
    inodes: NDArray[np.int64]
    wake_ns: int
    relay_ns: int


def new_locks(workers: int, wake_ns: int) -> Locks:
    """Return free locks of *workers* workers, which sleep while they wait, and of no inodes."""
    return Locks(np.zeros((workers, 5), np.int64), np.zeros((0, LOCK_COLUMNS), np.int64), wake_ns, wake_ns)


@compiled
def _count(lock: NDArray[np.int64], waited_ns: int, hold_ns: int) -> None:
    """Count one acquisition, for *hold_ns*; it was contended if a task slept for it (*waited_ns*)."""
    lock[ACQUISITIONS] += 1
    lock[HOLD] += hold_ns
    lock[SQUARES] += hold_ns * hold_ns
    if waited_ns > 0:
        lock[CONTENTIONS] += 1
        lock[WAIT] += waited_ns
        lock[WAIT_MAX] = max(lock[WAIT_MAX], waited_ns)


@compiled
def advance(locks: Locks, row: int, until_ns: int) -> None:
    """Work off the transactions of the worker of *row* that end by *until_ns*."""
    worker = locks.workers[row]
    inode = locks.inodes[worker[INODE]]
    while worker[LEFT] > 0 and worker[BEGINS] + worker[HOLDS] <= until_ns:
        _count(inode, worker[BEGINS] - locks.relay_ns - worker[ASKED], worker[HOLDS])
        worker[ASKED] = FAR
        worker[BEGINS] += worker[HOLDS]
        inode[UNTIL] = worker[BEGINS]
        worker[LEFT] -= 1


@compiled
def take_inode(locks: Locks, row: int, at_ns: int) -> int:
    """A flusher asks for an inode's lock at *at_ns*, to keep it until `give_inode`.

    Returns when it gets the lock; `FAR`, and nothing changes, where that is known to events only.
    """
    inode, workers, wakes_ns = locks.inodes[row], locks.workers, locks.wake_ns
    if inode[UNTIL] == FAR:
        return FAR
    own = inode[WORKER]
    if own != NO_ROW and workers[own, LEFT] > 0:
        worker = workers[own]
        advance(locks, own, at_ns)
        begins_ns = worker[BEGINS]
        if worker[LEFT] > 0 and at_ns < begins_ns < FAR and at_ns - worker[ASKED] >= HANDOFF_NS:
            at_ns = begins_ns + 1  # overtaken for too long: the worker comes first
        if worker[LEFT] > 0 and worker[BEGINS] < at_ns:  # in the midst of a transaction
            advance(locks, own, worker[BEGINS] + worker[HOLDS])
        if locks.relay_ns < wakes_ns and worker[LEFT] > 0 and at_ns < inode[UNTIL] == worker[BEGINS]:
            # NOTE: the flusher only reads at first, for which it sleeps.  While it wakes up, it has the lock
            # already, and the worker spins: it is before the flusher when that wants to write.
            worker[ASKED] = worker[BEGINS]
            worker[BEGINS] += wakes_ns + locks.relay_ns
            advance(locks, own, worker[BEGINS] + worker[HOLDS])
            wakes_ns = locks.relay_ns
        park(locks, row, at_ns)
    return int(at_ns if inode[UNTIL] <= at_ns else inode[UNTIL] + wakes_ns)


@compiled
def park(locks: Locks, row: int, at_ns: int) -> None:
    """The worker that converts the inode waits from *at_ns* on, until `give_inode`."""
    own = locks.inodes[row, WORKER]
    if own != NO_ROW and locks.workers[own, LEFT] > 0:
        worker = locks.workers[own]
        if worker[ASKED] == FAR:
            worker[ASKED] = at_ns
        worker[BEGINS] = FAR


@compiled
def give_inode(locks: Locks, row: int, asked_ns: int, from_ns: int, until_ns: int) -> None:
    """The flusher that asked at *asked_ns* has had the lock from *from_ns* to *until_ns*; its worker is
    woken.
    """
    inode = locks.inodes[row]
    _count(inode, from_ns - locks.wake_ns - asked_ns, until_ns - from_ns)
    inode[UNTIL] = until_ns
    own = inode[WORKER]
    if own != NO_ROW and locks.workers[own, LEFT] > 0:
        locks.workers[own, BEGINS] = until_ns + locks.relay_ns
