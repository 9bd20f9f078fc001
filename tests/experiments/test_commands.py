"""Commands that answer without a run: `list`, `show`, `schema`, `completion`, `describe-machine`."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from shutil import rmtree
from typing import Any

import jsonschema
import pytest

from tests.harness import FIO, loop_config
from wbsim.experiments.cli import COMMANDS, main
from wbsim.experiments.config.experiment import load
from wbsim.experiments.config.resolved_scenario import resolved
from wbsim.experiments.config.schema import json_schema
from wbsim.experiments.formats.reference import reference
from wbsim.experiments.formats.table import WIDTH
from wbsim.experiments.running.version import model_version
from wbsim.models.kinds import kinds

CONFIGS = sorted(Path(__file__).parents[2].glob("wbsim/experiments/configs/*.toml"))


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run wbsim with *words* and return what it prints."""
    assert main(list(words)) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("machines", ["p13-vm", "w25-server"]),
        ("devices", ["ssd", "raid0"]),
        ("disks", ["pm9a3", "virtio-ssd"]),
        ("filesystems", ["xfs", "ext4", "loop-ext4"]),
        ("kernels", ["3.11-v13", "2.6.29 to 6.18", "2.6.37"]),
        ("workloads", ["fs_mark, fsmark", "sync"]),
        ("figures", ["write_iops", "lock_wait_time"]),
        ("rules", ["kernel.plug.tried", "queue.blk_mq (SATA)", "mkfs.xfs.rmapbt"]),
    ],
)
def test_list_has_a_line_for_each_name(
    what: str, names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each kind of thing that a configuration can name has a list."""
    cells = [re.split("  +", line) for line in printed(capsys, "list", what).splitlines()[2:]]
    lines = [line[0] for line in cells]
    assert set(names) <= set(lines)
    assert len(set(lines)) > 3


def test_each_entry_says_what_it_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Entries of machines, filesystems and workloads fill every column; each list states its use."""
    for what in ("machines", "filesystems", "workloads"):
        heading, ruler, *rows = printed(capsys, "list", what).splitlines()
        ends = [found.span() for found in re.finditer("-+", ruler)]
        *entries, blank, use = rows
        assert heading.startswith(("machine", "filesystem", "command"))
        assert all(map(str.strip, (entries[0][first:last] for first, last in ends)))
        assert max(map(len, entries)) <= WIDTH
        assert (blank, use.partition(" ")[0]) == ("", "use:")


def test_each_entry_says_what_it_was_fitted_to(capsys: pytest.CaptureFixture[str]) -> None:
    """The entry of a machine or a drive names the reports that its constants were set from, or `nothing`."""
    machines = printed(capsys, "list", "machines")
    assert re.search(r"\nn10-vm .* N10, P13, V13 ", machines)
    assert re.search(r"\ndesk-vm .* nothing ", machines)
    assert re.search(r"\npm9a3 .* W25 ", printed(capsys, "list", "disks"))


def test_disks_are_listed_by_family_with_their_figures(capsys: pytest.CaptureFixture[str]) -> None:
    """A line has the size, sequential and random writes, and durable writes of one job; - is not known."""
    text = printed(capsys, "list", "disks")
    document = json.loads(printed(capsys, "list", "disks", "--json"))
    lines = [list(entry.values()) for entry in document]
    assert [
        "SATA SSD", "860-evo-1tb", "Samsung 860 EVO 1 TB (2018)", "nothing", "1 000 GB", "520.0", "90 000",
        "490.0",
    ] in lines  # fmt: skip
    rows = lines
    families = [row[0] for row in rows]
    assert [*dict.fromkeys(families)][:4] == ["SATA disk", "SAS disk", "SMR disk", "SATA SSD"]
    assert len({row[0] for row in rows}) == sum(
        first != second for first, second in zip(families, ["", *families], strict=False)
    )
    assert "a drive that is not here: wbsim describe-drive" in text


@pytest.mark.parametrize("kind", kinds("workloads"))
def test_example_of_each_workload_can_be_read(kind: str) -> None:
    """The example is a command line of the workload's program."""
    spec = kinds("workloads")[kind].spec
    assert spec.example.split()[0] == spec.programs[0]
    assert spec.fields_of([spec.example])["kind"] == kind


def test_show_prints_every_number_with_its_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The text states where each number comes from.  The JSON document is the scenario that is run."""
    config = tmp_path / "x.toml"
    config.write_text(loop_config(f"{FIO} --rw=write --filesize=1m --name=a", dirty_mib=2))
    lines = printed(
        capsys, "show", str(config), "--set", "machine.processors.count=3", "--sources"
    ).splitlines()
    place = next(place for place, line in enumerate(lines) if line.startswith("machine.processors.count "))
    assert lines[place].split() == ["machine.processors.count", "3", "specified"]
    assert lines[place + 1] == "    --set machine.processors.count=3"
    assert max(map(len, lines)) <= WIDTH
    document = json.loads(printed(capsys, "show", str(config), "--json"))
    (case,) = load(config).cases
    assert document == json.loads(json.dumps(resolved(case.scenario)))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_shipped_configurations_satisfy_the_schema(path: Path) -> None:
    """An editor that uses the schema marks nothing in them."""
    import tomllib

    jsonschema.validate(tomllib.loads(path.read_text()), json_schema())


@pytest.mark.parametrize(
    "wrong", [{"titel": "x"}, {"scenario": {"machin": {}}}, {"replications": 0}, {"sweep": {"x": 1}}]
)
def test_schema_refuses_unknown_keys_and_bad_values(wrong: dict[str, Any]) -> None:
    """An unknown key is refused at the top, in the scenario and in a sweep.

    Zero replications are refused, too.
    """
    good = {"title": "t", "scenario": {}}
    jsonschema.validate(good, json_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**good, **wrong}, json_schema())


def test_every_key_is_in_the_reference(capsys: pytest.CaptureFixture[str]) -> None:
    """A row of the reference has the meaning, the values and the default of a key."""
    text = printed(capsys, "schema", "--reference")
    assert text.strip() == reference().strip()
    for row in (
        "| `machine.processors.waker_time` | The time that this wake-up takes the waker. | time, 0 to 1 s"
        " | the machine's |",
        "| `filesystem.agcount` | The number of allocation groups. | whole number, 1 or more"
        " | the filesystem's |",
        "| `machine.disks.NAME.queue.limits.max_sectors_bytes` | The size of the largest request"
        " (max_sectors_kb). | size, 4 KiB or more, multiple of 512 B | the drive's |",
    ):
        assert row in text.splitlines()
    assert json.loads(printed(capsys, "schema"))["required"] == ["title", "scenario"]


def test_completion_knows_every_command_and_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The test asks bash for completions, as an interactive shell does."""
    script = tmp_path / "c.bash"
    script.write_text(printed(capsys, "completion", "bash"))

    def completions(*words: str) -> set[str]:
        line = " ".join(f"'{word}'" for word in ("wbsim", *words))
        ask = f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _shtab_wbsim"
        ask += "; echo ${COMPREPLY[@]}"
        return set(
            subprocess.run(["bash", "-c", ask], capture_output=True, text=True, cwd=tmp_path).stdout.split()
        )

    assert set(COMMANDS) <= completions("")
    assert completions("sw") == {"sweep"}
    assert {"--until-ci", "--replications"} <= completions("sweep", "--")
    assert completions("list", "k") == {"kernels"}


def test_the_version_names_the_model_and_its_engine() -> None:
    """The version makes it possible to distinguish results of different models."""
    command = [sys.executable, "-m", "wbsim.experiments.cli", "--version"]
    told = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "WBSIM_ENGINE": "light"}, check=True
    )
    assert told.stdout == f"wbsim 0.1.0, model {model_version()}, light engine\n"
    wrong = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "WBSIM_ENGINE": "x"})
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "wbsim: WBSIM_ENGINE=x is not an engine; use one of simpy, light, compiled\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The /proc and /sys of a machine.

    The machine has 16 processors, two nodes, 64 GB, an NVMe drive, a disk and a loop device.
    """
    files = {
        "proc/cpuinfo": "".join(f"processor\t: {n}\nmodel name\t: x\n\n" for n in range(16)),
        "proc/meminfo": "MemTotal:       65536000 kB\nMemFree: 1 kB\n",
        "proc/sys/kernel/osrelease": "6.12.43+deb13-amd64\n", "proc/sys/vm/dirty_ratio": "20\n",
        "proc/sys/vm/dirty_background_ratio": "0\n", "proc/sys/vm/dirty_background_bytes": "67108864\n",
        "sys/devices/system/node/node0/cpulist": "0-7\n", "sys/devices/system/node/node1/cpulist": "8-15\n",
        "sys/block/nvme0n1/size": "1758174768\n", "sys/block/sda/size": "7814037168\n",
        "sys/block/loop0/size": "99\n",
    }  # fmt: skip
    queues = {
        "nvme0n1": {
            "rotational": "0", "max_sectors_kb": "128", "max_segments": "33",
            "max_segment_size": "4294967295", "nomerges": "0", "nr_requests": "1023",
            "scheduler": "[none] mq-deadline", "write_cache": "write through", "wbt_lat_usec": "0",
        },
        "sda": {
            "rotational": "1", "max_sectors_kb": "1280", "nr_requests": "64",
            "scheduler": "none mq-deadline [bfq]",
        },
    }  # fmt: skip
    for disk, keys in queues.items():
        files |= {f"sys/block/{disk}/queue/{key}": f"{value}\n" for key, value in keys.items()}
    for name, text in files.items():
        (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / name).write_text(text)
    return tmp_path / "root"


def test_described_machine_runs_an_experiment(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`describe-machine` reads a folder or a tarball of the folder.

    The described disks replace the inherited ones.  Numbers that /proc and /sys do not have are assumed.
    """
    box = tmp_path / "box.toml"
    assert main(["describe-machine", str(root), "--out", str(box)]) == 0
    assert capsys.readouterr().err == f'wrote {box}; use it with machine.like = "./box.toml"\n'
    with tarfile.open(tmp_path / "m.tgz", "w:gz") as tar:
        tar.add(root, ".")
    assert printed(capsys, "describe-machine", str(tmp_path / "m.tgz")) == box.read_text()
    assert box.read_text().startswith(
        '# Linux 6.12.43+deb13-amd64: in the configuration, kernel.like = "6.12.43",'
        ' kernel.dirty = { dirty_ratio = 20, dirty_background_bytes = "67108864 B" }\n'
    )
    config = tmp_path / "x.toml"
    config.write_text(
        'title = "t"\n[scenario]\nmachine.like = "./box.toml"\nkernel.like = "6.12"\n'
        'mounts.data = { like = "loop-ext4", disk = "nvme0n1", at = "/data", size = "900 GB" }\n'
        f'programs.fio = "{FIO} --rw=randwrite --filesize=1m --name=a --directory=/data"\n'
    )
    (case,) = load(config).cases
    machine: Any = case.scenario.machine
    assert (machine.processors.count, machine.processors.nodes) == (16, 2)
    assert machine.memory.memory == 65_536_000 << 10
    assert list(machine.disks) == ["nvme0n1", "sda"]
    assert "[disks.nvme0n1]  # 900 GB\n" in box.read_text()
    limits, queue = machine.disks["nvme0n1"].queue.limits, machine.disks["nvme0n1"].queue
    assert (limits.max_sectors_bytes, limits.max_segments) == (128 << 10, 33)
    assert (queue.nr_requests, queue.wbt) == (1023, False)
    assert not machine.disks["nvme0n1"].device.volatile
    assert (machine.disks["nvme0n1"].device.kind, machine.disks["sda"].device.kind) == ("ssd", "disk")
    scale = machine.processors.provenance("writer_scale")
    assert (scale.origin.value, scale.low, scale.high) == ("assumed", 0.3, 3.0)
    assert main(["run", str(config)]) == 0


