"""The tree of a configuration: the place of each key, and tables that are put over each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.harness import loop_config
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.toml_tree import parse_toml
from wbsim.experiments.config.tree import Table, merge, place_and_key, place_tree, put, with_key, with_origins
from wbsim.models.catalogue.drives import DRIVES
from wbsim.models.catalogue.filesystems import FILESYSTEMS
from wbsim.models.catalogue.kernels import KERNELS, LAST
from wbsim.models.catalogue.machines import MACHINES, machines_of
from wbsim.models.release import release_of
from wbsim.models.scenario import Scenario
from wbsim.sim.param import Given, Origin, Spec, specified

TEXT = '''\
title = "x"  # a comment
[scenario]
a.b = 1
points = [
  { value = 1, c = "[" },
  { value = 2 },
]
"quoted key".d = 2
text = """
e = 3
"""
[variants.one] # another
f = { g = 1 }
[[list]]
h = 1
'''


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("title", "x.toml:1"), ("scenario", "x.toml:2"), ("scenario.a", "x.toml:3"),
        ("scenario.a.b", "x.toml:3"), ("scenario.points", "x.toml:4"), ("scenario.points.value", "x.toml:4"),
        ("scenario.quoted key.d", "x.toml:8"), ("variants.one", "x.toml:12"), ("variants.one.f", "x.toml:13"),
        ("variants.one.f.g", "x.toml:13"), ("variants.one.z.z", "x.toml:12"), ("list.0.h", "x.toml:15"),
        ("scenario.points.1.value", "x.toml:6"), ("scenario.text", "x.toml:9"),
        ("nowhere", "x.toml"),
    ],
)  # fmt: skip
def test_key_has_the_line_that_gives_it(path: str, place: str) -> None:
    """Each part of a table or a list has its own place.

    A missing key has the place of the table around it.
    """
    key = tuple(path.split("."))
    assert place_and_key(parse_toml(TEXT, "x.toml"), key) == (place, key)


def test_the_table_on_top_decides_where_a_key_stands() -> None:
    tree = parse_toml("[a]\nb = 1\nt.x = 1\n[c]\nb = 2\nt.y = 1\n", "x.toml")
    both = merge(with_key(tree["c"], ()), with_key(tree["a"], ()))
    places = {"b": "x.toml:2", "t": "x.toml:3", "t.x": "x.toml:3", "t.y": "x.toml:6", "z": "x.toml:1"}
    for path, place in places.items():
        key = tuple(path.split("."))
        assert place_and_key(both, key) == (place, key)


def test_place_of_a_table_names_the_options_below_it() -> None:
    """A check of a table may be about any key in it, so each option below is named once."""
    tree = with_key(parse_toml("[scenario]\nkernel.a = 1\nmachine.b = 2\n", "x.toml")["scenario"], ())
    for path in ("kernel.c", "kernel.a", "machine.d"):
        tree = put(tree, tuple(path.split(".")), 5, f"--set {path}")
    places = {
        "kernel": "x.toml:2, --set kernel.c, --set kernel.a",
        "kernel.c": "--set kernel.c",
        "kernel.e": "x.toml:2",
        "machine.d.z": "--set machine.d",
    }
    assert {path: set(_place(tree, path).split(", ")) for path in places} == {
        path: set(place.split(", ")) for path, place in places.items()
    }


def _place(tree: Table, path: str) -> str:
    """Return where *path* stands in *tree*."""
    return place_and_key(tree, tuple(path.split(".")))[0]


def test_key_is_named_as_its_table_was_written() -> None:
    """A device with a count is written once, and the only disk needs no name."""
    members = place_tree({"size": "1 GiB"}, ("machine", "device", "members"), "x.toml:4")
    device = Table({"members": [members, members]}).set_place(("machine", "device"), "x.toml:3", {})
    tree = Table({"machine": Table({"disks": {"sda": device}}).set_place(("machine",), "x.toml:2", {})})
    path = ("machine", "disks", "sda", "members", "1", "size")
    assert place_and_key(tree, path) == ("x.toml:4", ("machine", "device", "members", "size"))
    assert place_and_key(tree, (*path[:3], "kind")) == ("x.toml:3", ("machine", "device", "kind"))


def test_catalogue_part_has_the_place_of_the_table_around_it() -> None:
    tree = Table({"machine": merge(MACHINES["loop-vm"], place_tree({}, ("machine",), "x.toml:2"))})
    path = ("machine", "processors", "count")
    assert place_and_key(tree, path) == ("x.toml:2", path)


def test_each_value_has_its_place_as_its_source() -> None:
    """A table that names an origin is a value of that origin."""
    text = 'a = 1\nb = { assumed = 2, low = 1, high = 3, why = "so" }\nc = [{ d = 4 }]\nx = "x2"\n'
    tree = with_origins(parse_toml(text, "x.toml"))
    assert (tree["a"].value, tree["a"].source) == (1, "x.toml:1")
    stated = tree["b"]
    assert (stated.value, stated.low, stated.high) == (2, 1, 3)
    assert (stated.origin, stated.source) == (Origin.ASSUMED, "x.toml:2: so")
    assert isinstance(tree["c"][0]["d"], Given)
    assert tree["x"].value == "x2"


CONFIG = loop_config("fs_mark -S0 -n 30 -s 4096 -L 2 -d a", dirty_mib=2)


def scenario(*overrides: str) -> Scenario:
    """Return the scenario of `CONFIG` with *overrides*."""
    return parse(CONFIG, "x.toml", overrides).cases[0].scenario


def test_unchanged_catalogue_part_is_reused() -> None:
    """A change replaces only the parts that contain it, and leaves the catalogue as it was."""
    before = scenario()
    assert before.kernel.plug is KERNELS[before.kernel.name].plug
    changed = scenario("kernel.writeback.interval=7 s")
    assert changed.kernel.writeback != before.kernel.writeback
    assert changed.kernel.plug is before.kernel.plug
    assert changed.kernel.filesystems["xfs"] is before.kernel.filesystems["xfs"]
    assert changed.machine.processors is before.machine.processors
    assert scenario() == before


@pytest.mark.parametrize("parts", [machines_of(release_of(LAST)), DRIVES, FILESYSTEMS, KERNELS])
def test_part_is_equal_after_a_round_trip_through_its_entries(parts: Mapping[str, Spec]) -> None:
    """Each number keeps its origin."""
    for part in parts.values():
        again = type(part).model_validate(part.entries())
        assert again == part
        assert again.inputs() == part.inputs()


def table(entries: dict[str, Any], where: str = "") -> Table:
    """Return *entries* as a table that is written at *where*."""
    written: Table = place_tree(entries, (), where)
    return written


def test_tables_are_merged_key_by_key() -> None:
    """A table of another kind replaces the earlier table, whether or not the kind has a source."""
    base: dict[str, Any] = {"a": 1, "t": {"x": 1, "y": 2}, "d": {"kind": specified("ssd", "s"), "size": 1}}
    assert merge(base, table({"a": 2, "t": {"y": 3}, "n": 4})) == {
        **base,
        "a": 2,
        "t": {"x": 1, "y": 3},
        "n": 4,
    }
    assert merge(base, table({"d": {"kind": "disk"}}))["d"] == {"kind": "disk"}
    same = specified("ssd", "elsewhere")
    assert merge(base, table({"d": {"kind": same}}))["d"] == {"kind": same, "size": 1}
    assert merge(base, table({"t": 5}))["t"] == 5
    assert merge(base, table({"a": {"z": 1}}))["a"] == {"z": 1}
    assert base["t"] == {"x": 1, "y": 2}, "the original table must not change"


def test_value_put_over_a_table_has_its_own_place() -> None:
    """A number selects an entry of a list.  A program that is only a command becomes a table."""
    base = table({"a": {"x": 1, "y": [{"z": 1}, {"z": 2}]}, "programs": {"p": "fs_mark"}}, "x.toml:1")
    for path in ("a.x", "a.y.1.z", "a.new.w", "programs.p.start"):
        at = tuple(path.split("."))
        changed = put(base, at, 7, f"--set {path}=7")
        assert place_and_key(changed, at) == (f"--set {path}=7", at)
        assert place_and_key(changed, (at[0],)) == (f"x.toml:1, --set {path}=7", (at[0],))
    assert changed["programs"]["p"] == {"command": "fs_mark", "start": 7}
    assert place_and_key(changed, ("programs", "p", "command")) == (
        "x.toml:1",
        ("programs", "p", "command"),
    )
    assert place_and_key(base, ("a", "y", "2", "z")) == ("x.toml:1", ("a", "y", "2", "z")), (
        "entry y.2 does not exist"
    )
    assert base["a"] == {"x": 1, "y": [{"z": 1}, {"z": 2}]}, "the original table must not change"


def test_a_factor_in_a_variant_multiplies_the_scenarios_number() -> None:
    number = "machine.processors.writer_scale"
    text = f'{CONFIG}\n{number} = 3.0\n[variants.twice]\n{number} = "x2"\n'
    (case,) = parse(text, "x.toml", ["machine.processors.flusher_scale=1.0"]).cases
    assert case.scenario.machine.processors.writer_scale == 6.0


def test_a_configuration_may_give_the_range_of_a_number() -> None:
    stated = '{ assumed = 0.2, low = 0.1, high = 0.3, why = "a guess" }'
    text = f"{CONFIG}\nmachine.processors.cv = {stated}\n"
    given = parse(text, "x.toml").cases[0].scenario.machine.processors.provenance("cv")
    assert given is not None
    assert (given.origin, given.value, given.low, given.high) == (Origin.ASSUMED, 0.2, 0.1, 0.3)
    assert given.source.endswith(": a guess")
