"""Requests that end in the order in which they came."""

from __future__ import annotations

from collections.abc import Callable

from wbsim.sim.engine import Environment
from wbsim.sim.fifo import Fifo


class InOrder:
    """The ends of requests of one device; only the next end is on the agenda.

    ``rank`` is the rank of the ends.
    """

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._ends: Fifo[tuple[int, Callable[[], None]]] = Fifo()
        self._on_end: Callable[[], None] = self._end  # a bound method that is made once
        self.rank = env.next_rank()

    def add(self, end_ns: int, done: Callable[[], None]) -> None:
        """Call *done* at *end_ns*, which is not before the end that was added last."""
        ends = self._ends
        if not len(ends):
            self._env.call_at(end_ns, self.rank, self._on_end)
        else:
            assert ends.last()[0] <= end_ns, "a request must not end before the previous one"
        ends.add((end_ns, done))

    def _end(self) -> None:
        ends = self._ends
        _, done = ends.first()
        # The end is taken after done(): if done() adds an end, `add` finds the queue not empty, and the new
        # end gets on the agenda only once, below.
        done()
        ends.take()
        if len(ends):
            self._env.call_at(ends.first()[0], self.rank, self._on_end)
