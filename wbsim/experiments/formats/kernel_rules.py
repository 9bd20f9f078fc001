"""The rules of kernels as text: the history of each rule, and what changed between two kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from textwrap import fill
from typing import Any

from wbsim.experiments.formats.table import WIDTH, duration_text, wrapped_table
from wbsim.models.kernel_rules.lookup import Change, changes
from wbsim.models.kernel_rules.rule import ABSENT, Rule
from wbsim.models.kernel_rules.table import NAMED, RULES
from wbsim.models.release import NEWEST_PATCH, Release
from wbsim.models.scenario import KernelSpec
from wbsim.sim.units import KIB


def rule_name(rule: Rule) -> str:
    """Return the key of *rule* as a configuration writes it, with its condition, if any, in parentheses."""
    key = f"kernel.{rule.key}" if rule.key.partition(".")[0] in KernelSpec.model_fields else rule.key
    return f"{key} ({rule.condition})" if rule.condition else key


def _place(rule: Rule) -> str:
    """Return the name of *rule* where the kernel is known, so that a named kernel is no condition."""
    return rule_name(rule._replace(condition="") if rule.condition in NAMED else rule)


def histories_table(rules: Iterable[Rule]) -> str:
    """Return a table with a line for each rule: all values, each later one with its first releases.

    The rows of a rule follow each other in *rules*, as in `RULES`; this holds for all functions here.
    """
    rows = []
    for name, group in groupby(rules, rule_name):
        first, *later = group
        values = [value_text(first)]
        values += [f"{value_text(row)} ({'; '.join(_names(row.releases))})" for row in later]
        rows.append((name, ", ".join(values)))
    return wrapped_table(("rule", "values, each with its first releases"), rows, left_columns=2)


def history_text(rules: Iterable[Rule]) -> str:
    """Return a paragraph for each rule: a value a line, what a user sees of it, and its evidence."""
    paragraphs = []
    for name, group in groupby(rules, rule_name):
        lines = [name]
        for row in group:
            lines.append(f"  since {_releases(row.releases)}: {value_text(row)}")
            lines += [_indented(text, 4) for text in (row.effect, row.entry.source) if text]
        paragraphs.append("\n".join(lines))
    return "\n\n".join(paragraphs)


def rules_document(rules: Iterable[Rule]) -> list[dict[str, Any]]:
    """Return *rules* as the document of ``wbsim list rules --json``: for each, ``rule`` and ``values``.

    ``rule`` is the name.  Each value has ``since`` (a list of releases), ``value`` (quantities in ns, B or
    B/s), ``effect`` and ``source`` (the evidence).  The value None is that of a rule that no longer exists,
    and also the value "none" of `value_text`.
    """
    return [
        {
            "rule": name,
            "values": [
                {
                    "since": _names(row.releases), "value": _plain(row), "effect": row.effect,
                    "source": row.entry.source,
                }
                for row in group
            ],
        }
        for name, group in groupby(rules, rule_name)
    ]  # fmt: skip


def difference_text(earlier: str, later: str, path: str = "") -> str:
    """Return what changed from kernel *earlier* to *later*, in all rules or in those below *path*.

    Both are names of `KERNELS`, such as "6.1"; *path* is as in `rules_below`.  A change has the two values
    and the effect of each step between them.  Without a change, a sentence says so.
    """
    differences = _changes(earlier, later, path)
    area = f" in {path}" if path else ""
    if not differences:
        alike = ": runs under both are equal" if not path else ""
        return f"{earlier} and {later} have equal rules{area}{alike}"
    count = "1 rule differs" if len(differences) == 1 else f"{len(differences)} rules differ"
    paragraphs = [f"{count}{area} between {earlier} and {later}, in the order of a page's way:"]
    paragraphs += [_change_text(change, earlier, later) for change in differences]
    paragraphs.append("wbsim list rules RULE prints the evidence.")
    return "\n\n".join(paragraphs)


def _changes(earlier: str, later: str, path: str) -> list[Change]:
    keys = {row.key for row in rules_below(RULES, path)}
    return [change for change in changes(earlier, later) if change.new.key in keys]


def _change_text(change: Change, earlier: str, later: str) -> str:
    """Return the values of a change, and the effect of each step; or that *later* lacks the change."""
    old, new, steps = change
    values = f"{_place(new)}: {value_text(old)} -> {value_text(new)}"
    if not steps:
        return f"{values}\n  {earlier} has the change of {_name(*old.releases[0])}, and {later} does not."
    lines = [values]
    for step in steps:
        releases = "" if step.condition in NAMED else f"{_releases(step.releases)}: "
        lines.append(_indented(f"{releases}{step.effect}", 2))
    return "\n".join(lines)


def _indented(text: str, columns: int) -> str:
    """Return *text* in lines that fit a terminal, each after so many spaces."""
    return fill(text, WIDTH, initial_indent=" " * columns, subsequent_indent=" " * columns)


def difference_document(earlier: str, later: str, path: str = "") -> dict[str, Any]:
    """Return what changed from kernel *earlier* to *later* as the document of ``wbsim diff --json``.

    The keys are ``before`` and ``after`` (the names of the kernels) and ``rules``.  Each changed rule has
    ``rule``, the values ``before`` and ``after``, and ``steps``, whose entries are as in `rules_document`.
    Without steps, *later* lacks a change that *earlier* has.  Only the rules below *path* count; all rules
    are below an empty path.
    """
    return {
        "before": earlier,
        "after": later,
        "rules": [
            {
                "rule": _place(new), "before": _plain(old), "after": _plain(new),
                "steps": [
                    {"since": _names(step.releases), "value": _plain(step), "effect": step.effect,
                     "source": step.entry.source}
                    for step in steps
                ],
            }
            for old, new, steps in _changes(earlier, later, path)
        ],
    }  # fmt: skip


def value_text(rule: Rule) -> str:
    """Return the value of *rule*, a number with its unit.

    The text is "-" if the rule no longer exists, "none" for None, and "true" or "false" for a truth value.
    """
    value = rule.entry.value
    if value is ABSENT:
        return "-"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    unit = _units().get(rule.key) or ("B" if rule.key.endswith("_bytes") else "")
    if unit == "ns":
        return duration_text(value)
    if unit in ("B", "B/s"):
        return _bytes_text(value) + unit.removeprefix("B")
    return str(value)


def _plain(rule: Rule) -> Any:
    return None if rule.entry.value is ABSENT else rule.entry.value


@lru_cache(maxsize=1)
def _units() -> dict[str, str]:
    """Return the unit of each number of a kernel by its path, from kernels that have all parts."""
    from wbsim.models.catalogue.kernels import KERNELS

    kernels = [KERNELS[name] for name in ("2.6.29", "3.1", "6.18")]
    return {number.path: number.unit for kernel in kernels for number in kernel.numbers()}


def _bytes_text(size: int) -> str:
    """Return a size in the largest binary unit that divides it.

    >>> _bytes_text(1280 * 1024), _bytes_text(65_535 * 512), _bytes_text(64)
    ('1280 KiB', '33553920 B', '64 B')
    """
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size and size % KIB**power == 0:
            return f"{size // KIB**power} {unit}"
    return f"{size} B"


def _names(releases: Sequence[Release]) -> list[str]:
    return [_name(*release) for release in releases]


def _name(major: int, minor: int, patch: int) -> str:
    """Return the name of a first release; "6.6.y" is a series whose patch level is not known.

    >>> _name(5, 16, 0), _name(2, 6, 30), _name(6, 6, 999)
    ('5.16', '2.6.30', '6.6.y')
    """
    if patch == NEWEST_PATCH:
        return f"{major}.{minor}.y"
    return f"{major}.{minor}.{patch}" if patch else f"{major}.{minor}"


def _releases(releases: Sequence[Release]) -> str:
    """Return the first releases of a row; stable ones were read with the rule, and may have had it earlier.

    >>> _releases([(5, 18, 0), (5, 15, 55)]), _releases([(5, 18, 0)])
    ('5.18 (and 5.15.55 at the latest)', '5.18')
    """
    mainline, *stable = _names(releases)
    return f"{mainline} (and {', '.join(stable)} at the latest)" if stable else mainline


def rules_below(rules: Iterable[Rule], path: str) -> list[Rule]:
    """Return the rules whose name is *path* or below it, with or without ``kernel.`` in front.

    If there are none, return the rules whose name ends with *path*, and these may be none, too.  All rules
    are below an empty path.
    """
    rules = list(rules)
    matches = [row for row in rules if _is_below(row, path)]
    return matches or [row for row in rules if row.key.endswith(f".{path}")]


def _is_below(rule: Rule, path: str) -> bool:
    name = rule_name(rule._replace(condition=""))
    short = name.removeprefix("kernel.")
    return not path or any(
        candidate == path or candidate.startswith(f"{path}.") for candidate in (name, short)
    )
