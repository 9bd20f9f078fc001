"""The command lines of dd, fio and fs_mark."""

from __future__ import annotations

from pathlib import Path

import pytest

from wbsim.models.workloads import dd, fio, fs_mark
from wbsim.models.workloads.command_line import CommandError
from wbsim.sim.param import Inputs
from wbsim.sim.units import MIB


def test_dd_command_lines_become_fields() -> None:
    """The suffixes are those of dd: k is 1024, and kB is 1000."""
    same = dd.parse_commands([f"dd if=/dev/zero of=/mnt/t{i} bs=1024k count=10" for i in range(2)])
    assert same == {
        "kind": "dd",
        "streams": 2,
        "directories": ["/mnt"],
        "bs": MIB,
        "count": 10,
        "seek": 0,
        "keeps": False,
        "appends": False,
        "sync": "",
        "at_end": "",
        "ignored": [],
        "names": ["t0", "t1"],
    }
    assert dd.parse_commands(["dd if=/dev/zero of=a/t bs=8kB count=1"])["bs"] == 8_000


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        (
            "dd if=/dev/zero of=a count=1 conv=fsync,ucase",
            "^conv=ucase is not modelled; use fsync, fdatasync, notrunc, noerror, or leave it out$",
        ),
        (
            "dd if=/dev/zero of=a count=1 oflag=direct",
            "^oflag=direct is not modelled: it writes around the page cache, and writeback is about",
        ),
        ("dd of=a count=1", "if=/dev/zero"),
        ("dd if=/dev/zero of=a bs=1q count=1", "'1q' is not a number for dd"),
        ("cp a b", "is not a dd command"),
        ("", "is not a dd command"),
    ],
)
def test_bad_dd_lines_name_the_remedy(line: str, hint: str) -> None:
    """An option that is not modelled is refused."""
    with pytest.raises(CommandError, match=hint):
        dd.parse_commands([line])


FIO = "fio --rw=randwrite --bs=4k --create_on_open=1 --fallocate=none"
NEITHER_GIVEN: Inputs = {
    "ignored": [], "create_on_open": True, "fallocate": "none", "overwrite": False, "file_append": False,
    "fsync": 0, "fdatasync": 0, "sync": "", "filename": "", "filename_format": "", "bs_max": None,
    "io_size": None, "loops": 1, "runtime": 0, "ramp_time": 0, "time_based": False, "norandommap": False,
    "rate_iops": None, "wait_for": "", "unlink": False,
}  # fmt: skip
"""Further fields of `FIO`."""


def test_fio_command_line_becomes_jobs() -> None:
    """Each --name begins a job.  Jobs have a directory each or one for all, and files share --size."""
    line = f"{FIO} --nrfiles=4 --size=1g --name=a --directory=/d/a --name=b --directory=/d/b"
    assert fio.parse_command(line) == {
        "kind": "fio", "rw": "randwrite", "bs": 4_096, "numjobs": 2, "directories": ["/d/a", "/d/b"],
        "names": ["a", "b"], "nrfiles": 4, "filesize": 256 * MIB, "thinktime": 0, "thinktime_blocks": 1,
        "startdelay": 0, "rate": None, "stonewall": False, "end_fsync": False, "fsync_on_close": False,
        "ioengine": "psync", "iodepth": 1, **NEITHER_GIVEN,
    }  # fmt: skip
    assert fio.parse_command(f"{FIO} --filesize=64M --numjobs=3 --name=a")["directories"] == ["."]
    mixed = fio.parse_command(f"{FIO} --filesize=64M --name=a --name=b --rw=write")
    assert (mixed["rw"], mixed["numjobs"]) == (["randwrite", "write"], 2)


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        (" --name=a", "the size is missing; give size or filesize"),
        (" --size=1m", "no job"),
        (
            " --size=1m --direct=1 --name=a",
            "^direct=1: is not modelled: direct=1 writes around the page cache",
        ),
        (" --size=1x --name=a", "is not a size for fio"),
        (
            " --size=1m --verify=md5 --name=a",
            "^verify=md5: is not modelled: it reads what was written$",
        ),
        (
            " --size=1m --name=a job.fio",
            "jobs of the command line and job files are two runs; give one of them",
        ),
        (" --size=1m --name=a --thinktime=1.5ms", r"^thinktime=1\.5ms: is not a time for fio"),
        (" --size=1m --name=a --startdelay=2w", "the default unit is s"),
        (" --size=1m --name='a", "No closing quotation"),
        (" --size=1m --filesize=4m --name=a", "partly empty"),
        (" --size=1m --nrfiles=0 --name=a", "at least 1"),
    ],
)
def test_bad_fio_lines_name_the_remedy(change: str, hint: str) -> None:
    """The error names the option that is missing, unknown or not modelled."""
    with pytest.raises(CommandError, match=hint):
        fio.parse_command(FIO + change)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4_096), ("1k", 1_024), ("1K", 1_024), ("3M", 3 << 20), ("2G", 2 << 30), ("1kB", 1_000),
        ("1MB", 10**6), ("1GB", 10**9),
    ],
)  # fmt: skip
def test_dd_suffixes_are_powers_of_1024_or_1000(text: str, size: int) -> None:
    """A suffix is a power of 1024, and with a B a power of 1000."""
    assert dd.parse_commands([f"dd if=/dev/zero of=a bs={text} count={text}"])["bs"] == size
    assert dd.parse_commands([f"dd if=/dev/zero of=a count={text}"])["count"] == size
    assert dd.parse_commands(["dd if=/dev/zero of=a count=1"])["bs"] == 512


