"""`wbsim list`: the names that a configuration can use."""

from __future__ import annotations

import tomllib
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from wbsim.experiments.commands.options import add_json, print_json

if TYPE_CHECKING:
    from wbsim.models.kernel_rules.rule import Rule
    from wbsim.sim.param import Spec

HELP = "print the names of machines, disks, devices, kernels, rules, filesystems, workloads or figures"
KINDS = ("machines", "disks", "devices", "kernels", "rules", "filesystems", "workloads", "figures")
_FILES = {"disks": "drives", "filesystems": "filesystems", "machines": "machines"}
"""The folder of the catalogue with a file for each name of a list."""
_FAMILIES = (
    "SATA disk", "SAS disk", "SMR disk", "SATA SSD", "SAS SSD", "consumer NVMe SSD", "enterprise NVMe SSD",
    "Optane", "USB stick", "SD card", "cloud disk", "virtio disk",
)  # fmt: skip
"""The order in which drives are listed."""
_OTHER_WORDS = {"drive": "disks", "release": "kernels", "command": "workloads", "program": "workloads"}
"""Other words that people use for a kind, in the singular."""
_NOTHING = "nothing"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*; `cli` calls this, and then `execute`."""
    parser.add_argument(
        "what",
        nargs="?",
        metavar="|".join((*KINDS, "NAME")),
        help="a kind of names, or a name of any kind; default: print the kinds",
    )
    parser.add_argument(
        "key",
        nargs="?",
        metavar="NAME",
        help="after rules: a rule or an area; after machines, disks or filesystems: print this file",
    )
    add_json(parser)


def execute(arguments: Namespace) -> int:
    """Print the kinds of names, the names of a kind, or what is known of one name; return 0.

    *arguments* are the parsed options of `add_options`.  One machine, disk or filesystem is printed as its
    file, one rule with its history, any other name as its row.  --json prints a document instead: a list of
    rows by heading, the keys of a file, or the `rules_document`.  An unknown name raises `BadInput`: `cli`
    ends with status 2.
    """
    what, key = arguments.what, arguments.key
    if what is None:
        counts: list[tuple[str, ...]] = [(name, str(_count(name))) for name in KINDS]
        _print(
            _Rows(("kind", "names"), counts, "wbsim list KIND, or wbsim list NAME", texts=1), arguments.json
        )
        return 0
    kind = _kind_of(what)
    if kind is None:
        if key is not None:
            raise _bad_key("list", what, _guess_text(what))
        kind, key = _place_of(what), what
    if kind == "rules":
        from wbsim.experiments.formats.kernel_rules import rules_document

        if arguments.json:
            print_json(rules_document(named_rules(key or "", "list")))
        else:
            print(_rules(key))
        return 0
    if key is None:
        _print(_ROWS[kind](), arguments.json)
    elif kind in _FILES:
        text = _file_of(_FILES[kind], key)
        if arguments.json:
            print_json(tomllib.loads(text))
        else:
            print(text, end="")
    else:
        rows = _ROWS[kind]()
        matches = [row for row in rows.rows if key in row[0].split(", ")]
        if not matches:
            message = f"is none of the {kind}; wbsim list {kind} prints them"
            raise _bad_key("list", key, message)
        _print(rows._replace(rows=matches), arguments.json)
    return 0


def _print(rows: _Rows, as_json: bool) -> None:
    """Print *rows* as a table with its use, or as a document with an entry for each row."""
    from wbsim.experiments.formats.table import wrapped_table

    if as_json:
        print_json([dict(zip(rows.heading, row, strict=True)) for row in rows.rows])
        return
    heading, lines, texts = rows.heading, rows.rows, rows.texts or len(rows.heading)
    if rows.grouped:
        heading, lines, texts = heading[1:], _grouped(lines), texts - 1
    print(wrapped_table(heading, lines, left_columns=texts))
    if rows.use:
        print(f"\nuse: {rows.use}")


def _grouped(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return *rows* without their first cell, which stands above the rows that share it."""
    lines: list[tuple[str, ...]] = []
    for group, members in groupby(rows, lambda row: row[0]):
        lines.append((f"{group}:", *[""] * (len(rows[0]) - 2)))
        lines += [row[1:] for row in members]
    return lines


def _count(kind: str) -> int:
    """Return the number of names of *kind*."""
    from wbsim.experiments.formats.kernel_rules import rule_name
    from wbsim.models.kernel_rules.table import RULES

    return len(_names_of(kind)) if kind in _ROWS else len({rule_name(rule) for rule in RULES})


