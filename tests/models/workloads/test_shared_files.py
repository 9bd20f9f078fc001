"""The paths of the files of fio and dd: which processes share a file, and which file exists before."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wbsim.models.workloads import dd, fio
from wbsim.models.workloads.spec import plain_path

FIO = "fio --rw=write --size=1m"
PARTS = st.lists(st.sampled_from(["a", "b.0", "..", ".", ""]), min_size=1, max_size=6)


@given(PARTS, st.booleans())
@example(["", "a", ".", "", "b.0"], True)
def test_spellings_of_a_path_are_one(parts: list[str], absolute: bool) -> None:
    """A slash more, /./ and a detour over a parent lead to the same file."""
    path = plain_path("/" * absolute + "/".join(["x", "y", *parts]))
    more = "//" * absolute + ".//".join(["x/", "./y/z/../", *(f"{part}/" for part in parts)])
    assert plain_path(more) == path == plain_path(path)
    assert path == "." or not set(path.removeprefix("/").split("/")) & {"", "."} or path == "/"


def spec_of(more: str, **changes: Any) -> fio.FioSpec:
    """Return the spec of `FIO` with *more* options."""
    fields = fio.parse_command(f"{FIO} {more}")
    return fio.FioSpec.model_validate({**fields, **fio.FioSpec.costs, **changes})


@pytest.mark.parametrize(
    ("more", "paths"),
    [
        ("--name=a", [["a.0.0"]]),
        ("--name=a --nrfiles=3", [["a.0.0", "a.0.1", "a.0.2"]]),
        ("--name=a --numjobs=2 --nrfiles=2", [["a.0.0", "a.0.1"], ["a.1.0", "a.1.1"]]),
        ("--name=a --directory=/d", [["/d/a.0.0"]]),
        ("--name=a --directory=//d/./e/..", [["/d/a.0.0"]]),
        ("--name=a --name=a", [["a.0.0"], ["a.1.0"]]),
        ("--name=a --name=b --name=a", [["a.0.0"], ["b.0.0"], ["a.1.0"]]),
        ("--name=a --directory=/x --name=a --directory=/y", [["/x/a.0.0"], ["/y/a.0.0"]]),
        ("--name=a --directory=/x --name=a --directory=/x/", [["/x/a.0.0"], ["/x/a.1.0"]]),
        ("--name=a --directory=/x:/y --numjobs=3", [["/x/a.0.0"], ["/y/a.0.0"], ["/x/a.1.0"]]),
        ("--name=a --filename=f", [["f"]]),
        ("--name=a --filename=f --numjobs=2", [["f"], ["f"]]),
        ("--filename=f --name=a --name=b", [["f"], ["f"]]),
        ("--name=a --filename=f:g/h", [["f", "g/h"]]),
        ("--name=a --filename=f --directory=/d:/e --numjobs=2", [["/d/f"], ["/e/f"]]),
        ("--name=a --filename=/d/f --name=b --directory=/d --filename=f", [["/d/f"], ["/d/f"]]),
        ("--name=a --filename=/d/f:/e/g", [["/d/f", "/e/g"]]),
        ("--name=a --directory=/x --filename=/d/f:/e", [["/x/d/f", "/x/e"]]),
        ("--name=a --filename_format=$jobname-$jobnum-$filenum.dat --numjobs=2 --nrfiles=2",
         [["a-0-0.dat", "a-0-1.dat"], ["a-1-0.dat", "a-1-1.dat"]]),
        ("--name=a --filename_format=f.$filenum --numjobs=2 --nrfiles=2",
         [["f.0", "f.1"], ["f.0", "f.1"]]),
        ("--name=a --filename_format=f.$filenum --filename=g", [["g"]]),
    ],
)  # fmt: skip
def test_names_of_fio_files_are_those_of_fio(more: str, paths: list[list[str]]) -> None:
    """NAME.CLONE.NUMBER in the directory, or the name that the job gives; equal paths are one file."""
    shells = more.replace("$", "\\$")
    assert spec_of(shells).paths() == paths


def test_job_without_a_name_shares_no_file() -> None:
    """A key of a configuration may add processes to the two of the command."""
    spec = spec_of("--name=a --name=b", numjobs=4)
    assert spec.paths() == [["a.0.0"], ["b.0.0"], [], []]


def test_more_jobs_of_one_name_are_clones() -> None:
    """numjobs=3 instead of the command's 1: the files of all jobs exist before the run."""
    spec = spec_of("--name=a --overwrite=1", numjobs=3)
    assert spec.paths() == [["a.0.0"], ["a.1.0"], ["a.2.0"]]
    assert [path for path, _ in spec.overwrites()] == ["a.0.0", "a.1.0", "a.2.0"]
    with pytest.raises(ValueError, match="job 2 has no name, so it has no files; give it a name"):
        spec_of("--overwrite=1 --name=a --name=b", numjobs=3)


def test_as_many_names_as_files_are_given() -> None:
    """Without nrfiles, the names count; another number is refused."""
    assert spec_of("--name=a --filename=f:g:h").of_job("nrfiles", 0) == 3
    assert spec_of("--name=a --filename=f:g:h").of_job("filesize", 0) == (1 << 20) // 3
    with pytest.raises(ValueError, match="2 names for 3 files; give as many"):
        spec_of("--name=a --filename=f:g --nrfiles=3")


def test_overwritten_files_exist_before_the_run() -> None:
    """Only files of jobs with overwrite=1 do, each with its size."""
    more = "--nrfiles=2 --name=a --overwrite=1 --name=b --name=c --overwrite=1 --filename=/x --nrfiles=1"
    assert list(spec_of(more).overwrites()) == [
        ("a.0.0", 1 << 19), ("a.0.1", 1 << 19), ("/x", 1 << 20),
    ]  # fmt: skip
    assert list(spec_of("--name=a").overwrites()) == []


def dds(*files: str, **changes: Any) -> list[list[str]]:
    """Return the paths of the streams that write *files*."""
    fields = dd.parse_commands([f"dd if=/dev/zero of={file} bs=1M count=1" for file in files])
    spec = dd.DdSpec.model_validate({**fields, **dd.DdSpec.costs, **changes})
    return [spec.paths_of(number) for number in range(spec.streams)]


@pytest.mark.parametrize(
    ("files", "changes", "paths"),
    [
        (("/d/f",), {}, [["/d/f"]]),
        (("f",), {}, [["f"]]),
        (("f", "./f", "x/../f"), {}, [["f"], ["f"], ["f"]]),
        (("/d/f", "/d/g"), {}, [["/d/f"], ["/d/g"]]),
        (("/d/f", "/e/f"), {}, [["/d/f"], ["/e/f"]]),
        (("/d/f", "/e/g", "/d/g"), {}, [["/d/f"], ["/e/g"], ["/d/g"]]),
        (("/d/f",), {"streams": 3}, [["/d/f"], [], []]),
        (("/d/f", "/e/f"), {"directories": ("/x",)}, [["/x/f"], ["/x/f"]]),
        (("/f",), {}, [["/f"]]),
    ],
)
def test_each_dd_writes_its_named_file(
    files: tuple[str, ...], changes: dict[str, Any], paths: list[list[str]]
) -> None:
    """A stream that a key adds has another file."""
    assert dds(*files, **changes) == paths
