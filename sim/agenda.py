"""What is to come, in order, on `heapq`."""

from __future__ import annotations

from collections.abc import Container
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

    def next_ns(self, but: Container[int]) -> int:
        """When the first is due whose rank is not in *but*; `FAR_NS` if there is none."""
        heap = self._heap
        if not heap or not but:
            return heap[0][0] if heap else FAR_NS
        # Down the heap, in order of time, and no farther than the first that counts.
        ahead = [(heap[0][0], 0)]
        while ahead:
            when, at = heappop(ahead)
            if heap[at][1] not in but:
                return when
            for below in (2 * at + 1, 2 * at + 2):
                if below < len(heap):
                    heappush(ahead, (heap[below][0], below))
        return FAR_NS
