"""The stripe cache: the stripes of an array of RAID5 or RAID6, and the lists on which they wait.  Pure.

A stripe is one page of each member at the same place.  It is in use (``users``), waits on one of the lists of
`StripeCache`, or is inactive; an inactive stripe keeps its pages until another one needs its place.  The
names are those of drivers/md/raid5.c.

Left out: the eight parts by hash that the cache has from 3.13 on.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from wbsim.models.md.parity_reads import Pages
from wbsim.sim.invariants import require
from wbsim.sim.units import PAGE_SECTORS

BATCH: Final = 8
"""MAX_STRIPE_BATCH: the stripes that a thread takes at once."""


class PagePart:
    """The sectors of a bio in one page of a stripe; *owner* is the bio in flight."""

    __slots__ = ("end_sector", "owner", "start_sector")

    def __init__(self, owner: Any, start_sector: int, end_sector: int) -> None:
        self.owner = owner
        self.start_sector = start_sector
        self.end_sector = end_sector


class Stripe:
    """struct stripe_head: page ``number`` of each member.  Masks have a bit for each member.

    * ``users``: the references to it; a stripe without one is on a list, or inactive.
    * ``handle``: a thread must visit it.
    * ``delayed``: it must read first, and waits for more writes.
    * ``preread_active``: it may read now.
    * ``bit_delay``: it waits for the write of the bitmap with number ``bitmap_number``.
    * ``plugged``: it is in the plug of a task.
    * ``visited``: a thread is visiting it.
    * ``reconstructed``: its new parity is in the cache, and has not been written.
    * ``io_started``: pages of it were read or written since it was last inactive.
    * ``full``: it counts as a complete stripe that is being written.
    * ``fua``: its pages are written with FUA.
    """

    __slots__ = (
        "bit_delay", "bitmap_number", "delayed", "dirty_parts", "fua", "full", "handle", "io_started",
        "locked", "number", "overwritten", "parity", "plugged", "preread_active", "read_parts",
        "reconstructed", "uptodate", "users", "visited", "writing", "written",
    )  # fmt: skip

    def __init__(self, number: int, parity: int) -> None:
        self.number = number
        self.parity = parity
        self.users = 0
        self.handle = self.delayed = self.preread_active = self.bit_delay = False
        self.plugged = self.visited = self.reconstructed = self.io_started = False
        self.full = self.fua = False
        self.bitmap_number = 0
        self.uptodate = self.locked = self.overwritten = self.written = 0
        self.dirty_parts: dict[int, list[PagePart]] = {}
        """The parts to write, by member (towrite of struct r5dev)."""
        self.read_parts: dict[int, list[PagePart]] = {}
        """The parts to read (toread)."""
        self.writing: dict[int, list[PagePart]] = {}
        """The parts whose data is in the cache, and not yet safe on the members (written)."""

    @property
    def writes(self) -> int:
        """The pages with data to write, as a mask."""
        mask = 0
        for member in self.dirty_parts:
            mask |= 1 << member
        return mask

    @property
    def reads(self) -> int:
        """The pages that bios read, as a mask."""
        mask = 0
        for member in self.read_parts:
            mask |= 1 << member
        return mask

    def overlaps(self, member: int, start: int, end: int) -> bool:
        """stripe_bio_overlaps: return whether a write that has not begun covers some of these sectors."""
        return any(
            part.start_sector < end and start < part.end_sector for part in self.dirty_parts.get(member, ())
        )

    def add_write(self, member: int, part: PagePart) -> bool:
        """__add_stripe_bio: add *part*; return whether it is the first write to its page."""
        parts = self.dirty_parts.get(member)
        if parts is None:
            self.dirty_parts[member] = [part]
        else:
            parts.append(part)
        covered = sum(part.end_sector - part.start_sector for part in self.dirty_parts[member])
        if covered == PAGE_SECTORS:  # parts do not overlap
            self.overwritten |= 1 << member
        return parts is None

    def add_read(self, member: int, part: PagePart) -> None:
        """Add *part*, which a bio reads."""
        self.read_parts.setdefault(member, []).append(part)

    def drain(self, mask: int) -> int:
        """ops_run_biodrain: copy the data for the pages in *mask* into the cache; return their number."""
        members = [member for member in self.dirty_parts if mask >> member & 1]
        for member in members:
            self.writing[member] = self.dirty_parts.pop(member)
            self.written |= 1 << member
            self.overwritten &= ~(1 << member)
        return len(members)

    def pages(self, members: int, missing: int) -> Pages:
        """Return the stripe as `plan_of` sees it."""
        return Pages(members, self.parity, self.writes, self.overwritten, self.uptodate, self.locked, missing)


Stripes = OrderedDict[Stripe, None]
"""A list of stripes, oldest first."""


class StripeCache:
    """The stripes of an array: *size* at first, of which ``active`` are in use or on a list.

    * ``handle``: stripes that a thread may visit.
    * ``hold``: stripes that were delayed, and may read now; complete stripes go first.
    * ``delayed``: stripes that must read first, and wait for more writes.
    * ``bitmap``: stripes that wait for the write of the bitmap.
    * ``prereading``: the number of stripes with ``preread_active``.
    * ``full_writes``: the number of complete stripes that are being written.
    """

    def __init__(self, size: int, bypass_threshold: int) -> None:
        self.size = size
        self.active = 0
        self.blocked = False
        self.handle: Stripes = OrderedDict()
        self.hold: Stripes = OrderedDict()
        self.delayed: Stripes = OrderedDict()
        self.bitmap: Stripes = OrderedDict()
        self.prereading = 0
        self.full_writes = 0
        self._bypass_threshold = bypass_threshold
        self._bypass_count = 0
        self._last_hold: Stripe | None = None
        self._by_number: dict[int, Stripe] = {}
        self._inactive: Stripes = OrderedDict()

    @property
    def inactive(self) -> int:
        """The number of places that no active stripe has."""
        return self.size - self.active

    @property
    def admits(self) -> bool:
        """False while a task must wait for a stripe: after a shortage, until a quarter is free."""
        return self.inactive > 0 and (not self.blocked or self.active < self.size * 3 // 4)

    def find(self, number: int) -> Stripe | None:
        """find_get_stripe: return the stripe *number* if it is in the cache, and take a reference to it."""
        stripe = self._by_number.get(number)
        if stripe is None:
            return None
        if not stripe.users:
            if stripe in self._inactive:
                self.active += 1
                del self._inactive[stripe]
            else:
                self._take_off(stripe)
        stripe.users += 1
        return stripe

    def take(self, number: int, parity: int) -> Stripe | None:
        """get_free_stripe: return a new stripe *number* with a reference; None if there is no place for it.

        The stripe that has been inactive for longest loses its pages.
        """
        if not self.inactive:
            return None
        if len(self._by_number) >= self.size:
            oldest, _ = self._inactive.popitem(last=False)
            del self._by_number[oldest.number]
        stripe = self._by_number[number] = Stripe(number, parity)
        stripe.users = 1
        self.active += 1
        return stripe

    def put_off(self, stripe: Stripe, bitmap_written: int) -> bool:
        """do_release_stripe: put *stripe*, which has no user, on its list; return whether it is inactive now.

        *bitmap_written*: the number of the last write of the bitmap.
        """
        if not stripe.handle:
            if stripe.preread_active:
                stripe.preread_active = False
                self.prereading -= 1
            stripe.io_started = False
            self.active -= 1
            self._inactive[stripe] = None
            return True
        if stripe.delayed and not stripe.preread_active:
            self.delayed[stripe] = None
        elif stripe.bit_delay and stripe.bitmap_number > bitmap_written:
            self.bitmap[stripe] = None
        else:
            stripe.delayed = stripe.bit_delay = False
            self.handle[stripe] = None
        return False

    def activate_delayed(self) -> None:
        """raid5_activate_delayed: if no stripe is reading, all delayed ones may read."""
        if self.prereading:
            return
        for stripe in self.delayed:
            stripe.delayed = False
            if not stripe.preread_active:
                stripe.preread_active = True
                self.prereading += 1
            self.hold[stripe] = None
        self.delayed.clear()

    def batch(self) -> list[Stripe]:
        """Take up to `BATCH` stripes that a thread visits next, each with a reference to it."""
        stripes: list[Stripe] = []
        while len(stripes) < BATCH and (stripe := self._next()) is not None:
            stripe.users = 1
            stripes.append(stripe)
        return stripes

    def _next(self) -> Stripe | None:
        """__get_priority_stripe: a stripe of ``handle`` may pass one of ``hold``, but not for ever."""
        if self.handle:
            stripe = next(iter(self.handle))
            del self.handle[stripe]
            if not self.hold:
                self._bypass_count = 0
            elif not stripe.io_started:
                first = next(iter(self.hold))
                if first is self._last_hold:
                    self._bypass_count += 1
                else:
                    self._last_hold = first
                    self._bypass_count = max(0, self._bypass_count - self._bypass_threshold)
            return stripe
        tired = bool(self._bypass_threshold) and self._bypass_count > self._bypass_threshold
        if self.hold and (tired or not self.full_writes):
            stripe = next(iter(self.hold))
            del self.hold[stripe]
            self._bypass_count = max(0, self._bypass_count - self._bypass_threshold)
            return stripe
        return None

    def _take_off(self, stripe: Stripe) -> None:
        for waiting in (self.handle, self.hold, self.delayed, self.bitmap):
            if stripe in waiting:
                del waiting[stripe]
                return

    def check(self, name: str) -> None:
        """Check that each stripe is in one place.

        Raises:
            LawBroken: a stripe is lost or counted twice.
        """
        waiting = sum(len(stripes) for stripes in (self.handle, self.hold, self.delayed, self.bitmap))
        require(
            0 <= waiting <= self.active <= self.size
            and self.active + len(self._inactive) == len(self._by_number) <= self.size,
            f"{name}: {len(self._by_number)} stripes of {self.size} are in the cache, {self.active} active,"
            f" {len(self._inactive)} inactive, {waiting} waiting",
        )
