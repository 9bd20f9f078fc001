"""The examples that Hypothesis draws depend on the test and its seed, and on nothing else."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import fuzz


def drawn() -> list[int]:
    """Return the numbers that a test of 200 examples draws."""
    found: list[int] = []

    @settings(max_examples=200, derandomize=True, database=None)
    @given(st.integers())
    def test(number: int) -> None:
        found.append(number)

    test()
    return found


def test_draws_do_not_depend_on_the_modules_that_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module with a thousand constants, loaded between two runs of a test, changes no example."""
    before = drawn()
    path = tmp_path / "constants.py"
    path.write_text(f"NUMBERS = {list(range(10**9, 10**9 + 1_000))}\n")
    module = ModuleType("constants")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, "constants", module)
    assert drawn() == before


@pytest.mark.parametrize(("words", "first"), [([], 1_000), (["--first", "7"], 7)])
def test_each_fuzz_has_new_seeds(words: list[str], first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The seeds count up from the time in seconds, or from --first."""
    now, seeds = iter([0.0, 1.0, 2.0, 61.0]), []
    monkeypatch.setattr("time.time", lambda: 1_000.9)
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    monkeypatch.setattr(fuzz, "one_round", lambda number, examples: (str(seeds.append(number)), True))
    monkeypatch.setattr(sys, "argv", ["fuzz", "--minutes", "1", "--processes", "1", *words])
    with pytest.raises(SystemExit):
        fuzz.main()
    assert seeds == [first, first + 1]
