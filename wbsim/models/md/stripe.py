"""A stripe of RAID5 or RAID6: one page of each member, at the same place of all (struct stripe_head)."""

from __future__ import annotations

from wbsim.models.bio import FLUSH_FUA, FUA
from wbsim.models.md.flight import Flight
from wbsim.models.raid.parity_reads import ones
from wbsim.sim.units import PAGE_SECTORS


class PagePart:
    """The sectors of a bio in the page of one *member*, from its start on; *owner* is the bio's flight."""

    __slots__ = ("end_sector", "member", "owner", "start_sector")

    def __init__(self, owner: Flight, member: int, start_sector: int, end_sector: int) -> None:
        self.owner = owner
        self.member = member
        self.start_sector = start_sector
        self.end_sector = end_sector


class Stripe:
    """Page ``number`` of each member.  Masks have a bit for each member, and ``parity`` is one of them.

    * ``users``: the references to it; a stripe without one is on a list, or inactive.
    * ``next``, ``prev`` and ``waits_on``: its neighbours on a list, and the list.
    * ``handle``: a thread must visit it.
    * ``delayed``: it must read first, and waits for more writes.
    * ``preread_active``: it may read now.
    * ``bit_delay``: it waits for the write of the bitmap with number ``bitmap_number``.
    * ``plugged``: it is in the plug of a task.
    * ``reconstructed``: its new parity is in the cache, and not on the members.
    * ``io_started``: pages of it were read or written since it was last inactive.
    * ``full``: it counts as a complete stripe that is being written.
    * ``fua``: its next pages are written with FUA, because one of their bios has it.
    * ``uptodate``: the pages whose contents are in the cache.
    * ``locked``: the pages that are being read or written.
    * ``overwritten``: the pages of which every byte is to be written.
    * ``dirty_parts``: the parts to write, in the pages ``writes`` (towrite of struct r5dev).
    * ``read_parts``: the parts to read, in the pages ``reads`` (toread).
    * ``writing``: the parts whose data is in the cache, and not yet safe, in the pages ``unsafe``.
    """

    __slots__ = (
        "bit_delay", "bitmap_number", "delayed", "dirty_parts", "fua", "full", "handle", "io_started",
        "locked", "next", "number", "overwritten", "parity", "plugged", "preread_active", "prev",
        "read_parts", "reads", "reconstructed", "unsafe", "uptodate", "users", "waits_on",
        "writes", "writing",
    )  # fmt: skip

    def __init__(self, number: int, parity: int) -> None:
        self.number = number
        self.parity = parity
        self.users = 0
        self.next: Stripe | None = None
        self.prev: Stripe | None = None
        self.waits_on: StripeList | None = None
        self.handle = self.delayed = self.preread_active = self.bit_delay = False
        self.plugged = self.reconstructed = self.io_started = False
        self.full = self.fua = False
        self.bitmap_number = 0
        self.uptodate = self.locked = self.overwritten = 0
        self.writes = self.reads = self.unsafe = 0
        self.dirty_parts: list[PagePart] = []
        self.read_parts: list[PagePart] = []
        self.writing: list[PagePart] = []

    def overlaps(self, member: int, start: int, end: int) -> bool:
        """Return whether a write that has not begun covers some of the sectors *start* to *end* of *member*.

        Both count from the start of the page, and *end* is exclusive.  A task then waits
        (stripe_bio_overlaps).
        """
        for part in self.dirty_parts:
            if part.member == member and part.start_sector < end and start < part.end_sector:
                return True
        return False

    def add_write(self, part: PagePart) -> bool:
        """Add *part*, which a bio writes; return whether it is the first write to its page.

        The caller has asked `overlaps`.  A page that is covered completely now is in ``overwritten``
        (__add_stripe_bio).
        """
        mask = 1 << part.member
        self.dirty_parts.append(part)
        is_first = not self.writes & mask
        self.writes |= mask
        covered = 0
        for other in self.dirty_parts:  # parts do not overlap
            if other.member == part.member:
                covered += other.end_sector - other.start_sector
        if covered == PAGE_SECTORS:
            self.overwritten |= mask
        return is_first

    def add_read(self, part: PagePart) -> None:
        """Add *part*, which a bio reads, to ``read_parts``, and its page to ``reads``."""
        self.read_parts.append(part)
        self.reads |= 1 << part.member

    def drain(self, mask: int) -> int:
        """Take the data of the writes to the pages in *mask* into the cache; return the number of pages.

        *mask* is a part of ``writes``.  The pages become ``unsafe``, and their parts move to ``writing``.  No
        time passes: `StripeVisits.charge` has that of the copies (ops_run_biodrain).
        """
        if mask == self.writes:
            self.writing += self.dirty_parts
            self.dirty_parts = []
        else:
            self.writing += [part for part in self.dirty_parts if mask >> part.member & 1]
            self.dirty_parts = [part for part in self.dirty_parts if not mask >> part.member & 1]
        for part in self.writing:
            op = part.owner.bio.op
            self.fua = self.fua or op in (FUA, FLUSH_FUA)
        self.writes &= ~mask
        self.overwritten &= ~mask
        self.unsafe |= mask
        return ones(mask)


class StripeList:
    """A list of stripes, oldest first (struct list_head); a stripe is on one list at most."""

    def __init__(self) -> None:
        self._first: Stripe | None = None
        self._last: Stripe | None = None
        self.count = 0

    @property
    def first(self) -> Stripe | None:
        """The oldest stripe; None: the list is empty."""
        return self._first

    def add(self, stripe: Stripe) -> None:
        """Add *stripe*, which is on no list, as the youngest (list_add_tail)."""
        last = self._last
        stripe.prev = last
        stripe.waits_on = self
        if last is None:
            self._first = stripe
        else:
            last.next = stripe
        self._last = stripe
        self.count += 1

    def remove(self, stripe: Stripe) -> None:
        """Remove *stripe*, which is on this list (list_del_init)."""
        prev, behind = stripe.prev, stripe.next
        if prev is None:
            self._first = behind
        else:
            prev.next = behind
        if behind is None:
            self._last = prev
        else:
            behind.prev = prev
        stripe.prev = stripe.next = stripe.waits_on = None
        self.count -= 1

    def take_all(self) -> list[Stripe]:
        """Remove all stripes, and return them, oldest first."""
        stripes = []
        while (stripe := self._first) is not None:
            self.remove(stripe)
            stripes.append(stripe)
        return stripes
