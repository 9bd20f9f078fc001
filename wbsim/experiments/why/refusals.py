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
        """Return ``reason``, ``count`` (of refused runs), ``causes`` and ``points``, for ``--json``."""
        points = [dict(point) for point in self.points]
        return {"reason": self.reason, "count": len(points), "causes": list(self.causes), "points": points}

    def text(self) -> str:
        """Return the reason in one line: the count, the message, and the values of each cause."""
        causes = " and ".join(
            f"{path} = {_values_text([point[path] for point in self.points])}" for path in self.causes
        )
        cause = f"with {causes}" if causes else "no single number is the cause"
        return f"{len(self.points)}: {self.reason}; {cause}"


def refusals_of(failures: Sequence[Refused], successes: Sequence[Values], usual: Values) -> list[Refusal]:
    """Return the reasons of the refused runs *failures*, the most frequent first.

    *successes* has the numbers of the runs that ended, and *usual* the usual value of each number.  Without
    *successes*, no reason has a cause.
    """
    groups: dict[str, list[Refused]] = {}
    for failure in failures:
        groups.setdefault(_pattern(failure.message), []).append(failure)
    refusals = []
    for members in groups.values():
        points = [member.values for member in members]
        causes = _causes(
            [{**usual, **point} for point in points], [{**usual, **point} for point in successes]
        )
        full: list[Values] = [{**{path: usual[path] for path in causes}, **point} for point in points]
        refusals.append(Refusal(_merge([member.message for member in members]), tuple(causes), full))
    return sorted(refusals, key=lambda refusal: -len(refusal.points))


def _causes(failures: Sequence[Values], successes: Sequence[Values]) -> list[str]:
    """Return the paths of the numbers that separate the *failures* from the *successes*."""
    if not successes:
        return []
    return [
        path
        for path in failures[0]
        if min(point[path] for point in failures) > max(point[path] for point in successes)
        or max(point[path] for point in failures) < min(point[path] for point in successes)
    ]


def _pattern(message: str) -> str:
    return _NUMBER.sub("#", message)


def _merge(messages: Sequence[str]) -> str:
    """Return *messages* of one pattern as one message, with a range for each number that differs."""
    columns = zip(*(_NUMBER.findall(message) for message in messages), strict=True)
    ranges = [
        column[0] if len({*column}) == 1 else f"{min(column, key=float)} .. {max(column, key=float)}"
        for column in map(list, columns)
    ]
    replacements = iter(ranges)
    return _NUMBER.sub(lambda _: next(replacements), messages[0])


def _values_text(values: Sequence[float | int]) -> str:
    """Return *values* as a list, or as a range if there are more than `_LISTED`."""
    texts = [str(value) if isinstance(value, int) else f"{value:g}" for value in sorted(set(values))]
    if len(texts) > _LISTED:
        return f"{texts[0]} .. {texts[-1]}"
    return ", ".join(texts)