def _kind_of(word: str) -> str | None:
    """Return the kind that *word* means: its name, its singular, or the beginning of one kind only.

    >>> _kind_of("machine"), _kind_of("drives"), _kind_of("f"), _kind_of("work")
    ('machines', 'disks', None, 'workloads')
    """
    if word.rstrip("s") in _OTHER_WORDS:
        return _OTHER_WORDS[word.rstrip("s")]
    kinds = [kind for kind in KINDS if kind == word or kind.startswith(word)]
    return kinds[0] if len(kinds) == 1 else None


def _place_of(name: str) -> str:
    """Return the kind that has *name*.

    Raises:
        BadInput: no kind has it; the message has the nearest names.
    """
    from wbsim.experiments.formats.kernel_rules import rules_below
    from wbsim.models.kernel_rules.table import RULES

    for kind in _ROWS:
        if name in _names_of(kind):
            return kind
    if rules_below(RULES, name):
        return "rules"
    raise _bad_key("list", name, _guess_text(name))


def _names_of(kind: str) -> list[str]:
    """Return the names of *kind*; a row of workloads has several."""
    rows = _ROWS[kind]()
    column = rows.heading.index("disk") if kind == "disks" else 0
    return [name for row in rows.rows for name in row[column].split(", ")]


def _guess_text(word: str) -> str:
    """Return words on the kinds and names that are nearest to *word*."""
    from difflib import get_close_matches

    names = [*KINDS, *(name for kind in _ROWS for name in _names_of(kind))]
    matches = get_close_matches(word, names, n=3)
    guess = f"did you mean {' or '.join(matches)}?" if matches else f"the kinds are {', '.join(KINDS)}"
    return f"is neither a kind nor a name; {guess}"


class _Rows(NamedTuple):
    """A table of names; ``use`` shows how a configuration names a row.

    ``texts``: so many columns are texts, and the others numbers; 0: all are texts.  ``grouped``: the first
    column is printed above the rows that share it.
    """

    heading: tuple[str, ...]
    rows: list[tuple[str, ...]]
    use: str = ""
    texts: int = 0
    grouped: bool = False


def _reports_of(spec: Spec) -> str:
    """Return the reports from which constants of *spec* were fitted or set."""
    from wbsim.experiments.published.fitted_constants import fitted_to

    return ", ".join(sorted(fitted_to(spec))) or _NOTHING


def _machines() -> _Rows:
    from wbsim.models.catalogue.data_files import purposes_in
    from wbsim.models.catalogue.machines import FOLDER, MACHINES

    purposes = purposes_in(FOLDER)
    rows: list[tuple[str, ...]] = []
    for name, machine in MACHINES.items():
        disks = ", ".join(f"{disk} ({drive.device.kind})" for disk, drive in machine.disks.items())
        memory = f"{machine.memory.memory / 2**30:.4g} GiB"
        rows.append(
            (name, purposes[name], _reports_of(machine), str(machine.processors.count), memory, disks)
        )
    rows.sort(key=lambda row: row[2] != _NOTHING)
    return _Rows(
        ("machine", "what it is for", "fitted to", "processors", "memory", "disks"), rows,
        'machine.like = "NAME"; the file: wbsim list machines NAME; of this host: wbsim describe-machine',
    )  # fmt: skip


def _disks() -> _Rows:
    from wbsim.experiments.drives.compare import known_figures
    from wbsim.experiments.formats.table import figure_text
    from wbsim.models.catalogue.data_files import part_in
    from wbsim.models.catalogue.drives import DRIVES, FOLDER

    rows: list[tuple[str, ...]] = []
    for name, drive in DRIVES.items():
        part, capacity = part_in(FOLDER, name), drive.device.capacity
        size = "-" if capacity is None else f"{figure_text(capacity / 1e9)} GB"
        figures = known_figures(part)
        rows.append(
            (
                part["family"],
                name,
                part["purpose"],
                _reports_of(drive.device),
                size,
                _per_second(figures, "sequential_write", 1e6),
                _per_second(figures, "random_write"),
                _per_second(figures, "durable_writes"),
            )
        )
    rows.sort(key=lambda row: (_FAMILIES.index(row[0]) if row[0] in _FAMILIES else len(_FAMILIES), row[0]))
    return _Rows(
        (
            "class",
            "disk",
            "what it is for",
            "fitted to",
            "size",
            "MB/s",
            "random w/s",
            "durable/s",
        ),
        rows,
        'machine.disks.sda = { like = "NAME" }, or `like` in device, members or behind;'
        "\n     the file: wbsim list disks NAME; a drive that is not here: wbsim describe-drive",
        texts=4,
        grouped=True,
    )


def _per_second(figures: Mapping[str, float], name: str, unit: float = 1) -> str:
    """Return the figure *name* in *unit*, or "-" if it is not known."""
    from wbsim.experiments.formats.table import figure_text

    return figure_text(figures[name] / unit) if name in figures else "-"


