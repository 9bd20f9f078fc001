"""The tables of options in docs/reference.md say what happens to each option of a program."""

from __future__ import annotations

from typing import Final

import pytest

from wbsim.models.kinds import kinds
from wbsim.models.workloads import fio_options, real_options
from wbsim.models.workloads.command_line import CommandError
from wbsim.models.workloads.fio_sections import OF_THE_REPORT
from wbsim.sim.param import Inputs

SPECS: Final = {name: kind.spec for kind in kinds("workloads").values() for name in kind.spec.options()}
TABLES: Final = {name: spec.options()[name] for name, spec in SPECS.items()}
COMMANDS: Final = {
    "dd": "dd if=/dev/zero of=/d/f bs=4k count=3 {}",
    "fallocate": "fallocate -l 8k {} /d/f",
    "find": "find /d {}",
    "fio": "fio --name=first --rw=write --size=8m --name=a --rw=write --size=8m {}",
    "fs_mark": "fs_mark -d /d -s 4096 -L 2 {}",
    "mv": "mv {} /d/a /d/b",
    "rm": "rm -r {} /d",
    "sync": "sync {} /d/f",
    "truncate": "truncate -s 8k {} /d/f",
    "unlink": "unlink {} /d/f",
    "xfs_io": "xfs_io -c bulkstat {} /d",
}
"""A command of each program, with a place for an option."""
VALUES: Final[dict[str, dict[str, str]]] = {
    "dd": {
        "if=": "/dev/zero", "of=": "/d/g", "bs=": "8k", "obs=": "8k", "ibs=": "8k", "count=": "5",
        "seek=": "2", "oseek=": "2", "status=": "progress", "iflag=": "fullblock", "skip=": "1",
        "iseek=": "1", "cbs=": "80",
    },
    "fallocate": {"-l": "12k", "--length": "12k", "-o": "4k", "--offset": "4k"},
    "find": {"-ctime": "1", "-mtime": "1", "-atime": "1", "-size": "1"},
    "fio": {
        "name": "b --rw=write --size=8m", "rw": "randwrite", "bs": "8k", "bsrange": "4k-64k",
        "directory": "/d", "filename": "f", "filename_format": "'$jobname.$filenum'", "nrfiles": "2",
        "numjobs": "2", "filesize": "8m", "size": "16m", "io_size": "4m", "loops": "2", "runtime": "5",
        "ramp_time": "1", "startdelay": "1", "wait_for": "first", "thinktime": "1ms", "thinktime_blocks": "2",
        "rate": "1m", "rate_iops": "100", "fallocate": "keep", "fsync": "1", "fdatasync": "1",
        "sync": "dsync", "ioengine": "io_uring", "iodepth": "8", "time_based": "1 --runtime=5",
    },
    "fs_mark": {
        "-S": "1", "-n": "5", "-s": "4096", "-w": "4096", "-L": "3", "-t": "2", "-D": "4", "-N": "5 -D 4",
        "-p": "30", "-r": "20", "-d": "/e", "-l": "log",
    },
    "mv": {"-S": "x", "--suffix": "x", "-t": "/d", "--target-directory": "/d", "--backup": "off"},
    "truncate": {"-s": "12k", "--size": "12k", "-r": "/d/g", "--reference": "/d/g"},
    "xfs_io": {"-c": "bulkstat", "-p": "x", "-C": "x"},
}  # fmt: skip
"""A value for each option that needs a special one, by program."""
OPERANDS: Final = {"direct": "oflag=direct", "excl": "conv=excl", "nocreat": "conv=nocreat",
                   "sparse": "conv=sparse"}  # fmt: skip
"""The operand of dd for each word that is refused."""


def with_value(program: str, option: str) -> str:
    """Return an *option* as the user of *program* writes it, with a value if it needs one."""
    value = VALUES.get(program, {}).get(option, "")
    if program == "fio":
        return f"--{option}" if "=" in option else f"--{option}={value or 1}"
    if program == "dd":
        return OPERANDS.get(option, f"{option}{value}")
    return f"{option} {value}".strip()


