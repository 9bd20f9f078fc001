"""The locks of allocation groups and of inodes, as times: what compiled steps and events share.

A compiled step runs ahead of the clock, and the workers that convert unwritten extents are worked off only
when somebody looks.  Therefore a lock is a record of times: until when it is held, and for a group also the
stretches in which it was given away.  A task that asks for a group's lock at an earlier time finds it free
between these.  `models.filesystems.locks` has what events do with the same records.

A group's lock is a semaphore (the AGF buffer's): it is handed on to the task that asked first, which is woken
as its owner.  An inode's is a struct rw_semaphore (ILOCK, i_data_sem): a worker that finds it taken sleeps,
and a flusher that comes back before the worker is awake has the lock again, for at most `HANDOFF_NS`.  A
flusher that finds it taken is given it after the present transaction: it only reads at first.

A worker converts one range of a file after another, each in a transaction.  The transaction holds the inode's
lock; after a while it also holds the group's lock, if a range needs that (XFS with reverse mapping).  Pure;
compiled by Numba.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wbsim.models.arrays.compiled import compiled

FAR: Final = 1 << 62
"""Until when something is held whose end nobody knows yet (ns)."""
HANDOFF_NS: Final = 4_000_000
"""RWSEM_WAIT_TIMEOUT: how long a task that sleeps for an inode's lock may be overtaken."""

# The columns of a worker's row: its inode's; the group of its ranges; when its next transaction begins; how
# many are left; how long each holds the inode's lock alone; how long it then holds both locks; since when it
# waits for a flusher to leave the inode, or `FAR`.
INODE, GROUP, BEGINS, LEFT, ALONE, BOTH, ASKED = range(7)
NO_ROW: Final = -1
# The columns of a lock's row: until when it is held; the worker that converts the inode, or how many
# stretches the group has; the sum of the squares of the holds; and the counters of `LockStat`.
UNTIL, WORKER, SQUARES, ACQUISITIONS, CONTENTIONS, WAIT, WAIT_MAX, HOLD = range(8)
STRETCHES: Final = WORKER
LOCK_COLUMNS: Final = 8
_FROM, _END = range(2)


class Locks(NamedTuple):
    """All locks of one filesystem, with a row for each: ``workers``, ``inodes`` and ``groups`` with the
    columns above; ``stretches`` of each group, in order; ``wake_ns``: the time that a wake-up takes;
    ``relay_ns``: how long after an inode's lock was given up the worker that waits for it has it: less than
    ``wake_ns`` if it spins meanwhile.
    """

    workers: NDArray[np.int64]
    inodes: NDArray[np.int64]
    groups: NDArray[np.int64]
    stretches: NDArray[np.int64]
    wake_ns: int
    relay_ns: int


def new_locks(groups: int, workers: int, wake_ns: int, stretches: int) -> Locks:
    """Locks that are free: of *groups* groups, *workers* workers, which sleep while they wait, no inodes.

    So many *stretches* are kept of each group; the oldest are forgotten.
    """
    return Locks(
        np.zeros((workers, 7), np.int64), np.zeros((0, LOCK_COLUMNS), np.int64),
        np.zeros((groups, LOCK_COLUMNS), np.int64), np.zeros((groups, stretches, 2), np.int64),
        wake_ns, wake_ns,
    )  # fmt: skip


@compiled
def _count(lock: NDArray[np.int64], waited_ns: int, hold_ns: int) -> None:
    """One acquisition more, for *hold_ns*; it was contended if a task had to sleep for it (*waited_ns*)."""
    lock[ACQUISITIONS] += 1
    lock[HOLD] += hold_ns
    lock[SQUARES] += hold_ns * hold_ns
    if waited_ns > 0:
        lock[CONTENTIONS] += 1
        lock[WAIT] += waited_ns
        lock[WAIT_MAX] = max(lock[WAIT_MAX], waited_ns)


# -- a group's lock ----------------------------------------------------------------------------------------


@compiled
def _last_before(locks: Locks, group: int, at_ns: int) -> int:
    """The last stretch that begins at *at_ns* or before."""
    i = locks.groups[group, STRETCHES] - 1
    while i >= 0 and locks.stretches[group, i, _FROM] > at_ns:
        i -= 1
    return int(i)


@compiled
def is_free(locks: Locks, group: int, at_ns: int) -> bool:
    """Whether the group's lock is free at *at_ns*, given the tasks that have asked for it by now."""
    until_ns = locks.groups[group, UNTIL]
    if until_ns <= at_ns:
        return True
    if until_ns == FAR:
        return False
    i = _last_before(locks, group, at_ns)
    return bool(i < 0 or locks.stretches[group, i, _END] <= at_ns)


@compiled
def has_room(locks: Locks, group: int, at_ns: int, length_ns: int) -> bool:
    """Whether the group's lock is free from *at_ns* on, for *length_ns*."""
    if not is_free(locks, group, at_ns):
        return False
    following = _last_before(locks, group, at_ns) + 1
    if following == locks.groups[group, STRETCHES]:
        return True
    return bool(at_ns + length_ns <= locks.stretches[group, following, _FROM])


