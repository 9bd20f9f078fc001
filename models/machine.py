"""Scenario -> running machine: the wiring and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar, cast

from pydantic import Field, model_validator

from models.block.queue import BlockCosts, BlockSubmitter, QueueSpec, RequestQueue
from models.buffered_write import BufferedWriter, WriteCosts
from models.filesystems.xfs import XfsFlusherCosts, XfsWriterCosts
from models.kernels import KernelSpec
from models.page_cache import MemorySpec, PageCache
from models.seams import BlockDevice, Filesystem, Signals, Site, Submitter
from models.variants import AnyDevice, AnyFilesystem, AnyWorkload, component_of
from models.writeback import DirtyLists, Work, WorkList, Writeback, WritebackCosts
from sim.cpu import Processors
from sim.engine import Environment
from sim.param import Count, Ns, Spec
from sim.stock import StockEnvironment, StockMutex, StockSpinLock
from sim.streams import Streams
from sim.sync import HandOff, Mutex, SpinLock
from sim.units import MS


class PathCosts(Spec):
    """Processor time of every code path, as measured on a reference machine."""

    write: WriteCosts
    writer: XfsWriterCosts
    flusher: XfsFlusherCosts
    writeback: WritebackCosts
    block: BlockCosts


class ProcessorSpec(Spec):
    """The processors and what code costs on them.

    ``writer_scale`` and ``flusher_scale``: how many times longer than on the reference machine the
    paths of system calls and those of writeback take; ``exit_time``: what a guest pays for leaving to
    its hypervisor, once to tell of a request and once to be told of its end (0 on bare metal);
    ``cv``: the coefficient of variation of a path's time; ``line_time`` and ``line_from_far``: a
    cache line from another core, uncontended, and when waiters fetch it too; ``wake_time``: from a
    wake-up to running.
    """

    count: Count
    slice_time: Ns
    writer_scale: float = Field(gt=0)
    flusher_scale: float = Field(gt=0)
    exit_time: Ns
    cv: float = Field(ge=0)
    line_time: Ns
    line_from_far: Ns
    wake_time: Ns
    paths: PathCosts


class MachineSpec(Spec):
    """Processors, memory, and the block device with its queue."""

    name: str
    processors: ProcessorSpec
    memory: MemorySpec
    queue: QueueSpec
    device: AnyDevice


class Scenario(Spec):
    """Everything that decides a run, but for the seed; ``sync_after``: a sync(2) follows the workload."""

    machine: MachineSpec
    kernel: KernelSpec
    filesystem: AnyFilesystem
    workload: AnyWorkload
    give_up: Ns
    sync_after: bool = False

    @model_validator(mode="after")
    def _check(self) -> Scenario:
        fs, workload = cast(Any, self.filesystem), cast(Any, self.workload)
        if fs.by_page != workload.by_page:
            raise ValueError(
                f"workload: {workload.kind} and a filesystem of kind {fs.kind} do not go together: the small files of"
                " fs_mark need one of kind xfs, the large ones of fio and dd one of kind xfs_extents or ext4"
            )
        capacity = getattr(self.machine.device, "capacity", None)
        if capacity is not None and fs.size > capacity:
            raise ValueError(f"filesystem: it is of {fs.size} B and the device holds {capacity} B; make it smaller")
        needed, room = fs.bytes_of(workload.total_files, workload.file_size), fs.room
        if needed > room:
            raise ValueError(
                f"workload: {workload.total_files} files of {workload.file_size} B do not fit: they need {needed} B"
                f" and the filesystem has {room} B; make fewer or smaller files, or a larger filesystem"
            )
        return self


SpecT = TypeVar("SpecT", bound=Spec)


class Primitives(NamedTuple):
    """Which waits a machine is built from: the light ones, or stock SimPy's."""

    environment: Callable[[], Any]
    spin_lock: Callable[..., Any]
    mutex: Callable[..., Any]


LIGHT = Primitives(Environment, SpinLock, Mutex)
STOCK = Primitives(StockEnvironment, StockSpinLock, StockMutex)
PRIMITIVES: dict[Literal["light", "stock"], Primitives] = {"light": LIGHT, "stock": STOCK}


def scaled(costs: SpecT, factor: float) -> SpecT:
    """*costs* with every time multiplied by *factor*, rounded to whole ns."""
    values = {}
    for name in type(costs).model_fields:
        value = getattr(costs, name)
        values[name] = scaled(value, factor) if isinstance(value, Spec) else round(value * factor)
    return type(costs).model_validate(values)


@dataclass(slots=True)
class Machine:
    """A machine that is ready to run its workload."""

    env: Environment
    cache: PageCache
    lists: DirtyLists
    filesystem: Filesystem
    queue: RequestQueue
    workload: Any
    signals: Signals
    locks: list[SpinLock]
    throttle: Any
    works: WorkList
    flusher: Submitter
    give_up_ns: int

    def run(self) -> None:
        """Run until the workload ends.

        Raises:
            GiveUp: it did not end by the scenario's ``give_up``.
        """
        self.env.run(self.give_up_ns)


