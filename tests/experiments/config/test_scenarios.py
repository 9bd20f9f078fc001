"""Expansion of a configuration's tables to the inputs of a scenario: names, defaults and messages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.likes import Likes
from wbsim.experiments.config.problems import BadInput, Problems
from wbsim.experiments.config.scenarios import expand
from wbsim.experiments.config.tree import place_and_key, place_tree
from wbsim.models.catalogue.filesystems import FILESYSTEMS
from wbsim.models.catalogue.machines import MACHINES
from wbsim.models.machine import build
from wbsim.sim.param import Spec, bare
from wbsim.sim.units import MIB, MS

FIO = "fio --rw=write --bs=4k --create_on_open=1 --fallocate=none --filesize=1m --name=a"
FS_MARK = "fs_mark -S0 -n 9 -s 4096 -L 2 -d a"


def tables(**changes: Any) -> dict[str, Any]:
    """Return the tables of one disk, one mount and one program; None in *changes* removes a table."""
    given: dict[str, Any] = {
        "machine": {"like": "loop-vm"}, "kernel": {"like": "6.18"}, "filesystem": {"like": "loop-xfs"},
        "workload": {"command": FIO},
    }  # fmt: skip
    return {key: value for key, value in {**given, **changes}.items() if value is not None}


def expanded(**changes: Any) -> tuple[Any, list[tuple[str, str]]]:
    """Return the inputs of a scenario with these tables, and the key and the message of each problem."""
    problems = Problems()
    tree = expand(Likes(problems, Path()), place_tree(tables(**changes), (), "x.toml"))
    return tree, [(problem.key, problem.message) for problem in problems.entries]


def inputs_of(**changes: Any) -> Any:
    """Return the inputs of a scenario with these tables; assert that it has no problem."""
    tree, problems = expanded(**changes)
    assert problems == []
    return plain(tree)


def plain(value: Any) -> Any:
    """Return *value* with all parts of the catalogue as tables, without origins."""
    return bare(unfolded(value))


def unfolded(value: Any) -> Any:
    """Return *value* with all parts of the catalogue as tables."""
    if isinstance(value, Spec):
        return value.inputs()
    if isinstance(value, Mapping):
        return {key: unfolded(below) for key, below in value.items()}
    return [unfolded(below) for below in value] if isinstance(value, list | tuple) else value


def key_of(tree: Any, path: str) -> str:
    """Return the key under which the user writes the scenario's key *path*."""
    return ".".join(place_and_key(tree, tuple(path.split(".")))[1])


def test_single_disk_mount_and_program_need_no_name() -> None:
    """Each of them has a default, and its keys are written without a name.

    * disk: the disk of the machine
    * mount: mnt, at the root
    * program: the name of its kind, from the start of the run
    """
    tree, problems = expanded()
    assert problems == []
    inputs = plain(tree)
    assert (inputs["give_up"], inputs["sync_after"]) == ("100000 s", True)
    assert {name: (mount["disk"], mount["at"]) for name, mount in inputs["mounts"].items()} == {
        "mnt": ("loop0", "/")
    }
    assert inputs["mounts"]["mnt"]["filesystem"] == bare(FILESYSTEMS["loop-xfs"].inputs())
    assert inputs["machine"] == bare(MACHINES["loop-vm"].inputs())
    assert list(inputs["programs"]) == ["fio"]
    assert inputs["programs"]["fio"]["start"] == 0
    assert inputs["programs"]["fio"]["workload"]["filesize"] == 1 << 20
    assert "app_time" in inputs["programs"]["fio"]["workload"]
    for scenario, written in {
        "machine.disks.loop0.device.link": "machine.device.link",
        "machine.processors.cv": "machine.processors.cv",
        "mounts.mnt.filesystem.size": "filesystem.size",
        "mounts": "filesystem",
        "programs.fio.workload.files": "workload.files",
        "programs": "workload",
        "kernel.dirty": "kernel.dirty",
    }.items():
        assert key_of(tree, scenario) == written


