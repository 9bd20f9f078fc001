"""Machines of no report against published figures: rates of write(2), many writers, many empty files.

Two of the figures calibrate the servers: the rates by call size, and the time of an empty file.  The rates of
dd were known when the times of a page were chosen.  The rates of many writers and of empty files are
predictions, but the figures of many writers were known, too.
"""

from __future__ import annotations

import pytest

from wbsim.experiments.config.case import Case
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.published.fitted_constants import fitted_to
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.simulate import run_case
from wbsim.models.catalogue.data_files import names_in
from wbsim.models.catalogue.kernels import FIRST, LAST
from wbsim.models.catalogue.machines import machines_of
from wbsim.models.machine import build
from wbsim.models.release import release_of
from wbsim.sim.units import MIB, S

NEUTRAL = ("small-vm", *(name for name in names_in("machines") if name[-4:] in ("2012", "2018", "2024")))
"""The machines of no report."""


def case_of(machine: str, kernel: str, filesystem: str, program: str, more: str = "") -> Case:
    """Return the case of one *program* on a *filesystem* with mkfs's defaults; *more* are lines of it."""
    text = f"""
title = "a machine of no report"
[scenario]
machine.like = "{machine}"
kernel.like = "{kernel}"
filesystem.like = "{filesystem}"
programs.it = "{program}"
sync_after = false
{more}
"""
    (case,) = parse(text, "neutral.toml").cases
    return case


def rate_of(machine: str, kernel: str, filesystem: str, call: str) -> float:
    """Return the MB/s of write(2) calls of size *call* into the page cache, without the program's time."""
    fio = f"fio --ioengine=psync --create_on_open=1 --fallocate=none --rw=write --bs={call} --size=64m"
    case = case_of(
        machine, kernel, filesystem, f"{fio} --name=a --directory=/", "machine.processors.cv = 0.0"
    )
    of = build(case.scenario, 1)
    of.run()
    spent_ns = sum(thread.spent.write for thread in of.threads if thread.task.name.startswith("it/process"))
    return 64 * MIB / 1e6 / (spent_ns / S)


def test_every_release_has_all_machines_with_its_own_queue() -> None:
    """Each machine has its own name, and no constant that is fitted to the rows of a report."""
    for release in (FIRST, "3.11", "4.4", LAST):
        machines = machines_of(release_of(release))
        assert machines_of(release_of(release)) is machines
        for name in NEUTRAL:
            machine = machines[name]
            assert machine.name == name
            assert fitted_to(machine, to_rows=True) == {}, name
            assert machine.processors.writer_scale == 1.0
            assert machine.processors.program_scale is not None
    old, new = (machines_of(release_of(of))["server-2012"].disks["sda"].queue for of in ("3.11", LAST))
    assert (old.elevator.scheduler, new.elevator.scheduler) == ("cfq", "mq-deadline")


@pytest.mark.parametrize("machine", NEUTRAL)
def test_dd_is_as_fast_as_on_real_machines(machine: str) -> None:
    """Calls of 1 MiB get 1.5 to 4 GB/s without large folios, and 3 to 7 GB/s with them.

    The times of a page were chosen within these bounds.  Older machines are slower.
    """
    dd = "dd if=/dev/zero of=/f bs=1M count=256"
    rates = []
    for kernel in ("3.11", "6.17"):
        of = run_case(case_of(machine, kernel, "xfs", dd), 1, 0).programs["it"]
        rates.append(of.file_bytes / of.wall_time / 1e9)
    assert 1.5 < rates[0] < 4
    assert 3 < rates[1] < 7
    order = [
        run_case(case_of(of, "3.11", "xfs", dd), 1, 0).wall_time for of in ("server-2012", "server-2024")
    ]
    assert order[0] > 1.2 * order[1]


@pytest.mark.parametrize(
    ("kernel", "filesystem", "published"),
    [
        ("6.15", "ext4", (1_631, 2_088, 2_143)),
        ("6.16", "ext4", (1_655, 3_690, 3_901)),
        ("6.16", "xfs", (1_719, 5_092, 5_716)),
    ],
)
def test_calibrated_rates_match_the_published_rate_of_each_call_size(
    kernel: str, filesystem: str, published: tuple[int, ...]
) -> None:
    """Four constants are fitted to a Xeon Gold 6240 with calls of 4 KiB, 64 KiB and 1 MiB."""
    rates = [rate_of("server-2018", kernel, filesystem, call) for call in ("4k", "64k", "1m")]
    assert rates == [pytest.approx(rate, rel=0.1) for rate in published]


ARRAY = """
[scenario.machine.disks.nvme0n1.device]
kind = "raid0"
chunk = "512 KiB"
members = { like = "pm9a3", count = 2, link = "7300 MB/s", program_time = "1 ms" }
"""
"""Two drives of 7.3 GB/s each."""


def many_writers(filesystem: str) -> tuple[float, float]:
    """Let 32 jobs write calls of 1 MiB to an array of 14.6 GB/s.

    Return the GB/s that the array got, and the share of the time for which the flusher ran.
    """
    jobs = (
        "fio --ioengine=psync --create_on_open=1 --fallocate=none --rw=write --bs=1m --numjobs=32 --size=4g"
        " --name=a --directory=/"
    )
    of = run_case(case_of("server-2024", "6.8", filesystem, jobs, ARRAY), 1, 0)
    assert of.write_bandwidth is not None
    return of.write_bandwidth / 1e9, of.uses["thread nvme0n1/flusher"]


@pytest.mark.fullsize
def test_predicted_rates_of_many_writers_match_linux_6_8() -> None:
    """Reported for Linux 6.8: XFS 14.6 GB/s, the flusher at 20 %; ext4 5.38 GB/s, the flusher at 100 %.

    No number was fitted to these figures, but they were known when the flusher's scale of 1.0 was chosen.
    The model's flusher of XFS is busy for 2 % of the time, so the bound of 30 % tests only the order.
    """
    (xfs, xfs_busy), (ext4, ext4_busy) = many_writers("xfs"), many_writers("ext4")
    assert xfs == pytest.approx(14.6, rel=0.2)
    assert ext4 == pytest.approx(5.38, rel=0.2)
    assert xfs_busy < 0.3
    assert ext4_busy > 0.9


@pytest.fixture(scope="module")
def many_files() -> Outcome:
    """Return the outcome of fs_mark with empty files in 40 directories: 320 000 instead of 32 million."""
    directories = " ".join(f"-d /{number}" for number in range(40))
    return run_case(
        case_of("server-2024", "6.17", "xfs", f"fs_mark -S0 -n 4000 -s 0 -L 2 {directories}"), 1, 0
    )


@pytest.mark.fullsize
def test_calibrated_time_of_an_empty_file_matches_the_published_time(many_files: Outcome) -> None:
    """A mail of December 2025 has 1 184 s of system and 233 s of user time for 32 million files."""
    assert many_files.files == 320_000
    assert many_files.system_cpu_time / many_files.files == pytest.approx(1_184 / 32e6, rel=0.1)
    assert many_files.user_cpu_time / many_files.files == pytest.approx(233 / 32e6, rel=0.1)


@pytest.mark.fullsize
@pytest.mark.xfail(
    strict=True, reason="the processes slept for 39 % of the 57.6 s; the mail does not give the cause"
)
def test_predicted_rate_of_empty_files_matches_the_published_rate(many_files: Outcome) -> None:
    """The published run took 57.6 s for 32 million files."""
    assert many_files.files / many_files.wall_time == pytest.approx(32e6 / 57.6, rel=0.3)
