"""Dumps of machines as users have them: layouts, missing files, and the content of each file."""

from __future__ import annotations

import tarfile
import tomllib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import pytest

from wbsim.experiments.cli import main
from wbsim.experiments.config.experiment import load
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.machines.describe import describe
from wbsim.experiments.machines.dump import is_wanted

CPUS: Final = {"proc/cpuinfo": "processor\t: 0\nmodel name\t: x\n\nprocessor\t: 1\n"}
MEMORY: Final = {"proc/meminfo": "MemTotal:       8000000 kB\nMemFree: 1 kB\n"}
RELEASE: Final = {"proc/sys/kernel/osrelease": "5.14.0-70.el9.x86_64\n"}
LINKED: Final = "sys/devices/pci0000:00/ata1/host0/target0:0:0/0:0:0:0"
SATA: Final = {
    f"{LINKED}/queue_depth": "31\n", f"{LINKED}/block/sda/size": "7814037168\n",
    f"{LINKED}/block/sda/queue/rotational": "1\n", f"{LINKED}/block/sda/queue/nr_requests": "128\n",
    f"{LINKED}/block/sda/queue/scheduler": "noop deadline [cfq] \n",
}  # fmt: skip
"""A disk as sysfs has it: below its controller, with links to and from sys/block."""
SYSCTL: Final = "kernel.osrelease = 4.18.0-372.el8\nkernel.sem = 1\t2\nvm.dirty_background_bytes = 0\n"
LIMITS: Final = "vm.dirty_background_ratio = 5\nvm.dirty_bytes = 209715200\nvm.dirty_ratio = 0\n"


def dump(folder: Path, *files: Mapping[str, str], linked: bool = False) -> Path:
    """Write *files* below *folder*, with the links of `SATA` if *linked*, and return the folder."""
    for name, text in {name: text for of in files for name, text in of.items()}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    if linked:
        (folder / "sys/block").mkdir(parents=True)
        (folder / "sys/block/sda").symlink_to(f"..{LINKED.removeprefix('sys')}/block/sda")
        (folder / f"{LINKED}/block/sda/device").symlink_to("../../../0:0:0:0")
    return folder


def lines(root: Path) -> list[str]:
    """Describe the machine of *root*, read the text back, and return its lines."""
    text = describe(root)
    tomllib.loads(text)
    return text.splitlines()


@pytest.mark.parametrize("below", ["", "host", "tmp/x/host-2024"])
def test_a_dump_may_lie_some_levels_below(below: str, tmp_path: Path) -> None:
    """The dump is found below the folder that is given."""
    dump(tmp_path / "in" / below, CPUS, MEMORY, RELEASE, SATA, linked=True)
    found = lines(tmp_path / "in")
    assert found[0] == '# Linux 5.14.0-70.el9.x86_64: in the configuration, kernel.like = "5.14"'
    assert {"processors.count = 2", 'memory.memory = "8000000 KiB"', "[disks.sda]  # 4001 GB"} <= {*found}
    assert 'device.size = "4000787030016 B"' in found


