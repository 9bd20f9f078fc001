"""Signal (something happens) and Gauge (a level changes): how a model is watched from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """Whatever tells the time (ns)."""

    @property
    def now(self) -> int:
        """The clock (ns)."""


class Signal:
    """A named happening.  ``if signal.observers: signal.emit(...)`` costs one test when unwatched."""

    __slots__ = ("name", "observers")

    def __init__(self, name: str) -> None:
        self.name = name
        self.observers: list[Callable[..., None]] = []

    def emit(self, **fields: object) -> None:
        """Tell every observer the *fields*, named as in the kernel's tracepoint of this name."""
        for observer in self.observers:
            observer(self.name, **fields)


class Gauge:
    """A level over time; ``area`` is its integral in level-nanoseconds, exact because time is."""

    __slots__ = ("_area", "_clock", "_since_ns", "level", "peak")

    def __init__(self, clock: Clock, level: int = 0) -> None:
        self._clock = clock
        self._area = 0
        self._since_ns = clock.now
        self.level = level
        self.peak = level

    def add(self, change: int) -> None:
        """Change the level by *change*."""
        now = self._clock.now
        self._area += self.level * (now - self._since_ns)
        self._since_ns = now
        self.level += change
        if self.level > self.peak:
            self.peak = self.level

    @property
    def area(self) -> int:
        """The integral of the level up to now (level times ns)."""
        return self._area + self.level * (self._clock.now - self._since_ns)
