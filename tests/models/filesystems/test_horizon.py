"""How far a walk may go."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from models.filesystems.delalloc import DelallocFilesystem
from sim.engine import Environment


def of(walks: dict[int, tuple[object, ...]], contexts: int = 2) -> Any:
    """A filesystem with these walks under way (by rank), conversion workers of rank 8 and a queue of 9."""
    env = Environment()
    env.now = 100
    for rank, at_ns in ((3, 150), (8, 170), (9, 160), (5, 400)):
        env.call_at(at_ns, rank, lambda: None)
    return SimpleNamespace(
        _env=env, _walks=walks,
        _workers=SimpleNamespace(rank=8), _queue=SimpleNamespace(ranks=frozenset({9})),
        _bdi=SimpleNamespace(wbs=[None] * contexts), _resources=lambda file: (file, "group"),
    )  # fmt: skip


def horizon_ns(fs: Any, busy: bool = False) -> int:
    """From 100 on, for a file whose own conversion ends at 300."""
    file: Any = SimpleNamespace(conversions=SimpleNamespace(busy=busy, ends_ns=300))
    elsewhere = DelallocFilesystem._elsewhere(fs, file)
    return DelallocFilesystem._horizon_ns(fs, file, elsewhere)


@pytest.mark.parametrize(
    ("walks", "contexts", "busy", "expected"),
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
    walks: dict[int, tuple[object, ...]], contexts: int, busy: bool, expected: int
) -> None:
    """Other flushers' steps on other files and groups, others' conversions and completions: not its own
    conversion's end, nor anybody's event while one walk shares a thing with it.
    """
    assert horizon_ns(of(walks, contexts), busy) == expected
