"""Parts of the catalogue that a configuration changes, or does not."""

from __future__ import annotations

from tests.harness import loop_config
from wbsim.experiments.config.catalogue_inputs import inputs_of, unchanged
from wbsim.experiments.config.experiment import parse
from wbsim.models.catalogue.devices import SATA_DISK_2010, SATA_SSD_2013
from wbsim.models.catalogue.drives import DRIVES
from wbsim.models.catalogue.filesystems import FILESYSTEMS
from wbsim.models.catalogue.kernels import KERNELS, LAST
from wbsim.models.catalogue.neutral import machines_of
from wbsim.models.devices.spec import Raid0Spec
from wbsim.models.release import release_of
from wbsim.models.scenario import Scenario
from wbsim.sim.units import KIB

TEXT = loop_config("fs_mark -S0 -n 30 -s 4096 -L 2 -d a", dirty_mib=2)


def scenario(*overrides: str) -> Scenario:
    """That of the text."""
    return parse(TEXT, "x.toml", overrides).cases[0].scenario


def test_what_nobody_changed_is_the_part_itself() -> None:
    """And beside a change all that it does not touch; the next configuration has nothing of it."""
    before = scenario()
    assert before.kernel.plug is KERNELS[before.kernel.name].plug
    changed = scenario("kernel.writeback.interval=7 s")
    assert changed.kernel.writeback != before.kernel.writeback
    assert changed.kernel.plug is before.kernel.plug
    assert changed.kernel.filesystems["xfs"] is before.kernel.filesystems["xfs"]
    assert changed.machine.processors is before.machine.processors
    assert scenario() == before


def test_every_part_of_the_catalogue_is_found_again() -> None:
    """By its own inputs, whichever equal one there is; a copy of them is none of it."""
    for parts in (machines_of(release_of(LAST)), DRIVES, FILESYSTEMS, KERNELS):
        for part in parts.values():
            inputs = inputs_of(part)
            assert unchanged(inputs) is part
            below = unchanged(dict(inputs))
            assert type(part).model_validate(below) == part
            assert type(part).model_validate(below).inputs() == part.inputs()


def test_each_member_is_found_again_as_itself() -> None:
    """Not as the first."""
    members = [SATA_SSD_2013, SATA_DISK_2010]
    array = Raid0Spec(kind="raid0", chunk=64 * KIB, members=members)  # type: ignore[arg-type]
    below = unchanged(list(inputs_of(array)["members"]))
    assert [id(member) for member in below] == [id(member) for member in array.members]
