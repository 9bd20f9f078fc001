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
_MEASURES: Final = ("running/simulate.py", "running/reading.py", "results/figures.py")


@cache
def model_version() -> str:
    """Return a digest (16 hexadecimal digits) of `sim`, `models` with its data, and what reads the figures.

    A kept result counts only for the version that made it.
    """
    root = _EXPERIMENTS.parent
    hasher = blake2b(digest(root).encode(), digest_size=8)
    data = sorted((root / "models" / "catalogue" / "data").rglob("*.toml"))
    for path in (*data, *(_EXPERIMENTS / name for name in _MEASURES)):
        hasher.update(path.read_bytes())
    return hasher.hexdigest()
