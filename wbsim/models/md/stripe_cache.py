"""The stripe cache: the stripes of an array of RAID5 or RAID6, and the lists on which they wait.  Pure.

A stripe is in use (``users``), waits on one of the lists of `StripeCache`, or is inactive.  An inactive one
keeps its pages until another one needs its place.  The names are those of drivers/md/raid5.c.

Left out: the eight parts by hash that the cache has from 3.13 on.
"""

from __future__ import annotations

from typing import Final

from wbsim.models.md.stripe import Stripe, StripeList
from wbsim.sim.invariants import require

BATCH: Final = 8
"""MAX_STRIPE_BATCH: the stripes that a thread takes at once."""


class StripeCache:
    """The stripes of an array: *size* at first, of which ``active`` are in use or on a list.

    * ``handle``: stripes that a thread may visit.
    * ``hold``: stripes that were delayed, and may read now; complete stripes go first.
    * ``delayed``: stripes that must read first, and wait for more writes.
    * ``bitmap``: stripes that wait for the write of the bitmap.
    * ``prereading``: the number of stripes with ``preread_active``.
    * ``full_writes``: the number of complete stripes that are being written.
    * ``blocked``: a task waits because there was no place; the array sets this, and may raise ``size``.
    """

    def __init__(self, size: int, bypass_threshold: int) -> None:
        self.size = size
        self.active = 0
        self.blocked = False
        self.handle = StripeList()
        self.hold = StripeList()
        self.delayed = StripeList()
        self.bitmap = StripeList()
        self.prereading = 0
        self.full_writes = 0
        self._bypass_threshold = bypass_threshold
        self._bypass_count = 0
        self._last_hold: Stripe | None = None
        self._by_number: dict[int, Stripe] = {}
        self._inactive = StripeList()

    @property
    def inactive(self) -> int:
        """The number of stripes that could become active now: the places that no active stripe has."""
        return self.size - self.active

    @property
    def admits(self) -> bool:
        """False while a task must wait for a stripe: after a shortage, until more than a quarter is free."""
        return self.inactive > 0 and (not self.blocked or self.active < self.size * 3 // 4)

    def find(self, number: int) -> Stripe | None:
        """Return stripe *number* with one reference more, and on no list; None: it is not in the cache."""
        stripe = self._by_number.get(number)
        if stripe is None:
            return None
        waits_on = stripe.waits_on
        if waits_on is not None:
            waits_on.remove(stripe)
            if waits_on is self._inactive:
                self.active += 1
        stripe.users += 1
        return stripe

    def take(self, number: int, parity: int) -> Stripe | None:
        """Return a new stripe *number* with a reference; None if there is no place for it.

        *parity*: the mask of its members with parity.  The caller has asked `find`.  The stripe that has been
        inactive for longest loses its pages (get_free_stripe).
        """
        if not self.inactive:
            return None
        oldest = self._inactive.first
        if len(self._by_number) >= self.size and oldest is not None:
            self._inactive.remove(oldest)
            del self._by_number[oldest.number]
        stripe = self._by_number[number] = Stripe(number, parity)
        stripe.users = 1
        self.active += 1
        return stripe

    def put_off(self, stripe: Stripe, bitmap_written: int) -> bool:
        """Put *stripe*, which has no user, on the list on which it waits; return whether it is inactive now.

        A stripe without ``handle`` becomes inactive.  *bitmap_written*: the number of the last write of the
        bitmap that has ended (do_release_stripe).
        """
        if not stripe.handle:
            if stripe.preread_active:
                stripe.preread_active = False
                self.prereading -= 1
            stripe.io_started = False
            self.active -= 1
            self._inactive.add(stripe)
            return True
        if stripe.delayed and not stripe.preread_active:
            self.delayed.add(stripe)
        elif stripe.bit_delay and stripe.bitmap_number > bitmap_written:
            self.bitmap.add(stripe)
        else:
            stripe.delayed = stripe.bit_delay = False
            self.handle.add(stripe)
        return False

    def activate_delayed(self) -> None:
        """Let all delayed stripes read, unless some stripe is still reading (raid5_activate_delayed).

        They move to ``hold``.
        """
        if self.prereading:
            return
        for stripe in self.delayed.take_all():
            stripe.delayed = False
            if not stripe.preread_active:
                stripe.preread_active = True
                self.prereading += 1
            self.hold.add(stripe)

    def batch(self) -> list[Stripe]:
        """Take up to `BATCH` stripes that a thread visits next, with a reference to each; return them.

        The result is empty if no stripe may be visited.
        """
        stripes: list[Stripe] = []
        while len(stripes) < BATCH and (stripe := self._next()) is not None:
            stripe.users = 1
            stripes.append(stripe)
        return stripes

    def _next(self) -> Stripe | None:
        """__get_priority_stripe: a stripe of ``handle`` may pass one of ``hold``, but not for ever."""
        first, stripe = self.hold.first, self.handle.first
        if stripe is not None:
            self.handle.remove(stripe)
            if first is None:
                self._bypass_count = 0
            elif not stripe.io_started:
                if first is self._last_hold:
                    self._bypass_count += 1
                else:
                    self._last_hold = first
                    self._bypass_count = max(0, self._bypass_count - self._bypass_threshold)
            return stripe
        enough = self._bypass_threshold > 0 and self._bypass_count > self._bypass_threshold
        if first is not None and (enough or not self.full_writes):
            self.hold.remove(first)
            self._bypass_count = max(0, self._bypass_count - self._bypass_threshold)
            return first
        return None

    def check(self, name: str) -> None:
        """Check that each stripe is in one place; *name*, that of the array, is for the message.

        Raises:
            LawBroken: a stripe is lost or counted twice.
        """
        count = self.handle.count + self.hold.count + self.delayed.count + self.bitmap.count
        require(
            0 <= count <= self.active <= self.size
            and self.active + self._inactive.count == len(self._by_number) <= self.size,
            f"{name}: {len(self._by_number)} stripes of {self.size} are in the cache, {self.active} active,"
            f" {self._inactive.count} inactive, {count} waiting",
        )
