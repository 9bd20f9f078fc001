"""Counts of the work that report P13 at quick size costs on the interpreted engine, in counts.toml.

The time of a run differs from run to run, but its counts do not.  A change that doubles the events or the
objects of a file is found here, before a benchmark runs.  For each variant of P13:

| count | meaning |
|---|---|
| events | entries that `Environment.run` takes from the agenda |
| pushes | entries that are put on the agenda by `Agenda.push`, without those of `pushpop` |
| lock sections | calls of `SpinLock.section` |
| generator starts | generators of `sim` and `models` that begin to run, nested ones included |
| objects | instances of the classes of `sim` and `models` that the run makes `HOT` times a file or more |

``python -m tests.measures.counts --write`` counts again and writes counts.toml.  Give the reason for each
changed count in the commit.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

Counts = dict[str, dict[str, int]]
"""Counts by variant and name; the name of a class has its module before it."""

PATH: Final = Path(__file__).parent / "counts.toml"
ROOT: Final = Path(__file__).parent.parent.parent
HOT: Final = 0.01
"""The smallest number of objects for each file for which a class is counted."""
FILES: Final = "files"
ENVIRONMENT: Final = {"WBSIM_ENGINE": "light", "PYTHONHASHSEED": "0"}
_STARTS: Final = "_generator_starts"
_COUNTED: Final = ("wbsim.sim.", "wbsim.models.")
_HEAD: Final = """\
# Counts of report P13 at quick size on the interpreted engine: see `tests.measures.counts`.
# Written by `python -m tests.measures.counts --write`.
"""


class StartCounter(ast.NodeTransformer):
    """Insert ``_generator_starts[0] += 1`` as the first statement of each generator function."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Insert the statement behind the docstring, also in the functions within *node*."""
        self.generic_visit(node)
        if is_generator(node):
            place = 1 if ast.get_docstring(node, clean=False) is not None else 0
            (statement,) = ast.parse(f"{_STARTS}[0] += 1").body
            for part in ast.walk(statement):
                ast.copy_location(part, node.body[0])
            node.body.insert(place, statement)
        return node


