"""The merge rule: the size limits, when a bio and a request touch, and what they must have in common.

Stands for blk_try_merge, blk_rq_merge_ok, blk_cgroup_mergeable, ll_back_merge_fn, ll_front_merge_fn and
ll_merge_requests_fn (block/blk-merge.c, block/blk-cgroup.h).  Pure: no clock, no random numbers.

Left out: discards of several ranges, integrity and encryption.  Also left out are write hints, I/O priorities
and cgroups, which must be equal for a merge.  docs/measurements.md K lists the events that carry them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from wbsim.models.bio import Bio, Request
from wbsim.models.block.spec import PlugRules, QueueLimits
from wbsim.sim.units import SECTOR_BYTES


@dataclass(frozen=True)
class Bounds:
    """The limits of a queue and the rules of an era, as the merge rule needs them.

    * ``merges``: bios merge at all; False with nomerges 2.
    * ``only_cheap``: a scheduler tries only the request that merged last (nomerges 1).
    * ``meta_apart``: REQ_META must be set on both or on neither.
    * ``insertion_repeats``: a request that grew by an insertion is joined with the one in front of it, too.
    """

    max_sectors: int
    max_segments: int
    max_discard_sectors: int
    merges: bool
    only_cheap: bool
    meta_apart: bool
    insertion_repeats: bool


def bounds_of(limits: QueueLimits, rules: PlugRules) -> Bounds:
    """Return the bounds of a queue with *limits* under the *rules* of an era."""
    return Bounds(
        limits.max_sectors_bytes // SECTOR_BYTES,
        limits.max_segments,
        limits.max_discard_bytes // SECTOR_BYTES,
        limits.nomerges != 2,
        limits.nomerges == 1,
        rules.meta_apart,
        rules.insertion_repeats,
    )


class Merge(Enum):
    """The fate of a bio; the values are the ends of the tracepoints' names."""

    NEW = "getrq"
    BACK = "backmerge"
    FRONT = "frontmerge"


# Copies, because the members of an enum are slow to look up; Final, because mypyc then reads them at once.
NEW: Final = Merge.NEW
BACK: Final = Merge.BACK
FRONT: Final = Merge.FRONT


def fits(request: Request, sectors: int, segments: int, bounds: Bounds) -> bool:
    """Return whether *request* may grow by *sectors* sectors and *segments* segments within *bounds*."""
    most = bounds.max_discard_sectors if request.discard else bounds.max_sectors
    return bool(
        request.segments + segments <= bounds.max_segments
        and request.end_sector - request.start_sector + sectors <= most
    )


def try_merge(request: Request, bio: Bio, bounds: Bounds) -> Merge:
    """Merge *bio* into *request* if they touch and `would_merge` is true; return BACK or FRONT, else NEW.

    BACK: *bio* is the new end of *request*; FRONT: it is the new beginning.  NEW: *bio* is in no request yet.

    If only a limit forbids the merge, flag *request* NOMERGE.  The caller has compared the queues, and has
    tested ``bounds.merges``.

    >>> bounds = Bounds(8, 128, 8, merges=True, only_cheap=False, meta_apart=True, insertion_repeats=True)
    >>> request = Request(Bio(8, 4))
    >>> try_merge(request, Bio(12, 4), bounds), try_merge(request, Bio(0, 8), bounds), request.nomerge
    (<Merge.BACK: 'backmerge'>, <Merge.NEW: 'getrq'>, True)
    """
    back = request.end_sector == bio.start_sector
    if not back and request.start_sector != bio.end_sector:
        return NEW
    if request.nomerge or bio.nomerge or request.op != bio.op:
        return NEW
    if bounds.meta_apart and request.meta != bio.meta:
        return NEW
    if not fits(request, bio.end_sector - bio.start_sector, bio.segments, bounds):
        request.nomerge = True
        return NEW
    request.segments += bio.segments
    request.merges += 1
    if back:
        request.end_sector = bio.end_sector
        request.bios.append(bio)
        return BACK
    request.start_sector = bio.start_sector
    request.bios.insert(0, bio)
    return FRONT


def try_join(request: Request, follower: Request, bounds: Bounds) -> bool:
    """Append the request *follower* to *request*, if `would_join` is true; return whether it was appended.

    This is the sort-merge insertion of an elevator, which drops *follower* then.
    """
    if not would_join(request, follower, bounds):
        return False
    request.end_sector = follower.end_sector
    request.segments += follower.segments
    request.merges += follower.merges + 1
    request.bios += follower.bios
    request.started_ns = min(request.started_ns, follower.started_ns)
    return True


def would_merge(request: Request, bio: Bio, bounds: Bounds) -> bool:
    """Return whether *request* would take *bio*, whose sectors touch it; nothing changes.

    Neither has NOMERGE, both have one op and, with ``meta_apart``, equal REQ_META, and *bounds* are kept.
    A replay of a capture asks this.
    """
    if request.nomerge or bio.nomerge or request.op != bio.op:
        return False
    if bounds.meta_apart and request.meta != bio.meta:
        return False
    return fits(request, bio.sectors, bio.segments, bounds)


def would_join(request: Request, follower: Request, bounds: Bounds) -> bool:
    """Return whether *request* would take the request *follower* at its end; nothing changes.

    *follower* must begin where *request* ends; all else is as in `would_merge`.
    """
    return (
        request.end_sector == follower.start_sector
        and not request.nomerge
        and not follower.nomerge
        and request.op == follower.op
        and (request.meta == follower.meta or not bounds.meta_apart)
        and fits(request, follower.sectors, follower.segments, bounds)
    )
