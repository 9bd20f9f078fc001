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
        """Return all entries, in no order; the message of a `Standstill` names those that are due now."""
        return list(self._heap)

    def push(self, entry: Entry) -> None:
        """Add *entry*, which must not be on the agenda; its ``when``, rank and number give its place."""
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
        """Add *entry*, which must not be on the agenda; then remove the first entry, and return it.

        The first entry may be *entry*: `Environment.run` calls this when a task waits again.
        """
        if not self._heap:
            return entry
        first = self._heap[0]
        if entry.when < first.when or (entry.when == first.when and _first_of_a_tie(entry, first)):
            return entry
        self._down(entry)
        return first

    def clear(self) -> None:
        """Remove all entries, which are not called any more; `Environment.halt` ends a run this way."""
        self._heap.clear()

    def next_ns(self) -> int:
        """Return when the first entry is due (ns); `FAR_NS` if the agenda is empty."""
        return self._heap[0].when if self._heap else FAR_NS

    def _up(self, position: i64) -> None:
        """Move the last entry, at *position*, up to its place in the heap."""
        heap = self._heap
        entry = heap[position]
        when: i64 = entry.when
        while position > 0:
            parent: i64 = (position - 1) >> 1
            due: i64 = heap[parent].when
            if due < when or (due == when and not _first_of_a_tie(entry, heap[parent])):
                break
            heap[position] = heap[parent]
            position = parent
        heap[position] = entry

    def _down(self, entry: Entry) -> None:
        """Replace the first entry by *entry*, and move *entry* down to its place in the heap."""
        heap = self._heap
        size: i64 = len(heap)
        position: i64 = 0
        child: i64 = 1
        when: i64 = entry.when
        while child < size:
            due: i64 = heap[child].when
            if child + 1 < size:
                sibling_due: i64 = heap[child + 1].when
                if sibling_due < due or (
                    sibling_due == due and _first_of_a_tie(heap[child + 1], heap[child])
                ):
                    child += 1
                    due = sibling_due
            if when < due or (when == due and _first_of_a_tie(entry, heap[child])):
                break
            heap[position] = heap[child]
            position = child
            child = 2 * position + 1
        heap[position] = entry


def _first_of_a_tie(entry: Entry, rival: Entry) -> bool:
    if entry.rank != rival.rank:
        return entry.rank < rival.rank
    return entry.number < rival.number
