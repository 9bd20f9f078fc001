"""The counted costs stay within the committed ones, and the counter is right for small code."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.measures import costs
from tests.measures.costs import MOST, PYTHON, RUNS, WEIGHTS, Work, cost, excesses, measure, read, text_of
from wbsim.sim import COMPILED

SOURCE = """
class Thing:
    def __init__(self, x):
        self.x = x

class Agenda:
    def push(self, entry):
        return entry

def steps(count):
    for i in range(count):
        yield i

def look_up(thing):
    return getattr(thing, "x")

def plain(thing):
    return thing.x
"""


@pytest.mark.skipif(sys.version_info[:2] != PYTHON, reason="another Python has other instructions")
def test_no_report_costs_more_than_the_committed_sum() -> None:
    """A commit that needs more gives the reason and a measurement: see `tests.measures.costs`."""
    grown = excesses(measure("compiled" if COMPILED else "light"), read())
    assert not grown, "\n".join(grown)


def test_each_report_has_its_committed_counts() -> None:
    """costs.toml has each count of each report, and the last line of stops.tsv has the sums of it."""
    committed = read()
    assert list(committed) == list(RUNS)
    assert all(set(of) == set(WEIGHTS) for of in committed.values())
    *_, last = costs.STOPS.read_text().splitlines()
    _, commit, *sums, pairs, because = last.split("\t")
    assert [float(found) for found in sums] == [
        pytest.approx(cost(of), abs=0.006) for of in committed.values()
    ]
    assert commit
    assert float(pairs) > 0
    assert because


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return a module of `SOURCE` whose code counts."""
    of = ModuleType("example")
    exec(compile(SOURCE, str(Path("wbsim", "models", "example.py").resolve()), "exec"), of.__dict__)
    return of


def counted(act: Any) -> dict[str, int]:
    """Return the counts of *act*."""
    work = Work()
    before = sys.gettrace()
    sys.settrace(work.trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return work.counts()


def test_objects_starts_resumptions_and_pushes_are_counted(module: ModuleType) -> None:
    """Three objects, two pushes, four waits of a generator; one that is not begun costs nothing."""

    def act() -> None:
        for x in range(3):
            module.Thing(x)
        agenda = module.Agenda()
        agenda.push(1)
        agenda.push(2)
        assert list(module.steps(4)) == [0, 1, 2, 3]
        module.steps(9)

    found = counted(act)
    assert {name: found[name] for name in ("objects", "pushes", "starts", "resumptions")} == {
        "objects": 3, "pushes": 2, "starts": 1, "resumptions": 4,
    }  # fmt: skip


def test_look_up_by_name_costs_more_than_an_attribute(module: ModuleType) -> None:
    """getattr is one look-up by name; the attribute is none, and takes fewer steps."""
    thing = module.Thing(1)
    by_name, plain = (counted(lambda act=act: act(thing)) for act in (module.look_up, module.plain))
    assert (by_name["names"], plain["names"]) == (1, 0)
    assert by_name["steps"] > plain["steps"] > 0
    assert cost(by_name) > 5 * cost(plain)


def test_code_of_other_places_is_not_counted() -> None:
    """Only code of `sim` and `models` counts."""
    assert set(counted(lambda: sorted(range(9), key=lambda x: -x)).values()) == {0}


@pytest.mark.parametrize(("factor", "grown"), [(MOST, []), (MOST + 0.001, ["P13"]), (0.5, [])])
def test_growth_above_the_bound_is_an_excess(factor: float, grown: list[str]) -> None:
    """2 % more is allowed; the message names the report and the count that grew."""
    before = dict.fromkeys(WEIGHTS, 1_000_000)
    now = {"P13": {name: round(factor * count) for name, count in before.items()}}
    lines = excesses(now, {"P13": before})
    assert [line.split()[0] for line in lines] == grown
    assert all("steps 1000000 -> 1021000" in line for line in lines)


def test_engine_compares_only_what_it_counts() -> None:
    """The compiled engine counts calls of the interpreter alone."""
    committed = {"P13": dict.fromkeys(WEIGHTS, 100)}
    assert excesses({"P13": {"interpreted calls": 102}}, committed) == []
    assert len(excesses({"P13": {"interpreted calls": 103}}, committed)) == 1


def test_written_costs_are_read_again(tmp_path: Path) -> None:
    """The text of costs.toml gives the counts back."""
    counts = {"P13": {"steps": 3, "Numba calls": 0}, "V13": {"steps": 7, "Numba calls": 1}}
    path = tmp_path / "costs.toml"
    path.write_text(text_of(counts))
    assert read(path) == counts
