"""Code lines of folders: without comments, docstrings and empty lines.

A line counts if a token of code stands on it; a string that is a complete statement is no code.
"""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path
from typing import Final, NamedTuple

from tests.measures.prose import ROOT, bare_string, statements
from wbsim.experiments.formats.table import table

LAYERS: Final = ("wbsim/sim", "wbsim/models", "wbsim/experiments")
_NO_CODE: Final = frozenset(
    (
        tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
        tokenize.ENDMARKER, tokenize.ENCODING,
    )
)  # fmt: skip


class Size(NamedTuple):
    """The files of a folder and their code lines."""

    files: int
    lines: int

    @property
    def mean(self) -> float:
        """The mean of the lines a file; 0 without files."""
        return self.lines / self.files if self.files else 0.0


def code_lines(source: str) -> int:
    """Return the number of code lines of *source*."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.stmt) and bare_string(node) is not None:
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def size_of(files: list[Path]) -> Size:
    """Return the size of *files*."""
    return Size(len(files), sum(code_lines(path.read_text()) for path in files))


def sizes(root: Path = ROOT) -> dict[str, Size]:
    """Return the size of each layer, of each folder directly below it, and of tests."""
    found = {}
    for layer in LAYERS:
        files = sorted((root / layer).rglob("*.py"))
        found[layer] = size_of(files)
        for folder in sorted({path.relative_to(root / layer).parts[0] for path in files}):
            if (root / layer / folder).is_dir():
                found[f"{layer}/{folder}"] = size_of(
                    [path for path in files if root / layer / folder in path.parents]
                )
    found["tests"] = size_of(sorted((root / "tests").rglob("*.py")))
    return found


def report(root: Path = ROOT) -> str:
    """Return the table of `sizes`."""
    rows = [(name, str(of.files), str(of.lines), f"{of.mean:.0f}") for name, of in sizes(root).items()]
    return table(("folder", "files", "code lines", "a file"), rows)
