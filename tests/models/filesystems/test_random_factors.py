"""Random factors of allocations."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wbsim.models.filesystems.costs import RandomFactors

pytestmark = pytest.mark.source


def test_factors_come_in_the_order_of_their_stream() -> None:
    """They are drawn in blocks of 4 096."""
    drawn: list[int] = []

    def draw(count: int) -> NDArray[np.float64]:
        drawn.append(count)
        return np.arange(sum(drawn) - count, sum(drawn), dtype=np.float64)

    parts: Any = SimpleNamespace(variations=lambda name: draw)
    factors = RandomFactors(parts, "map")
    assert [factors.next() for _ in range(4_097)] == list(range(4_097))
    assert drawn == [4_096, 4_096]
