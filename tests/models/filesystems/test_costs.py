"""The costs of allocations and conversions: random factors, and the part under the inode's lock."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from tests.harness import BlockLayer
from wbsim.models.filesystems.costs import MapCosts, RandomFactors
from wbsim.models.filesystems.spec import FlusherCosts
from wbsim.models.filesystems.xfs.spec import LogCosts, XfsFlusherCosts
from wbsim.sim.sync import HandOff

pytestmark = pytest.mark.source


def test_factors_come_in_the_order_of_their_stream() -> None:
    """The factors are drawn in blocks of 4 096."""
    drawn: list[int] = []

    def draw(count: int) -> NDArray[np.float64]:
        drawn.append(count)
        return np.arange(sum(drawn) - count, sum(drawn), dtype=np.float64)

    parts: Any = SimpleNamespace(variations=lambda name: draw)
    factors = RandomFactors(parts, "map")
    assert [factors.next() for _ in range(4_097)] == list(range(4_097))
    assert drawn == [4_096, 4_096]


def costs(**given: int) -> MapCosts:
    """Return costs of 4 000 ns for an allocation and 3 000 ns for a conversion; twice that with a tree."""
    flusher: Any = FlusherCosts(
        map_ns=4_000, page_ns=1, ioend_ns=3_000, tree_map_ns=8_000, tree_ioend_ns=6_000, **given
    )
    return MapCosts(flusher, 4, RandomFactors(BlockLayer().parts, "map"), HandOff(100, 0))


def test_complete_transaction_is_locked_if_no_part_is_given() -> None:
    """XFS gives no part."""
    assert (costs().map_locked_ns(4_400), costs().range_locked_ns(6_000)) == (4_400, 6_000)


def test_the_locked_part_grows_with_the_transaction() -> None:
    """A quarter of an allocation and a third of a conversion are locked.

    A tree and a random factor do not change these shares.
    """
    of = costs(map_locked_ns=1_000, ioend_locked_ns=1_000)
    assert [of.map_locked_ns(ns) for ns in (4_000, 4_400, 8_000)] == [1_000, 1_100, 2_000]
    assert [of.range_locked_ns(ns) for ns in (3_000, 6_000)] == [1_000, 2_000]


def test_transaction_without_time_is_locked_for_no_time() -> None:
    """A given part of an allocation that takes no time is not divided by zero."""
    flusher = FlusherCosts(map_ns=0, page_ns=1, ioend_ns=0, map_locked_ns=0, ioend_locked_ns=0)
    of = MapCosts(flusher, 4, RandomFactors(BlockLayer().parts, "map"), HandOff(100, 0))
    assert (of.map_locked_ns(0), of.range_locked_ns(0)) == (0, 0)


@pytest.mark.parametrize(("part", "whole"), [("map_locked_ns", "map_ns"), ("ioend_locked_ns", "ioend_ns")])
def test_locked_part_above_the_complete_time_is_refused(part: str, whole: str) -> None:
    """A part that is as long as the transaction is allowed."""
    given = {"map_ns": 4_000, "page_ns": 1, "ioend_ns": 4_000}
    FlusherCosts.model_validate({**given, part: 4_000})
    with pytest.raises(ValidationError, match=f"4001 ns is longer than {whole}, .* at most 4000 ns"):
        FlusherCosts.model_validate({**given, part: 4_001})


@pytest.mark.parametrize("whole", ["map_ns", "ioend_ns"])
def test_reservation_above_the_complete_time_is_refused(whole: str) -> None:
    """Both transactions of XFS reserve log space before they take the ILOCK."""
    times = {"map_ns": 9_000, "page_ns": 1, "ioend_ns": 9_000, "rmap_ns": 0, "rmap_ioend_ns": 0, whole: 4_000}
    given: dict[str, Any] = {**times, "log": dict.fromkeys(LogCosts.model_fields, 0)}
    XfsFlusherCosts.model_validate({**given, "reserve_ns": 4_000})
    with pytest.raises(ValidationError, match=f"4001 ns is longer than {whole}, .* at most 4000 ns"):
        XfsFlusherCosts.model_validate({**given, "reserve_ns": 4_001})
