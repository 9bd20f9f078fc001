"""Every variant of every folder, run without a wrapper around it, keeps the promises of its folder."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from tests.harness import FIO, loop_config, only, run_small
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput
from wbsim.models.catalogue.data_files import part_in
from wbsim.models.catalogue.drives import DRIVES
from wbsim.models.catalogue.kernels import KERNELS, PLUG_RULES
from wbsim.models.catalogue.machines import MACHINES
from wbsim.models.kinds import kinds
from wbsim.models.machine import Machine, build
from wbsim.models.workloads.one_call import Call

DEVICES: dict[str, Any] = {
    "null": {"kind": "null"},
    "loop": {"kind": "loop", "command_time": 2_000, "page_time": 1_500},
    "ssd": part_in("drives", "p13-ssd")["device"],
    "disk": part_in("drives", "sata-disk")["device"],
    "raid0": MACHINES["p13-vm"].disks["vdb"].device.inputs(),
    "controller": DRIVES["perc-h710"].device.inputs(),
    "write_cache": MACHINES["n10-vm"].disks["vdb"].device.inputs(),
}


def test_every_device_has_a_contract_test() -> None:
    """A new device must be added to `DEVICES`."""
    assert set(DEVICES) == set(kinds("devices"))


@pytest.mark.parametrize("kind", sorted(DEVICES))
def test_every_device_completes_all_writes(kind: str) -> None:
    """The writers finish, no page is lost, and the expected number of files is made."""
    changes = {"machine.device": DEVICES[kind]}
    if kind in ("controller", "disk", "write_cache"):  # they are too small for 500 TB
        changes |= {"filesystem.size": 500 * 10**9, "filesystem.agcount": 4}
    machine = run_small(changes=changes, files=100 if kind == "disk" else 500)
    cache, files = machine.cache, 1_200 if kind == "disk" else 6_000
    program: Any = only(machine.programs)
    assert program.iterations[-1].count == files
    assert cache.dirtied == cache.dirty + cache.writeback + cache.written_pages == files


PAGES = 3 * 1024
COMMANDS = {
    "fs_mark": "fs_mark -S0 -n 256 -s 12288 -L 2 -D 9 -d a -d b",
    "fio": f"{FIO} --rw=randwrite --nrfiles=3 --filesize=4m --name=a",
    "dd": "dd if=/dev/zero of=/a/x bs=1024k count=12",
}
FILESYSTEMS = {"xfs": "loop-xfs", "ext4": "loop-ext4"}


def config(kernel: str, filesystem: str, command: str) -> str:
    """Return a configuration with one *kernel*, *filesystem* and *command*, and a sync(2) after it."""
    return loop_config(
        COMMANDS[command], dirty_mib=2, kernel=kernel, filesystem=filesystem, more="sync_after = true"
    )


def run_to_its_end(kernel: str, filesystem: str, command: str, *overrides: str) -> Machine:
    """Run a configuration and the sync(2) after it; check that no page is lost; return the machine."""
    text = config(kernel, FILESYSTEMS[filesystem], command)
    (case,) = parse(text, "x.toml", overrides).cases
    machine = build(case.scenario, 1)
    machine.run()
    cache = machine.cache
    assert (cache.dirtied, cache.written_pages, cache.dirty, cache.writeback) == (PAGES, PAGES, 0, 0)
    for wb in cache.wbs:
        wb.check()
        assert len(wb) == 0
    stat = only(machine.queues).stat
    assert stat.in_flight == 0
    assert stat.writes.sectors >= 8 * PAGES
    assert all(program.system_ns > 0 for program in machine.programs.values())
    return machine


def test_every_filesystem_and_workload_has_a_contract_test() -> None:
    """A new filesystem or workload must be added to `FILESYSTEMS` or `COMMANDS`."""
    assert set(FILESYSTEMS) == set(kinds("filesystems"))
    makers = {name for name, kind in kinds("workloads").items() if not kind.spec.reads_files}
    assert set(COMMANDS) == makers - {"sync", "one_call"}  # which write no pages
    assert {call for call, _, _ in CALLS} == set(get_args(Call))


@pytest.mark.parametrize("command", sorted(COMMANDS))
@pytest.mark.parametrize("filesystem", sorted(FILESYSTEMS))
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_sync_writes_all_pages_of_any_workload_filesystem_and_kernel(
    kernel: str, filesystem: str, command: str
) -> None:
    """All pages and a part of the log are on disk after a sync, in any order and any pieces."""
    machine = run_to_its_end(kernel, filesystem, command)
    assert only(machine.mounts).filesystem.log_bytes > 0


@pytest.mark.parametrize("command", sorted(COMMANDS))
@pytest.mark.parametrize("filesystem", sorted(FILESYSTEMS))
@pytest.mark.parametrize("flusher", sorted(kinds("flushers")))
def test_every_flusher_writes_all_pages(flusher: str, filesystem: str, command: str) -> None:
    """All pages are on disk after a sync with each flusher, also if a device has three contexts."""
    contexts = ', by = "hash", contexts = 3' if flusher == "parallel" else ""
    run_to_its_end("6.18", filesystem, command, f'kernel.flusher={{kind = "{flusher}"{contexts}}}')


CALLS: list[tuple[str, str, dict[str, int]]] = [
    ("rename", "mv /m/a /m/b", {"/m/b": 1024}),
    ("unlink", "rm /m/a", {"/m/b": 3}),
    ("ftruncate", "truncate -s 1M /m/a /m/c", {"/m/a": 256, "/m/b": 3, "/m/c": 256}),
    ("fallocate", "fallocate -l 8M /m/a", {"/m/a": 2048, "/m/b": 3}),
]
"""The calls of a command, and the files with their pages after it; before it, there are two."""


@pytest.mark.parametrize(("call", "command", "files"), CALLS, ids=[call for call, _, _ in CALLS])
@pytest.mark.parametrize("filesystem", sorted(FILESYSTEMS))
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_each_call_leaves_its_files_on_any_filesystem_and_kernel(
    kernel: str, filesystem: str, call: str, command: str, files: dict[str, int]
) -> None:
    """The files have their sizes and no dirty page.  The call is counted once for each file."""
    text = f"""
