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
    is_free,
    new_locks,
    take_inode,
)


def table(groups: int = 1, workers: int = 1, wake_ns: int = 5, relay_ns: int | None = None) -> Locks:
    """Free locks of so many groups, and of an inode for each worker, which spins if *relay_ns* is given."""
    inodes = np.zeros((workers, 8), np.int64)
    inodes[:, WORKER] = NO_ROW
    locks = new_locks(groups, workers, wake_ns, 512)._replace(inodes=inodes)
    return locks if relay_ns is None else locks._replace(relay_ns=relay_ns)


def begin(locks: Locks, row: int, group: int, at_ns: int, ranges: int, alone_ns: int, both_ns: int) -> None:
    """The worker of *row* begins to convert so many ranges of the inode of that row."""
    locks.inodes[row, WORKER] = row
    locks.workers[row] = row, group, at_ns, ranges, alone_ns, both_ns, FAR


def ends(locks: Locks, *rows: int, at: int) -> list[int]:
    """When the workers of these rows have ended the transactions of which all is booked by then."""
    for group in range(len(locks.groups)):
        advance(locks, group, at)
    assert not any(locks.workers[row, LEFT] for row in rows)
    return [int(locks.workers[row, BEGINS]) for row in rows]


def held(locks: Locks, instants: range, group: int = 0) -> list[int]:
    """At which of these the group's lock is somebody's."""
    advance(locks, group, instants.stop)
    return [now for now in instants if not is_free(locks, group, now)]


def keep(locks: Locks, row: int, at_ns: int, length_ns: int) -> int:
    """A flusher asks for the inode's lock, to hold it for so long; when it gets it."""
    from_ns = int(take_inode(locks, row, at_ns))
    give_inode(locks, row, at_ns, from_ns, from_ns + length_ns)
    return from_ns
