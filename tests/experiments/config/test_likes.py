"""User-supplied parts that ``like`` finds, and devices at another speed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wbsim.experiments.config import likes
from wbsim.experiments.config.experiment import load, parse
from wbsim.experiments.config.problems import BadInput
from wbsim.models.catalogue.data_files import text_of
from wbsim.models.catalogue.drives import drives_of
from wbsim.models.catalogue.machines import machines_of
from wbsim.models.release import release_of
from wbsim.models.scenario import Scenario
from wbsim.sim.param import Number, Origin

TEXT = """title = "t"
[scenario]
machine.like = "box"
kernel.like = "mine"
filesystem.like = "./fs.toml"
workload.command = "fs_mark -S0 -k -n 5 -s 4096 -d /a"
"""
BOX = """like = "p13-vm"
processors.count = 3
processors.wake_time = { assumed = "7 us", low = "1 us", high = "50 us", why = "nobody knows" }
disks.own = { like = "quick" }
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration, files with a machine, a disk and a filesystem near it, and a kernel in `HOME`."""
    home = tmp_path / "home"
    monkeypatch.setattr(likes, "HOME", home)
    files = {
        "x.toml": TEXT, "machines/box.toml": BOX, "fs.toml": 'like = "loop-xfs"\nagcount = 2\n',
        "disks/quick.toml": 'like = "sata-ssd"\ndevice.command_time = "1 us"\n',
        "home/kernels/mine.toml": 'like = "6.12"\ndirty.dirty_ratio = 30\n',
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path / "x.toml"


def scenario_of(config: Path, *overrides: str) -> Scenario:
    """Return the scenario of the only case."""
    (case,) = load(config, overrides).cases
    return case.scenario


def test_like_finds_files_of_the_user(config: Path) -> None:
    """A file is found next to the configuration, in the folder of its kind, in `HOME` or by its path.

    The keys of a file are put over the part that its own ``like`` names.
    """
    found: Any = scenario_of(config)
    assert found.machine.processors.count == 3
    assert found.machine.memory.memory == 16 << 30, "the memory of p13-vm is inherited"
    assert list(found.machine.disks) == ["own"], "the new disk replaces the inherited disks"
    assert found.machine.disks["own"].device.command_time == 1_000
    assert (found.kernel.name, found.kernel.dirty.dirty_ratio) == ("6.12", 30)
    (mount,) = found.mounts.values()
    assert mount.filesystem.agcount == 2
    over: Any = scenario_of(config, "machine.processors.count=5", "filesystem.agcount=1")
    assert over.machine.processors.count == 5
    assert list(over.machine.disks) == ["own"]


def test_file_changes_a_disk_of_its_base(config: Path) -> None:
    """A file whose disks are all disks of its base changes these; ``like`` replaces one."""
    (config.parent / "machines" / "box.toml").write_text(
        'like = "p13-vm"\ndisks.vdb.queue.nr_requests = 64\n'
    )
    queue = scenario_of(config).machine.disks["vdb"].queue
    base = machines_of(release_of("6.12"))["p13-vm"].disks["vdb"]
    assert queue.model_dump() == {**base.queue.model_dump(), "nr_requests": 64}
    (config.parent / "machines" / "box.toml").write_text('like = "p13-vm"\ndisks.vdb.like = "sata-disk"\n')
    disk = scenario_of(config, 'filesystem.size="100 GB"').machine.disks["vdb"]
    assert disk.model_dump() == drives_of(release_of("6.12"))["sata-disk"].model_dump()


def test_like_replaces_a_disk_completely(config: Path) -> None:
    """The SATA disk of the base has a queue_depth, which an NVMe drive lacks."""
    box = 'like = "server-2012"\ndisks.sda.like = "pm9a3"\n'
    (config.parent / "machines" / "box.toml").write_text(box)
    disk = scenario_of(config).machine.disks["sda"]
    assert disk.model_dump() == drives_of(release_of("6.12"))["pm9a3"].model_dump()


def test_like_of_a_device_replaces_the_whole_device(config: Path) -> None:
    """The drive of the machine has an indirection unit, which the other drive lacks."""
    text = TEXT.replace('"box"', '"w25-server-bm1743"\nmachine.device.like = "pm9a3"')
    config.write_text(text.replace("./fs.toml", "loop-xfs"))
    machine = scenario_of(config).machine
    device = drives_of(release_of("6.12"))["pm9a3"].device
    assert machine.disks["nvme0n1"].device.model_dump() == device.model_dump()


@pytest.mark.parametrize(("like", "name"), [("servr-2012", "server-2012"), ("boxx", "box")])
def test_unknown_like_names_the_nearest_part_or_file(config: Path, like: str, name: str) -> None:
    config.write_text(TEXT.replace('"box"', f'"{like}"'))
    with pytest.raises(BadInput) as error:
        load(config)
    assert f"machine.like: {like!r} is not known; did you mean {name!r}; use one of" in str(error.value)


@pytest.mark.parametrize("folder", ["machines", "home/machines"])
def test_name_of_a_part_and_of_a_file_is_refused(config: Path, folder: str) -> None:
    """Neither of them wins silently; a path names the file, whose own base is the part."""
    file = config.parent / folder / "small-vm.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('like = "small-vm"\nprocessors.count = 3\n')
    config.write_text(TEXT.replace('"box"', '"small-vm"'))
    with pytest.raises(BadInput) as error:
        load(config)
    message = f"'small-vm' is a part of wbsim and your file {file}; rename the file, or give its path"
    assert f"machine.like: {message}" in str(error.value)
    for path in (f"./{folder}", f"../{config.parent.name}/{folder}", str(config.parent / folder)):
        text = TEXT.replace('"box"', f'"{path}/small-vm.toml"')
        config.write_text(text.replace("./fs.toml", "loop-xfs"))
        assert scenario_of(config).machine.processors.count == 3


def test_file_without_like_is_a_whole_machine(config: Path) -> None:
    """It brings processors, memory and disks; its name is free, and a missing part is a missing ``like``."""
    (config.parent / "machines" / "box.toml").write_text(text_of("machines", "loop-vm"))
    loop = machines_of(release_of("6.12"))["loop-vm"]
    assert scenario_of(config).machine.model_dump() == {**loop.model_dump(), "name": "machine"}
    assert scenario_of(config, 'machine.name="mine"').machine.name == "mine"
    more = scenario_of(config, 'machine.memory.memory="48 GiB"').machine.memory
    assert (more.memory, more.kernel_reserve) == (48 << 30, loop.memory.kernel_reserve), "no base, no share"


def test_file_next_to_the_configuration_comes_first(config: Path) -> None:
    """The search order is the configuration's folder, its subfolder machines, then `HOME`."""
    home = config.parent / "home" / "machines"
    home.mkdir()
    (home / "box.toml").write_text(BOX.replace("count = 3", "count = 4"))
    assert scenario_of(config).machine.processors.count == 3
    (config.parent / "box.toml").write_text(BOX.replace("count = 3", "count = 5"))
    assert scenario_of(config).machine.processors.count == 5


