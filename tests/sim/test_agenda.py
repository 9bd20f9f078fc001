"""The agenda, compared with a sorted list: the one on `heapq`, and the one of the compiled build."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from wbsim.sim import agenda, heap
from wbsim.sim.entry import FAR_NS, Entry

Times = st.integers(0, 6)
Ranks = st.integers(-2, 3)


def key(entry: Entry) -> tuple[int, int, int]:
    return entry.when, entry.rank, entry.number


class OnHeapq(RuleBasedStateMachine):
    """An agenda with few times and few ranks, so that most entries tie; each entry has a unique number."""

    kind: type[agenda.Agenda] | type[heap.Agenda] = agenda.Agenda

    @initialize()
    def begin(self) -> None:
        self.agenda = self.kind()
        self.expected: list[Entry] = []
        self.made = 0

    def entry(self, when: int, rank: int) -> Entry:
        self.made += 1
        return Entry(when, rank, self.made)

    @rule(when=Times, rank=Ranks)
    def push(self, when: int, rank: int) -> None:
        entry = self.entry(when, rank)
        self.agenda.push(entry)
        self.expected = sorted([*self.expected, entry], key=key)

    @precondition(lambda self: self.expected)
    @rule()
    def pop(self) -> None:
        assert self.agenda.pop() is self.expected.pop(0)

    @rule(when=Times, rank=Ranks)
    def pushpop(self, when: int, rank: int) -> None:
        entry = self.entry(when, rank)
        first, *self.expected = sorted([*self.expected, entry], key=key)
        assert self.agenda.pushpop(entry) is first

    @rule()
    def clear(self) -> None:
        self.agenda.clear()
        self.expected = []

    @rule()
    def next_ns(self) -> None:
        assert self.agenda.next_ns() == (self.expected[0].when if self.expected else FAR_NS)

    @invariant()
    def all_are_there(self) -> None:
        assert len(self.agenda) == len(self.expected)
        assert sorted(self.agenda.entries(), key=key) == self.expected


class OnMachineIntegers(OnHeapq):
    kind = heap.Agenda


TestOnHeapq = OnHeapq.TestCase
TestOnMachineIntegers = OnMachineIntegers.TestCase


@pytest.mark.parametrize("kind", [agenda.Agenda, heap.Agenda])
def test_empty_agenda_has_no_entry(kind: type[agenda.Agenda] | type[heap.Agenda]) -> None:
    """pop raises an error for an empty agenda, and pushpop returns the given entry."""
    empty = kind()
    with pytest.raises(IndexError):
        empty.pop()
    entry = Entry(5, 2, 0)
    assert empty.pushpop(entry) is entry
    assert empty.next_ns() == FAR_NS
