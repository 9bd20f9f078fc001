"""Items leave a queue in the order in which they came."""

from __future__ import annotations

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from wbsim.sim.fifo import Fifo


@given(st.lists(st.integers(-3_000, 3_000), max_size=12))
def test_queue_is_a_deque(turns: list[int]) -> None:
    """Each turn adds as many items as its number says, or takes as many, as far as there are any."""
    of: Fifo[int] = Fifo()
    like: deque[int] = deque()
    for turn in turns:
        for item in range(turn):
            of.add(item)
            like.append(item)
        for _ in range(min(-turn, len(like))):
            assert of.first() == like[0]
            assert of.take() == like.popleft()
        assert (len(of), of.items()) == (len(like), list(like))
        if like:
            assert (of.first(), of.last()) == (like[0], like[-1])
