"""What several contexts gain, with processors, groups and a device that do not hold them up."""

from __future__ import annotations

import pytest

from tests.harness import FIO
from wbsim.experiments.config.experiment import parse
from wbsim.models.machine import Machine, build

BY_GROUP = '{ kind = "parallel", by = "allocation_group" }'


def ended_s(flusher: str, command: str, *, more: str = "", memory_gib: int = 1) -> tuple[float, Machine]:
    """When all of *command* was on the disk of a small machine like W25's."""
    text = f"""\
title = "what contexts gain"
[scenario]
machine.like = "w25-server"
machine.memory = {{ memory = "{memory_gib} GiB", kernel_reserve = "24 MiB" }}
kernel.like = "6.17"
kernel.flusher = {flusher}
filesystem.like = "w25-xfs"
sync_after = true
workload.command = "{command}"
{more}
"""
    of = build(parse(text, "x.toml").cases[0].scenario, 1)
    of.run()
    return of.env.now / 1e9, of


def in_groups(groups: int, files: int, rw: str = "randwrite", filesize: str = "16m") -> str:
    """A job in each of so many directories, with so many files."""
    jobs = " ".join(f"--name=j{i} --directory=/mnt/{i}" for i in range(groups))
    return f"{FIO} --rw={rw} --nrfiles={files} --filesize={filesize} {jobs}"


def test_one_processor_is_shared_by_all_contexts() -> None:
    """The device is never waited for: nothing is gained."""
    one = "machine.processors.count = 1\nmachine.processors.nodes = 1"
    alone, _ = ended_s('{ kind = "per_bdi" }', in_groups(4, 2), more=one)
    several, _ = ended_s(BY_GROUP, in_groups(4, 2), more=one)
    assert several > 0.97 * alone


def test_a_disk_that_seeks_gives_sequential_streams_nothing() -> None:
    """It is the disk that is waited for."""
    disk = 'machine.disks.nvme0n1.like = "sata-disk"\nfilesystem.size = "512 GiB"'
    alone, _ = ended_s('{ kind = "per_bdi" }', in_groups(4, 1, "write", "128m"), more=disk)
    several, _ = ended_s(BY_GROUP, in_groups(4, 1, "write", "128m"), more=disk)
    assert several > 0.97 * alone


@pytest.mark.source
def test_contexts_help_up_to_the_number_of_groups_with_inodes() -> None:
    """Three groups: two contexts are faster than one, three faster than two, and from there it is flat; what
    is left is flushers that have nothing to write.
    """
    flusher = '{{ kind = "parallel", by = "allocation_group", contexts = {} }}'
    ended = {n: ended_s(flusher.format(n), in_groups(3, 8, filesize="24m")) for n in (1, 2, 3, 6)}
    times = {n: time for n, (time, _) in ended.items()}
    assert times[2] < 0.85 * times[1]
    assert times[3] < 0.85 * times[2]
    assert times[6] == pytest.approx(times[3], rel=0.05)
    worked = [thread for thread in ended[6][1].flushers.threads if thread.task.ran_ns > 1_000_000]
    assert len(worked) == 3