def build(
    scenario: Scenario, seed: int, replication: int = 0, primitives: Primitives = LIGHT, signals: Signals | None = None
) -> Machine:
    """The machine of *scenario* with the dice of *seed* and *replication*."""
    machine, kernel, fs = scenario.machine, scenario.kernel, scenario.filesystem
    cpu, paths = machine.processors, machine.processors.paths
    env = primitives.environment()
    streams = Streams(seed, replication)
    signals = signals if signals is not None else Signals()
    hand_off = HandOff(cpu.line_time, cpu.line_from_far if kernel.spinlock == "ticket" else 0)
    block_costs = scaled(paths.block, cpu.flusher_scale)
    block_costs = block_costs.model_copy(
        update={
            "dispatch_ns": block_costs.dispatch_ns + cpu.exit_time,
            "complete_ns": block_costs.complete_ns + cpu.exit_time,
        }
    )

    locks: list[SpinLock] = []

    def spin_lock(name: str) -> SpinLock:
        locks.append(primitives.spin_lock(env, name, hand_off))
        return locks[-1]

    site = Site(
        env=env,
        processors=cpu.count,
        signals=signals,
        thread=lambda name: BlockSubmitter(env.task(name), queue, block_costs),
        spin_lock=spin_lock,
        mutex=lambda name: primitives.mutex(env, name, cpu.wake_time),
        variation=lambda name: streams.service_times(name, cpu.cv),
        variations=lambda name: streams.service_time_arrays(name, cpu.cv),
        dice=streams.generator,
    )
    cache = PageCache(machine.memory, kernel.dirty)
    processors = Processors(env, cpu.count, cpu.slice_time, streams.uniforms("interrupts"))
    queue = RequestQueue(
        site=site,
        spec=machine.queue,
        rules=kernel.plug,
        complete_ns=block_costs.complete_ns,
        device=_device(env, machine.device, "device"),
        processors=processors,
    )
    lists = DirtyLists(spin_lock("list_lock"))
    filesystem = component_of("filesystems", fs)(
        site=site,
        spec=fs,
        rules=getattr(kernel, cast(Any, fs).FAMILY),
        largest_file=cast(Any, scenario.workload).file_size,
        writer_costs=scaled(paths.writer, cpu.writer_scale),
        flusher_costs=scaled(paths.flusher, cpu.flusher_scale),
        cache=cache,
    )
    flusher_thread = site.thread("flusher")
    works = WorkList(env, flusher_thread.task)
    throttle = component_of("throttling", kernel.throttling)(
        env=env,
        spec=kernel.throttling,
        cache=cache,
        works=works,
        write_back=lambda submitter, pages: writeback.write_inodes(submitter, pages),
        processors=processors,
        signals=signals,
    )
    writeback: Writeback = Writeback(
        env=env,
        rules=kernel.writeback,
        costs=scaled(paths.writeback, cpu.flusher_scale),
        lists=lists,
        cache=cache,
        filesystem=filesystem,
        throttle=throttle,
        signals=signals,
    )
    component_of("flushers", kernel.flusher)(
        env=env, rules=kernel.writeback, lists=lists, works=works, writeback=writeback, submitter=flusher_thread
    )
    write_costs = scaled(paths.write, cpu.writer_scale)
    workload = component_of("workloads", scenario.workload)(
        site=site,
        spec=scenario.workload,
        program_scale=cpu.writer_scale,
        filesystem=filesystem,
        processors=processors,
        writer=lambda thread: BufferedWriter(
            env=env, submitter=thread, costs=write_costs, cache=cache, lists=lists, throttle=throttle
        ),
        on_end=(lambda: _sync(env, works, cache)) if scenario.sync_after else env.halt,
    )
    return Machine(
        env=env,
        cache=cache,
        lists=lists,
        filesystem=filesystem,
        queue=queue,
        workload=workload,
        signals=signals,
        locks=locks,
        throttle=throttle,
        works=works,
        flusher=flusher_thread,
        give_up_ns=scenario.give_up,
    )


def _sync(env: Environment, works: WorkList, cache: PageCache) -> None:
    """sync(2): have everything written back, and end the run then."""
    rank = env.next_rank()

    def look() -> None:
        if cache.nr_dirty:
            env.call_at(env.now + MS, rank, look)
        else:
            env.halt()

    works.queue(Work("start", cache.dirty))
    works.queue(Work("sync"))
    look()


def _device(env: Environment, spec: Spec, name: str) -> BlockDevice:
    """The component of *spec*, and of the devices that it is made of: its members, or the one behind it."""
    parts: dict[str, Any] = {}
    members, behind = getattr(spec, "members", None), getattr(spec, "behind", None)
    if members is not None:
        parts["members"] = [_device(env, member, f"{name}.{i}") for i, member in enumerate(members)]
    if behind is not None:
        parts["behind"] = _device(env, behind, f"{name}.behind")
    device: BlockDevice = component_of("devices", spec)(env=env, spec=spec, name=name, **parts)
    return device
