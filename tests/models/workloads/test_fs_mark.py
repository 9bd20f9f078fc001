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


def test_command_line_of_report_p13_is_read() -> None:
    """The verbatim line has eight processes and 120 loops of 10 000 files of 4 KiB for each of them."""
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
        ("fs_mark -d a -S 7 -L 2", "-S 7 is refused by fs_mark; give at most 6$"),
        ("fs_mark -d a -S0 -n 1000001 -L 2", "-n 1000001 is refused by fs_mark; give at most 1000000$"),
        ("fs_mark -d a -S0 -w 1048577 -L 2", "-w 1048577 is refused by fs_mark; give at most 1048576 B$"),
        ("fs_mark -d a -S0 -t 65 -L 2", "-t 65 is refused by fs_mark; give at most 64$"),
        ("fs_mark -d a -S0 -D 1 -L 2", "-D 1 is refused by fs_mark; give 2 or more subdirectories"),
        ("fs_mark -d a -S0 -N 3 -L 2", "-N 3 without -D is refused by fs_mark; add -D with 2 or more"),
        ("fs_mark -S0 -s 4k -L 2 -d a", "is not a plain number"),
        ("fs_mark -S0 -L 2 -x -d a", "unrecognized arguments: -x"),
        ("fs_mark -S0 -d a", "add -k"),
        ("fio --name=x", "not an fs_mark command"),
    ],
)
def test_a_line_that_cannot_be_run_is_refused(line: str, hint: str) -> None:
    """The error gives the remedy."""
    with pytest.raises(CommandError, match=hint):
        parse_command(line)


def test_rate_is_the_sum_of_the_rates_of_processes() -> None:
    """The sum is above the files by elapsed time, because the loops exclude the barrier, fork and exit."""
    machine = run_small(processes=4, files=300, loops=3, memory_mib=64)
    iterations = only(machine.programs).iterations
    assert [line.count for line in iterations] == [1_200, 2_400, 3_600]
    for before, after in pairwise(iterations):
        elapsed = (after.end_ns - before.end_ns) / S
        assert after.files_per_sec > 1_200 / elapsed


def test_iterations_of_one_second_use_the_same_subdirectories() -> None:
    """Each process takes the subdirectory of the second in which it starts, and each is in the next group."""
    machine = run_small(processes=4, files=50, loops=2, memory_mib=64)
    directories = only(machine.mounts).directories.values()
    groups = [directory.group.number for directory in directories]
    assert groups == [0, 1, 2, 3], "both iterations began in the same second"


def test_round_robin_uses_all_directories() -> None:
    """A process with -N 10 and -D 5 puts ten files into each of its five subdirectories in turn."""
    changes = {"workload.subdirs": 5, "workload.per_subdir": 10}
    machine = run_small(processes=2, files=100, loops=1, memory_mib=64, changes=changes)
    assert len(only(machine.mounts).directories) == 2 * 5


def test_app_overhead_is_the_own_time_of_the_program() -> None:
    """App Overhead is the sum over all processes, in us."""
    machine = run_small(processes=2, files=100, loops=1, changes={"machine.processors.writer_scale": 1.0})
    assert only(machine.programs).iterations[0].app_overhead_us == 2 * 100 * 5
    assert only(machine.programs).user_ns == 2 * 100 * 3_600


def test_closed_files_keep_no_layout_after_writeback() -> None:
    """Fewer than 20 of 2 000 files have a layout at the end; all others are closed and written back."""
    machine = run_small(processes=2, files=500, loops=2, memory_mib=4)
    assert machine.cache.written_pages > 1_000
    assert len(only(machine.mounts).filesystem.layouts()) < 20
