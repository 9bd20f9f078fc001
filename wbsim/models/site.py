"""Where parts get what they are made with: threads, locks, dice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wbsim.models.congestion import Congestion
from wbsim.models.seams import Thread
from wbsim.models.signals import Signals
from wbsim.models.step_lengths import StepLengths
from wbsim.sim.engine import Environment
from wbsim.sim.streams import Draws
from wbsim.sim.sync import HandOff, Line, LockStats, Mutex, RwSemaphore, SpinLock


@dataclass(frozen=True)
class Site:
    """Where parts get threads, locks, dice; ``urgent``: the rank of timers and of what ends at an instant.

    ``line`` is one that all processors write, ``lines`` are those under a lock.  ``inode_lock``: the lock of
    all lists of inodes, in eras that have it.  ``wake_ns``: how long a task that waits is in waking up.
    ``line_ns``: to write a line of one's own, and one that others write, too; ``hand_off``: what a line takes
    to another processor.  ``count_lock`` has the machine count a class of locks of that name, whose counters
    it asks for.  ``lengths``: those of the steps.
    """

    env: Environment
    urgent: int
    processors: int
    signals: Signals
    congestion: Congestion
    thread: Callable[[str], Thread]
    process: Callable[[str], Thread]
    spin_lock: Callable[[str], SpinLock]
    line: Callable[[str], Line]
    lines: Callable[[SpinLock], Line]
    mutex: Callable[[str], Mutex]
    rw_semaphore: Callable[[str], RwSemaphore]
    count_lock: Callable[[str, Callable[[], LockStats]], None]
    wake_ns: int
    line_ns: tuple[int, int]
    hand_off: HandOff
    inode_lock: SpinLock | None
    variation: Callable[[str], Draws]
    variations: Callable[[str], Callable[[int], NDArray[np.float64]]]
    uniforms: Callable[[str], Draws]
    dice: Callable[[str], np.random.Generator]
    lengths: StepLengths

    def of(self, owner: str) -> Site:
        """The same for parts that belong to *owner*: their locks, threads and dice bear its name in front."""
        if not owner:
            return self

        def named(make: Callable[[str], Any]) -> Callable[[str], Any]:
            return lambda name: make(f"{owner}/{name}")

        def count_lock(name: str, stats: Callable[[], LockStats]) -> None:
            self.count_lock(f"{owner}/{name}", stats)

        return replace(
            self, thread=named(self.thread), process=named(self.process), spin_lock=named(self.spin_lock),
            line=named(self.line), mutex=named(self.mutex), count_lock=count_lock,
            variation=named(self.variation), variations=named(self.variations),
            uniforms=named(self.uniforms), dice=named(self.dice),
        )  # fmt: skip
