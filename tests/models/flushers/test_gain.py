"""The gain of several contexts: processors, allocation groups and the device limit it."""

from __future__ import annotations

import pytest

from tests.harness import FIO
from wbsim.experiments.config.experiment import parse
from wbsim.models.machine import Machine, build

BY_GROUP = '{ kind = "parallel", by = "allocation_group" }'


def ended_s(flusher: str, command: str, *, more: str = "", memory_gib: int = 1) -> tuple[float, Machine]:
    """Run *command* on a small machine like that of report W25.

    Return the time (s) when all data is on the disk, and the machine.
    """
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
    """Return an fio command with a job in each of *groups* directories, each with *files* files."""
    jobs = " ".join(f"--name=j{i} --directory=/mnt/{i}" for i in range(groups))
    return f"{FIO} --rw={rw} --nrfiles={files} --filesize={filesize} {jobs}"


def test_several_contexts_gain_nothing_on_one_processor() -> None:
    """Several contexts gain nothing on one processor, because no flusher waits for the device."""
    one = "machine.processors.count = 1\nmachine.processors.nodes = 1"
    alone, _ = ended_s('{ kind = "per_bdi" }', in_groups(4, 2), more=one)
    several, _ = ended_s(BY_GROUP, in_groups(4, 2), more=one)
    assert several > 0.97 * alone


def test_several_contexts_gain_nothing_on_a_disk_that_seeks() -> None:
    """Several contexts gain nothing with sequential streams on a disk, because the disk is the bottleneck."""
    disk = 'machine.disks.nvme0n1.like = "sata-disk"\nfilesystem.size = "512 GiB"'
    alone, _ = ended_s('{ kind = "per_bdi" }', in_groups(4, 1, "write", "128m"), more=disk)
    several, _ = ended_s(BY_GROUP, in_groups(4, 1, "write", "128m"), more=disk)
    assert several > 0.97 * alone


@pytest.mark.source
def test_contexts_help_up_to_the_number_of_groups_with_inodes() -> None:
    """Three allocation groups have inodes, so each context up to the third makes the run faster.

    Six contexts are as fast as three, and three of the six flushers have nothing to write.
    """
    flusher = '{{ kind = "parallel", by = "allocation_group", contexts = {} }}'
    ended = {n: ended_s(flusher.format(n), in_groups(3, 8, filesize="24m")) for n in (1, 2, 3, 6)}
    times = {n: time for n, (time, _) in ended.items()}
    assert times[2] < 0.85 * times[1]
    assert times[3] < 0.85 * times[2]
    assert times[6] == pytest.approx(times[3], rel=0.05)
    worked = [thread for thread in ended[6][1].flushers.threads if thread.task.ran_ns > 1_000_000]
    assert len(worked) == 3
