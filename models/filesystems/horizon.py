"""How far a compiled walk may go: to the next event that could touch what it uses.

Events of other disks never do (`models.writeback.wb.BackingDevice`).  Where a device has several flushers,
others' steps on other files and groups, conversions of other files and the device's completions do not
either.  The pages of a step go under writeback at its beginning: another disk's programs see them there up to
one step early.
"""

from __future__ import annotations

from typing import Any

from models.filesystems.conversions import Conversions, Workers
from models.writeback.wb import BackingDevice
from sim.engine import Environment


class Horizon:
    """That of one filesystem, on *bdi*; *workers* convert what it wrote, where anything has to be."""

    def __init__(self, env: Environment, bdi: BackingDevice, workers: Workers | None) -> None:
        self._env = env
        self._bdi = bdi
        self._workers = workers
        self._steps: dict[int, tuple[object, ...]] = {}  # what each step under way uses, by its task's rank

    def begin(self, rank: int, uses: tuple[object, ...]) -> None:
        """A step of the task of this *rank* is under way."""
        self._steps[rank] = uses

    def end(self, rank: int) -> None:
        """It is over."""
        del self._steps[rank]

    def look(self, conversions: Conversions, uses: tuple[object, ...]) -> tuple[int, int]:
        """How long a walk over *uses* may go on (ns): until any event of its device and, with its locks held,
        until one that touches *uses*.
        """
        env, elsewhere = self._env, self._bdi.elsewhere
        near_ns = far_ns = env.next_event_ns(elsewhere)
        if self._steps and len(self._bdi.wbs) > 1:
            others = [rank for rank, used in self._steps.items() if not _shared(used, uses)]
            if len(others) == len(self._steps):
                workers = frozenset() if self._workers is None else self._workers.ranks
                far_ns = env.next_event_ns(elsewhere.union(others, workers, self._bdi.queue.ranks))
                if self._workers is not None and conversions.busy:
                    # One that waits for a processor is late: it goes on once somebody gives way.
                    far_ns = min(far_ns, max(self._workers.end_of(conversions), env.now))
        return near_ns - env.now, far_ns - env.now


def _shared(used: tuple[Any, ...], mine: tuple[Any, ...]) -> bool:
    """Whether two walks use one thing."""
    return any(one is two for one in used for two in mine)
