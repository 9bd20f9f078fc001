"""The agenda of the interpreted engine, on `heapq`: entries in the order in which they are due."""

from __future__ import annotations

from heapq import heappop, heappush, heappushpop

from wbsim.sim.entry import FAR_NS, Entry


class Agenda:
    """Entries in the order of time, rank and number; an entry is on the agenda at most once."""

    __slots__ = ("_heap",)

    def __init__(self) -> None:
        # The keys are copied: tuples compare without a call.
        self._heap: list[tuple[int, int, int, Entry]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def entries(self) -> list[Entry]:
        """Return all entries, in no order; the message of a `Standstill` names those that are due now."""
        return [entry for *_, entry in self._heap]

    def push(self, entry: Entry) -> None:
        """Add *entry*, which must not be on the agenda; its ``when``, rank and number give its place."""
        heappush(self._heap, (entry.when, entry.rank, entry.number, entry))

    def pop(self) -> Entry:
        """Remove the first entry and return it.

        Raises:
            IndexError: the agenda is empty.
        """
        return heappop(self._heap)[3]

    def pushpop(self, entry: Entry) -> Entry:
        """Add *entry*, which must not be on the agenda; then remove the first entry, and return it.

        The first entry may be *entry*: `Environment.run` calls this when a task waits again.
        """
        return heappushpop(self._heap, (entry.when, entry.rank, entry.number, entry))[3]

    def clear(self) -> None:
        """Remove all entries, which are not called any more; `Environment.halt` ends a run this way."""
        self._heap.clear()

    def next_ns(self) -> int:
        """Return when the first entry is due (ns); `FAR_NS` if the agenda is empty."""
        return self._heap[0][0] if self._heap else FAR_NS
