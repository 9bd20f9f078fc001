"""The answer to a sweep in one sentence: which resource holds the run back, and from which point on.

`experiments.why.explain` begins with the answer.  The first replication of each point counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from typing import Final

from wbsim.experiments.results.dataset import number_of
from wbsim.experiments.results.outcome import PAUSES_OF, START_OF
from wbsim.experiments.why.bottlenecks import NOTHING, bottleneck, kind_of
from wbsim.models.time_accounting import FLUSHER

_MOST_STRETCHES: Final = 3
"""A sentence follows the sweep through so many resources; of more, it names or counts their points."""
_NAMED: Final = 3
"""The points of a resource are named up to this number, and counted above it."""
UNWRITTEN: Final = "nothing was written back"
"""The answer for a run without writeback, next to others that have it."""


def cause_of(uses: Mapping[str, float], *, written_back: bool = True) -> str:
    """Return what holds a run back, in words, from the utilisation (0 to 1) of each resource in *uses*.

    *uses* has at least one resource, in the order that `most_used` expects.  Without a bottleneck, the answer
    is `NOTHING`.  *written_back*: False: no data was written back, so the answer is `UNWRITTEN`.

    >>> cause_of({"processors": 0.2, "device sda head": 0.9}), cause_of({"processors": 0.2})
    ('the head of sda', 'nothing in particular')
    """
    if not written_back:
        return UNWRITTEN
    resource = bottleneck(uses)
    return NOTHING if resource is None else in_words(resource.name)


def in_words(name: str) -> str:
    """Return the resource *name* in words, without the number of a thread or a context.

    >>> in_words("thread vdb:3/flusher"), in_words("thread fs_mark/process 2"), in_words("device sda link")
    ('a flusher of vdb', 'a process of fs_mark', 'the link of sda')
    >>> in_words("lock mnt/ILOCK 5"), in_words("pauses of fio/process 4"), in_words("processors")
    ('the lock mnt/ILOCK', 'the pauses of fio', 'the processors together')
    """
    if name == "processors":
        return "the processors together"
    if name.startswith(PAUSES_OF):
        return f"the pauses of {name.removeprefix(PAUSES_OF).split('/')[0]}"
    if name.startswith(START_OF):
        return f"the {name}"
    kind, _, rest = name.partition(" ")
    if kind == "device":
        disk, _, part = rest.partition(" ")
        return f"the {part} of {disk}"
    if kind == "lock":
        return f"the lock {kind_of(rest)}"
    owner, _, thread = rest.partition("/")
    if thread == FLUSHER:
        device, context = owner.partition(":")[::2]
        return f"{'a' if context else 'the'} flusher of {device}"
    return f"a process of {owner}" if kind_of(thread) == "process" else f"the thread {rest}"


def answer_of(axes: Sequence[str], points: Sequence[Sequence[object]], causes: Sequence[str]) -> str:
    """Return a sentence on a sweep of *axes*, from the cause at each of its *points* (`cause_of`).

    A point has a value for each of *axes*, the swept keys.

    If the cause changes at most twice along one axis of rising numbers, the sentence says where.  Otherwise
    it names the points of each cause, or of more than three points their number.

    >>> answer_of(["threads"], [[1], [2], [4], [8]], ["a process of dd"] * 2 + ["the flusher of sda"] * 2)
    'From threads = 4 on, the flusher of sda holds the run back; below, a process of dd.'
    """
    if len(set(causes)) == 1:
        return f"{causes[0][0].upper()}{causes[0][1:]}{_verb_of(causes[0])} at every point."
    if len(axes) == 1 and _rise([point[0] for point in points]):
        whole = [(str(point[0]), cause) for point, cause in zip(points, causes, strict=True)]
        stretches = [list(group) for _, group in groupby(whole, lambda entry: entry[1])]
        if len(stretches) == 2:
            (_, low), (start, high) = stretches[0][0], stretches[1][0]
            return f"From {axes[0]} = {start} on, {high}{_verb_of(high)}; below, {low}."
        if len(stretches) <= _MOST_STRETCHES:
            parts = [f"{stretch[0][1]} {_span(stretch)}" for stretch in stretches]
            return f"What holds the run back changes along {axes[0]}: {', '.join(parts)}."
    places: dict[str, list[str]] = {}
    for point, cause in zip(points, causes, strict=True):
        places.setdefault(cause, []).append(", ".join(map(str, point)))
    parts = [
        f"{cause} at {' and at '.join(few) if len(few) <= _NAMED else f'{len(few)} of {len(points)} points'}"
        for cause, few in sorted(places.items(), key=lambda item: -len(item[1]))
    ]
    return f"What holds the run back differs: {', '.join(parts)}."


def _rise(values: Sequence[object]) -> bool:
    """Return whether *values*, numbers and quantities, rise from point to point; texts do not."""
    numbers = [number for value in values if (number := number_of(value)) is not None]
    return len(numbers) == len(values) and all(a < b for a, b in pairwise(numbers))


def _span(stretch: Sequence[tuple[str, str]]) -> str:
    first, last = stretch[0][0], stretch[-1][0]
    return f"at {first}" if first == last else f"from {first} to {last}"


def _verb_of(cause: str) -> str:
    """Return the verb and the object that follow *cause*, whose noun may be plural."""
    if cause == UNWRITTEN:
        return ""
    plural = cause.startswith(("the processors", "the pauses"))
    return " hold the run back" if plural else " holds the run back"
