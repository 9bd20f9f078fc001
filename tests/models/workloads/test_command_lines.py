"""The command lines of dd and fio."""

from __future__ import annotations

import pytest

from models.workloads import dd, fio
from models.workloads.command_line import CommandError
from sim.units import MIB


def test_dd_s_command_lines() -> None:
    """Suffixes are dd's: k is 1024, kB is 1000."""
    same = dd.parse_commands([f"dd if=/dev/zero of=/mnt/t{i} bs=1024k count=10" for i in range(2)])
    assert same == {"kind": "dd", "streams": 2, "directories": ["/mnt"], "bs": MIB, "count": 10}
    assert dd.parse_commands(["dd if=/dev/zero of=a/t bs=8kB count=1"])["bs"] == 8_000


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("dd if=/dev/zero of=a count=1 conv=fsync", "conv=: not modelled"),
        ("dd of=a count=1", "if=/dev/zero"),
        ("dd if=/dev/zero of=a bs=1q count=1", "1q: dd reads"),
        ("cp a b", "is no dd command"),
        ("", "is no dd command"),
    ],
)
def test_bad_dd_lines_name_the_remedy(line: str, hint: str) -> None:
    """What is not modelled is refused."""
    with pytest.raises(CommandError, match=hint):
        dd.parse_commands([line])


FIO = "fio --rw=randwrite --bs=4k --create_on_open=1 --fallocate=none"


def test_fio_s_command_line() -> None:
    """Jobs by --name, a directory each or one for all; --size is shared by the files."""
    line = f"{FIO} --nrfiles=4 --size=1g --name=a --directory=/d/a --name=b --directory=/d/b"
    assert fio.parse_command(line) == {
        "kind": "fio", "rw": "randwrite", "numjobs": 2, "directories": ["/d/a", "/d/b"], "nrfiles": 4,
        "filesize": 256 * MIB,
    }  # fmt: skip
    assert fio.parse_command(f"{FIO} --filesize=64M --numjobs=3 --name=a")["directories"] == ["."]
    mixed = fio.parse_command(f"{FIO} --filesize=64M --name=a --name=b --rw=write")
    assert (mixed["rw"], mixed["numjobs"]) == (["randwrite", "write"], 2)


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        (" --name=a", "size of the files is missing"),
        (" --size=1m", "no job"),
        (" --size=1m --direct=1 --name=a", "argument --direct"),
        (" --size=1x --name=a", "fio reads sizes"),
        (" --size=1m --verify=md5 --name=a", "unrecognized arguments: --verify"),
        (" --size=1m --name=a --name=b --nrfiles=2", "the jobs differ"),
        (" --size=1m --name='a", "No closing quotation"),
        (" --size=1m --filesize=4m --name=a", "partly empty"),
        (" --size=1m --nrfiles=0 --name=a", "one or more"),
    ],
)
def test_bad_fio_lines_name_the_remedy(change: str, hint: str) -> None:
    """What is missing, unknown or not modelled is named."""
    with pytest.raises(CommandError, match=hint):
        fio.parse_command(FIO + change)
