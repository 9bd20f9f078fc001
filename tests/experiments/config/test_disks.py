"""Disks of a configuration: ``like`` in devices, members that are alike, and queues by release."""

from __future__ import annotations

import pytest

from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput
from wbsim.models.catalogue.drives import DRIVES, drives_of
from wbsim.models.devices.spec import Raid0Spec, WriteCacheSpec
from wbsim.models.release import release_of
from wbsim.models.scenario import DriveSpec, Scenario
from wbsim.sim.param import bare
from wbsim.sim.units import KIB, MIB

CACHE = 'kind = "write_cache", size = "512 MiB", link = "1 GB/s", command_time = "1 us", piece = "64 KiB"'
RAID = 'kind = "raid0", chunk = "64 KiB"'


def scenario(*lines: str, kernel: str = "6.8") -> Scenario:
    """Read a configuration of one dd, with these *lines* about its machine."""
    text = "\n".join(
        [
            'title = "x"', "[scenario]", 'machine.like = "p13-vm"', f'kernel.like = "{kernel}"',
            'filesystem = { like = "loop-xfs" }', *lines,
            'workload.command = "dd if=/dev/zero of=/mnt/x bs=4k count=9"',
        ]
    )  # fmt: skip
    (case,) = parse(text, "x.toml").cases
    return case.scenario


def drive(*lines: str, kernel: str = "6.8") -> DriveSpec:
    """Return the one disk of `scenario`."""
    (disk,) = scenario(*lines, kernel=kernel).machine.disks.values()
    return disk


def test_device_starts_from_the_drive_that_like_names() -> None:
    """The queue of the machine stays.  Keys next to ``like`` override the drive."""
    disk = drive('machine.device = { like = "bm1743", cache = "8 MiB" }')
    assert bare(disk.device.inputs()) == bare(DRIVES["bm1743"].device.inputs()) | {"cache": 8 * MIB}
    assert disk.queue == drive().queue


def test_like_replaces_the_complete_device() -> None:
    """No key of the earlier drive is left."""
    assert drive('machine.disks.vdb = { device.like = "pm9a3" }').device == DRIVES["pm9a3"].device


@pytest.mark.parametrize(
    "members",
    [
        '{ like = "sata-disk", count = 3 }',
        '[{ like = "sata-disk" }, { like = "sata-disk" }, { like = "sata-disk" }]',
    ],
)
def test_members_start_from_the_drive_that_like_names(members: str) -> None:
    """A table with ``count = 3`` stands for three members."""
    array = drive(f"machine.device = {{ {RAID}, members = {members} }}").device
    assert isinstance(array, Raid0Spec)
    assert array.members == (DRIVES["sata-disk"].device,) * 3
    assert array.chunk == 64 * KIB


def test_device_behind_a_cache_starts_from_a_drive() -> None:
    """The members of an array behind a cache have a ``like``, too."""
    inner = f'{{ {RAID}, members = {{ like = "sata-ssd", count = 2, cache = "32 MiB" }} }}'
    cache = drive(f"machine.device = {{ {CACHE}, depth = 4, behind = {inner} }}").device
    assert isinstance(cache, WriteCacheSpec)
    assert isinstance(cache.behind, Raid0Spec)
    ssd = bare(DRIVES["sata-ssd"].device.inputs()) | {"cache": 32 * MIB}
    assert [bare(member.inputs()) for member in cache.behind.members] == [ssd, ssd]


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ('{ like = "nvme9" }',
         "x.toml:6: machine.device.like: 'nvme9' is not known; use a name of wbsim list disks"),
        (f'{{ {RAID}, members = {{ like = "loop" }} }}',
         "x.toml:6: machine.device.members.count: is missing; give the number of members"),
        (f'{{ {RAID}, members = {{ like = "loop", count = 0 }} }}',
         "x.toml:6: machine.device.members.count: is 0; a whole number from 1 to 1024 was expected"),
        (f'{{ {RAID}, members = {{ like = "pm9a3", count = 3, link = 5 }} }}',
         "x.toml:6: machine.device.members.link: 5 has no unit; write a text such as"),
        (f'{{ {RAID}, members = {{ like = "pm9a3", count = 3, linc = 5 }} }}',
         "x.toml:6: machine.device.members.linc: unknown key; did you mean link"),
        (f'{{ {RAID}, members = [{{ like = "pm9a3" }}, {{ like = "pm9" }}] }}',
         "x.toml:6: machine.device.members.1.like: 'pm9' is not known"),
        (f"{{ {RAID}, members = [] }}",
         "x.toml:6: machine.device.members: is an empty list; give at least one item"),
    ],
)  # fmt: skip
def test_fault_in_a_member_has_its_place(device: str, message: str) -> None:
    """A fault in a table with a count is reported once, at the key as it is written."""
    with pytest.raises(BadInput) as refused:
        scenario(f"machine.device = {device}")
    assert [str(problem).startswith(message) for problem in refused.value.problems] == [True]


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("2.6.32", ("cfq", 128, 31, 512 * KIB, False)),
        ("4.1", ("cfq", 128, 31, 65_535 * 512, False)),
        ("4.9", ("cfq", 128, 31, 1280 * KIB, False)),
        ("4.19", ("mq-deadline", 64, 32, 1280 * KIB, True)),
        ("6.8", ("mq-deadline", 64, 32, 1280 * KIB, True)),
        ("6.18", ("mq-deadline", 64, 32, 4 * MIB, True)),
    ],
)
def test_sata_disk_has_the_queue_of_its_release(kernel: str, expected: tuple[object, ...]) -> None:
    """The queue has CFQ and 31 commands before blk-mq, and mq-deadline and 32 commands since."""
    for name in ("sata-disk", "sata-ssd"):
        queue = drives_of(release_of(kernel))[name].queue
        found = (
            queue.elevator.scheduler, queue.nr_requests, queue.driver_depth, queue.limits.max_sectors_bytes,
            queue.wbt,
        )  # fmt: skip
        assert found == expected
        assert queue.limits.max_segments == 168


