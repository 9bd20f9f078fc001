"""Which resource held a run back, and its threads by kind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from wbsim.experiments.running.outcome import Lives

AWAY: Final = ("waiting a pause", "waiting children", "waiting idle", "waiting absent")
"""What nobody would call work, or waiting."""
SEEN: Final = 0.0005
"""Less than this part of the run is nothing."""
ALIKE: Final = 0.01
"""Resources whose use differs by less than this part of the run are as good as equal."""


class Resource(NamedTuple):
    """What a run used: for which *share* of its time."""

    name: str
    share: float


def most_used(uses: Mapping[str, float]) -> list[Resource]:
    """The resources, from the one that held the run back downwards.

    That is the one that was used for the largest share of the run's time: the run cannot become shorter than
    its use.  Of those that are as good as equal, it is the one that most threads share.  Of threads of a kind
    only the busiest is named.
    """
    uses = _busiest(uses)
    by_share = sorted((Resource(*item) for item in uses.items()), key=lambda of: -of.share)
    shared = [name for name in uses if uses[name] > by_share[0].share - ALIKE]
    first = Resource(shared[0], uses[shared[0]])
    return [first, *(of for of in by_share if of != first)]


def _busiest(uses: Mapping[str, float]) -> dict[str, float]:
    """Of those of a kind, only the most used."""
    of_kind: dict[str, Resource] = {}
    for name, share in uses.items():
        kind = kind_of(name)
        if kind not in of_kind or share > of_kind[kind].share:
            of_kind[kind] = Resource(name, share)
    return {of.name: of.share for of in of_kind.values()}


def kind_of(name: str) -> str:
    """Its name without its number, which is at the end or, of a device's contexts, behind a colon."""
    return re.sub(r":\d+(?=/)|[ -]?\d+$", "", name)


def busy_ns(life: Mapping[str, float]) -> float:
    """How much of it was work, or waiting for something in particular."""
    return sum(ns for cause, ns in life.items() if cause not in AWAY)


class Kind(NamedTuple):
    """Threads that differ in their numbers only: how many did anything, the mean of their lives (ns; that of
    all, if none did), and how many there are.
    """

    name: str
    threads: int
    life: dict[str, float]
    of: int


def kinds_of(lives: Lives) -> list[Kind]:
    """The threads of a run, those of a kind together."""
    groups: dict[str, list[dict[str, int]]] = {}
    for name, life in lives.items():
        groups.setdefault(kind_of(name), []).append(life)
    nothing_ns = SEEN * max(sum(life.values()) for life in lives.values())
    kinds = []
    for name, of in groups.items():
        active = [life for life in of if busy_ns(life) > nothing_ns]
        shown = active or of
        causes = dict.fromkeys(cause for life in shown for cause in life)
        mean = {cause: sum(life.get(cause, 0) for life in shown) / len(shown) for cause in causes}
        kinds.append(Kind(name, len(active), mean, len(of)))
    return kinds
