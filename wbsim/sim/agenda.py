"""What is to come, in order, on `heapq`."""

from __future__ import annotations

from heapq import heappop, heappush, heappushpop

from wbsim.sim.entry import FAR_NS, Entry


class Agenda:
    """Entries by when they are due, by rank and by number; an entry stands here once."""

    __slots__ = ("_heap",)

    def __init__(self) -> None:
        # The keys are copied: tuples compare without a call.
        self._heap: list[tuple[int, int, int, Entry]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def entries(self) -> list[Entry]:
        """All of them, in no order."""
        return [entry for *_, entry in self._heap]

    def push(self, entry: Entry) -> None:
        """*entry* is to come."""
        heappush(self._heap, (entry.when, entry.rank, entry.number, entry))

    def pop(self) -> Entry:
        """Take the first one.

        Raises:
            IndexError: nothing is to come.
        """
        return heappop(self._heap)[3]

    def pushpop(self, entry: Entry) -> Entry:
        """`push`, then `pop`."""
        return heappushpop(self._heap, (entry.when, entry.rank, entry.number, entry))[3]

    def clear(self) -> None:
        """Nothing is to come."""
        self._heap.clear()

    def next_ns(self) -> int:
        """Return when the first entry is due; `FAR_NS` if there is none."""
        return self._heap[0][0] if self._heap else FAR_NS
