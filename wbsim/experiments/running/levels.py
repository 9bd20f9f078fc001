"""Levels of a run over time: what is dirty and under writeback, and what disks were given, every so often.

The step begins short and doubles whenever there are `MOST` samples, of which every second is then dropped: a
run of any length ends with between half of `MOST` and `MOST` of them, evenly spaced.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from wbsim.models.block.queue import Queue
from wbsim.models.machine import Machine
from wbsim.models.spent import CONGESTION, THROTTLED
from wbsim.sim.units import MS

FIRST_STEP_NS: Final = 10 * MS
MOST: Final = 512
_HELD: Final = (THROTTLED, CONGESTION)
_OF_ALL: Final = (
    "time_ns", "dirty_pages", "writeback_pages", "background_pages", "limit_pages", "flushers", "held",
)  # fmt: skip
_OF_DISK: Final = ("ios", "sectors", "busy_ns", "queued", "write_wait_ns", "reads", "read_wait_ns")
Levels = dict[str, tuple[int, ...]]
"""By name.

* ``time_ns``: the time of the sample.
* ``dirty_pages`` and ``writeback_pages``, the thresholds ``background_pages`` and ``limit_pages``.
* ``flushers``: their number; ``held``: the threads of programs that the throttle holds back.
* ``NAME ios`` and ``NAME sectors`` of completed writes, ``NAME reads``, and ``NAME busy_ns`` until then.
* ``NAME write_wait_ns`` and ``NAME read_wait_ns``: the summed waits of completed requests until then.
* ``NAME queued``: the requests in the elevator and the driver.
"""


def level_names(disks: Iterable[str]) -> list[str]:
    """The names of all levels of a machine with these *disks*."""
    return [*_OF_ALL, *(f"{name} {what}" for name in disks for what in _OF_DISK)]


def disks_with_requests(levels: Levels, disks: Iterable[str]) -> list[str]:
    """Return those of *disks* that completed requests until the last sample; all of them if none did."""
    busy = [name for name in disks if levels[f"{name} ios"][-1] or levels[f"{name} reads"][-1]]
    return busy or list(disks)


class Sampler:
    """Samples a machine while it runs; what it does cannot be seen by the model."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._step_ns = FIRST_STEP_NS
        self._rows: list[tuple[int, ...]] = []
        machine.watch(lambda: self._step_ns, self._look)

    def _look(self) -> None:
        self._rows.append(self._row())
        if len(self._rows) == MOST:
            self._rows = self._rows[1::2]
            self._step_ns *= 2

    def _row(self) -> tuple[int, ...]:
        machine = self._machine
        dirty = machine.cache.dirty
        disks = [level for queue in machine.queues.values() for level in _of_disk(queue)]
        writeback, thresholds = machine.cache.dirty_and_writeback - dirty, machine.cache.thresholds()
        held = sum(thread.task.waits_for in _HELD for thread in machine.threads if thread.task.seated)
        of_all = dirty, writeback, thresholds.background, thresholds.limit, machine.flushers.alive, held
        return (machine.env.now, *of_all, *disks)

    def levels(self) -> Levels:
        """What was seen, by name."""
        names = level_names(self._machine.queues)
        columns = zip(*self._rows, strict=True) if self._rows else [() for _ in names]
        return dict(zip(names, columns, strict=True))


def _of_disk(queue: Queue) -> tuple[int, ...]:
    reads, writes = queue.stat.reads, queue.stat.writes
    queued = len(queue.elevator.waiting) + queue.stat.in_flight
    return (
        writes.ios, writes.sectors, queue.busy_ns, queued, writes.wait_ns, reads.ios, reads.wait_ns,
    )  # fmt: skip
