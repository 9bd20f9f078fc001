"""The version of the model: a digest of the sources that decide what a run measures.

The engine is not part of it, because all engines give the same results.
"""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Final

from wbsim.sim.build import digest

_EXPERIMENTS: Final = Path(__file__).resolve().parents[1]
_MEASURES: Final = ("running/simulate.py", "running/outcome.py")


@cache
def model_version() -> str:
    """Return 16 hexadecimal digits of `sim`, `models` and the modules that read the figures of a run."""
    of = blake2b(digest(_EXPERIMENTS.parent).encode(), digest_size=8)
    for name in _MEASURES:
        of.update((_EXPERIMENTS / name).read_bytes())
    return of.hexdigest()
