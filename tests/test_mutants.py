"""Mutants that were judged to change nothing: each judgement is about a line that exists."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

import pytest

_TESTS: Final = Path(__file__).parent
_JUDGED: Final = tomllib.loads((_TESTS / "mutants" / "equivalent.toml").read_text())["mutant"]


@pytest.mark.parametrize(("file", "before"), [(entry["file"], entry["before"]) for entry in _JUDGED])
def test_equivalent_mutant_names_a_line_of_its_file(file: str, before: str) -> None:
    """The judgement of a line that has changed says nothing about the new line."""
    lines = (_TESTS.parent / file).read_text().splitlines()
    assert before in [line.strip() for line in lines]
