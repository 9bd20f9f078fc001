"""The lengths of steps: a setting of the simulation, and not of the machine.

A step is one event that stands for many operations of the kernel.  Its length decides how fast a simulation
runs.  Results do not depend on it (`tests/laws/test_step_lengths.py`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StepLengths:
    """The lengths of all steps of one machine.

    ``calls``: the largest number of writes that fio or dd makes in one event.  A write(2) of at most one page
    counts as one write.  A longer write(2) counts as one write for each of its pages.
    """

    calls: int = 256

    def __post_init__(self) -> None:
        if self.calls < 1:
            raise ValueError(f"the step length calls is {self.calls}; give at least 1")
