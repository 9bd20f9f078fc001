"""The base of all arrays: bios in flight, flushes and counters (drivers/md/md.c).

Left out: resync and reshape, the superblock's clean flag, write-mostly and write-behind members, discards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from wbsim.models.bio import FLUSH, FLUSH_FUA, FUA, READ, Bio
from wbsim.models.block.gendisk import GenDisk
from wbsim.models.block.queue import Queue
from wbsim.models.block.spec import QueueLimits
from wbsim.models.interfaces import Thread
from wbsim.models.md.flight import Flight
from wbsim.models.md.flushes import AtOnce, Flushes, InTurn
from wbsim.models.md.spec import ArraySpec, MdCosts, MdRules, data_offset
from wbsim.models.md.times import Times
from wbsim.models.parts import Parts
from wbsim.models.raid.geometry import Place
from wbsim.sim.engine import Steps
from wbsim.sim.invariants import require
from wbsim.sim.units import SECTOR_BYTES


class Member(NamedTuple):
    """A member of an array: its queue, and its capacity (sectors; None: it does not matter)."""

    queue: Queue
    sectors: int | None


class Array(GenDisk):
    """struct mddev: an array of *members*; levels add `make_request`."""

    def __init__(
        self,
        parts: Parts,
        name: str,
        spec: ArraySpec,
        rules: MdRules,
        costs: MdCosts,
        members: Sequence[Member],
    ) -> None:
        queues = [member.queue for member in members]
        active = [queue for queue, disk in zip(queues, spec.members, strict=True) if disk not in spec.faulty]
        super().__init__(parts.env, name, stacked_limits(active), any(queue.has_cache for queue in active))
        self.takes_bios = True
        volatile = [queue for queue in active if queue.has_cache]
        self._flushes: Flushes = (
            InTurn(parts, volatile, self._submit_data)
            if rules.flushes == "in_turn" and volatile
            else AtOnce(volatile)
        )
        self._times = Times(costs)
        self._queues: list[Queue | None] = [queue if queue in active else None for queue in queues]
        self._active = active
        self._ends: list[Callable[[Any], None]] = [partial(self._end_on, queue.queue) for queue in members]
        sizes = [member.sectors for member in members if member.sectors is not None]
        self._offset = data_offset(min(sizes)) if sizes else 0
        self._chunk_sectors = spec.chunk // SECTOR_BYTES

    def take_bio(self, thread: Thread, bio: Bio) -> Steps:
        """Let *thread* give *bio* to the members, and flush them if *bio* asks for that (`Flushes`).

        Use: `yield from`.
        `end` counts and completes *bio* when all its parts have ended (md_submit_bio).
        """
        flight = Flight(bio, self._env.now, self.end)
        self._becomes_busy()
        self.stat.in_flight += 1
        if bio.op in (FLUSH, FLUSH_FUA):
            return self._flush_first(thread, flight)
        return self._submit_data(thread, flight)

    def _flush_first(self, thread: Thread, flight: Flight) -> Steps:
        """md_flush_request: let *thread* flush the members before the data of *flight*."""
        if (yield from self._flushes.flush_members(thread, flight)):
            yield from self._submit_data(thread, flight)

    def _submit_data(self, thread: Thread, flight: Flight) -> Steps:
        """md_submit_flush_data: let *thread* submit the data of *flight* behind the flush."""
        if flight.bio.end_sector > flight.bio.start_sector:
            yield from self.make_request(thread, flight)
        flight.end_part()

    def make_request(self, thread: Thread, flight: Flight) -> Steps:
        """Let *thread* give the data of *flight* to the members, as the level demands.  Use: `yield from`.

        Each part counts in ``flight.parts`` until it has ended.  The time is charged to *thread*.
        """
        raise NotImplementedError

    def _clone(self, bio: Bio, place: Place, context: Any) -> Bio:
        """Return the part of *bio* for the member of *place*; `_end_io` gets *context* when it ends."""
        queue = self._queues[place.member]
        assert queue is not None, f"{self.name}: member {place.member} is faulty"
        op = self._op_of(bio, queue)
        sectors = bio.end_sector - bio.start_sector
        return Bio(
            self._offset + place.sector,
            place.sectors,
            segments=-(-bio.segments * place.sectors // sectors),
            op=op,
            queue=queue,
            sync=bio.sync,
            nomerge=bio.nomerge or op == FUA,
            meta=bio.meta,
            unplug=bio.unplug,
            end_io=self._ends[place.member],
            context=context,
        )

    def _op_of(self, bio: Bio, queue: Queue) -> str:
        """Return the op of data of *bio* for the member *queue*: the array has done the flush before it."""
        if bio.op == FLUSH_FUA:
            return FUA if queue.has_cache else "W"
        return "W" if bio.op == FLUSH else bio.op

    def _end_on(self, queue: Queue, context: Any) -> None:
        self.ends_on = queue.ends_on
        self._end_io(context)

    def _end_io(self, context: Any) -> None:
        """End a part of a bio, for which `_clone` got *context*."""
        raise NotImplementedError

    def end(self, flight: Flight) -> None:
        """Count the bio of *flight* in the statistics, and call its ``end_io``: all its parts have ended.

        `Flight.end_part` calls this once.
        """
        bio = flight.bio
        stat = self.stat.reads if bio.op == READ else self.stat.writes
        stat.ios += 1
        stat.sectors += bio.end_sector - bio.start_sector
        stat.wait_ns += self._env.now - flight.since_ns
        self.stat.in_flight -= 1
        if not self.stat.in_flight:
            self._becomes_idle()
        if bio.end_io is not None:
            bio.end_io(bio.context)

    def unplug(self) -> None:
        """Open the plugs of the members' queues (to 2.6.38) for a task that waits; see `GenDisk.unplug`."""
        for queue in self._active:
            queue.unplug()

    @property
    def congested(self) -> bool:
        """True if a member is congested, so pdflush leaves the array alone; see `GenDisk.congested`."""
        return any(queue.congested for queue in self._active)

    def check(self) -> None:
        """Check at the end of a run that no bio has ended twice; see `GenDisk.check`.

        Raises:
            LawBroken: a bio has ended twice.
        """
        require(self.stat.in_flight >= 0, f"{self.name}: a bio ended twice")


def stacked_limits(queues: Sequence[Queue]) -> QueueLimits:
    """Return the limits of an array of *queues*, at least one: of each limit, the smallest.

    ``nomerges`` is 0 for each array (blk_stack_limits).
    """
    limits = [queue.limits for queue in queues]
    return QueueLimits(
        max_sectors_bytes=min(limit.max_sectors_bytes for limit in limits),
        max_segments=min(limit.max_segments for limit in limits),
        max_segment_bytes=min(limit.max_segment_bytes for limit in limits),
        nomerges=0,
        max_discard_bytes=min(limit.max_discard_bytes for limit in limits),
    )
