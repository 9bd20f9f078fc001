"""One flusher per device (2.6.32 and later).

Stands for bdi_writeback_workfn / wb_workfn and wb_do_writeback (fs/fs-writeback.c): explicit work first, then
the periodic check, then the background check; asleep otherwise.  Left out: the forker thread of
2.6.32-3.9, which is only seen in the first five seconds.
"""

from __future__ import annotations

from typing import Literal

from models.seams import Submitter
from models.writeback import DirtyLists, Work, WorkList, Writeback, WritebackRules
from sim.engine import URGENT, Environment, Steps
from sim.param import Spec


class PerBdiSpec(Spec):
    """One thread per device."""

    kind: Literal["per_bdi"] = "per_bdi"


class PerBdiFlusher:
    """The flusher thread of one bdi."""

    def __init__(
        self,
        *,
        env: Environment,
        rules: WritebackRules,
        lists: DirtyLists,
        works: WorkList,
        writeback: Writeback,
        submitter: Submitter,
    ) -> None:
        self._env = env
        self._interval_ns = rules.interval
        self._lists = lists
        self._works = works
        self._writeback = writeback
        self._submitter = submitter
        self._last_periodic_ns = 0
        env.start(submitter.task, self._run())
        env.call_at(self._interval_ns, URGENT, self._tick)

    def _tick(self) -> None:
        """The delayed work that fires every dirty_writeback_centisecs."""
        if len(self._lists):
            self._works.start_background()
        self._env.call_at(self._env.now + self._interval_ns, URGENT, self._tick)

    def _run(self) -> Steps:
        writeback, submitter, works = self._writeback, self._submitter, self._works
        while True:
            while works.works:
                yield writeback.perform(submitter, works.works.popleft())
            if self._env.now - self._last_periodic_ns >= self._interval_ns:
                self._last_periodic_ns = self._env.now
                yield writeback.perform(submitter, Work("periodic"))
            if writeback.over_background():
                yield writeback.perform(submitter, Work("background"))
            if not works.works:
                yield works.sleep()


SPEC, COMPONENT = PerBdiSpec, PerBdiFlusher
