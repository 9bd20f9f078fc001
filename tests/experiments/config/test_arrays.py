"""Arrays of a configuration: members, what mkfs sees of them, and bad input."""

from __future__ import annotations

import re

import pytest

from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput
from wbsim.models.filesystems.xfs.spec import XfsSpec
from wbsim.models.md.spec import REFERENCE_COSTS, ArraySpec
from wbsim.models.scenario import Scenario
from wbsim.sim.param import Origin
from wbsim.sim.units import KIB, MIB

DISKS = 'machine.disks.sd = { like = "sata-disk", count = 4 }'
ARRAY = 'machine.arrays.md0 = { level = "raid5", members = "sd" }'
MOUNT = 'mounts.data = { like = "xfs", disk = "md0", at = "/data" }'


def scenario(*lines: str, kernel: str = "6.8", mount: str = MOUNT) -> Scenario:
    """Read a configuration of one dd on a server, with these *lines* about its machine."""
    text = "\n".join(
        [
            'title = "x"', "[scenario]", 'machine.like = "server-2018"', f'kernel.like = "{kernel}"', mount,
            *lines, 'workload.command = "dd if=/dev/zero of=/data/x bs=4k count=9"',
        ]
    )  # fmt: skip
    (case,) = parse(text, "x.toml").cases
    return case.scenario


def problem_of(*lines: str, kernel: str = "6.8", mount: str = MOUNT) -> str:
    """Return the only problem of a configuration with *lines*."""
    with pytest.raises(BadInput) as raised:
        scenario(*lines, kernel=kernel, mount=mount)
    (problem,) = raised.value.problems
    return str(problem)


def test_group_of_disks_stands_for_its_members() -> None:
    """The name of a group is as good as the list of its disks."""
    by_group = scenario(DISKS, ARRAY).machine.arrays["md0"]
    names = 'machine.arrays.md0 = { level = "raid5", members = ["sd0", "sd1", "sd2", "sd3"] }'
    by_name = scenario(DISKS, names).machine.arrays["md0"]
    assert by_group == by_name
    assert by_group.members == ("sd0", "sd1", "sd2", "sd3")


def test_mkfs_sees_the_stripe_of_an_array() -> None:
    """XFS gets the chunk as its stripe unit, and the size of the array without the members' headroom."""
    spec = scenario(DISKS, 'machine.arrays.md0 = { level = "raid6", members = "sd", chunk = "64 KiB" }')
    filesystem = spec.mounts["data"].filesystem
    assert isinstance(filesystem, XfsSpec)
    assert filesystem.stripe_unit == 64 * KIB
    disk = spec.machine.disks["sd0"].device.capacity
    assert disk is not None
    assert 0 <= 2 * (disk - 264_192 * 512) - filesystem.size < MIB


def test_mirror_has_no_stripe() -> None:
    """RAID1 reports neither a unit nor a width, and the capacity of one member."""
    spec = scenario(DISKS, 'machine.arrays.md0 = { level = "raid1", members = "sd" }')
    filesystem = spec.mounts["data"].filesystem
    assert isinstance(filesystem, XfsSpec)
    assert filesystem.stripe_unit is None
    disk = spec.machine.disks["sd0"].device.capacity
    assert disk is not None
    assert disk - filesystem.size < 200 * MIB


def test_smallest_member_counts() -> None:
    """Members of different size: the array has the capacity of equal ones of the smallest size."""
    lines = (
        'machine.disks.big = { like = "sata-disk", device.size = "2 TB" }',
        'machine.disks.small = { like = "sata-disk", device.size = "1 TB" }',
        'machine.arrays.md0 = { level = "raid0", members = ["big", "small"] }',
    )
    capacity = scenario(*lines).machine.device_of("md0").capacity
    assert capacity is not None
    assert 0 < 2 * 10**12 - capacity < 300 * MIB


def test_machine_with_an_array_gets_the_costs_of_md() -> None:
    """They are assumed; a user's own replace them."""
    costs = scenario(DISKS, ARRAY).machine.processors.paths.md
    assert costs is not None
    assert {entry.origin for entry in REFERENCE_COSTS.values()} == {Origin.ASSUMED}
    assert costs.xor_ns == 400
    own = scenario(DISKS, ARRAY, 'machine.processors.paths.md.xor_ns = "100 ns"').machine.processors.paths.md
    assert own is not None
    assert (own.xor_ns, own.copy_ns) == (100, 300)
    assert scenario(DISKS, mount=MOUNT.replace("md0", "sd0")).machine.processors.paths.md is None


