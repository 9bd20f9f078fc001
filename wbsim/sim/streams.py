"""Random streams by name, so that a new component does not change the numbers of the others."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Final

import numpy as np
from mypy_extensions import i64
from numpy.typing import NDArray

_BLOCK: Final = 512  # few enough that all blocks of a run fit into a processor's cache


class Draws:
    """Random numbers one at a time, drawn in blocks of *block* numbers by *draw*."""

    __slots__ = ("_block", "_draw", "_numbers", "_position")

    def __init__(self, draw: Callable[[int], NDArray[np.float64]], block: int = _BLOCK) -> None:
        self._draw = draw
        self._block = block
        self._numbers: list[float] = []
        self._position: i64 = 0

    def next(self) -> float:
        """Return the next number.

        Numbers are drawn *block* at a time, so one call of *draw* serves many calls.
        """
        if self._position == len(self._numbers):
            self._numbers = self._draw(self._block).tolist()
            self._position = 0
        number = self._numbers[self._position]
        self._position += 1
        return number


class Streams:
    """The random numbers of one replication of one experiment.

    Replication *r* has the same numbers in every scenario with the same seed, so that variants are
    compared by paired differences.

    Each method makes the stream *name* of a component, and raises ValueError if this name is already taken.
    """

    def __init__(self, seed: int, replication: int = 0) -> None:
        self._seed = seed
        self._replication = replication
        self._names: set[str] = set()

    def generator(self, name: str) -> np.random.Generator:
        """Return a new generator of random numbers, which follows from the seed, the replication and *name*.

        Raises:
            ValueError: *name* is already taken; two components would share their numbers.
        """
        if name in self._names:
            raise ValueError(f"the random stream {name!r} is in use; give another name")
        self._names.add(name)
        digest = blake2b(name.encode(), digest_size=8).digest()
        key = (self._replication, int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:], "big"))
        return np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=key))

    def service_times(self, name: str, cv: float) -> Draws:
        """Return an endless series of factors of processor times (gamma distribution).

        Their mean is 1, and their coefficient of variation is *cv*.  With *cv* 0 every factor is exactly 1,
        and *name* stays free.
        """
        return Draws(self.service_time_arrays(name, cv))

    def service_time_arrays(self, name: str, cv: float) -> Callable[[int], NDArray[np.float64]]:
        """Return a function that takes a length, and returns an array of that many factors.

        They are factors of processor times as those of `service_times`, with the mean 1 and the coefficient
        of variation *cv*.  With *cv* 0 all are exactly 1, and *name* stays free.
        """
        if cv == 0:
            return np.ones
        shape = 1 / cv**2
        generator = self.generator(name)
        return lambda count: generator.gamma(shape, 1 / shape, count)

    def exponentials(self, name: str) -> Draws:
        """Return an endless series of exponential numbers of mean 1.

        The excess of wake-ups is an example (`sim.sync.WakeUps`).
        """
        generator = self.generator(name)
        return Draws(lambda count: generator.exponential(1.0, count))

    def uniforms(self, name: str) -> Draws:
        """Return an endless series of numbers uniform in [0, 1)."""
        generator = self.generator(name)
        return Draws(lambda count: generator.random(count))
