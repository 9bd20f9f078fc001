"""The plug for bios that come by the thousand, as rows of an array: the rules of `merge.Plug`, for writes of one queue.

A property test holds the two to the same requests.  Compiled by Numba.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.block.merge import PlugRules, QueueLimits
from models.compiled import compiled
from sim.units import PAGE_BYTES

_FIRST, _PAGES, _NOMERGE = range(3)
_UNBOUNDED: Final = 1 << 40


class _Rules(NamedTuple):
    """``tried``: 0 the newest, 1 the oldest, 2 all; sizes in pages."""

    merges: bool
    tried: int
    max_requests: int
    flush_pages: int
    flush_of_newest: bool
    max_pages: int


class RunPlug:
    """A plug that takes whole arrays; a bio of n pages has n segments."""

    def __init__(self, rules: PlugRules, limits: QueueLimits) -> None:
        merges = limits.nomerges != 2
        self._rules = _Rules(
            merges,
            ("newest", "oldest", "all").index(rules.tried.replace("tail", "newest")),
            rules.max_requests or _UNBOUNDED,
            -(-rules.flush_bytes // PAGE_BYTES) if rules.flush_bytes is not None and merges else _UNBOUNDED,
            rules.flush_of == "newest",
            min(limits.max_sectors_bytes // PAGE_BYTES, limits.max_segments),
        )
        self._held = np.empty((64, 3), np.int64)
        self._count = 0

    @property
    def requests(self) -> int:
        """How many requests it holds."""
        return self._count

    def add(self, bios: NDArray[np.int64]) -> tuple[int, NDArray[np.int64]]:
        """Submit *bios*, rows of first block and pages, in order.

        Returns how many took a request of their own, and the requests that full flushes issued, in the order of
        their coming: rows of first block and pages.
        """
        if self._count + len(bios) > len(self._held):
            self._held = np.concatenate([self._held, np.empty((self._count + len(bios), 3), np.int64)])
        issued = np.empty((self._count + len(bios), 2), np.int64)
        self._count, made, out = _add(self._held, self._count, bios, self._rules, issued)
        return made, issued[:out]

    def take(self) -> NDArray[np.int64]:
        """Empty the plug: its requests, in the order of their coming."""
        requests = self._held[: self._count, :_NOMERGE].copy()
        self._count = 0
        return requests


@compiled
def _add(
    held: NDArray[np.int64], count: int, bios: NDArray[np.int64], rules: _Rules, issued: NDArray[np.int64]
) -> tuple[int, int, int]:
    made = out = 0
    for i in range(len(bios)):
        if _merged(held, count, bios[i, 0], bios[i, 1], rules):
            continue
        judged = count - 1 if rules.flush_of_newest else 0
        if count and (count >= rules.max_requests or held[judged, _PAGES] >= rules.flush_pages):
            for row in range(count):
                issued[out, 0], issued[out, 1] = held[row, _FIRST], held[row, _PAGES]
                out += 1
            count = 0
        held[count, _FIRST], held[count, _PAGES], held[count, _NOMERGE] = bios[i, 0], bios[i, 1], 0
        count += 1
        made += 1
    return count, made, out


@compiled
def _merged(held: NDArray[np.int64], count: int, first: int, pages: int, rules: _Rules) -> bool:
    """Whether the bio joined one of the held requests."""
    if not rules.merges:
        return False
    for step in range(count if rules.tried == 2 else min(count, 1)):
        row = held[step if rules.tried == 1 else count - 1 - step]
        back, front = row[_FIRST] + row[_PAGES] == first, first + pages == row[_FIRST]
        if (back or front) and not row[_NOMERGE]:
            if row[_PAGES] + pages > rules.max_pages:
                row[_NOMERGE] = 1
            else:
                row[_PAGES] += pages
                if front:
                    row[_FIRST] = first
                return True
    return False
