"""The mutations of a source: mutmut's operators, and six that mutmut lacks.

mutmut omits decorated functions, which here are all functions that Numba compiles and all properties.  This
module applies mutmut's operators to them, too.  Left out: docstrings, annotations, imports, decorators, and
the texts of errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import libcst as cst
from libcst import matchers
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators

_OTHER_NAMES: Final = {
    "popleft": "pop", "pop": "popleft", "append": "appendleft", "min": "max", "max": "min", "any": "all",
    "all": "any", "argmin": "argmax", "argmax": "argmin", "ceil": "floor", "floor": "ceil",
}  # fmt: skip
_PASSED_OVER: Final = (
    cst.Annotation, cst.Import, cst.ImportFrom, cst.Decorator, cst.Raise, cst.TypeAlias, cst.FormattedString,
)  # fmt: skip


class Mutant(NamedTuple):
    """One mutation of the file at ``path``.

    ``line``: its line (from 1); ``before`` and ``after``: the text of the line; ``code``: the mutated file.
    """

    path: Path
    line: int
    before: str
    after: str
    code: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.before}  ->  {self.after}"


def _drop_statement(node: cst.Expr) -> Iterable[cst.CSTNode]:
    """Drop a call or a wait."""
    if isinstance(node.value, cst.Call | cst.Yield):
        yield cst.Pass()


def _swap_statements(node: cst.IndentedBlock) -> Iterable[cst.CSTNode]:
    """Swap two successive statements if one can depend on the other."""
    body = list(node.body)
    for at, (one, two) in enumerate(pairwise(body)):
        if _moves(one) and _moves(two) and (_sees(one, two) or _sees(two, one)):
            yield node.with_changes(body=[*body[:at], two, one, *body[at + 2 :]])


def _sees(one: cst.CSTNode, other: cst.CSTNode) -> bool:
    """Return whether *one* can depend on *other*, if *other* runs before.

    It can if *one* names a target of *other*.  It also can if *one* calls a function, and *other* calls one,
    too, or sets an attribute or an item.
    """
    of_other = {target for assigned in matchers.findall(other, _ASSIGNED) for target in _targets(assigned)}
    names = {_code(name) for name in matchers.findall(one, matchers.Name() | matchers.Attribute())}
    shared = any("." in target or "[" in target for target in of_other)
    roots = {target.partition("[")[0] for target in of_other}
    return bool(names & roots) or (_acts(one) and (shared or _acts(other)))


def _acts(node: cst.CSTNode) -> bool:
    """Return whether *node* waits, or calls a function that may have effects."""
    calls = [getattr(call, "func", None) for call in matchers.findall(node, matchers.Call())]
    return any(matchers.findall(node, matchers.Yield())) or any(
        not (isinstance(called, cst.Name) and called.value in _PURE) for called in calls
    )


_PURE: Final = {
    "min",
    "max",
    "len",
    "abs",
    "int",
    "bool",
    "sum",
    "sorted",
    "range",
    "deque",
    "list",
    "dict",
    "set",
}
_ASSIGNED: Final = matchers.AssignTarget() | matchers.AugAssign()


def _targets(node: cst.CSTNode) -> list[str]:
    """Return the targets of an assignment."""
    target = getattr(node, "target")  # noqa: B009 (of either kind)
    parts = target.elements if isinstance(target, cst.Tuple | cst.List) else [target]
    return [_code(getattr(part, "value", part) if isinstance(part, cst.Element) else part) for part in parts]


def _code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


def _moves(node: cst.CSTNode) -> bool:
    """Return whether *node* is a statement that can move."""
    return isinstance(node, cst.SimpleStatementLine) and all(
        isinstance(of, cst.Assign | cst.AugAssign | cst.Expr) and not _is_docstring(of) for of in node.body
    )


def _other_name(node: cst.Call) -> Iterable[cst.CSTNode]:
    """Call the function for the other end of a queue, or for the other extreme."""
    function = node.func
    name = function.attr.value if isinstance(function, cst.Attribute) else getattr(function, "value", None)
    if name in _OTHER_NAMES:
        other = cst.Name(_OTHER_NAMES[name])
        changed = function.with_changes(attr=other) if isinstance(function, cst.Attribute) else other
        yield node.with_changes(func=changed)


def _swap_arguments(node: cst.Call) -> Iterable[cst.CSTNode]:
    """Swap the first two arguments of a call if their order matters."""
    if getattr(node.func, "value", None) in ("min", "max"):
        return
    first, second, *rest = [*node.args, None, None]
    if first and second and not (first.keyword or second.keyword or first.star or second.star):
        swapped = first.with_changes(value=second.value), second.with_changes(value=first.value)
        yield node.with_changes(args=[*swapped, *(arg for arg in rest if arg is not None)])


def _negate(node: cst.If | cst.While) -> Iterable[cst.CSTNode]:
    """Take the other branch."""
    yield node.with_changes(
        test=cst.UnaryOperation(
            operator=cst.Not(),
            expression=node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()]),
        )
    )


def _shift_range(node: cst.Comparison) -> Iterable[cst.CSTNode]:
    """Reverse an order."""
    opposite = {
        cst.LessThan: cst.GreaterThan, cst.GreaterThan: cst.LessThan,
        cst.LessThanEqual: cst.GreaterThanEqual, cst.GreaterThanEqual: cst.LessThanEqual,
    }  # fmt: skip
    (target, *others) = node.comparisons
    other = opposite.get(type(target.operator))
    if other is not None and not others:
        yield node.with_changes(comparisons=[target.with_changes(operator=other())])


OPERATORS: Final[list[tuple[type, Callable[[Any], Iterable[cst.CSTNode]]]]] = [
    *mutation_operators,
    (cst.Expr, _drop_statement),
    (cst.IndentedBlock, _swap_statements),
    (cst.Call, _other_name),
    (cst.Call, _swap_arguments),
    (cst.If, _negate),
    (cst.While, _negate),
    (cst.Comparison, _shift_range),
]


class _Finder(cst.CSTVisitor):
    """A visitor that collects every node that an operator changes, with the changed node."""

    def __init__(self) -> None:
        self.found: list[tuple[cst.CSTNode, cst.CSTNode]] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, _PASSED_OVER) or _is_docstring(node) or _is_for_types(node):
            return False
        for of, operator in OPERATORS:
            if isinstance(node, of):
                self.found += [(node, new) for new in operator(node)]
        if isinstance(node, cst.Assert):
            node.test.visit(self)
            return False
        called = getattr(node.func, "value", None) if isinstance(node, cst.Call) else None
        if isinstance(node, cst.Call) and called in _TOLD:
            for argument in node.args:
                if not isinstance(argument.value, cst.SimpleString | cst.ConcatenatedString):
                    argument.visit(self)
            return False
        return True


_TOLD: Final = {"require", "specified", "measured", "calibrated", "assumed"}
"""Functions with texts for people: on a law, or on the source of a number."""


def _is_docstring(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Expr) and isinstance(node.value, cst.SimpleString | cst.ConcatenatedString)


def _is_for_types(node: cst.CSTNode) -> bool:
    """Return whether *node* is ``if TYPE_CHECKING:``, ``__slots__``, a type variable or a Protocol."""
    if isinstance(node, cst.If):
        return isinstance(node.test, cst.Name) and node.test.value == "TYPE_CHECKING"
    if isinstance(node, cst.Assign):
        target, value = node.targets[0].target, node.value
        if isinstance(value, cst.Call) and getattr(value.func, "value", None) == "TypeVar":
            return True
        return isinstance(target, cst.Name) and target.value in ("__slots__", "__all__")
    if isinstance(node, cst.ClassDef):
        return any(getattr(base.value, "value", None) == "Protocol" for base in node.bases)
    return False


def count(path: Path) -> int:
    """Return the number of mutations of the file at *path*."""
    return len(_found(cst.parse_module(path.read_text())))


def _found(module: cst.Module) -> list[tuple[cst.CSTNode, cst.CSTNode]]:
    finder = _Finder()
    module.visit(finder)
    return finder.found


def mutants(root: Path, path: Path, numbers: Iterable[int]) -> Iterator[Mutant]:
    """Yield the mutants of the file at *path* below *root* that have these *numbers*, in source order."""
    wrapper = MetadataWrapper(cst.parse_module((root / path).read_text()))
    module, positions = wrapper.module, wrapper.resolve(PositionProvider)
    found = _found(module)
    source = module.code.splitlines()
    for number in numbers:
        old, new = found[number]
        at = positions[old].start
        code = module.deep_replace(old, new).code  # type: ignore[arg-type]
        before, after = _difference(source, code.splitlines())
        yield Mutant(path, at.line, before, after, code)


def _difference(old: list[str], new: list[str]) -> tuple[str, str]:
    """Return the first line that differs, in both versions."""
    for before, after in zip(old, new, strict=False):
        if before != after:
            return before.strip(), after.strip()
    return "", ""