def test_defaults_are_those_of_mdadm_and_the_kernel() -> None:
    """Chunks of 512 KiB, a bitmap with regions of 64 MiB, 256 stripes, no worker."""
    array = ArraySpec(level="raid5", members=("a", "b", "c"))
    assert (array.chunk, array.bitmap_chunk) == (512 * KIB, 64 * MIB)
    assert (array.stripe_cache_size, array.group_thread_cnt, array.rmw_level) == (256, 0, 1)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['machine.arrays.md0 = { level = "raid5", members = "sd", chunk = "48 KiB" }'], "no.*power of two"),
        (['machine.arrays.md0 = { level = "raid5", members = "sd", chunk = "2 KiB" }'], "power of two from"),
        (['machine.arrays.md0 = { level = "raid5", members = ["sd0", "sd1"] }'], "raid5 needs 3 members"),
        (['machine.arrays.md0 = { level = "raid6", members = ["sd0", "sd1", "sd2"] }'], "raid6 needs 4"),
        (['machine.arrays.md0 = { level = "raid1", members = ["sd0"] }'], "raid1 needs 2 members"),
        (['machine.arrays.md0 = { level = "raid1", members = ["sd0", "sd0"] }'], "named twice"),
        (['machine.arrays.md0 = { level = "raid1", members = ["sd0", "sdx"] }'], "no disk 'sdx'"),
        (['machine.arrays.md0 = { level = "raid1", members = "sx" }'], "a group of disks: sd"),
        (['machine.arrays.md0 = { level = "raid7", members = "sd" }'], "raid7"),
        (
            ['machine.arrays.md0 = { level = "raid5", members = "sd", faulty = ["sdx"] }'],
            "'sdx' is no member",
        ),
        (
            ['machine.arrays.md0 = { level = "raid5", members = "sd", faulty = ["sd0", "sd1"] }'],
            "does not work without sd0, sd1",
        ),
        (
            ['machine.arrays.md0 = { level = "raid10", members = "sd", faulty = ["sd0", "sd1"] }'],
            "raid10 does not work",
        ),
        (['machine.arrays.md0 = { level = "raid0", members = "sd", faulty = ["sd0"] }'], "does not work"),
        (['machine.arrays.md0 = { level = "raid5", members = "sd", stripe_cache_size = 16 }'], "17"),
        (
            [ARRAY, 'machine.arrays.md1 = { level = "raid1", members = ["sd2", "sd3"] }'],
            "sd2 is a member of md0, too",
        ),
        (['machine.arrays.sd0 = { level = "raid1", members = ["sd2", "sd3"] }'], "the name of a disk, too"),
    ],
)
def test_bad_array_is_one_clear_error(lines: list[str], message: str) -> None:
    """Each mistake is one problem with its place and a remedy."""
    mount = 'mounts.data = { like = "xfs", disk = "md0", at = "/data", size = "40 GiB" }'
    problem = problem_of(DISKS, *lines, mount=mount)
    assert "machine.arrays" in problem
    assert re.search(message, problem), problem


def test_member_cannot_be_mounted() -> None:
    """A filesystem lies on the array, and not on one of its members."""
    mount = 'mounts.data = { like = "xfs", disk = "sd0", at = "/data", size = "40 GiB" }'
    assert "sd0 is a member of md0; mount md0 instead" in problem_of(DISKS, ARRAY, mount=mount)


def test_worker_threads_need_their_release() -> None:
    """group_thread_cnt came with 3.12."""
    line = 'machine.arrays.md0 = { level = "raid5", members = "sd", group_thread_cnt = 2 }'
    assert "3.11 has no worker threads of md" in problem_of(DISKS, line, kernel="3.11")
    assert scenario(DISKS, line, kernel="3.12").machine.arrays["md0"].group_thread_cnt == 2


def test_filesystem_must_fit_the_array() -> None:
    """The capacity is that of the level."""
    mount = 'mounts.data = { like = "xfs", disk = "md0", at = "/data", size = "40 TiB" }'
    assert "make this one smaller" in problem_of(DISKS, ARRAY, mount=mount)
