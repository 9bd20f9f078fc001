"""Where each key of a configuration stands, and how a problem with it is put."""

from __future__ import annotations

from typing import Any

import pytest

from wbsim.experiments.config.merge import merged
from wbsim.experiments.config.problems import BadInput, Places, Problem, bad, unknown_key
from wbsim.sim.param import specified

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
f = {
  g = 1 }
[[list]]
h = 1
'''


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("title", "x.toml:1"), ("scenario", "x.toml:2"), ("scenario.a", "x.toml:3"),
        ("scenario.a.b", "x.toml:3"), ("scenario.points", "x.toml:4"), ("scenario.points.value", "x.toml:4"),
        ("scenario.quoted key.d", "x.toml:8"), ("variants.one", "x.toml:12"), ("variants.one.f", "x.toml:13"),
        ("variants.one.f.g", "x.toml:14"), ("variants.one.z.z", "x.toml:12"), ("list.0.h", "x.toml:16"),
        ("scenario.points.1.value", "x.toml:6"), ("scenario.text", "x.toml:9"),
        ("nowhere", "x.toml"),
    ],
)  # fmt: skip
def test_where_a_key_stands(path: str, place: str) -> None:
    """Of a table or a list of several lines, each part has its own; what is not there, the nearest around."""
    assert Places("x.toml", TEXT).of(tuple(path.split("."))) == place


def test_the_first_place_counts() -> None:
    """In full, of several paths; the nearest key only of the last; a second time it is set, it stays."""
    places = Places("x.toml", "[a]\nb = 1\n[c]\nb = 2\n[a]\n")
    assert places.of(("a", "b"), ("c", "b")) == "x.toml:2"
    assert places.of(("a", "z"), ("c", "b")) == "x.toml:4"
    assert places.of(("a", "z"), ("c", "z")) == "x.toml:3"
    assert places.of(("a",)) == "x.toml:1"
    places.override(("c", "b"), "--set c.b=3")
    assert places.of(("c", "b")) == "--set c.b=3"


def test_a_problem_is_its_parts() -> None:
    """Without what is empty."""
    assert str(Problem("x:1", "a.b", "is wrong")) == "x:1: a.b: is wrong"
    assert str(Problem("x:1", "", "is wrong")) == "x:1: is wrong"
    several = BadInput([Problem("x", "", "one"), Problem("y", "k", "two")])
    assert str(several) == "x: one\ny: k: two"
    assert len(several.problems) == 2
    assert str(bad("here", "is wrong", "key")) == "here: key: is wrong"


@pytest.mark.parametrize(
    ("key", "known", "message"),
    [
        ("memroy", ["cpu", "memory"], "unknown key; did you mean memory?"),
        ("zzz", ["cpu", "memory"], "unknown key; known here: cpu, memory"),
        ("zzz", [], "unknown key"),
    ],
)
def test_an_unknown_key(key: str, known: list[str], message: str) -> None:
    """The nearest that is known, or all."""
    assert unknown_key(key, known) == message


def test_what_was_set_below_a_key_is_named_beside_its_place() -> None:
    """A check of a whole table may be about any of them; each once, and nothing from beside it."""
    places = Places("x.toml", "[scenario]\nkernel.a = 1\nmachine.b = 2\n")
    for key in ("kernel.c", "kernel.a", "machine.d"):
        places.override(("scenario", *key.split(".")), f"--set {key}")
    assert places.of(("scenario", "kernel")) == "x.toml:2, --set kernel.c, --set kernel.a"
    assert places.of(("variants", "v", "kernel"), ("scenario", "kernel")) == places.of(("scenario", "kernel"))
    assert places.of(("scenario", "kernel", "c")) == "--set kernel.c"
    assert places.of(("scenario", "kernel", "e")) == "x.toml:2"
    assert places.of(("scenario", "machine", "d", "z")) == "--set machine.d"


def test_tables_are_merged_key_by_key() -> None:
    """Another kind replaces a table whole, whether it is given with its source or not."""
    base: dict[str, Any] = {"a": 1, "t": {"x": 1, "y": 2}, "d": {"kind": specified("ssd", "s"), "size": 1}}
    assert merged(base, {"a": 2, "t": {"y": 3}, "n": 4}) == {**base, "a": 2, "t": {"x": 1, "y": 3}, "n": 4}
    assert merged(base, {"d": {"kind": "disk"}})["d"] == {"kind": "disk"}
    same = specified("ssd", "elsewhere")
    assert merged(base, {"d": {"kind": same}})["d"] == {"kind": same, "size": 1}
    assert merged(base, {"t": 5})["t"] == 5
    assert merged(base, {"a": {"z": 1}})["a"] == {"z": 1}
    assert base["t"] == {"x": 1, "y": 2}, "what was there stays as it is"