def test_a_tarball_keeps_links_and_loses_padding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Links within the tarball are followed.

    Zeros at the end of a file, devices and links to outside do not matter.
    """
    root = dump(tmp_path / "in", CPUS, MEMORY, RELEASE, SATA, linked=True)
    told = describe(root)
    (root / f"{LINKED}/queue_depth").write_bytes(b"31\n".ljust(4096, b"\0"))
    (root / "sys/block/loop0").symlink_to("/sys/devices/virtual/block/loop0")
    (root / "etc").mkdir()
    (root / "etc/huge").write_bytes(bytes(70 << 20))
    device = tarfile.TarInfo("host/sys/block/null")
    device.type = tarfile.CHRTYPE
    with tarfile.open(tmp_path / "m.tgz", "w:gz", compresslevel=1) as tar:
        tar.add(root, "host")
        tar.addfile(device)
        outside = tarfile.TarInfo("../sysctl")
        outside.size = len(SYSCTL)
        tar.addfile(outside, BytesIO(SYSCTL.encode()))
    assert main(["describe-machine", str(tmp_path / "m.tgz")]) == 0
    assert capsys.readouterr().out == told


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("proc/cpuinfo", True), ("./a/proc/version", True), ("a/proc/sys/vm/dirty_bytes", True),
        ("a/sys/block/sda", True), ("a/sys/devices/x/block/sda/queue/nr_requests", True),
        ("a/sys/devices/system/node/node0/cpulist", True), ("s/sos_commands/kernel/sysctl_-a", True),
        ("proc/1/maps", False), ("a/proc/kcore", False), ("a/var/log/messages", False),
        ("a/sys/kernel/debug/size_of", False),
    ],
)  # fmt: skip
def test_only_files_that_are_read_are_unpacked(name: str, wanted: bool) -> None:
    """The other files may have gigabytes."""
    assert is_wanted(name) == wanted


def test_sysctl_s_output_takes_the_place_of_proc_sys(tmp_path: Path) -> None:
    """A sosreport has this output.

    If both exist, /proc/sys counts.  A size of 0 leaves the ratio in force.
    """
    root = dump(tmp_path, CPUS, MEMORY, {"sos_commands/kernel/sysctl_-a": SYSCTL + LIMITS})
    told = (
        '# Linux 4.18.0-372.el8: in the configuration, kernel.like = "4.18",'
        ' kernel.dirty = { dirty_background_ratio = 5, dirty_bytes = "209715200 B" }'
    )
    assert lines(root)[0] == told
    dump(tmp_path, RELEASE, {"proc/sys/vm/dirty_background_ratio": "7\n"})
    first = lines(root)[0]
    assert 'kernel.like = "5.14"' in first
    assert 'dirty_background_ratio = 7, dirty_bytes = "209715200 B"' in first


def test_first_of_two_sysctl_files_counts_where_they_differ(tmp_path: Path) -> None:
    """A dump has the outputs of two days, which are read by name: sos_commands comes before sysctl.

    A setting that only the second file has is taken from there.
    """
    early = {"sos_commands/kernel/sysctl_-a": "kernel.osrelease = 5.14.0\nvm.dirty_ratio = 11\n"}
    late = {"sysctl.txt": "kernel.osrelease = 6.1.0\nvm.dirty_ratio = 22\nvm.dirty_background_ratio = 3\n"}
    first = lines(dump(tmp_path, CPUS, MEMORY, early, late))[0]
    assert first == (
        '# Linux 5.14.0: in the configuration, kernel.like = "5.14",'
        " kernel.dirty = { dirty_ratio = 11, dirty_background_ratio = 3 }"
    )


def test_first_of_two_lines_of_a_sysctl_file_counts(tmp_path: Path) -> None:
    """Files are joined by hand, too.  The error for a bad value names the file that has it."""
    root = dump(tmp_path, CPUS, MEMORY, RELEASE, {"a-sysctl": "vm.dirty_ratio = 11\nvm.dirty_ratio = 22\n"})
    assert lines(root)[0].endswith("kernel.dirty = { dirty_ratio = 11 }")
    dump(root, {"b-sysctl": "vm.dirty_ratio = x\nvm.dirty_bytes = many\n"})
    with pytest.raises(BadInput, match=rf"^{root}/b-sysctl: is 'many'; a whole number was expected$"):
        describe(root)


@pytest.mark.parametrize("folders", [3, 4])
def test_search_ends_at_a_level_with_too_many_folders(
    folders: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound is set to 3 folders; the dump lies one level below them."""
    monkeypatch.setattr("wbsim.experiments.machines.dump._MOST_FOLDERS", 3)
    for number in range(folders - 1):
        (tmp_path / f"a{number}").mkdir()
    dump(tmp_path / "b" / "host", CPUS, MEMORY)
    if folders == 3:
        assert "processors.count = 2" in lines(tmp_path)
    else:
        with pytest.raises(BadInput, match="lacks the processors and the memory"):
            lines(tmp_path)


