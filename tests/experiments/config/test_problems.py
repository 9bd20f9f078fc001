"""The text of a problem: its place, its key and its remedy."""

from __future__ import annotations

import pytest

from wbsim.experiments.config.problems import BadInput, Problem, bad, unknown_key


def test_problem_prints_its_nonempty_parts() -> None:
    """An empty key is left out.  Several problems have a line each."""
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
        ("zzz", ["cpu", "memory"], "unknown key; use one of cpu, memory"),
        ("zzz", [], "unknown key"),
    ],
)
def test_unknown_key_gets_the_nearest_key_or_all(key: str, known: list[str], message: str) -> None:
    """The message proposes a similar key, or else lists the known keys."""
    assert unknown_key(key, known) == message
