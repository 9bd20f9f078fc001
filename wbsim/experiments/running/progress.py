"""How far the runs are: one line on stderr, rewritten in place; in a pipe, once that it takes long."""

from __future__ import annotations

import sys
import time
from typing import Final, Literal, NamedTuple

_EVERY_S: Final = 0.2
_WIDTH: Final = 150
_LONG_S: Final = 60
_SURE_S: Final = 10
Telling = Literal["nothing", "long", "always"]
"""``always``: a line that is rewritten; ``long``: once, after ten seconds, if more than a minute is left."""
SHORTER: Final = "sooner with less to do: fewer files or bytes, --quick, --replications 1, fewer points"


class Progress(NamedTuple):
    """One run: which, the share that is done, the simulated time (s)."""

    label: str
    share: float
    simulated_s: float


class Meter:
    """Puts the reports of several runs into one line, with an estimate of what is left."""

    def __init__(self, runs: int, telling: Telling) -> None:
        self._runs = runs
        self._telling = telling
        self._ended = 0
        self._started = self._shown = time.monotonic()
        self._running: dict[int, Progress] = {}
        self._told = False

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
        if self._telling == "long":
            self._tell_once(now, left_s)
            return
        counted = f"{self._ended} of {self._runs} runs, " if self._runs > 1 else ""
        parts = [f"{of.label} {of.simulated_s:.0f} s simulated" for of in self._running.values()]
        line = f"{counted}{100 * done:.0f} %, about {span(left_s)} left: {', '.join(parts)}"
        print(f"\r\x1b[K{line.removesuffix(': ')[:_WIDTH]}", end="", file=sys.stderr, flush=True)

    def _tell_once(self, now: float, left_s: float) -> None:
        if not self._told and now >= self._started + _SURE_S:
            self._told = True
            if left_s > _LONG_S:
                print(f"wbsim: about {span(left_s)} left; {SHORTER}", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take the line away."""
        if self._telling == "always":
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def span(seconds: float) -> str:
    """A duration as people say it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
