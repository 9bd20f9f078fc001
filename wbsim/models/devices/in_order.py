"""Requests that end in the order in which they came."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from wbsim.sim.engine import Environment


class InOrder:
    """The ends of requests of one device; only the next end is on the agenda.

    ``rank`` is the rank of the ends.
    """

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._ends: deque[tuple[int, Callable[[], None]]] = deque()
        self._on_end: Callable[[], None] = self._end  # a bound method that is made once
        self.rank = env.next_rank()

    def add(self, end_ns: int, done: Callable[[], None]) -> None:
        """Call *done* at *end_ns*, which is not before the last end."""
        ends = self._ends
        if not ends:
            self._env.call_at(end_ns, self.rank, self._on_end)
        else:
            assert ends[-1][0] <= end_ns, "a request must not end before the previous one"
        ends.append((end_ns, done))

    def _end(self) -> None:
        ends = self._ends
        _, done = ends[0]
        done()
        ends.popleft()
        if ends:
            self._env.call_at(ends[0][0], self.rank, self._on_end)
