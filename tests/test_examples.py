"""The examples in the docstrings of all layers run, and print what they say.

Those of the Python interface simulate; `tests.experiments.python.test_docstrings` runs them.
"""

from __future__ import annotations

import ast
import doctest
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

import wbsim

PACKAGE: Final = Path(wbsim.__file__).parent
LAYERS: Final = ("sim", "models", "experiments")
INTERFACE: Final = (
    "experiments/python", "experiments/captures/verdict", "experiments/config/case",
    "experiments/config/problems", "experiments/results/outcome",
)  # fmt: skip
"""The modules whose objects users hold: their examples simulate, or need captures."""
_PROMPT: Final = ">>> "
_DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef)

pytestmark = pytest.mark.source


def modules_with_examples() -> list[str]:
    """Return the names of the modules of all layers that contain a prompt, without the Python interface."""
    paths = (path for layer in LAYERS for path in sorted((PACKAGE / layer).rglob("*.py")))
    places = [path.relative_to(PACKAGE).with_suffix("") for path in paths if _PROMPT in path.read_text()]
    places = [place for place in places if not str(place).startswith(INTERFACE)]
    return [".".join(("wbsim", *place.parts)).removesuffix(".__init__") for place in places]


def examples_in(source: str) -> Iterator[tuple[str, str, int]]:
    """Yield the name, the docstring and the line of each definition in *source* that has an example.

    The syntax tree also has private functions and those that Numba compiles, which doctest's finder misses.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _DOCUMENTED) and _PROMPT in (docstring := ast.get_docstring(node) or ""):
            yield getattr(node, "name", "module"), docstring, node.body[0].lineno - 1


def report_of(source: str, module: str, names: dict[str, object]) -> str:
    """Return what the examples in *source* print against their docstrings; "": nothing."""
    report: list[str] = []
    for name, docstring, line in examples_in(source):
        title = f"{module}.{name}"
        example = doctest.DocTestParser().get_doctest(docstring, dict(names), title, module, line)
        doctest.DocTestRunner(verbose=False).run(example, out=report.append)
    return "".join(report)


@pytest.mark.parametrize("module", modules_with_examples())
def test_examples_of_module_print_what_they_say(module: str) -> None:
    namespace = vars(import_module(module))
    report = report_of(Path(namespace["__file__"]).read_text(), module, namespace)
    assert not report, report


def test_wrong_example_of_private_function_is_found() -> None:
    """The report names the definition, what it says and what it prints."""
    report = report_of('def _f():\n    """Return 1.\n\n    >>> 1 + 1\n    3\n    """\n', "toy", {})
    assert "toy._f" in report
    assert "Expected:\n    3\nGot:\n    2" in report
    assert report_of('"""Add.\n\n>>> 1 + 1\n2\n"""\n', "toy", {}) == ""


def test_most_modules_of_helpers_have_examples() -> None:
    """The search finds modules of all layers, of packages, and of functions that Numba compiles."""
    modules = modules_with_examples()
    assert {"wbsim.sim.units", "wbsim.models.release", "wbsim.models.page_cache.pages"} <= set(modules)
    assert len(modules) >= 50
