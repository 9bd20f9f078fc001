"""`help()` of the Python interface: parameters are documented, and examples run."""

from __future__ import annotations

import doctest
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import wbsim
from wbsim.experiments.captures.verdict import Mismatch, Verdict
from wbsim.experiments.config.case import Case, Experiment
from wbsim.experiments.config.problems import Problem
from wbsim.experiments.results.outcome import Outcome

RETURNED: Final = (Experiment, Case, Outcome, Problem, Verdict, Mismatch)
"""The classes of objects that the interface returns or raises, and that `wbsim` does not export."""
LISTED: Final = (Outcome, Verdict)
"""Classes with many fields; their docstrings describe the fields in a list."""
SLOW: Final = ("wbsim", "Findings.plot", "Findings.over_time")
"""The names of examples that take seconds."""
LONGEST_SIGNATURE: Final = 450
LONGEST_REPR: Final = 300
CAPTURES: Final = Path(__file__).parents[2] / "captures"


def _public() -> Iterator[tuple[str, Any]]:
    """Yield the name and the object of all that a user can call or receive, with the methods of classes."""
    yield "wbsim", wbsim
    named = {name: getattr(wbsim, name) for name in wbsim.__all__}
    for name, of in {**named, **{of.__name__: of for of in RETURNED}}.items():
        yield name, of
        for method, member in vars(of).items() if inspect.isclass(of) else ():
            if not method.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
                yield f"{name}.{method}", member


PUBLIC: Final = dict(_public())


def _parameters(of: Any) -> set[str]:
    """Return the names of the parameters of *of*, or of the public attributes of an exception."""
    if of is wbsim.BadInput:
        return {"problems"}
    return set(inspect.signature(of).parameters) - {"self"} if callable(of) else set()


def _documented(docstring: str) -> set[str]:
    """Return the names that the sections Args and Attributes of *docstring* describe."""
    sections = re.findall(r"^(?:Args|Attributes):\n((?:[ ]{4}.*\n|\n)+)", f"{docstring}\n", re.MULTILINE)
    return {name for section in sections for name in re.findall(r"^ {4}(\w+): ", section, re.MULTILINE)}


@pytest.mark.parametrize("name", PUBLIC)
def test_docstring_has_an_example_and_all_parameters(name: str) -> None:
    """The section Args, or Attributes for the fields of a class, describes each parameter and no other."""
    of = PUBLIC[name]
    docstring = inspect.getdoc(of) or ""
    assert "\nExample:\n    >>> import wbsim\n" in docstring
    if of in LISTED:
        assert not {field for field in _parameters(of) if f"``{field}``" not in docstring}
    else:
        assert _documented(docstring) == _parameters(of)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if name in SLOW else name for name in PUBLIC]
)
def test_example_of_docstring_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An example needs no other files than the captures of a clone of the repository.

    `DocTestRunner()` would read -v from the command line of pytest, and report the examples that pass.
    """
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "captures").symlink_to(CAPTURES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["pytest", "-v"])
    example = doctest.DocTestParser().get_doctest(
        inspect.getdoc(PUBLIC[name]) or "", {}, name, filename=None, lineno=None
    )
    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(example, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize("name", [name for name, of in PUBLIC.items() if inspect.isfunction(of)])
def test_signature_in_help_is_short(name: str) -> None:
    """No default and no annotation prints a long value."""
    assert len(str(inspect.signature(PUBLIC[name]))) <= LONGEST_SIGNATURE


def test_representations_are_short() -> None:
    """A study, its cases, a capture and the plug rules print few words at the prompt of Python."""
    text = f"title = {'long' * 500!r}\n[scenario]\n"
    study = wbsim.load("question.toml").set({"workload.loops": 2})
    assert repr(study) == "Study('question.toml', changes=('workload.loops=2',))"
    capture = wbsim.Capture(CAPTURES / "dd12.trace.xz")
    assert repr(capture) == "<capture dd12.trace.xz of Linux 6.18.44-fc-v595, device 7,0>"
    for of in (wbsim.Study(text), study.experiment(), capture, wbsim.PLUG_RULES):
        assert len(repr(of)) <= LONGEST_REPR
