"""The thread of an array (struct md_thread), and its workers."""

from __future__ import annotations

from collections.abc import Callable

from wbsim.models.interfaces import Thread
from wbsim.models.parts import Parts
from wbsim.sim.engine import IDLE, PARK, Steps


class ArrayThread:
    """struct md_thread: runs *body* again whenever it was woken meanwhile, and otherwise sleeps."""

    def __init__(self, parts: Parts, name: str, body: Callable[[Thread], Steps]) -> None:
        self._env = parts.env
        self._worker = parts.thread(name)
        self._body = body
        self._asleep = False
        self._woken = False
        self._env.start(self._worker.task, self._run())

    def wake(self) -> bool:
        """Wake the thread; return whether it slept.

        If it is at work, it runs *body* once more afterwards (md_wakeup_thread).
        """
        if self._asleep:
            self._asleep = False
            self._env.wake(self._worker.task)
            return True
        self._woken = True
        return False

    @property
    def busy(self) -> bool:
        """True while the thread works, or is about to."""
        return not self._asleep

    def _run(self) -> Steps:
        thread = self._worker
        while True:
            self._woken = False
            yield from self._body(thread)
            if not self._woken:
                self._asleep = True
                thread.task.waits_for = IDLE
                yield PARK
