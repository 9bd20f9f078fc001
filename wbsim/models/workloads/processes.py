"""The processes of a program, which a parent starts and waits for, and their pace.

`Family` are the processes.  `Pace` is for a program that does one thing to each of many files: when its pace
is steady, the rest is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import sqrt
from statistics import fmean, stdev
from typing import Final

from wbsim.models.interfaces import Thread
from wbsim.models.parts import Parts
from wbsim.models.scheduler.cpu import sleep, work
from wbsim.models.time_accounting import CHILDREN, PARENT, PAUSE, PROCESS, system_ns
from wbsim.models.vfs.inodes import SuperblockInodes
from wbsim.models.workloads.spec import Reckoned
from wbsim.sim.engine import PARK, Environment, Steps


class Family:
    """A ``parent`` and its ``children``; ``running`` children have begun and not ended."""

    def __init__(self, parts: Parts, children: int) -> None:
        self._env = parts.env
        self.parent = parts.thread(PARENT)
        self.children: list[Thread] = [parts.process(f"{PROCESS} {i}") for i in range(children)]
        self.running = 0
        self._waits = False

    @property
    def system_ns(self) -> int:
        """Return the system time of all children: work and spinning, as time(1) sees it."""
        return sum(system_ns(child.task, child.spent) for child in self.children)

    @property
    def user_ns(self) -> int:
        """Return the user time of all children, with the pauses through which they spun."""
        return sum(child.spent.user + child.spent.pause for child in self.children)

    def fork(self, child: Thread, steps: Steps, fork_ns: int, start_ns: int = 0) -> Steps:
        """Let the parent take *fork_ns* to start *child*, which begins *start_ns* later."""
        self.parent.spent.fork += fork_ns
        yield fork_ns
        child.task.on_exit = self._exited
        self.running += 1
        self._env.start(child.task, steps, start_ns)

    def wait(self) -> Steps:
        """wait(2): sleep until no child is running."""
        while self.running:
            self._waits = True
            self.parent.task.waits_for = CHILDREN
            yield PARK
            self._waits = False

    def _exited(self) -> None:
        self.running -= 1
        if not self.running and self._waits:
            self._env.wake(self.parent.task)


def pause(thread: Thread, ns: int, spin_ns: int = 0) -> Steps:
    """Let a program pause for *ns*, because its options say so: spin if *ns* is below *spin_ns*, else sleep.

    The pause counts as time that the program itself sets (`Spent.paced`).
    """
    if ns < spin_ns:
        thread.spent.pause += ns
        yield from work(thread.task, ns)
    else:
        yield from sleep(thread.task, ns, PAUSE)
    thread.spent.paced += ns


WINDOW: Final = 8_192
FEWEST: Final = 16
MOST: Final = 64
WITHIN: Final = 0.005


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
        self._left = total
        self._system_ns = system_ns
        self._inodes = inodes
        self._in_window = 0
        self._length = WINDOW
        self._windows: list[tuple[int, int, int]] = []  # when each ended, system time and inodes by then
        self.over = False
        self.reckoned = Reckoned()

    def count(self) -> bool:
        """Count a file that is done; return whether the program must end."""
        self._left -= 1
        self._in_window += 1
        if self._in_window == self._length:
            self._in_window = 0
            self._windows.append((self._env.now, self._system_ns(), self._cached()))
            if len(self._windows) > FEWEST and self._is_steady():
                self._skip()
            elif len(self._windows) > MOST:  # work that comes in bursts is steady in longer windows
                self._windows, self._length = self._windows[::2], 2 * self._length
        return self.over

    def _cached(self) -> int:
        return sum(inodes.cached for inodes in self._inodes)

    def _is_steady(self) -> bool:
        """Return whether the halves of all windows took the same time, and the later mean is certain."""
        ends = [end_ns for end_ns, _, _ in self._windows]
        took = [after - before for before, after in pairwise(ends)]
        half = len(took) // 2
        first, second = took[-2 * half : -half], took[-half:]
        mean = fmean(second)
        return abs(fmean(first) - mean) <= WITHIN * mean and stdev(second) <= WITHIN * mean * sqrt(half)

    def _skip(self) -> None:
        """Reckon the rest at the pace of the last half: all of it or, until memory is full, a part."""
        half = (len(self._windows) - 1) // 2
        began, ended = self._windows[-half - 1], self._windows[-1]
        files, filled = half * self._length, ended[2] - began[2]
        skipped, inodes = self._left, self._inodes[0]
        if filled > 0 and not inodes.reclaiming:
            skipped = min(skipped, max(0, inodes.room_left * files // filled))
            inodes.add_cached(skipped * filled // files)
        self._left -= skipped
        before = self.reckoned
        self.reckoned = Reckoned(
            before.files + skipped,
            before.ns + skipped * (ended[0] - began[0]) // files,
            before.system_ns + skipped * (ended[1] - began[1]) // files,
        )
        self.over = not self._left
        self._windows.clear()
        self._length = WINDOW
