"""The machine of a scenario: the wiring of its parts, and its laws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import simpy

from wbsim.models.bio import BlockDevice, IoScheduler
from wbsim.models.block.gendisk import GenDisk
from wbsim.models.block.queue import Queue
from wbsim.models.block.spec import BlockCosts
from wbsim.models.block.thread import BlockThread
from wbsim.models.congestion import Congestion
from wbsim.models.devices.spec import DeviceSpec
from wbsim.models.factories import (
    DeviceFactory,
    FilesystemFactory,
    FlushersFactory,
    IoSchedulerFactory,
    ThrottleFactory,
)
from wbsim.models.interfaces import Flushers, Thread, Throttle
from wbsim.models.io_schedulers.spec import IoSchedulerSpec
from wbsim.models.kinds import component_of, kinds
from wbsim.models.md.array import Member
from wbsim.models.md.levels import new_array
from wbsim.models.page_cache.accounting import PageCache
from wbsim.models.parts import AnyLock, LockTimes, Parts, Supply
from wbsim.models.scenario import KernelSpec, ProcessorSpec, ProgramSpec, Scenario, same_directory
from wbsim.models.scheduler.cpu import Processors
from wbsim.models.step_lengths import StepLengths
from wbsim.models.syscalls.latency import Latencies
from wbsim.models.syscalls.process import Process, SystemCalls
from wbsim.models.syscalls.sync import Syncs
from wbsim.models.time_accounting import OTHER, life_of
from wbsim.models.tracepoints import Signals
from wbsim.models.vfs.inodes import BUCKET_BYTES, Kswapds, SuperblockInodes, inode_locks, shared_locks
from wbsim.models.vfs.superblock import MountedSuperblock
from wbsim.models.workloads.spec import Workload, WorkloadFactory, plain_path
from wbsim.models.writeback.loop import Writeback
from wbsim.models.writeback.wb import BackingDevice
from wbsim.sim import COMPILED
from wbsim.sim.build import engine
from wbsim.sim.engine import URGENT, Environment
from wbsim.sim.interrupts import between_events
from wbsim.sim.invariants import require
from wbsim.sim.param import Spec, unit_of
from wbsim.sim.stock_simpy import StockEnvironment, StockSpinLock
from wbsim.sim.streams import Draws, Streams
from wbsim.sim.sync import HandOff, RwSemaphoreRules, SpinLock
from wbsim.sim.units import PAGE_BYTES, PAGE_SECTORS, SECTOR_BYTES, S

SpecT = TypeVar("SpecT", bound=Spec)


class Primitives(NamedTuple):
    """The primitives of a machine: the light ones, or stock SimPy's."""

    environment: Callable[[], Any]
    spin_lock: Callable[..., Any]


WATCHING: Final = 1 << 59
"""The rank of observers: after all other events of an instant, and outside the range of task ranks."""
LIGHT = Primitives(Environment, SpinLock)
STOCK = Primitives(StockEnvironment, StockSpinLock)
PRIMITIVES: Final = {"simpy": STOCK, "light": LIGHT, "compiled": LIGHT}
"""The primitives by the name of an engine (`sim.build`)."""


