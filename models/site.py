"""Where parts get what they are made with: threads, locks, dice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.seams import Thread
from models.signals import Signals
from sim.engine import Environment
from sim.sync import Mutex, SpinLock


@dataclass(frozen=True)
class Site:
    """Where parts get threads, locks, dice; ``urgent``: the rank of timers and of what ends at an instant."""

    env: Environment
    urgent: int
    processors: int
    signals: Signals
    thread: Callable[[str], Thread]
    process: Callable[[str], Thread]
    spin_lock: Callable[[str], SpinLock]
    mutex: Callable[[str], Mutex]
    variation: Callable[[str], Callable[[], float]]
    variations: Callable[[str], Callable[[int], NDArray[np.float64]]]
    uniforms: Callable[[str], Callable[[], float]]
    dice: Callable[[str], np.random.Generator]

    def of(self, owner: str) -> Site:
        """The same for parts that belong to *owner*: their locks, threads and dice bear its name in front."""
        if not owner:
            return self

        def named(make: Callable[[str], Any]) -> Callable[[str], Any]:
            return lambda name: make(f"{owner}/{name}")

        return replace(
            self, thread=named(self.thread), process=named(self.process), spin_lock=named(self.spin_lock),
            mutex=named(self.mutex), variation=named(self.variation), variations=named(self.variations),
            uniforms=named(self.uniforms), dice=named(self.dice),
        )  # fmt: skip