def test_given_keys_override_the_part_that_like_names() -> None:
    """Keys of the queue, of the processors and of a program override the machine and the command."""
    inputs = inputs_of(
        machine={"like": "loop-vm", "queue": {"nr_requests": 7}, "processors": {"cv": 0}},
        workload={"command": FIO, "nrfiles": 5, "start": "3 ms"},
        give_up="9 s",
        sync_after=False,
    )
    assert inputs["machine"]["disks"]["loop0"]["queue"]["nr_requests"] == 7
    assert inputs["machine"]["processors"]["cv"] == 0
    assert inputs["programs"]["fio"]["start"] == "3 ms"
    assert inputs["programs"]["fio"]["workload"]["nrfiles"] == 5
    assert (inputs["give_up"], inputs["sync_after"]) == ("9 s", False)


@pytest.mark.parametrize("key", ["device", "queue"])
@pytest.mark.parametrize(
    "disks",
    [{"loop0": {"like": "pm9a3"}}, {"loop0": {"device": {}, "queue": {}}}],
    ids=["like", "parts"],
)
def test_keys_of_a_disk_are_given_in_one_place(key: str, disks: dict[str, Any]) -> None:
    """If the machine and the disk's name both set a part of the disk, one value would be lost."""
    _, problems = expanded(machine={"like": "loop-vm", "disks": disks, key: {}})
    assert (
        f"machine.{key}", f"the disks of this machine have names; write machine.disks.loop0.{key}"
    ) in problems  # fmt: skip


def test_machine_file_with_disks_refuses_keys_of_the_only_disk(tmp_path: Path) -> None:
    """The disks of a user's machine file are all that the machine has, and they have names."""
    (tmp_path / "box.toml").write_text('like = "loop-vm"\ndisks.a = { like = "pm9a3" }\n')
    _, problems = expanded(
        machine={"like": str(tmp_path / "box.toml"), "device": {"speed": 2}}, filesystem={"like": "loop-xfs"}
    )
    message = "the disks of this machine have names; write machine.disks.a.device"
    assert ("machine.device", message) in problems


_PROGRAMS = "dd, find, fio, fs_mark, mv, rm, sync or xfs_io"


@pytest.mark.parametrize(("command", "syncs"), [(FIO, True), (FS_MARK, False)])
def test_sync_follows_if_files_of_a_program_are_examined(command: str, syncs: bool) -> None:
    """Files of fio are examined after a run, and those of fs_mark are not."""
    assert inputs_of(workload={"command": command})["sync_after"] == syncs
    both = {"a": {"command": FS_MARK}, "b": {"command": command}}
    assert inputs_of(workload=None, programs=both)["sync_after"] == syncs


def test_disks_have_names_and_counts() -> None:
    """A named disk of the machine is changed, another name adds a disk, and a count adds numbered disks."""
    tree, problems = expanded(
        machine={
            "like": "loop-vm",
            "disks": {
                "loop0": {"queue": {"nr_requests": 9}},
                "ssd": {"like": "sata-ssd", "queue": {"nr_requests": 8}},
                "d": {"like": "pm9a3", "count": 2},
            },
        },
        filesystem=None,
        mounts={
            "a": {"like": "loop-ext4", "disk": "ssd", "at": "/a"},
            "m": {"like": "loop-xfs", "each": "d", "at": "/m/{n}"},
        },
    )
    assert problems == []
    disks, mounts = (plain(of) for of in (tree["machine"]["disks"], tree["mounts"]))
    assert list(disks) == ["loop0", "ssd", "d0", "d1"]
    assert disks["loop0"]["queue"]["nr_requests"] == 9
    assert disks["loop0"]["device"] == bare(MACHINES["loop-vm"].inputs())["disks"]["loop0"]["device"]
    assert disks["ssd"]["queue"]["nr_requests"] == 8
    assert disks["d0"] == disks["d1"]
    assert {name: (mount["disk"], mount["at"]) for name, mount in mounts.items()} == {
        "a": ("ssd", "/a"), "m0": ("d0", "/m/0"), "m1": ("d1", "/m/1"),
    }  # fmt: skip
    assert mounts["a"]["filesystem"]["kind"] == "ext4"
    assert key_of(tree, "mounts.m1.filesystem.size") == "mounts.m.size"
    assert key_of(tree, "machine.disks.loop0.queue") == "machine.disks.loop0.queue"


