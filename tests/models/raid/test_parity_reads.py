"""The reads of a write to a part of a stripe, for every number of pages and of members."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wbsim.models.raid.parity_reads import Plan, ones, plan_of


def plan(members: int, parities: int, count: int, level: int = 1, faulty: int = 0, **masks: int) -> Plan:
    """Return the plan for a stripe whose first *count* data units are written.

    The parity is on the last members.  *masks*: ``overwritten``, and ``uptodate`` for cached units.
    """
    data = members - parities
    writes = (1 << count) - 1
    absent = (1 << members) - 1 & ~masks.get("uptodate", 0)
    parity = ((1 << parities) - 1) << data
    return plan_of(writes, masks.get("overwritten", writes), parity, absent, members, faulty, level)


@pytest.mark.parametrize("parities", [1, 2])
@pytest.mark.parametrize("members", range(3, 13))
def test_smaller_number_of_reads_wins(members: int, parities: int) -> None:
    """Read-modify-write reads the old pages and the parity, and reconstruct-write the other pages."""
    data = members - parities
    if data < 2:
        return
    for count in range(1, data + 1):
        choice = plan(members, parities, count)
        modify, reconstruct = count + parities, data - count
        assert choice.reads.bit_count() == min(modify, reconstruct)
        assert choice.modifies == (modify < reconstruct)
        assert choice.ready == (reconstruct == 0)
        assert choice.waits == (reconstruct > 0)


def test_equal_numbers_are_decided_by_the_level() -> None:
    """Two of five data pages and P: three reads either way; rmw_level 2 takes read-modify-write."""
    usual, other = plan(6, 1, 2), plan(6, 1, 2, level=2)
    assert (usual.modifies, other.modifies) == (False, True)
    assert usual.reads.bit_count() == other.reads.bit_count() == 3


def test_level_0_always_reconstructs() -> None:
    """rmw_level 0 reads all other data, even if that is more."""
    choice = plan(10, 2, 1, level=0)
    assert (choice.modifies, choice.reads.bit_count(), choice.ready) == (False, 7, False)
    assert plan(10, 2, 8, level=0).ready


def test_cached_pages_need_no_read() -> None:
    """Pages whose contents are in the cache do not count."""
    choice = plan(6, 1, 1, uptodate=0b100001)
    assert (choice.modifies, choice.reads, choice.ready) == (True, 0, True)
    choice = plan(6, 1, 1, uptodate=0b11110)
    assert (choice.modifies, choice.reads, choice.ready) == (False, 0, True)


def test_partial_page_counts_for_both_ways() -> None:
    """A page that is written in part must be read for a reconstruct-write, too."""
    choice = plan(4, 1, 3, overwritten=0b011)
    assert (choice.modifies, choice.reads) == (False, 0b100)


def test_missing_page_cannot_be_read() -> None:
    """A missing data page that is not written leaves read-modify-write; two missing ones leave nothing."""
    choice = plan(6, 1, 1, faulty=0b10)
    assert (choice.modifies, choice.reads.bit_count(), choice.waits) == (True, 2, True)
    choice = plan(7, 2, 1, faulty=0b11)
    assert choice.waits
    assert not choice.ready


def test_faulty_page_is_no_free_read() -> None:
    """Four of five data pages are written, and the fifth is faulty: only read-modify-write is possible."""
    choice = plan(6, 1, 4, faulty=0b10000)
    assert (choice.modifies, choice.reads.bit_count()) == (True, 5)


def test_partial_write_to_a_faulty_page_waits() -> None:
    """The page must be computed first, and no other page is left to read."""
    for level in (1, 2):
        choice = plan(4, 1, 1, level=level, faulty=0b1, overwritten=0, uptodate=0b1110)
        assert (choice.reads, choice.ready, choice.waits) == (0, False, True)


def test_page_to_compute_delays_a_stripe() -> None:
    """A reconstruct-write that needs only a missing page waits until the page is computed."""
    choice = plan(4, 1, 2, level=0, faulty=0b100)
    assert (choice.reads, choice.ready, choice.waits) == (0, False, True)


@given(st.integers(3, 12), st.data(), st.sampled_from([0, 1, 2]))
def test_reads_are_possible_and_needed(members: int, data: st.DataObject, level: int) -> None:
    """No page that is missing, in the cache or on its way is read."""
    masks = st.integers(0, (1 << members) - 1)
    parity = 1 << data.draw(st.integers(0, members - 1))
    writes = data.draw(masks) & ~parity
    absent, faulty = data.draw(masks), data.draw(masks)
    choice = plan_of(writes, writes & data.draw(masks), parity, absent, members, faulty, level)
    assert not choice.reads & (faulty | ~absent)
    if level and choice.ready:
        assert not choice.reads


@given(st.integers(0, 1 << 40))
def test_ones_are_counted(mask: int) -> None:
    """The number of members in a mask is that of its bits."""
    assert ones(mask) == mask.bit_count()
