"""The laws of the architecture, checked on the syntax trees of all modules."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from wbsim.models.catalogue.drives import DRIVES
from wbsim.models.catalogue.filesystems import FILESYSTEMS
from wbsim.models.catalogue.kernels import KERNELS, LAST, PLUG_RULES
from wbsim.models.catalogue.machines import machines_of
from wbsim.models.kinds import kinds
from wbsim.models.release import release_of
from wbsim.sim.param import Given, Origin, Spec

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "wbsim"
LAYERS = ["sim", "models", "experiments", "notebooks"]
VARIANT_FOLDERS = ["devices", "filesystems", "flushers", "throttling", "workloads"]
FOLDERS = {layer: ROOT / layer if layer == "notebooks" else PACKAGE / layer for layer in LAYERS}
SOURCES = sorted(path for folder in FOLDERS.values() for path in folder.rglob("*.py"))


def layer_of(path: Path) -> str:
    """Return the layer that the source at *path* belongs to."""
    return next(layer for layer, folder in FOLDERS.items() if folder in path.parents)


def imported(source: str) -> Iterator[str]:
    """Yield every module that *source* imports, also within functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            yield (node.module or "").removeprefix("wbsim.")
        elif isinstance(node, ast.Import):
            yield from (alias.name.removeprefix("wbsim.") for alias in node.names)


def upward_imports(layer: str, source: str) -> list[str]:
    """Return the imports of *source*, a module of *layer*, that point upwards."""
    above = LAYERS[LAYERS.index(layer) + 1 :]
    return [name for name in imported(source) if name.split(".")[0] in above]


def sibling_imports(folder: str, own: str, source: str) -> list[str]:
    """Return the imports of *source*, a part of variant *own* in *folder*, that name another variant."""
    others = [f"models.{folder}.{kind}" for kind in kinds(folder) if kind != own]
    return [name for name in imported(source) if any(f"{name}.".startswith(f"{other}.") for other in others)]


NAMESAKES = {
    "self._file.close", "plug.close", "filesystem.close", "flight.close",
    "inode.sb.filesystem.close", "self.filesystem.close",
}  # fmt: skip
"""Functions that share a generator's name, but do their work when they are called."""


def lost_steps(source: str, generators: set[str]) -> list[str]:
    """Return the calls of *generators* in *source* whose result is dropped: processes that never run."""
    return [
        f"{node.lineno}: {ast.unparse(node.value)}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and _name(node.value.func) in generators
        and ast.unparse(node.value.func) not in NAMESAKES
    ]


def generators_of(source: str) -> set[str]:
    """Return the functions in *source* that do nothing until a caller yields them or delegates to them."""
    waits = ("Steps", "Generator", "Iterable[Wait]", "Park", "Wait", "int | Park")
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            returns = ast.unparse(node.returns).strip("'\"")
            if returns.startswith(waits):
                names.add(node.name)
    return names


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_downwards(path: Path) -> None:
    """A layer imports only lower ones: sim <- models <- experiments <- notebooks."""
    layer = layer_of(path)
    assert upward_imports(layer, path.read_text()) == []


def test_upward_import_within_a_function_is_found() -> None:
    """The check above can fail, and it finds imports inside functions, too."""
    assert upward_imports("sim", "def f():\n    from models.block import merge\n") == ["models.block"]


def own_kind(folder: str, path: Path) -> str:
    """Return the variant of *folder* to which the file at *path* belongs, by its place."""
    return path.relative_to(PACKAGE / "models" / folder).parts[0].removesuffix(".py")


@pytest.mark.parametrize("folder", VARIANT_FOLDERS)
def test_variants_do_not_import_each_other(folder: str) -> None:
    """Variants and their shared modules in one folder import no variant; a kind has the name of its file."""
    for path in (PACKAGE / "models" / folder).rglob("*.py"):
        assert sibling_imports(folder, own_kind(folder, path), path.read_text()) == [], path.name
    places = {path.stem for path in (PACKAGE / "models" / folder).iterdir()}
    assert kinds(folder)
    assert set(kinds(folder)) <= places


def test_only_the_machine_builds_components() -> None:
    """No module but machine.py and the catalogue imports a variant."""
    for path in (PACKAGE / "models").rglob("*.py"):
        place = path.relative_to(PACKAGE / "models").parts[0]
        for folder in VARIANT_FOLDERS:
            if place not in (folder, "catalogue"):
                assert not sibling_imports(folder, "", path.read_text()), path.name


