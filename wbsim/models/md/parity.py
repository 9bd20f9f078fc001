"""RAID5 and RAID6: tasks add pages to stripes, and a thread reads, makes parity and writes (raid5.c).

A write is cut into pages.  Each page takes a stripe of the cache, for which the task perhaps waits.  The
stripe waits in the plug of the task, and then on a list of the thread, which visits it several times
(`stripe_visits`).  When its last visit has ended the bios, the stripe is inactive.

Left out: batches of complete stripes (4.1), which share a visit; the journal, the partial parity log, resync
and reshape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from wbsim.models.bio import READ, Bio
from wbsim.models.interfaces import PlugCallback, Thread
from wbsim.models.md.array import Array, Member
from wbsim.models.md.bitmap import WriteIntentBitmap
from wbsim.models.md.flight import Flight
from wbsim.models.md.spec import ArraySpec, MdCosts, MdRules
from wbsim.models.md.stripe import PagePart, Stripe
from wbsim.models.md.stripe_cache import BATCH, StripeCache
from wbsim.models.md.stripe_visits import BatchWork, PageIo, StripeVisits
from wbsim.models.md.thread import ArrayThread
from wbsim.models.md.wait_queue import WaitQueue
from wbsim.models.parts import Parts
from wbsim.models.raid.geometry import ParityGeometry, Place
from wbsim.models.scheduler.cpu import cond_resched
from wbsim.models.time_accounting import STRIPE
from wbsim.sim.engine import Steps
from wbsim.sim.invariants import require
from wbsim.sim.units import PAGE_BYTES, PAGE_SECTORS

_MOST_PAGES: Final = 256
"""RAID5_MAX_REQ_STRIPES: the pages of the largest bio, in kernels with ``whole_stripes``."""


class StripePlug(PlugCallback):
    """struct raid5_plug_cb: the stripes that wait in a plug."""

    def __init__(self, array: Parity) -> None:
        self._array = array
        self.stripes: list[Stripe] = []

    def call_back(self, thread: Thread) -> Steps:
        """Let *thread*, which flushes its plug, put the stripes on lists of `StripeCache`.

        Use: `yield from`.
        """
        stripes, self.stripes = self.stripes, []
        return self._array.release_all(thread, stripes)

    def hand_over(self) -> None:
        """Put the stripes on lists of `StripeCache`, in no time, because the task goes to sleep."""
        self._array.put_all(self.stripes)


class OpenPlug(PlugCallback):
    """struct md_plug_cb (to 3.5): while the plug is open, no delayed stripe of the array begins to read."""

    def __init__(self, array: Parity) -> None:
        self._array = array
        array.open_plugs += 1

    def call_back(self, thread: Thread) -> Steps:
        """Count this plug as closed, because *thread* flushes it (plugger_unplug).  Use: `yield from`."""
        self.hand_over()
        yield 0

    def hand_over(self) -> None:
        """Count this plug as closed, because the task goes to sleep."""
        self._array.close_plug()


class Parity(Array):
    """An array of level RAID5 or RAID6."""

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
        self._adds_stripes = rules.whole_stripes
        self._cache_grows = rules.cache_grows
        if rules.whole_stripes:
            self._most_pages = min(self._most_pages, _MOST_PAGES)
        self._geometry = ParityGeometry(len(self._queues), spec.parities, spec.chunk // PAGE_BYTES)
        self._cache = StripeCache(spec.stripe_cache_size, spec.preread_bypass_threshold)
        self._bitmap = None
        if spec.has_bitmap:
            self._bitmap = WriteIntentBitmap(parts.env, self._active, spec.bitmap_chunk)
        self._bitmap_started = self._bitmap_written = 0
        self._free_stripes = WaitQueue(parts.env, STRIPE)
        self._overlaps_end = WaitQueue(parts.env, STRIPE)
        self._visits = StripeVisits(
            self._queues, self._end_page, self._offset, self._geometry, self._cache, self._bitmap,
            self._times, spec.rmw_level if spec.parities == 1 or rules.raid6_rmw else 0,
            self._overlaps_end.wake_all,
        )  # fmt: skip
        self._lock = parts.spin_lock("device_lock")
        self._released: list[Stripe] = []
        self.open_plugs = 0
        self._new_plug: Callable[[], PlugCallback] = partial(
            StripePlug if rules.plugs_stripes else OpenPlug, self
        )
        self._grows = False
        self._daemon = ArrayThread(parts, f"{spec.level}d", self._work)
        self._workers = [
            ArrayThread(parts, f"worker{number}", self._work_beside)
            for number in range(spec.group_thread_cnt)
        ]

    # -- what tasks do -----------------------------------------------------------------------------------

    def make_request(self, thread: Thread, flight: Flight) -> Steps:
        """Add each page of the bio to its stripe, for which *thread* may wait.  Use: `yield from`.

        Each page counts in ``flight.parts`` until it has ended.  The array's threads read and write the
        stripes.  A read of an array without faults goes to the members directly (raid5_make_request).  The
        time of adding pages, or of mapping a read, is charged to *thread*.
        """
        bio = flight.bio
        if bio.op == READ and len(self._active) == len(self._queues):
            yield from self._read_aligned(thread, flight)
            return
        first, end = bio.start_sector // PAGE_SECTORS, -(-bio.end_sector // PAGE_SECTORS)
        geometry = self._geometry
        if end - first == 1:
            number, member = geometry.place_of(first)
            yield from self._add_all(thread, flight, number, [(first, member)])
            return
        chunk = geometry.chunk_pages
        whole = self._adds_stripes and first // chunk < (end - 1) // chunk
        begin = geometry.first_page(first, end - first) if whole else first
        done_pages: set[int] = set()
        page = begin
        for _ in range(end - first):
            if page not in done_pages:
                number, member = geometry.place_of(page)
                pages = [(page, member)]
                if whole:
                    pages = [
                        (other, member) for other, member in geometry.pages_of(number) if first <= other < end
                    ]
                    done_pages.update([other for other, _ in pages])
                yield from self._add_all(thread, flight, number, pages)
            page = page + 1 if page + 1 < end else first

    def _add_all(self, thread: Thread, flight: Flight, number: int, pages: list[tuple[int, int]]) -> Steps:
        """make_stripe_request: add the *pages* of a bio that are in stripe *number*, when there is room."""
        bio = flight.bio
        while True:
            stripe = self._find_or_take(number)
            if stripe is None:
                yield from self._wait_for_stripe(thread)
            elif bio.op == READ or not self._overlaps(stripe, bio, pages):
                break
            else:
                self._release(stripe)
                self._daemon.wake()
                yield from self._overlaps_end.sleep(thread)
        for page, member in pages:
            self._add(stripe, flight, page, member)
        ns = self._times.stripe * len(pages)
        thread.spent.md += ns
        yield ns
        stripe.handle = True
        stripe.delayed = False
        if bio.sync and not stripe.preread_active:
            stripe.preread_active = True
            self._cache.prereading += 1
        self._release_to_plug(thread, stripe)

    def _add(self, stripe: Stripe, flight: Flight, page: int, member: int) -> None:
        """__add_stripe_bio: add the part of a bio in *page* to *stripe*."""
        bio = flight.bio
        start, end = _sectors_of(bio, page)
        part = PagePart(flight, member, start, end)
        flight.parts += 1
        if bio.op == READ:
            stripe.add_read(part)
            return
        if stripe.add_write(part) and self._bitmap is not None:
            self._bitmap.start_write(stripe.number * PAGE_SECTORS, PAGE_SECTORS)
            stripe.bitmap_number = self._bitmap_started + 1
            stripe.bit_delay = True

    def _overlaps(self, stripe: Stripe, bio: Bio, pages: list[tuple[int, int]]) -> bool:
        if not stripe.writes:
            return False
        for page, member in pages:
            start, end = _sectors_of(bio, page)
            if stripe.overlaps(member, start, end):
                return True
        return False

    def _find_or_take(self, number: int) -> Stripe | None:
        """raid5_get_active_stripe: return stripe *number* with a reference; None: the task must wait."""
        cache = self._cache
        stripe = cache.find(number)
        if stripe is None and not cache.blocked:
            stripe = cache.take(number, self._geometry.parity_mask(number))
        return stripe

    def _wait_for_stripe(self, thread: Thread) -> Steps:
        """Let *thread* sleep until there are stripes again (wait_for_stripe)."""
        cache = self._cache
        self._grows = self._cache_grows
        cache.blocked = True
        while not cache.admits:
            yield from self._free_stripes.sleep(thread)
        cache.blocked = False

    def _release_to_plug(self, thread: Thread, stripe: Stripe) -> None:
        """release_stripe_plug: keep *stripe* in the plug of *thread*; without a plug, release it."""
        callback = thread.check_plugged(self, self._new_plug)
        if not isinstance(callback, StripePlug) or stripe.plugged:
            self._release(stripe)
            return
        stripe.plugged = True
        callback.stripes.append(stripe)

    def release_all(self, thread: Thread, stripes: list[Stripe]) -> Steps:
        """Let *thread* take the array's lock, and do what `put_all` does with the *stripes* of its plug.

        Use: `yield from` (raid5_unplug).  The time under the lock is charged to *thread*.
        """
        ns = len(stripes) * self._times.move
        thread.spent.md += ns
        yield self._lock.section(thread.task, ns)
        self.put_all(stripes)

    def close_plug(self) -> None:
        """Count one open plug less; after the last one, the array's thread lets delayed stripes read."""
        self.open_plugs -= 1
        if not self.open_plugs:
            self._daemon.wake()

    def put_all(self, stripes: list[Stripe]) -> None:
        """Drop the references of a plug to *stripes*, which waited in it, in no time.

        A stripe without another reference goes to its list, and threads are woken for it.
        """
        for stripe in stripes:
            stripe.plugged = False
            self._put(stripe)

    def _read_aligned(self, thread: Thread, flight: Flight) -> Steps:
        """chunk_aligned_read: read from the members, chunk by chunk, without the stripe cache."""
        bio, sector = flight.bio, flight.bio.start_sector
        chunk = self._chunk_sectors
        while sector < bio.end_sector:
            end = min(bio.end_sector, (sector // chunk + 1) * chunk)
            number, member = self._geometry.place_of(sector // PAGE_SECTORS)
            place = Place(member, number * PAGE_SECTORS + sector % PAGE_SECTORS, end - sector)
            flight.parts += 1
            thread.spent.md += self._times.bio
            yield self._times.bio
            if (rest := thread.submit_bio(self._clone(bio, place, flight))) is not None:
                yield from rest
            sector = end

    # -- references and lists ----------------------------------------------------------------------------

    def _release(self, stripe: Stripe) -> None:
        """raid5_release_stripe: drop a reference; the thread handles the last one."""
        if stripe.users > 1:
            stripe.users -= 1
            return
        self._released.append(stripe)
        if len(self._released) == 1:
            self._daemon.wake()

    def _put(self, stripe: Stripe) -> None:
        """__release_stripe: drop a reference; with the last one the stripe goes to a list."""
        stripe.users -= 1
        if stripe.users:
            return
        cache = self._cache
        if not cache.put_off(stripe, self._bitmap_written):
            self._wake_threads()
        elif cache.admits:
            self._free_stripes.wake_all()
        if not cache.prereading and cache.delayed.count:
            self._daemon.wake()

    def _wake_threads(self) -> None:
        """raid5_wakeup_stripe_thread: wake the workers that the stripes on the list need, or the thread."""
        count = max(1, self._cache.handle.count // BATCH)
        if self._workers:
            for worker in self._workers[:count]:
                if not worker.busy:
                    worker.wake()
        if not self._workers or self._cache.delayed.count or self._cache.bitmap.count:
            self._daemon.wake()

    # -- what the threads do -----------------------------------------------------------------------------

    def _work(self, thread: Thread) -> Steps:
        """raid5d: write the bitmap, let delayed stripes read, and visit stripes until none is left."""
        thread.start_plug()
        cache = self._cache
        while True:
            released = self._take_released()
            if cache.bitmap.count and self._bitmap is not None:
                self._bitmap_started += 1
                number = self._bitmap_started
                yield from self._bitmap.write_out(thread)
                self._bitmap_written = number
                for stripe in cache.bitmap.take_all():  # activate_bit_delay
                    stripe.users += 1
                    self._put(stripe)
            if not self.open_plugs:
                cache.activate_delayed()
            batch = cache.batch()
            if not batch and not released:
                break
            yield from self._visit_batch(thread, batch, released)
        if self._grows:
            self._grows = False
            cache.size += 1
        yield from thread.finish_plug()

    def _work_beside(self, thread: Thread) -> Steps:
        """raid5_do_work: visit stripes until none is left."""
        thread.start_plug()
        while True:
            released = self._take_released()
            batch = self._cache.batch()
            if not batch and not released:
                break
            yield from self._visit_batch(thread, batch, released)
        yield from thread.finish_plug()

    def _take_released(self) -> int:
        """release_stripe_list: drop the references that were left to the threads; return their number."""
        released, self._released = self._released, []
        for stripe in released:
            self._put(stripe)
        return len(released)

    def _visit_batch(self, thread: Thread, batch: list[Stripe], released: int) -> Steps:
        """handle_active_stripes: visit the stripes of *batch*; *released* references were dropped before."""
        ns = (len(batch) + released) * self._times.move
        thread.spent.md += ns
        yield self._lock.section(thread.task, ns)
        work = BatchWork()
        for stripe in batch:
            self._visits.visit(stripe, work)
        if batch:
            yield self._visits.charge(thread, len(batch), work)
        self.ends_on = thread.task.cpu
        for part in work.part_ends:
            part.owner.end_part()
        if work.bios:
            yield from thread.submit_bios(work.bios)
        self._cache.prereading -= work.prereads
        if (ready := cond_resched(thread.task)) is not None:
            yield ready
        for stripe in batch:
            self._put(stripe)

    def _end_io(self, context: Any) -> None:
        """raid5_align_endio: a read that passed the stripe cache by has ended."""
        flight: Flight = context
        flight.end_part()

    def _end_page(self, page: PageIo) -> None:
        """raid5_end_read_request, raid5_end_write_request: a page of a stripe has been read or written."""
        stripe, mask = page.stripe, 1 << page.member
        stripe.locked &= ~mask
        if page.is_read:
            stripe.uptodate |= mask
        stripe.handle = True
        self._release(stripe)

    @property
    def stripe_cache_size(self) -> int:
        """The number of stripes that the cache can hold now; it grows in some eras while tasks wait."""
        return self._cache.size

    @property
    def congested(self) -> bool:
        """True if a task would wait for a stripe, or a member is congested (raid5_congested)."""
        return not self._cache.admits or super().congested

    def check(self) -> None:
        """Check at the end of a run that no bio has ended twice, and that each stripe is in one place.

        Raises:
            LawBroken: a bio has ended twice, or a stripe is lost or counted twice.
        """
        super().check()
        self._cache.check(self.name)
        require(self._cache.prereading >= 0, f"{self.name}: {self._cache.prereading} stripes are reading")


def _sectors_of(bio: Bio, page: int) -> tuple[int, int]:
    """Return the sectors of *bio* in *page*: start and end, counted from the page's start.

    >>> _sectors_of(Bio(4, 8), 0), _sectors_of(Bio(4, 8), 1)
    ((4, 8), (0, 4))
    """
    start = page * PAGE_SECTORS
    return max(0, bio.start_sector - start), min(PAGE_SECTORS, bio.end_sector - start)
