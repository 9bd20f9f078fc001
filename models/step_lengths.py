"""The lengths of steps: a setting of the simulation, and not of the machine.

A step is one event, or one call of compiled code, that stands for many operations of the kernel.  Its length
decides how fast a simulation runs.  Results must not depend on it; `tests/laws/test_step_lengths.py` says
where they still do.
"""

from __future__ import annotations

from dataclasses import dataclass

from wbsim.sim.units import MS


@dataclass(frozen=True)
class StepLengths:
    """The lengths of all steps of one machine.

    ``bios``: how many bios a walk over the pages of a file builds before it submits them.
    ``nonblocking_bios``: the same for a thread that must not sleep for a request (pdflush).  A queue of 128
    requests that is just below its congestion threshold has 15 left.
    ``ahead_ns``: how far such a walk runs ahead of the clock where a device has several flushers.
    ``factors``: how many random factors of allocations are drawn at once; a walk also ends with them.
    ``calls``: how many calls of write(2), or parts of one, a program of fio or dd makes in one event.
    """

    bios: int = 1_024
    nonblocking_bios: int = 15
    ahead_ns: int = 1 * MS
    factors: int = 4_096
    calls: int = 256

    def __post_init__(self) -> None:
        for name, least in (
            ("bios", 1), ("nonblocking_bios", 1), ("ahead_ns", 0), ("factors", 1), ("calls", 1),
        ):  # fmt: skip
            length = getattr(self, name)
            if length < least:
                raise ValueError(f"the step length {name} is {length}: it has to be at least {least}")
