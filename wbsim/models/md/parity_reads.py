"""What a write to a part of a stripe must read first (handle_stripe_dirtying, fetch_block).  Pure.

Members are bits: bit i of a mask stands for member i.
"""

from __future__ import annotations

from typing import NamedTuple


class Pages(NamedTuple):
    """The pages of a stripe, as masks of members.

    * ``parity``: the members with its parity.
    * ``writes``: the pages with data to write.
    * ``overwritten``: the pages of which every byte is to be written.
    * ``uptodate``: the pages whose contents are in the cache.
    * ``locked``: the pages that are being read or written.
    * ``missing``: the members that are not there.
    """

    members: int
    parity: int
    writes: int
    overwritten: int
    uptodate: int
    locked: int
    missing: int


class Plan(NamedTuple):
    """How new parity is made.

    * ``modifies``: from old data and old parity (read-modify-write); otherwise from all data
      (reconstruct-write).
    * ``reads``: the pages to read for it, as a mask; a page that cannot be read is left out.
    * ``ready``: nothing must be read, so the write may begin.
    * ``waits``: pages must be read, or computed from others, so the stripe is delayed if it may not read yet.
    """

    modifies: bool
    reads: int
    ready: bool
    waits: bool


def plan_of(pages: Pages, rmw_level: int) -> Plan:
    """Return how the parity of a stripe is made, by the smaller number of reads.

    *rmw_level*: 0 forbids read-modify-write, 1 prefers reconstruct-write of equal ones, and 2 the other.
    """
    every = (1 << pages.members) - 1
    absent = every & ~pages.locked & ~pages.uptodate
    for_modify = (pages.writes | pages.parity) & absent
    for_reconstruct = every & ~pages.overwritten & ~pages.parity & absent
    unreadable = 2 * pages.members
    if rmw_level == 0:
        rmw, rcw = 2, 1
    else:
        rmw = _count(for_modify, pages.missing, unreadable)
        rcw = _count(for_reconstruct, pages.missing, unreadable)
    stuck = rmw > pages.members and rcw > pages.members
    if rmw < rcw or (rmw == rcw and rmw_level == 2):
        reads = for_modify & ~pages.missing
        return Plan(True, reads, rmw == 0, bool(reads) or stuck)
    return Plan(False, for_reconstruct & ~pages.missing, not for_reconstruct, bool(for_reconstruct))


def _count(mask: int, missing: int, unreadable: int) -> int:
    """Return the number of reads of *mask*; each page of a *missing* member counts as *unreadable* reads."""
    return (mask & ~missing).bit_count() + unreadable * (mask & missing).bit_count()
