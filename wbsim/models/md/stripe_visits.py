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
from wbsim.models.md.geometry import ParityGeometry
from wbsim.models.md.parity_reads import plan_of
from wbsim.models.md.stripe import Stripe, ones
from wbsim.models.md.stripe_cache import StripeCache
from wbsim.models.md.times import Times
from wbsim.sim.engine import Steps
from wbsim.sim.units import PAGE_SECTORS


class PageIo:
    """A read of one page of a stripe, or a write: *member* has it."""

    __slots__ = ("is_read", "member", "stripe")

    def __init__(self, stripe: Stripe, member: int, is_read: bool) -> None:
        self.stripe = stripe
        self.member = member
        self.is_read = is_read


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

    def visit(self, thread: Thread, stripe: Stripe) -> Steps:
        """handle_stripe: bring *stripe* further by one step.

        Each page that is read or written has a reference to the stripe, and a visitor has one, too.  So no
        page is on its way when a visit begins, and no other thread visits the stripe.
        """
        stripe.handle = stripe.delayed = False
        reads = writes = 0
        ends_preread = False
        if stripe.reconstructed:
            stripe.reconstructed = False
            writes = stripe.locked & (stripe.parity | stripe.unsafe)
            ends_preread, stripe.preread_active = stripe.preread_active, False
        elif stripe.unsafe:
            self._end_writes(stripe)
        copied = xors = 0
        if stripe.reads or stripe.writes & ~stripe.overwritten or (stripe.writes and self._faulty):
            copied += self._end_reads(stripe)
            reads, rebuilt = self._fetch(stripe)
            stripe.uptodate |= rebuilt
            stripe.locked |= reads
            stripe.handle = stripe.handle or rebuilt != 0
            xors = ones(rebuilt) * self._geometry.data
        if stripe.writes and not writes:
            plan = plan_of(stripe, self._geometry.members, self._faulty, self._rmw_level)
            if plan.waits:
                stripe.handle = True
                if stripe.preread_active:
                    reads |= plan.reads
                    stripe.locked |= plan.reads
                else:
                    stripe.delayed = True
            elif plan.ready and not stripe.locked and not stripe.bit_delay:
                drained = self._reconstruct(stripe, plan.modifies)
                copied += drained
                xors += 2 * drained if plan.modifies else self._geometry.data
            else:
                stripe.handle = True
        yield self._charge(thread, copied, xors)
        if reads:
            yield from self._submit(thread, stripe, reads, is_read=True)
        if writes:
            yield from self._submit(thread, stripe, writes, is_read=False)
        if ends_preread:
            self._cache.prereading -= 1

    def _charge(self, thread: Thread, copied: int, xors: int) -> int:
        """Charge a visit that copies *copied* pages and adds *xors* to parities; return its time (ns)."""
        times = self._times
        ns = copied * times.copy + xors * (times.xor if self._geometry.parities == 1 else times.syndrome)
        thread.spent.parity += ns
        thread.spent.md += times.handle
        return ns + times.handle

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

    def _submit(self, thread: Thread, stripe: Stripe, mask: int, is_read: bool) -> Steps:
        """ops_run_io: submit a bio for each page of *mask*; a faulty member gets none."""
        op = READ if is_read else FUA if stripe.fua else "W"
        if mask and not is_read:
            stripe.fua = False
        for member, queue in enumerate(self._queues):
            if not mask >> member & 1:
                continue
            if queue is None:
                stripe.locked &= ~(1 << member)
                stripe.handle = True
                continue
            stripe.io_started = True
            stripe.users += 1
            bio = Bio(
                self._offset + stripe.number * PAGE_SECTORS, PAGE_SECTORS,
                op=op if queue.has_cache or is_read else "W", queue=queue, sync=is_read,
                nomerge=op == FUA and queue.has_cache, unplug=is_read,
                end_io=self._end_page, context=PageIo(stripe, member, is_read),
            )  # fmt: skip
            if (rest := thread.submit_bio(bio)) is not None:
                yield from rest

    def _end_writes(self, stripe: Stripe) -> None:
        """handle_stripe_clean_event: end the writes whose data and parity are on the members."""
        pages, parts = ones(stripe.unsafe), stripe.writing
        stripe.unsafe, stripe.writing = 0, []
        for part in parts:
            part.owner.end_part()
        if self._bitmap is not None:
            for _ in range(pages):
                self._bitmap.end_write(stripe.number * PAGE_SECTORS, PAGE_SECTORS)
        if stripe.full:
            stripe.full = False
            self._cache.full_writes -= 1

    def _end_reads(self, stripe: Stripe) -> int:
        """ops_run_biofill: end the reads of pages that are in the cache; return the pages copied."""
        ready = stripe.reads & stripe.uptodate & ~stripe.locked
        if not ready:
            return 0
        parts = stripe.read_parts
        stripe.reads &= ~ready
        stripe.read_parts = [part for part in parts if not ready >> part.member & 1]
        for part in parts:
            if ready >> part.member & 1:
                part.owner.end_part()
        return ones(ready)