def imports_between(paths: list[Path], layer: str = "models") -> dict[str, set[str]]:
    """Return the imports between the folders of *layer*; a file outside of folders counts as a folder."""
    found: dict[str, set[str]] = {}
    for path in paths:
        place = path.relative_to(FOLDERS[layer]).parts[0].removesuffix(".py")
        names = {n.split(".")[1] for n in imported(path.read_text()) if n.startswith(f"{layer}.")}
        found.setdefault(place, set()).update(names - {place})
    return found


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    """Return the nodes that are left after nodes without a remaining need are removed, one by one."""
    left = {node: set(needs) for node, needs in graph.items()}
    while free := [node for node, needs in left.items() if not needs & left.keys()]:
        for node in free:
            del left[node]
    return sorted(left)


def test_folders_import_each_other_one_way() -> None:
    """The imports between the folders of models have no cycle."""
    graph = imports_between([p for p in SOURCES if PACKAGE / "models" in p.parents])
    assert {"interfaces", "block", "filesystems", "machine"} <= graph.keys()
    assert cycle_in(graph) == []
    assert cycle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["a", "b", "c"], "the check can fail"


def test_folders_of_experiments_import_each_other_one_way() -> None:
    """The imports between the folders of experiments, from config to commands, have no cycle."""
    graph = imports_between([p for p in SOURCES if PACKAGE / "experiments" in p.parents], "experiments")
    assert {"config", "running", "results", "sweeps", "why", "commands"} <= graph.keys()
    assert cycle_in(graph) == []


def test_only_named_modules_of_models_are_outside_folders() -> None:
    """Twelve files of models are in no folder, because they are about the complete model."""
    loose = {path.stem for path in (PACKAGE / "models").glob("*.py")} - {"__init__"}
    assert loose == {
        "interfaces", "bio", "release", "parts", "tracepoints", "congestion", "scenario", "time_accounting",
        "machine",
        "kinds", "step_lengths", "factories",
    }  # fmt: skip


def long_functions(source: str, most: int) -> list[str]:
    """Return the functions of more than *most* lines, without the docstring."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            if ast.get_docstring(node) is not None:
                lines -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
            if lines > most:
                found.append(f"{node.name}: {lines}")
    return found


def test_functions_stay_short() -> None:
    """No function has more than fifty lines without its docstring, and the check can fail.

    The docstring of a public function may describe many columns.
    """
    for path in SOURCES:
        assert long_functions(path.read_text(), 50) == [], path.name
    assert long_functions("def f():\n" + "    x = 1\n" * 50, 50) == ["f: 51"]
    documented = 'def f():\n    """One.\n\n    Two.\n    """\n' + "    x = 1\n"
    assert long_functions(documented * 2, 1) == ["f: 2"] * 2
    assert long_functions(documented, 2) == []


def long_signatures(source: str, most: int) -> list[str]:
    """Return the functions, without constructors, that have more than *most* parameters."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name != "__init__":
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            own = sum(one.arg in ("self", "cls") for one in given[:1])
            if len(given) - own > most:
                found.append(f"{node.name}: {len(given) - own}")
    return found


def test_signatures_stay_short() -> None:
    """No function has more than eight parameters, and the check can fail."""
    for path in SOURCES:
        assert long_signatures(path.read_text(), 8) == [], path.name
    assert long_signatures("def f(self, a, b, *, c): pass", 2) == ["f: 3"]


