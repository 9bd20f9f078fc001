"""Are tables put over each other, and over parts of the catalogue, entry by entry?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.harness import loop_config
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.tree import Table, merged, place_and_key, placed, put
from wbsim.models.catalogue.drives import DRIVES
from wbsim.models.catalogue.filesystems import FILESYSTEMS
from wbsim.models.catalogue.kernels import KERNELS, LAST
from wbsim.models.catalogue.neutral import machines_of
from wbsim.models.release import release_of
from wbsim.models.scenario import Scenario
from wbsim.sim.param import Origin, Spec, specified

TEXT = loop_config("fs_mark -S0 -n 30 -s 4096 -L 2 -d a", dirty_mib=2)


def scenario(*overrides: str) -> Scenario:
    """Return the scenario of the text."""
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


@pytest.mark.parametrize("parts", [machines_of(release_of(LAST)), DRIVES, FILESYSTEMS, KERNELS])
def test_entries_of_a_part_make_it_again(parts: Mapping[str, Spec]) -> None:
    """Every number keeps its origin."""
    for part in parts.values():
        again = type(part).model_validate(part.entries())
        assert again == part
        assert again.inputs() == part.inputs()


def table(entries: dict[str, Any], where: str = "") -> Table:
    """Return *entries* as a table that is written at *where*."""
    written: Table = placed(entries, (), where)
    return written


def test_tables_are_merged_key_by_key() -> None:
    """Another kind replaces a table whole, whether it is given with its source or not."""
    base: dict[str, Any] = {"a": 1, "t": {"x": 1, "y": 2}, "d": {"kind": specified("ssd", "s"), "size": 1}}
    assert merged(base, table({"a": 2, "t": {"y": 3}, "n": 4})) == {
        **base,
        "a": 2,
        "t": {"x": 1, "y": 3},
        "n": 4,
    }
    assert merged(base, table({"d": {"kind": "disk"}}))["d"] == {"kind": "disk"}
    same = specified("ssd", "elsewhere")
    assert merged(base, table({"d": {"kind": same}}))["d"] == {"kind": same, "size": 1}
    assert merged(base, table({"t": 5}))["t"] == 5
    assert merged(base, table({"a": {"z": 1}}))["a"] == {"z": 1}
    assert base["t"] == {"x": 1, "y": 2}, "what was there stays as it is"


def test_what_is_put_over_a_table_has_its_own_places() -> None:
    """A list counts as a table by number; a program that is its command alone becomes a table."""
    base = table({"a": {"x": 1, "y": [{"z": 1}, {"z": 2}]}, "programs": {"p": "fs_mark"}}, "x.toml:1")
    for path in ("a.x", "a.y.1.z", "a.new.w", "programs.p.start"):
        at = tuple(path.split("."))
        changed = put(base, at, 7, f"--set {path}=7")
        assert place_and_key(changed, at) == (f"--set {path}=7", at)
        assert place_and_key(changed, ("a",)) in (
            ("x.toml:1", ("a",)),
            (f"x.toml:1, --set {path}=7", ("a",)),
        )
    assert changed["programs"]["p"] == {"command": "fs_mark", "start": 7}
    assert place_and_key(changed, ("programs", "p", "command")) == (
        "x.toml:1",
        ("programs", "p", "command"),
    )
    assert base["a"] == {"x": 1, "y": [{"z": 1}, {"z": 2}]}, "what was there stays as it is"


def test_a_factor_in_a_variant_multiplies_the_scenarios_number() -> None:
    number = "machine.processors.writer_scale"
    text = f'{TEXT}\n{number} = 3.0\n[variants.twice]\n{number} = "x2"\n'
    (case,) = parse(text, "x.toml", ["machine.processors.flusher_scale=1.0"]).cases
    assert case.scenario.machine.processors.writer_scale == 6.0


def test_a_configuration_may_give_the_range_of_a_number() -> None:
    stated = '{ assumed = 0.2, low = 0.1, high = 0.3, why = "a guess" }'
    text = f"{TEXT}\nmachine.processors.cv = {stated}\n"
    given = parse(text, "x.toml").cases[0].scenario.machine.processors.given("cv")
    assert given is not None
    assert (given.origin, given.value, given.low, given.high) == (Origin.ASSUMED, 0.2, 0.1, 0.3)
    assert given.source.endswith(": a guess")
