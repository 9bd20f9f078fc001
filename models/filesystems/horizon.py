"""How far a compiled walk may go: to the next event that could touch what it uses.

Events of other disks never do (`models.writeback.wb.BackingDevice`).  Where a device has several flushers,
neither do those of the other flushers, whose files are others, and who find a group locked while a walk has
it (`models.filesystems.turns`); nor do conversions, the log and the device's completions.  The pages of a
step go under writeback at its beginning: another disk's programs see them there up to one step early.
"""

from __future__ import annotations

from models.writeback.wb import BackingDevice
from sim.engine import Environment


class Horizon:
    """That of one filesystem, on *bdi*; its threads of the ranks ``apart`` leave alone what a walk uses."""

    def __init__(self, env: Environment, bdi: BackingDevice) -> None:
        self._env = env
        self._bdi = bdi
        self.apart: set[int] = set()
        self._passed: frozenset[int] = frozenset()

    def look(self) -> tuple[int, int]:
        """How long a walk may go on (ns): until any event of its device and, with its locks held, until one
        that touches what it uses.
        """
        env, bdi = self._env, self._bdi
        near_ns = far_ns = env.next_event_ns(bdi.elsewhere)
        if len(bdi.wbs) > 1:
            if not self._passed:
                self._passed = bdi.elsewhere.union(self.apart, bdi.flushers, bdi.queue.ranks)
            far_ns = env.next_event_ns(self._passed)
        return near_ns - env.now, far_ns - env.now
