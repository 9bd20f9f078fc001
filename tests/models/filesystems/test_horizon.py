"""How far a walk may go."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from models.filesystems.horizon import Horizon
from sim.engine import Environment


def look(walks: dict[int, tuple[object, ...]], contexts: int, busy: bool = False) -> tuple[int, int]:
    """At 100, with these steps under way (by rank), workers of rank 8, completions of 9 and another disk's
    events of 2; for a file whose own conversion ends at 300.
    """
    env = Environment()
    env.now = 100
    for rank, at_ns in ((2, 120), (3, 150), (8, 170), (9, 160), (5, 400)):
        env.call_at(at_ns, rank, lambda: None)
    bdi: Any = SimpleNamespace(
        wbs=[None] * contexts, elsewhere=frozenset({2}), queue=SimpleNamespace(ranks=frozenset({9}))
    )
    workers: Any = SimpleNamespace(ranks=frozenset({8}), end_of=lambda of: of.ends_ns)
    horizon = Horizon(env, bdi, workers)
    horizon.begin(4, ("mine", "too"))
    for rank, uses in walks.items():
        horizon.begin(rank, uses)
    horizon.end(4)
    conversions: Any = SimpleNamespace(busy=busy, ends_ns=300)
    return horizon.look(conversions, ("mine", "group"))


@pytest.mark.parametrize(
    ("walks", "contexts", "busy", "far_ns"),
    [
        ({}, 2, False, 50),
        ({3: ("other file", "other group")}, 1, False, 50),
        ({3: ("other file", "other group")}, 2, False, 300),
        ({3: ("other file", "other group")}, 2, True, 200),
        ({3: ("other file", "group")}, 2, False, 50),
        ({3: ("other file", "other group"), 5: ("other file", "group")}, 2, False, 50),
    ],
)
def test_a_walk_goes_on_over_the_events_of_those_elsewhere(
    walks: dict[int, tuple[object, ...]], contexts: int, busy: bool, far_ns: int
) -> None:
    """Other disks' always; other flushers' steps on other files and groups, others' conversions and
    completions: not its own conversion's end, nor anybody's event while one walk shares a thing with it.
    """
    assert look(walks, contexts, busy) == (50, far_ns)
