"""The flushes of an array: one to each member for a bio with PREFLUSH (md_flush_request in drivers/md/md.c).

From 6.13 on, each bio flushes all members, and its data goes to them at the same time (`AtOnce`).  Earlier
releases do one flush at a time, from a workqueue (`InTurn`).  A bio that came before the last flush began
needs no other flush.  Data follows when the flush has ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol

from wbsim.models.bio import FLUSH, Bio
from wbsim.models.block.gendisk import GenDisk
from wbsim.models.interfaces import Thread
from wbsim.models.md.thread import ArrayThread
from wbsim.models.md.wait_queue import WaitQueue
from wbsim.models.parts import Parts
from wbsim.models.time_accounting import DEVICE
from wbsim.sim.engine import Environment, Steps, Wait
from wbsim.sim.sync import Completion


class Flushes(Protocol):
    """The flushes of one array."""

    def flush_members(self, thread: Thread, flight: Any) -> Generator[Wait, None, bool]:
        """Flush the members for *flight*, a `Flight`; return False if a worker goes on with *flight*.

        Use: `yield from`.  If the result is True, the caller submits the data of *flight*.  The flushes have
        then ended, or are parts of *flight*.  *thread* submits them, or leaves them to the worker and may
        sleep.  Members without a volatile cache get no flush.
        """


def flush_bio(member: GenDisk, end_io: Callable[[Any], None], context: Any) -> Bio:
    """Return a flush of *member*, without data; *end_io* gets *context* when it ends."""
    return Bio(
        0, 0, op=FLUSH, queue=member, sync=True, nomerge=True, unplug=True, end_io=end_io, context=context
    )


class AtOnce(Flushes):
    """Each bio flushes the *members* with a volatile cache."""

    def __init__(self, members: Sequence[GenDisk]) -> None:
        self._members = members

    def flush_members(self, thread: Thread, flight: Any) -> Generator[Wait, None, bool]:
        """Let *thread* submit a flush of each member, and return True.  Use: `yield from`.

        Each flush is a part of *flight*, which does not end before the flushes.  The caller submits the data
        of *flight* at once.
        """
        for member in self._members:
            flight.parts += 1
            if (rest := thread.submit_bio(flush_bio(member, _end_part, flight))) is not None:
                yield from rest
        return True


def _end_part(flight: Any) -> None:
    flight.end_part()


class InTurn(Flushes):
    """One flush at a time of the *members* with a volatile cache; *go_on* submits the data of a bio."""

    def __init__(
        self, parts: Parts, members: Sequence[GenDisk], go_on: Callable[[Thread, Any], Steps]
    ) -> None:
        self._env: Environment = parts.env
        self._members = members
        self._go_on = go_on
        self._flights: deque[Any] = deque()
        self._busy = False
        self._last_start_ns = -1
        """The time at which the last flush that has ended began."""
        self._flush_end = WaitQueue(parts.env, DEVICE)
        self._worker = ArrayThread(parts, "md_wq", self._work)

    def flush_members(self, thread: Thread, flight: Any) -> Generator[Wait, None, bool]:
        """Let a worker flush all members and then submit the data of *flight*; return False.

        Use: `yield from`.  If a flush that began after this call has ended meanwhile, return True; the caller
        submits the data then.  *thread* sleeps while the flush of another bio is on its way.
        """
        since_ns = self._env.now
        while self._busy and since_ns >= self._last_start_ns:
            yield from self._flush_end.sleep(thread)
        if since_ns < self._last_start_ns:
            return True
        self._busy = True
        self._flights.append(flight)
        self._worker.wake()
        return False

    def _work(self, thread: Thread) -> Steps:
        """submit_flushes, md_submit_flush_data: flush, and then submit the data."""
        while self._flights:
            flight = self._flights.popleft()
            start_ns = self._env.now
            landings = [Completion(self._env, DEVICE) for _ in self._members]
            for member, landed in zip(self._members, landings, strict=True):
                if (rest := thread.submit_bio(flush_bio(member, _complete, landed))) is not None:
                    yield from rest
            for landed in landings:
                yield from landed.wait(thread.task)
            self._last_start_ns = start_ns
            self._busy = False
            self._flush_end.wake_all()
            yield from self._go_on(thread, flight)


def _complete(landed: Completion) -> None:
    landed.complete()