def fields_of(program: str, text: str) -> Inputs:
    """Return the fields of the command of *program* with the option *text*."""
    fields: Inputs = SPECS[program].fields_of([COMMANDS[program].format(text)])
    return fields


def pairs(fate: str) -> list[tuple[str, str]]:
    """Return each program with each of its options that has this *fate*; a prefix stands for its others."""
    return [
        (program, name)
        for program, table in TABLES.items()
        for option in getattr(table, fate)
        for name in (
            sorted(
                name
                for name in real_options.FIO - table.refusals.keys()
                if name.startswith(option.removesuffix("..."))
            )
            if option.endswith("...")
            else [option]
        )
    ]


def test_each_program_has_a_table_and_a_command() -> None:
    """The names of a program that is known by several have one table."""
    assert COMMANDS.keys() == TABLES.keys()
    assert set(SPECS.values()) == {kind.spec for kind in kinds("workloads").values()}


@pytest.mark.parametrize(("program", "option"), pairs("modelled"))
def test_modelled_option_is_taken(program: str, option: str) -> None:
    """The fields follow from the option; none is dropped."""
    assert not fields_of(program, with_value(program, option)).get("ignored")


@pytest.mark.parametrize(("program", "option"), pairs("dropped"))
def test_dropped_option_is_taken_and_named(program: str, option: str) -> None:
    """The fields are those of the command without the option, with a note."""
    text = with_value(program, option)
    fields, others = fields_of(program, text), fields_of(program, "")
    note = text.lstrip("-") if program == "fio" and option not in OF_THE_REPORT else option
    assert fields.pop("ignored") == [text if program == "dd" else note]
    others.pop("ignored")
    assert fields == others


@pytest.mark.parametrize(("program", "option"), pairs("refusals"))
def test_refused_option_is_named_in_the_error(program: str, option: str) -> None:
    """The errors of fio and dd say why, if the table does."""
    text = with_value(program, option)
    if program == "fio" and option in fio_options.ONLY:
        values = fio_options.ONLY[option][0]
        text = f"--{option}=1" if "1" not in values else f"--{option}=0"
    with pytest.raises(CommandError) as refusal:
        fields_of(program, text)
    why = TABLES[program].refusals[option] if program in ("fio", "dd") else ""
    assert [complaint for complaint in refusal.value.complaints if option in complaint and why in complaint]


def test_each_option_of_a_program_has_one_fate() -> None:
    """An option of fio may have two if its value decides.  Another name has the fate of the option."""
    for name, real in (("dd", real_options.DD), ("fs_mark", real_options.FS_MARK), ("fio", real_options.FIO)):
        table, names = TABLES[name], {option.strip("-=") for option in real}
        fates = {
            fate: {option.strip("-=") for program, option in pairs(fate) if program == name}
            for fate in ("modelled", "dropped", "refusals")
        }
        assert fates["modelled"] & (fates["dropped"] | fates["refusals"]) == set()
        assert fates["dropped"] & fates["refusals"] == set()
        options = set().union(*fates.values())
        if name == "fio":
            options |= fio_options.ALIASES.keys() | OF_THE_REPORT.keys()
        assert names <= {option.partition("=")[0] for option in options}, table


@pytest.mark.parametrize(("alias", "option"), fio_options.ALIASES.items())
def test_another_name_of_an_option_has_its_fate(alias: str, option: str) -> None:
    """The complaint about an option has the name that its user wrote."""
    first = with_value("fio", option)
    other = first.replace(f"--{option}", f"--{alias}", 1)
    try:
        fields = fields_of("fio", first)
    except CommandError as error:
        with pytest.raises(CommandError) as refusal:
            fields_of("fio", other)
        complaints = [complaint.replace(f"{option}=", f"{alias}=", 1) for complaint in error.complaints]
        assert list(refusal.value.complaints) == complaints
    else:
        again = fields_of("fio", other)
        assert [note.replace(alias, option, 1) for note in again.pop("ignored")] == fields.pop("ignored")
        assert again == fields
