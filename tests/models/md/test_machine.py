"""Arrays in a complete machine: laws, independence, and the costs of threads."""

from __future__ import annotations

from typing import Any

import pytest

from wbsim.experiments.config.experiment import parse
from wbsim.models.machine import LIGHT, STOCK, Machine, Primitives, build
from wbsim.models.scenario import Scenario
from wbsim.models.time_accounting import life_of

DD = "dd if=/dev/zero of=/{place}/f bs=1M count=24 conv=fsync"


def scenario_of(lines: list[str], kernel: str = "6.12") -> Scenario:
    """Read a configuration of a server with *lines*."""
    text = "\n".join(
        ['title = "x"', "[scenario]", 'machine.like = "server-2018"', f'kernel.like = "{kernel}"', *lines]
    )
    (case,) = parse(text, "x.toml").cases
    return case.scenario


def array_lines(name: str, level: str, disks: str, count: int = 4, filesystem: str = "xfs") -> list[str]:
    """Return the lines of an array *name* of SATA disks, its mount, and a dd on it."""
    return [
        f'machine.disks.{disks} = {{ like = "sata-disk", count = {count} }}',
        f'machine.arrays.{name} = {{ level = "{level}", members = "{disks}", chunk = "64 KiB" }}',
        f'mounts.{name} = {{ like = "{filesystem}", disk = "{name}", at = "/{name}", size = "4 GiB" }}',
        f'programs.{name}.command = "{DD.format(place=name)}"',
    ]


def run(lines: list[str], primitives: Primitives | None = None, kernel: str = "6.12") -> Machine:
    """Run the scenario with *lines* to its end, with all laws checked, and return its machine."""
    machine = build(scenario_of(lines, kernel), 1, primitives=primitives)
    machine.run()
    return machine


def sectors(machine: Machine, group: str) -> int:
    """Return the sectors written to the disks of *group*."""
    return sum(queue.stat.writes.sectors for name, queue in machine.queues.items() if name.startswith(group))


@pytest.mark.parametrize("filesystem", ["xfs", "ext4"])
@pytest.mark.parametrize(
    ("level", "count", "least"),
    [("raid0", 4, 1.0), ("raid1", 2, 2.0), ("raid10", 4, 2.0), ("raid5", 5, 1.25)],
)
def test_sectors_of_members_add_up(level: str, count: int, least: float, filesystem: str) -> None:
    """The members get what the array got, with its copies or parity; RAID5 adds a little for small writes."""
    lines = array_lines("md0", level, "sd", count, filesystem)
    lines[1] = lines[1].replace(" }", ', bitmap_chunk = "0 B" }')
    machine = run(lines)
    total = machine.arrays["md0"].stat.writes.sectors
    assert total >= 24 * 2_048
    ratio = sectors(machine, "sd") / total
    assert ratio == pytest.approx(least, rel=0.02) if least == 1.25 else ratio == least


def test_two_arrays_on_other_disks_do_not_meet() -> None:
    """Two programs on two arrays take the times that each takes alone, in all counters of their disks."""
    first, second = array_lines("md0", "raid5", "sd"), array_lines("md1", "raid1", "se", 2)
    together, first_alone, second_alone = run([*first, *second]), run(first), run(second)
    for machine, group in ((first_alone, "sd"), (second_alone, "se")):
        for name, queue in machine.queues.items():
            if name.startswith(group):
                assert together.queues[name].stat.writes.sectors == queue.stat.writes.sectors
    for machine, name in ((first_alone, "md0"), (second_alone, "md1")):
        array, second = machine.arrays[name], together.arrays[name]
        assert second.stat.writes.ios == array.stat.writes.ios
        assert second.busy_ns == pytest.approx(array.busy_ns, rel=0.02)


@pytest.mark.stock
@pytest.mark.parametrize("level", ["raid1", "raid6"])
def test_engines_agree(level: str) -> None:
    """Stock SimPy gives the same counters of all disks, to the nanosecond."""
    lines = array_lines("md0", level, "sd")
    machines = [run(lines, primitives) for primitives in (LIGHT, STOCK)]
    stats: list[Any] = [
        {name: queue.stat for name, queue in {**machine.queues, **machine.arrays}.items()}
        for machine in machines
    ]
    assert stats[0] == stats[1]
    assert machines[0].env.now == machines[1].env.now


def test_thread_of_raid5_is_charged() -> None:
    """The time for copies and parity is that of raid5d, and all of its time has a cause."""
    machine = run(array_lines("md0", "raid5", "sd"))
    (raid5d,) = (thread for thread in machine.threads if thread.task.name == "md0/raid5d")
    life = life_of(raid5d.task, raid5d.spent, machine.env.now)
    pages = 24 * 256
    assert life["system", "parity"] >= pages * (300 + 400)
    assert life["system", "md"] > 0
    assert ("system", "other") not in life


@pytest.mark.parametrize("kernel", ["2.6.34", "3.1", "3.11", "4.1", "5.4", "6.18"])
@pytest.mark.parametrize("level", ["raid0", "raid10", "raid6"])
def test_every_era_runs(kernel: str, level: str) -> None:
    """An array works in each release, and its filesystem gets all data to disk."""
    machine = run(array_lines("md0", level, "sd"), kernel=kernel)
    assert machine.mounts["md0"].filesystem.extents_per_file() != ()
