"""Problems in TOML text: each is reported with the file, the line and the key where it is written."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.config.toml_tree import MOST_LEVELS, document_of, levels_of, lines_of_keys

TEXT = """\
title = "x"

[scenario]
machine.like = "p13-vm"
machine.disks.ssd = { like = "sata-ssd" }
machine.disks.hdd = { like = "sata-disk" }
kernel.like = "3.11"

[scenario.mounts.mail]
like = "xfs"
disk = "ssd"
at = "/srv/mail"

[scenario.mounts.db]
like = "loop-ext4"
disk = "hdd"
at = "/srv/db"
size = "4 GiB"

[[scenario.programs]]
command = "fs_mark -k -S0 -n 20 -s 4096 -L 2 -d /srv/mail/0"
[[scenario.programs]]
command = "dd if=/dev/zero of=/srv/db/f bs=8k count=3"
start = "1 s"
"""


def problems(text: str, *overrides: str, name: str = "x.toml") -> list[str]:
    """Return the problems of *text* with *overrides*, one line each."""
    with pytest.raises(BadInput) as refused:
        parse(text, name, overrides)
    return str(refused.value).splitlines()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('disk = "hdd"', 'disk = "hd"', "x.toml:16: mounts.db.disk: the machine has no disk 'hd'"),
        ('at = "/srv/db"', 'at = "/srv/mail"', "x.toml:17: mounts.db.at: two filesystems are mounted"),
        ('at = "/srv/db"', 'at = "srv/db"', "x.toml:17: mounts.db.at: is 'srv/db'; give an absolute path"),
        ('at = "/srv/db"', 'at = "/srv/./db"', "x.toml:17: mounts.db.at: is '/srv/./db'; give an absolute"),
        ('at = "/srv/db"', 'at = "/srv/db\\n"', "x.toml:17: mounts.db.at: is '/srv/db\\n'; give an absolute"),
        ('size = "4 GiB"', 'size = "1 MiB"', "x.toml:18: mounts.db.size: 1048576 B is less than two groups"),
        ('size = "4 GiB"', 'size = "65 TiB"', "x.toml:18: mounts.db.size: 71468255805440 B is more than"),
        ('size = "4 GiB"', 'kind = "btrfs"', "x.toml:18: mounts.db.kind: is 'btrfs'; use one of ext4, xfs"),
        ('size = "4 GiB"', "files = true", "x.toml:18: mounts.db.files: true is not a number"),
        ('size = "4 GiB"', 'size = "4 GiB"\nfiles = 10000000000', "x.toml:19: mounts.db.files: is 1000"),
        ("of=/srv/db/f", "of=/nowhere/f", "x.toml:23: programs.1.command: the path '/nowhere' is outside"),
        ("count=3", "count=0", "x.toml:23: programs.1.count: is 0; use a value greater"),
        ("count=3", "count=²", "x.toml:23: programs.1.command: '²' is not a number for dd"),
        ("count=3", "count=" + "9" * 5_000, "x.toml:23: programs.1.command: '999"),
        ("bs=8k", "bs=0", "x.toml:23: programs.1.bs: is 0; use a value greater"),
        ("bs=8k", "bs=5000 oflag=append", "x.toml:23: programs.1.bs: 5000 B that are appended must be whole"),
        ("bs=8k", "bs=5000 seek=3", "x.toml:23: programs.1.seek: 3 blocks of 5000 B end inside a page; give"),
        ("bs=8k", "bs=8k skip=3", "x.toml:23: programs.1.command: skip=3 is not modelled: it skips what is"),
        ('start = "1 s"', 'after = "x"', "x.toml:24: programs.1.after: there is no program 'x'; use one of"
         " fs_mark"),
        ('start = "1 s"', "after = 5", "x.toml:24: programs.1.after: is 5; a text was expected"),
        ('size = "4 GiB"', "auto_da_alloc = 5", "x.toml:18: mounts.db.auto_da_alloc: is 5; true or false"),
        ('size = "4 GiB"', "contents = 5", "x.toml:18: mounts.db.contents: is 5; a list was expected"),
        ('size = "4 GiB"', "contents = ['a']", "x.toml:18: mounts.db.contents.0: is 'a'; a table was"),
        ('size = "4 GiB"', "contents = [{ path = 'a' }]", "x.toml:18: mounts.db.contents.0.size: is missing"),
        ('size = "4 GiB"', "contents = [\n{ path = 'a', size = 8192 }]",
         "x.toml:19: mounts.db.contents.0.size: 8192 has no unit; write a text"),
        ('size = "4 GiB"', "contents = [\n{ path = 'a', size = '10 B' }]",
         "x.toml:19: mounts.db.contents.0.size: 10 B are not whole pages; give a multiple of 4096 B"),
        ('size = "4 GiB"', "contents = [\n{ path = 'a', size = '8 KiB', extents = 3 }]",
         "x.toml:19: mounts.db.contents.0.extents: 3 extents are more than the 2 pages; give fewer"),
        ('size = "4 GiB"', "contents = [\n{ path = '/srv/mail/a', size = '8 KiB' }]",
         "x.toml:19: mounts.db.contents.0.path: /srv/mail/a is not on this mount; give a path below /srv/db"),
        ('size = "4 GiB"',
         "contents = [\n{ path = 'a', size = '8 KiB' },\n{ path = '/srv/db//a', size = '8 KiB' }]",
         "x.toml:20: mounts.db.contents.1.path: two files have the path /srv/db/a; give each another one"),
        ('start = "1 s"', 'strat = "1 s"', "x.toml:24: programs.1.strat: unknown key"),
        ('start = "1 s"', 'memory = "90 GiB"', "x.toml:24: programs.1.memory: the programs take"),
        ('machine.disks.hdd = { like = "sata-disk" }', "machine.disks.hdd = 5",
         "x.toml:6: machine.disks.hdd: is 5; a table was expected"),
        ('kernel.like = "3.11"', 'kernel.like = "4.99"', "x.toml:7: kernel.like: '4.99' is not known"),
        ('kernel.like = "3.11"', 'kernel.like = "03.11"', "x.toml:7: kernel.like: '03.11' is not known"),
        ('kernel.like = "3.11"', "kernel.'like' = '٣.11'", "x.toml:7: kernel.like: '٣.11' is not known"),
        ('title = "x"', 'title = "  "', "x.toml:1: title: is '  '"),
    ],
)  # fmt: skip
def test_mistake_is_reported_at_its_own_line(old: str, new: str, told: str) -> None:
    """A mount, the second program of a list and a command line have their own lines."""
    assert old in TEXT
    found = problems(TEXT.replace(old, new, 1))
    assert any(problem.startswith(told) for problem in found), found
    assert len(found) == 1


ONE = """\
title = "x"
[scenario]
machine.like = "desk-vm"
kernel.like = "6.18"
filesystem.like = "desk-xfs"
workload.command = "fs_mark -k -S0 -n 10 -s 4096 -L 1 -d a"
"""


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ('[sweep.grid]\n"workload.loops" = [\n1,\n0]', "x.toml:10: workload.loops: is 0; use a"),
        ('[sweep.zip]\n"workload.loops" = [1, 0]\n"workload.files" = [1, 2]', "x.toml:8: workload.loops: is"),
        ("[[sweep.points]]\nvalue = 1\n[[sweep.points]]\nvalue = 2\nworkload.loops = 0",
         "x.toml:11: workload.loops: is 0; use a"),
        ("[sweep]\npoints = [\n{ value = 1, worklod.loops = 1 }]",
         "x.toml:9: worklod: no command line contains {worklod}, and it is an unknown key"),
        ("[sweep]\npoints = [{ value = 2020-01-01 }]", "x.toml:8: sweep.points: has the value"),
        ("[sweep]\npoints = [{ value = nan }]", "x.toml:8: sweep.points: has the value nan"),
        ("[sweep]\npoints = [{ value = 1 }, { value = 1 }]", "x.toml:8: sweep.points: point has the value 1"),
        ("[sweep]\nname = ''\npoints = [{ value = 1 }]", "x.toml:8: sweep.name: is ''; give a print"),
        ('[sweep]\ngrid = { "workload.loops" = [1, 1] }', "x.toml:8: sweep.grid.workload.loops: workload"),
        ('[sweep.lhs]\nsamples = 1000000000\n"workload.files" = [1, 5]', "x.toml:7: sweep.lhs: 1000000000"),
        ('[sweep.lhs]\nsamples = 2\n"workload.files" = [5, 1]', "x.toml:7: sweep.lhs: workload.files goes"),
        ('[variants.a]\nworkload.command = "fs_mark -k -S0 -n 0 -s 4096 -L 1 -d a"', "x.toml:8: workload.fi"),
        ("[variants.a]\nquick = [5]", "x.toml:8: variants.a.quick: is [5]"),
        ("[variants.'']", "x.toml:7: variants.: is not a printable name"),
        ('[variants.a]\n"kernel"."wt\\u0062" = 5', "x.toml:8: kernel.wtb: unknown key"),
        ("[variants.a]\nkernel.wbt = 1", "x.toml:8: kernel.wbt: is 1; true or false"),
    ],
)  # fmt: skip
def test_mistake_of_a_sweep_or_variant_is_reported_there(more: str, told: str) -> None:
    """The place is the line in the sweep or variant, not the line of the key in the scenario."""
    found = problems(ONE + more)
    assert any(problem.startswith(told) for problem in found), found


def test_mistake_in_a_user_file_is_reported_there(tmp_path: Path) -> None:
    """The place is the line of that file.  The ends of a range obey the rules for numbers."""
    text = ONE.replace('"desk-vm"', '"box.toml"')
    name = str(tmp_path / "x.toml")
    for line, told in (
        ("processors.coutn = 4", "processors.coutn: unknown key; did you mean count?"),
        ('processors.wake_time = { assumed = "5 us", low = "x", high = "9 us" }', "low and high: 'x' is no"),
        (
            'processors.wake_time = { assumed = "5 us", low = "6 us", high = "9 us" }',
            "5000 is outside",
        ),
        ("processors.program_scale = { assumed = 1.0, low = 2.0, high = 3.0 }", "1.0 is outside"),
        ("processors.cv = { assumed = 0.1, low = nan, high = 1.0 }", "low and high: input should be"),
    ):
        (tmp_path / "box.toml").write_text(f'like = "desk-vm"\n\n{line}\n')
        (found,) = problems(text, name=name)
        assert found.startswith(f"{tmp_path}/box.toml:3: machine.processors."), found
        assert told.lower() in found.lower()
    (tmp_path / "box.toml").write_text("a = " + "[" * 5_000 + "]" * 5_000)
    assert any("is nested deeper than 32 levels" in problem for problem in problems(text, name=name))


def test_mistake_in_a_job_file_is_reported_there(tmp_path: Path) -> None:
    """An option has its own line.  A missing option has the line of the job."""
    job = ["[global]", "rw=write", "create_on_open=1", "fallocate=none", "[a]", "filesize=64k", "nrfiles=2"]
    text = ONE.replace("fs_mark -k -S0 -n 10 -s 4096 -L 1 -d a", "fio j.fio")
    wrong = (
        (3, "create_on_open=x"),
        (4, "fallocate=x"),
        (2, "rw=read"),
        (6, "filesize=0"),
        (7, "bs=0"),
        (7, "nrfiles=0"),
        (7, "verify=md5"),
        (7, "time_based"),
        (7, "nosuch"),
    )
    for at, line, place in (
        *((at, line, at) for at, line in wrong),
        (7, "size=1m", 7),
        (2, "", 5),
        (6, "", 5),
        (5, "[ ]", 5),
    ):
        (tmp_path / "j.fio").write_text("\n".join([*job[: at - 1], line, *job[at:]]))
        (found,) = problems(text, name=str(tmp_path / "x.toml"))
        assert f"{tmp_path}/x.toml:6: workload.command: {tmp_path}/j.fio:{place}: " in found


def test_all_mistakes_of_commands_are_reported_at_once(tmp_path: Path) -> None:
    """Each is a line.  Those of a job file have their lines in that file, too."""
    text = ONE.replace("fs_mark -k -S0 -n 10 -s 4096 -L 1 -d a", "fio j.fio")
    (tmp_path / "j.fio").write_text("[global]\nrw=read\n[a]\nbs=0\n[b]\nsize=1m\nverify=md5\ndirekt=0\n")
    at = f"{tmp_path}/x.toml:6: workload.command: {tmp_path}/j.fio"
    assert problems(text, name=str(tmp_path / "x.toml")) == [
        f"{at}:2: rw=read: is not modelled, because it reads; reads of file data have no model",
        f"{at}:4: bs=0: is too small; give at least 1",
        f"{at}:3: the size is missing; give size or filesize",
        f"{at}:7: verify=md5: is not modelled: it reads what was written",
        f"{at}:8: direkt=0: fio has no such option; did you mean direct?",
    ]
    at = "x.toml:6: workload.command: "
    old = "-S0 -n 10 -s 4096 -L 1"
    for line, told in (
        (
            ONE.replace(old, "-S 7 -n 1000001 -w 1048577 -D 1 -r 2"),
            [
                "-S 7 is refused by fs_mark; give at most 6",
                "-n 1000001 is refused by fs_mark; give at most 1000000",
                "-w 1048577 is refused by fs_mark; give at most 1048576 B",
                "-D 1 is refused by fs_mark; give 2 or more subdirectories, or leave it out",
                "-r 2 is not modelled: several files may get one name; give 8 or more",
            ],
        ),
        (
            ONE.replace(
                "fs_mark -k -S0 -n 10 -s 4096 -L 1 -d a", "dd if=/dev/zero of=a count=z oflag=direct"
            ),
            [
                "'z' is not a number for dd; write one such as 4096, 1024k or 1M",
                "oflag=direct is not modelled: it writes around the page cache, and writeback is about the"
                " cache",
            ],
        ),
    ):
        assert problems(line) == [at + problem for problem in told]


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ("dd", "", ""),
        ("dd", "fs_mark", "x.toml:21: programs.0.after: the programs wait for each other; let one of them"),
        ("fs_mark", "", "x.toml:21: programs.0.after: the program would wait for itself; leave it out"),
        ("sync", "", "x.toml:21: programs.0.after: programs.sync never ends; name a program that ends"),
    ],
)
def test_program_follows_one_that_ends(first: str, second: str, told: str) -> None:
    """A circle of programs would never begin."""
    text = TEXT.replace("[[scenario.programs]]", f'[[scenario.programs]]\nafter = "{first}"', 1)
    text += f'after = "{second}"\n' * bool(second)
    text += '[[scenario.programs]]\ncommand = "sync"\nevery = "1 s"\n'
    if told:
        (found,) = problems(text)
        assert found.startswith(told)
    else:
        parse(text, "x.toml")


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("workload.loops=1\nx = 2", "workload.loops: '1\\nx = 2' is not a number"),
        ("kernel.a=" + "[" * 3_000 + "]" * 3_000, "is nested deeper than 32 levels"),
        (".".join(["kernel", *"a" * 3_000]) + "=1", "has a key of 3001 parts"),
        ("machine.memory.memory=x" + "9" * 400, "is not a quantity"),
        ("machine.memory.memory=٣ GiB", "is not a quantity"),
        ('machine.disks.loop0.queue.limits.max_sectors_bytes="511 B"', "greater than or equal to 4096"),
        ('machine.disks.loop0.queue.limits.max_segment_bytes="1 B"', "greater than or equal to 4096"),
        ('machine.device={kind="raid0", chunk="1 B", members=[{kind="null"}]}', "multiple of 4096"),
        ("machine.disks=5", "machine.disks: is 5; a table was expected"),
        ('filesystem.inode_log_bytes="1 TiB"', "does not fit into a checkpoint"),
        ('machine.processors.exit_time="1000 s"', "less than or equal to 1000000000"),
        ("give_up='0 s'", "greater than 0"),
    ],
)
def test_wrong_option_of_a_command_is_reported_with_its_text(override: str, told: str) -> None:
    """Each problem is one line without control characters."""
    (found,) = problems(ONE, override)
    assert found.startswith("--set ")
    assert told in found
    assert found.isprintable()


def test_speed_factor_without_a_given_speed_multiplies_1() -> None:
    """An example in docs/configurations.md is ``machine.device.speed=x0.5,x1,x2``."""
    text = ONE.replace('"desk-vm"', '"p13-vm"').replace("desk-xfs", "p13-xfs").replace('"6.18"', '"3.11"')
    twice, as_said = (
        parse(text, "x.toml", [f"machine.device.speed={speed}"]).cases[0].scenario for speed in ("x2", "2")
    )
    assert twice == as_said


VALUES = st.recursive(
    st.integers(0, 9) | st.sampled_from(['a"[{=#', "b\nc = 1", "é", ""]),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from("abc"), below, max_size=3),
    max_leaves=9,
)


def written(value: Any, way: int) -> str:
    """Return *value* as TOML, with texts and lists on one line or, if *way* is 1, on several lines."""
    match value:
        case str():
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            return f'"""\n{escaped}"""' if way else '"' + escaped.replace("\n", "\\n") + '"'
        case list():
            between = ",  # ] = [\n" if way else ", "
            return f"[{between.join(written(of, way) for of in value)}{chr(10) * way}]"
        case dict():
            return "{ " + ", ".join(f"{key} = {written(of, way)}" for key, of in value.items()) + " }"
    return str(value)


@given(st.dictionaries(st.sampled_from(["k", '"q.r"', "'s'"]), VALUES), st.integers(0, 1))
def test_every_key_and_entry_has_its_line(document: dict[str, Any], way: int) -> None:
    """The line that is found for a key contains the last part of the key."""
    text = "# [no]\n[t.u] # one\n" + "".join(f"{key} = {written(of, way)}\n" for key, of in document.items())
    found = dict(lines_of_keys(text))
    below: dict[tuple[str, ...], Any] = {}

    def walk(value: Any, path: tuple[str, ...]) -> None:
        inner = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, of in inner:
            below[(*path, str(key))] = of
            walk(of, (*path, str(key)))

    walk(tomllib.loads(text), ())
    assert found.keys() == below.keys()
    lines = text.splitlines()
    for path, line in found.items():
        if not path[-1].isdigit() and path not in (("t",), ("t", "u")):
            assert path[-1] in lines[line - 1]


def test_nesting_depth_is_counted_and_bounded() -> None:
    """Tables and lists count as levels.

    A text that is nested deeper than Python's recursion limit is refused.
    """
    assert [levels_of(of) for of in ({}, {"a": 1}, {"a": [1]}, {"a": [{"b": 1}, 2]})] == [0, 1, 2, 3]
    assert document_of("a = " + "[" * MOST_LEVELS + "]" * MOST_LEVELS)
    for depth in (MOST_LEVELS + 1, 9_000):
        with pytest.raises(ValueError, match="is nested deeper than 32 levels"):
            document_of("a = " + "[" * depth + "1" + "]" * depth)


FIO = "fio --name=a --rw=write --filesize=64k --create_on_open=1 --fallocate=none --directory=/srv/mail"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("files = 3", "fles = 3", "x.toml:13: mounts.mail.fles: unknown key; did you mean files?"),
        (
            'like = "xfs"',
            'lkie = "xfs"',
            "x.toml:9: mounts.mail.like: is missing; use one of 'xfs'",
        ),
        ("files = 3", "orde = 3", "x.toml:13: mounts.mail.orde: unknown key; use one of agcount"),
        ('start = "1 s"', "start = 5", "x.toml:25: programs.1.start: 5 has no unit"),
        ('start = "1 s"', "memory = 4096", "x.toml:25: programs.1.memory: 4096 has no unit"),
        (
            'start = "1 s"',
            'emory = "1 MiB"',
            "x.toml:25: programs.1.emory: unknown key; did you mean memory?",
        ),
        (
            'start = "1 s"',
            "fork_time = 2026-01-01",
            "x.toml:25: programs.1.fork_time: 2026-01-01 is not a time; write a text",
        ),
        (
            'kernel.like = "3.11"',
            "kernel.like = 3.11",
            "x.toml:7: kernel.like: is the number 3.11; write it in",
        ),
        (
            'kernel.like = "3.11"',
            "kernel.like = { kind = 5 }",
            "x.toml:7: kernel.like: {'kind': 5} is not known",
        ),
        ('kernel.like = "3.11"', "kernel.like = [1]", "x.toml:7: kernel.like: [1] is not known; use one of"),
        ('"3.11"', '"3.11"\nkernel.lik = 5', "x.toml:8: kernel.lik: unknown key; did you mean like?"),
        ('title = "x"', 'title = "\\u001b[31m"', "x.toml:1: title: is '\\x1b[31m'; give a sentence"),
        ('title = "x"', 'title = "x"\nquick = 5', "x.toml:2: quick: is 5; a list of texts was expected"),
        (
            'title = "x"\n',
            'title = "x"\nquick = 5\n[variants.a]\n[variants.b]\n',
            "x.toml:2: quick: is 5; a list of texts was expected",
        ),
        (
            "[scenario]",
            "[scenario]\nmachine.name = ''",
            "x.toml:4: machine.name: is ''; give 1 to 100 printable",
        ),
        (
            "[scenario]",
            "[scenario]\nmachine.processors.cv = 1e-160",
            "x.toml:4: machine.processors.cv: 1e-160 is too small; give 0, or",
        ),
        (
            "[scenario]",
            "[scenario]\nmachine.processors.paths.inodes.lru_ns = '1001 ms'",
            "x.toml:4: machine.processors.paths.inodes.lru_ns: 1001000000 ns is more than a second",
        ),
        (
            "[[scenario.programs]]",
            f"[[scenario.programs]]\ncommand = '{FIO}'\nthinktime = ['4 ms', 5]\n[[scenario.programs]]",
            'x.toml:23: programs.0.thinktime.1: 5 has no unit; write a text such as "5 ms"',
        ),
        (
            "[[scenario.programs]]",
            f"[[scenario.programs]]\ncommand = '{FIO}'\nstonewall = 1\n[[scenario.programs]]",
            "x.toml:23: programs.0.stonewall: is 1; true or false was expected",
        ),
        (
            "[[scenario.programs]]",
            f"[[scenario.programs]]\ncommand = '{FIO} --end_fsync=x'\n[[scenario.programs]]",
            "x.toml:22: programs.0.command: end_fsync=x: is not a flag; give 0 or 1",
        ),
        (
            "[[scenario.programs]]",
            f"[[scenario.programs]]\ncommand = '{FIO} --nmujobs=123456789'\n[[scenario.programs]]",
            "x.toml:22: programs.0.command: nmujobs=123456789: fio has no such option; did you mean numjobs?",
        ),
        (
            "[[scenario.programs]]",
            f"[[scenario.programs]]\ncommand = '{FIO}'\ndirectories = ['']\n[[scenario.programs]]",
            "x.toml:23: programs.0.directories: '' is not a path; give printable",
        ),
    ],
)
def test_mistake_is_reported_once_with_a_remedy(old: str, new: str, told: str) -> None:
    """The mistakes are numbers without units in lists, unknown keys, and values of a wrong type."""
    text = TEXT.replace('at = "/srv/mail"', 'at = "/srv/mail"\nfiles = 3', 1)
    assert old in text
    (found,) = problems(text.replace(old, new, 1))
    assert found.startswith(told)


def test_number_in_a_list_has_its_line_as_source() -> None:
    """The start of the second program has the line on which it is written."""
    (case,) = parse(TEXT, "x.toml").cases
    start = case.scenario.programs["dd"].provenance("start")
    assert start is not None
    assert start.source == "x.toml:24"


def test_number_without_unit_in_a_file_list_is_refused(tmp_path: Path) -> None:
    """The problem names the file and the line of the member.  A number with a unit is accepted."""
    member = "{ kind = 'loop', command_time = %s, page_time = '1 us' }"
    text = ONE.replace('"desk-vm"', '"box.toml"')
    for number, told in (
        ("'5 us'", ""),
        ("5", "box.toml:2: machine.disks.a.device.members.1.command_time: 5 has"),
    ):
        members = ", ".join([member % "'5 us'", member % number])
        (tmp_path / "box.toml").write_text(
            "like = 'desk-vm'\ndisks.a = { like = 'sata-disk', device = { kind = 'raid0', chunk = '64 KiB',"
            f" members = [{members}] }} }}\n"
        )
        if told:
            (found,) = problems(text, name=str(tmp_path / "x.toml"))
            assert found.startswith(f"{tmp_path}/{told}")
        else:
            parse(text, str(tmp_path / "x.toml"))


@pytest.mark.parametrize("door", ["scenario", "variant", "--set"])
def test_bad_speed_is_reported_at_its_own_place(door: str) -> None:
    """The place is not the line of the machine's ``like``."""
    text, overrides = ONE, []
    if door == "--set":
        overrides = ["machine.device.speed=-1"]
    else:
        text += (
            "machine.device.speed = -1\n" if door == "scenario" else "[variants.a]\nmachine.device.speed = -1"
        )
    line = next((n for n, line in enumerate(text.splitlines(), 1) if "speed" in line), 0)
    place = f"x.toml:{line}" if line else "--set machine.device.speed=-1"
    (found,) = problems(text, *overrides)
    assert found == f"{place}: machine.device.speed: is -1; give a factor from 0.001 to 1000, such as 2"


