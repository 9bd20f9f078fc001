"""Each name in backquotes in a docstring of wbsim exists in the package."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
REFERENCE: Final = re.compile(r"(?<!`)`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(\))?`(?!`)")
"""A Python name or a dotted path in single backquotes, perhaps with parentheses."""


def names_of(source: str) -> Iterator[str]:
    """Yield the names that *source* defines, binds or imports, and the words of its short texts.

    A text without a space can be a key of a configuration, a column or an option.
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.alias(name=name, asname=local):
                yield from (*name.split("."), local or "")
            case ast.Constant(value=str(text)) if " " not in text:
                yield from re.findall(r"\w+", text)


def references_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each reference in the docstrings of *source*."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            for number, line in enumerate(str(node.value.value).splitlines(), node.lineno):
                yield from ((number, match[1]) for match in REFERENCE.finditer(line))


