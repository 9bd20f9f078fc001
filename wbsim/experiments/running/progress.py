"""The progress of runs, as one line on stderr that is rewritten in place.

In a pipe: one message after ten seconds, if more than a minute is left.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

_EVERY_S: Final = 0.2
_WIDTH: Final = 150
_LONG_S: Final = 60
_SURE_S: Final = 10
Reporting = Literal["nothing", "long", "always"]
"""``always``: a line that is rewritten; ``long``: once, after ten seconds, if more than a minute is left."""


class Progress(NamedTuple):
    """The progress of one run: its label, the share that is done (0 to 1), and the simulated time (s)."""

    label: str
    share: float
    simulated_s: float


class Meter:
    """Prints the progress of *runs* runs on stderr, with an estimate of the time left.

    *reporting* says how (`Reporting`); for "nothing", make no meter.  *shorter* has what a user can do for a
    shorter run, such as ``--quick``.
    """

    def __init__(self, runs: int, reporting: Reporting, shorter: Sequence[str] = ()) -> None:
        self._runs = runs
        self._shorter = f"; for a shorter run use {' or '.join(shorter)}" if shorter else ""
        self._reporting = reporting
        self._runs_done = 0
        self._start_s = self._refresh_s = time.monotonic()
        self._reports: dict[int, Progress] = {}
        self._reported = False

    def note(self, place: int, report: Progress) -> None:
        """Take the *report* of the run at *place*, and print as the `Reporting` says.

        A place is a number that identifies the run until `finish`.  A line is printed again at most five
        times a second, and neither at 0 % nor at 100 %.
        """
        self._reports[place] = report
        self._show()

    def finish(self, place: int) -> None:
        """Count the run at *place* as ended, and print the line again if it is due."""
        self._reports.pop(place, None)
        self._runs_done += 1
        self._show()

    def _show(self) -> None:
        now = time.monotonic()
        done = (self._runs_done + sum(report.share for report in self._reports.values())) / self._runs
        if now < self._refresh_s + _EVERY_S or not 0 < done < 1:
            return
        self._refresh_s = now
        left_s = (now - self._start_s) * (1 - done) / done
        if self._reporting == "long":
            self._report_once(now, left_s)
            return
        count = f"{self._runs_done} of {self._runs} runs, " if self._runs > 1 else ""
        parts = [f"{report.label} {report.simulated_s:.0f} s simulated" for report in self._reports.values()]
        line = f"{count}{100 * done:.0f} %, about {span(left_s)} left: {', '.join(parts)}"
        print(f"\r\x1b[K{line.removesuffix(': ')[:_WIDTH]}", end="", file=sys.stderr, flush=True)

    def _report_once(self, now: float, left_s: float) -> None:
        if not self._reported and now >= self._start_s + _SURE_S:
            self._reported = True
            if left_s > _LONG_S:
                print(f"wbsim: about {span(left_s)} left{self._shorter}", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Erase the line, if it was rewritten in place; a message in a pipe stays."""
        if self._reporting == "always":
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def span(seconds: float) -> str:
    """Return a duration of *seconds* as a text in s, min or h, without decimals except for hours.

    >>> span(99), span(600), span(9000)
    ('99 s', '10 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
