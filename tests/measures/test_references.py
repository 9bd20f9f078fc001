"""Each name in single backquotes in a docstring of wbsim stands for something that exists."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
REFERENCE: Final = re.compile(r"(?<!`)`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)`(?!`)")
"""A Python name or a dotted path in single backquotes."""
OUTSIDE: Final = frozenset({"wbsim_compiled", "tests", *sys.stdlib_module_names, *dir(builtins)})
"""The first names of references to things that are not of the package, such as `tests.desk.errors`."""


def definitions_in(tree: ast.AST) -> Iterator[str]:
    """Yield the names of functions, classes, fields, constants and imports in *tree*; no local variables."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.alias(name=name):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name
        if isinstance(node, ast.Module | ast.ClassDef):
            yield from _assigned_in(node.body)


def _assigned_in(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the names that the assignments in *body*, of a module or a class, bind."""
    for part in body:
        for target in part.targets if isinstance(part, ast.Assign) else ():
            yield from (name.id for name in ast.walk(target) if isinstance(name, ast.Name))


def references_in(node: ast.AST, parameters: frozenset[str] = frozenset()) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each docstring's reference below *node* that is none of *parameters*."""
    if isinstance(node, ast.FunctionDef):
        parameters |= {entry.arg for entry in ast.walk(node.args) if isinstance(entry, ast.arg)}
    body = getattr(node, "body", ())
    for child in body if isinstance(body, list) else ():
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            for line, text in enumerate(str(child.value.value).splitlines(), child.lineno):
                yield from ((line, name) for name in REFERENCE.findall(text) if name not in parameters)
        yield from references_in(child, parameters)


def is_dead(reference: str, names: set[str]) -> bool:
    """Return whether a part of *reference*, a path or the name of a file, is none of *names*."""
    first, *_ = parts = reference.removesuffix(".py").split(".")
    return first not in OUTSIDE and not names.issuperset(parts)


def test_references_in_docstrings_exist() -> None:
    """Each part of a reference is defined or imported somewhere in the package, or names a module."""
    trees = {path.relative_to(ROOT): ast.parse(path.read_text()) for path in (ROOT / "wbsim").rglob("*.py")}
    names = {name for tree in trees.values() for name in definitions_in(tree)}
    names |= {part for path in trees for part in path.with_suffix("").parts}
    places = ((path, *place) for path, tree in trees.items() for place in references_in(tree))
    dead = [f"{path}:{line}: {text}" for path, line, text in places if is_dead(text, names)]
    assert not dead, "\n".join(dead)


def test_reference_to_a_local_variable_is_dead() -> None:
    """A parameter, a field, a method and a module of Python exist; an unknown method does not."""
    source = '''
class Disk:
    size: int
    def text_of(self, key):
        """See `key`, `size`, `Disk.text_of`, ``any``, `argparse.Action`, `said` and `Disk.find`."""
def look():
    said = 1
'''
    tree = ast.parse(source)
    names = {*definitions_in(tree)}
    assert [text for _, text in references_in(tree) if is_dead(text, names)] == ["said", "Disk.find"]
