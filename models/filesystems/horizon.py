"""How far a compiled walk may go: to the next event that could touch what it uses.

Events of other disks never do (`models.writeback.wb.BackingDevice`), nor do those of the device's
completions, of the log, and of the workers that convert (`models.filesystems.lock_table`).  The
pages of a step go under writeback at its beginning: others see them there up to one step early.

Where a device has several flushers, a walk may go on for a fixed time whatever happens: the files of other
flushers are others, they see what it holds of a group as stretches of time, and what programs write to its
file meanwhile is left to its next visit.
"""

from __future__ import annotations

from wbsim.models.writeback.wb import BackingDevice
from wbsim.sim.engine import Environment


class Horizon:
    """The horizon of one filesystem on *bdi*.

    Its threads of the ranks ``apart`` leave alone what a walk uses.  Among several flushers, a walk goes
    on for *ahead_ns* at least.
    """

    def __init__(self, env: Environment, bdi: BackingDevice, ahead_ns: int) -> None:
        self._env = env
        self._bdi = bdi
        self._ahead_ns = ahead_ns
        self.apart: set[int] = set()
        self._passed: frozenset[int] = frozenset()

    def look(self) -> int:
        """How long a walk may go on (ns)."""
        env, bdi = self._env, self._bdi
        if len(bdi.wbs) > 1:
            return max(env.next_event_ns(bdi.elsewhere) - env.now, self._ahead_ns)
        if not self._passed:
            self._passed = bdi.elsewhere.union(self.apart, bdi.queue.ranks)
        return env.next_event_ns(self._passed) - env.now