def large_classes(source: str, most: int) -> list[str]:
    """Return the classes of more than *most* methods."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            methods = sum(isinstance(part, ast.FunctionDef) for part in node.body)
            if methods > most:
                found.append(f"{node.name}: {methods}")
    return found


def test_classes_stay_small() -> None:
    """No class has more than 25 methods, no placement more than 20, and the check can fail."""
    for path in SOURCES:
        assert large_classes(path.read_text(), 20 if path.stem == "placement" else 25) == [], path.name
    assert large_classes("class C:\n" + "    def f(self): pass\n" * 3, 2) == ["C: 3"]


def test_no_generator_is_called_as_a_statement() -> None:
    """No generator is called as a statement, because such a call does nothing without an error."""
    model = [path for path in SOURCES if layer_of(path) in ("sim", "models")]
    generators = set().union(*(generators_of(path.read_text()) for path in model))
    assert {"submit_bio", "write_pages", "finish_plug", "section", "balance"} <= generators
    for path in model:
        assert lost_steps(path.read_text(), generators) == [], path.name


def test_dropped_yield_from_is_found() -> None:
    """The check above can fail."""
    source = "def f(self) -> Steps:\n    yield 1\ndef g(x):\n    x.f()\n"
    assert lost_steps(source, generators_of(source)) == ["4: x.f()"]


def test_model_imports_no_random_numbers_and_no_wall_clock() -> None:
    """Random numbers come from sim.streams, and the time from the environment."""
    for path in SOURCES:
        layer = layer_of(path)
        modules = set(imported(path.read_text()))
        assert "random" not in modules, path.name
        if layer in ("sim", "models"):
            assert not modules & {"time", "datetime"}, path.name


def _specs() -> list[tuple[str, Spec]]:
    named: list[tuple[str, Spec]] = [
        *machines_of(release_of(LAST)).items(),
        *FILESYSTEMS.items(),
        *KERNELS.items(),
        *((f"drive {name}", drive) for name, drive in DRIVES.items()),
    ]
    return named + [(f"plug {name}", rules) for name, rules in PLUG_RULES.items()]


@pytest.mark.parametrize(
    ("name", "spec"), _specs(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_number_has_a_source(name: str, spec: Spec) -> None:
    """Each number has an origin and a source; an assumed number has a range that contains it."""
    numbers = list(spec.numbers())
    assert numbers
    for number in numbers:
        assert number.provenance is not None, number.path
        assert number.provenance.source, number.path
        assert_ranged(number.path, number.value, number.provenance)


def test_costs_of_programs_have_sources() -> None:
    """Each cost of a program has an origin, and an assumed cost has a range that contains it."""
    for kind in kinds("workloads").values():
        assert kind.spec.costs
        for name, given in kind.spec.costs.items():
            assert isinstance(given, Given)
            assert_ranged(name, given.value, given)


def assert_ranged(path: str, value: object, given: Given) -> None:
    """Assert that an assumed number lies within its stated range."""
    if given.origin is Origin.ASSUMED and not isinstance(value, str | bool):
        assert given.low <= value <= given.high, path  # type: ignore[operator]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the sources lie outside of a clone")
def test_no_committed_file_is_ignored() -> None:
    """A file that a tool writes, such as .dmypy.json, is in .gitignore and not in the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--ignored", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True, text=True,
    )  # fmt: skip
    assert listed.stdout == ""
    assert ".dmypy.json" in (ROOT / ".gitignore").read_text().splitlines()


def placeholders(source: str) -> list[str]:
    """Return the texts of *source* with a name in braces that is printed, because an f is missing.

    Docstrings, f-strings and texts whose ``format`` is called do not count.
    """
    tree = ast.parse(source)
    fine: set[int] = set()
    for node in ast.walk(tree):
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        calls_format = (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("format", "replace", "sub")
        )
        if isinstance(node, ast.JoinedStr) or docstring or calls_format:
            fine |= {id(below) for below in ast.walk(node)}
    texts = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in fine
    ]
    return [
        f"{text.lineno}: {text.value}"
        for text in texts
        if re.search(r"(?<!\$)\{[A-Za-z_][\w.\[\]'()]*(?:![rs])?(?::[^{}]*)?\}", text.value)
    ]


PLACEHOLDERS = {
    "grammar.py": "The keys of a mount with a `count`; each gets this filesystem, and `{n}` in `at`",
    "programs.py": "for a copy of N MiB write dd if=/dev/zero of=DIR/FILE bs={size}k count={calls}",
    "kinds.py": "not a valid {kind}",
    "sweep.py": "the values of a key; several keys are combined",
}
"""The beginnings of texts that print or fill in their braces, by the file."""


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_no_text_prints_a_placeholder(path: Path) -> None:
    """A message has the value and not the name in braces."""
    found = [text.partition(": ")[2] for text in placeholders(path.read_text())]
    known = PLACEHOLDERS.get(path.name)
    assert not [text for text in found if known is None or not text.startswith(known)]


def test_missing_f_is_found() -> None:
    """A text with a name in braces is found, unless it is formatted or a docstring."""
    assert placeholders('raise BadValue("has {self.size} B", "x")') == ["1: has {self.size} B"]
    assert placeholders("what = 'is {value!r}; give {least:g}'") == ["1: is {value!r}; give {least:g}"]
    for fine in ('f"has {size} B"', '"has {size} B".format(size=1)', '"${COMP_WORDS[1]}"', '"a {} b"'):
        assert placeholders(f"what = {fine}") == []
    assert placeholders('"""{n} is its number."""') == []
