"""A discrete-event laboratory of the Linux writeback path.

    import wbsim

    found = wbsim.load("plug.toml").set({"workload.loops": 6}).run(replications=3)
    found.frame()                       # tidy, with units in the column names
    found.plot(y=["write_iops", "file_rate"])

`load` and `experiment` return a `Study` (set, variant, vary, run).  A run returns `Findings` (frames and
pictures).  `Capture` compares a capture of a real kernel with the model.  An error in an input raises
`BadInput`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from wbsim.experiments.config.problems import BadInput as BadInput
    from wbsim.experiments.python.capture import Capture as Capture
    from wbsim.experiments.python.findings import Findings as Findings
    from wbsim.experiments.python.study import Study as Study
    from wbsim.experiments.python.study import experiment as experiment
    from wbsim.experiments.python.study import load as load
    from wbsim.experiments.python.study import results as results
    from wbsim.models.catalogue.kernels import PLUG_RULES as PLUG_RULES

_HOMES: Final = {
    "BadInput": "wbsim.experiments.config.problems",
    "Capture": "wbsim.experiments.python.capture",
    "Findings": "wbsim.experiments.python.findings",
    "PLUG_RULES": "wbsim.models.catalogue.kernels",
    "Study": "wbsim.experiments.python.study",
    "experiment": "wbsim.experiments.python.study",
    "load": "wbsim.experiments.python.study",
    "results": "wbsim.experiments.python.study",
}
__all__ = ["PLUG_RULES", "BadInput", "Capture", "Findings", "Study", "experiment", "load", "results"]


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
