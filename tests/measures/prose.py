"""The English of the repository, counted by the rules of `tests.measures.english`.

Prose is: docstrings, comments, the names of tests, README, CONTRIBUTING and docs/*.md.  Identifiers, strings
and code blocks are not prose.  A finding belongs to the folder of its file, without the folders below it.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from inspect import cleandoc
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from tests.measures.english import (
    LONGEST_NAME,
    LONGEST_PARAGRAPH,
    LONGEST_READ,
    LONGEST_SENTENCE,
    Length,
    is_headless,
    may_be_vague,
    name_words,
    paragraph_lengths,
    sentence_lengths,
    vague,
    words,
)
from tests.measures.markdown import paragraphs, prose_of

ROOT: Final = Path(__file__).parent.parent.parent
FOLDERS: Final = ("wbsim", "tests")
GENERATED: Final = ("docs/reference.md",)
"""Documents that are made of docstrings; their sentences are counted there."""
KINDS: Final = ("headless", "vague", "long sentences", "long paragraphs", "long names")
"""The kinds of findings that have an upper bound."""
_DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Finding(NamedTuple):
    """A breach of a rule at *line* of the file *path*; *text* describes it."""

    kind: str
    path: str
    line: int
    text: str

    @property
    def folder(self) -> str:
        """The folder of the file; a document is its own folder."""
        return self.path if self.path.endswith(".md") else str(Path(self.path).parent)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind}: {self.text}"


class Prose(NamedTuple):
    """The findings of files, and the sizes of all prose.

    ``docstrings`` counts the docstrings of modules, classes, functions and attributes by folder.
    ``sentences`` and ``paragraphs`` have the lengths in the guides, ``spoken`` the lengths of sentences in
    docstrings, and ``names`` the numbers of words of test names.
    """

    findings: list[Finding]
    docstrings: Counter[str]
    sentences: list[Length]
    paragraphs: list[Length]
    spoken: list[Length]
    names: list[int]

    def add(self, other: Prose) -> None:
        """Add the findings and sizes of *other*."""
        self.findings.extend(other.findings)
        self.docstrings.update(other.docstrings)
        for mine, theirs in zip(self[2:], other[2:], strict=True):
            mine.extend(theirs)  # type: ignore[attr-defined]

    def counts(self) -> dict[str, dict[str, int]]:
        """Return the number of findings by folder and kind."""
        found: dict[str, dict[str, int]] = {}
        for finding in self.findings:
            of = found.setdefault(finding.folder, {})
            of[finding.kind] = of.get(finding.kind, 0) + 1
        return found


def nothing() -> Prose:
    """Return the prose of no file."""
    return Prose([], Counter(), [], [], [], [])


def measure(root: Path = ROOT) -> Prose:
    """Return the prose of all sources and documents below *root*."""
    whole = nothing()
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py")):
        whole.add(of_source(path.read_text(), str(path.relative_to(root))))
    guides = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]
    for path in guides:
        whole.add(of_document(path.read_text(), str(path.relative_to(root))))
    return whole


def of_document(text: str, path: str) -> Prose:
    """Return the prose of the document *text* at *path*."""
    found = nothing()
    found.findings.extend(_vague(prose_of(text), path, 1))
    if path not in GENERATED:
        parts = paragraphs(text)
        found.sentences.extend(sentence_lengths(parts))
        found.paragraphs.extend(paragraph_lengths(parts))
        found.findings.extend(_long("long sentences", found.sentences, LONGEST_READ, text, path))
        found.findings.extend(_long("long paragraphs", found.paragraphs, LONGEST_PARAGRAPH, text, path))
    return found


def of_source(text: str, path: str) -> Prose:
    """Return the prose of the Python source *text* at *path*."""
    found, nodes = nothing(), list(statements(ast.parse(text)))
    folder = str(Path(path).parent)
    attributes = list(attribute_docstrings(nodes))
    for line, docstring in [*docstrings(nodes), *attributes]:
        found.docstrings[folder] += 1
        if is_headless(docstring):
            found.findings.append(Finding("headless", path, line, docstring.splitlines()[0][:80]))
    for line, docstring in docstrings(nodes):
        found.findings.extend(_vague(prose_of(docstring), path, line))
        lengths = sentence_lengths(paragraphs(docstring))
        found.spoken.extend(lengths)
        for length in lengths:
            if length.words > LONGEST_SENTENCE:
                begin = f"{length.words} words: {length.begins} ..."
                found.findings.append(Finding("long sentences", path, line, begin))
    for line, docstring in attributes:
        found.findings.extend(_vague(prose_of(docstring), path, line))
    for line, comment in comments(text) if may_be_vague(text) else ():
        found.findings.extend(_vague(comment, path, line))
    for line, name in names_of_tests(nodes) if path.startswith("tests/") else ():
        spoken = name_words(name)
        found.names.append(words(spoken))
        found.findings.extend(_vague(spoken, path, line))
        if words(spoken) > LONGEST_NAME:
            found.findings.append(Finding("long names", path, line, f"{words(spoken)} words: {name}"))
    return found


def _vague(text: str, path: str, first: int) -> Iterator[Finding]:
    return (Finding("vague", path, first + line, said) for line, said in vague(text))


def _long(kind: str, lengths: Iterable[Length], longest: int, text: str, path: str) -> Iterator[Finding]:
    for length in lengths:
        if length.words > longest:
            yield Finding(kind, path, _line_of(length, text), f"{length.words} words: {length.begins} ...")


def _line_of(length: Length, text: str) -> int:
    """Return the line on which *length* begins, by its first words; 1 if they are not found."""
    first = length.begins.partition("code")[0].strip()
    place = text.find(first) if first else -1
    return text.count("\n", 0, place) + 1 if place >= 0 else 1


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield *tree* and all statements in it, with handlers and cases; expressions hold no prose."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, block, None)
            waiting += inner if isinstance(inner, list) else ()


def docstrings(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the first line and the text of each docstring of a module, a class or a function."""
    for node in nodes:
        if isinstance(node, _DOCUMENTED) and node.body and (text := bare_string(node.body[0])) is not None:
            yield node.body[0].lineno, cleandoc(text)


def attribute_docstrings(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the first line and the text of each string that follows an assignment as its own statement."""
    for node in nodes:
        body = node.body if isinstance(node, _DOCUMENTED) else []
        for before, after in pairwise(body):
            if isinstance(before, ast.Assign | ast.AnnAssign) and (text := bare_string(after)) is not None:
                yield after.lineno, cleandoc(text)


def bare_string(node: ast.stmt) -> str | None:
    """Return the string that *node* consists of; None if *node* is anything else."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return node.value.value if isinstance(node.value.value, str) else None
    return None


def names_of_tests(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each test."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.lineno, node.name


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield the first line and the text of each comment; comments on successive lines are one."""
    block: list[str] = []
    first = last = column = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, at = token.start
        if block and (line != last + 1 or at != column):
            yield first, "\n".join(block)
            block = []
        if not block:
            first, column = line, at
        block.append(token.string.lstrip("#").strip())
        last = line
    if block:
        yield first, "\n".join(block)
