"""The agenda of the compiled engine: a binary heap of entries that hold machine integers.

`sim.agenda` is the agenda of the interpreted engine, on `heapq`.  The tuples of `heapq` would cost a compiled
model more time than the rest of its engine.
"""

from __future__ import annotations

from mypy_extensions import i64

from wbsim.sim.entry import FAR_NS, Entry


class Agenda:
    """Entries in the order of time, rank and number; an entry is on the agenda at most once."""

    def __init__(self) -> None:
        self._heap: list[Entry] = []

    def __len__(self) -> int:
        return len(self._heap)

    def entries(self) -> list[Entry]:
        """Return all entries, in no order."""
        return list(self._heap)

    def push(self, entry: Entry) -> None:
        """Add *entry*."""
        self._heap.append(entry)
        self._up(len(self._heap) - 1)

    def pop(self) -> Entry:
        """Remove the first entry and return it.

        Raises:
            IndexError: the agenda is empty.
        """
        last = self._heap.pop()
        if not self._heap:
            return last
        first = self._heap[0]
        self._down(last)
        return first

    def pushpop(self, entry: Entry) -> Entry:
        """Add *entry*, then remove the first entry and return it."""
        if not self._heap:
            return entry
        first = self._heap[0]
        if entry.when < first.when or (entry.when == first.when and _first_of_a_tie(entry, first)):
            return entry
        self._down(entry)
        return first

    def clear(self) -> None:
        """Remove all entries."""
        self._heap.clear()

    def next_ns(self) -> int:
        """Return when the first entry is due (ns); `FAR_NS` if the agenda is empty."""
        return self._heap[0].when if self._heap else FAR_NS

    def _up(self, at: i64) -> None:
        """Move the last entry, at position *at*, up to its place in the heap."""
        heap = self._heap
        entry = heap[at]
        when: i64 = entry.when
        while at > 0:
            above: i64 = (at - 1) >> 1
            due: i64 = heap[above].when
            if due < when or (due == when and not _first_of_a_tie(entry, heap[above])):
                break
            heap[at] = heap[above]
            at = above
        heap[at] = entry

    def _down(self, entry: Entry) -> None:
        """Replace the first entry by *entry*, and move *entry* down to its place in the heap."""
        heap = self._heap
        size: i64 = len(heap)
        at: i64 = 0
        below: i64 = 1
        when: i64 = entry.when
        while below < size:
            due: i64 = heap[below].when
            if below + 1 < size:
                other: i64 = heap[below + 1].when
                if other < due or (other == due and _first_of_a_tie(heap[below + 1], heap[below])):
                    below += 1
                    due = other
            if when < due or (when == due and _first_of_a_tie(entry, heap[below])):
                break
            heap[at] = heap[below]
            at = below
            below = 2 * at + 1
        heap[at] = entry


def _first_of_a_tie(one: Entry, other: Entry) -> bool:
    if one.rank != other.rank:
        return one.rank < other.rank
    return one.number < other.number
