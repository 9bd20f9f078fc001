"""The runs that fail when the numbers of a model are varied, with the reason and the numbers that cause it.

A reason is the message of the model.  Messages that differ only in numbers are one reason.  A cause is a
number that separates the refused runs from the runs that ended.  Its refused values are all above or all
below the others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

Values = Mapping[str, float | int]
"""Numbers by path; a path that is missing has its usual value."""
_NUMBER: Final = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")
_LISTED: Final = 6


class Refused(NamedTuple):
    """One refused run: its numbers, and the message of the model."""

    values: Values
    message: str


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


def refusals_of(refused: Sequence[Refused], ended: Sequence[Values], usual: Values) -> list[Refusal]:
    """Return the reasons of the runs *refused*, the most frequent first.

    *ended* has the numbers of the runs that ended, and *usual* the numbers of the case.
    """
    groups: dict[str, list[Refused]] = {}
    for of in refused:
        groups.setdefault(_pattern(of.message), []).append(of)
    found = []
    for members in groups.values():
        points = [of.values for of in members]
        causes = _apart([{**usual, **of} for of in points], [{**usual, **of} for of in ended])
        full: list[Values] = [{**{path: usual[path] for path in causes}, **of} for of in points]
        found.append(Refusal(_merged([of.message for of in members]), tuple(causes), full))
    return sorted(found, key=lambda of: -len(of.points))


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
