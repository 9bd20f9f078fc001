"""The reference of all keys of a configuration and all figures of a run, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from wbsim.experiments.config.keys import Section, sections
from wbsim.experiments.config.values import MOST_OF, amount
from wbsim.experiments.results.figures import COLUMNS, FIGURES
from wbsim.models.kinds import kinds
from wbsim.sim.units import EXAMPLES, SCALES

FIGURES_TITLE: Final = "## Figures"
_PARTS: Final = {
    "": "The configuration file",
    "scenario": "The scenario",
    "machine": "machine",
    "kernel": "kernel",
    "mounts.NAME": "filesystem and mounts.NAME",
    "programs.NAME": "workload and programs.NAME",
}
"""The titles of the parts, by the path of the first section; other sections have their path as title."""
_NOTES: Final = {
    "scenario": "The keys from here on belong into `scenario` or into a variant.",
    "machine": "`machine.device` and `machine.queue` change the only disk of a machine of the catalogue."
    "  They are refused if the configuration or a machine file has `disks`, or the machine has several:"
    " write `machine.disks.NAME.device`.",
    "mounts.NAME": "A single filesystem stands in `filesystem`; its disk is the machine's only disk.  One of"
    " several has a name, and stands in `mounts.NAME` with the keys of `filesystem` and these.",
    "programs.NAME": "A single program stands in `workload`, with the same keys.  The keys below, which are"
    " called `workload`, exist in `programs.NAME`, too.  A whole number as `directories` stands for"
    " that number of paths.",
}
"""Paragraphs about sections, by path."""
_UNITS: Final = [
    (kind, f"`{EXAMPLES[kind]}`", ", ".join(f"`{unit}`" for unit in scale)) for kind, scale in SCALES.items()
]
"""The kinds of quantities: an example of each, and its units."""
_WORDS: Final = (
    "A quantity is a text with a number and a unit.  KiB, MiB, GiB and TiB are powers of two; kB, MB, GB and"
    " TB are powers of ten.  The number may have a fraction if the result is a whole number of ns, B or B/s,"
    ' as in `"1.5 GiB"`.  A number without a unit is refused, also 0: write `"0 B"`.  Only `dirty_bytes` and'
    " `dirty_background_bytes` take a bare number of bytes, as sysctl does.",
    f"A row without an upper bound allows at most {amount(MOST_OF['ns'], 'ns')},"
    f" {amount(MOST_OF['B'], 'B')}, {amount(MOST_OF['B/s'], 'B/s')}, or the whole number {MOST_OF['1']}.",
    "`NAME` stands for a name that you give.  The column *default* has a value, or the part that the value"
    " comes from: `the machine's` is the value of the machine that `like` names, and `the command's` is the"
    " value of the option in the command line or the job file.  `none` means that the key is left out.",
    "Some parts have a `kind`, such as `kernel.flusher`.  If you write another `kind` than the part that"
    " `like` names, its values do not apply.  In `the kernel's, or 2` the value 2 then holds.  If the default"
    " is only `the kernel's`, you must then give the key.",
)
"""The paragraphs at the top, below the table of units."""


_OPTIONS: Final = (
    "A command or a job file may have any option of its program.  An option that changes only the report, or"
    " nothing that the model shows, is dropped, and the run says so.  An option that makes it another"
    " experiment is refused, and all of them are named at once, each with its line.",
)
"""The paragraph about the options of programs."""
_HEAD: Final = (
    "# Every key of a configuration, and every figure",
    "",
    "Made by `wbsim schema --reference > docs/reference.md`.",
    "",
)


def reference() -> str:
    """Return all keys, figures and options of programs, as a Markdown document: docs/reference.md."""
    lines = [*_HEAD, *_table(("quantity", "example", "units"), _UNITS), "", *_paragraphs(_WORDS)]
    for section in sections():
        lines += _section(section)
    lines += [FIGURES_TITLE, "", "A run has these figures, for tables, pictures and datasets.", ""]
    figures = [
        (f"`{name}`", figure.meaning, figure.unit, f"`{COLUMNS[name]}`") for name, figure in FIGURES.items()
    ]
    lines += [*_table(("figure", "meaning", "unit", "column of the dataset"), figures), ""]
    return "\n".join([*lines, *_programs()]).rstrip()


def _programs() -> Iterator[str]:
    """Yield the lines about the options of each program, in a table for each."""
    yield from ("## Options of programs", "", *_paragraphs(_OPTIONS))
    tables = {
        name: options for kind in kinds("workloads").values() for name, options in kind.spec.options().items()
    }
    for name, options in sorted(tables.items()):
        yield from (f"### {name}", "")
        rows = [("modelled", _names(options.modelled)), ("dropped with a note", _names(options.dropped))]
        plain = [option for option, why in options.refusals.items() if not why]
        rows.append(("refused", _names(plain)))
        rows += [(f"refused: {why}", _names(group)) for why, group in _by_reason(options.refusals).items()]
        rows.append(
            ("other names", ", ".join(f"`{new}` for `{old}`" for new, old in options.aliases.items()))
        )
        if not any(names for _, names in rows):
            yield from (f"{name} has no options.", "")
            continue
        yield from (*_table(("what happens", "options"), [row for row in rows if row[1]]), "")


def _by_reason(refusals: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the options that are refused for each reason."""
    groups: dict[str, list[str]] = {}
    for option, why in refusals.items():
        if why:
            groups.setdefault(why, []).append(option)
    return groups


def _names(options: Sequence[str]) -> str:
    return ", ".join(f"`{option}`" for option in options)


def _section(section: Section) -> Iterator[str]:
    """Yield the lines of *section*: a heading, the paragraphs about it, and the table of its keys."""
    kind = f' of kind "{section.kind}"' if section.kind else ""
    title = f"## {_PARTS[section.path]}" if section.path in _PARTS else f"### {section.path}{kind}"
    yield from (title, "")
    yield from _paragraphs([*section.about, _NOTES.get(section.path, "")])
    if section.keys:
        keys = [(f"`{key.path}`", key.meaning, key.takes, key.default) for key in section.keys]
        yield from (*_table(("key", "meaning", "takes", "default"), keys), "")


def _paragraphs(texts: Iterable[str]) -> Iterator[str]:
    """Yield the lines of the paragraphs *texts*, a sentence a line."""
    for text in filter(None, texts):
        yield from (*text.replace(".  ", ".\n").splitlines(), "")


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table."""
    yield f"| {' | '.join(heading)} |"
    yield "|" + "---|" * len(heading)
    for cells in rows:
        yield f"| {' | '.join(cells)} |"
