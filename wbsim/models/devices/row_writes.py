"""The reads and writes of members with which a controller brings a row to them.  Pure.

Data and parity are written where sectors are dirty.  Parity that covers only a part of the row needs old
contents, by the smaller number of reads (`raid.parity_reads`).  If one of these is on a faulty member, all
others are read, and the controller computes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from wbsim.models.devices.dirty_rows import Row
from wbsim.models.raid.parity_reads import plan_of
from wbsim.models.raid.rows import RowLayout


class MemberSectors(NamedTuple):
    """Sectors ``start`` to ``end`` (exclusive) of a member."""

    member: int
    start: int
    end: int


class RowWrites(NamedTuple):
    """The ``reads`` that come first, the ``writes``, and the sectors that go through the parity engine."""

    reads: list[MemberSectors]
    writes: list[MemberSectors]
    parity_sectors: int


def writes_of(row: Row, layout: RowLayout, strip_sectors: int, faulty: Collection[int]) -> RowWrites:
    """Return the reads and writes that bring *row* to an array without the members *faulty*, by number.

    Parity, if *layout* has it, is made of the reads and the dirty sectors.  The result also has the number of
    sectors that go through the parity engine for this.
    """
    base = row.number * strip_sectors
    writes = [
        MemberSectors(member, base + start, base + end)
        for position, runs in row.lines.items()
        for member in layout.members_of(row.number, position)
        if member not in faulty
        for start, end in runs
    ]
    parity = [member for member in layout.parity_of(row.number) if member not in faulty]
    if not parity:
        return RowWrites([], writes, 0)
    first = min(runs[0][0] for runs in row.lines.values())
    behind = max(runs[-1][1] for runs in row.lines.values())
    reads, sectors = _reads_of(row, layout, parity, faulty, first, behind)
    writes += [MemberSectors(member, base + first, base + behind) for member in parity]
    return RowWrites(
        [MemberSectors(member, base + start, base + end) for member, start, end in reads],
        writes,
        sectors * len(parity),
    )


def _reads_of(
    row: Row, layout: RowLayout, parity: list[int], faulty: Collection[int], first: int, behind: int
) -> tuple[list[MemberSectors], int]:
    """Return what is read for the *parity* of sectors *first* to *behind*, and the sectors that make it."""
    lines = {layout.members_of(row.number, position)[0]: runs for position, runs in row.lines.items()}
    every = [
        member
        for member in range(layout.members)
        if member in parity or member not in layout.parity_of(row.number)
    ]
    dirty = _mask(lines)
    overwritten = _mask(member for member, runs in lines.items() if runs == [(first, behind)])
    absent = _mask(every)
    plan = plan_of(dirty, overwritten, _mask(parity), absent, layout.members, _mask(faulty), rmw_level=1)
    sources = dirty | _mask(parity) if plan.modifies else absent & ~overwritten & ~_mask(parity)
    width = behind - first
    if sources & _mask(faulty):
        survivors = [member for member in every if member not in faulty]
        return [MemberSectors(member, first, behind) for member in survivors], 2 * layout.data * width
    if plan.modifies:
        spans = [MemberSectors(member, runs[0][0], runs[-1][1]) for member, runs in lines.items()]
        sectors = 2 * sum(end - start for _, start, end in spans)
        return spans + [MemberSectors(member, first, behind) for member in parity], sectors
    rest = [member for member in every if plan.reads >> member & 1]
    return [MemberSectors(member, first, behind) for member in rest], layout.data * width


def _mask(members: Iterable[int]) -> int:
    """Return *members* as a mask.

    >>> _mask([0, 3])
    9
    """
    return sum(1 << member for member in members)
