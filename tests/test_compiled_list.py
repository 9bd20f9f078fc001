"""The lists of compiled and interpreted modules in compiled.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent
PACKAGE: Final = ROOT / "wbsim"
LISTS: Final = tomllib.loads((ROOT / "compiled.toml").read_text())
_NOT_FOR_MYPYC: Final = re.compile(r"^class \w+\(\w*Spec\)|import compiled$|^@compiled", re.MULTILINE)
REMEDY: Final = "add it to `compiled` in compiled.toml if a run spends time in it, else to `interpreted`"


def undecided(modules: set[str], lists: dict[str, list[str]]) -> list[str]:
    """Return a message for each module in neither or both lists, and for each entry that is no module."""
    compiled, interpreted = set(lists["compiled"]), set(lists["interpreted"])
    return [
        *(f"{name}: {REMEDY}" for name in sorted(modules - compiled - interpreted)),
        *(f"{name}: the module does not exist" for name in sorted((compiled | interpreted) - modules)),
        *(f"{name}: is in both lists" for name in sorted(compiled & interpreted)),
    ]


def test_each_module_is_in_one_list() -> None:
    modules = {
        str(path.relative_to(PACKAGE))
        for layer in ("sim", "models")
        for path in (PACKAGE / layer).rglob("*.py")
        if path.stem != "__init__"
    }
    assert undecided(modules, LISTS) == []


@pytest.mark.parametrize(
    ("modules", "compiled", "interpreted", "message"),
    [
        ({"a.py", "b.py"}, ["a.py"], [], f"b.py: {REMEDY}"),
        ({"a.py"}, ["a.py", "b.py"], [], "b.py: the module does not exist"),
        ({"a.py"}, ["a.py"], ["a.py"], "a.py: is in both lists"),
    ],
)
def test_undecided_module_is_named(
    modules: set[str], compiled: list[str], interpreted: list[str], message: str
) -> None:
    assert undecided(modules, {"compiled": compiled, "interpreted": interpreted}) == [message]


@pytest.mark.parametrize("name", LISTS["compiled"])
def test_compiled_modules_have_neither_specs_nor_numba(name: str) -> None:
    """Mypyc would break a class of pydantic or a function of Numba."""
    assert not _NOT_FOR_MYPYC.search((PACKAGE / name).read_text())
