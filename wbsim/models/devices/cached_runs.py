"""What a write cache holds: runs of sectors, joined where they touch or overlap, taken out in sweeps.
Pure.
"""

from __future__ import annotations

from sortedcontainers import SortedDict


class CachedRuns:
    """Disjoint runs, never adjacent to each other; ``sectors`` is how much they are together."""

    def __init__(self) -> None:
        self._runs: SortedDict[int, int] = SortedDict()  # first sector -> the sector behind the last
        self.sectors = 0

    def add(self, start: int, end: int) -> None:
        """Sectors *start* to *end* are written; what they overwrite is replaced."""
        runs = self._runs
        at = max(runs.bisect_right(start) - 1, 0)
        while at < len(runs):
            first, behind = runs.peekitem(at)
            if first > end:
                break
            if behind < start:
                at += 1
                continue
            start, end = min(start, first), max(end, behind)
            del runs[first]
            self.sectors -= behind - first
        runs[start] = end
        self.sectors += end - start

    def take(self, position: int, at_most: int) -> tuple[int, int]:
        """Up to *at_most* sectors of the next run from *position* on, or of the first (C-LOOK): start and
        end.

        Raises:
            IndexError: nothing is cached.
        """
        runs = self._runs
        at = runs.bisect_left(position)
        start, end = runs.peekitem(at if at < len(runs) else 0)
        del runs[start]
        taken = min(end, start + at_most)
        if taken < end:
            runs[taken] = end
        self.sectors -= taken - start
        return start, taken

    def __bool__(self) -> bool:
        return bool(self._runs)
