"""The runs that a model refuses when its numbers are varied: for which reason, and by which number.

A reason is the model's message.  Messages that differ in numbers only are one reason.  If the scenario itself
is refused, a cause is a number whose usual value lifts the refusal, or that is refused alone.  If the run is
refused later, a cause is a number that separates the refused runs from those that ended: its refused values
lie all above or all below the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

Values = Mapping[str, float | int]
"""Numbers by path: those that are not at their usual values."""
_NUMBER: Final = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")
_LOOKED_AT: Final = 5
"""Causes are those of at most this many runs of a reason: each number of each is validated apart."""
_LISTED: Final = 6


class Refused(NamedTuple):
    """One run that was refused: its numbers, and the model's messages; *early* if it was not started."""

    values: Values
    messages: tuple[str, ...]
    early: bool


class Refusal(NamedTuple):
    """One reason, with the numbers that caused it and all numbers of each refused run."""

    reason: str
    causes: tuple[str, ...]
    points: list[Values]

    def document(self) -> dict[str, object]:
        """Return the reason for ``--json``."""
        points = [dict(of) for of in self.points]
        return {"reason": self.reason, "count": len(points), "causes": list(self.causes), "points": points}

    def text(self) -> str:
        """Return the reason in one line: the count, the message, and the values of each cause."""
        causes = " and ".join(f"{path} = {_listed([of[path] for of in self.points])}" for path in self.causes)
        return (
            f"{len(self.points)}: {self.reason}; {f'with {causes}' if causes else 'no single number decides'}"
        )


def refusals_of(
    refused: Sequence[Refused],
    ended: Sequence[Values],
    usual: Values,
    messages: Callable[[Values], Sequence[str]],
) -> list[Refusal]:
    """Return the reasons of the runs *refused*, the most frequent first.

    *ended* has the numbers of the other runs, *usual* those of the case.  *messages* returns what a scenario
    with other numbers is refused for.
    """
    groups: dict[tuple[str, bool], list[tuple[str, Values]]] = {}
    for of in refused:
        for message in dict.fromkeys(of.messages):
            groups.setdefault((_pattern(message), of.early), []).append((message, of.values))
    found = []
    for (pattern, early), members in groups.items():
        points = [values for _, values in members]
        if early:
            causes = _early(pattern, points, usual, messages)
        else:
            causes = _apart([{**usual, **of} for of in points], [{**usual, **of} for of in ended])
        full: list[Values] = [{**{path: usual[path] for path in causes}, **of} for of in points]
        found.append(Refusal(_merged([message for message, _ in members]), tuple(causes), full))
    return sorted(found, key=lambda of: -len(of.points))


def _early(
    pattern: str, points: Sequence[Values], usual: Values, messages: Callable[[Values], Sequence[str]]
) -> list[str]:
    """Return the paths of the numbers because of which the *points* are refused with *pattern*."""

    def refuses(values: Values) -> bool:
        return pattern in map(_pattern, messages(values))

    causes: dict[str, None] = {}
    for point in points[:: -(-len(points) // _LOOKED_AT)]:
        moved = [path for path in point if point[path] != usual[path]]
        lifts = [path for path in moved if not refuses({**point, path: usual[path]})]
        causes.update(dict.fromkeys(lifts or [path for path in moved if refuses({path: point[path]})]))
    return list(causes)


def _apart(refused: Sequence[Values], ended: Sequence[Values]) -> list[str]:
    """Return the paths of the numbers that separate the *refused* runs from those that *ended*."""
    if not ended:
        return []
    return [
        path
        for path in refused[0]
        if min(of[path] for of in refused) > max(of[path] for of in ended)
        or max(of[path] for of in refused) < min(of[path] for of in ended)
    ]


def _pattern(message: str) -> str:
    return _NUMBER.sub("#", message)


def _merged(messages: Sequence[str]) -> str:
    """Return *messages* of one pattern as one: a number that differs is a range."""
    columns = zip(*(_NUMBER.findall(message) for message in messages), strict=True)
    ranges = [
        of[0] if len({*of}) == 1 else f"{min(of, key=float)} .. {max(of, key=float)}"
        for of in map(list, columns)
    ]
    of = iter(ranges)
    return _NUMBER.sub(lambda _: next(of), messages[0])


def _listed(values: Sequence[float | int]) -> str:
    """Return a few values, or the range of many."""
    texts = [str(value) if isinstance(value, int) else f"{value:g}" for value in sorted(set(values))]
    if len(texts) > _LISTED:
        return f"{texts[0]} .. {texts[-1]}"
    return ", ".join(texts)
