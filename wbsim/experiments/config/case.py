"""Experiments and their cases; each case has one scenario."""

from __future__ import annotations

from dataclasses import dataclass, field

from wbsim.experiments.config.problems import bad, list_names
from wbsim.experiments.config.sweeps import Point
from wbsim.models.scenario import Scenario


@dataclass(frozen=True)
class Case:
    """One case of an experiment: a variant at one point of the sweep.

    Attributes:
        variant: The name of the variant; ``base`` without variants.
        point: The value of each swept key; empty without a sweep.
        scenario: The complete configuration of the case: ``scenario.machine``, ``.kernel``, ``.mounts``,
            ``.programs`` and so on, as ``wbsim show`` prints it.  Times in ns, sizes in bytes.
        rows: The ids of the published figures that the case reproduces.
        quick: The changes for a shorter run, each as ``KEY=VALUE``.

    Example:
        >>> import wbsim
        >>> (case,) = wbsim.load("question.toml").experiment().cases
        >>> case
        Case(variant='base', point={}, rows=(), quick=())
        >>> case.scenario.machine.processors.count
        8
    """

    variant: str
    point: Point
    scenario: Scenario = field(repr=False)
    rows: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """A name for tables and files: the variant and the values of the point, with hyphens between them.

        Example:
            >>> import wbsim
            >>> experiment = wbsim.load("question.toml").vary({"workload.files": [250, 500]}).experiment()
            >>> experiment.cases[0].label
            'base-250'
        """
        return "-".join([self.variant, *map(str, self.point.values())])


@dataclass(frozen=True)
class Experiment:
    """A complete, validated configuration.

    Attributes:
        title: The title of the configuration.
        axes: The names of the swept keys.
        cases: The cases: each variant at each point of the sweep.
        replications: The number of runs of each case.

    Example:
        >>> import wbsim
        >>> experiment = wbsim.load("plug.toml").experiment()
        >>> [case.variant for case in experiment.cases]
        ['unpatched', 'patched']
        >>> experiment.replications
        1
    """

    title: str
    axes: tuple[str, ...]
    cases: tuple[Case, ...]
    replications: int = 1

    def only_case(self, variant: str | None) -> Case:
        """Return one case.

        Args:
            variant: The variant or the label of the case.  None: the experiment has one case only.

        Returns:
            The case.

        Raises:
            BadInput: no case matches, or several do.

        Example:
            >>> import wbsim
            >>> wbsim.load("plug.toml").experiment().only_case("patched").variant
            'patched'
        """
        cases = [case for case in self.cases if variant in (None, case.label, case.variant)]
        if len(cases) != 1:
            names = list_names([case.label for case in self.cases])
            fault = "is missing" if variant is None else f"{variant} matches {len(cases)} cases"
            raise bad("--variant", f"{fault}; use one of {names}")
        return cases[0]
