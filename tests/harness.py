"""Small scenarios and a watched block layer, for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, NoReturn, TypeVar

import numpy as np

from wbsim.models.bio import Bio, IoScheduler, Request, Write
from wbsim.models.block.elevator import Elevator
from wbsim.models.block.queue import Queue
from wbsim.models.block.spec import BlockCosts, QueueLimits, QueueSpec
from wbsim.models.block.thread import BlockThread
from wbsim.models.catalogue.filesystems import FILESYSTEMS
from wbsim.models.catalogue.kernels import KERNELS, PLUG_RULES
from wbsim.models.catalogue.machines import MACHINES
from wbsim.models.congestion import Congestion
from wbsim.models.interfaces import Caller, Thread
from wbsim.models.kinds import component_of, kinds
from wbsim.models.machine import LIGHT, Machine, Primitives, build
from wbsim.models.page_cache.accounting import PageCache
from wbsim.models.page_cache.spec import DirtyLimits, MemorySpec
from wbsim.models.parts import LockTimes, Parts, Supply
from wbsim.models.scenario import Scenario
from wbsim.models.scheduler.cpu import Processors
from wbsim.models.scheduler.runqueue import SchedulerRules
from wbsim.models.syscalls.latency import Latencies
from wbsim.models.syscalls.process import Process
from wbsim.models.time_accounting import Spent
from wbsim.models.tracepoints import Signals
from wbsim.models.vfs.inodes import InodeLocks, SuperblockInodes
from wbsim.models.vfs.spec import InodeCosts, WriteCosts
from wbsim.models.workloads.fs_mark import FsMarkSpec, parse_command
from wbsim.models.writeback.wb import WritebackContext
from wbsim.sim.engine import URGENT, Environment, Steps
from wbsim.sim.streams import Draws, Streams
from wbsim.sim.sync import HandOff, Line, Mutex, RwSemaphoreRules, SpinLock, WakeUps
from wbsim.sim.units import KIB, MIB

ValueT = TypeVar("ValueT")


def attributes_of(thing: object) -> list[str]:
    """Return the names of the public attributes of *thing*, whose class may be compiled."""
    return [name for name in dir(thing) if not name.startswith("_") and not callable(getattr(thing, name))]


def page_cache() -> PageCache:
    """Return the page cache of a memory of 64 MiB."""
    memory = MemorySpec(memory=64 * MIB, kernel_reserve=0, inode_slab_bytes=0)
    return PageCache(memory, DirtyLimits(dirty_background_ratio=10, dirty_ratio=20))


def context(env: Environment) -> WritebackContext:
    """Return a writeback context of a memory of 64 MiB; a hand-off of its list lock takes no time."""
    return WritebackContext("vda", SpinLock(env, "list_lock", HandOff(0, 0)), page_cache())


def io_scheduler_spec(name: str, **keys: Any) -> Any:
    """Return the spec of the I/O scheduler *name*; *keys* that it lacks are left out."""
    spec = kinds("io_schedulers")[name].spec
    return spec(scheduler=name, **({"fifo_batch": 16} | keys if "fifo_batch" in spec.model_fields else {}))


def io_scheduler(name: str, *, new: bool = True, **keys: Any) -> IoScheduler:
    """Return the I/O scheduler *name* by the *new* rules of its eras, or by the first ones."""
    spec = io_scheduler_spec(name, **keys)
    rules = dict.fromkeys(spec.Rules.model_fields, new)
    made: IoScheduler = component_of("io_schedulers", spec)(spec=spec, rules=spec.Rules(**rules))
    return made


def leave(of: Elevator, now_ns: int = 0) -> Request:
    """Return the request that leaves *of*; the device completes it at once."""
    request = of.next(now_ns)
    assert request is not None
    of.complete(request, now_ns)
    return request


def only(named: Mapping[str, ValueT]) -> ValueT:
    """Return the only value of *named*: the only disk, mount or program."""
    (value,) = named.values()
    return value


def one_of_each(
    machine: dict[str, Any],
    kernel: dict[str, Any],
    filesystem: dict[str, Any],
    workload: dict[str, Any],
    **others: Any,
) -> dict[str, Any]:
    """Return the inputs of a scenario with one disk, one mount at / and one program from the start."""
    (disk,) = machine["disks"]
    return {
        "machine": machine,
        "kernel": kernel,
        "mounts": {"mnt": {"disk": disk, "at": "/", "filesystem": filesystem}},
        "programs": {workload["kind"]: {"start": 0, "workload": workload}},
        "give_up": 10**12,
        **others,
    }


def change(inputs: dict[str, Any], path: str, value: Any) -> None:
    """Set the number at the dotted *path*, in the short form for one disk, mount and program."""
    ways = {
        "machine.device": ("machine", "disks", "*", "device"),
        "machine.queue": ("machine", "disks", "*", "queue"),
        "filesystem": ("mounts", "*", "filesystem"),
        "workload": ("programs", "*", "workload"),
    }
    for short, way in ways.items():
        if path == short or path.startswith(f"{short}."):
            path = ".".join(way) + path[len(short) :]
            break
    table = inputs
    *parents, last = path.split(".")
    for parent in parents:
        table = only(table) if parent == "*" else table[parent]
    table[last] = value


LIMITS = QueueLimits(max_sectors_bytes=512 * KIB, max_segments=128, max_segment_bytes=64 * KIB, nomerges=0)


FIO = "fio --bs=4k --create_on_open=1 --fallocate=none"


def loop_config(
    command: str, *, dirty_mib: int, kernel: str = "6.18", filesystem: str = "loop-xfs", more: str = ""
) -> str:
    """Return a configuration of the measured machine that runs *command*.

    The limit is *dirty_mib* MiB and the background threshold half of it.  *more* has further lines of the
    scenario.
    """
    return f"""\