@pytest.mark.parametrize(
    ("text", "size"),
    [("4096", 4_096), ("4k", 4_096), ("2M", 2 << 20), ("1g", 1 << 30), ("1T", 1 << 40), ("1kb", 1_024)],
)
def test_fio_suffixes_are_powers_of_1024(text: str, size: int) -> None:
    """The case of a suffix does not matter."""
    assert fio.parse_command(f"{FIO} --filesize={text} --name=a")["filesize"] == size


def test_several_dds_differ_only_in_their_files() -> None:
    """The streams have a directory each or one for all, and may share a file."""
    line = "dd if=/dev/zero of=/{}/t bs=4k count={}"
    assert dd.parse_commands([line.format("a", 1), line.format("b", 1)])["directories"] == ["/a", "/b"]
    with pytest.raises(CommandError, match="the streams differ in more than of=; give all the same, or a"):
        dd.parse_commands([line.format("a", 1), line.format("b", 2)])
    given = {"directories": ("/a",), "streams": 1, "count": 1, "zero_page_time": 0, "fork_time": 0}
    with pytest.raises(ValueError, match="Input should be greater than 0"):
        dd.DdSpec.model_validate({**given, "bs": 0})
    with pytest.raises(ValueError, match="4000 B that are appended must be whole pages or divide one"):
        dd.DdSpec.model_validate({**given, "bs": 4_000, "appends": True})
    with pytest.raises(ValueError, match="3 blocks of 2048 B end inside a page; give a multiple of 4096 B"):
        dd.DdSpec.model_validate({**given, "bs": 2_048, "seek": 3})
    for fields in ({"bs": 4_000}, {"bs": 2_048, "appends": True}, {"bs": 2_048, "seek": 4}):
        dd.DdSpec.model_validate({**given, **fields})
    with pytest.raises(ValueError, match="2 directories for 3 streams; give 1 or 3"):
        dd.DdSpec(directories=("/a", "/b"), streams=3, bs=4_096, count=1, zero_page_time=0, fork_time=0)


def test_dd_syncs_with_conv_fsync_or_fdatasync() -> None:
    """All streams have the same conv."""
    line = "dd if=/dev/zero of=/a/t bs=1M count=4"
    for more in ("", "fsync", "fdatasync"):
        assert dd.parse_commands([f"{line} conv={more}"])["at_end"] == more
    assert dd.parse_commands([f"{line} conv=fdatasync,notrunc,fsync"])["at_end"] == "fsync"
    with pytest.raises(CommandError, match="the streams differ in more than of="):
        dd.parse_commands([line, line.replace("/a/", "/b/") + " conv=fsync"])


