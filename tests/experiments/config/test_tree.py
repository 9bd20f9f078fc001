"""Where does each key of a configuration stand, and what is a problem with it called?"""

from __future__ import annotations

import pytest

from wbsim.experiments.config.toml_tree import parse_toml
from wbsim.experiments.config.tree import Table, merged, moved, place_and_key, placed, put, with_origins
from wbsim.models.catalogue.machines import MACHINES
from wbsim.sim.param import Given, Origin

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
def test_where_a_key_stands(path: str, place: str) -> None:
    """Each part of a table or a list has its own place; what is not there has that of the table around it."""
    key = tuple(path.split("."))
    assert place_and_key(parse_toml(TEXT, "x.toml"), key) == (place, key)


def test_the_table_on_top_decides_where_a_key_stands() -> None:
    tree = parse_toml("[a]\nb = 1\nt.x = 1\n[c]\nb = 2\nt.y = 1\n", "x.toml")
    both = merged(moved(tree["c"], ()), moved(tree["a"], ()))
    places = {"b": "x.toml:2", "t": "x.toml:3", "t.x": "x.toml:3", "t.y": "x.toml:6", "z": "x.toml:1"}
    for path, place in places.items():
        key = tuple(path.split("."))
        assert place_and_key(both, key) == (place, key)


def test_options_below_a_key_are_named_beside_its_place() -> None:
    """A check of a whole table may be about any of them; each once, and nothing from beside it."""
    tree = moved(parse_toml("[scenario]\nkernel.a = 1\nmachine.b = 2\n", "x.toml")["scenario"], ())
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


def test_a_key_is_called_as_its_table_was_written() -> None:
    """A device that a count multiplies is written once, and a disk without a name is the machine's."""
    members = placed({"size": "1 GiB"}, ("machine", "device", "members"), "x.toml:4")
    device = Table({"members": [members, members]}).at(("machine", "device"), "x.toml:3", {})
    tree = Table({"machine": Table({"disks": {"sda": device}}).at(("machine",), "x.toml:2", {})})
    path = ("machine", "disks", "sda", "members", "1", "size")
    assert place_and_key(tree, path) == ("x.toml:4", ("machine", "device", "members", "size"))
    assert place_and_key(tree, (*path[:3], "kind")) == ("x.toml:3", ("machine", "device", "kind"))


def test_a_part_of_the_catalogue_is_where_the_table_around_it_is() -> None:
    tree = Table({"machine": merged(MACHINES["loop-vm"], placed({}, ("machine",), "x.toml:2"))})
    path = ("machine", "processors", "count")
    assert place_and_key(tree, path) == ("x.toml:2", path)


def test_each_value_has_its_place_as_its_source() -> None:
    """A table that names an origin is a value of that origin."""
    text = 'a = 1\nb = { assumed = 2, low = 1, high = 3, why = "so" }\nc = [{ d = 4 }]\nx = "x2"\n'
    tree = with_origins(parse_toml(text, "x.toml"), "x.toml")
    assert (tree["a"].value, tree["a"].source) == (1, "x.toml:1")
    stated = tree["b"]
    assert (stated.value, stated.low, stated.high) == (2, 1, 3)
    assert (stated.origin, stated.source) == (Origin.ASSUMED, "x.toml:2: so")
    assert isinstance(tree["c"][0]["d"], Given)
    assert tree["x"].value == "x2"
