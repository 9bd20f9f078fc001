"""The planes of a flash drive, which program, erase and read; each of them does one thing at a time."""

from __future__ import annotations

from collections import deque

from wbsim.sim.engine import Environment
from wbsim.sim.fifo import Fifo


class Planes:
    """A number of planes; flash pages go to one after another.

    *program_ns*: the time of most programs.  With *suspend_ns*, a read interrupts a program and lets it wait
    for so long in addition; with None, a read waits until the program ends.  Begins and ends are times on the
    clock.  Methods only reserve planes, and no time passes in them.
    """

    def __init__(self, env: Environment, count: int, program_ns: int, suspend_ns: int | None) -> None:
        self._env = env
        self._program_ns = program_ns
        self._suspend_ns = suspend_ns
        self._free_ns, self._next = [0] * count, 0
        self._programmed = self._other_ns = 0
        self._ends: Fifo[int] = Fifo()  # of programs that take program_ns, and are not complete
        self._others: deque[tuple[int, int]] = deque()  # (begin, end) of all other work

    def program(self, begin_ns: int) -> int:
        """Program a flash page on the next plane, not before *begin_ns*; return its end (ns).

        The plane is taken until then, behind its earlier work.
        """
        planes, ends = self._free_ns, self._ends
        while len(ends) and ends.first() <= self._env.now:
            ends.take()
        free_ns = planes[self._next]
        end_ns = (free_ns if free_ns > begin_ns else begin_ns) + self._program_ns
        planes[self._next] = end_ns
        self._next += 1
        if self._next == len(planes):
            self._next = 0
        self._programmed += 1
        ends.add(end_ns)
        return end_ns

    def do(self, begin_ns: int, took_ns: int) -> int:
        """Let the next plane do other work for *took_ns*, not before *begin_ns*; return its end (ns).

        Other work is an erasure, a moved page, or a page of an SLC part.
        """
        planes = self._free_ns
        begin_ns = max(planes[self._next], begin_ns)
        planes[self._next] = begin_ns + took_ns
        self._count(begin_ns, begin_ns + took_ns)
        self._next += 1
        if self._next == len(planes):
            self._next = 0
        return begin_ns + took_ns

    def read(self, number: int, begin_ns: int, took_ns: int) -> int:
        """Read for *took_ns* on a plane, not before *begin_ns*; return its end (ns).

        *number* modulo the number of planes is the plane.  A read passes work that has not begun.  It waits
        for the present one, or suspends it.  The present one is taken for a program, also if it is shorter.
        """
        plane = number % len(self._free_ns)
        waits_ns = self._free_ns[plane] - begin_ns
        if waits_ns > 0:
            present_ns = waits_ns % self._program_ns
            begin_ns += present_ns if self._suspend_ns is None else min(present_ns, self._suspend_ns)
        self._free_ns[plane] = max(self._free_ns[plane], begin_ns) + took_ns
        self._count(begin_ns, begin_ns + took_ns)
        return begin_ns + took_ns

    def fit(self, pause_ns: int, took_ns: int) -> int:
        """Return how many steps of *took_ns* each all planes together can do in a pause of *pause_ns*."""
        return len(self._free_ns) * pause_ns // took_ns

    def count_pause(self, took_ns: int) -> None:
        """Count *took_ns* of work, the sum over all planes, in a pause that is over.

        Such work, folding, delays no other work.
        """
        self._other_ns += took_ns

    def _count(self, begin_ns: int, end_ns: int) -> None:
        others = self._others
        while others and others[0][1] <= self._env.now:
            others.popleft()
        self._other_ns += end_ns - begin_ns
        others.append((begin_ns, end_ns))

    @property
    def idle_since_ns(self) -> int:
        """The time at which the last work of any plane ends or ended (ns)."""
        return max(self._free_ns)

    @property
    def used_ns(self) -> float:
        """The time that the planes worked until now, as the mean over all planes (ns)."""
        now, program_ns = self._env.now, self._program_ns
        to_come_ns = sum(min(end - now, program_ns) for end in self._ends.items() if end > now)
        to_come_ns += sum(end - max(begin, now) for begin, end in self._others if end > now)
        return (self._programmed * program_ns + self._other_ns - to_come_ns) / len(self._free_ns)
