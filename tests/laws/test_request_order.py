"""The order in which requests leave a queue: the promise of each scheduler, seen in the tracepoints alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.laws.test_any_scenario import EXAMPLES, PHASES
from tests.strategies import scenarios, step_lengths
from tests.waits import Clock
from wbsim.experiments.config.experiment import parse
from wbsim.models.bio import FLUSH, FLUSH_FUA, FUA
from wbsim.models.machine import build
from wbsim.models.step_lengths import StepLengths
from wbsim.models.tracepoints import Signals
from wbsim.sim.units import MS

_FLUSHES: Final = (FLUSH, FLUSH_FUA, FUA)
LOG_RECORD: Final = """
title = "a commit record passes by a write of the data"
[scenario]
machine.like = "loop-vm"
machine.processors.count = 4
kernel.like = "2.6.39"
kernel.dirty.dirty_bytes = "1 MiB"
kernel.dirty.dirty_background_bytes = "900 KiB"
kernel.writeback.interval = "7 ms"
kernel.writeback.expire = "0 ms"
sync_after = true
machine.disks.d0.like = "980-pro-1tb"
machine.disks.d0.queue.elevator = { scheduler = "cfq" }
machine.disks.d0.queue.nr_requests = 4
machine.disks.d0.queue.driver_depth = 128
mounts.m0 = { like = "loop-ext4", disk = "d0", at = "/m0", size = "4 GiB" }
mounts.m1 = { like = "loop-ext4", disk = "d0", at = "/m1", size = "4 GiB" }
mounts.m2 = { like = "loop-ext4", disk = "d0", at = "/m2", size = "4 GiB" }
programs.p0 = { command = "fs_mark -k -S3 -n 58 -s 65536 -L 2 -d /m1/0 -d /m1/1", start = "40 ms" }
programs.p1 = { command = "fallocate -n -l 64K /m2/shared", start = "3 ms" }
programs.p2 = { command = "dd if=/dev/zero of=/m0/p2x8 bs=64k count=21 conv=fsync", start = "3 ms" }
"""

FIFO_BATCH: Final = 3
"""The batch of deadline in each drawn queue."""


class Order:
    """The waiting requests of each queue, oldest first, and a check of each one that leaves.

    *schedulers* has the scheduler of each queue by its name.  ``clock`` is set before the run.
    """

    clock: Clock

    def __init__(self, signals: Signals, schedulers: Mapping[str, str]) -> None:
        self._schedulers = schedulers
        self._waiting: dict[str, dict[Any, int]] = {}
        self._heads: dict[tuple[str, bool], int] = {}
        self._overdue: dict[str, int] = {}
        self._sync_since: dict[str, int | None] = {}
        self._overtaken: dict[Any, int] = {}
        signals.block_rq_insert.observers.append(self._insert)
        signals.block_rq_merge.observers.append(self._merge)
        signals.block_rq_issue.observers.append(self._issue)

    def _insert(self, _: str, request: Any) -> None:
        self._waiting.setdefault(request.queue.name, {})[request] = self.clock.now

    def _merge(self, _: str, request: Any) -> None:
        self._waiting.get(request.queue.name, {}).pop(request, None)

    def _issue(self, _: str, request: Any) -> None:
        name = request.queue.name
        waiting = self._waiting.setdefault(name, {})
        if request not in waiting:
            assert not waiting or request.op in _FLUSHES, "only blk-flush passes by requests that wait"
            return
        match self._schedulers[name]:
            case "noop" | "none":
                assert request is next(iter(waiting))
            case "cfq":
                self._cfq(name, request, waiting)
            case _:
                self._deadline(name, request, waiting)
        del waiting[request]

    def _deadline(self, name: str, request: Any, waiting: dict[Any, int]) -> None:
        """A request is the next by sector, or the oldest where none is ahead or the oldest has expired.

        An expired write waits for the rest of a batch, two batches of reads, and a batch of an older one.
        """
        reads = request.op == "R"
        mine = [other for other in waiting if (other.op == "R") == reads]
        oldest, ahead = mine[0], self._ahead(name, reads, mine)
        expired = self.clock.now - oldest.started_ns >= (500 if reads else 5_000) * MS
        assert request is ahead or (request is oldest and (ahead is None or expired))
        writes = [other for other in waiting if other.op != "R"]
        late = (
            bool(writes) and self.clock.now - writes[0].started_ns >= 5_000 * MS and request is not writes[0]
        )
        self._overdue[name] = self._overdue.get(name, 0) + 1 if late else 0
        assert self._overdue[name] <= 4 * FIFO_BATCH
        self._heads[name, reads] = request.end_sector

    def _cfq(self, name: str, request: Any, waiting: dict[Any, int]) -> None:
        """Synchronous requests leave in order; the others have a slice of 16 requests after 100 ms."""
        sync, others = ([other for other in waiting if other.sync == kind] for kind in (True, False))
        if request.sync:
            assert request is sync[0]
            since = self._sync_since.get(name)
            since = self._sync_since[name] = self.clock.now if since is None else since
            if others:
                assert self.clock.now - max(since, waiting[others[0]]) < 100 * MS or since == self.clock.now
            waited_ns = self.clock.now - waiting[request]
            assert self._overtaken.pop(request, 0) <= 16 * (1 + waited_ns // (100 * MS))
            return
        self._sync_since[name] = None
        for other in sync:
            self._overtaken[other] = self._overtaken.get(other, 0) + 1
        ahead, oldest = self._ahead(name, False, others), others[0]
        lowest = min(others, key=lambda other: other.start_sector)
        expired = self.clock.now - oldest.started_ns >= 250 * MS
        assert request is ahead or (ahead is None and request is lowest) or (request is oldest and expired)
        self._heads[name, False] = request.end_sector

    def _ahead(self, name: str, kind: bool, requests: list[Any]) -> Any:
        """Return the first of *requests* by sector from where the last one of their kind ended."""
        head = self._heads.get((name, kind), 0)
        found = [request for request in requests if request.start_sector >= head]
        return min(found, key=lambda request: request.start_sector, default=None)


@settings(max_examples=EXAMPLES, phases=PHASES, deadline=None, suppress_health_check=list(HealthCheck))
@given(scenarios(), st.integers(1, 9), step_lengths())
@example(LOG_RECORD, 2, StepLengths(calls=2))
def test_each_scheduler_keeps_its_order_in_any_scenario(text: str, seed: int, lengths: StepLengths) -> None:
    """noop and none keep the order of arrival; deadline and CFQ keep the rules of `Order`."""
    (case,) = parse(text, "x.toml").cases
    signals = Signals()
    disks = case.scenario.machine.disks
    order = Order(signals, {name: drive.queue.elevator.scheduler for name, drive in disks.items()})
    machine = build(case.scenario, seed, signals=signals, lengths=lengths)
    order.clock = machine.env
    machine.run()