def test_bad_speed_of_the_only_disk_has_its_place() -> None:
    """The machine also has disks with names."""
    more = "machine.device.speed = 0\nmachine.disks.more = { like = 'sata-ssd' }\nfilesystem.disk = 'more'\n"
    found = problems(ONE.replace("[scenario]\n", f"[scenario]\n{more}"))
    assert "x.toml:3: machine.device.speed: is 0; give a factor from 0.001 to 1000, such as 2" in found


def test_missing_key_is_matched_with_a_misspelt_key() -> None:
    """The message proposes the misspelt key for a missing ``like`` and a missing ``disk``."""
    found = problems(TEXT.replace('like = "xfs"', 'lkie = "p13-xfs"').replace('disk = "hdd"', 'dsk = "hdd"'))
    assert any(problem.endswith("is lkie a misspelling of it?") for problem in found)
    assert any(problem.endswith("use one of vdb, ssd, hdd; is dsk a misspelling of it?") for problem in found)


def test_only_the_first_50_mistakes_are_reported() -> None:
    """A message lists at most 40 names."""
    keys = "".join(f"k{n} = 1\n" for n in range(3_000))
    found = problems(keys + ONE)
    assert len(found) == 51
    assert found[-1] == "x.toml: has more problems; correct these first"
    variants = "".join(f"[variants.v{n}]\n" for n in range(60))
    with pytest.raises(BadInput, match=r"v39 and 20 more$"):
        parse(ONE + variants, "x.toml", variant="none")
