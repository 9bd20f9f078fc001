"""What tests ask of the record of lock times."""

from __future__ import annotations

import numpy as np

from wbsim.models.filesystems.lock_table import (
    BEGINS,
    FAR,
    LEFT,
    NO_ROW,
    WORKER,
    Locks,
    advance,
    give_inode,
    new_locks,
    take_inode,
)


def table(workers: int = 1, wake_ns: int = 5, relay_ns: int | None = None) -> Locks:
    """Return free locks of an inode for each worker, which spins if *relay_ns* is given."""
    inodes = np.zeros((workers, 8), np.int64)
    inodes[:, WORKER] = NO_ROW
    locks = new_locks(workers, wake_ns)._replace(inodes=inodes)
    return locks if relay_ns is None else locks._replace(relay_ns=relay_ns)


def begin(locks: Locks, row: int, at_ns: int, ranges: int, range_ns: int) -> None:
    """The worker of *row* begins to convert so many ranges of the inode of that row."""
    locks.inodes[row, WORKER] = row
    locks.workers[row] = row, at_ns, ranges, range_ns, FAR


def ends(locks: Locks, row: int, at: int) -> int:
    """Return when the worker of *row* has ended its transactions, all of which are booked by *at*."""
    advance(locks, row, at)
    assert not locks.workers[row, LEFT]
    return int(locks.workers[row, BEGINS])


def keep(locks: Locks, row: int, at_ns: int, length_ns: int) -> int:
    """A flusher asks for the inode's lock, to hold it for so long; return when it gets it."""
    from_ns = int(take_inode(locks, row, at_ns))
    give_inode(locks, row, at_ns, from_ns, from_ns + length_ns)
    return from_ns