title = "on the machine that was measured"
[scenario]
machine.like = "loop-vm"
kernel.like = "{kernel}"
kernel.dirty.dirty_bytes = "{dirty_mib} MiB"
kernel.dirty.dirty_background_bytes = "{dirty_mib // 2} MiB"
filesystem.like = "{filesystem}"
workload.command = "{command}"
{more}
"""


def small_scenario(
    *,
    patched: bool = False,
    processes: int = 4,
    files: int = 500,
    loops: int = 3,
    memory_mib: int = 16,
    changes: dict[str, Any] | None = None,
) -> Scenario:
    """Return P13's scenario with *memory_mib* MiB of memory; *changes* are inputs by dotted path."""
    command = f"fs_mark -D 10000 -S0 -n {files} -s 4096 -L {loops} -k" + "".join(
        f" -d {i}" for i in range(processes)
    )
    inputs = one_of_each(
        MACHINES["p13-vm"].inputs(),
        KERNELS["3.11-p13" if patched else "3.11"].inputs(),
        FILESYSTEMS["p13-xfs"].inputs(),
        {**parse_command(command), **FsMarkSpec.costs},
    )
    inputs["machine"]["memory"] |= {"memory": memory_mib * MIB, "kernel_reserve": 0}
    for path, value in (changes or {}).items():
        change(inputs, path, value)
    return Scenario.model_validate(inputs)


def run_small(
    seed: int = 1, primitives: Primitives = LIGHT, signals: Signals | None = None, **kwargs: Any
) -> Machine:
    """Build a small scenario, run it, and return its machine."""
    machine = build(small_scenario(**kwargs), seed, primitives=primitives, signals=signals)
    machine.run()
    return machine


class _Stop(Exception):
    """The time of `run_for` is over."""


def run_for(env: Environment, ns: int) -> None:
    """Run *env* for *ns*; later events stay on the agenda."""

    def stop() -> None:
        raise _Stop

    env.call_at(env.now + ns, LAST, stop)
    with suppress(_Stop):
        env.run()


LAST = 1 << 60
"""The rank of an event that comes after all others of its instant."""


class SlowDevice:
    """A device that completes each request after *latency_ns*, any number at once, and keeps the requests."""

    def __init__(self, env: Environment, latency_ns: int) -> None:
        self._env = env
        self.latency_ns = latency_ns
        self.rank = env.next_rank()
        self.ranks = frozenset([self.rank])
        self.requests: list[Any] = []
        self.times: list[int] = []

    def uses(self) -> dict[str, float]:
        return {}

    def submit(self, request: Write, done: Callable[[], None]) -> None:
        self.requests.append(request)
        self.times.append(self._env.now)
        self._env.call_at(self._env.now + self.latency_ns, self.rank, done)


