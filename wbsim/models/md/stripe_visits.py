"""A visit of a thread to a stripe of RAID5 or RAID6, which brings it further by one step (handle_stripe).

1. Pages must be read, so the stripe is delayed until others have read, unless it is complete by then.
2. The pages are read.
3. Data is copied into the cache, and parity is made.
4. Data and parity are written.
5. The bios end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wbsim.models.bio import FUA, READ, Bio
from wbsim.models.block.queue import Queue
from wbsim.models.interfaces import Thread
from wbsim.models.md.bitmap import WriteIntentBitmap
from wbsim.models.md.stripe import PagePart, Stripe
from wbsim.models.md.stripe_cache import StripeCache
from wbsim.models.md.times import Times
from wbsim.models.raid.geometry import ParityGeometry
from wbsim.models.raid.parity_reads import Plan, ones, plan_of
from wbsim.sim.units import PAGE_SECTORS


class PageIo:
    """A read of one page of a stripe, or a write: *member* has it."""

    __slots__ = ("is_read", "member", "stripe")

    def __init__(self, stripe: Stripe, member: int, is_read: bool) -> None:
        self.stripe = stripe
        self.member = member
        self.is_read = is_read


class BatchWork:
    """The consequences of the visits to a batch of stripes; the thread takes them when their time is over.

    * ``copied``: pages copied to or from the cache.
    * ``xors``: pages added to a parity.
    * ``part_ends``: parts of bios that end.
    * ``bios``: reads and writes of pages, for the members.
    * ``prereads``: stripes that no longer read.
    """

    __slots__ = ("bios", "copied", "part_ends", "prereads", "xors")

    def __init__(self) -> None:
        self.copied = self.xors = self.prereads = 0
        self.part_ends: list[PagePart] = []
        self.bios: list[Bio] = []


class StripeVisits:
    """The visits to the stripes of an array.

    * *queues*: the members; None: a member is faulty.
    * *end_page*: called with a `PageIo` when it has ended.
    * *offset*: the first sector of data on each member.
    * *on_drain*: called when a stripe has taken the data of its bios.
    """

    def __init__(
        self,
        queues: Sequence[Queue | None],
        end_page: Callable[[PageIo], None],
        offset: int,
        geometry: ParityGeometry,
        cache: StripeCache,
        bitmap: WriteIntentBitmap | None,
        times: Times,
        rmw_level: int,
        on_drain: Callable[[], None],
    ) -> None:
        self._on_drain = on_drain
        self._queues = queues
        self._end_page: Callable[[Any], None] = end_page
        self._offset = offset
        self._geometry = geometry
        self._cache = cache
        self._bitmap = bitmap
        self._times = times
        self._rmw_level = rmw_level
        self._faulty = sum(1 << member for member, queue in enumerate(queues) if queue is None)

    def visit(self, stripe: Stripe, work: BatchWork) -> None:
        """Bring *stripe* further by one step, in no time, and add to *work* what follows from it.

        Each page that is read or written has a reference to the stripe, and a visitor has one, too.  So no
        page is on its way when a visit begins, and no other thread visits the stripe (handle_stripe).
        """
        stripe.handle = stripe.delayed = False
        reads = 0
        writes = stripe.reconstructed
        if writes:
            self._write_pages_of(stripe, work)
        elif stripe.unsafe:
            self._end_writes(stripe, work)
        if stripe.reads or stripe.writes & ~stripe.overwritten or (stripe.writes and self._faulty):
            self._end_reads(stripe, work)
            reads, rebuilt = self._fetch(stripe)
            stripe.uptodate |= rebuilt
            stripe.locked |= reads
            stripe.handle = stripe.handle or rebuilt != 0
            work.xors += ones(rebuilt) * self._geometry.data
        if stripe.writes and not writes:
            plan = self._plan(stripe)
            if plan.waits:
                stripe.handle = True
                if stripe.preread_active:
                    reads |= plan.reads
                    stripe.locked |= plan.reads
                else:
                    stripe.delayed = True
            elif plan.ready and not stripe.locked and not stripe.bit_delay:
                drained = self._reconstruct(stripe, plan.modifies)
                work.copied += drained
                work.xors += 2 * drained if plan.modifies else self._geometry.data
            else:
                stripe.handle = True
        if reads:
            self._add_bios(stripe, reads, True, work)

    def _plan(self, stripe: Stripe) -> Plan:
        """handle_stripe_dirtying: return how the parity of *stripe* is made."""
        members = self._geometry.members
        return plan_of(
            stripe.writes, stripe.overwritten, stripe.parity,
            (1 << members) - 1 & ~stripe.locked & ~stripe.uptodate,
            members, self._faulty, self._rmw_level,
        )  # fmt: skip

    def charge(self, thread: Thread, visits: int, work: BatchWork) -> int:
        """Charge *thread* for *visits* visits that led to *work*; return the time (ns) that it must yield."""
        times = self._times
        ns_each = times.xor if self._geometry.parities == 1 else times.syndrome
        ns = work.copied * times.copy + work.xors * ns_each
        thread.spent.parity += ns
        thread.spent.md += visits * times.handle
        return ns + visits * times.handle

    def _fetch(self, stripe: Stripe) -> tuple[int, int]:
        """handle_stripe_fill: return the pages to read, and the pages to compute from the others."""
        needs = self._needs(stripe) & ~stripe.locked & ~stripe.uptodate
        absent = self._faulty & ~stripe.uptodate
        if needs & absent and ones(stripe.uptodate) >= self._geometry.members - ones(absent):
            return 0, needs & absent
        return needs & ~self._faulty, 0

    def _needs(self, stripe: Stripe) -> int:
        """need_this_block: return the pages whose contents are needed."""
        partial = stripe.writes & ~stripe.overwritten
        needs = stripe.reads | partial
        every = (1 << self._geometry.members) - 1
        faulty = self._faulty
        if faulty & stripe.reads:
            return every
        if not faulty or not stripe.writes:
            return needs
        may_read = every if stripe.preread_active else faulty
        absent = faulty & ~stripe.uptodate
        if absent & partial:
            return needs | may_read
        forced = self._rmw_level == 0
        if self._geometry.parities == 2 and ones(faulty) == 2:
            forced = forced or absent & (stripe.writes | stripe.parity) != 0
        if forced and absent & ~stripe.parity & ~stripe.overwritten:
            return needs | may_read
        return needs

    def _reconstruct(self, stripe: Stripe, modifies: bool) -> int:
        """schedule_reconstruction, raid_run_ops: copy data and make parity; return the pages copied."""
        mask = stripe.writes & stripe.uptodate if modifies else stripe.writes
        drained = stripe.drain(mask)
        self._on_drain()
        stripe.locked |= mask | stripe.parity
        stripe.uptodate |= mask | stripe.parity
        stripe.reconstructed = stripe.handle = True
        if not modifies and drained == self._geometry.data and not stripe.full:
            stripe.full = True
            self._cache.full_writes += 1
        return drained

    def _write_pages_of(self, stripe: Stripe, work: BatchWork) -> None:
        """Write the data and the parity of *stripe*, which are in the cache."""
        stripe.reconstructed = False
        if stripe.preread_active:
            stripe.preread_active = False
            work.prereads += 1
        self._add_bios(stripe, stripe.locked & (stripe.parity | stripe.unsafe), False, work)

    def _add_bios(self, stripe: Stripe, mask: int, is_read: bool, work: BatchWork) -> None:
        """ops_run_io: add a bio for each page of *mask* to *work*; a faulty member gets none."""
        op = READ if is_read else FUA if stripe.fua else "W"
        if not is_read:
            stripe.fua = False
        sector = self._offset + stripe.number * PAGE_SECTORS
        for member, queue in enumerate(self._queues):
            if not mask >> member & 1:
                continue
            if queue is None:
                stripe.locked &= ~(1 << member)
                stripe.handle = True
                continue
            stripe.io_started = True
            stripe.users += 1
            work.bios.append(
                Bio(
                    sector, PAGE_SECTORS,
                    op=op if queue.has_cache or is_read else "W", queue=queue, sync=is_read,
                    nomerge=op == FUA and queue.has_cache, unplug=is_read,
                    end_io=self._end_page, context=PageIo(stripe, member, is_read),
                )
            )  # fmt: skip

    def _end_writes(self, stripe: Stripe, work: BatchWork) -> None:
        """handle_stripe_clean_event: end the writes whose data and parity are on the members."""
        if self._bitmap is not None:
            for _ in range(ones(stripe.unsafe)):
                self._bitmap.end_write(stripe.number * PAGE_SECTORS, PAGE_SECTORS)
        work.part_ends += stripe.writing
        stripe.unsafe, stripe.writing = 0, []
        if stripe.full:
            stripe.full = False
            self._cache.full_writes -= 1

    def _end_reads(self, stripe: Stripe, work: BatchWork) -> None:
        """ops_run_biofill: end the reads of pages that are in the cache."""
        ready = stripe.reads & stripe.uptodate & ~stripe.locked
        if not ready:
            return
        parts = stripe.read_parts
        stripe.reads &= ~ready
        stripe.read_parts = [part for part in parts if not ready >> part.member & 1]
        work.part_ends += [part for part in parts if ready >> part.member & 1]
        work.copied += ones(ready)