def test_number_names_its_file_and_line(config: Path) -> None:
    """An assumed number also has its range and its reason."""
    cpu = scenario_of(config).machine.processors
    count, wake = cpu.provenance("count"), cpu.provenance("wake_time")
    assert count is not None
    assert wake is not None
    assert count.source == f"{config.parent / 'machines' / 'box.toml'}:2"
    assert (wake.origin, wake.low, wake.high) == (Origin.ASSUMED, "1 us", "50 us")
    assert wake.source.endswith("box.toml:3: nobody knows")


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("machines/box.toml", '\nlike = "box"\n', "{box}:2: machine.like: makes {box} its own base"),
        ("machines/box.toml", "like = ", "machine.like: {box} cannot be read: "),
        (
            "machines/box.toml",
            '\n\nlike = "nobody"\n',
            "{box}:3: machine.like: 'nobody' is not known; use one of 'desk-",
        ),
        (
            "machines/box.toml",
            "processors.count = 2\n",
            "{box}: machine.like: is missing; use one of 'desk-vm'",
        ),
        (
            "machines/box.toml",
            'like = "../fs.toml/x.toml"',
            "{box}:1: machine.like: '../fs.toml/x.toml' is not known",
        ),
        ("x.toml", TEXT.replace('"mine"', '"9.1"'), "or any release from 2.6.29 to 6.18"),
        ("x.toml", TEXT.replace("./fs.toml", "./no.toml"), "'./no.toml' is not known"),
    ],
    ids=["like itself", "no TOML", "like nothing", "no like", "like no file", "a kernel to come", "no file"],
)
def test_unknown_like_is_reported_once(config: Path, file: str, text: str, told: str) -> None:
    """The problem names the key, the line of the user's file and the accepted values."""
    (config.parent / file).write_text(text)
    with pytest.raises(BadInput) as refused:
        load(config)
    assert told.format(box=config.parent / "machines" / "box.toml") in str(refused.value)
    assert len(refused.value.problems) == 1