class BlockLayer:
    """A request queue over a `SlowDevice` or *device*, with round costs.

    ``ended``: the contexts of the completed bios, which are their start sectors.
    """

    def __init__(
        self, *, era: str = "3.11", latency_ns: int = 10_000, nr_requests: int = 128, depth: int = 128,
        scheduler: Any = "noop", pool: Any = "request_list",
        device: Callable[[Environment], Any] | None = None, limits: QueueLimits = LIMITS,
        wake_ns: int = 1_000, costs: tuple[int, int, int] = (100, 10, 1_000), env: Environment | None = None,
        wbt: bool = False, volatile: bool = False, interrupts: Any = "any", cpus: int = 1,
    ) -> None:  # fmt: skip
        self.env = env or Environment()
        self.device: Any = SlowDevice(self.env, latency_ns) if device is None else device(self.env)
        self.ended: list[Any] = []
        self._signals = Signals()
        request_ns, insert_ns, dispatch_ns = costs
        of_block = BlockCosts(
            request_ns=request_ns, insert_ns=insert_ns, dispatch_ns=dispatch_ns, complete_ns=0
        )
        spec = QueueSpec(
            limits=limits,
            elevator=io_scheduler_spec(scheduler),
            nr_requests=nr_requests,
            driver_depth=depth,
            wbt=False,
            interrupts=interrupts,
        )
        self._rules = KERNELS[era].plug if era in KERNELS else PLUG_RULES[era]
        times = LockTimes(
            HandOff(100, 0), RwSemaphoreRules(True, True, 10_500, 4_000_000), wake_ns, 0, 100, 20, 100
        )
        self.supply = Supply(
            self.env, 1, times, Streams(1), 0.0, self._thread, Congestion(self.env, URGENT), self._signals
        )
        self.parts = Parts(self.supply)
        self.queue = Queue(
            parts=self.parts,
            name="sda",
            spec=spec,
            rules=self._rules,
            pool=pool,
            costs=of_block,
            device=self.device,
            scheduler=io_scheduler(scheduler),
            processors=Processors(self.env, cpus, SchedulerRules(10**9), lambda: 0.0),
            volatile=volatile or wbt,
            wbt=wbt,
        )

    def _thread(self, name: str, seated: bool) -> BlockThread:
        return BlockThread(self.env.task(name), self._rules, self._signals)

    def bio(self, start_sector: int, sectors: int = 8) -> Bio:
        """Return a write whose end is recorded in `ended`."""
        return Bio(start_sector, sectors, queue=self.queue, end_io=self.ended.append, context=start_sector)

    def run(self, *bodies: Callable[[Thread], Steps]) -> None:
        """Run each body in a separate thread to the end, and check that all requests are freed."""
        for body in bodies:
            thread = self.parts.thread("writer")
            self.env.start(thread.task, body(thread))
        self.env.run()
        assert self.env.live_tasks == 0, "a thread never finished"
        self.queue.check()
        assert self.queue.pool(False).count == self.queue.pool(True).count == 0, "a request was never freed"

    def submit(self, thread: Thread, bio: Bio) -> Steps:
        """submit_bio; use: `yield from`."""
        if (rest := thread.submit_bio(bio)) is not None:
            yield from rest

    @property
    def sizes(self) -> list[int]:
        """Return the sectors of each request at the device, in order."""
        return [request.sectors for request in self.device.requests]


def no_lock() -> NoReturn:
    """Stand for the maker of locks of files that no two processes open."""
    raise AssertionError("no two processes have a file open")


def caller(thread: Any, *, lead_ns: int = 0, factor: float = 1.0, then_ns: int = 0) -> Caller:
    """Return *thread* in a system call, with the work around the call; see `Caller`."""
    made = Caller(thread)
    made.lead_ns, made.factor, made.then_ns = lead_ns, factor, then_ns
    return made


def process(
    env: Environment, throttle: Any, costs: WriteCosts, factor: float = 1.0, syncs: Any = None
) -> Process:
    """Return a process that writes; each of its factors is *factor*."""
    thread: Any = SimpleNamespace(task=env.task("writer"), spent=Spent())
    unused: Any = None
    return Process(
        env=env, thread=thread, mount_of=unused, costs=costs, throttle=throttle, syncs=syncs,
        factors=Draws(lambda count: np.full(count, factor)), latencies=Latencies(),
    )  # fmt: skip


def inodes_of(
    env: Environment, bdi: Any, cache: Any, add_ns: int = 0, changes: Mapping[str, Any] | None = None
) -> SuperblockInodes:
    """Return the inodes of one superblock of 3.11, with *changes* of its rules.

    Only the addition of an inode takes time, *add_ns*; cache lines take none.
    """
    rules = KERNELS["3.11"].inodes.model_copy(update=dict(changes or {}))
    costs = InodeCosts.model_validate(dict.fromkeys(InodeCosts.model_fields, 0) | {"add_ns": add_ns})
    lists, lrus, hashes = (
        Line(SpinLock(env, name, HandOff(0, 0)), HandOff(0, 0), 0)
        for name in ("s_inode_list_lock", "s_inode_lru_lock", "inode_hash_lock")
    )
    sync = Mutex(env, "s_sync_lock", WakeUps(0)) if rules.sync_mutex else None
    locks = InodeLocks([lists], [lrus], [hashes], sync, 1)
    return SuperblockInodes(
        bdi=bdi, locks=locks, rules=rules, costs=costs, cache=cache, hashed=True, buckets=1
    )  # fmt: skip
