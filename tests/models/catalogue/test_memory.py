"""The memory of every machine of the catalogue, in other sizes than its own."""

from __future__ import annotations

import pytest

from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput
from wbsim.models.catalogue.kernels import LAST
from wbsim.models.catalogue.machines import machines_of
from wbsim.models.page_cache.spec import MemorySpec
from wbsim.models.release import release_of
from wbsim.sim.units import GIB, MIB

MACHINES = machines_of(release_of(LAST))


def memory_of(name: str, *changes: str) -> MemorySpec:
    """Return the memory of the machine *name* with *changes*, and one program."""
    disk = next(iter(MACHINES[name].disks))
    kernel = "2.6.30" if name == "j09-server" else "6.12"  # its disk has the scheduler cfq
    text = f"""
title = "memory"
[scenario]
machine.like = "{name}"
kernel.like = "{kernel}"
mounts.m = {{ like = "ext4", disk = "{disk}", at = "/", size = "4 GB" }}
workload.command = "dd if=/dev/zero of=/f bs=1M count=1"
"""
    (case,) = parse(text, "x.toml", [f"machine.memory.{change}" for change in changes]).cases
    return case.scenario.machine.memory


@pytest.mark.parametrize("name", MACHINES)
def test_machine_may_have_from_512_mib_to_1_tib(name: str) -> None:
    """The kernel keeps the same share of each size; its range has the same share, too."""
    own = MACHINES[name].memory
    given = own.provenance("kernel_reserve")
    assert given is not None
    for size in (512 * MIB, 777 * MIB, GIB, 3 * GIB, own.memory, 100 * GIB, 1024 * GIB):
        memory = memory_of(name, f"memory={size} B")
        assert memory.memory == size
        assert memory.kernel_reserve == round(own.kernel_reserve * size / own.memory)
        found = memory.provenance("kernel_reserve")
        assert found is not None
        assert found.origin == given.origin
        assert (found.low, found.high) == tuple(
            round(end * size / own.memory) for end in (given.low, given.high)
        )
    assert memory_of(name) == own


@pytest.mark.parametrize("name", MACHINES)
def test_factor_of_the_memory_is_one_of_the_reserve(name: str) -> None:
    """Twice the memory has twice the reserve."""
    own, twice = MACHINES[name].memory, memory_of(name, "memory=x2")
    assert (twice.memory, twice.kernel_reserve) == (2 * own.memory, 2 * own.kernel_reserve)


def test_given_reserve_stays() -> None:
    """A reserve that the user gives does not follow the memory, with or without a given memory."""
    assert memory_of("server-2012", "memory=1 GiB", "kernel_reserve=9 MiB").kernel_reserve == 9 * MIB
    assert memory_of("server-2012", "kernel_reserve=9 MiB").kernel_reserve == 9 * MIB


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("more", [(), ("kernel_reserve=600 MiB",)])
def test_refused_memory_names_a_size_that_is_accepted(name: str, more: tuple[str, ...]) -> None:
    """Memory of 1 MiB, or less than a given reserve, leaves nothing to files."""
    size = 512 * MIB if more else MIB
    reserve = (
        600 * MIB
        if more
        else round(MACHINES[name].memory.kernel_reserve * size / MACHINES[name].memory.memory)
    )
    with pytest.raises(BadInput) as refused:
        memory_of(name, f"memory={size} B", *more)
    (problem,) = refused.value.problems
    assert problem.message == (
        f"{size} B leaves less than 1 MiB after kernel_reserve, which is {reserve} B;"
        f" give {reserve + 2 * MIB} B, or a smaller kernel_reserve"
    )
    assert memory_of(name, f"memory={reserve + 2 * MIB} B", *more).memory == reserve + 2 * MIB
