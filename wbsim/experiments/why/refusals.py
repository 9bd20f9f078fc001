"""The runs that a model refuses when its numbers are varied, with the reason and the numbers that cause it.

A reason is the message of the model.  Messages that differ only in numbers are one reason.

* The scenario is refused before the run: a cause is a number whose usual value lifts the refusal.  Without
  such a number, a cause is a number that is refused when all others have their usual values.
* The run is refused later: a cause is a number that separates the refused runs from the runs that ended.  Its
  refused values are all above or all below the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

Values = Mapping[str, float | int]
"""Numbers by path; a path that is missing has its usual value."""
_NUMBER: Final = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")
_LOOKED_AT: Final = 5
"""At most this many runs of a reason are searched for causes; a run needs a validation for each number."""
_LISTED: Final = 6


class Refused(NamedTuple):
    """One refused run: its numbers and the messages of the model; ``early``: refused before it started."""

    values: Values
    messages: tuple[str, ...]
    early: bool


class Refusal(NamedTuple):
    """One reason, with the paths of the numbers that caused it, and all numbers of each refused run."""

    reason: str
    causes: tuple[str, ...]
    points: list[Values]

    def document(self) -> dict[str, object]:
        """Return the document of the reason for ``--json``."""
        points = [dict(of) for of in self.points]
        return {"reason": self.reason, "count": len(points), "causes": list(self.causes), "points": points}

    def text(self) -> str:
        """Return the reason in one line: the count, the message, and the values of each cause."""
        causes = " and ".join(f"{path} = {_listed([of[path] for of in self.points])}" for path in self.causes)
        cause = f"with {causes}" if causes else "no single number is the cause"
        return f"{len(self.points)}: {self.reason}; {cause}"


def refusals_of(
    refused: Sequence[Refused],
    ended: Sequence[Values],
    usual: Values,
    messages: Callable[[Values], Sequence[str]],
) -> list[Refusal]:
    """Return the reasons of the runs *refused*, the most frequent first.

    *ended* has the numbers of the runs that ended, and *usual* the numbers of the case.  *messages* returns
    the messages with which the model refuses a scenario with other numbers.
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
    """Return the paths of the numbers that cause the refusal of the *points* with the message *pattern*."""

    def refuses(values: Values) -> bool:
        return pattern in map(_pattern, messages(values))

    causes: dict[str, None] = {}
    for point in points[:: -(-len(points) // _LOOKED_AT)]:
        moved = [path for path in point if point[path] != usual[path]]
        lifts = [path for path in moved if not refuses({**point, path: usual[path]})]
        causes.update(dict.fromkeys(lifts or [path for path in moved if refuses({path: point[path]})]))
    return list(causes)


def _apart(refused: Sequence[Values], ended: Sequence[Values]) -> list[str]:
    """Return the paths of the numbers that separate the *refused* runs from the runs that *ended*."""
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
    """Return *messages* of one pattern as one message, with a range for each number that differs."""
    columns = zip(*(_NUMBER.findall(message) for message in messages), strict=True)
    ranges = [
        of[0] if len({*of}) == 1 else f"{min(of, key=float)} .. {max(of, key=float)}"
        for of in map(list, columns)
    ]
    of = iter(ranges)
    return _NUMBER.sub(lambda _: next(of), messages[0])


def _listed(values: Sequence[float | int]) -> str:
    """Return *values* as a list, or as a range if there are more than `_LISTED`."""
    texts = [str(value) if isinstance(value, int) else f"{value:g}" for value in sorted(set(values))]
    if len(texts) > _LISTED:
        return f"{texts[0]} .. {texts[-1]}"
    return ", ".join(texts)
