"""An array over devices that record what they get, for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.harness import LAST, LIMITS, SlowDevice, io_scheduler, io_scheduler_spec
from wbsim.models.bio import READ, Bio
from wbsim.models.block.queue import Queue
from wbsim.models.block.spec import BlockCosts, QueueSpec
from wbsim.models.block.thread import BlockThread
from wbsim.models.catalogue.kernels import KERNELS
from wbsim.models.congestion import Congestion
from wbsim.models.interfaces import Thread
from wbsim.models.md.array import Array, Member
from wbsim.models.md.levels import new_array
from wbsim.models.md.spec import ArraySpec, MdCosts
from wbsim.models.parts import LockTimes, Parts, Supply
from wbsim.models.scheduler.cpu import Processors
from wbsim.models.scheduler.runqueue import SchedulerRules
from wbsim.models.tracepoints import Signals
from wbsim.sim.engine import URGENT, Environment, Steps
from wbsim.sim.streams import Streams
from wbsim.sim.sync import HandOff, RwSemaphoreRules
from wbsim.sim.units import KIB, MIB, SECTOR_BYTES, US

FREE = MdCosts.model_validate(dict.fromkeys(MdCosts.model_fields, 0))
CHUNK = 128
"""The sectors of a chunk."""


class Rig:
    """An array of *level* over *members* devices, each with a latency of 100 us; md itself takes no time.

    ``ends``: the start sectors of the completed bios, and ``times`` their ends (ns).
    """

    def __init__(
        self, level: Any, members: int = 4, *, kernel: str = "6.12", volatile: bool = False,
        costs: MdCosts = FREE, devices: Callable[[Environment, int], Any] | None = None,
        faulty: Sequence[int] = (), bitmap: bool = False, region: int = MIB, request_ns: int = 0, **keys: Any,
    ) -> None:  # fmt: skip
        self.env = Environment()
        self.env.most_at_once = 200_000
        make = devices or (lambda env, _: SlowDevice(env, 100 * US))
        self.devices: list[Any] = [make(self.env, number) for number in range(members)]
        self.threads: list[BlockThread] = []
        self.ends: list[int] = []
        self.times: list[int] = []
        self._signals = Signals()
        self._plug = KERNELS[kernel].plug
        times = LockTimes(HandOff(0, 0), RwSemaphoreRules(True, True, 10_500, 4_000_000), 0, 0, 0, 0, 0)
        congestion = Congestion(self.env, URGENT)
        self.parts = Parts(
            Supply(self.env, 1, times, Streams(1), 0.0, self._thread, congestion, self._signals)
        )
        names = tuple(f"sd{number}" for number in range(members))
        self.queues = [
            self._queue(name, device, volatile, request_ns)
            for name, device in zip(names, self.devices, strict=True)
        ]
        self.spec = ArraySpec(
            level=level, members=names, chunk=CHUNK * SECTOR_BYTES, bitmap_chunk=region if bitmap else 0,
            faulty=tuple(names[number] for number in faulty), **keys,
        )  # fmt: skip
        self.array: Array = new_array(
            self.parts, "md0", self.spec, KERNELS[kernel].md, costs,
            [Member(queue, None) for queue in self.queues],
        )  # fmt: skip

    def _thread(self, name: str, seated: bool) -> BlockThread:
        self.threads.append(BlockThread(self.env.task(name), self._plug, self._signals))
        return self.threads[-1]

    def _queue(self, name: str, device: Any, volatile: bool, request_ns: int) -> Queue:
        spec = QueueSpec(
            limits=LIMITS, elevator=io_scheduler_spec("noop"), nr_requests=256, driver_depth=256, wbt=False,
            interrupts="any",
        )  # fmt: skip
        return Queue(
            parts=self.parts, name=name, spec=spec, rules=self._plug, pool="tags",
            costs=BlockCosts(request_ns=request_ns, insert_ns=0, dispatch_ns=0, complete_ns=0), device=device,
            scheduler=io_scheduler("noop"), volatile=volatile,
            processors=Processors(self.env, 1, SchedulerRules(10**9), lambda: 0.0),
        )  # fmt: skip

    def bio(self, start_sector: int, sectors: int = 8, **keys: Any) -> Bio:
        """Return a bio for the array whose end is recorded."""

        def end(start: int) -> None:
            self.ends.append(start)
            self.times.append(self.env.now)

        return Bio(start_sector, sectors, queue=self.array, end_io=end, context=start_sector, **keys)

    def start(self, *bios: Bio, plugged: bool = True, gap_ns: int = 0) -> None:
        """Let a new thread submit *bios*, *gap_ns* apart, with a plug around them if *plugged*."""
        thread: Thread = self.parts.thread("writer")

        def steps() -> Steps:
            if plugged:
                thread.start_plug()
            for bio in bios:
                if (rest := thread.submit_bio(bio)) is not None:
                    yield from rest
                yield gap_ns
            if plugged:
                yield from thread.finish_plug()

        self.env.start(thread.task, steps())

    def start_at(self, when_ns: int, *bios: Bio) -> None:
        """Let a new thread submit *bios* at *when_ns*."""
        self.env.call_at(when_ns, LAST, lambda: self.start(*bios))

    def run(self, *bios: Bio, plugged: bool = True, gap_ns: int = 0, counts: bool = True) -> Rig:
        """Submit *bios*, run to the end, and check the laws; all bios must have ends if it *counts*."""
        count = len(self.ends)
        self.start(*bios, plugged=plugged, gap_ns=gap_ns)
        self.env.run()
        for disk in (*self.queues, self.array):
            disk.check()
        assert not counts or len(self.ends) >= count + len(bios), "a bio never ends"
        return self

    def run_one(self, start_sector: int) -> Rig:
        """Run with one bio of a page."""
        return self.run(self.bio(start_sector))

    def run_bio(self, start_sector: int, sectors: int) -> Rig:
        """Run with one bio."""
        return self.run(self.bio(start_sector, sectors))

    def submitters(self) -> set[str]:
        """Return the names of the threads that made requests."""
        return {thread.task.name for thread in self.threads if thread.spent.request}

    def pages(self, op: str) -> list[int]:
        """Return the pages that each member has read (``R``) or written (``W``, with FUA, too)."""
        return [
            sum(
                request.end_sector - request.start_sector
                for request in device.requests
                if (request.op == READ) == (op == READ)
            )
            // 8
            for device in self.devices
        ]


__all__ = ["CHUNK", "KIB", "Rig"]
