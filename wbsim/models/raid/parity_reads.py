"""The reads that a write to a part of a stripe needs first, by the smaller number of reads.  Pure.

Stands for handle_stripe_dirtying in raid5.c, where a unit of a stripe is a page.  Controllers have the same
rule, with strips as units.

Members are bits: bit i of a mask stands for member i.
"""

from __future__ import annotations


class Plan:
    """The way in which new parity is made.

    * ``modifies``: from old data and old parity (read-modify-write); otherwise from all data
      (reconstruct-write).
    * ``reads``: the units to read for it, as a mask; a unit that cannot be read is left out.
    * ``ready``: nothing must be read, so the write may begin.
    * ``waits``: units must be read, or computed from others, so the stripe is delayed if it may not read yet.
    """

    __slots__ = ("modifies", "reads", "ready", "waits")

    def __init__(self, modifies: bool, reads: int, ready: bool, waits: bool) -> None:
        self.modifies = modifies
        self.reads = reads
        self.ready = ready
        self.waits = waits


def plan_of(
    writes: int, overwritten: int, parity: int, absent: int, members: int, faulty: int, rmw_level: int
) -> Plan:
    """Return how new parity is made.

    * *writes*: the units with data to write; *overwritten*: those of which every byte is to be written.
    * *parity*: the units with parity.
    * *absent*: the units whose old contents are not in the cache.
    * *members*: the number of members, of which those in the mask *faulty* are not there.
    * *rmw_level*: 0 forbids read-modify-write, 1 prefers reconstruct-write of equal ones, and 2 the other.

    >>> narrow = plan_of(0b0001, 0b0001, 0b1000, 0b1111, members=4, faulty=0, rmw_level=1)
    >>> wide = plan_of(1, 1, 1 << 7, 0b1111_1111, members=8, faulty=0, rmw_level=1)
    >>> (narrow.modifies, bin(narrow.reads)), (wide.modifies, bin(wide.reads))
    ((False, '0b110'), (True, '0b10000001'))
    """
    for_modify = (writes | parity) & absent
    for_reconstruct = absent & ~overwritten & ~parity
    if rmw_level == 0:
        rmw, rcw = 2, 1
    else:
        unreadable = 2 * members
        rmw = ones(for_modify & ~faulty) + unreadable * ones(for_modify & faulty)
        rcw = ones(for_reconstruct & ~faulty) + unreadable * ones(for_reconstruct & faulty)
    if rmw < rcw or (rmw == rcw and rmw_level == 2):
        reads = for_modify & ~faulty
        return Plan(True, reads, rmw == 0, reads != 0 or rmw > members)
    return Plan(False, for_reconstruct & ~faulty, for_reconstruct == 0, for_reconstruct != 0)


def ones(mask: int) -> int:
    """Return the number of members in *mask*.

    >>> ones(0b1011)
    3
    """
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count
