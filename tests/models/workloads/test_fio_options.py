"""The options of fio's jobs: how their values are read, which follow from others, and which stop a job."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wbsim.models.workloads.command_line import CommandError
from wbsim.models.workloads.fio import FioSpec, _blocks, parse_command
from wbsim.models.workloads.fio_options import DROPPED, ONLY, REFUSED, jobs_of
from wbsim.sim.units import KIB, MIB, MS, US, S

FIO = "fio --name=a --rw=write"


def job(more: str) -> dict[str, Any]:
    """Return the options of a job of 1 MiB with *more* options."""
    ((options,), _) = jobs_of(f"{FIO} --size=1m {more}")
    return options


def complaints(line: str) -> list[str]:
    """Return what is wrong with a *line*."""
    with pytest.raises(CommandError) as refusal:
        jobs_of(line)
    return list(refusal.value.complaints)


def complaint(more: str) -> str:
    """Return the only thing that is wrong with *more* options."""
    (message,) = complaints(f"{FIO} --size=1m {more}")
    return message


# -- numbers


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1), ("4096", 4_096), ("4b", 4), ("4k", 4_096), ("4K", 4_096), ("4kb", 4_096), ("4KB", 4_096),
        ("4kib", 4_000), ("4KiB", 4_000), ("4ki", 4_096), ("3m", 3 * MIB), ("3mb", 3 * MIB),
        ("3mib", 3_000_000), ("2g", 2 << 30), ("2gib", 2 * 10**9), ("1t", 1 << 40), ("1tib", 10**12),
        ("1p", 1 << 50), ("1pib", 10**15),
    ],
)  # fmt: skip
def test_units_of_the_standard_are_turned_round(text: str, size: int) -> None:
    """4k and 4kb are 4 096 B, and 4kib is 4 000 B, because kb_base is 1024."""
    assert job(f"--bs={text}")["bs"] == size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4k,8k", 8_192),
        ("4k,8k,16k", 8_192),
        (",8k", 8_192),
        ("4k,", 4_096),
        ("4k,,16k", 4_096),
        ("4k", 4_096),
    ],
)
def test_value_for_writes_counts_in_a_list(text: str, size: int) -> None:
    """A list has the values for reads, writes and trims; a missing one is that for reads."""
    assert job(f"--bs={text}")["bs"] == size
    assert job(f"--rate={text}")["rate"] == size


@pytest.mark.parametrize("option", ["bs", "rate", "io_size", "filesize", "fsync"])
def test_point_in_a_size_is_refused(option: str) -> None:
    """Fio would drop what follows the point."""
    assert complaint(f"--{option}=1.5k") == (
        f"{option}=1.5k: fio drops what follows the point; write a whole number, such as 1536m for 1.5g"
    )


@pytest.mark.parametrize("text", ["", "k", "4x", "-4k", "+4k", "0x10", "4 k", "4kk", "4bk", "1" * 19])
def test_other_words_are_no_sizes(text: str) -> None:
    assert complaint(f"'--bs={text}'") == f"bs={text}: is not a size for fio; write one such as 4k, 64m or 1g"


def test_percentage_needs_a_file_that_exists() -> None:
    assert complaint("--io_size=50%") == (
        "io_size=50%: is not modelled: a percentage follows a file or a disk that exists; write the size"
    )


@pytest.mark.parametrize(
    "option",
    ["bs", "nrfiles", "numjobs", "filesize", "size", "io_size", "loops", "thinktime_blocks", "iodepth"],
)
def test_number_of_things_is_at_least_one(option: str) -> None:
    assert complaints(f"{FIO} --size=1m --{option}=0") == [f"{option}=0: is too small; give at least 1"]
    assert job(f"--{option}=1" if option not in ("size", "filesize") else "--nrfiles=1")


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("4k-64k", (4_096, 65_536)), ("64k-4k", (4_096, 65_536)), ("4k:64k", (4_096, 65_536)),
        ("1-1", (1, 1)), ("4k-8k,16k-32k", (16_384, 32_768)), ("4kib-8k", (4_000, 8_192)),
    ],
)  # fmt: skip
def test_range_has_two_ends(text: str, ends: tuple[int, int]) -> None:
    """In any order; of a list, the range for writes counts."""
    options = job(f"--bsrange={text}")
    assert (options["bs"], options["bs_max"]) == ends
    assert "bsrange" not in options


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("4k", "is not a range for fio; write one such as 4k-64k"),
        ("4k-8k-16k", "is not a range for fio; write one such as 4k-64k"),
        ("0-4k", "is too small; give at least 1"),
        ("4k-x", "is not a size for fio; write one such as 4k, 64m or 1g"),
    ],
)
def test_other_words_are_no_ranges(text: str, why: str) -> None:
    assert complaint(f"--bsrange={text}") == f"bsrange={text}: {why}"


@pytest.mark.parametrize(
    ("text", "us", "s"),
    [
        ("7", 7 * US, 7 * S), ("7us", 7 * US, 7 * US), ("7usec", 7 * US, 7 * US), ("7ms", 7 * MS, 7 * MS),
        ("7MSEC", 7 * MS, 7 * MS), ("7s", 7 * S, 7 * S), ("7m", 420 * S, 420 * S), ("7M", 420 * S, 420 * S),
        ("2h", 7_200 * S, 7_200 * S), ("1d", 86_400 * S, 86_400 * S), ("0", 0, 0),
    ],
)  # fmt: skip
def test_time_without_a_unit_has_its_option_s(text: str, us: int, s: int) -> None:
    """thinktime is in microseconds, and the other times are in seconds."""
    options = job(f"--thinktime={text} --startdelay={text} --runtime={text} --ramp_time={text}")
    assert options["thinktime"] == us
    assert (options["startdelay"], options["runtime"], options["ramp_time"]) == (s, s, s)


@pytest.mark.parametrize("text", ["", "1.5", "2w", "-1", "s", "1,2"])
def test_other_words_are_no_times(text: str) -> None:
    for option, unit in (("thinktime", "us"), ("runtime", "s")):
        assert complaint(f"--{option}={text}") == (
            f"{option}={text}: is not a time for fio; write one such as 20ms or 2s;"
            f" the default unit is {unit}"
        )


@pytest.mark.parametrize(("text", "flag"), [("0", False), ("1", True), ("00", False), ("5", True)])
def test_number_that_is_not_zero_sets_a_flag(text: str, flag: bool) -> None:
    for option in ("overwrite", "create_on_open", "end_fsync", "fsync_on_close", "unlink", "file_append"):
        assert job(f"--{option}={text}")[option] is flag
    for word in ("yes", "-1", ""):
        assert complaint(f"--unlink={word}") == f"unlink={word}: is not a flag; give 0 or 1"


@pytest.mark.parametrize("flag", ["stonewall", "norandommap", "time_based"])
def test_flag_alone_is_set(flag: str) -> None:
    options = job(f"--runtime=1 --{flag}")
    assert options[flag] is True
    assert job(f"--runtime=1 --{flag}=0")[flag] is False


# -- words


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("fallocate", {"native": "native", "none": "none", "posix": "native", "keep": "keep",
                       "truncate": "truncate", "0": "none", "1": "native"}),
        ("sync", {"none": "", "0": "", "sync": "O_SYNC", "1": "O_SYNC", "dsync": "O_DSYNC"}),
        ("ioengine", {"sync": "psync", "psync": "psync", "vsync": "psync", "pvsync": "psync",
                      "pvsync2": "psync", "libaio": "libaio", "io_uring": "io_uring"}),
        ("rw", {"write": "write", "randwrite": "randwrite"}),
    ],
)  # fmt: skip
def test_words_stand_for_the_model_s_values(option: str, values: dict[str, str]) -> None:
    for word, value in values.items():
        assert job(f"--{option}={word}")[option] == value


@pytest.mark.parametrize(
    ("option_text", "why"),
    [
        ("fallocate=all", "is no value of the option; give one of native, none, posix, keep, truncate, 0, 1"),
        ("sync=2", "is no value of the option; give one of none, 0, sync, 1, dsync"),
        ("ioengine=mmap", "is not modelled: buffered writes go through write(2), libaio or io_uring here;"
         " give psync"),
        ("rw=read", "is not modelled, because it reads; reads of file data have no model"),
        ("rw=randrw", "is not modelled, because it reads; reads of file data have no model"),
        ("rw=readwrite:8", "is not modelled, because it reads; reads of file data have no model"),
        ("rw=trimwrite", "is not modelled, because it trims, which only raw devices do"),
        ("rw=randwrite:8", "is not modelled: a number of blocks before the next random place; leave it out"),
        ("rw=writes", "is no value of rw; give write or randwrite"),
        ("filename=/dev/sdb", "is not modelled: the page cache of a device without a filesystem has no"
         " model"),
        ("filename_format=", "has no printable text; write a name"),
    ],
)  # fmt: skip
def test_word_without_a_model_says_why(option_text: str, why: str) -> None:
    assert complaint(f"'--{option_text}'") == f"{option_text}: {why}"


@pytest.mark.parametrize(
    ("alias", "name", "value"),
    [
        ("readwrite=randwrite", "rw", "randwrite"), ("blocksize=8k", "bs", 8_192),
        ("nr_files=4", "nrfiles", 4),
        ("timeout=3", "runtime", 3 * S), ("wait_for_previous", "stonewall", True),
        ("io_limit=8k", "io_size", 8_192),
    ],
)  # fmt: skip
def test_alias_is_the_same_option(alias: str, name: str, value: object) -> None:
    assert job(f"--{alias} --group_reporting")[name] == value


def test_later_value_of_an_option_counts() -> None:
    """Through an alias, too."""
    assert job("--bs=4k --blocksize=8k --bs=16k")["bs"] == 16_384
    assert job("--bs=16k --blocksize=8k")["bs"] == 8_192


def test_job_has_the_defaults_of_fio() -> None:
    """4 KiB blocks, one file, native fallocate(2), files that fio makes, and one write in flight."""
    options = job("")
    assert {name: value for name, value in options.items() if value not in (0, "", None)} == {
        "name": "a", "rw": "write", "bs": 4_096, "directory": ".", "nrfiles": 1, "numjobs": 1,
        "filesize": MIB,
        "fallocate": "native", "ioengine": "psync", "iodepth": 1, "thinktime_blocks": 1, "loops": 1,
    }  # fmt: skip


# -- options that follow from each other


@pytest.mark.parametrize(
    ("more", "filesize"),
    [
        ("--size=1m", MIB), ("--size=1m --nrfiles=4", 256 * KIB), ("--size=10 --nrfiles=3 --bs=1", 3),
        ("--filesize=1m --nrfiles=4", MIB), ("--filesize=1m --nrfiles=4 --size=4m", MIB),
        ("--size=1m --filename=x:y", 512 * KIB),
    ],
)  # fmt: skip
def test_files_share_the_size_of_their_job(more: str, filesize: int) -> None:
    (options,), _ = jobs_of(f"{FIO} {more}")
    assert options["filesize"] == filesize
    assert "size" not in options


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "fio --name=a --size=1m",
            "rw is missing, and fio's default is to read; write rw=write or rw=randwrite",
        ),
        (FIO, "the size is missing; give size or filesize"),
        (
            f"{FIO} --size=2 --nrfiles=3 --bs=1",
            "size: 2 B are less than a byte for each of nrfiles; give more",
        ),
        (
            f"{FIO} --filesize=1m --nrfiles=4 --size=1m",
            "size: 1048576 B, but partly empty files are not modelled; give 4194304 B, which is nrfiles times"
            " filesize",
        ),
        (f"{FIO} --size=1m --time_based", "time_based: fio refuses it without a runtime; give runtime"),
        (
            f"{FIO} --size=1m --wait_for=b",
            "wait_for=b: no job before this one has the name; name an earlier job",
        ),
        (
            f"{FIO} --size=1m --wait_for=a",
            "wait_for=a: no job before this one has the name; name an earlier job",
        ),
        ("fio --rw=write", "the command has no job; give --name, or a section in a job file"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(line: str, message: str) -> None:
    assert complaints(line) == [message]


def test_job_waits_for_an_earlier_one_by_its_name() -> None:
    """Not for a later one."""
    line = "fio --rw=write --size=1m --name=a --name=b --wait_for=a"
    assert [options["wait_for"] for options in jobs_of(line)[0]] == ["", "a"]
    assert complaints(f"{line} --name=c --name=d --wait_for=e --name=e") == [
        "wait_for=e: no job before this one has the name; name an earlier job",
    ]


def test_all_that_stops_a_command_is_said_at_once() -> None:
    """In the order of the options, once for each text; what a faulty value would give is not missed."""
    line = "fio --direct=1 --size=x --name=a --rw=read --bs=1.5k --time_based --runtime=y --name=b --rw=write"
    assert complaints(line) == [
        "direct=1: is not modelled: direct=1 writes around the page cache, and writeback is about the cache",
        "size=x: is not a size for fio; write one such as 4k, 64m or 1g",
        "rw=read: is not modelled, because it reads; reads of file data have no model",
        "bs=1.5k: fio drops what follows the point; write a whole number, such as 1536m for 1.5g",
        "runtime=y: is not a time for fio; write one such as 20ms or 2s; the default unit is s",
    ]


# -- options without effect, and refused ones


@pytest.mark.parametrize("option", sorted(DROPPED - {"thread"}))
def test_option_without_effect_is_dropped_and_named(option: str) -> None:
    (options,), dropped = jobs_of(f"{FIO} --size=1m --{option}=1")
    assert option not in options
    assert option in [text.partition("=")[0] for text in dropped] or dropped == [option]


@pytest.mark.parametrize(
    "option", ["log_avg_msec", "write_bw_log", "write_lat_log", "disable_clat", "verify_dump"]
)
def test_options_of_logs_are_dropped_by_their_beginning(option: str) -> None:
    assert jobs_of(f"{FIO} --size=1m --{option}=7")[1] == [f"{option}=7"]


@pytest.mark.parametrize("option", sorted(ONLY))
def test_option_is_dropped_with_some_values_only(option: str) -> None:
    """Another value is refused, and the reason is given."""
    values, why = ONLY[option]
    for value in values:
        assert jobs_of(f"{FIO} --size=1m --{option}={value}")[1] == [f"{option}={value}"]
    assert complaint(f"--{option}=zz") == f"{option}=zz: is not modelled: {why}"


def test_flag_alone_has_the_value_1() -> None:
    """bs_unaligned=0 has no effect, and bs_unaligned does what bs_unaligned=1 does."""
    assert jobs_of(f"{FIO} --size=1m --bs_unaligned=0")[1] == ["bs_unaligned=0"]
    assert complaint("--bs_unaligned") == f"bs_unaligned: is not modelled: {ONLY['bs_unaligned'][1]}"


@pytest.mark.parametrize("option", sorted(REFUSED))
def test_refused_option_says_why(option: str) -> None:
    assert complaint(f"--{option}=1") == f"{option}=1: is not modelled: {REFUSED[option]}"


def test_dropped_options_are_named_once() -> None:
    """The options of the report come first."""
    line = "fio --minimal --randrepeat=0 --rw=write --size=1m --name=a --mem=malloc --name=b --mem=malloc"
    assert jobs_of(line)[1] == ["minimal", "randrepeat=0", "mem=malloc"]
    assert parse_command(line)["ignored"] == ["minimal", "randrepeat=0", "mem=malloc"]


def test_only_the_first_clone_waits_for_earlier_jobs() -> None:
    """The others begin with it, behind the same jobs."""
    line = (
        "fio --rw=write --size=1m --name=a --numjobs=2 --stonewall --name=b --numjobs=3 --stonewall --name=c"
    )
    assert parse_command(line)["stonewall"] == [True, False, True, False, False, False]


# -- the blocks of a file


def blocks(size: int, low: int, high: int, **how: bool) -> tuple[list[int], list[int]]:
    """Return the places and the sizes of the blocks of a file of *size* bytes."""
    chunk = _blocks(np.random.default_rng(1), size, low, high, **{"random": False, "maps": True, **how})
    return chunk.places.tolist(), chunk.sizes.tolist()


def test_blocks_in_order_follow_each_other() -> None:
    """The rest of the file, which is shorter than a block, is left out."""
    assert blocks(10_000, 3_000, 3_000) == ([0, 3_000, 6_000], [3_000] * 3)
    assert blocks(9_000, 3_000, 3_000) == ([0, 3_000, 6_000], [3_000] * 3)
    assert blocks(3_000, 3_000, 3_000) == ([0], [3_000])


def test_sizes_of_a_range_are_multiples_of_its_least() -> None:
    """Each is as likely as any other, and no block ends behind the file."""
    places, sizes = blocks(40_000_000, 1_000, 4_500)
    assert places == [0, *np.cumsum(sizes)[:-1].tolist()]
    assert 40_000_000 - 4_000 < places[-1] + sizes[-1] <= 40_000_000
    counts = {size: sizes.count(size) for size in set(sizes)}
    assert counts.keys() == {1_000, 2_000, 3_000, 4_000}
    assert all(abs(count - len(sizes) / 4) < 5 * np.sqrt(len(sizes) * 3 / 16) for count in counts.values())


def test_random_blocks_lie_at_multiples_of_the_least() -> None:
    """The map has each place once; without it, a place may come again."""
    places, sizes = blocks(1_000_000, 1_000, 1_000, random=True)
    assert sorted(places) == list(range(0, 1_000_000, 1_000)) != places
    assert sizes == [1_000] * 1_000
    again, _ = blocks(1_000_000, 1_000, 1_000, random=True, maps=False)
    assert len(again) == 1_000
    assert len(set(again)) == pytest.approx(1_000 * (1 - 1 / np.e), abs=60)
    assert {place % 1_000 for place in again} == {0}


def test_random_block_ends_with_its_file() -> None:
    """The file of 2 500 bytes has two places; a block of up to 3 000 at the second has 1 500 at most."""
    for seed in range(20):
        chunk = _blocks(np.random.default_rng(seed), 2_500, 1_000, 3_000, random=True, maps=False)
        assert set(chunk.places.tolist()) <= {0, 1_000}
        assert all(chunk.places + chunk.sizes <= 2_500)


# -- checks of a spec


def refusal(more: str, **changes: object) -> str:
    """Return why a spec of *more* options with *changes* is refused; "" if it is not."""
    try:
        FioSpec.model_validate({**parse_command(f"{FIO} --size=1m {more}"), **FioSpec.costs, **changes})
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--bs=8m", "1048576 B are less than a block of 8388608 B; give at least a block"),
        ("--bsrange=4k-2m", "1048576 B are less than a block of 2097152 B; give at least a block"),
        ("--fsync=1 --fdatasync=1", "fio calls fsync(2) or fdatasync(2), not both; give one of them"),
        ("--rate=1m --rate_iops=5", "a job has one rate; give rate or rate_iops"),
        ("--bs=3000 --file_append=1", "with file_append blocks must be whole pages or divide one"),
        ("--bs=3000 --ioengine=io_uring", "with io_uring blocks must be whole pages or divide one"),
        ("--norandommap --file_append=1", "with file_append norandommap is not modelled; leave it out"),
        (
            "--bsrange=4k-8k --ioengine=io_uring",
            "with io_uring a range of sizes (bsrange) is not modelled; give bs",
        ),
    ],
)
def test_impossible_job_is_refused(more: str, message: str) -> None:
    assert message in refusal(more)


@pytest.mark.parametrize(
    "more",
    ["--bs=1m", "--bsrange=4k-1m", "--bs=3000", "--fsync=1", "--rate=1", "--rate_iops=1",
     "--bs=512 --file_append=1",
     "--bs=64k --ioengine=io_uring"],
)  # fmt: skip
def test_job_at_its_bounds_is_accepted(more: str) -> None:
    assert refusal(more) == ""


@pytest.mark.parametrize(
    ("more", "fits"),
    [
        ("--bs=4k", True), ("--bs=512", True), ("--bs=64k", True), ("--bs=3000", False), ("--bs=6k", False),
        ("--bsrange=4k-8k", False), ("--norandommap", False), ("--bs=4k --size=10000", False),
        ("--bs=64k --size=100k", False), ("--bs=512 --size=4608", False),
    ],
)  # fmt: skip
def test_blocks_fit_if_they_divide_pages_and_file(more: str, fits: bool) -> None:
    spec = FioSpec.model_validate({**parse_command(f"{FIO} --size=1m {more}"), **FioSpec.costs})
    assert spec.fits(0) is fits


@pytest.mark.parametrize("option", ["rate", "rate_iops"])
def test_rate_of_zero_is_no_limit(option: str) -> None:
    """fio paces nothing then."""
    assert job(f"--{option}=0")[option] is None


@pytest.mark.parametrize(("text", "names"), [("a:b", "a:b"), ("a::b", "a"), ("a:", "a")])
def test_list_of_files_ends_at_an_empty_name(text: str, names: str) -> None:
    """The job has as many files as names are left."""
    options = job(f"--filename={text}")
    assert (options["filename"], options["nrfiles"]) == (names, names.count(":") + 1)
    assert complaint("--filename=:a") == "filename=:a: has no name; write one, or leave the option out"


def test_verify_only_writes_nothing_and_is_refused() -> None:
    """Other options of verification are dropped by their first word."""
    assert complaint("--verify_only=1") == "verify_only=1: is not modelled: it only reads; leave it out"
    assert job("--verify_backlog=8") == job("")