@dataclass
class Machine:
    """A machine that is ready to run its programs; parts have their names of the scenario.

    ``starts`` has the start (ns) of each program that ends, as its user gave it.  ``begun_ns`` has the time
    at which each program began, and ``give_up_ns`` that at which the run fails.
    """

    env: Environment
    cache: PageCache
    signals: Signals
    processors: Processors
    threads: list[BlockThread]
    thread: Callable[[str], Thread]
    give_up_ns: int
    locks: list[AnyLock]
    throttle: Throttle
    flushers: Flushers
    calls: SystemCalls
    queues: dict[str, Queue] = field(default_factory=dict)
    arrays: dict[str, GenDisk] = field(default_factory=dict)
    mounts: dict[str, MountedSuperblock] = field(default_factory=dict)
    programs: dict[str, Workload] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)
    begun_ns: dict[str, int] = field(default_factory=dict)

    def run(self) -> None:
        """Run until the last program ends, with the sync(2) that may follow; then `check`.

        A program that is ``endless`` is not waited for.

        Raises:
            GiveUp: the run did not end by the scenario's ``give_up``.
            Standstill: the clock does not move any more.
            CallError: a call failed in a task that does not catch the error, such as a program's parent.
            LawBroken: see `check`.
        """
        with between_events(self.env):
            self.env.run(self.give_up_ns)
        self.check()

    def watch(self, every_ns: Callable[[], int], look: Callable[[], object]) -> None:
        """Call *look* repeatedly while tasks live; *every_ns* returns the time (ns) until the next call.

        The first call also comes after such a time.  Observers do not change the run.
        """
        env = self.env

        def again() -> None:
            if env.live_tasks:
                look()
                env.call_at(env.now + every_ns(), WATCHING, again)

        env.call_at(env.now + every_ns(), WATCHING, again)

    def process(self, name: str) -> Process:
        """Return a new process called *name*, whose system calls take their mean times.

        No other thread may have this name, by which results keep threads.  Code of a user makes these calls,
        and starts the process's task.
        """
        return self.calls.process(self.thread(name), Draws(np.ones), Latencies())

    def start_sync(self, on_end: Callable[[], object]) -> None:
        """Run sync(2) in a new thread, and call *on_end* at its end; return at once."""
        thread = self.thread("sync")
        thread.task.on_exit = on_end
        self.env.start(thread.task, self.calls.syncs.sync(thread))

    def sync(self) -> simpy.Event:
        """Run sync(2) for a process of ``env.simpy``; return the event that its end triggers.

        The process yields the event.
        """
        done = self.env.simpy.event()
        self.start_sync(done.succeed)
        return done

    def check(self) -> None:
        """Check that pages, requests, blocks, log bytes and processor time are conserved.

        Raises:
            LawBroken: the model broke a law; the message has the law and the values.
        """
        self.processors.check()
        for thread in self.threads:
            life = life_of(thread.task, thread.spent, self.env.now)
            lived, rest = sum(life.values()), life.get(OTHER, 0)
            require(
                thread.task.on_cpu or (lived == self.env.now and rest >= 0),
                f"{thread.task.name}: accounted time {lived} ns differs from elapsed time {self.env.now} ns;"
                f" {rest} ns have no cause",
            )
        for disk in (*self.queues.values(), *self.arrays.values()):
            disk.check()
        for sb in self.mounts.values():
            sb.filesystem.check()
            sb.inodes.check()
        flying, total = sum(sb.under_writeback for sb in self.mounts.values()), self.cache.writeback
        require(flying == total, f"pages under writeback: {total} are counted, the superblocks have {flying}")
        for bdi in dict.fromkeys(sb.bdi for sb in self.mounts.values()):
            pages, sectors = sum(wb.written_pages for wb in bdi.wbs), bdi.queue.stat.writes.sectors
            require(
                pages * PAGE_SECTORS <= sectors,
                f"{bdi.name}: {pages} pages became clean, but only {sectors} sectors were written",
            )
            for wb in bdi.wbs:
                wb.check()
                list_pages = sum(inode.dirty_pages for inode in (*wb.b_dirty, *wb.b_io, *wb.b_more_io))
                require(
                    self.flushers.in_progress(wb) or list_pages == wb.dirty,
                    f"{wb.name}: its flusher sleeps, {wb.dirty} pages are dirty, {list_pages} are listed",
                )


def build(
    scenario: Scenario,
    seed: int,
    replication: int = 0,
    primitives: Primitives | None = None,
    signals: Signals | None = None,
    lengths: StepLengths | None = None,
) -> Machine:
    """Return the machine of *scenario* with the random numbers of *seed* and *replication*.

    *primitives* are the environment and the spinlock.  *signals* are the tracepoints to which the machine
    emits.  The defaults are the primitives of the chosen engine, signals without observers, and the usual
    *lengths* of steps.  No time has passed yet.

    Raises:
        NoSpace: the files that exist at the start find no room.
    """
    primitives = primitives or PRIMITIVES[engine(COMPILED)]
    streams = Streams(seed, replication)
    return _Builder(scenario, streams, primitives, signals or Signals(), lengths or StepLengths()).machine


