"""The numbers of machines against the committed list, which each change changes, too.

Drives and filesystems are files with their numbers; the rules of kernels are in tests/models/kernel_rules.

After an intended change, ``python -m tests.models.catalogue.test_numbers`` writes the list anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from wbsim.models.catalogue.kernels import LAST
from wbsim.models.catalogue.neutral import machines_of
from wbsim.models.kinds import kinds
from wbsim.models.release import release_of
from wbsim.sim.param import Given, Spec

COMMITTED = Path(__file__).with_name("numbers.tsv")


def numbers() -> Iterator[str]:
    """Yield a line for each number: owner, path, value, unit, origin, range, targets and source."""
    named: list[tuple[str, Spec]] = [
        *((f"machine {name}", spec) for name, spec in machines_of(release_of(LAST)).items()),
    ]
    for name, spec in named:
        for number in spec.numbers():
            assert number.given is not None
            yield _line(name, number.path, number.unit, number.given)
    for name, kind in kinds("workloads").items():
        for path, given in kind.spec.costs.items():
            yield _line(f"program {name}", path, "ns", given)


def _line(name: str, path: str, unit: str, given: Given) -> str:
    span = "" if given.low is None else f"{given.low} .. {given.high}"
    fields = name, path, given.value, unit, given.origin.value, span, " ".join(given.targets), given.source
    return "\t".join(map(str, fields))


def test_every_number_equals_the_committed_one() -> None:
    """The catalogue and the list have equal lines."""
    assert list(numbers()) == COMMITTED.read_text().splitlines()


if __name__ == "__main__":
    COMMITTED.write_text("".join(f"{line}\n" for line in numbers()))
