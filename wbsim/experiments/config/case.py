"""Cases of an experiment, each of which is one scenario."""

from __future__ import annotations

from dataclasses import dataclass

from wbsim.experiments.config.problems import bad, listed
from wbsim.experiments.config.sweeps import Point
from wbsim.models.scenario import Scenario


@dataclass(frozen=True)
class Case:
    """One run of an experiment: a variant, at one point of the sweep (empty without one).

    ``rows``: the ids of the published figures that it stands for; ``quick``: the overrides of a shorter run.
    """

    variant: str
    point: Point
    scenario: Scenario
    rows: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Return a name for tables and files."""
        return "-".join([self.variant, *map(str, self.point.values())])


@dataclass(frozen=True)
class Experiment:
    """A whole configuration, validated; ``axes`` are the names of what is swept."""

    title: str
    axes: tuple[str, ...]
    cases: tuple[Case, ...]
    replications: int = 1

    def only_case(self, variant: str | None) -> Case:
        """Return the one run, or the one of that name.

        Raises:
            BadInput: there are several of them, or none.
        """
        cases = [case for case in self.cases if variant in (None, case.label, case.variant)]
        if len(cases) != 1:
            names = listed([case.label for case in self.cases])
            what = "is missing" if variant is None else f"{variant} names {len(cases)} runs"
            raise bad("--variant", f"{what}; use one of {names}")
        return cases[0]
