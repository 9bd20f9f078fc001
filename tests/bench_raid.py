"""The CPU time of a random write to RAID5 against that of one to a member, in one run."""

from __future__ import annotations

import gc
import time
from random import Random
from statistics import median
from typing import Any, Final

from tests.models.md.rig import Rig
from wbsim.models.bio import Bio
from wbsim.models.catalogue.drives import DRIVES
from wbsim.models.devices.ssd import Ssd
from wbsim.models.interfaces import Thread
from wbsim.sim.engine import Environment, Steps
from wbsim.sim.units import US

WRITES: Final = 40_000
_PLUG: Final = 64
"""The writes of one plug."""
_PAUSE_NS: Final = 300 * US


def write_us(drive: str, to_array: bool) -> float:
    """Return the CPU time of a write of 4 KiB to RAID5 of six drives, or to one of them (us).

    The drives collect no garbage, and md takes no simulated time.  As in a run, Python collects none, too.
    """
    spec: Any = DRIVES[drive].device.model_copy(update={"ftl": None, "slc": None})

    def device(env: Environment, number: int) -> Ssd:
        return Ssd(env=env, spec=spec, name=f"d{number}")

    rig, random = Rig("raid5", 6, devices=device), Random(1)
    target = rig.array if to_array else rig.queues[0]
    bios = [Bio(8 * random.randrange(10**7), 8, queue=target) for _ in range(WRITES)]
    thread: Thread = rig.parts.thread("writer")

    def body() -> Steps:
        for first in range(0, WRITES, _PLUG):
            thread.start_plug()
            for bio in bios[first : first + _PLUG]:
                if (rest := thread.submit_bio(bio)) is not None:
                    yield from rest
            yield from thread.finish_plug()
            yield _PAUSE_NS

    rig.env.start(thread.task, body())
    gc.collect()
    gc.disable()
    try:
        start_s = time.process_time()
        rig.env.run()
        return (time.process_time() - start_s) / WRITES * 1e6
    finally:
        gc.enable()


def parity_cost(drive: str = "pm9a3", pairs: int = 5) -> str:
    """Return a line with the median ratio of *pairs* pairs, and their ends."""
    ratios = sorted(write_us(drive, to_array=True) / write_us(drive, to_array=False) for _ in range(pairs))
    return (
        f"RAID5 of {drive}: a random write takes {median(ratios):.1f} times the CPU time of one to a member"
        f" ({ratios[0]:.1f} to {ratios[-1]:.1f})"
    )
