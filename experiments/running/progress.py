"""How far the runs are: one line on stderr, rewritten in place."""

from __future__ import annotations

import sys
import time
from typing import NamedTuple


class Progress(NamedTuple):
    """One run: which, the share that is done, the simulated time (s)."""

    label: str
    share: float
    simulated_s: float


class Meter:
    """Puts the reports of several runs into one line, with an estimate of what is left."""

    def __init__(self, runs: int) -> None:
        self._runs = runs
        self._started = time.monotonic()
        self._reports: dict[str, Progress] = {}

    def note(self, key: str, report: Progress) -> None:
        """The run called *key* has come this far."""
        self._reports[key] = report

    def show(self) -> None:
        """Rewrite the line."""
        running = [report for report in self._reports.values() if report.share < 1]
        done = sum(report.share for report in self._reports.values()) / self._runs
        if not done:
            return
        left_s = (time.monotonic() - self._started) * (1 - done) / done
        parts = [f"{r.label} {r.simulated_s:.0f} s simulated" for r in running]
        line = f"{100 * done:3.0f} %, about {left_s:.0f} s left: {', '.join(parts)}"
        print(f"\r\x1b[K{line[:150]}", end="", file=sys.stderr, flush=True)

    @staticmethod
    def clear() -> None:
        """Take the line away."""
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
