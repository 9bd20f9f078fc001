"""The rules that a release has, and those that two releases have differently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from wbsim.models.kernel_rules.rule import Rule, in_force, rules_that_exist
from wbsim.models.kernel_rules.table import RULES
from wbsim.models.release import Release, release_of
from wbsim.sim.param import Given, Inputs


@lru_cache(maxsize=256)
def rules_of(release: Release, kernel: str = "") -> Mapping[tuple[str, str], Rule]:
    """Return the rules of *release* by key and condition: the last row of each that holds.

    *kernel*: the name of a patched kernel; other names have no effect.  A row with this name as its condition
    is listed under the condition "", in place of the row without one.  A rule that ended is listed, too.
    """
    return {
        (row.key, "" if row.condition == kernel else row.condition): row for row in in_force(RULES, release)
    }


def rule_for(key: str, release: Release, condition: str = "") -> Given:
    """Return the value of the rule *key* in *release* under *condition*, as a `Given` with its source.

    >>> rule_for("plug.max_requests", (5, 15, 0)).value, rule_for("plug.max_requests", (6, 1, 0)).value
    (16, 32)

    A rule that ended has the value `ABSENT`.  Only a row with exactly *condition* is found, not one without.

    Raises:
        KeyError: no row of *key* and *condition* holds for *release*.
    """
    return rules_of(release)[key, condition].entry


def inputs_of(kernel: str) -> Inputs:
    """Return the rules of *kernel*, a release or a named kernel, as a tree: ``plug`` has the key ``tried``.

    Each leaf is a `Given`.  Rules with another condition than the kernel's name are left out, as are those
    that do not exist.

    >>> inputs_of("6.18")["plug"]["tried"].value
    'tail'

    Raises:
        ValueError: *kernel* names no release of Linux.
    """
    tree: Inputs = {}
    rules = rules_of(release_of(kernel), kernel)
    for row in rules_that_exist([row for (_, condition), row in rules.items() if not condition]):
        *path, name = row.key.split(".")
        branch = tree
        for part in path:
            branch = branch.setdefault(part, {})
        branch[name] = row.entry
    return tree


class Change(NamedTuple):
    """A rule that two kernels have differently: the row of each.

    ``steps`` are the rows that lead from one to the other.  They are empty if the later kernel lacks a change
    that a stable series of the earlier one took over.
    """

    old: Rule
    new: Rule
    steps: tuple[Rule, ...]


def changes(earlier: str, later: str) -> Iterator[Change]:
    """Yield the rules that differ between two kernels, in the order of the table.

    Two rows with one value, such as those of a repaired kernel and of a later release, are no change.  The
    end of a rule is one.  A rule for which either kernel has no row is left out.

    >>> [change.new.key for change in changes("5.12", "5.13")]
    ['filesystems.ext4.by_order']

    Raises:
        ValueError: *earlier* or *later* names no release of Linux.
    """
    release = release_of(later)
    old, new = (rules_of(release_of(kernel), kernel) for kernel in (earlier, later))
    for key, row in new.items():
        if key in old and old[key].entry.value != row.entry.value:
            history = [step for step in RULES if step.key == row.key and step.condition in (key[1], later)]
            later_steps = history[history.index(old[key]) + 1 :] if old[key] in history else [row]
            yield Change(old[key], row, tuple(in_force(later_steps, release)))