class _Builder:
    """Makes the parts in the order in which they need each other: one short method each."""

    def __init__(
        self,
        scenario: Scenario,
        streams: Streams,
        primitives: Primitives,
        signals: Signals,
        lengths: StepLengths,
    ) -> None:
        self._scenario = scenario
        self._kernel = scenario.kernel
        self._cpu = scenario.machine.processors
        self._env = primitives.environment()
        self._threads: list[BlockThread] = []
        self._cache = PageCache(scenario.machine.memory, self._kernel.dirty)
        self._processors = Processors(
            self._env, self._cpu.count, self._kernel.sched.rules(self._cpu.count),
            streams.uniforms("interrupts").next, self._cpu.node_cpus,
        )  # fmt: skip
        self._supply = Supply(
            self._env, self._cpu.count, lock_times(self._cpu, self._kernel), streams, self._cpu.cv,
            self._make_thread, Congestion(self._env, URGENT), signals, lengths, primitives.spin_lock,
            tick_ns=S // self._kernel.sched.hz,
        )  # fmt: skip
        if self._kernel.inodes.sb_list == "inode_lock":
            self._supply.inode_lock = Parts(self._supply).spin_lock("inode_lock")
        self._parts = Parts(self._supply)
        self._shared_locks = shared_locks(self._parts, self._kernel.inodes)
        self._make_disks()
        self._mounted_at: dict[str, MountedSuperblock] = {}
        self._superblocks = {
            name: self._mount(name, start_byte // PAGE_BYTES) for name, start_byte in scenario.first_bytes()
        }
        Kswapds(self._parts, self._cpu.nodes, self._cache, [sb.inodes for sb in self._superblocks.values()])
        self._throttle = self._make_throttle()
        self._flushers = self._make_flushers()
        self._calls = self._system_calls()
        self._programs_left = sum(not program.workload.endless for program in scenario.programs.values())
        self.machine = Machine(
            env=self._env, cache=self._cache, signals=signals, processors=self._processors,
            threads=self._threads, thread=self._parts.thread, give_up_ns=scenario.give_up,
            locks=self._supply.locks, throttle=self._throttle, flushers=self._flushers,
            calls=self._calls, queues=self._queues, mounts=self._superblocks,
            arrays={name: bdi.queue for name, bdi in self._bdis.items() if name not in self._queues},
        )  # fmt: skip
        self._lay_out_files()
        self._followers: dict[str, list[str]] = {}
        self._program_parts: dict[str, Parts] = {}
        for name, program in scenario.programs.items():
            self._start(name, program)

    def _lay_out_files(self) -> None:
        """Make the files that exist when the run begins."""
        for name, superblock in self._superblocks.items():
            for path, pages, extents in self._scenario.laid_out(name):
                superblock.lay_out(path, pages, extents)

    def _make_thread(self, name: str, seated: bool) -> BlockThread:
        task = self._processors.adopt(self._env.task(name), seated)
        self._threads.append(BlockThread(task, self._kernel.plug, self._supply.signals))
        return self._threads[-1]

    def _make_disks(self) -> None:
        """Make the queues of all disks, the arrays, and a bdi for each that a filesystem may lie on."""
        machine = self._scenario.machine
        self._queues: dict[str, Queue] = {}
        self._bdis: dict[str, BackingDevice] = {}
        for number, name in enumerate((*machine.disks, *machine.arrays)):
            # A rank for each disk: the order of their timers at one instant must not depend on the past.
            parts = Parts(self._supply, urgent=URGENT - 1 - number)
            disk: GenDisk
            if name in machine.disks:
                disk = self._queues[name] = self._queue(parts, name)
            else:
                disk = self._array(parts, name)
            if machine.array_of(name) is None:
                self._bdis[name] = BackingDevice(name, disk, parts)

    def _array(self, parts: Parts, name: str) -> GenDisk:
        """Return an array of disks, whose queues are there."""
        machine = self._scenario.machine
        spec, costs = machine.arrays[name], self._cpu.paths.md
        assert costs is not None, "the check of the machine wants costs of md"
        sizes = [machine.disks[member].device.capacity for member in spec.members]
        return new_array(
            parts=parts.for_part(name),
            name=name,
            spec=spec,
            rules=self._kernel.md,
            costs=scale(costs, self._cpu.flusher_scale),
            members=[
                Member(self._queues[member], None if size is None else size // SECTOR_BYTES)
                for member, size in zip(spec.members, sizes, strict=True)
            ],
        )

    def _queue(self, parts: Parts, name: str) -> Queue:
        """Return the queue of a disk, with its device."""
        drive = self._scenario.machine.disks[name]
        cpu = self._cpu
        costs: BlockCosts = scale(cpu.paths.block, cpu.flusher_scale)
        # A guest leaves to its hypervisor when it gives a request to the driver, and for its interrupt.
        costs = costs.model_copy(
            update={
                "dispatch_ns": costs.dispatch_ns + cpu.exit_time,
                "complete_ns": costs.complete_ns + cpu.exit_time,
            }
        )
        return Queue(
            parts=parts.for_part(name),
            name=name,
            spec=drive.queue,
            rules=self._kernel.plug,
            pool=self._kernel.requests,
            costs=costs,
            device=_device(parts, drive.device, name),
            processors=self._processors,
            volatile=drive.device.volatile,
            wbt=self._kernel.wbt and drive.queue.wbt,
            scheduler=self._io_scheduler(drive.queue.elevator),
        )

    def _io_scheduler(self, spec: IoSchedulerSpec) -> IoScheduler:
        """Return the scheduler of a queue, with the rules that the kernel has for it."""
        name = kinds("io_schedulers")[spec.scheduler].names[0]
        make: IoSchedulerFactory = component_of("io_schedulers", spec)
        return make(spec=spec, rules=self._kernel.schedulers.get(name))

    def _mount(self, name: str, first_block: int) -> MountedSuperblock:
        """Return a superblock with its filesystem."""
        mount, cpu = self._scenario.mounts[name], self._cpu
        kind, costs = mount.filesystem.kind, cpu.paths.filesystems[mount.filesystem.kind]
        bdi = self._bdis[mount.disk]
        bdi.groups = max(bdi.groups, mount.filesystem.writeback_groups)
        rules = self._kernel.inodes
        inodes = SuperblockInodes(
            bdi=bdi,
            locks=inode_locks(bdi.parts.for_part(name), rules, self._shared_locks, cpu.nodes, cpu.node_cpus),
            rules=rules,
            costs=scale(cpu.paths.inodes, cpu.writer_scale),
            cache=self._cache,
            hashed=mount.filesystem.hashed_inodes,
            buckets=max(1, self._scenario.machine.memory.memory // BUCKET_BYTES),
        )
        inodes.add_cached(mount.cached_inodes)
        is_root = partial(same_directory, root=self._scenario.root_of(name))
        rotates = self._scenario.machine.device_of(mount.disk).rotates
        parts = bdi.parts.for_part(name)
        sb = MountedSuperblock(
            self._env, name, bdi, first_block, inodes, mount.files, is_root=is_root,
            new_i_rwsem=parts.rw_semaphores("i_rwsem"), rotates=rotates,
        )  # fmt: skip
        make: FilesystemFactory = component_of("filesystems", mount.filesystem)
        sb.filesystem = make(
            parts=parts,
            sb=sb,
            spec=mount.filesystem,
            rules=self._kernel.filesystems[kind],
            writer_costs=scale(costs.writer, cpu.writer_scale),  # type: ignore[attr-defined]
            flusher_costs=scale(costs.flusher, cpu.flusher_scale, cpu.transaction_scale or 1.0),  # type: ignore[attr-defined]
            cache=self._cache,
        )
        self._mounted_at[plain_path(mount.at)] = sb
        return sb

    def _make_throttle(self) -> Throttle:
        make: ThrottleFactory = component_of("throttling", self._kernel.throttling)
        return make(
            env=self._env, spec=self._kernel.throttling, cache=self._cache, processors=self._cpu.count,
            signals=self._supply.signals,
        )  # fmt: skip

    def _make_flushers(self) -> Flushers:
        """Return the flushers; make the loop that they share with throttled writers, and all contexts."""
        self._writeback = writeback = Writeback(
            env=self._env,
            rules=self._kernel.writeback,
            costs=scale(self._cpu.paths.writeback, self._cpu.flusher_scale),
            cache=self._cache,
            throttle=self._throttle,
            signals=self._supply.signals,
        )
        make: FlushersFactory = component_of("flushers", self._kernel.flusher)
        flushers = make(
            parts=self._parts, spec=self._kernel.flusher, cache=self._cache, writeback=writeback,
            interval_ns=self._kernel.writeback.interval,
        )  # fmt: skip
        for bdi in self._bdis.values():
            flushers.register(bdi)
        self._throttle.start(self._cache.wbs, flushers, writeback.write_inodes, self._supply.congestion.wait)
        return flushers

    def _system_calls(self) -> SystemCalls:
        """Return the system calls of programs."""
        syncs = Syncs(
            env=self._env, superblocks=list(self._superblocks.values()), flushers=self._flushers,
            cache=self._cache, perform=self._writeback.perform, wakes=self._parts.wake_ups("fsync"),
        )  # fmt: skip
        costs = scale(self._cpu.paths.write, self._cpu.writer_scale)
        return SystemCalls(self._env, self._mount_of, costs, self._throttle, syncs, self._supply.tick_ns)

    def _start(self, name: str, program: ProgramSpec) -> None:
        """Build a program, which begins at its ``start``, or so long after another one has ended."""
        cpu = self._cpu
        make: WorkloadFactory = component_of("workloads", program.workload)
        parts = self._program_parts[name] = self._parts.for_part(name)
        if program.after is not None:
            self._followers.setdefault(program.after, []).append(name)
            parts.hold_back()
        self.machine.programs[name] = make(
            parts=parts,
            spec=program.workload,
            program_scale=cpu.writer_scale if cpu.program_scale is None else cpu.program_scale,
            start_ns=program.start,
            calls=self._calls,
            on_end=partial(self._end_program, name),
        )
        if program.after is None:
            self._begin(name)

    def _begin(self, name: str) -> None:
        """Let the program *name* begin, its ``start`` from now."""
        program, now = self._scenario.programs[name], self._env.now
        if not program.workload.endless:
            self.machine.starts[name] = program.start
        self.machine.begun_ns[name] = now + program.start
        self._program_parts[name].release()
        if program.memory:
            take = partial(self._cache.take, program.memory)
            self._env.call_at(now + program.start, self._parts.urgent, take)

    def _mount_of(self, path: str) -> MountedSuperblock:
        """Return the superblock of a plain *path*: its own, or that of its directory."""
        superblock = self._mounted_at.get(path)
        if superblock is None:
            directory = path.rpartition("/")[0]
            superblock = self._mounted_at.get(directory)
            if superblock is None:
                superblock = self._superblocks[self._scenario.mount_of(path)]
                self._mounted_at[directory] = superblock
        return superblock

    def _end_program(self, name: str) -> None:
        """Handle the end of the program *name*; after the last program, sync if wanted, and halt."""
        self._cache.take(-self._scenario.programs[name].memory)
        for follower in self._followers.get(name, ()):
            self._begin(follower)
        self._programs_left -= 1
        if self._programs_left:
            return
        if not self._scenario.sync_after:
            self._env.halt()
            return
        self.machine.start_sync(self._env.halt)


def scale(costs: SpecT, factor: float, of_transactions: float = 1.0) -> SpecT:
    """Return *costs* with every time multiplied by *factor*, rounded to whole ns.

    The times that the class of *costs* names in ``TRANSACTIONS`` are multiplied by *of_transactions*, too.

    >>> costs = BlockCosts(request_ns=400, insert_ns=100, dispatch_ns=0, complete_ns=51)
    >>> scale(costs, 1.5).complete_ns
    76
    """
    values: dict[str, Any] = {}
    transactions: frozenset[str] = getattr(type(costs), "TRANSACTIONS", frozenset())
    for name, field_info in type(costs).model_fields.items():
        value, multiplier = getattr(costs, name), factor * of_transactions if name in transactions else factor
        if isinstance(value, Spec):
            values[name] = scale(value, multiplier)
        elif value is not None:
            values[name] = round(value * multiplier) if unit_of(field_info) == "ns" else value
    return type(costs).model_validate(values)


def lock_times(cpu: ProcessorSpec, kernel: KernelSpec) -> LockTimes:
    """Return the times (ns) of locks on the processors *cpu*, and the rules of *kernel* for them."""
    return LockTimes(
        HandOff(cpu.line_time, cpu.line_from_far, kernel.spinlock == "ticket", cpu.node_cpus),
        RwSemaphoreRules(kernel.rwsem_steals, kernel.rwsem_spins, kernel.rwsem_spin, kernel.rwsem_hand_off),
        cpu.wake_time,
        cpu.waker_time,
        cpu.line_time,
        cpu.line_own,
        cpu.line_from_far if cpu.nodes > 1 else cpu.line_time,
    )


def _device(parts: Parts, spec: DeviceSpec, name: str) -> BlockDevice:
    """Return the component of *spec*, with the devices that it consists of."""
    arguments: dict[str, Any] = {"worker": parts.thread(f"{name}/worker")} if spec.has_worker else {}
    if spec.draws:
        arguments["random"] = parts.random(f"{name}/garbage")
    for part, part_spec in spec.parts().items():
        if isinstance(part_spec, tuple):
            arguments[part] = [_device(parts, member, f"{name}.{i}") for i, member in enumerate(part_spec)]
        else:
            arguments[part] = _device(parts, part_spec, f"{name}.{part}")
    parts.env.next_rank()
    make: DeviceFactory = component_of("devices", spec)
    device = make(env=parts.env, spec=spec, name=name, **arguments)
    parts.env.next_rank()
    return device
