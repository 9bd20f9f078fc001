"""The parts of the catalogue: each is made once, on the first access."""

from __future__ import annotations

from functools import partial

import pytest

from wbsim.models.catalogue.on_demand import OnDemand
from wbsim.sim.param import Spec


class _Part(Spec):
    name: str


def _parts(made: list[str]) -> OnDemand[_Part]:
    """Return the parts a and b; *made* gets the name of each that is made."""

    def make(name: str) -> _Part:
        made.append(name)
        return _Part(name=name)

    return OnDemand({name: partial(make, name) for name in ("b", "a")})


def test_only_the_part_asked_for_is_made_once() -> None:
    made: list[str] = []
    parts = _parts(made)
    assert parts["a"] is parts["a"]
    assert parts["a"].name == "a"
    assert made == ["a"]


def test_names_are_listed_and_found_without_making_a_part() -> None:
    made: list[str] = []
    parts = _parts(made)
    assert (list(parts), len(parts)) == (["b", "a"], 2)
    assert "a" in parts
    assert "c" not in parts
    assert made == []


def test_a_name_without_a_maker_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="c"):
        _parts([])["c"]
