"""How far the runs are: one line on stderr, rewritten in place."""

from __future__ import annotations

import sys
import time
from typing import Final, NamedTuple

_EVERY_S: Final = 0.2
_WIDTH: Final = 150


class Progress(NamedTuple):
    """One run: which, the share that is done, the simulated time (s)."""

    label: str
    share: float
    simulated_s: float


class Meter:
    """Puts the reports of several runs into one line, with an estimate of what is left."""

    def __init__(self, runs: int) -> None:
        self._runs = runs
        self._ended = 0
        self._started = self._shown = time.monotonic()
        self._running: dict[int, Progress] = {}

    def note(self, place: int, report: Progress) -> None:
        """The run at *place* has come this far."""
        self._running[place] = report
        self._show()

    def ended(self, place: int) -> None:
        """The run at *place* has ended."""
        self._running.pop(place, None)
        self._ended += 1
        self._show()

    def _show(self) -> None:
        now = time.monotonic()
        done = (self._ended + sum(report.share for report in self._running.values())) / self._runs
        if now < self._shown + _EVERY_S or not 0 < done < 1:
            return
        self._shown = now
        left_s = (now - self._started) * (1 - done) / done
        counted = f"{self._ended} of {self._runs} runs, " if self._runs > 1 else ""
        parts = [f"{of.label} {of.simulated_s:.0f} s simulated" for of in self._running.values()]
        line = f"{counted}{100 * done:.0f} %, about {span(left_s)} left: {', '.join(parts)}"
        print(f"\r\x1b[K{line.removesuffix(': ')[:_WIDTH]}", end="", file=sys.stderr, flush=True)

    @staticmethod
    def clear() -> None:
        """Take the line away."""
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def span(seconds: float) -> str:
    """A duration as people say it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