title = "a call"
[scenario]
machine.like = "loop-vm"
kernel.like = "{kernel}"
sync_after = true
programs.a = "{command}"
[scenario.mounts.m]
like = "{FILESYSTEMS[filesystem]}"
at = "/m"
contents = [{{ path = "a", size = "4 MiB", extents = 5 }}, {{ path = "b", size = "12 KiB" }}]
"""
    machine = build(parse(text, "x.toml").cases[0].scenario, 1)
    machine.run()
    program, superblock = only(machine.programs), only(machine.mounts)
    dentries = superblock.dentries
    assert {path: dentry.inode.file.size for path, dentry in dentries.items() if dentry.inode} == files
    assert program.latencies.by_call()[call].count == len(command.split(" /")) - 1 - (call == "rename")
    assert (program.failed, program.share_done) == ({}, 1)
    assert (machine.cache.dirty, machine.cache.writeback) == (0, 0)
    assert len(superblock.filesystem.layouts()) == len(files)


@pytest.mark.parametrize("scheduler", sorted(kinds("io_schedulers")))
@pytest.mark.parametrize("filesystem", sorted(FILESYSTEMS))
def test_every_io_scheduler_writes_all_pages(filesystem: str, scheduler: str) -> None:
    """Linux 4.14 has all of them; a random writer gives them something to sort."""
    change = f'machine.queue.elevator.scheduler="{scheduler}"'
    machine = run_to_its_end("4.14", filesystem, "fio", change, "machine.queue.driver_depth=1")
    assert only(machine.queues).elevator.requests == {}


def test_every_kernel_that_replay_knows_can_be_run() -> None:
    """Each era of plug rules, by which a replay works, is a kernel of the catalogue."""
    assert set(PLUG_RULES) <= set(KERNELS)


def test_path_belongs_to_the_deepest_mount() -> None:
    """A path belongs to the deepest mount that contains it; the error for other paths names all mounts."""
    text = """\
title = "two mounts on one disk"
[scenario]
machine.like = "loop-vm"
kernel.like = "6.18"
mounts.root = { like = "loop-xfs", at = "/" }
mounts.data = { like = "loop-ext4", at = "/srv/data" }
programs = ["dd if=/dev/zero of=/x bs=1024k count=1", "dd if=/dev/zero of=/srv/data/x bs=1024k count=2"]
"""
    machine = build(parse(text, "x.toml").cases[0].scenario, 1)
    machine.run()
    sizes = {name: sum(file.size for file in sb.filesystem.layouts()) for name, sb in machine.mounts.items()}
    assert sizes == {"root": 256, "data": 512}
    assert sorted(machine.programs) == ["dd", "dd-2"]
    with pytest.raises(
        BadInput, match=r"'/x' is outside every mount; give a path below one of /mnt \(root\)"
    ) as caught:
        parse(text.replace('at = "/" }', 'at = "/mnt" }').replace("of=/x", "of=/x/y"), "x.toml")
    assert "programs" in str(caught.value)


def test_count_makes_several_disks_and_mounts() -> None:
    """A count of two makes the disks sd0 and sd1, each with a filesystem and a program."""
    text = """\
title = "each"
[scenario]
machine.like = "loop-vm"
machine.disks.sd = { like = "pm9a3", count = 2 }
kernel.like = "6.18"
mounts.d = { like = "loop-ext4", each = "sd", at = "/d{n}" }
programs = ["dd if=/dev/zero of=/d0/x bs=1024k count=1", "dd if=/dev/zero of=/d1/x bs=1024k count=1"]
"""
    machine = build(parse(text, "x.toml").cases[0].scenario, 1)
    machine.run()
    assert [queue.stat.writes.sectors > 2048 for queue in machine.queues.values()] == [False, True, True]
    assert list(machine.mounts) == ["d0", "d1"]