@compiled
def hold(locks: Locks, group: int, asks_ns: int, length_ns: int) -> int:
    """A task asks for the group's lock at *asks_ns*, to hold it for *length_ns*; returns when that ends."""
    lock, stretches, wake_ns = locks.groups[group], locks.stretches[group], locks.wake_ns
    at = _last_before(locks, group, asks_ns)
    from_ns = begins_ns = asks_ns
    if at >= 0 and stretches[at, _END] > asks_ns:
        from_ns = stretches[at, _END]
        begins_ns = from_ns + wake_ns
    at += 1
    while at < lock[STRETCHES] and stretches[at, _FROM] < begins_ns + length_ns:
        from_ns = stretches[at, _END]
        begins_ns = from_ns + wake_ns
        at += 1
    until_ns = begins_ns + length_ns
    _count(lock, from_ns - asks_ns, length_ns)
    _insert(locks, group, at, from_ns, until_ns)
    return int(until_ns)


@compiled
def _insert(locks: Locks, group: int, at: int, from_ns: int, until_ns: int) -> None:
    """Stretch number *at* is this one; what is handed on is one with the stretch before."""
    lock, stretches = locks.groups[group], locks.stretches[group]
    lock[UNTIL] = max(lock[UNTIL], until_ns)
    if at > 0 and stretches[at - 1, _END] == from_ns:
        stretches[at - 1, _END] = until_ns
        return
    if lock[STRETCHES] == len(stretches):
        _forget(locks, group)
        at = max(at - len(stretches) // 2, 0)
    for i in range(lock[STRETCHES], at, -1):
        stretches[i, _FROM], stretches[i, _END] = stretches[i - 1, _FROM], stretches[i - 1, _END]
    stretches[at, _FROM], stretches[at, _END] = from_ns, until_ns
    lock[STRETCHES] += 1


@compiled
def _forget(locks: Locks, group: int) -> None:
    """Forget the older half of the group's stretches."""
    lock, stretches = locks.groups[group], locks.stretches[group]
    half = len(stretches) // 2
    for i in range(half, lock[STRETCHES]):
        stretches[i - half, _FROM], stretches[i - half, _END] = stretches[i, _FROM], stretches[i, _END]
    lock[STRETCHES] -= half


@compiled
def end_open(locks: Locks, group: int, from_ns: int, until_ns: int) -> None:
    """An event has had the group's lock from *from_ns*, when nobody had it later, and gives it up."""
    locks.groups[group, UNTIL] = until_ns
    _insert(locks, group, locks.groups[group, STRETCHES], from_ns, until_ns)


@compiled
def advance(locks: Locks, group: int, until_ns: int) -> None:
    """Work off the transactions that ask for the group's lock by *until_ns*, in the order of asking.

    While an event has the lock, those that need it wait for its end.
    """
    workers, is_open = locks.workers, locks.groups[group, UNTIL] == FAR
    while True:
        first, asks_ns = NO_ROW, until_ns + 1
        for i in range(len(workers)):
            if (
                workers[i, LEFT] > 0
                and workers[i, GROUP] == group
                and workers[i, BEGINS] + workers[i, ALONE] < asks_ns
                and not (is_open and workers[i, BOTH] > 0)
            ):
                first, asks_ns = i, workers[i, BEGINS] + workers[i, ALONE]
        if first == NO_ROW:
            return
        _work_off(locks, first, asks_ns)


@compiled
def _work_off(locks: Locks, row: int, asks_ns: int) -> None:
    """A worker's transaction, which asks for its group's lock at *asks_ns*."""
    worker = locks.workers[row]
    inode, ends_ns = locks.inodes[worker[INODE]], asks_ns
    if worker[BOTH] > 0:
        ends_ns = hold(locks, worker[GROUP], asks_ns, worker[BOTH])
    _count(inode, worker[BEGINS] - locks.relay_ns - worker[ASKED], ends_ns - worker[BEGINS])
    worker[ASKED] = FAR
    inode[UNTIL] = worker[BEGINS] = ends_ns
    worker[LEFT] -= 1


# -- an inode's lock ---------------------------------------------------------------------------------------


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
        advance(locks, worker[GROUP], at_ns)
        begins_ns = worker[BEGINS]
        if worker[LEFT] > 0 and at_ns < begins_ns < FAR and at_ns - worker[ASKED] >= HANDOFF_NS:
            at_ns = begins_ns + 1  # overtaken for too long: the worker comes first
            advance(locks, worker[GROUP], at_ns)
        if worker[LEFT] > 0 and worker[BEGINS] < at_ns:  # in the midst of a transaction
            advance(locks, worker[GROUP], worker[BEGINS] + worker[ALONE])
            if worker[LEFT] > 0 and worker[BEGINS] < at_ns:
                return FAR  # an event has the group's lock
        if locks.relay_ns < wakes_ns and worker[LEFT] > 0 and at_ns < inode[UNTIL] == worker[BEGINS]:
            # NOTE: the flusher only reads at first, for which it sleeps.  While it wakes up, it has the lock
            # already, and the worker spins: it is before the flusher when that wants to write.
            left, worker[ASKED] = worker[LEFT], worker[BEGINS]
            worker[BEGINS] += wakes_ns + locks.relay_ns
            advance(locks, worker[GROUP], worker[BEGINS] + worker[ALONE])
            if worker[LEFT] < left:
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
