"""SimPy next to the model: user-supplied processes, resources and timeouts run on the model's clock."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import simpy
from simpy.events import NORMAL, Event


class Clock(Protocol):
    """The part of the model's environment that this module needs, for every engine."""

    @property
    def now(self) -> int:
        """The clock (ns)."""

    def call_at(self, when_ns: int, rank: int, act: Callable[[], object]) -> None:
        """Call *act* at *when_ns*, in the order of *rank* (lowest first) among the events of that instant."""

    def next_event_ns(self) -> int:
        """Return when the next event is due (ns); `FAR_NS` if there is none."""


class Beside(simpy.Environment):
    """A `simpy.Environment` with the clock (ns) and the queue of *env*; only *env* can be run."""

    def __init__(self, env: Clock) -> None:
        self._env = env
        super().__init__(0)

    @property
    def now(self) -> int:
        """The clock (ns)."""
        return self._env.now

    @property
    def _now(self) -> int:
        """The clock as SimPy reads it; the constructor of SimPy also writes 0 to it."""
        return self._env.now

    @_now.setter
    def _now(self, now_ns: int) -> None:
        assert now_ns == 0, "only the model sets the clock"

    def schedule(self, event: Event, priority: Any = NORMAL, delay: Any = 0) -> None:
        """Put *event* on the model's agenda, *delay* (whole ns) from now; see `simpy.Environment.schedule`.

        Of the events of one instant, the one with the lowest *priority* comes first.

        Raises:
            TypeError: *delay* is not a whole number.
        """
        if not isinstance(delay, int):
            raise TypeError(f"a delay of {delay!r} is not allowed; give a whole number of ns")
        self._env.call_at(self._env.now + delay, priority, partial(_fire, event))

    def run(self, until: Any = None) -> Any:
        """Raise an error always: only the model's environment can be run, by its ``run``.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("SimPy processes run with the model; call env.run() of the model's environment")

    def step(self) -> None:
        """Raise an error always; see `run`.

        Raises:
            RuntimeError: always.
        """
        self.run()

    def peek(self) -> int:
        """Return when the next event of the model or of SimPy is due (ns); `FAR_NS` if there is none."""
        return self._env.next_event_ns()


def _fire(event: Event) -> None:
    """Process *event*, which is due, as `simpy.Environment.step` does."""
    callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment]
    for callback in callbacks:
        callback(event)
    if not event._ok and not event.defused:
        raise event._value