def test_each_job_of_fio_may_have_its_own_options() -> None:
    """A time without a unit has the unit of its option."""
    fields = fio.parse_command(
        f"{FIO} --size=1m --name=a --name=b --bs=64k --thinktime=20 --thinktime_blocks=3 --startdelay=2"
        " --rate=1m --name=c --stonewall --numjobs=2 --nrfiles=4 --end_fsync=1 --thinktime=5ms"
        " --ioengine=io_uring --iodepth=8"
    )
    assert fields == {
        "kind": "fio", "rw": "randwrite", "bs": [4_096, 65_536, 4_096, 4_096], "numjobs": 4,
        "directories": ["."], "nrfiles": [1, 1, 4, 4], "filesize": [MIB, MIB, MIB // 4, MIB // 4],
        "thinktime": [0, 20_000, 5_000_000, 5_000_000], "thinktime_blocks": [1, 3, 1, 1],
        "startdelay": [0, 2_000_000_000, 0, 0], "rate": [None, MIB, None, None],
        "stonewall": [False, False, True, False], "end_fsync": [False, False, True, True],
        "fsync_on_close": False, "names": ["a", "b", "c", "c"],
        "ioengine": ["psync", "psync", "io_uring", "io_uring"], "iodepth": [1, 1, 8, 8], **NEITHER_GIVEN,
    }  # fmt: skip
    spec = fio.FioSpec.model_validate(
        {
            **fields,
            "app_time": 0,
            "fork_time": 0,
            "start_time": 0,
            "idle_time": 0,
            "spin_time": 0,
        }
    )
    assert list(spec.makes()) == [(".", 1, MIB), (".", 1, MIB), (".", 4, MIB // 4), (".", 4, MIB // 4)]
    assert (spec.total_files, spec.total_bytes) == (10, 4 * MIB)
    with pytest.raises(ValueError, match="2 values for 3 jobs; give 1 or 3"):
        fio.FioSpec.model_validate({**spec.inputs(), "numjobs": 3, "bs": [4_096, 8_192]})
    with pytest.raises(ValueError, match="0 B is too small; give at least a byte"):
        fio.FioSpec.model_validate({**spec.inputs(), "bs": 0})
    for bs in (3_000, 6_144):
        with pytest.raises(ValueError, match="with io_uring blocks must be whole pages or divide one"):
            fio.FioSpec.model_validate({**spec.inputs(), "bs": bs})
        fio.FioSpec.model_validate({**spec.inputs(), "bs": bs, "ioengine": "psync"})


JOBS = """\
; one job after another
[global]
rw=write
size = ${MUCH}
create_on_open=1
fallocate=none
[first]
directory=/a
group_reporting
[global]
bs=8k
[second]
# its own
stonewall
directory=/b
"""


def test_fio_reads_a_job_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A [global] section holds for the jobs below it.

    A flag without a value is true, and variables come from the environment.
    """
    monkeypatch.setenv("MUCH", "2m")
    path = tmp_path / "jobs.fio"
    path.write_text(JOBS)
    fields = fio.parse_command(f"fio {path}")
    assert (fields["bs"], fields["directories"], fields["stonewall"]) == (
        [4_096, 8_192], ["/a", "/b"], [False, True],
    )  # fmt: skip
    assert (fields["rw"], fields["filesize"], fields["numjobs"]) == ("write", 2 * MIB, 2)
    path.write_text(JOBS.replace("create_on_open=1", "create_on_open"))
    with pytest.raises(
        CommandError, match=r"jobs\.fio:5: create_on_open: a value is missing; write create_on_open=VALUE$"
    ):
        fio.parse_command(f"fio {path}")
    path.write_text("rw=write\n[a]\n")
    with pytest.raises(CommandError, match=r"jobs\.fio:1: 'rw=write' is before the first section"):
        fio.parse_command(f"fio {path}")
    path.write_text("[global]\nrw=write\n")
    with pytest.raises(CommandError, match="the command has no job"):
        fio.parse_command(f"fio {path}")
    with pytest.raises(
        CommandError, match=r"none\.fio cannot be read: No such file or directory; give a readable text file"
    ):
        fio.parse_command("fio none.fio")


def test_options_before_the_first_name_hold_for_all_jobs() -> None:
    """Options behind a --name hold for that job alone.  --numjobs runs a job several times."""
    line = f"{FIO} --filesize=1m --numjobs=2 --name=a --directory=/a --name=b --directory=/b --rw=write"
    fields = fio.parse_command(line)
    assert fields["rw"] == ["randwrite", "randwrite", "write", "write"]
    assert fields["directories"] == ["/a", "/a", "/b", "/b"]
    assert (fields["numjobs"], fields["nrfiles"]) == (4, 1)
    assert fio.parse_command(f"{FIO} --filesize=1m --size=2m --nrfiles=2 --name=a")["filesize"] == 1 << 20
    assert fio.parse_command(f"{FIO} --readwrite=write --filesize=1m --name=a")["rw"] == "write"
    with pytest.raises(CommandError, match="'cp a b' is not a fio command; begin with fio"):
        fio.parse_command("cp a b")
    with pytest.raises(ValueError, match="4095 B are less than a block of 4096 B; give at least a block"):
        fio.FioSpec(
            rw="write",
            numjobs=1,
            directories=("/a",),
            nrfiles=1,
            filesize=4_095,
            app_time=0,
            fork_time=0,
            start_time=0,
            idle_time=0,
            spin_time=0,
        )


def test_fs_mark_has_the_defaults_of_the_tool() -> None:
    """The default is one loop of 1000 files of 51 200 bytes, in writes of 16 384 bytes.

    -t counts if it is more than the number of directories.
    """
    fields = fs_mark.parse_command("fs_mark -S0 -k -d a -d b -t 4")
    assert fields == {
        "kind": "fs_mark", "processes": 4, "directories": ["a", "b"], "files": 1_000, "file_size": 51_200,
        "write_size": 16_384, "loops": 1, "subdirs": 0, "per_subdir": 0,
        "sync_method": 0, "ignored": ["-k"],
    }  # fmt: skip
    every = fs_mark.parse_command("fs_mark -S0 -L 2 -n 3 -s 4 -w 5 -D 6 -N 7 -p 8 -r 9 -l log -v -d a")
    assert every["ignored"] == ["-v", "-l", "-p"]
    names = ("loops", "files", "file_size", "write_size", "subdirs", "per_subdir")
    assert [every[name] for name in names] == [2, 3, 4, 5, 6, 7]
    with pytest.raises(CommandError, match="-F is not modelled: it runs until no room is left; use -L"):
        fs_mark.parse_command("fs_mark -S0 -L 2 -F -d a")
    for processes, hint in ((3, "3 processes are not a multiple of 2 directories"), (66, "give at most 64")):
        with pytest.raises(ValueError, match=hint):
            fs_mark.FsMarkSpec.model_validate({**fields, "processes": processes, **fs_mark.FsMarkSpec.costs})
    spec = fs_mark.FsMarkSpec.model_validate({**fields, "processes": 64, **fs_mark.FsMarkSpec.costs})
    assert (spec.total_files, spec.bytes_each) == (64_000, 51_200)
