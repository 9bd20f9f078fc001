"""A discrete-event simulator of the Linux writeback path.

* `load` reads a configuration from a file, and `experiment` from a text.  Both return a `Study`.
* `Study` has the methods `set`, `variant` and `vary`, which change it, and `run`, which simulates it.  Its
  methods `show`, `layout`, `advise` and `sensitivity` answer like the commands of these names.
* `Findings` are the results of a run: frames of pandas, and pictures of matplotlib.
* `results` reads `Findings` from a directory, and `reproduce` compares published reports with the model.
* `Capture` compares a capture of a real kernel with the model, by the rules in `PLUG_RULES`.
* `BadInput` is raised if an input or an argument has an error.

Example:
    >>> import wbsim
    >>> study = wbsim.load("question.toml").set({"workload.loops": 3})
    >>> study = study.vary({"kernel.like": ["3.11", "6.17"]})
    >>> found = study.run(replications=2)
    >>> frame = found.frame()  # a row for each run, with units in the names of the columns
    >>> len(frame)
    4
    >>> found.plot(y=["write_iops", "file_rate"]).savefig("kernels.png")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from wbsim.experiments.config.problems import BadInput as BadInput
    from wbsim.experiments.python.capture import PLUG_RULES as PLUG_RULES
    from wbsim.experiments.python.capture import Capture as Capture
    from wbsim.experiments.python.findings import Findings as Findings
    from wbsim.experiments.python.study import Study as Study
    from wbsim.experiments.python.study import experiment as experiment
    from wbsim.experiments.python.study import load as load
    from wbsim.experiments.python.study import reproduce as reproduce
    from wbsim.experiments.python.study import results as results

_HOMES: Final = {
    "BadInput": "wbsim.experiments.config.problems",
    "Capture": "wbsim.experiments.python.capture",
    "Findings": "wbsim.experiments.python.findings",
    "PLUG_RULES": "wbsim.experiments.python.capture",
    "Study": "wbsim.experiments.python.study",
    "experiment": "wbsim.experiments.python.study",
    "load": "wbsim.experiments.python.study",
    "reproduce": "wbsim.experiments.python.study",
    "results": "wbsim.experiments.python.study",
}
__all__ = [
    "PLUG_RULES",
    "BadInput",
    "Capture",
    "Findings",
    "Study",
    "experiment",
    "load",
    "reproduce",
    "results",
]


def __getattr__(name: str) -> Any:
    """Import the module of *name* at its first use, so that `import wbsim` is fast."""
    if name == "__version__":
        from importlib.metadata import version

        return version("wbsim")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