def is_generator(function: ast.FunctionDef) -> bool:
    """Return whether *function* yields; a yield in a function within it does not count."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef | ast.GeneratorExp):
            waiting += ast.iter_child_nodes(node)
    return False


class CountingFinder(MetaPathFinder):
    """Find the modules of `sim` and `models` and load them with `StartCounter`; *starts* has the count."""

    def __init__(self, starts: list[int]) -> None:
        self._starts = starts

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> Any:
        """Return the spec of a module that is counted; None leaves the module to the usual finders."""
        spec = PathFinder.find_spec(fullname, path, target) if fullname.startswith(_COUNTED) else None
        if isinstance(spec, ModuleSpec) and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _CountingLoader(fullname, spec.loader.path, self._starts)
            return spec
        return None


class _CountingLoader(SourceFileLoader):
    """Compile a module with `StartCounter`, without the cache of bytecode."""

    def __init__(self, fullname: str, path: str, starts: list[int]) -> None:
        super().__init__(fullname, path)
        self._starts = starts

    def get_code(self, fullname: str) -> CodeType:
        tree = StartCounter().visit(ast.parse(Path(self.path).read_text(), self.path))
        return compile(tree, self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__[_STARTS] = self._starts
        super().exec_module(module)


def count_objects(modules: list[ModuleType], objects: Counter[str]) -> None:
    """Let each class of *modules* count its new instances in *objects*; an instance counts once."""
    for module in modules:
        for cls in list(vars(module).values()):
            if isinstance(cls, type) and cls.__module__ == module.__name__:
                _count_instances(cls, f"{module.__name__.removeprefix('wbsim.')}.{cls.__qualname__}", objects)


def _count_instances(cls: type, name: str, objects: Counter[str]) -> None:
    """Let *cls* count its new instances under *name*."""
    if issubclass(cls, tuple):
        make = cls.__new__

        @wraps(make)
        def new(of: type, *args: Any, **kwargs: Any) -> Any:
            if of is cls:
                objects[name] += 1
            return make(of, *args, **kwargs)

        cls.__new__ = new  # type: ignore[method-assign]
    elif cls.__init__ is not object.__init__ and not issubclass(cls, BaseException):
        initialise = cls.__init__

        @wraps(initialise)
        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            if type(self) is cls:
                objects[name] += 1
            initialise(self, *args, **kwargs)

        cls.__init__ = init  # type: ignore[method-assign]


def count_calls(cls: type, name: str, calls: Counter[str]) -> None:
    """Let the method *name* of *cls* count its calls in *calls*."""
    method: Callable[..., Any] = getattr(cls, name)

    @wraps(method)
    def counted(*args: Any) -> Any:
        calls[name] += 1
        return method(*args)

    setattr(cls, name, counted)


def counted_runs() -> Iterator[tuple[str, dict[str, int]]]:
    """Yield each variant of P13 at quick size and its counts; `CountingFinder` must not be in use yet."""
    starts = [0]
    sys.meta_path.insert(0, CountingFinder(starts))
    from wbsim.experiments.config.experiment import config_path, load, smaller
    from wbsim.experiments.published.reproduce import CONFIGS
    from wbsim.experiments.running.simulate import run_case
    from wbsim.sim.agenda import Agenda
    from wbsim.sim.sync import SpinLock

    calls: Counter[str] = Counter()
    objects: Counter[str] = Counter()
    for cls, names in ((Agenda, ("push", "pop", "pushpop")), (SpinLock, ("section",))):
        for name in names:
            count_calls(cls, name, calls)
    count_objects([of for name, of in sys.modules.items() if name.startswith(_COUNTED)], objects)
    path = config_path(CONFIGS["P13"])
    whole = load(path)
    for case in whole.cases:
        starts[0] = 0
        calls.clear()
        objects.clear()
        outcome = run_case(smaller(path, whole, case), 1)
        hot = {name: count for name, count in sorted(objects.items()) if count >= HOT * outcome.files}
        yield (
            case.variant,
            {
                FILES: outcome.files,
                "events": calls["pop"] + calls["pushpop"],
                "pushes": calls["push"],
                "lock sections": calls["section"],
                "generator starts": starts[0],
                **hot,
            },
        )


def read(path: Path = PATH) -> Counts:
    """Return the committed counts."""
    found: Counts = tomllib.loads(path.read_text())
    return found


def text_of(counts: Counts) -> str:
    """Return the content of counts.toml."""
    parts = [_HEAD]
    for variant, of in counts.items():
        parts += [f"\n[{variant}]\n", *(f'"{name}" = {count}\n' for name, count in of.items())]
    return "".join(parts)


def differences(counts: Counts, committed: Counts) -> list[str]:
    """Return a line for each count that differs from the *committed* one, with both for each file."""
    lines = []
    for variant in counts | committed:
        now, before = counts.get(variant, {}), committed.get(variant, {})
        for name in before | now:
            was, is_ = before.get(name, 0), now.get(name, 0)
            if was != is_:
                lines.append(
                    f"{variant}: {name} {was} -> {is_}, {_a_file(was, before)} -> {_a_file(is_, now)} a file"
                )
    return lines


def _a_file(count: int, of: dict[str, int]) -> str:
    return f"{count / of[FILES]:.4f}" if of.get(FILES) else "-"


def measure() -> Counts:
    """Return the counts of a run in a new process, which takes about 25 s."""
    command = [sys.executable, "-m", "tests.measures.counts", "--json"]
    run = subprocess.run(command, cwd=ROOT, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"the counts of P13 failed:\n{run.stderr}")
    found: Counts = json.loads(run.stdout)
    return found


def report() -> str:
    """Return the table of the counts of P13, for each file."""
    from wbsim.experiments.formats.table import table

    counts = measure()
    names = list(dict.fromkeys(name for of in counts.values() for name in of))
    rows = [(name, *(_a_file(of.get(name, 0), of) for of in counts.values())) for name in names]
    return table(("a file", *counts), rows)


def main(argv: list[str] | None = None) -> None:
    """Print the counts, or write them to counts.toml."""
    parser = argparse.ArgumentParser(prog="python -m tests.measures.counts", description=__doc__)
    parser.add_argument("--json", action="store_true", help="count in this process and print JSON")
    parser.add_argument("--write", action="store_true", help="write counts.toml")
    arguments = parser.parse_args(argv)
    if arguments.json:
        print(json.dumps(dict(counted_runs())))
        return
    counts = measure()
    print("\n".join(differences(counts, read() if PATH.exists() else {})) or "all counts are as committed")
    if arguments.write:
        PATH.write_text(text_of(counts))


if __name__ == "__main__":
    main()