SMALL = """title = "t"
[scenario]
machine.like = "{machine}"
kernel.like = "3.11"
filesystem.like = "p13-xfs"
workload.command = "fs_mark -S0 -k -n 5 -s 4096 -d /a"
"""


def times_and_rates(spec: Any) -> dict[str, Any]:
    """Return the times and rates of a device and of all that it is made of."""
    return {n.path: n.value for n in spec.numbers() if n.unit in ("ns", "B/s")}


def amounts(number: Number) -> tuple[Any, Any, Any]:
    """Return the value of *number*, and its range if it is assumed."""
    origin = number.provenance
    return (number.value, None, None) if origin is None else (number.value, origin.low, origin.high)


@pytest.mark.parametrize("machine", ["p13-vm", "n10-vm", "w25-server", "loop-vm"])
def test_device_twice_as_fast_halves_times_and_doubles_rates(machine: str) -> None:
    """The factor applies to members, caches and the ranges of assumed numbers, and to nothing else."""

    def device(*overrides: str) -> Any:
        small = ['filesystem.size="100 GiB"', "filesystem.agcount=4"]
        (case,) = parse(SMALL.format(machine=machine), "x.toml", [*small, *overrides]).cases
        return next(iter(case.scenario.machine.disks.values())).device

    once, twice = device(), device("machine.device.speed=2")
    for number in once.numbers():
        (other,) = (of for of in twice.numbers() if of.path == number.path)
        by = {"ns": 0.5, "B/s": 2}.get(number.unit, 1)
        for slow, fast in zip(amounts(number), amounts(other), strict=True):
            assert fast == (round(slow * by) if by != 1 and slow is not None else slow), number.path
    assert times_and_rates(once) or machine == "loop-vm"
    assert times_and_rates(device("machine.device.speed=1")) == times_and_rates(once)


def test_time_that_is_no_number_is_refused_at_any_speed() -> None:
    """The error names the key, as it does without ``speed``."""
    device = '{like = "sata-ssd", speed = 2, program_time = "fast"}'
    with pytest.raises(BadInput, match=r"device.program_time: .*fast"):
        parse(SMALL.format(machine="p13-vm"), "x.toml", [f"machine.device={device}"])


@pytest.mark.parametrize("speed", ["0", "-1", '"fast"', "true", "1e9"])
def test_device_speed_outside_of_its_range_is_refused(speed: str) -> None:
    """The speed is a number from 0.001 to 1000."""
    with pytest.raises(BadInput, match=r"give a factor from 0.001 to 1000, such as 2"):
        parse(SMALL.format(machine="p13-vm"), "x.toml", [f"machine.device.speed={speed}"])
