"""I/O schedulers: the names that the kernel has for them, and the releases that have each."""

from __future__ import annotations

from typing import Final, Literal

from wbsim.models.kernel_rules.lookup import rules_of
from wbsim.models.release import Release, release_of

Scheduler = Literal["noop", "none", "deadline", "mq-deadline", "cfq"]
"""The modelled schedulers.  ``noop`` and ``deadline`` stand for ``none`` and ``mq-deadline`` in releases that
have these instead, so that one machine runs under every kernel.
"""
LEGACY: Final = {"none": "noop", "mq-deadline": "deadline"}
"""The equivalent scheduler of the legacy request queue for each scheduler of blk-mq."""
FIRST_IN_FIRST_OUT: Final = ("noop", "none")
BY_DEADLINE: Final = ("deadline", "mq-deadline")
NOT_MODELLED: Final = ("bfq", "kyber", "anticipatory")


def schedulers_of(release: Release) -> list[str]:
    """Return the names in /sys/block/*/queue/scheduler of *release*, for either kind of queue."""
    return [
        key.removeprefix("schedulers.")
        for (key, _), row in rules_of(release).items()
        if key.startswith("schedulers.") and row.exists
    ]


def refusal(scheduler: str, kernel: str) -> str | None:
    """Return why *kernel* cannot run *scheduler*, as the text of an error.

    None: it can, or *kernel* is not the name of a release.
    """
    try:
        release = release_of(kernel)
    except ValueError:
        return None
    there = schedulers_of(release)
    if scheduler in there or scheduler in LEGACY.values():
        return None
    modelled = [name for name in there if name not in NOT_MODELLED]
    return f"{scheduler} does not exist in Linux {kernel}; use one of {', '.join(modelled)}"


def modelled(name: object) -> object:
    """Return *name* unless it is a scheduler of the kernel that is not modelled.

    Raises:
        ValueError: *name* is such a scheduler.
    """
    if name in NOT_MODELLED:
        raise ValueError(
            f"{name} is not modelled; use noop or deadline (every release), cfq (up to 4.20),"
            " none (from 3.13 on) or mq-deadline (from 4.11 on)"
        )
    return name