@pytest.mark.parametrize(
    ("cache", "protected"), [("write through", True), ("write back", False)], ids=["through", "back"]
)
def test_described_ssd_with_write_through_is_protected(
    root: Path, tmp_path: Path, cache: str, protected: bool
) -> None:
    """A SATA SSD that reports write through asks for no flush, so its cache survives a power cut."""
    for key, text in (("rotational", "0"), ("write_cache", cache)):
        (root / "sys/block/sda/queue" / key).write_text(f"{text}\n")
    box = tmp_path / "box.toml"
    assert main(["describe-machine", str(root), "--out", str(box)]) == 0
    config = tmp_path / "x.toml"
    config.write_text(
        'title = "t"\n[scenario]\nmachine.like = "./box.toml"\nkernel.like = "6.12"\n'
        'mounts.data = { like = "loop-ext4", disk = "sda", at = "/data", size = "4 GB" }\n'
        'programs.dd = "dd if=/dev/zero of=/data/f bs=4k count=1"\n'
    )
    (case,) = load(config).cases
    drive: Any = case.scenario.machine.disks["sda"]
    assert (drive.device.volatile, drive.device.protected) == (not protected, protected)


@pytest.mark.parametrize("said", ["x", "1.5", "64 65", "²", "9" * 5_000, "\\xff", 'a"\nb = "c'])
@pytest.mark.parametrize("file", ["size", "queue/max_segments", "queue/write_cache", "queue/nr_requests"])
def test_nonsense_in_sys_block_is_one_error(
    said: str, file: str, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names the file, and nothing is written."""
    at = root / "sys" / "block" / "nvme0n1" / file
    at.write_bytes(said.encode("latin-1", "replace") if "x" not in said else b"\xff\n")
    assert main(["describe-machine", str(root), "--out", str(tmp_path / "box.toml")]) == 2
    assert capsys.readouterr().err.startswith(f"wbsim: {at}: ")
    assert not (tmp_path / "box.toml").exists()


@pytest.mark.skipif(not Path("/proc/sys/vm").is_dir(), reason="a system without /proc/sys")
def test_describe_machine_reads_release_and_dirty_limits_of_live_kernel(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder *root* has links to the running kernel's /proc/sys: a copy would hide refused reads."""
    rmtree(root / "proc/sys")
    (root / "proc/sys").symlink_to("/proc/sys")
    names = ("dirty_ratio", "dirty_background_ratio", "dirty_bytes", "dirty_background_bytes")
    limits = {name: Path("/proc/sys/vm", name).read_text().strip() for name in names}
    first = printed(capsys, "describe-machine", str(root)).splitlines()[0]
    assert first.startswith(f"# Linux {os.uname().release}: ")
    for name, limit in limits.items():
        shown = f'{name} = "{limit} B"' if name.endswith("bytes") else f"{name} = {limit}"
        assert (f"{shown} }}" in first or f"{shown}," in first) == (limit != "0")


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        ("proc/sys/vm/dirty_ratio", errno.ENOMEM), ("proc/sys/kernel/osrelease", errno.EINVAL),
        ("proc/meminfo", errno.EACCES), ("sys/block/sda/queue/nr_requests", errno.EIO),
        ("sys/block/nvme0n1/queue/wbt_lat_usec", errno.EIO),
    ],
)  # fmt: skip
def test_describe_machine_reports_file_that_cannot_be_read(
    refused: str, error: int, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a file that does not exist is left out; every other error names the file and the reason."""
    refuse(root / refused, error, monkeypatch)
    assert main(["describe-machine", str(root)]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"wbsim: {root / refused}: cannot be read ({os.strerror(error)}); ")
    assert told.count("\n") == 1


def test_einval_of_wbt_lat_usec_means_no_wbt(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """queue_wb_lat_show returns EINVAL if the queue has no wbt; a FIFO in its place remains an error."""
    at = root / "sys/block/nvme0n1/queue/wbt_lat_usec"
    at.write_text("2000\n")
    assert "queue.wbt = true\n" in printed(capsys, "describe-machine", str(root))
    with monkeypatch.context() as patched:
        refuse(at, errno.EINVAL, patched)
        assert "queue.wbt = false\n" in printed(capsys, "describe-machine", str(root))
    at.unlink()
    os.mkfifo(at)
    assert main(["describe-machine", str(root)]) == 2
    assert f"{at}: cannot be read (is not a regular file); " in capsys.readouterr().err


def refuse(path: Path, error: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let read(2) of the file *path* fail with *error*."""
    read, refused = os.read, path.stat().st_ino

    def refusing(file: int, count: int) -> bytes:
        if os.fstat(file).st_ino == refused:
            raise OSError(error, os.strerror(error))
        return read(file, count)

    monkeypatch.setattr(os, "read", refusing)


def test_describe_machine_replaces_only_earlier_machine_files(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An experiment, a FIFO and links stay as they are."""
    words, box = ["describe-machine", str(root), "--out"], tmp_path / "box.toml"
    for _ in range(2):
        assert main([*words, str(box)]) == 0
    box.write_text('title = "an experiment"\n')
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/dev/null")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    capsys.readouterr()
    for name in ("box.toml", "fifo", "link", "dangling"):
        assert main([*words, str(tmp_path / name)]) == 2
        assert (
            f"--out {tmp_path / name}: exists and is not a machine file of wbsim" in capsys.readouterr().err
        )
    assert box.read_text() == 'title = "an experiment"\n'
    assert (tmp_path / "link").is_symlink()
    with pytest.raises(SystemExit):
        main([*words, ""])


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("cut", "is not a tarball (Compressed file ended"),
        ("text", "is not a tarball (file could not be opened"),
    ],
)
def test_damaged_tarball_is_one_short_error(
    damage: str, told: str, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A tarball that is cut off, another file and a name that is too long give one line each."""
    path = tmp_path / "m.tgz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(root, ".")
    path.write_bytes(path.read_bytes()[:300] if damage == "cut" else b"what")
    assert main(["describe-machine", str(path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"wbsim: {path}: {told}")
    assert said.count("\n") == 1
    assert main(["describe-machine", "x" * 300]) == 2
    assert "File name too long" in capsys.readouterr().err


def test_machine_without_numa_nodes_counts_as_one_node(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The /sys of a kernel without CONFIG_NUMA has no nodes."""
    rmtree(root / "sys/devices/system/node")
    assert "processors.nodes = 1\n" in printed(capsys, "describe-machine", str(root))


def test_disk_name_with_exclamation_mark_is_quoted(root: Path, tmp_path: Path) -> None:
    """HP's driver names a disk cciss!c0d0, which must be quoted as a key of TOML."""
    (root / "sys/block/sda").rename(root / "sys/block/cciss!c0d0")
    assert main(["describe-machine", str(root), "--out", str(tmp_path / "box.toml")]) == 0
    assert "cciss!c0d0" in tomllib.loads((tmp_path / "box.toml").read_text())["disks"]


@pytest.mark.parametrize("given", ["nothing", "no tarball"])
def test_folder_or_file_without_machine_is_one_error(
    given: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The status is 2, and the error states what to give."""
    at = root / ("proc" if given == "nothing" else "proc/cpuinfo")
    assert main(["describe-machine", str(at)]) == 2
    why = {"nothing": "give / or a copy", "no tarball": "is not a tarball"}
    assert why[given] in capsys.readouterr().err


def test_file_of_a_disk_can_be_copied(capsys: pytest.CaptureFixture[str]) -> None:
    """The output is a disk file; a name without a file is refused."""
    assert tomllib.loads(printed(capsys, "list", "disks", "virtio-ssd")) == {
        "purpose": "the SATA SSD of 2013, as a virtio disk of a guest",
        "family": "virtio disk", "like": "sata-ssd", "queue": {"like": "virtio"},
    }  # fmt: skip
    assert main(["list", "disks", "pm9a4"]) == 2
    assert capsys.readouterr().err == "wbsim: list: pm9a4: unknown name; did you mean pm9a3?\n"


@pytest.mark.parametrize(
    ("word", "line"),
    [
        ("machine", "machine "),
        ("drives", "disk "),
        ("kern", "kernel "),
        ("release", "kernel "),
        ("wall_time", "figure "),
        ("fsmark", "command "),
        ("6.1", "kernel "),
        ("plug.tried", "kernel.plug.tried"),
        ("p13-xfs", "purpose = "),
        ("pm9a3", "purpose = "),
    ],
)
def test_list_guesses_what_a_word_means(word: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A word is a kind, another word for a kind, its beginning, or a name of any kind."""
    assert any(entry.startswith(line) for entry in printed(capsys, "list", word).splitlines()[:3])


def test_list_without_a_word_has_the_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    kinds_of_names = json.loads(printed(capsys, "list", "--json"))
    assert [entry["kind"] for entry in kinds_of_names][:3] == ["machines", "disks", "devices"]
    assert all(int(entry["names"]) > 3 for entry in kinds_of_names)


def test_list_proposes_near_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "pm9"]) == 2
    error = capsys.readouterr().err
    assert error == "wbsim: list: pm9: is neither a kind nor a name; did you mean pm9a3?\n"
    assert main(["list", "kernels", "wall_time"]) == 2
    assert "is none of the kernels; wbsim list kernels prints them" in capsys.readouterr().err


def test_list_has_documents_of_files_and_rules(capsys: pytest.CaptureFixture[str]) -> None:
    drive = json.loads(printed(capsys, "list", "pm9a3", "--json"))
    assert drive["family"] == "enterprise NVMe SSD"
    (rule,) = json.loads(printed(capsys, "list", "plug.tried", "--json"))
    assert rule["rule"] == "kernel.plug.tried"
    assert rule["values"][0]["value"] == "all"
