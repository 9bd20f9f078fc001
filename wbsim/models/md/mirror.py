"""RAID1 and RAID10: every write goes to each copy, and ends with the slowest (raid1.c, raid10.c, raid1-10.c).

Writes wait in the plug of the task (`MirrorPlug`) so that the bitmap is written once for all of them.  A task
that goes to sleep leaves them to the array's thread.

Left out: the barrier of resync, and the choice of a mirror by the distance of its head from the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wbsim.models.bio import READ, Bio
from wbsim.models.interfaces import PlugCallback, Thread
from wbsim.models.md.array import Array, Member
from wbsim.models.md.bitmap import WriteIntentBitmap
from wbsim.models.md.flight import Flight
from wbsim.models.md.spec import ArraySpec, MdCosts, MdRules
from wbsim.models.md.thread import ArrayThread
from wbsim.models.parts import Parts
from wbsim.models.raid.geometry import COPIES, Place, mirror_places
from wbsim.sim.engine import Steps


class Copies:
    """A part of a bio, and the copies of it that have not ended (struct r1bio, r10bio)."""

    __slots__ = ("copies", "flight", "member", "sector", "sectors")

    def __init__(self, flight: Flight, sector: int, sectors: int, member: int = -1) -> None:
        self.flight = flight
        self.copies = 0
        self.sector = sector
        self.sectors = sectors
        self.member = member
        """The member that reads the part; -1: it is written."""


class MirrorPlug(PlugCallback):
    """struct raid1_plug_cb: the writes that wait in a plug."""

    def __init__(self, array: Mirror) -> None:
        self._array = array
        self.bios: list[Bio] = []

    def call_back(self, thread: Thread) -> Steps:
        """Let *thread*, which flushes its plug, submit the writes (raid1_unplug).  Use: `yield from`."""
        bios, self.bios = self.bios, []
        return self._array.flush_bios(thread, bios)

    def hand_over(self) -> None:
        """Leave the writes to the array's thread, because the task goes to sleep."""
        self._array.leave_to_thread(self.bios)


class Mirror(Array):
    """An array of level RAID1 or RAID10."""

    def __init__(
        self,
        parts: Parts,
        name: str,
        spec: ArraySpec,
        rules: MdRules,
        costs: MdCosts,
        members: Sequence[Member],
    ) -> None:
        super().__init__(parts, name, spec, rules, costs, members)
        self._stripes = spec.level == "raid10"
        self._bitmap = None
        if spec.has_bitmap:
            self._bitmap = WriteIntentBitmap(parts.env, self._active, spec.bitmap_chunk)
        self._at_once = rules.mirror_writes == "direct" and self._bitmap is None
        self._plugs = rules.mirror_writes != "thread"
        copies = COPIES if self._stripes else len(self._active)
        self._most_plugged = None if rules.plug_bios is None else copies * rules.plug_bios
        self._pending: list[Bio] = []
        self._reads = [0] * len(self._queues)
        self._daemon = ArrayThread(parts, "raid10d" if self._stripes else "raid1d", self._work)

    def make_request(self, thread: Thread, flight: Flight) -> Steps:
        """Let *thread* write each part of the bio of *flight* to its copies, or read it from one of them.

        Use: `yield from`.  A part is what lies in one chunk, or the complete bio with RAID1.  It counts in
        ``flight.parts`` until its copies have ended.  Writes may wait in the plug of *thread*, to which the
        time is charged (raid1_make_request, raid10_make_request).
        """
        bio = flight.bio
        sectors = bio.end_sector - bio.start_sector
        if self._stripes:
            parts = mirror_places(bio.start_sector, sectors, self._chunk_sectors, len(self._queues))
        else:
            parts = [[Place(member, bio.start_sector, sectors) for member in range(len(self._queues))]]
        sector = bio.start_sector
        for places in parts:
            copies = [place for place in places if self._queues[place.member] is not None]
            flight.parts += 1
            if bio.op == READ:
                yield from self._start_read(thread, flight, copies)
            else:
                yield from self._start_write(thread, flight, sector, copies)
            sector += places[0].sectors

    def _start_read(self, thread: Thread, flight: Flight, places: Sequence[Place]) -> Steps:
        """read_balance: read from the copy with the fewest reads."""
        place = min(places, key=lambda copy: self._reads[copy.member])
        part = Copies(flight, place.sector, place.sectors, place.member)
        part.copies = 1
        self._reads[place.member] += 1
        thread.spent.md += self._times.bio
        yield self._times.bio
        if (rest := thread.submit_bio(self._clone(flight.bio, place, part))) is not None:
            yield from rest

    def _start_write(self, thread: Thread, flight: Flight, sector: int, places: Sequence[Place]) -> Steps:
        """raid1_write_request: start the write of all copies, which perhaps waits for the bitmap."""
        part = Copies(flight, sector, places[0].sectors)
        part.copies = len(places)
        if self._bitmap is not None:
            self._bitmap.start_write(sector, part.sectors)
        ns = len(places) * self._times.bio
        thread.spent.md += ns
        yield ns
        for place in places:
            clone = self._clone(flight.bio, place, part)
            if self._at_once:
                if (rest := thread.submit_bio(clone)) is not None:
                    yield from rest
            elif (plug := self._plug_of(thread)) is None:
                self.leave_to_thread([clone])
            else:
                plug.bios.append(clone)
                if self._most_plugged is not None and len(plug.bios) >= self._most_plugged:
                    thread.drop_callback(self)
                    yield from plug.call_back(thread)

    def _plug_of(self, thread: Thread) -> MirrorPlug | None:
        callback = thread.check_plugged(self, self._new_plug) if self._plugs else None
        assert callback is None or isinstance(callback, MirrorPlug), "an array makes its own callbacks"
        return callback

    def _new_plug(self) -> PlugCallback:
        return MirrorPlug(self)

    def flush_bios(self, thread: Thread, bios: Sequence[Bio]) -> Steps:
        """Let *thread* write the bitmap if that is due, and then submit *bios*.  Use: `yield from`.

        *bios* are those of members, not of the array.
        """
        if self._bitmap is not None:
            yield from self._bitmap.write_out(thread)
        for bio in bios:
            if (rest := thread.submit_bio(bio)) is not None:
                yield from rest

    def leave_to_thread(self, bios: Sequence[Bio]) -> None:
        """Let the thread of the array submit *bios*, because the task sleeps or has no plug.

        *bios* are those of members, as for `flush_bios`, which the thread calls.
        """
        self._pending += bios
        self._daemon.wake()

    def _work(self, thread: Thread) -> Steps:
        """raid1d, raid10d: submit what tasks have left (flush_pending_writes)."""
        while self._pending:
            bios, self._pending = self._pending, []
            thread.start_plug()
            yield from self.flush_bios(thread, bios)
            yield from thread.finish_plug()

    def _end_io(self, context: Any) -> None:
        """raid1_end_write_request: with its last copy a part ends."""
        part: Copies = context
        if part.member >= 0:
            self._reads[part.member] -= 1
        part.copies -= 1
        if part.copies:
            return
        if self._bitmap is not None and part.member < 0:
            self._bitmap.end_write(part.sector, part.sectors)
        part.flight.end_part()
