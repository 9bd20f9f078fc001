"""mv, rm, unlink, truncate and fallocate: their command lines, and the calls that they make."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.harness import only
from wbsim.experiments.config.experiment import parse
from wbsim.models.machine import Machine, build
from wbsim.models.time_accounting import Spent
from wbsim.models.workloads import one_call, rm
from wbsim.models.workloads.command_line import CommandError
from wbsim.models.workloads.one_call import OneCallProcess, OneCallSpec, fields_of_call
from wbsim.models.workloads.sizes import bytes_of_gnu_size
from wbsim.sim.engine import CallError, Environment
from wbsim.sim.units import KIB, MIB

PAGE = 4 * KIB


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("mv /a/f /b/g", {"call": "rename", "paths": ["/a/f"], "new_path": "/b/g"}),
        ("/bin/mv -f /a/f /a//g", {"call": "rename", "paths": ["/a/f"], "new_path": "/a/g"}),
        ("mv -T f g", {"call": "rename", "paths": ["f"], "new_path": "g"}),
        ("unlink /a/./f", {"call": "unlink", "paths": ["/a/f"]}),
        ("truncate -s 4K /a/f /b/g", {"call": "ftruncate", "paths": ["/a/f", "/b/g"], "size": PAGE}),
        ("truncate --size=0 /a/f", {"call": "ftruncate", "paths": ["/a/f"], "size": 0}),
        ("fallocate -l 1MiB /a/f", {"call": "fallocate", "paths": ["/a/f"], "size": MIB}),
        ("fallocate -n -l 4096 /a/f",
         {"call": "fallocate", "paths": ["/a/f"], "size": PAGE, "keeps_size": True}),
        ("fallocate --keep-size --length 1GB f",
         {"call": "fallocate", "paths": ["f"], "size": 10**9, "keeps_size": True}),
    ],
)  # fmt: skip
def test_command_makes_its_call_for_each_file(line: str, fields: dict[str, Any]) -> None:
    sized = {"keeps_size": False} if fields["call"] in ("ftruncate", "fallocate") else {}
    read = dict(one_call.parse_command(line))
    assert read.pop("kind") == "one_call"
    read.pop("directories")
    assert read == {**sized, **fields}


@pytest.mark.parametrize("line", ["rm /a/f /b//g", "rm -f /a/f /b/g", "/bin/rm /a/f /b/g"])
def test_rm_without_r_removes_files(line: str) -> None:
    """rm -r is another program, which removes directories."""
    assert rm.parse_command(line) == {
        "kind": "one_call", "call": "unlink", "paths": ["/a/f", "/b/g"], "directories": ["/a", "/b"],
    }  # fmt: skip
    assert rm.parse_command(line.replace("rm", "rm -r"))["kind"] == "rm"


def test_directories_of_a_command_are_those_of_its_files() -> None:
    """Each once, in the order of the files."""
    assert fields_of_call("unlink", ["/b/f", "/a/f", "/b/g", "h"])["directories"] == ["/b", "/a", "."]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("mv /a", "'mv /a' is not modelled; write mv FILE NEW, for each file"),
        ("mv /a /b /c", "'mv /a /b /c' is not modelled; write mv FILE NEW, for each file"),
        ("mv -u /a /b", "-u is not modelled; modelled are: -f, --force, -T, --no-target-directory"),
        ("truncate /a", "the following arguments are required: -s/--size"),
        ("truncate -s +4K /a", "'+4K' is not a size; write one such as 4096, 64K, 1M or 1GB"),
        ("truncate -c -s 4K /a", "-c is not modelled; modelled are: -s, --size"),
        ("fallocate /a", "the following arguments are required: -l/--length"),
        ("fallocate -p -l 4K /a", "-p is not modelled; modelled are: -l, --length, -n, --keep-size"),
    ],
)
def test_command_that_cannot_be_run_is_refused(line: str, message: str) -> None:
    with pytest.raises(CommandError) as refusal:
        one_call.parse_command(line)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0), ("4096", 4_096), ("4k", 4_096), ("4K", 4_096), ("4KiB", 4_096), ("4kB", 4_000),
        ("4KB", 4_000),
        ("3M", 3 * MIB), ("3MiB", 3 * MIB), ("3MB", 3_000_000), ("2G", 2 << 30), ("2GB", 2 * 10**9),
        ("1T", 1 << 40),
        ("1TB", 10**12), ("1TiB", 1 << 40),
    ],
)  # fmt: skip
def test_gnu_suffix_is_a_power_of_1024_or_1000(text: str, size: int) -> None:
    """The units are those of dd, and not those of fio."""
    assert bytes_of_gnu_size(text) == size


@pytest.mark.parametrize("text", ["", "k", "4m", "4g", "-4K", "4.5K", "4 K", "4KIB", "4P", "4B", "1" * 19])
def test_other_words_are_no_gnu_sizes(text: str) -> None:
    with pytest.raises(CommandError, match="is not a size; write one such as 4096, 64K, 1M or 1GB"):
        bytes_of_gnu_size(text)


def spec_of(call: str, *paths: str, **more: Any) -> OneCallSpec:
    """Return the spec of a command."""
    fields = fields_of_call(call, paths, **more)  # type: ignore[arg-type]
    return OneCallSpec.model_validate({**fields, "fork_time": 50})


def test_spec_checks_what_its_call_needs() -> None:
    """Whole pages, and one file with a new path."""
    with pytest.raises(ValueError, match="6000 B end inside a page; give a multiple of 4096 B"):
        spec_of("ftruncate", "/f", size=6_000)
    for paths, new_path in ((("/f", "/g"), "/h"), (("/f",), ""), ((), "/h")):
        with pytest.raises(ValueError, match=r"a rename needs one file and its new path|at least 1 item"):
            spec_of("rename", *paths, new_path=new_path)
    spec = spec_of("rename", "/f", new_path="/d/g")
    assert list(spec.makes()) == [("/f", 0, 0), ("/d/g", 0, 0)]
    assert (spec.total_files, spec.bytes_each, spec.total_bytes, spec.endless) == (0, 0, 0, False)
    assert list(spec_of("unlink", "/f", "/g").makes()) == [("/f", 0, 0), ("/g", 0, 0)]


class Stage:
    """A program whose child has calls of 10 ns each, which the log has with their times."""

    def __init__(self, spec: OneCallSpec, fails: str = "") -> None:
        self.env = Environment()
        self.log: list[tuple[Any, ...]] = []
        self.fails = fails
        parts: Any = SimpleNamespace(
            env=self.env, thread=self._thread, process=self._thread, variation=lambda name: None,
            begin=self.env.start,
        )  # fmt: skip
        self.ends: list[int] = []
        self.program = OneCallProcess(
            parts=parts, spec=spec, program_scale=2.0, start_ns=7, calls=self,  # type: ignore[arg-type]
            on_end=lambda: self.ends.append(self.env.now),
        )  # fmt: skip
        assert self.program.share_done == 0
        self.program.on_iteration = lambda line: self.log.append((self.env.now, "iteration", line.count))
        self.env.run()

    def _thread(self, name: str) -> Any:
        return SimpleNamespace(task=self.env.task(name), spent=Spent())

    def process(self, thread: Any, factors: Any, latencies: Any) -> Any:
        """Return a process that logs its calls: in the place of `SystemCalls.process`."""

        def call(name: str) -> Any:
            def runs(*arguments: Any) -> Any:
                yield 10
                if name == self.fails:
                    raise CallError("refused")
                self.log.append((self.env.now, name, *arguments))
                return f"inode {arguments[0]}" if arguments else None

            return runs

        names = ("open", "close", "rename", "unlink_file", "ftruncate", "fallocate", "exits")
        calls = {name: call(name) for name in names}
        return SimpleNamespace(task=thread.task, spent=thread.spent, forked=lambda: None, **calls)


@pytest.mark.parametrize(
    ("spec", "calls"),
    [
        (spec_of("rename", "/f", new_path="/g"), [("rename", "/f", "/g")]),
        (spec_of("unlink", "/f", "/g"), [("unlink_file", "/f"), ("unlink_file", "/g")]),
        (spec_of("ftruncate", "/f", "/g", size=8_192), [
            ("open", "/f"), ("ftruncate", "inode /f", 2), ("close", "inode /f"),
            ("open", "/g"), ("ftruncate", "inode /g", 2), ("close", "inode /g"),
        ]),
        (spec_of("fallocate", "/f", size=4_096), [
            ("open", "/f"), ("fallocate", "inode /f", 1, False), ("close", "inode /f"),
        ]),
        (spec_of("fallocate", "/f", size=12_288, keeps_size=True), [
            ("open", "/f"), ("fallocate", "inode /f", 3, True), ("close", "inode /f"),
        ]),
    ],
)  # fmt: skip
def test_process_makes_its_calls_in_order(spec: OneCallSpec, calls: list[tuple[Any, ...]]) -> None:
    """The shell's fork of 50 ns takes twice as long here; then each call follows the one before."""
    stage = Stage(spec)
    begins = 7 + 2 * 50
    end = begins + 10 * len(calls)
    assert stage.log == [
        *((begins + 10 * number, *call) for number, call in enumerate(calls, 1)), (end, "iteration", 0),
    ]  # fmt: skip
    assert stage.ends == [end]
    assert stage.program.share_done == 1
    assert stage.program.failed == {}


