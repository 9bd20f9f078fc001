"""How far a walk may go."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from models.filesystems.horizon import Horizon
from sim.engine import Environment


@pytest.mark.parametrize(
    ("contexts", "but", "far_ns"),
    [
        (1, 0, 50),
        (2, 0, 300),
        (2, 3, 50),
        (2, 9, 60),
        (2, 8, 70),
    ],
    ids=["one flusher", "several", "another flusher", "completions", "workers"],
)
def test_a_walk_goes_on_over_the_events_of_those_elsewhere(contexts: int, but: int, far_ns: int) -> None:
    """At 100: another disk's event of rank 2 comes at 120, another flusher's (3) at 150, a completion (9) at
    160, a worker's (8) at 170 and a program's (5) at 400; as if *but* were a program's, too.  With one
    flusher, only other disks' do not matter.
    """
    env = Environment()
    env.now = 100
    for rank, at_ns in ((2, 120), (3, 150), (8, 170), (9, 160), (5, 400)):
        env.call_at(at_ns, rank, lambda: None)
    ranks = {9} - {but}
    bdi: Any = SimpleNamespace(
        wbs=[None] * contexts,
        elsewhere=frozenset({2}),
        flushers={3} - {but},
        queue=SimpleNamespace(ranks=ranks),
    )
    horizon = Horizon(env, bdi)
    horizon.apart |= {8} - {but}
    assert horizon.look() == (50, far_ns)
