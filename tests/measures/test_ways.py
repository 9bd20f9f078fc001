"""Ways are counted by their calls and returns: a worked call tree, and the five ways of today."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.measures.tracing import Place, Way, Window, traced
from tests.measures.ways import Count, count_of, counts

_FILES = {
    "wbsim/models/a.py": """\
def start():
    other()
    return list(steps())

def steps():
    yield leaf()
    yield 2

def other():
    return 1
""",
    "wbsim/sim/b/c.py": "def leaf():\n    return 1\n",
    "tests/d.py": "def outside():\n    return 1\n",
}
_START = Place("wbsim/models/a.py", "start")
_LEAF = Place("wbsim/sim/b/c.py", "leaf")


@pytest.fixture
def modules(tmp_path: Path) -> Callable[[str], ModuleType]:
    """Return a function from a file of `_FILES` to its module; the modules share their names."""
    found: dict[str, ModuleType] = {}
    names: dict[str, object] = {}
    for name, text in _FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        found[name] = ModuleType(path.stem)
        exec(compile(text, str(path), "exec"), found[name].__dict__)
        names |= {key: value for key, value in found[name].__dict__.items() if not key.startswith("__")}
    for module in found.values():
        module.__dict__.update(names)
    return found.__getitem__


def test_calls_and_returns_of_generators_are_steps(
    modules: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    """start, other and its return; steps is resumed three times and calls leaf in the first."""
    a, c = "wbsim/models/a.py", "wbsim/sim/b/c.py"
    module = modules(a)

    def run() -> None:
        modules("tests/d.py").outside()
        module.start()
        modules("tests/d.py").outside()
        module.other()

    way = traced(run, Window(_START, _START), tmp_path)
    assert way.steps == [a, a, a, a, c, c, a, a, a, a, a, a]
    assert (way.files, way.folders, way.changes) == ({a, c}, {"wbsim/models", "wbsim/sim/b"}, 2)
    assert count_of("x", way) == Count("x", 2, 2, 2, 0)


def test_window_ends_with_the_last_return(modules: Callable[[str], ModuleType], tmp_path: Path) -> None:
    """All calls between two calls of leaf count; no call after the second does."""
    leaf, other = modules("wbsim/sim/b/c.py").leaf, modules("wbsim/models/a.py").other

    def run() -> None:
        for call in (other, leaf, other, leaf, other):
            call()

    assert traced(run, Window(_LEAF, _LEAF), tmp_path).steps == [
        *["wbsim/sim/b/c.py"] * 2,
        *["wbsim/models/a.py"] * 2,
        *["wbsim/sim/b/c.py"] * 2,
    ]
    warm = traced(run, Window(_LEAF, Place("wbsim/models/a.py", "other"), warm=True), tmp_path)
    assert warm.steps == [*["wbsim/sim/b/c.py"] * 2, *["wbsim/models/a.py"] * 2]
    assert warm.changes == 1


def test_calls_within_a_hidden_function_are_left_out(
    modules: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    """Each step of the generator is called and returns, but leaf, which the first step calls, is hidden."""
    window = Window(_START, _START, without=Place("wbsim/models/a.py", "steps"))
    assert traced(modules("wbsim/models/a.py").start, window, tmp_path).steps == ["wbsim/models/a.py"] * 10


@pytest.mark.parametrize(
    "window",
    [
        Window(Place("wbsim/models/a.py", "begin"), _START),
        Window(_START, Place("wbsim/models/b.py", "leaf")),
        Window(_START, Place("wbsim/models/a.py", "finish")),
    ],
)
def test_renamed_function_is_an_error(
    window: Window, modules: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    with pytest.raises(LookupError, match=r"wbsim/models/[ab].py has no call of \w+; give the present name"):
        traced(modules("wbsim/models/a.py").start, window, tmp_path)


def test_import_within_a_window_is_an_error(modules: Callable[[str], ModuleType], tmp_path: Path) -> None:
    imported = compile("x = 1\n", str(tmp_path / "wbsim/sim/late.py"), "exec")
    leaf = modules("wbsim/sim/b/c.py").leaf

    def run() -> None:
        leaf()
        exec(imported, {})
        leaf()

    with pytest.raises(
        LookupError, match=r"wbsim/sim/late\.py is imported within the window; import it before"
    ):
        traced(run, Window(_LEAF, _LEAF), tmp_path)


def test_profile_function_is_removed_after_an_error(tmp_path: Path) -> None:
    before = sys.getprofile()
    with pytest.raises(ZeroDivisionError):
        traced(lambda: 1 // 0, Window(_START, _START), tmp_path)
    assert sys.getprofile() is before


def test_way_counts_changes_between_neighbours() -> None:
    way = Way(
        [
            "wbsim/sim/a.py",
            "wbsim/models/b.py",
            "wbsim/models/b.py",
            "wbsim/models/c/d.py",
            "wbsim/sim/a.py",
            "wbsim/models/b.py",
        ]
    )
    assert way.changes == 4
    assert way.folders == {"wbsim/sim", "wbsim/models", "wbsim/models/c"}
    assert way.without("wbsim/sim").steps == [
        "wbsim/models/b.py",
        "wbsim/models/b.py",
        "wbsim/models/c/d.py",
        "wbsim/models/b.py",
    ]
    assert Way([]).changes == 0


@pytest.mark.long
def test_five_ways_go_through_the_layers() -> None:
    """Each window opens and closes.  A large page touches more files than a small one.

    The first page sets 500 allocation groups up, the second none.  It changes a file 30 times at most: each
    flash page goes from the drive to its planes.
    """
    found = {of.name: of for of in counts()}
    assert list(found) == ["small page", "large page", "inodes", "configuration", "capture"]
    assert found["large page"].files > found["small page"].files > found["small page"].folders > 5
    assert found["large page"].changes < 30 * found["large page"].files
    assert found["small page"].changes < 20 * found["small page"].files
    for of in found.values():
        assert of.changes > of.changes_above > of.files > of.folders
