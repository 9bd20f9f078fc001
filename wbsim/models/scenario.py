"""The description of a run: a machine with disks, a kernel, mounts, and programs with their starts."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from wbsim.models.block.spec import BlockCosts, PlugRules, QueueSpec
from wbsim.models.devices.spec import AnyDevice, DeviceSpec
from wbsim.models.filesystems.spec import AnyFilesystem, CostsOfFilesystems, RulesOfFilesystems
from wbsim.models.flushers.spec import AnyFlusher
from wbsim.models.io_schedulers.releases import refusal
from wbsim.models.io_schedulers.spec import RulesOfIoSchedulers
from wbsim.models.md.spec import ArrayFacts, ArraySpec, MdCosts, MdRules, array_facts
from wbsim.models.page_cache.spec import DirtyLimits, MemorySpec
from wbsim.models.scheduler.spec import SchedulerSpec
from wbsim.models.throttling.spec import AnyThrottling
from wbsim.models.vfs.spec import InodeCosts, InodeRules, WriteCosts
from wbsim.models.workloads.spec import AnyWorkload, plain_path
from wbsim.models.writeback.spec import WritebackCosts, WritebackRules
from wbsim.sim.param import (
    BadValue,
    Bytes,
    BytesOrNone,
    Count,
    CountOrNone,
    Flag,
    Interval,
    Name,
    Named,
    Ns,
    Real,
    Spec,
    Threads,
)
from wbsim.sim.units import MIB, PAGE_BYTES, S

Moment = Annotated[Ns, Field(le=S)]
"""The time of one step of the hardware; at most a second."""


class PathCosts(Spec):
    """Processor time of every code path on the reference machine; filesystems by kind.

    * ``md``: the costs of arrays of disks; a machine without an array needs none.
    """

    write: WriteCosts
    inodes: InodeCosts
    filesystems: CostsOfFilesystems
    writeback: WritebackCosts
    block: BlockCosts
    md: MdCosts | None = None

    @model_validator(mode="after")
    def _check(self) -> PathCosts:
        for path, value, unit, _ in list(self.numbers()):
            if unit == "ns" and value > S:
                raise BadValue(
                    f"{value} ns is more than a second; give at most {S} ns for a step of a path",
                    *path.split("."),
                )
        return self


_LEAST_CV: Final = 1e-6
"""The smallest usable cv: below it, the shape 1 / cv^2 of the gamma distribution is too large."""


class ProcessorSpec(Spec):
    """The processors, and the costs of code on them.

    No time of a code path is longer than a second.

    * ``count``: the number of processors.
    * ``nodes``: the number of NUMA nodes, to which the processors belong in blocks; at most ``count``.
    * ``writer_scale``: the factor on the reference machine's times for the paths of system calls.
    * ``flusher_scale``: the factor on the reference machine's times for the paths of writeback.
    * ``transaction_scale``: a further factor for the transactions of writeback, which give extents their
      blocks and convert them; without it, 1.
    * ``program_scale``: the factor for a program's own work and its other system calls; without it,
      ``writer_scale``.
    * ``exit_time``: the time in which a guest leaves to its hypervisor for a request, and again for its end;
      0 on bare metal.
    * ``cv``: the coefficient of variation of a path's time; 0, or 1e-06 and more.
    * ``line_own``: the time to write a cache line that the processor itself wrote last.
    * ``line_time``: the time to write a cache line that another processor of its node wrote last.
    * ``line_from_far``: the time to write a cache line that a processor of another node wrote last.
    * ``wake_time``: the time from a wake-up until the task runs on an idle processor, in the median.
    * ``waker_time``: the time that this wake-up takes the waker.
    """

    count: Threads
    nodes: Threads
    writer_scale: Real = Field(ge=1e-6, le=1e6)
    flusher_scale: Real = Field(ge=1e-6, le=1e6)
    transaction_scale: Real | None = Field(default=None, ge=1e-6, le=1e6)
    program_scale: Real | None = Field(default=None, ge=1e-6, le=1e6)
    exit_time: Moment
    cv: Real = Field(ge=0, le=10)
    line_own: Moment
    line_time: Moment
    line_from_far: Moment
    wake_time: Moment
    waker_time: Moment
    paths: PathCosts

    @model_validator(mode="after")
    def _check(self) -> ProcessorSpec:
        if self.nodes > self.count:
            raise BadValue(
                f"{self.nodes} nodes are more than the {self.count} processors; give fewer nodes", "nodes"
            )
        if 0 < self.cv < _LEAST_CV:
            raise BadValue(f"{self.cv} is too small; give 0, or at least {_LEAST_CV}", "cv")
        return self

    @property
    def node_cpus(self) -> int:
        """The processors of a node, ``count`` / ``nodes`` rounded up; the last nodes may have fewer."""
        return -(-self.count // self.nodes)


class DriveSpec(Spec):
    """A disk of the machine: its queue, and the device behind the queue."""

    queue: QueueSpec
    device: AnyDevice

    @model_validator(mode="after")
    def _check(self) -> DriveSpec:
        cache, volatile = self.queue.write_cache, self.device.volatile
        if cache == "write through" and volatile:
            raise BadValue(
                "write through says that a completed write survives a power cut, but the device has a"
                f" volatile cache; leave it out, or give {' = '.join(self.device.made_safe)} in the device",
                "queue", "write_cache",
            )  # fmt: skip
        if cache == "write back" and not volatile:
            raise BadValue(
                "write back says that a power cut loses completed writes, but the device has no volatile"
                " cache, so it gets no flush; leave it out, or make the device volatile",
                "queue", "write_cache",
            )  # fmt: skip
        return self


class MachineSpec(Spec):
    """Processors, memory, disks by name, and arrays (md) of them.

    * ``name``: the name of the machine; no result depends on it.
    """

    name: Name
    processors: ProcessorSpec
    memory: MemorySpec
    disks: Named[DriveSpec]
    arrays: Named[ArraySpec] = Named({})

    @property
    def mountable(self) -> list[str]:
        """The names of the disks and arrays that a filesystem may lie on: a member of an array may not."""
        return [*(disk for disk in self.disks if self.array_of(disk) is None), *self.arrays]

    def array_of(self, disk: str) -> str | None:
        """Return the name of the array of which *disk* is a member; None: it is no member."""
        return next((name for name, array in self.arrays.items() if disk in array.members), None)

    def device_of(self, name: str) -> DeviceSpec | ArrayFacts:
        """Return the device spec of the disk *name*, or the `ArrayFacts` of the array *name*."""
        if name in self.disks:
            return self.disks[name].device
        array = self.arrays[name]
        return array_facts(array, [self.disks[member].device for member in array.members])

    @model_validator(mode="after")
    def _check(self) -> MachineSpec:
        for name, array in self.arrays.items():
            place = "arrays", name
            if name in self.disks:
                raise BadValue("is the name of a disk, too; choose another name", *place)
            for member in array.members:
                if member not in self.disks:
                    choices = ", ".join(self.disks)
                    message = f"the machine has no disk {member!r}; use some of {choices}"
                    raise BadValue(message, *place, "members")
                owner = self.array_of(member)
                if owner != name:
                    message = f"{member} is a member of {owner}, too; name it in one array"
                    raise BadValue(message, *place, "members")
            facts = self.device_of(name)
            if facts.capacity is not None and facts.capacity < MIB:
                raise BadValue(f"its members leave it {facts.capacity} B; give larger disks", *place)
        if self.arrays and self.processors.paths.md is None:
            raise BadValue("has no costs of md, which arrays need; give them", "processors", "paths", "md")
        return self


class KernelSpec(Spec):
    """The decisions of a kernel version, without machine and configuration; filesystems by kind.

    * ``name``: the name of the kernel; if it is a release, a disk may only have an I/O scheduler of this
      release.
    * ``spinlock``: the kind of spinlock.  The waiters of a ``ticket`` lock all spin on one cache line, those
      of a ``queued`` lock each on a separate line.
    * ``rwsem_steals``: a writer takes a free rwsem before tasks that sleep for it (3.9 and later).
    * ``rwsem_spins``: a writer spins while the writer that owns the rwsem runs (3.16 and later).
    * ``rwsem_spin``: the time for which a writer spins while readers own the rwsem (5.3 and later); 0: it
      sleeps.
    * ``rwsem_hand_off``: a writer that has slept for this time gets the rwsem next (5.3 and later); 0: never.
    * ``requests``: the source of a request: the legacy path's request_list, or blk-mq's tags.
    * ``wbt``: the kernel has writeback throttling (CONFIG_BLK_WBT_MQ).
    """

    name: Name
    spinlock: Literal["ticket", "queued"]
    rwsem_steals: Flag
    rwsem_spins: Flag
    rwsem_spin: Ns
    rwsem_hand_off: Ns
    sched: SchedulerSpec
    requests: Literal["request_list", "tags"]
    wbt: Flag
    inodes: InodeRules
    plug: PlugRules
    writeback: WritebackRules
    flusher: AnyFlusher
    throttling: AnyThrottling
    dirty: DirtyLimits
    filesystems: RulesOfFilesystems
    schedulers: RulesOfIoSchedulers
    md: MdRules

    @model_validator(mode="after")
    def _check(self) -> KernelSpec:
        if self.throttling.needs_nr_to_write and self.writeback.nr_to_write is None:
            raise BadValue(
                f"is missing: with throttling of kind {self.throttling.kind} writers write back this number"
                " of pages at a time; give a number, such as 1024", "writeback", "nr_to_write",
            )  # fmt: skip
        return self


def same_directory(path: str, root: str) -> bool:
    """Return whether *path* is the directory *root*; a relative *path* begins at ``/``.

    *root* is an absolute plain path.

    >>> same_directory("/data/./", "/data"), same_directory("/data/a", "/data"), same_directory(".", "/")
    (True, False, True)
    """
    return _from_root(path) == root


def _from_root(path: str) -> str:
    """Return *path* as an absolute plain path.

    >>> _from_root("data/./f")
    '/data/f'
    """
    return posixpath.normpath("/" + path.lstrip("/"))


class FileSpec(Spec):
    """An entry of the list ``contents``: a file with data that a mount has at the start, all of it on disk.

    * ``path``: the path of the file; a relative path begins at the mount point.
    * ``size``: the size of the file; whole pages of 4 KiB.
    * ``extents``: the number of extents, of equal length; they do not touch each other on disk.  With 1, the
      file lies where fallocate(2) would put it, so ext4 may need another extent at the end of a group.
    """

    path: Name
    size: Bytes
    extents: Count = 1

    @model_validator(mode="after")
    def _check(self) -> FileSpec:
        if self.size % PAGE_BYTES:
            raise BadValue(f"{self.size} B are not whole pages; give a multiple of {PAGE_BYTES} B", "size")
        if self.extents > max(self.size // PAGE_BYTES, 1):
            raise BadValue(
                f"{self.extents} extents are more than the {self.size // PAGE_BYTES} pages; give fewer",
                "extents",
            )
        return self


class MountSpec(Spec):
    """A filesystem on a disk of the machine, mounted at a path.

    Several filesystems on one disk lie behind each other.

    * ``disk``: the name of the disk.
    * ``at``: the absolute path of the mount point.  A single mount at ``/`` stands for one at any place.
      If all paths begin with ``/data``, it is mounted there.
    * ``files``: the number of empty files at the start, which are dealt to the programs that read or remove
      them.
    * ``contents``: the files with data at the start, which programs overwrite, append to, rename or remove.
    * ``cached_inodes``: the number of clean inodes in the cache at the start.
    """

    disk: str
    at: str
    files: CountOrNone = 0
    contents: tuple[FileSpec, ...] = ()
    cached_inodes: CountOrNone = 0
    filesystem: AnyFilesystem

    @model_validator(mode="after")
    def _check(self) -> MountSpec:
        plain = self.at.startswith("/") and self.at.isprintable() and self.at == posixpath.normpath(self.at)
        if not plain:
            raise BadValue(f"is {self.at!r}; give an absolute path, such as /srv/data", "filesystem", "at")
        return self

    def holds(self, path: str) -> bool:
        """Return whether *path* is the mount point or lies below; even a relative path is below ``/``."""
        mount_point = PurePosixPath(self.at)
        return mount_point == PurePosixPath("/") or PurePosixPath(plain_path(path)).is_relative_to(
            mount_point
        )


class ProgramSpec(Spec):
    """A program of a run.

    * ``start``: the time at which the program begins or, with ``after``, by which it begins later.
    * ``after``: the name of the program at whose end this program may begin.
    * ``memory``: the anonymous memory of the program until it ends; dirty pages cannot use it.
    """

    start: Ns
    after: str | None = None
    memory: BytesOrNone = 0
    workload: AnyWorkload


class Scenario(Spec):
    """Everything that decides a run, except the seed.

    * ``give_up``: the simulated time at which a run that has not ended fails.
    * ``sync_after``: a sync(2) follows the last program.
    """

    machine: MachineSpec
    kernel: KernelSpec
    mounts: Named[MountSpec]
    programs: Named[ProgramSpec]
    give_up: Interval
    sync_after: Flag = False

    def mount_of(self, path: str) -> str:
        """Return the name of the mount of *path*: the deepest mount that holds *path*.

        Raises:
            ValueError: *path* lies outside every mount.
        """
        candidates = [name for name, mount in self.mounts.items() if mount.holds(path)]
        if not candidates:
            places = ", ".join(f"{mount.at} ({name})" for name, mount in self.mounts.items())
            raise ValueError(f"the path {path!r} is outside every mount; give a path below one of {places}")
        return max(candidates, key=lambda name: len(PurePosixPath(self.mounts[name].at).parts))

    def root_of(self, name: str) -> str:
        """Return the path of the mount *name*'s own directory: its mount point.

        A single mount at ``/`` stands for one at any place.  Its mount point is then the first part of all
        the programs' paths, if they share it: ``/data`` of ``/data/f``.
        """
        mount_point = self.mounts[name].at
        if mount_point != "/" or len(self.mounts) > 1:
            return mount_point
        paths = {path for program in self.programs.values() for path in program.workload.directories}
        tops = {_from_root(path).split("/")[1] if path.startswith("/") else "" for path in paths}
        return f"/{tops.pop()}" if len(tops) == 1 else mount_point

    def laid_out(self, name: str) -> Iterator[tuple[str, int, int]]:
        """Yield the path, pages and extents of each file that the mount *name* has under a path at the start.

        These are the files of ``contents``, and those that programs overwrite, in one extent.  A file that
        several of them name is there once, in its largest size.  The empty ``files`` have no paths.
        """
        root = self.root_of(name)
        contents = {plain_path(posixpath.join(root, file.path)): file for file in self.mounts[name].contents}
        sizes = {path: file.size for path, file in contents.items()}
        for program in self.programs.values():
            for path, size in program.workload.overwrites():
                if self.mount_of(path) == name:
                    sizes[path] = max(sizes.get(path, 0), size)
        for path, size in sizes.items():
            yield path, -(-size // PAGE_BYTES), contents[path].extents if path in contents else 1

    def first_bytes(self) -> Iterator[tuple[str, int]]:
        """Yield the name of each mount, and where on its disk its filesystem begins (bytes from 0)."""
        ends: dict[str, int] = {}
        for name, mount in self.mounts.items():
            yield name, ends.get(mount.disk, 0)
            ends[mount.disk] = ends.get(mount.disk, 0) + mount.filesystem.size

    @model_validator(mode="after")
    def _check(self) -> Scenario:
        if not self.mounts or not self.programs:
            raise ValueError("a scenario needs a mount and a program; give at least one of each")
        if all(program.workload.endless for program in self.programs.values()):
            raise BadValue("all programs run without end; give at least one that ends", "programs")
        self._check_order()
        for name, mount in self.mounts.items():
            if mount.disk not in self.machine.mountable:
                choices, array = ", ".join(self.machine.mountable), self.machine.array_of(mount.disk)
                message = f"the machine has no disk {mount.disk!r}; use one of {choices}"
                if array is not None:
                    message = f"{mount.disk} is a member of {array}; mount {array} instead"
                raise BadValue(message, "mounts", name, "filesystem", "disk")
            earlier = list(self.mounts)[: list(self.mounts).index(name)]
            if any(self.mounts[sibling].at == mount.at for sibling in earlier):
                message = f"two filesystems are mounted at {mount.at}; give each mount another path"
                raise BadValue(message, "mounts", name, "filesystem", "at")
            kind = mount.filesystem.kind
            for place, owner in (
                ("kernel", self.kernel),
                ("machine.processors.paths", self.machine.processors.paths),
            ):
                if kind not in owner.filesystems:
                    raise BadValue(
                        f"has no entry for {kind}; give {place}.filesystems.{kind}",
                        *place.split("."), "filesystems",
                    )  # fmt: skip
        program_bytes = sum(program.memory for program in self.programs.values())
        file_bytes = self.machine.memory.memory - self.machine.memory.kernel_reserve - program_bytes
        if file_bytes < MIB:
            most = max(self.programs, key=lambda name: self.programs[name].memory)
            raise BadValue(
                f"the programs take {program_bytes} B of memory, which leaves {file_bytes} B to files;"
                " give the machine more memory or the programs less", "programs", most, "memory",
            )  # fmt: skip
        self._check_disks()
        self._check_contents()
        self._check_files()
        return self

    def _check_order(self) -> None:
        """Check that each program that begins after another one does begin."""
        for name, program in self.programs.items():
            earlier, chain = program.after, {name}
            place = "programs", name, "after"
            if earlier == name:
                raise BadValue("the program would wait for itself; leave it out", *place)
            while earlier is not None:
                if earlier not in self.programs:
                    choices = ", ".join(other for other in self.programs if other != name)
                    remedy = f"use one of {choices}" if choices else "leave it out, or name the programs"
                    raise BadValue(f"there is no program {earlier!r}; {remedy}", *place)
                if self.programs[earlier].workload.endless:
                    raise BadValue(f"programs.{earlier} never ends; name a program that ends", *place)
                if earlier in chain:
                    raise BadValue("the programs wait for each other; let one of them begin", *place)
                chain.add(earlier)
                earlier = self.programs[earlier].after

    def _check_reads(self, program: str, workload: AnyWorkload) -> None:
        """Check that the mounts of *workload* have the files, and bulkstat if the workload needs it."""
        for directory in workload.directories:
            name = self._mount_for(program, directory)
            mount = self.mounts[name]
            if not mount.files:
                message = f"programs.{program} needs files on this mount, which has none; give files"
                raise BadValue(message, "mounts", name)
            if workload.needs_bulkstat and not mount.filesystem.has_bulkstat:
                message = f"{mount.filesystem.kind} has no bulkstat; use an XFS, or the program find"
                raise BadValue(message, *_command_of(program))

    def _mount_for(self, program: str, directory: str) -> str:
        """Return the mount of a *directory* of *program*.

        Raises:
            BadValue: *directory* lies outside every mount.
        """
        try:
            return self.mount_of(directory)
        except ValueError as error:
            raise BadValue(str(error), *_command_of(program)) from None

    def _check_disks(self) -> None:
        for disk, drive in self.machine.disks.items():
            if (message := refusal(drive.queue.elevator.scheduler, self.kernel.name)) is not None:
                raise BadValue(message, "machine", "disks", disk, "queue", "elevator", "scheduler")
        for name, array in self.machine.arrays.items():
            if array.group_thread_cnt and not self.kernel.md.group_threads:
                message = f"{self.kernel.name} has no worker threads of md; leave it out"
                raise BadValue(message, "machine", "arrays", name, "group_thread_cnt")
        for disk in self.machine.mountable:
            demand = sum(mount.filesystem.size for mount in self.mounts.values() if mount.disk == disk)
            capacity = self.machine.device_of(disk).capacity
            if capacity is not None and demand > capacity:
                *_, last = (name for name, mount in self.mounts.items() if mount.disk == disk)
                raise BadValue(
                    f"the filesystems on {disk} need {demand} B, and the device has {capacity} B;"
                    " make this one smaller",
                    "mounts", last, "filesystem", "size",
                )  # fmt: skip

    def _check_contents(self) -> None:
        """Check that the files of each mount have different paths on it."""
        for name, mount in self.mounts.items():
            paths = [plain_path(posixpath.join(self.root_of(name), file.path)) for file in mount.contents]
            for number, path in enumerate(paths):
                place = "mounts", name, "contents", str(number), "path"
                if path in paths[:number]:
                    raise BadValue(f"two files have the path {path}; give each another one", *place)
                if not mount.holds(path) or self.mount_of(path) != name:
                    raise BadValue(f"{path} is not on this mount; give a path below {mount.at}", *place)

    def _check_files(self) -> None:
        """Check that the mounts have the files that programs read, and room for all that exists at the start.

        Whether the files that programs make find room is for the run to show.
        """
        demand = {name: mount.filesystem.bytes_of(mount.files, 0) for name, mount in self.mounts.items()}
        files_of = {name: mount.files for name, mount in self.mounts.items()}
        most: dict[str, tuple[int, str]] = {}
        for program, spec in self.programs.items():
            if spec.workload.reads_files:
                self._check_reads(program, spec.workload)
            for directory, files, size in spec.workload.makes():
                name = self._mount_for(program, directory)
                needs = self.mounts[name].filesystem.bytes_of(files, size)
                files_of[name] += files + (not same_directory(directory, self.root_of(name)))
                most[name] = max(most.get(name, (0, program)), (needs, program))
        for name, count in files_of.items():
            most_files = self.mounts[name].filesystem.most_files
            if most_files is not None and count > most_files:
                place = (
                    _command_of(most[name][1]) if name in most else ("mounts", name, "filesystem", "files")
                )
                raise BadValue(
                    f"{count} files and directories need an inode each, and {name} has {most_files} inodes;"
                    " make fewer files, give more inodes_per_group, or a larger filesystem", *place,
                )  # fmt: skip
        for name, size in demand.items():
            filesystem = self.mounts[name].filesystem
            contents_bytes = sum(
                filesystem.bytes_of(1, pages * PAGE_BYTES) for _, pages, _ in self.laid_out(name)
            )
            if size + contents_bytes > filesystem.room:
                place = ("contents",) if contents_bytes > size else ("filesystem", "files")
                raise BadValue(
                    f"the files that exist at the start need {size + contents_bytes} B, and the filesystem"
                    f" has {filesystem.room} B; give fewer or smaller files",
                    "mounts", name, *place,
                )  # fmt: skip


def _command_of(program: str) -> tuple[str, ...]:
    """Return the key of *program*'s command line."""
    return "programs", program, "workload", "command"