def test_every_file_of_a_queue_becomes_a_key(tmp_path: Path) -> None:
    """Sizes have the unit of their file: KiB for max_sectors_kb, and bytes for max_segment_size.

    max_segment_size is 2^32 - 1 without a limit; a configuration takes whole KiB below 2^32.
    """
    queue = {
        "max_sectors_kb": "1280", "max_segments": "168", "max_segment_size": "4294967295", "nomerges": "2",
        "nr_requests": "64", "write_cache": "write back", "fua": "1", "wbt_lat_usec": "75000",
        "rotational": "0", "scheduler": "[none] mq-deadline",
    }  # fmt: skip
    disk = {"sys/block/nvme0n1/size": "2048\n"}
    disk |= {f"sys/block/nvme0n1/queue/{name}": f"{text}\n" for name, text in queue.items()}
    found = lines(dump(tmp_path, CPUS, MEMORY, RELEASE, disk))
    assert found[found.index("[disks.nvme0n1]  # 0 GB") + 1 :] == [
        'like = "pm9a3"  # assumed: the kernel does not know its speed', 'device.size = "1048576 B"',
        'queue.limits.max_sectors_bytes = "1280 KiB"', "queue.limits.max_segments = 168",
        'queue.limits.max_segment_bytes = "4294966272 B"', "queue.limits.nomerges = 2",
        "queue.nr_requests = 64", "queue.driver_depth = 64",
        "queue.fua = true", 'queue.elevator.scheduler = "none"', "queue.wbt = true",
        "device.protected = false",
    ]  # fmt: skip
    dump(
        tmp_path,
        {"sys/block/nvme0n1/queue/wbt_lat_usec": "0", "sys/block/nvme0n1/queue/max_segment_size": "65536"},
    )
    assert {'queue.limits.max_segment_bytes = "65536 B"', "queue.wbt = false"} <= {*lines(tmp_path)}


def test_background_ratio_of_0_is_a_setting(tmp_path: Path) -> None:
    """The kernel's default of 10 % would count without the key.

    A size in bytes makes the ratio meaningless.
    """
    root = dump(tmp_path, CPUS, MEMORY, RELEASE, {"sysctl": "vm.dirty_background_ratio = 0\n"})
    assert lines(root)[0].endswith("kernel.dirty = { dirty_background_ratio = 0 }")
    dump(tmp_path, {"proc/sys/vm/dirty_background_bytes": "8192\n"})
    assert lines(root)[0].endswith('kernel.dirty = { dirty_background_bytes = "8192 B" }')


def test_sysctl_without_a_number_is_an_error(tmp_path: Path) -> None:
    """The error names the file and the text."""
    root = dump(tmp_path, CPUS, MEMORY, {"sysctl.txt": "vm.dirty_ratio = many\n"})
    with pytest.raises(BadInput, match=r"sysctl\.txt: is 'many'; a whole number was expected"):
        describe(root)


@pytest.mark.parametrize(
    ("files", "first"),
    [
        (
            {"proc/version": "Linux version 2.6.32-754.el6.x86_64 (mockbuild@x) (gcc 4.4.7) #1 SMP\n"},
            '# Linux 2.6.32-754.el6.x86_64: in the configuration, kernel.like = "2.6.32"',
        ),
        (
            {"proc/sys/kernel/osrelease": "3.10.0-1160.el7\n", "proc/version": "Linux version 9.9 (x)\n"},
            '# Linux 3.10.0-1160.el7: in the configuration, kernel.like = "3.10"',
        ),
        ({}, "# Linux of an unknown release: in the configuration, nothing"),
        ({"proc/sys/kernel/osrelease": "9.1.2\n"}, "# Linux 9.1.2: in the configuration, nothing"),
    ],
)
def test_release_comes_from_the_file_that_has_it(files: dict[str, str], first: str, tmp_path: Path) -> None:
    """The first line proposes only a release that a configuration accepts.

    Another line states why a release is missing.
    """
    found = lines(dump(tmp_path, CPUS, MEMORY, files))
    assert found[0] == first
    assert ("# The release is unknown: proc/sys/kernel/osrelease and proc/version lack it" in found) == (
        not files
    )
    not_modelled = "# Linux 9.1.2 is not modelled; kernel.like takes releases from 2.6.29 to 6.18"
    assert (not_modelled in found) == ("9.1.2" in first)


