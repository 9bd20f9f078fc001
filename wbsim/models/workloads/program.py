"""A running program, and the pace of a program that does one thing to each of many files.

When the pace is steady, the rest of such a program is reckoned: computed from the pace, and not simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import sqrt
from statistics import fmean, stdev
from typing import Final

from mypy_extensions import mypyc_attr

from wbsim.models.parts import Parts
from wbsim.models.syscalls.family import Family
from wbsim.models.syscalls.latency import Latencies
from wbsim.models.syscalls.process import SystemCalls
from wbsim.models.vfs.inodes import SuperblockInodes
from wbsim.models.workloads.spec import Iteration, JobDone, Reckoned
from wbsim.sim.engine import Environment


@mypyc_attr(allow_interpreted_subclasses=True)
class Program:
    """A program of a ``family`` of *processes*, a `Workload`; a subclass starts the parent."""

    def __init__(
        self, parts: Parts, calls: SystemCalls, processes: int, on_end: Callable[[], None],
        jobs: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.family = Family(parts, calls, processes, jobs)
        self.on_iteration: Callable[[Iteration], None] = lambda _: None
        self.on_end = on_end
        self.reckoned = Reckoned()

    @property
    def system_ns(self) -> int:
        """See `Workload.system_ns`."""
        return self.family.system_ns

    @property
    def user_ns(self) -> int:
        """See `Workload.user_ns`."""
        return self.family.user_ns

    @property
    def jobs_done(self) -> dict[str, JobDone]:
        """See `Workload.jobs_done`; a program with jobs overrides this."""
        return {}

    @property
    def written_bytes(self) -> int | None:
        """See `Workload.written_bytes`; a subclass that counts them overrides this."""
        return None

    @property
    def failed(self) -> dict[str, int]:
        """See `Workload.failed`."""
        return self.family.failed

    @property
    def latencies(self) -> Latencies:
        """See `Workload.latencies`."""
        return self.family.latencies


WINDOW: Final = 8_192
"""The number of files in a window at first."""
FEWEST: Final = 16
"""A pace is judged when at least this number of windows lie between the first and the last end."""
MOST: Final = 64
"""The number of windows above which two become one, because the work comes in bursts."""
WITHIN: Final = 0.005
"""The largest difference of the halves, and the largest standard error, as shares of the mean."""


class Pace:
    """The pace of a program with *total* files on the superblocks of *inodes*.

    *system_ns* returns the program's system time.  The work is cut into windows, which become longer as it
    continues.  The pace is steady when the two halves of the windows took the same time within `WITHIN`.  The
    standard error of the later half's mean may not be larger.

    Then the program ends, and its rest is reckoned at the later half's pace (``reckoned``).  Until memory is
    full of inodes, no task has to evict any.  That is another pace, which is reckoned only until memory is
    full.
    """

    def __init__(
        self, env: Environment, total: int, system_ns: Callable[[], int], inodes: Sequence[SuperblockInodes]
    ) -> None:
        self._env = env
        self._files_left = total
        self._system_ns = system_ns
        self._inodes = inodes
        self._in_window = 0
        self._length = WINDOW
        self._windows: list[tuple[int, int, int]] = []  # when each ended, system time and inodes by then
        self.is_over = False
        self.reckoned = Reckoned()

    def count(self) -> bool:
        """Count a file that is done; return whether the program must end, because no file is left.

        If the pace is steady, files are reckoned here instead of made (``reckoned``), all or a part.
        """
        self._files_left -= 1
        self._in_window += 1
        self.is_over = self.is_over or not self._files_left
        if self._in_window == self._length and not self.is_over:
            self._in_window = 0
            self._windows.append((self._env.now, self._system_ns(), self._cached()))
            if len(self._windows) > FEWEST and self._is_steady():
                self._skip()
            elif len(self._windows) > MOST:  # work that comes in bursts is steady in longer windows
                self._windows, self._length = self._windows[::2], 2 * self._length
        return self.is_over

    def _cached(self) -> int:
        return sum(inodes.cached for inodes in self._inodes)

    def _is_steady(self) -> bool:
        """Return whether the halves of all windows took the same time, and the later mean is certain."""
        ends = [end_ns for end_ns, _, _ in self._windows]
        took = [end - start for start, end in pairwise(ends)]
        half = len(took) // 2
        first, second = took[-2 * half : -half], took[-half:]
        mean = fmean(second)
        return abs(fmean(first) - mean) <= WITHIN * mean and stdev(second) <= WITHIN * mean * sqrt(half)

    def _skip(self) -> None:
        """Reckon the rest at the pace of the last half: all of it or, until memory is full, a part."""
        half = (len(self._windows) - 1) // 2
        start, end = self._windows[-half - 1], self._windows[-1]
        files, filled = half * self._length, end[2] - start[2]
        # The superblocks share memory, so the first of them stands for all in the counts that are reckoned.
        part, inodes = self._files_left, self._inodes[0]
        if filled > 0 and not inodes.reclaiming:
            part = min(part, max(0, inodes.room_left * files // filled))
            inodes.add_cached(part * filled // files)
        self._files_left -= part
        earlier = self.reckoned
        self.reckoned = Reckoned(
            earlier.files + part,
            earlier.ns + part * (end[0] - start[0]) // files,
            earlier.system_ns + part * (end[1] - start[1]) // files,
        )
        self.is_over = not self._files_left
        self._windows.clear()
        self._length = WINDOW
