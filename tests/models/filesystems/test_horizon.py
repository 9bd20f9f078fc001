"""How far a walk may go."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wbsim.models.filesystems.horizon import Horizon
from wbsim.sim.engine import Environment


@pytest.mark.parametrize(
    ("but", "far_ns"),
    [(0, 300), (2, 20), (9, 60), (8, 70)],
    ids=["a program's", "another disk's", "a completion", "a worker's"],
)
def test_a_walk_goes_on_over_the_events_of_those_elsewhere(but: int, far_ns: int) -> None:
    """At 100: another disk's event of rank 2 comes at 120, a program's (3) at 150 that has another disk, a
    completion (9) at 160, a worker's (8) at 170 and a program's of this disk (4) at 400; as if *but* were
    such a program's, too.
    """
    horizon = Horizon(*at_100((120, 2), (150, 3), (160, 9), (170, 8), (400, 4), but=but), 0)
    horizon.apart |= {8} - {but}
    assert horizon.look() == far_ns


def at_100(*events: tuple[int, int], but: int = 0, contexts: int = 1) -> tuple[Environment, Any]:
    """The clock, and a device with completions of rank 9 while 2 and 3 are of others."""
    env = Environment()
    env.now = 100
    for at_ns, rank in events:
        env.call_at(at_ns, rank, lambda: None)
    bdi: Any = SimpleNamespace(
        wbs=[None] * contexts,
        elsewhere=frozenset({2, 3} - {but}),
        queue=SimpleNamespace(ranks={9} - {but}),
    )
    return env, bdi


def test_among_several_flushers_a_walk_goes_on_for_its_length() -> None:
    """Whatever comes before; and farther where nothing does."""
    assert Horizon(*at_100((160, 4), contexts=2), 1_000_000).look() == 1_000_000
    assert Horizon(*at_100((2_000_100, 4), contexts=2), 1_000_000).look() == 2_000_000
