"""How much memory runs may have together: a run that would not fit beside the others waits."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

_SHARE: Final = 0.9
_CGROUP: Final = Path("/sys/fs/cgroup")


def available_mib() -> float:
    """What this machine, or the control group that we are in, has left."""
    meminfo = Path("/proc/meminfo").read_text()
    kib = int(meminfo.partition("MemAvailable:")[2].split()[0])
    left = kib / 1024
    with suppress(OSError, ValueError):  # no limit, or no such control group
        limit, used = (int((_CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        left = min(left, (limit - used) / (1 << 20))
    return left


class Budget:
    """Memory for runs by their kind; what a kind needs is the most that one of it has had."""

    def __init__(self, mib: float, peaks_mib: dict[str, float]) -> None:
        self._mib = _SHARE * mib
        self._peaks_mib = dict(peaks_mib)
        self._running: dict[int, str] = {}

    def fits(self, kind: str) -> bool:
        """Whether one more of *kind* fits; alone, anything does."""
        needed = sum(self._needed(other) for other in (*self._running.values(), kind))
        return not self._running or needed <= self._mib

    def begins(self, place: int, kind: str) -> None:
        """The run at *place* has begun."""
        self._running[place] = kind

    def ends(self, place: int, peak_mib: float) -> None:
        """It has ended, and had so much; 0 if that is not known."""
        kind = self._running.pop(place)
        self._peaks_mib[kind] = max(self._peaks_mib.get(kind, 0.0), peak_mib)

    def _needed(self, kind: str) -> float:
        """Of a kind that is not known, what the largest one has had."""
        return self._peaks_mib.get(kind, max(self._peaks_mib.values(), default=0.0))