def test_periods_other_than_the_defaults_are_keys(tmp_path: Path) -> None:
    """30 s and 5 s are the defaults; an interval of 0 has no key."""
    vm = "proc/sys/vm/dirty_"
    root = dump(tmp_path, CPUS, MEMORY, {f"{vm}expire_centisecs": "3000", f"{vm}writeback_centisecs": "500"})
    assert "writeback" not in lines(root)[0]
    dump(tmp_path, {f"{vm}expire_centisecs": "1500", f"{vm}writeback_centisecs": "0"})
    assert 'kernel.writeback.expire = "15000 ms"' in lines(root)[0]
    note = "# vm.dirty_writeback_centisecs is 0, which turns periodic writeback off; this is not modelled"
    assert note in lines(root)


@pytest.mark.parametrize(
    ("said", "ours"),
    [
        ("noop deadline [cfq] ", '"cfq"'), ("noop anticipatory [deadline] cfq", '"deadline"'),
        ("[none] mq-deadline kyber bfq", '"none"'), ("none [mq-deadline]", '"mq-deadline"'),
        ("none", '"none"'),
        ("[bfq] none", '"noop"  # bfq is not modelled'), ("[kyber] none", '"noop"  # kyber is not modelled'),
    ],
)  # fmt: skip
def test_the_scheduler_between_brackets_is_chosen(said: str, ours: str, tmp_path: Path) -> None:
    """The legacy path and blk-mq have different names for schedulers."""
    scheduler = {f"{LINKED}/block/sda/queue/scheduler": said}
    root = dump(tmp_path, CPUS, MEMORY, RELEASE, SATA, scheduler, linked=True)
    assert f"queue.elevator.scheduler = {ours}" in lines(root)


def test_scheduler_that_the_release_lacks_gets_its_legacy_name(tmp_path: Path) -> None:
    """Distributions add mq-deadline to Linux 3.10, for which a configuration names it deadline."""
    old = {"proc/sys/kernel/osrelease": "3.10.0-1160.el7.x86_64\n"}
    scheduler = {f"{LINKED}/block/sda/queue/scheduler": "[mq-deadline] kyber none"}
    assert 'queue.elevator.scheduler = "deadline"' in lines(
        dump(tmp_path, CPUS, MEMORY, old, SATA, scheduler, linked=True)
    )


def test_driver_depth_is_the_depth_of_the_device(tmp_path: Path) -> None:
    """The elevator's nr_requests stands for the depth if the device has none."""
    root = dump(tmp_path, CPUS, MEMORY, RELEASE, SATA, linked=True)
    assert {"queue.nr_requests = 128", "queue.driver_depth = 31", "queue.queue_depth = 31"} <= {*lines(root)}
    (root / f"{LINKED}/queue_depth").unlink()
    assert {"queue.nr_requests = 128", "queue.driver_depth = 128"} <= {*lines(root)}


@pytest.mark.parametrize(("name", "rotates"), [("vda", "1"), ("vda", "0"), ("xvdf", "1")])
def test_a_virtual_disk_is_not_taken_for_a_rotating_one(name: str, rotates: str, tmp_path: Path) -> None:
    """A virtio disk reports that it rotates, whatever lies beneath it."""
    disk = {f"sys/block/{name}/size": "2048\n", f"sys/block/{name}/queue/rotational": f"{rotates}\n"}
    found = "\n".join(lines(dump(tmp_path, CPUS, MEMORY, RELEASE, disk)))
    assert f'[disks.{name}]  # 0 GB\nlike = "virtio-ssd"  # assumed: a virtual disk' in found
    assert ("for which rotational is 1 whatever the host uses" in found) == (rotates == "1")


PARTITIONS: Final = "major minor  #blocks  name\n\n   8  0  976762584 sda\n   8  1  976761560 sda1\n"


