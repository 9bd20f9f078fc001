"""fs_mark: its command line, its barrier, its rates."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.harness import only, run_small
from wbsim.models.workloads.fs_mark import CommandError, parse_command
from wbsim.sim.units import S

P13_LINE = (
    "./fs_mark -D 10000 -S0 -n 10000 -s 4096 -L 120 -d /mnt/scratch/0 -d /mnt/scratch/1 -d /mnt/scratch/2"
    " -d /mnt/scratch/3 -d /mnt/scratch/4 -d /mnt/scratch/5 -d /mnt/scratch/6 -d /mnt/scratch/7"
)


def test_the_report_s_own_line_is_read() -> None:
    """P13's command, verbatim: eight processes, 120 loops of 10 000 files each, 4 KiB."""
    fields = parse_command(P13_LINE)
    assert (fields["processes"], fields["files"], fields["loops"], fields["file_size"]) == (
        8,
        10_000,
        120,
        4_096,
    )
    assert (fields["subdirs"], fields["per_subdir"], fields["write_size"]) == (10_000, 0, 16_384)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("fs_mark -S0 -n 10 -L 2", "required: -d"),
        ("fs_mark -d a -L 2", "use -S0"),
        ("fs_mark -S0 -s 4k -L 2 -d a", "plain numbers"),
        ("fs_mark -S0 -L 2 -x -d a", "unrecognized arguments: -x"),
        ("fs_mark -S0 -d a", "add -k"),
        ("fio --name=x", "not an fs_mark command"),
    ],
)
def test_a_line_that_cannot_be_run_is_refused(line: str, hint: str) -> None:
    """With what would be right."""
    with pytest.raises(CommandError, match=hint):
        parse_command(line)


def test_rates_are_sums_of_processes_rates_and_iterations_are_barriers() -> None:
    """The sum of per-process rates is above files by elapsed time: the barrier, fork and exit are in no
    loop.
    """
    machine = run_small(processes=4, files=300, loops=3, memory_mib=64)
    iterations = only(machine.programs).iterations
    assert [line.count for line in iterations] == [1_200, 2_400, 3_600]
    for before, after in pairwise(iterations):
        elapsed = (after.end_ns - before.end_ns) / S
        assert after.files_per_sec > 1_200 / elapsed


def test_a_sub_directory_lasts_an_iteration_and_a_group() -> None:
    """The time hash: each process takes one directory per second of start, each in the next group."""
    machine = run_small(processes=4, files=50, loops=2, memory_mib=64)
    directories = only(machine.mounts).directories.values()
    groups = [directory.group.number for directory in directories]
    assert groups == [0, 1, 2, 3], "both iterations began in the same second"


def test_round_robin_uses_all_directories() -> None:
    """-N 10 with -D 5: ten files here, ten there."""
    changes = {"workload.subdirs": 5, "workload.per_subdir": 10}
    machine = run_small(processes=2, files=100, loops=1, memory_mib=64, changes=changes)
    assert len(only(machine.mounts).directories) == 2 * 5


def test_overhead_is_the_program_s_own_time() -> None:
    """App Overhead is summed over the processes, in us."""
    machine = run_small(processes=2, files=100, loops=1, changes={"machine.processors.writer_scale": 1.0})
    assert only(machine.programs).iterations[0].app_overhead_us == 2 * 100 * 5
    assert only(machine.programs).user_ns == 2 * 100 * 3_600


def test_a_file_that_was_closed_keeps_counts_only() -> None:
    """Of 2 000 that were written back, not one in a hundred was still open."""
    machine = run_small(processes=2, files=500, loops=2, memory_mib=4)
    assert machine.cache.written > 1_000
    assert len(only(machine.mounts).filesystem.layouts()) < 20
