"""Kernels by name: each release has the rules that the table of `kernel_rules` has for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from wbsim.models.block.spec import PlugRules
from wbsim.models.kernel_rules.lookup import inputs_of
from wbsim.models.kernel_rules.table import NAMED
from wbsim.models.kinds import kinds
from wbsim.models.release import bound_of, release_of
from wbsim.models.scenario import KernelSpec
from wbsim.sim.param import Inputs, bare

FIRST: Final = "2.6.29"
LAST: Final = "6.18"
"""The first and the last release that can be run by its number."""
_SHOWN: Final = (
    "2.6.29", "2.6.30", "2.6.32", "2.6.34", "2.6.34-n10", "2.6.37", "2.6.39", "3.1",
    "3.11", "3.11-p13", "3.11-mmotm", "3.11-v13", "4.3", "4.9", "4.19", "5.4", "5.10", "5.15", "5.17", "5.18",
    "6.1", "6.14", "6.17", "6.18",
)  # fmt: skip
_FIRST_PLUG: Final = bound_of("2.6.39")
_PLUG_ERAS: Final = (
    "2.6.39", "3.1", "3.11", "4.3", "4.9", "4.19", "5.4", "5.10", "5.15", "5.17", "5.18", "6.1", "6.14",
    "6.17",
)  # fmt: skip


def _plug_of(kernel: str) -> Inputs:
    plug: Inputs = inputs_of(kernel)["plug"]
    return plug


PLUG_RULES: Final = {name: PlugRules.model_validate(_plug_of(name)) for name in _PLUG_ERAS}
"""The rules of the plug in every era with plugs on the stack.

An era has the name of a release or of a long-term series in it.
"""


def era_of(release: str) -> str:
    """Return the key in `PLUG_RULES` of a kernel *release*, such as "3.11" or "6.18.44-rc1".

    A release without a patch level stands for the newest of its series.  Of eras with equal rules it is the
    last that is not later than *release*.

    >>> era_of("3.5"), era_of("6.18.44-rc1")
    ('3.1', '6.17')

    Raises:
        ValueError: *release* is not a version, or is older than plugs on the stack.
    """
    try:
        release_number = release_of(release)
    except ValueError as error:
        raise ValueError(f"{error}; give a release such as {', '.join(PLUG_RULES)}") from None
    if release_number < _FIRST_PLUG:
        raise ValueError(f"Linux {release} has no plug on the stack; give 2.6.39 or later")
    plug = bare(_plug_of(release))
    equal = [era for era in PLUG_RULES if bare(_plug_of(era)) == plug]
    earlier = [era for era in equal if bound_of(era) <= release_number]
    return (earlier or equal)[-1 if earlier else 0]


def _inputs(name: str) -> Inputs:
    """Return the inputs of the kernel *name*; filesystems without rules of releases have none."""
    rules = inputs_of(name)
    filesystems = {kind: rules["filesystems"].get(kind, {}) for kind in kinds("filesystems")}
    schedulers = {
        kind.names[0]: rules["schedulers"].get(kind.names[0], {})
        for kind in kinds("io_schedulers").values()
        if kind.spec.Rules.model_fields
    }
    decided = {key: value for key, value in rules.items() if key in KernelSpec.model_fields}
    return {"name": name, **decided, "filesystems": filesystems, "schedulers": schedulers}


class Kernels(Mapping[str, KernelSpec]):
    """Kernels by name.

    Iteration and length cover the kernels that a report, a source or a measurement stands for.  Any release
    from 2.6.29 to 6.18 can be looked up, and has the rules of its era.
    """

    def __init__(self) -> None:
        self._specs: dict[str, KernelSpec] = {}

    def __getitem__(self, name: str) -> KernelSpec:
        if name not in self._specs:
            if not _is_known(name):
                raise KeyError(name)
            self._specs[name] = KernelSpec.model_validate(_inputs(name))
        return self._specs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_SHOWN)

    def __len__(self) -> int:
        return len(_SHOWN)


def _is_known(name: str) -> bool:
    if name in NAMED:
        return True
    try:
        return bound_of(FIRST) <= release_of(name) <= release_of(LAST)
    except (ValueError, TypeError):
        return False


KERNELS: Final = Kernels()
"""The kernels that can be run."""
