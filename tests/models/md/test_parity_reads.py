"""What a write to a part of a stripe must read, for every number of pages and of members."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wbsim.models.md.parity_reads import Pages, plan_of


def pages(members: int, parities: int, written: int, **changes: int) -> Pages:
    """Return a stripe whose first *written* data pages are written, with parity on the last members."""
    data = members - parities
    parity = ((1 << parities) - 1) << data
    mask = (1 << written) - 1
    fields = {"uptodate": 0, "locked": 0, "missing": 0, "overwritten": mask, **changes}
    return Pages(members, parity, mask, **fields)


@pytest.mark.parametrize("parities", [1, 2])
@pytest.mark.parametrize("members", range(3, 13))
def test_smaller_number_of_reads_wins(members: int, parities: int) -> None:
    """Read-modify-write reads the old pages and the parity, and reconstruct-write the other pages."""
    data = members - parities
    if data < 2:
        return
    for written in range(1, data + 1):
        plan = plan_of(pages(members, parities, written), 1)
        modify, reconstruct = written + parities, data - written
        assert plan.reads.bit_count() == min(modify, reconstruct)
        assert plan.modifies == (modify < reconstruct)
        assert plan.ready == (reconstruct == 0)
        assert plan.waits == (reconstruct > 0)


def test_equal_numbers_are_decided_by_the_level() -> None:
    """Two of five data pages and P: three reads either way; rmw_level 2 takes read-modify-write."""
    stripe = pages(6, 1, 2)
    assert (plan_of(stripe, 1).modifies, plan_of(stripe, 2).modifies) == (False, True)
    assert plan_of(stripe, 1).reads.bit_count() == plan_of(stripe, 2).reads.bit_count() == 3


def test_level_0_always_reconstructs() -> None:
    """rmw_level 0 reads all other data, even if that is more."""
    plan = plan_of(pages(10, 2, 1), 0)
    assert (plan.modifies, plan.reads.bit_count(), plan.ready) == (False, 7, False)
    assert plan_of(pages(10, 2, 8), 0).ready


def test_cached_pages_need_no_read() -> None:
    """Pages whose contents are in the cache do not count."""
    parity = 1 << 5
    plan = plan_of(pages(6, 1, 1, uptodate=1 | parity), 1)
    assert (plan.modifies, plan.reads, plan.ready) == (True, 0, True)
    plan = plan_of(pages(6, 1, 1, uptodate=0b11110), 1)
    assert (plan.modifies, plan.reads, plan.ready) == (False, 0, True)


def test_partial_page_counts_for_both_ways() -> None:
    """A page that is written in part must be read for a reconstruct-write, too."""
    plan = plan_of(pages(4, 1, 3, overwritten=0b011), 1)
    assert (plan.modifies, plan.reads) == (False, 0b100)


def test_missing_page_cannot_be_read() -> None:
    """A missing data page that is not written leaves read-modify-write; two missing ones leave nothing."""
    plan = plan_of(pages(6, 1, 1, missing=0b10), 1)
    assert (plan.modifies, plan.reads.bit_count(), plan.waits) == (True, 2, True)
    plan = plan_of(pages(7, 2, 1, missing=0b11), 1)
    assert plan.waits
    assert not plan.ready


def test_page_to_compute_delays_a_stripe() -> None:
    """A reconstruct-write that needs only a missing page waits until the page is computed."""
    plan = plan_of(pages(4, 1, 2, missing=0b100), 0)
    assert (plan.reads, plan.ready, plan.waits) == (0, False, True)


@given(st.integers(3, 12), st.data(), st.sampled_from([0, 1, 2]))
def test_reads_are_possible_and_needed(members: int, data: st.DataObject, level: int) -> None:
    """No page that is missing, in the cache or on its way is read."""
    masks = st.integers(0, (1 << members) - 1)
    parity = 1 << data.draw(st.integers(0, members - 1))
    writes = data.draw(masks) & ~parity
    stripe = Pages(
        members, parity, writes, writes & data.draw(masks), data.draw(masks), data.draw(masks),
        data.draw(masks),
    )  # fmt: skip
    plan = plan_of(stripe, level)
    assert not plan.reads & (stripe.missing | stripe.uptodate | stripe.locked)
    if level and plan.ready:
        assert not plan.reads
