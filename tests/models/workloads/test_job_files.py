"""Job files in the style of published benchmarks of buffered writes run as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.results.outcome import Outcome
from wbsim.experiments.running.simulate import run_case

CONFIG = """\
title = "a job file"
[scenario]
machine.like = "small-vm"
kernel.like = "6.12"
mounts.m = { like = "xfs", size = "16 GiB", at = "/mnt" }
programs.f = "fio job.fio"
"""

RUN = {
    "sequential": "[seq]\nrw=write\nbs=1m\nsize=8m\ndirectory=/mnt\n",
    "comments": "[global]\nbs=4k ; the page\nsize=1m # each\n[a]\nrw=write ; forwards\ndirectory=/mnt\n",
    "fsync each": "[db]\nrw=randwrite\nbs=8k\nsize=1m\nfsync=1\nfilename=/mnt/db.0\nioengine=sync\n",
    "log writer": "[log]\nrw=write\nbs=2300\nsize=230000\nfdatasync=1\ndirectory=/mnt\n",
    "time based": "[t]\nrw=randwrite\nbs=4k\nsize=2m\ntime_based\nruntime=1\ndirectory=/mnt\nramp_time=1s\n",
    "many jobs": "[j]\nrw=write\nbs=64k\nsize=1m\nnumjobs=4\ngroup_reporting\ndirectory=/mnt\nthread\n",
    "two directories": "[j]\nrw=write\nbs=64k\nsize=1m\nnumjobs=4\ndirectory=/mnt/a:/mnt/b\nnew_group\n",
    "one shared file": "[j]\nrw=randwrite\nbs=4k\nsize=1m\nnumjobs=2\nfilename=shared\ndirectory=/mnt\n",
    "overwrite": "[j]\nrw=randwrite\nbs=4k\nsize=4m\noverwrite=1\nend_fsync=1\ndirectory=/mnt\nloops=2\n",
    "uneven sizes": "[j]\nrw=write\nbsrange=1k-64k\nsize=1m\ndirectory=/mnt\n",
    "decimal sizes": "[j]\nrw=write\nbs=4kib\nsize=400000\ndirectory=/mnt\nrefill_buffers\n",
    "odd blocks": "[j]\nrw=randwrite\nbs=127k\nsize=4m\ndirectory=/mnt\nrandrepeat=0\n",
    "three files": "[j]\nrw=write\nbs=4k\nsize=1m\nnrfiles=3\ndirectory=/mnt\n",
    "names": "[j]\nrw=write\nbs=4k\nsize=1m\nfilename_format=$jobname-$filenum.dat\ndirectory=/mnt\n"
    "unlink=1\n",
    "stages": "[a]\nrw=write\nsize=1m\ndirectory=/mnt\n[b]\nstonewall\nrw=write\nsize=1m\ndirectory=/mnt\n",
    "waiting": "[a]\nrw=write\nsize=1m\ndirectory=/mnt\n[b]\nwait_for=a\n"
    "rw=write\nsize=1m\ndirectory=/mnt\n",
    "paced": "[j]\nrw=write\nbs=4k\nsize=256k\nrate_iops=200\n"
    "directory=/mnt\nwrite_lat_log=x\nlog_avg_msec=5\n",
    "io_uring": "[j]\nrw=randwrite\nbs=4k\nsize=1m\nioengine=io_uring\niodepth=16\nbuffered=1\n"
    "directory=/mnt\n",
}  # fmt: skip
REFUSED = {
    "[j]\nrw=randrw\nrwmixread=70\nsize=1m\ndirect=1\n": [
        "rw=randrw: is not modelled", "rwmixread=70: is not modelled", "direct=1: is not modelled",
    ],
    "[j]\nrw=write\nsize=1m\nverify=crc32c\nsycn=1\nbs=1.5k\n": [
        "verify=crc32c: is not modelled", "sycn=1: fio has no such option; did you mean sync?",
        "bs=1.5k: fio drops what follows the point",
    ],
}  # fmt: skip


def outcome_of(folder: Path, job_file: str) -> Outcome:
    """Return the outcome of a job file that lies next to a configuration."""
    (folder / "job.fio").write_text(job_file)
    (case,) = parse(CONFIG, str(folder / "x.toml")).cases
    return run_case(case, 1, 0)


@pytest.mark.parametrize("name", RUN)
def test_published_job_file_runs_as_it_is(tmp_path: Path, name: str) -> None:
    """Every byte of its size is written, and no process fails."""
    outcome = outcome_of(tmp_path, RUN[name])
    program = outcome.programs["f"]
    assert program.failed == {}
    assert program.file_bytes > 200_000
    assert program.calls["write"].count > 1


@pytest.mark.parametrize("job_file", REFUSED)
def test_job_file_names_all_that_stops_it_at_once(tmp_path: Path, job_file: str) -> None:
    """Each complaint has its line."""
    with pytest.raises(BadInput) as raised:
        outcome_of(tmp_path, job_file)
    lines = str(raised.value).splitlines()
    assert len(lines) == len(REFUSED[job_file])
    for complaint in REFUSED[job_file]:
        (line,) = [line for line in lines if complaint in line]
        number = job_file.splitlines().index(complaint.partition(":")[0]) + 1
        assert f"job.fio:{number}: {complaint}" in line


def test_times_bound_a_job_that_writes_its_file_again(tmp_path: Path) -> None:
    """A ramp of 1 s and a runtime of 1 s: the file of 2 MiB is written many times."""
    program = outcome_of(tmp_path, RUN["time based"]).programs["f"]
    assert 2 < program.wall_time < 2.5
    assert program.file_bytes > 20 * 2**20


def test_blocks_of_any_size_cover_their_file_once(tmp_path: Path) -> None:
    """100 blocks of 2 300 bytes lie in 57 pages; the last block of a file may be left out."""
    outcome = outcome_of(tmp_path, RUN["log writer"])
    assert outcome.programs["f"].file_bytes == 230_000
    assert outcome.programs["f"].calls["write"].count == 100
    assert outcome.programs["f"].calls["fdatasync"].count == 99


def test_shared_file_is_one_file(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, RUN["one shared file"])
    assert len(outcome.extents) == 1
    assert outcome.programs["f"].file_bytes == 2 * 2**20