def test_disks_come_from_partitions_without_sys_block(tmp_path: Path) -> None:
    """Partitions of a disk are left out, and a configuration accepts the described machine."""
    partitions = {"proc/partitions": f"{PARTITIONS} 259  0  937692504 nvme0n1\n 253 0 1 dm-0\n"}
    root = dump(tmp_path / "in", CPUS, MEMORY, RELEASE, partitions)
    found = lines(root)
    assert [line for line in found if line.startswith("[")] == [
        "[disks.sda]  # 1000 GB", "[disks.nvme0n1]  # 960 GB",
    ]  # fmt: skip
    assert "# sys/devices/system is missing, so one node is assumed" in found
    (tmp_path / "box.toml").write_text("\n".join(found))
    config = tmp_path / "x.toml"
    config.write_text(
        'title = "t"\n[scenario]\nmachine.like = "./box.toml"\nkernel.like = "5.14"\n'
        'mounts.data = { like = "loop-ext4", disk = "sda", at = "/data" }\n'
        'programs.dd = "dd if=/dev/zero of=/data/a bs=4k count=1"\n'
    )
    machine: Any = load(config).cases[0].scenario.machine
    assert [device.device.kind for device in machine.disks.values()] == ["ssd", "ssd"]
    assert machine.processors.count == 2


EMPTY: Final = {"sys/block/sdb/queue/rotational": "1\n", "sys/block/sdb/size": "0\n"}
"""A card reader without a card."""


@pytest.mark.parametrize("block", [{}, {"sys/block/loop0/queue/rotational": "0\n"}, EMPTY])
def test_dump_without_disks_states_what_to_write(block: dict[str, str], tmp_path: Path) -> None:
    """Processors, memory and dirty limits are described, too."""
    found = lines(dump(tmp_path, CPUS, MEMORY, RELEASE, block))
    why = "has only loop, ram, dm, md and empty devices" if block else "is missing"
    assert f"# No disk is known, so the disks of desk-vm are used: sys/block {why}." in found
    assert "processors.count = 2" in found
    assert "# vm.dirty_* is missing, so the kernel's defaults are used" in found


def test_a_disk_of_unknown_size_is_described(tmp_path: Path) -> None:
    """The size comes from proc/partitions if sysfs does not have it."""
    root = dump(tmp_path, CPUS, MEMORY, RELEASE, {"sys/block/sda/queue/rotational": "1\n"})
    assert "[disks.sda]  # size unknown" in lines(root)
    assert "[disks.sda]  # 1000 GB" in lines(dump(tmp_path, {"proc/partitions": PARTITIONS}))


def test_processors_and_memory_come_from_sys_without_proc(tmp_path: Path) -> None:
    """The list of processors online, and the sum of all nodes."""
    system = "sys/devices/system"
    files = {f"{system}/cpu/online": "0-3,8\n"}
    files |= {f"{system}/node/node{n}/meminfo": f"Node {n} MemTotal:  {n + 1}000 kB\n" for n in range(2)}
    found = lines(dump(tmp_path, files))
    assert found[-6:-3] == ["processors.count = 5", "processors.nodes = 2", 'memory.memory = "3000 KiB"']


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (
            MEMORY,
            "# The number of processors is unknown: proc/cpuinfo and sys/devices/system/cpu/online lack it",
        ),
        (CPUS, "# The size of the memory is unknown: proc/meminfo lacks it"),
    ],
)
def test_missing_file_is_noted_in_a_line(files: dict[str, str], told: str, tmp_path: Path) -> None:
    """All other files are described."""
    assert told in lines(dump(tmp_path, files, RELEASE))


def test_processors_are_counted_on_any_architecture(tmp_path: Path) -> None:
    """The kernel of s390 prints the number before the colon."""
    said = "# processors    : 2\nprocessor 0: version = FF\nprocessor 1: version = FF\n"
    assert "processors.count = 2" in lines(dump(tmp_path, MEMORY, {"proc/cpuinfo": said}))


def test_dump_of_several_machines_is_refused(tmp_path: Path) -> None:
    """The error names the machines."""
    for name in ("a", "b"):
        dump(tmp_path / name, CPUS, MEMORY)
    with pytest.raises(
        BadInput, match=rf"has several machines; give one of them: {tmp_path}/a, {tmp_path}/b"
    ):
        describe(tmp_path)
