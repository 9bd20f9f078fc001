"""Random factors of allocations, which two readers take from one stream."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wbsim.models.filesystems.dice import Dice
from wbsim.models.step_lengths import StepLengths

pytestmark = pytest.mark.source


def test_readers_take_whole_blocks_in_turn() -> None:
    """An array and single factors have 4096 numbers each, in the order in which a reader needs a block."""
    drawn = 0

    def draw(count: int) -> NDArray[np.float64]:
        nonlocal drawn
        drawn += count
        return np.arange(drawn - count, drawn, dtype=np.float64)

    site: Any = SimpleNamespace(variations=lambda name: draw, lengths=StepLengths())
    dice = Dice(site, "map")
    assert (dice.ready(), dice.array[0], len(dice.array)) == (0, 0, 4_096)
    assert dice.throw() == 4_096
    dice.at = 4_096
    assert (dice.ready(), dice.array[0]) == (0, 8_192)
    assert [dice.throw() for _ in range(4_096)] == [*range(4_097, 8_192), 12_288]
