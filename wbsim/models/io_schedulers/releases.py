"""The I/O schedulers of each release, by the names that the kernel has for them (sysfs)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wbsim.models.kernel_rules.lookup import rules_of
from wbsim.models.kernel_rules.rule import rules_that_exist
from wbsim.models.kernel_rules.table import RULES
from wbsim.models.kinds import kinds
from wbsim.models.release import Release, release_of

_EXISTS: Final = "queue.schedulers."
"""The first part of the key of the rule that a scheduler exists."""


def every_name() -> set[str]:
    """Return the names of the schedulers that any release has, also of those that are not modelled.

    With them, an error can distinguish a scheduler that is not modelled from a typing mistake.
    """
    return {row.key.removeprefix(_EXISTS) for row in RULES if row.key.startswith(_EXISTS)}


def modelled() -> list[str]:
    """Return all names of the schedulers that can be run; the kernel has more (`every_name`)."""
    return list(kinds("io_schedulers"))


def legacy_names() -> Mapping[str, str]:
    """Return the name that the legacy request queue has for each scheduler of blk-mq that it has, too.

    A machine may state the legacy name under every kernel.  In a release without that name, the name of
    blk-mq is meant.

    >>> dict(legacy_names())
    {'mq-deadline': 'deadline', 'none': 'noop'}
    """
    name_lists = [kind.names for kind in dict.fromkeys(kinds("io_schedulers").values())]
    return {new: legacy for legacy, *names in name_lists for new in names}


def schedulers_of(release: Release) -> list[str]:
    """Return the names in /sys/block/*/queue/scheduler of *release*, for both kinds of queue together.

    >>> schedulers_of((4, 12, 0))
    ['noop', 'deadline', 'cfq', 'none', 'mq-deadline', 'bfq', 'kyber']
    """
    rules = [row for (key, _), row in rules_of(release).items() if key.startswith(_EXISTS)]
    return [row.key.removeprefix(_EXISTS) for row in rules_that_exist(rules)]


def refusal(scheduler: str, kernel: str) -> str | None:
    """Return why *kernel* cannot run *scheduler*, as the text of an error.

    None: it can, or *kernel* is not the name of a release, or no release has *scheduler*.

    >>> refusal("cfq", "6.1")
    'cfq does not exist in Linux 6.1; use one of none, mq-deadline'
    """
    try:
        release = release_of(kernel)
    except ValueError:
        return None
    schedulers = schedulers_of(release)
    if scheduler in schedulers or scheduler in legacy_names().values() or scheduler not in every_name():
        return None
    choices = ", ".join(name for name in schedulers if name in modelled())
    return f"{scheduler} does not exist in Linux {kernel}; use one of {choices}"
