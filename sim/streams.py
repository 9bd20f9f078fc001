"""Random streams addressed by name: adding a component shifts no other component's dice."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from itertools import chain

import numpy as np
from numpy.typing import NDArray

_BLOCK = 4096


class Streams:
    """The dice of one replication of one experiment.

    Replication *r* throws the same dice in every scenario with the same seed, so that variants are
    compared by paired differences.
    """

    def __init__(self, seed: int, replication: int = 0) -> None:
        self._seed = seed
        self._replication = replication
        self._taken: set[str] = set()

    def generator(self, name: str) -> np.random.Generator:
        """The stream called *name*.

        Raises:
            ValueError: the name was taken; two components would share their dice.
        """
        if name in self._taken:
            raise ValueError(f"the random stream {name!r} is already taken")
        self._taken.add(name)
        digest = blake2b(name.encode(), digest_size=8).digest()
        key = (self._replication, int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:], "big"))
        return np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=key))

    def service_times(self, name: str, cv: float) -> Callable[[], float]:
        """Factors of mean 1 and coefficient of variation *cv*, gamma-distributed, drawn in blocks.

        With *cv* 0 every factor is exactly 1.
        """
        if cv == 0:
            return lambda: 1.0
        factors = self.service_time_arrays(name, cv)
        return one_by_one(lambda: factors(_BLOCK).tolist())

    def service_time_arrays(self, name: str, cv: float) -> Callable[[int], NDArray[np.float64]]:
        """The same factors as arrays, so many at a time."""
        if cv == 0:
            return np.ones
        shape = 1 / cv**2
        generator = self.generator(name)
        return lambda count: generator.gamma(shape, 1 / shape, count)

    def uniforms(self, name: str) -> Callable[[], float]:
        """Numbers uniform in [0, 1), drawn in blocks."""
        generator = self.generator(name)
        return one_by_one(lambda: generator.random(_BLOCK).tolist())


def one_by_one(draw: Callable[[], list[float]]) -> Callable[[], float]:
    """The numbers of one drawn block after the other."""
    return chain.from_iterable(iter(draw, None)).__next__
