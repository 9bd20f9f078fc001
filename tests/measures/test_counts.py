"""The counts of P13 equal the committed ones, and the counter is right for a small module."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.measures.counts import (
    FILES,
    StartCounter,
    count_calls,
    count_objects,
    differences,
    measure,
    read,
    text_of,
)

SOURCE = '''
from dataclasses import dataclass
from typing import NamedTuple

def plain():
    """A function that holds a generator, and is none."""
    def inner():
        yield 1
    return inner

def steps():
    """Steps."""
    yield 1
    yield from plain()()
    value = yield 2

def lambdas():
    return lambda: (yield)

class Base:
    def __init__(self, x=0):
        self.x = x

    def walk(self):
        while True:
            yield self.x

class Derived(Base):
    def __init__(self):
        super().__init__(1)

class Pair(NamedTuple):
    a: int
    b: int = 2

@dataclass(frozen=True)
class Point:
    x: int

class Bare:
    pass
'''


@pytest.mark.source
def test_counts_of_p13_are_the_committed_ones() -> None:
    """A commit that changes a count gives the reason (``python -m tests.measures.counts --write``)."""
    changed = differences(measure(), read())
    assert not changed, "\n".join(changed)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return a module of `SOURCE` whose generators count their starts in ``starts``."""
    of = ModuleType("wbsim.models.example")
    monkeypatch.setitem(sys.modules, of.__name__, of)
    of.__dict__["_generator_starts"] = of.__dict__["starts"] = [0]
    exec(compile(StartCounter().visit(ast.parse(SOURCE)), "example", "exec"), of.__dict__)
    return of


def test_a_generator_counts_once_when_it_begins_to_run(module: ModuleType) -> None:
    """A generator that is made and not resumed, or resumed again, does not count; docstrings stay."""
    unused = module.steps()
    assert module.starts == [0]
    assert list(unused) == [1, 1, 2]
    assert module.starts == [2]  # steps and inner
    walk = module.Base(7).walk()
    assert [next(walk), next(walk)] == [7, 7]
    assert module.starts == [3]
    assert module.lambdas()
    assert module.starts == [3]
    assert module.steps.__doc__ == "Steps."


def test_each_new_object_counts_once_under_its_own_class(module: ModuleType) -> None:
    """An object does not count for its base class; tuples and dataclasses count, empty classes do not."""
    objects: Counter[str] = Counter()
    count_objects([module], objects)
    assert module.Base(3).x == 3
    assert module.Derived().x == 1
    assert module.Pair(1) == (1, 2)
    assert module.Point(5).x == module.Point(x=5).x
    module.Bare()
    example = "models.example"
    assert objects == {
        f"{example}.Base": 1,
        f"{example}.Derived": 1,
        f"{example}.Pair": 1,
        f"{example}.Point": 2,
    }


def test_classes_of_other_modules_are_not_counted(module: ModuleType) -> None:
    """An imported class counts for the module that defines it."""
    other = ModuleType("wbsim.models.other")
    other.Base = module.Base  # type: ignore[attr-defined]
    objects: Counter[str] = Counter()
    count_objects([other], objects)
    module.Base()
    assert not objects


def test_a_counted_method_still_answers() -> None:
    """Each call counts, and its arguments and its result pass."""
    calls: Counter[str] = Counter()

    class Agenda:
        def pushpop(self, entry: int) -> int:
            return entry + 1

    count_calls(Agenda, "pushpop", calls)
    assert [Agenda().pushpop(1), Agenda().pushpop(2)] == [2, 3]
    assert calls == {"pushpop": 2}


NAMES = st.sampled_from([FILES, "events", "models.bio.Bio", "generator starts"])


@given(st.dictionaries(st.sampled_from(["patched", "unpatched"]), st.dictionaries(NAMES, st.integers(1))))
def test_counts_survive_writing(counts: dict[str, dict[str, int]]) -> None:
    """Written counts are read back unchanged, and equal counts have no difference."""
    again = tomllib.loads(text_of(counts))
    assert again == counts
    assert not differences(again, counts)


def test_a_difference_gives_both_counts_and_their_rates() -> None:
    """A new count and a missing count are differences, too."""
    before = {"base": {FILES: 100, "events": 250, "pushes": 7}}
    now = {"base": {FILES: 100, "events": 251, "models.bio.Bio": 50}}
    assert differences(now, before) == [
        "base: events 250 -> 251, 2.5000 -> 2.5100 a file",
        "base: pushes 7 -> 0, 0.0700 -> 0.0000 a file",
        "base: models.bio.Bio 0 -> 50, 0.0000 -> 0.5000 a file",
    ]