def test_mount_of_the_only_disk_needs_no_disk_name() -> None:
    """The default path is the root."""
    mount = inputs_of(filesystem=None, mounts={"a": {"like": "loop-xfs"}})["mounts"]["a"]
    assert (mount["disk"], mount["at"]) == ("loop0", "/")


def test_programs_have_names_or_stand_in_a_list() -> None:
    """Programs of a list have the name of their kind, with a number from the second on."""
    named = {"one": {"command": FIO, "start": 5}, "two": {"command": FS_MARK}}
    programs = inputs_of(workload=None, programs=named)["programs"]
    assert {name: program["start"] for name, program in programs.items()} == {"one": 5, "two": 0}
    tree, problems = expanded(workload=None, programs=[FIO, FS_MARK, [FIO], {"command": FIO}])
    assert problems == []
    assert list(tree["programs"]) == ["fio", "fs_mark", "fio-2", "fio-3"]
    assert key_of(tree, "programs.fio-2.workload.rw") == "programs.2.rw"


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        ({"kernel": {}}, [("kernel.like", "is missing; use one of '2.6.29', '2.6.30', ")]),
        ({"kernel": {"like": 3}}, [("kernel.like", "3 is not known; use one of ")]),
        ({"kernel": {"like": "2.6.28"}}, [("kernel.like", "'2.6.28' is not known; use one of ")]),
        ({"machine": {"like": "x"}},
         [("machine.like", "'x' is not known; use one of 'desk-vm', 'desktop-2012', ")]),
        ({"filesystem": {"like": "loop"}},
         [("filesystem.like", "'loop' is not known; use one of 'xfs', 'ext4', ")]),
        ({"machine": {"like": "loop-vm", "disks": {"d": {"like": "hdd"}}}},
         [("machine.disks.d.like", "'hdd' is not known; use a name of wbsim list disks, or the path of a")]),
        ({"machine": {"like": "loop-vm", "disks": {"d": {"like": "pm9a3", "count": 0}}}},
         [("machine.disks.d.count", "is 0; a whole number from 1 to 1024 was expected")]),
        ({"machine": {"like": "loop-vm", "disks": {"d": {"like": "pm9a3"}}}},
         [("filesystem", "has no disk, and the machine has several; give mounts.NAME.disk, one of loop0,")]),
        ({"mounts": {"a": {"like": "loop-xfs"}}},
         [("filesystem", "is the only mount, without a name, but the scenario has mounts; move it")]),
        ({"filesystem": None, "mounts": {"a": {"like": "loop-xfs", "each": "d"}}},
         [("mounts.a.each", "is 'd', which is not a group of disks; give a disk a count to make it")]),
        ({"filesystem": None, "mounts": {"a": {"like": "loop-xfs"}},
          "machine": {"like": "loop-vm", "disks": {"d": {"like": "pm9a3"}}}},
         [("mounts.a.disk", "is missing; use one of loop0, d")]),
        ({"programs": [FIO]},
         [("workload", "is the only program, without a name, but the scenario has programs; move")]),
        ({"workload": "x"}, [("workload", "is 'x'; a table was expected")]),
        ({"workload": {}},
         [("workload.command", f"is missing; give a command line of {_PROGRAMS}")]),
        ({"workload": {"command": []}}, [("workload.command", "is []; give a command line of ")]),
        ({"workload": {"command": [3]}}, [("workload.command", "is [3]; give a command line of ")]),
        ({"workload": {"command": "bonnie -d x"}},
         [("workload.command", f"'bonnie -d x' is not a command line of {_PROGRAMS}")]),
        ({"workload": {"command": ""}}, [("workload.command", "'' is not a command line of ")]),
        ({"workload": {"command": "/bin/cp -r /a /b"}},
         [("workload.command", "cp is not modelled; for a copy of N MiB write dd if=/dev/zero")]),
        ({"workload": {"command": "tar xf linux.tar"}},
         [("workload.command", "tar is not modelled; for unpacked files write fs_mark -S0")]),
        ({"workload": None, "programs": {"a": {"command": FIO}, "b": {"command": "fs_mark -S7 -k -d x"}}},
         [("programs.b.command", "-S 7 is refused by fs_mark; give at most 6")]),
        ({"workload": None, "programs": [FIO, 5]}, [("programs.1.command", "is 5; give ")]),
    ],
)  # fmt: skip
def test_problem_stands_at_the_written_key(changes: dict[str, Any], problems: list[tuple[str, str]]) -> None:
    """Each message states what would be right."""
    _, found = expanded(**changes)
    assert [key for key, _ in found] == [key for key, _ in problems]
    for (_, message), (_, expected) in zip(found, problems, strict=True):
        assert message.startswith(expected), message