def test_call_that_fails_ends_the_process() -> None:
    """No further file has its call; the files that are open are closed, and the program ends."""
    stage = Stage(spec_of("ftruncate", "/f", "/g", size=4_096), fails="ftruncate")
    assert [entry[1] for entry in stage.log] == ["open", "exits", "iteration"]
    assert stage.program.failed == {"refused": 1}
    assert stage.ends == [107 + 30]


TEXT = """\
title = "files"
[scenario]
machine.like = "loop-vm"
kernel.like = "6.18"
sync_after = true
mounts.m = {{ like = "loop-{filesystem}", disk = "loop0", at = "/m", size = "4 GiB" }}
programs.w = "dd if=/dev/zero of=/m/f bs=64k count=4"
programs.c = {{ command = "{command}", after = "w" }}
"""


def machine_after(command: str, filesystem: str) -> Machine:
    """Return the machine after a *command* on a file of 64 pages."""
    (case,) = parse(TEXT.format(command=command, filesystem=filesystem), "x.toml").cases
    machine = build(case.scenario, 1)
    machine.run()
    assert all(program.failed == {} for program in machine.programs.values())
    return machine


@pytest.mark.parametrize("filesystem", ["xfs", "ext4"])
@pytest.mark.parametrize(
    ("command", "sizes", "call"),
    [
        ("mv /m/f /m/g", {"/m/g": 64}, "rename"),
        ("rm /m/f", {}, "unlink"),
        ("unlink /m/f", {}, "unlink"),
        ("truncate -s 40K /m/f", {"/m/f": 10}, "ftruncate"),
        ("truncate -s 400K /m/f", {"/m/f": 100}, "ftruncate"),
        ("truncate -s 40K /m/new", {"/m/f": 64, "/m/new": 10}, "ftruncate"),
        ("fallocate -l 400K /m/f", {"/m/f": 100}, "fallocate"),
        ("fallocate -n -l 400K /m/f", {"/m/f": 64}, "fallocate"),
        ("fallocate -l 40K /m/f", {"/m/f": 64}, "fallocate"),
        ("sync /m/f", {"/m/f": 64}, "fsync"),
        ("sync -d /m/f", {"/m/f": 64}, "fdatasync"),
        ("sync -f /m/f", {"/m/f": 64}, "syncfs"),
    ],
)
def test_files_are_as_the_command_leaves_them(
    command: str, sizes: dict[str, int], call: str, filesystem: str
) -> None:
    """Their paths and sizes (pages), on both filesystems; the call is counted once."""
    machine = machine_after(command, filesystem)
    sb: Any = only(machine.mounts)
    actual = {path: sb.filesystem.size_of(dentry.inode) for path, dentry in sb.dentries.items()}
    assert actual == sizes
    latencies = machine.programs["c"].latencies.by_call()
    assert latencies[call].count == 1
