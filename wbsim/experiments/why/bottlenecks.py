"""The bottleneck of a run, and its threads by kind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from wbsim.experiments.results.outcome import PAUSES_OF, START_OF, Lives

AWAY: Final = ("user a pause", "waiting a pause", "waiting children", "waiting idle", "waiting absent")
"""Causes that count neither as work nor as waiting for a resource."""
HELD: Final = 0.5
"""A resource that is in use for a smaller share of the run is no bottleneck."""
NOTHING: Final = "nothing in particular"
"""The answer for a run without a bottleneck."""
SEEN: Final = 0.0005
"""A smaller share of the run counts as nothing."""
ALIKE: Final = 0.01
"""Utilisations that differ by less than this share of the run count as equal."""


class Resource(NamedTuple):
    """A resource of a run; ``share`` is its utilisation (0 to 1).

    The pauses and the start of a program count like a resource: no run is shorter than they are.
    """

    name: str
    share: float

    @property
    def use_text(self) -> str:
        """Return what ``share`` is a share of: use, or time that the program itself sets.

        >>> Resource("pauses of dd/process 0", 0.9).use_text
        'which the program itself sets, for'
        """
        own = self.name.startswith((PAUSES_OF, START_OF))
        return "which the program itself sets, for" if own else "in use for"


def bottleneck(uses: Mapping[str, float]) -> Resource | None:
    """Return the bottleneck of a run; None if nothing was in use for `HELD` of the run.

    *uses* has the utilisation (0 to 1) of each resource, at least one, in the order that `most_used` expects.

    >>> bottleneck({"processors": 0.2, "device sda head": 0.9})
    Resource(name='device sda head', share=0.9)
    >>> bottleneck({"processors": 0.2, "device sda head": 0.455})
    """
    first = most_used(uses)[0]
    return first if first.share >= HELD else None


def most_used(uses: Mapping[str, float]) -> list[Resource]:
    """Return the resources: first the one that may be the bottleneck, then the others by utilisation.

    The first has the highest utilisation, because the run cannot be shorter than its busy time.  Among
    resources within `ALIKE` of the highest, it is the one that most threads share.  Of each kind only the
    busiest resource is returned.

    *uses* has the utilisation (0 to 1) of each resource, at least one.  The resources that most threads share
    come first, as in `experiments.running.reading.uses_of`.
    """
    uses = _busiest(uses)
    by_share = sorted((Resource(*item) for item in uses.items()), key=lambda resource: -resource.share)
    shared = [name for name in uses if uses[name] > by_share[0].share - ALIKE]
    first = Resource(shared[0], uses[shared[0]])
    return [first, *(resource for resource in by_share if resource != first)]


def _busiest(uses: Mapping[str, float]) -> dict[str, float]:
    """Return *uses* with only the busiest resource of each kind."""
    of_kind: dict[str, Resource] = {}
    for name, share in uses.items():
        kind = kind_of(name)
        if kind not in of_kind or share > of_kind[kind].share:
            of_kind[kind] = Resource(name, share)
    return {resource.name: resource.share for resource in of_kind.values()}


def kind_of(name: str) -> str:
    """Return *name* without its numbers: one at the end, and one after a colon (a device's context).

    >>> kind_of("fs_mark/process 3"), kind_of("vdb:2/flusher")
    ('fs_mark/process', 'vdb/flusher')
    """
    return re.sub(r":\d+(?=/)|[ -]?\d+$", "", name)


def busy_ns(life: Mapping[str, float]) -> float:
    """Return the time of *life* that was work or waiting for a resource (ns); causes in `AWAY` are left out.

    *life* has the times (ns) by state and cause.
    """
    return sum(ns for cause, ns in life.items() if cause not in AWAY)


class Kind(NamedTuple):
    """The threads of a run whose names differ only in their numbers.

    * ``threads``: the number of active threads; these were busy for more than `SEEN` of the run.
    * ``life``: the mean time of the active threads by state and cause (ns); without any, the mean of all.
    * ``total``: the number of all threads of the kind.
    """

    name: str
    threads: int
    life: dict[str, float]
    total: int


def kinds_of(lives: Lives) -> list[Kind]:
    """Return the threads of a run, grouped by kind, in the order in which the kinds first occur.

    Each thread comes with its times (ns) by state and cause, and there must be at least one thread.
    """
    groups: dict[str, list[dict[str, int]]] = {}
    for name, life in lives.items():
        groups.setdefault(kind_of(name), []).append(life)
    nothing_ns = SEEN * max(sum(life.values()) for life in lives.values())
    kinds = []
    for name, group in groups.items():
        active = [life for life in group if busy_ns(life) > nothing_ns]
        sample = active or group
        causes = dict.fromkeys(cause for life in sample for cause in life)
        mean = {cause: sum(life.get(cause, 0) for life in sample) / len(sample) for cause in causes}
        kinds.append(Kind(name, len(active), mean, len(group)))
    return kinds