def test_command_may_be_a_path() -> None:
    """The command /usr/bin/fio is fio."""
    assert list(inputs_of(workload={"command": f"/usr/bin/{FIO}"})["programs"]) == ["fio"]


def test_program_holds_its_memory_until_it_ends() -> None:
    """The memory of a program cannot hold dirty pages while the program runs.

    9 ms     1 024 MiB are dirtyable
    10 ms    the short program starts with 300 MiB: 724 MiB are left
    900 ms   the short program has ended: 1 023 MiB are left
    """
    text = f"""
title = "two"
[scenario]
machine.like = "loop-vm"
machine.memory.memory = "1 GiB"
machine.memory.kernel_reserve = "0 B"
kernel.like = "6.18"
filesystem.like = "loop-xfs"
programs.long = {{ command = "{FIO} --directory=/a", start = "1 s" }}
programs.short = {{ command = "{FIO} --directory=/b", memory = "300 MiB", start = "10 ms" }}
"""
    (case,) = parse(text, "x.toml").cases
    machine = build(case.scenario, 1)
    seen: list[int] = []
    for at_ns in (9 * MS, 10 * MS, 900 * MS):
        machine.env.call_at(at_ns, 0, lambda: seen.append(machine.cache.dirtyable_pages() * 4_096 // MIB))
    machine.run()
    assert seen == [1_024, 724, 1_023]  # the cached inode of the program's file takes the rest
    with pytest.raises(BadInput, match="the programs take 1073741824 B of memory, which leaves 0 B"):
        parse(text.replace("300 MiB", "1 GiB"), "x.toml")


@pytest.mark.parametrize(
    ("drive", "like", "refused"),
    [
        ("", "w25-xfs", False),
        ("-bm1743", "w25-xfs-bm1743", False),
        ("", "w25-xfs-bm1743", True),
    ],
    ids=["PM9A3", "BM1743", "the larger one's on the smaller"],
)
def test_filesystem_must_fit_on_its_drive(drive: str, like: str, refused: bool) -> None:
    """The report's mkfs output has 61 TB, which do not fit on a PM9A3."""
    text = f"""title = "t"
[scenario]
machine.like = "w25-server{drive}"
kernel.like = "6.17"
filesystem.like = "{like}"
workload.command = "{FIO}"
"""
    if not refused:
        assert parse(text, "x.toml").cases
        return
    with pytest.raises(BadInput, match="the device has 3840755982336 B; make this one smaller"):
        parse(text, "x.toml")
