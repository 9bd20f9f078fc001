"""Experiment configurations: a TOML text becomes the scenarios of its variants and its sweep.

title = "..."                      # what the experiment shows
replications = 8                   # optional: the number of runs of each case; 1 by default
[scenario]                         # the common scenario; `like` names the base of a part
machine.like = "p13-vm"
kernel.like = "3.11"
filesystem.like = "p13-xfs"        # a single disk, mount or program needs no name:
workload.command = "fs_mark -D 10000 -S0 ..."
sync_after = true                  # optional: a sync(2) follows; the default depends on the program
machine.memory.memory = "16 GiB"   # every number of a spec is a key
[variants.patched]                 # the changes of a variant
rows = ["P13-wall-p"]              # optional: the published figures that the variant reproduces
kernel.writeback.plug_scope = "slice"
quick = ["workload.loops=12"]      # optional, here or next to title: the overrides of --quick
[sweep]                            # optional: see `experiments.config.sweeps`
name = "threads"
points = [
{ value = 1, workload.processes = 1 },
{ value = 2, workload.processes = 2 },
]

Several disks, mounts or programs have names (`experiments.config.scenarios`):

machine.disks.sd = { like = "sata-ssd", count = 2 }        # sd0 and sd1, in addition to the machine's
mounts.d = { like = "loop-ext4", each = "sd", at = "/d{n}" }
programs.make = "fs_mark ... -d /d0/a"                     # the path selects the mount
programs.copy = { command = "dd of=/d1/x ...", start = "5 s" }
programs.sync = { command = "sync", start = "4 s", times = 3, every = "10 s" }   # or sync -f PATH
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from wbsim.experiments.config.case import Case, Experiment
from wbsim.experiments.config.grammar import MOST_REPLICATIONS, File, Variant
from wbsim.experiments.config.likes import Likes
from wbsim.experiments.config.linux_names import key_of as linux_key
from wbsim.experiments.config.problems import BadInput, Problems, bad, excerpt, from_validation, unknown_key
from wbsim.experiments.config.programs import in_job_files
from wbsim.experiments.config.scenarios import PARTS, expand
from wbsim.experiments.config.sweeps import (
    NOTHING,
    Asked,
    Axis,
    Setting,
    axes_asked,
    axes_of,
    points,
    value_of,
)
from wbsim.experiments.config.toml_tree import MOST_LEVELS, NotToml, parse_toml
from wbsim.experiments.config.tree import (
    SET,
    Placed,
    Table,
    factors_in,
    has_name,
    merge,
    place_and_key,
    place_tree,
    put,
    with_key,
    with_name,
    with_origin,
    with_origins,
    written_as,
)
from wbsim.models.scenario import Scenario
from wbsim.sim.text_files import text_of
from wbsim.sim.units import MIB

MOST_BYTES: Final = 4 * MIB
"""The upper bound for the size of a configuration."""
_TOP: Final = tuple(File.model_fields)
_OF_A_VARIANT: Final = tuple(Variant.model_fields)


def _remedy(file: Path) -> str:
    """Return what to give in place of *file*, which cannot be read: a name that is near, or a path."""
    shipped = sorted(path.name for path in config_path("").glob("*.toml"))
    matches = get_close_matches(f"{file.name.removesuffix('.toml')}.toml", shipped, n=2, cutoff=0.75)
    if matches:
        return f"did you mean {' or '.join(matches)}, which comes with wbsim?"
    return "give the path of an experiment's .toml file; wbsim list explains other names"


def load(
    file: Path, overrides: Sequence[str] = (), variant: str | None = None, sweep: Asked = NOTHING
) -> Experiment:
    """Return the experiment in *file*, or in the configuration of the package that has this name.

    A file of the user takes precedence.  *overrides* have the form ``key.path=value``.  *sweep* is the sweep
    of the command line.  *variant* is the one variant to read; None: all variants.

    Raises:
        BadInput: *file* cannot be read, or the configuration has problems; all of them are reported together.
    """
    file = _by_name(file)
    try:
        text = text_of(file, MOST_BYTES)
    except OSError as error:
        raise bad(str(file), f"{error.strerror}; {_remedy(file)}") from None
    except UnicodeDecodeError as error:
        line, byte = error.object.count(b"\n", 0, error.start) + 1, error.object[error.start]
        message = f"is not text: the byte {byte:#x} is not UTF-8; give an experiment's .toml file in UTF-8"
        raise bad(f"{file}:{line}", message) from None
    except ValueError:  # a path with a NUL
        raise bad(str(file), "is not a path; give the path of an experiment's .toml file") from None
    return parse(text, str(file), overrides, variant, sweep)


def config_path(name: str) -> Path:
    """Return the path of the configuration *name*, such as "plug.toml", in the package; it may be missing."""
    return Path(str(files("wbsim.experiments").joinpath("configs", name)))


def _by_name(file: Path) -> Path:
    """Return *file*, or the configuration of the package if only the package has this name."""
    with suppress(OSError, ValueError):  # no file can have such a name
        if file.parent == Path() and not file.exists() and config_path(file.name).is_file():
            return config_path(file.name)
    return file


def parse(
    text: str, name: str, overrides: Sequence[str] = (), variant: str | None = None, sweep: Asked = NOTHING
) -> Experiment:
    """Return the experiment in *text*, as `load` does.

    *name* is the name of the configuration in messages; its folder is searched for job files.  *variant* is
    the one variant to read.

    Raises:
        BadInput: all problems of the configuration.
    """
    try:
        document = parse_toml(text, name)
    except NotToml as error:
        raise bad(name if error.line is None else f"{name}:{error.line}", str(error)) from None
    except ValueError as error:
        raise bad(name, str(error)) from None
    return _Reader(document, overrides, Path(name).parent, sweep).experiment(variant)


class _Reader:
    """Makes an experiment from the tree *document*, and reports all problems together."""

    def __init__(self, document: Table, overrides: Sequence[str], directory: Path, sweep: Asked) -> None:
        self._document = document
        self._problems = Problems()
        self._likes = Likes(self._problems, directory)
        self._overrides = [setting for text in overrides for setting in self._override(text)]
        self._command_axes = axes_asked(self._problems, sweep)

    def experiment(self, choice: str | None) -> Experiment:
        """Return the experiment with all variants, or with the variant *choice*.

        Raises:
            BadInput: all problems of the configuration.
        """
        document, problems = self._document, self._problems
        problems.refuse_unknown(document, _TOP)
        title = document.get("title", "")
        if not isinstance(title, str) or not title.strip() or not title.isprintable():
            fault = f"is {excerpt(title)}" if "title" in document else "is missing"
            problems.wrong(document, "title", f"{fault}; give a sentence that says what the experiment shows")
        scenario = with_origins(with_key(problems.table(document, "scenario"), ()), factors=True)
        problems.refuse_unknown(scenario, PARTS)
        variants = problems.table(document, "variants") or document.subtable("variants", {"base": Table()})
        for variant in variants:
            if not variant.strip() or not variant.isprintable():
                problems.wrong(variants, variant, "is not a printable name; give letters")
        if choice is not None and choice not in variants:
            problems.wrong(variants, choice, unknown_key(choice, list(variants)))
        axes = [*axes_of(problems, problems.table(document, "sweep")), *self._command_axes]
        replications = document.get("replications", 1)
        if type(replications) is not int or not 1 <= replications <= MOST_REPLICATIONS:
            message = f"is {replications!r}; a whole number from 1 to {MOST_REPLICATIONS} was expected"
            problems.wrong(document, "replications", message)
        names = [name for axis in axes for name in axis.names]
        for name in dict.fromkeys(name for name in names if names.count(name) > 1):
            problems.wrong(document, "sweep", f"sweeps {name} twice; sweep it once")
        cases = [
            case
            for variant in variants
            if choice in (None, variant) and not problems.enough
            for case in self._cases(variant, problems.table(variants, variant), scenario, axes)
        ]
        problems.raise_found()
        return Experiment(title, tuple(names), tuple(cases), replications)

    def _cases(self, name: str, variant: Table, scenario: Table, axes: Sequence[Axis]) -> Iterator[Case]:
        """Yield the cases of *variant*, which is called *name*; leave out cases with a problem."""
        problems = self._problems
        problems.refuse_unknown(variant, (*PARTS, *_OF_A_VARIANT))
        rows = problems.texts(variant, "rows")
        quick = problems.texts(variant if "quick" in variant else self._document, "quick")
        changes = with_origins(with_key(variant.omit(*_OF_A_VARIANT), ()), factors=True)
        common = merge(scenario, changes.set_place((), "", changes.places))
        table, likes = self._set(common, self._likes, self._overrides)
        for step in points(axes):
            if not problems.enough:
                case_scenario = self._scenario(*self._set(table, likes, step.sets))
                if case_scenario is not None:
                    yield Case(name, step.labels, case_scenario, rows, quick)

    def _set(self, table: Table, likes: Likes, settings: Sequence[Setting]) -> tuple[Table, Likes]:
        """Return *table* and *likes* with the *settings*.

        A setting that is not a key replaces its name in braces in the texts of *table*.  It becomes one of
        the texts of *likes* if a job file has the name.
        """
        for path, value, place in settings:
            if path[0] in PARTS:
                key = written_as(table, path)
                entry = with_key(value, key) if isinstance(value, Placed) else place_tree(value, key, place)
                try:
                    table = put(table, key, with_origin(entry, place, factors=True), place)
                except ValueError as error:
                    self._problems.add(place, key[:1], str(error))
                continue
            name = ".".join(path)
            in_files = in_job_files(table, likes.directory, name)
            if in_files:
                likes = likes._replace(texts={**likes.texts, name: str(value)})
            if has_name(table, name):
                table = with_name(table, name, str(value))
            elif not in_files:
                self._problems.add(place, path, linux_key(name) or self._no_key(name, path[0]))
        return table, likes

    @staticmethod
    def _no_key(name: str, first: str) -> str:
        return f"no command line contains {{{name}}}, and it is an {unknown_key(first, PARTS)}"

    def _scenario(self, table: Table, likes: Likes) -> Scenario | None:
        """Return the scenario that *table* describes; None if it has a problem, which is noted."""
        start = len(self._problems.entries)
        tree = expand(likes, table)
        reported = self._problems.entries[start:]
        factors = list(factors_in(tree))
        for path in factors:
            place, key = place_and_key(tree, path)
            self._problems.add(place, key, "is a factor, but the key has no number to multiply; give a value")
        if factors:
            return None
        try:
            return Scenario.model_validate(tree)
        except ValidationError as error:
            blamed = {"", *(problem.key.rpartition(".")[0] for problem in reported)} if reported else set()
            self._problems.entries += [
                problem
                for problem in from_validation(error, Scenario, tree)
                if not any(
                    problem.key == prefix or (prefix and problem.key.startswith(f"{prefix}."))
                    for prefix in blamed
                )
            ]
            return None

    def _override(self, text: str) -> Iterator[Setting]:
        """Yield the setting of *text* (``key.path=value`` of the command line), or note its problem."""
        key, equals, value = text.partition("=")
        place = f"{SET}{text}"
        if not equals or not key:
            self._problems.add_option(place, "has no value; write --set key.path=value")
            return
        path = tuple(key.strip().removeprefix("scenario.").split("."))
        try:
            if len(path) > MOST_LEVELS:
                raise ValueError(f"has a key of {len(path)} parts; a key has at most {MOST_LEVELS}")
            yield Setting(path, value_of(value), place)
        except ValueError as error:
            self._problems.add_option(place, str(error))


def from_command(command: str, overrides: Sequence[str] = (), sweep: Asked = NOTHING) -> Experiment:
    """Return the experiment of the fs_mark *command* on machine and kernel of report P13.

    ``wbsim run --fs-mark`` runs it.

    *overrides* have the form ``key.path=value``; *sweep* is that of the command line.

    Raises:
        BadInput: all problems of the command and the overrides.
    """
    quoted = command.replace("\\", "\\\\").replace('"', '\\"')
    text = f"""title = "fs_mark on P13's machine"
[scenario]
machine.like = "p13-vm"
kernel.like = "3.11"
filesystem.like = "p13-xfs"
workload.command = "{quoted}"
"""
    return parse(text, "--fs-mark", overrides, sweep=sweep)


def smaller(file: Path, whole: Experiment, case: Case, overrides: Sequence[str] = ()) -> Case:
    """Return the smaller run that ``quick`` in *file* describes for *case*, a case of *whole*.

    *whole* has all cases of *file*, in their order.  *file* is read again.  *overrides*, as of `load`, take
    precedence over the values of ``quick``.

    Raises:
        BadInput: *case* has no ``quick``, or the configuration has problems with these values.
    """
    if not case.quick:
        raise bad("--quick", f"{case.label} has no smaller run; add quick = [...] to {file}")
    try:
        return load(file, [*case.quick, *overrides]).cases[whole.cases.index(case)]
    except BadInput as error:  # the quick overrides stand in the file, not on the command line
        problems = [
            problem._replace(place=_of_quick(problem.place, case, file)) for problem in error.problems
        ]
        raise BadInput(problems) from None


def _of_quick(place: str, case: Case, file: Path) -> str:
    for override in case.quick:
        place = place.replace(f"--set {override}", f"{file}: quick = [{override!r}]")
    return place
