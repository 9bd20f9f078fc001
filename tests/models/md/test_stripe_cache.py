"""The stripe cache: lists, the wait for a stripe, and which stripe is next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wbsim.models.bio import Bio
from wbsim.models.md.flight import Flight
from wbsim.models.md.stripe import PagePart, Stripe, StripeList
from wbsim.models.md.stripe_cache import BATCH, StripeCache
from wbsim.sim.invariants import LawBroken

FLIGHT = Flight(Bio(0, 8), 0, lambda _: None)


def stripe_of(cache: StripeCache, number: int) -> Stripe:
    """Return stripe *number* of *cache* with a reference."""
    stripe = cache.find(number) or cache.take(number, parity=0b1000)
    assert stripe is not None
    return stripe


def put_off(cache: StripeCache, stripe: Stripe, **flags: bool) -> bool:
    """Give the only reference to *stripe* back, with *flags* set; return whether it is inactive."""
    for flag, value in flags.items():
        setattr(stripe, flag, value)
    stripe.users = 0
    return cache.put_off(stripe, bitmap_written=0)


def test_cache_has_room_for_its_size() -> None:
    """The stripe behind the last place is refused; an inactive one gives its place up, the oldest first."""
    cache = StripeCache(3, 1)
    stripes = [stripe_of(cache, number) for number in range(3)]
    assert cache.take(3, 0) is None
    assert not cache.admits
    assert put_off(cache, stripes[1])
    assert put_off(cache, stripes[0])
    assert cache.take(3, 0) is not None
    assert cache.find(1) is None
    assert cache.find(0) is stripes[0]
    cache.check("md0")


def test_shortage_lasts_until_a_quarter_is_free() -> None:
    """A task that found no stripe waits until fewer than three quarters are active."""
    cache = StripeCache(8, 1)
    stripes = [stripe_of(cache, number) for number in range(8)]
    cache.blocked = True
    for count, admits in ((1, False), (2, False), (3, True)):
        put_off(cache, stripes[count - 1])
        assert cache.admits == admits
    cache.blocked = False
    assert cache.admits


def test_inactive_stripe_keeps_its_pages() -> None:
    """A stripe that is found again has its pages, and is active."""
    cache = StripeCache(2, 1)
    stripe = stripe_of(cache, 7)
    stripe.uptodate = 0b11
    put_off(cache, stripe)
    assert cache.active == 0
    again = cache.find(7)
    assert again is stripe
    assert (again.uptodate, again.users, cache.active) == (0b11, 1, 1)


def test_lists_follow_the_flags() -> None:
    """Delayed before bitmap before handle; a stripe that may read is not delayed."""
    cache = StripeCache(8, 1)
    handle, delayed, reading, behind = (stripe_of(cache, number) for number in range(4))
    put_off(cache, handle, handle=True)
    put_off(cache, delayed, handle=True, delayed=True)
    put_off(cache, reading, handle=True, delayed=True, preread_active=True)
    behind.bitmap_number = 1
    put_off(cache, behind, handle=True, bit_delay=True)
    cache.check("md0")
    assert cache.handle.take_all() == [handle, reading]
    assert cache.delayed.take_all() == [delayed]
    assert cache.bitmap.take_all() == [behind]


def test_stripe_leaves_with_the_write_of_its_bitmap() -> None:
    """A stripe whose bitmap has been written waits no longer."""
    cache = StripeCache(8, 1)
    stripe = stripe_of(cache, 0)
    stripe.bitmap_number, stripe.bit_delay, stripe.handle, stripe.users = 2, True, True, 0
    cache.put_off(stripe, bitmap_written=1)
    assert cache.bitmap.take_all() == [stripe]
    cache.put_off(stripe, bitmap_written=2)
    assert cache.handle.take_all() == [stripe]
    assert not stripe.bit_delay


def test_all_delayed_stripes_may_read_when_none_reads() -> None:
    """raid5_activate_delayed: nothing while a stripe reads, and then all of them."""
    cache = StripeCache(8, 1)
    stripes = [stripe_of(cache, number) for number in range(3)]
    for stripe in stripes:
        put_off(cache, stripe, handle=True, delayed=True)
    cache.prereading = 1
    cache.activate_delayed()
    assert not cache.hold.count
    cache.prereading = 0
    cache.activate_delayed()
    assert cache.prereading == 3
    assert cache.hold.take_all() == stripes
    assert all(stripe.preread_active and not stripe.delayed for stripe in stripes)


def test_batch_takes_eight() -> None:
    """A thread takes up to eight stripes at once, oldest first."""
    cache = StripeCache(32, 1)
    stripes = [stripe_of(cache, number) for number in range(BATCH + 2)]
    for stripe in stripes:
        put_off(cache, stripe, handle=True)
    assert cache.batch() == stripes[:8]
    assert cache.batch() == stripes[8:]
    assert cache.batch() == []


@pytest.mark.parametrize(("threshold", "comes"), [(0, False), (1, True), (2, True), (3, False)])
def test_held_stripe_comes_after_enough_others(threshold: int, comes: bool) -> None:
    """Complete stripes that are being written keep one back until more than the threshold have passed it.

    Of the four that pass, the first one begins the count, and three count.
    """
    cache = StripeCache(32, threshold)
    first = stripe_of(cache, 100)
    put_off(cache, first, handle=True, delayed=True)
    cache.activate_delayed()
    cache.full_writes = 1
    for number in range(4):
        put_off(cache, stripe_of(cache, number), handle=True)
    assert (cache.batch()[-1] is first) == comes


def test_part_of_a_page_is_no_overwrite() -> None:
    """Only parts that cover the page together overwrite it."""
    stripe = Stripe(0, 0b1000)
    assert stripe.add_write(PagePart(FLIGHT, 1, 0, 3))
    assert not stripe.overwritten
    assert not stripe.add_write(PagePart(FLIGHT, 1, 3, 8))
    assert (stripe.overwritten, stripe.writes) == (0b10, 0b10)
    assert stripe.overlaps(1, 2, 3)
    assert not stripe.overlaps(0, 2, 3)
    assert stripe.drain(0b10) == 1
    assert (stripe.overwritten, stripe.writes, stripe.unsafe) == (0, 0, 0b10)
    assert not stripe.overlaps(1, 2, 3)


def test_drain_leaves_the_other_pages() -> None:
    """A read-modify-write takes the data of the pages that it has read, and no other."""
    stripe = Stripe(0, 0b1000)
    for member in range(3):
        stripe.add_write(PagePart(FLIGHT, member, 0, 8))
    assert stripe.drain(0b101) == 2
    assert (stripe.writes, stripe.overwritten, stripe.unsafe) == (0b010, 0b010, 0b101)
    assert [part.member for part in stripe.dirty_parts] == [1]
    assert [part.member for part in stripe.writing] == [0, 2]


@given(st.lists(st.integers(0, 9), max_size=60))
def test_list_of_stripes_is_a_list(numbers: list[int]) -> None:
    """A number that is in the list is removed, and any other one is added at the end."""
    stripes, stripe_list, plain = [Stripe(n, 0) for n in range(10)], StripeList(), list[int]()
    for number in numbers:
        stripe = stripes[number]
        if number in plain:
            plain.remove(number)
            stripe_list.remove(stripe)
        else:
            plain.append(number)
            stripe_list.add(stripe)
        assert stripe_list.count == len(plain)
        assert stripe_list.first is (stripes[plain[0]] if plain else None)
        assert stripe.waits_on is (stripe_list if number in plain else None)
    assert [stripe.number for stripe in stripe_list.take_all()] == plain


def test_lost_stripe_is_noticed() -> None:
    """A stripe that is counted but in no place breaks the law."""
    cache = StripeCache(4, 1)
    stripe_of(cache, 0)
    cache.active = 0
    with pytest.raises(LawBroken, match="1 stripes of 4"):
        cache.check("md0")