@pytest.mark.parametrize(
    ("kernel", "scheduler", "most", "segments"),
    [
        ("3.11", "noop", 512 * KIB, 513), ("3.18", "noop", 512 * KIB, 513), ("3.19", "none", 2 * MIB, 513),
        ("4.2", "none", 2 * MIB, 513), ("4.3", "none", 1280 * KIB, 513), ("5.4", "none", 1280 * KIB, 127),
        ("6.17", "none", 2 * MIB, 256),
    ],
)  # fmt: skip
def test_nvme_drive_has_the_queue_of_its_release(
    kernel: str, scheduler: str, most: int, segments: int
) -> None:
    """An NVMe drive needs no scheduler.

    Its largest request is the least of MDTS and the kernel's default.
    """
    queue = drives_of(release_of(kernel))["pm9a3"].queue
    assert (queue.elevator.scheduler, queue.nr_requests) == (scheduler, 1023)
    assert (queue.limits.max_sectors_bytes, queue.limits.max_segments) == (most, segments)


@pytest.mark.parametrize(
    ("kernel", "scheduler", "requests"),
    [("3.11", "cfq", 128), ("3.13", "none", 128), ("4.12", "mq-deadline", 256), ("6.18", "mq-deadline", 256)],
)
def test_virtio_disk_has_the_queue_of_its_release(kernel: str, scheduler: str, requests: int) -> None:
    """A guest of Linux 6.18 with one hardware queue shows mq-deadline and 256."""
    queue = drives_of(release_of(kernel))["virtio-ssd"].queue
    assert (queue.elevator.scheduler, queue.nr_requests) == (scheduler, requests)


def test_kernel_of_a_case_decides_the_queue() -> None:
    """The kernel may be a variant of a report or have another name."""
    assert drive('machine.disks.vdb.like = "sata-disk"', kernel="3.11-p13").queue.elevator.scheduler == "cfq"
    assert (
        drive('machine.disks.vdb.like = "sata-disk"', kernel="6.17").queue.elevator.scheduler == "mq-deadline"
    )
    named = drive('machine.disks.vdb.like = "sata-disk"', 'kernel.name = "mine"', kernel="4.9")
    assert named.queue.elevator.scheduler == "cfq"


DRIVE = """\
title = "a drive"
[scenario]
machine.like = "desktop-2018"
kernel.like = "6.1"
mounts.a = { like = "ext4", disk = "new", at = "/" }
workload.command = "dd if=/dev/zero of=/f bs=1M count=1"
"""


@pytest.mark.parametrize(
    ("interface", "of"), [("sata", "sata-ssd"), ("nvme", "pm9a3"), ("virtio", "virtio-ssd")]
)
def test_queue_follows_from_the_interface(interface: str, of: str) -> None:
    """``queue.like`` replaces the queue that the drive brings, and other keys of the queue change it."""
    lines = (
        f'machine.disks.new = {{ like = "sata-disk", queue = {{ like = "{interface}", nr_requests = 9 }} }}'
    )
    (case,) = parse(f"{DRIVE}{lines}\n", "x.toml").cases
    disk, drives = case.scenario.machine.disks["new"], drives_of(release_of("6.1"))
    assert disk.queue.model_dump() == {**drives[of].queue.model_dump(), "nr_requests": 9}
    assert disk.device == drives["sata-disk"].device


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('queue.like = "scsi"',
         "queue.like: 'scsi' is not known; use one of 'sata', 'sas', 'raid', 'usb', 'nvme', 'virtio'"),
        ('device.outer = { value = "9 MB/s", origin = "felt", source = "x" }',
         "device.outer: has the origin 'felt'; use one of calibrated, measured, specified, assumed"),
        ('device.outer = { value = "9 MB/s", low = "10 MB/s", high = "20 MB/s" }',
         "device.outer: 9000000 is outside its range; give low and high that include it"),
        ('queue.elevator.scheduler = { value = "none", low = "cfq", high = "deadline" }',
         "queue.elevator.scheduler: none is not one of its two ends; give low and high, of which one is"),
        ('device.outer = { value = "9 s", origin = "measured", source = "x" }', "device.outer: 's' is not"),
        ('device.outer = { value = "9 MB/s", sauce = "x" }',
         "device.outer: has the unknown key sauce; beside value it may"),
    ],
)  # fmt: skip
def test_wrong_statement_in_a_disk_is_refused(line: str, told: str) -> None:
    text = f'{DRIVE}machine.disks.new.like = "sata-disk"\nmachine.disks.new.{line}\n'
    with pytest.raises(BadInput) as refused:
        parse(text, "x.toml")
    assert f"x.toml:8: machine.disks.new.{told}" in str(refused.value)


def test_statement_keeps_its_origin_and_range() -> None:
    """Without an origin, a value is specified; the source names the line, too."""
    ends = 'low = "8 MB/s", high = "10 MB/s"'
    line = f'device.outer = {{ value = "9 MB/s", origin = "assumed", {ends}, source = "x" }}'
    text = f'{DRIVE}machine.disks.new.like = "sata-disk"\nmachine.disks.new.{line}\n'
    (case,) = parse(text, "x.toml").cases
    given = case.scenario.machine.disks["new"].device.provenance("outer")
    assert given is not None
    assert (given.origin, given.low, given.high, given.source) == (
        "assumed",
        "8 MB/s",
        "10 MB/s",
        "x.toml:8: x",
    )
