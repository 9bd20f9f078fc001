"""One row of the table of the kernel's rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from wbsim.models.release import Release, bound_of
from wbsim.sim.param import Given, specified


class _Absent:
    def __repr__(self) -> str:
        return "absent"


ABSENT: Final = _Absent()
"""The value of a rule that does not exist in some releases."""


class Rule(NamedTuple):
    """A rule of the kernel from some releases on.

    * ``key``: the path of the rule, such as ``plug.max_requests``.
    * ``condition``: the driver, the kind of queue or the named kernel that alone has it; empty: all have it.
    * ``releases``: the first release of mainline, and then the first of stable series that have it, too.
    * ``entry``: the value with its origin and source; `ABSENT` is the value of a rule that ends.
    * ``effect``: what a user sees of the change, as a sentence; empty in the first row of a key.
    """

    key: str
    condition: str
    releases: tuple[Release, ...]
    entry: Given
    effect: str

    @property
    def exists(self) -> bool:
        """False if the row ends its rule: the kernels for which the row holds do not have the rule."""
        return self.entry.value is not ABSENT

    def holds(self, release: Release) -> bool:
        """Return whether *release* has the row; a later row of its key may replace it.

        A change that went to a stable series holds there from its patch level on.  Later series before
        mainline's first release lack it: one of 5.16 and 5.10.89 holds in 5.10.90, and not in 5.11.

        >>> row = rule("plug.max_requests", "", "5.16 5.10.89", 32)
        >>> row.holds((5, 10, 90)), row.holds((5, 11, 0)), row.holds((5, 16, 0))
        (True, False, True)
        """
        mainline, *stable = self.releases
        return release >= mainline or any(release[:2] == first[:2] and release >= first for first in stable)


def rule(key: str, condition: str, releases: str, value: Any, source: str = "", effect: str = "") -> Rule:
    """Return a row; *releases* is a text such as "5.16 5.10.89", mainline's first.

    *key*, *condition* and *effect* are those of `Rule`.  *value* becomes its ``entry``.  Unless *value* is a
    `Given` with an origin, it comes from the kernel's source, and *source* says where.

    Raises:
        ValueError: a word of *releases* is no release.
    """
    provenance = value if isinstance(value, Given) else specified(value, source)
    return Rule(key, condition, tuple(map(bound_of, releases.split())), provenance, effect)


def rules_that_exist(rules: Iterable[Rule]) -> list[Rule]:
    """Return those of *rules* whose value is not `ABSENT`, in their order."""
    return [rule for rule in rules if rule.exists]


def in_force(rules: Iterable[Rule], release: Release) -> list[Rule]:
    """Return the *rules* that hold for *release*, in their order.

    Rows that a later row of their key replaces are among them; the caller lets the last one count.
    """
    return [rule for rule in rules if rule.holds(release)]