def _devices() -> _Rows:
    from wbsim.models.kinds import kinds

    rows: list[tuple[str, ...]] = [
        (name, ", ".join(key for key in kind.spec.model_fields if key != "kind") or "-")
        for name, kind in kinds("devices").items()
    ]
    return _Rows(("kind", "keys"), rows, 'machine.disks.sda.device = { kind = "KIND", ... }')


def _file_of(folder: str, name: str) -> str:
    """Return the file of the part *name* in *folder*, to be copied and changed.

    Raises:
        BadInput: the catalogue has no file of this name.
    """
    from wbsim.experiments.config.problems import unknown_key
    from wbsim.models.catalogue.data_files import names_in, text_of

    if name not in names_in(folder):
        raise _bad_key("list", name, unknown_key(name, names_in(folder)).replace("key", "name", 1))
    return text_of(folder, name)


def _kernels() -> _Rows:
    from wbsim.models.catalogue.kernels import FIRST, KERNELS, LAST

    rows: list[tuple[str, ...]] = [
        (name, kernel.throttling.kind, kernel.writeback.plug_scope) for name, kernel in KERNELS.items()
    ]
    rows.append((f"{FIRST} to {LAST}", "", "each release by its rules"))
    use = f'kernel.like = "NAME", and any release from {FIRST} to {LAST}'
    return _Rows(("kernel", "throttling", "the plug opens around a"), rows, use)


def _rules(path: str | None) -> str:
    """Return all rules of kernels, a line for each; or the history of the rules at and below *path*."""
    from wbsim.experiments.formats.kernel_rules import histories_table, history_text
    from wbsim.models.kernel_rules.table import RULES

    if path is None:
        return f"{histories_table(RULES)}\n\nuse: wbsim list rules plug.tried, wbsim diff 6.1 6.12"
    return history_text(named_rules(path, "list"))


def named_rules(path: str, command: str) -> list[Rule]:
    """Return the rules of `RULES` that `rules_below` finds for *path*; `list` and `diff` print them.

    An empty *path* stands for all rules.  *command*: the command to which the user gave *path*; an error
    begins with it.

    Raises:
        BadInput: there is no such rule.
    """
    from wbsim.experiments.config.problems import unknown_key
    from wbsim.experiments.formats.kernel_rules import rules_below
    from wbsim.models.kernel_rules.table import RULES

    matches = rules_below(RULES, path)
    if not matches:
        keys = [row.key for row in RULES]
        nearest = unknown_key(path.removeprefix("kernel."), sorted(set(keys)))
        areas = sorted({key.split(".")[0] for key in keys})
        message = nearest if "did you mean" in nearest else unknown_key(path, areas)
        raise _bad_key(command, path, message)
    return matches


def _bad_key(command: str, key: str, message: str) -> Exception:
    from wbsim.experiments.config.problems import BadInput, Problem

    return BadInput([Problem(command, key, message)])


def _filesystems() -> _Rows:
    from wbsim.experiments.config.filesystems import MADE
    from wbsim.experiments.formats.table import figure_text
    from wbsim.models.catalogue.data_files import purposes_in
    from wbsim.models.catalogue.filesystems import FILESYSTEMS, FOLDER

    purposes = purposes_in(FOLDER)
    rows: list[tuple[str, ...]] = [
        (kind, f"mkfs.{kind} without options, on the disk of the mount", _NOTHING, kind, "the disk's")
        for kind in MADE
    ]
    rows += [
        (
            name,
            purposes[name],
            _reports_of(filesystem),
            filesystem.kind,
            f"{figure_text(filesystem.size / 2**30)} GiB",
        )
        for name, filesystem in FILESYSTEMS.items()
    ]
    return _Rows(
        ("filesystem", "what it is for", "fitted to", "kind", "size"), rows,
        'filesystem.like = "NAME", or mounts.m = { like = "NAME", disk = "sda", at = "/m" }',
    )  # fmt: skip


def _workloads() -> _Rows:
    from wbsim.models.kinds import kinds

    rows: list[tuple[str, ...]] = []
    for kind in kinds("workloads").values():
        rows.append((", ".join(kind.spec.programs), kind.spec.purpose, kind.spec.example))
    return _Rows(("command", "what it is for", "example"), rows, 'workload.command = "EXAMPLE"')


def _figures() -> _Rows:
    from wbsim.experiments.results.figures import COLUMNS, FIGURES

    rows: list[tuple[str, ...]] = [(name, COLUMNS[name], figure.meaning) for name, figure in FIGURES.items()]
    return _Rows(("figure", "column of the dataset", "meaning"), rows, "wbsim plot DIR --y FIGURE")


_ROWS = {
    "machines": _machines, "disks": _disks, "devices": _devices, "kernels": _kernels,
    "filesystems": _filesystems, "workloads": _workloads, "figures": _figures,
}  # fmt: skip
