"""`compiled`: a function over arrays that Numba compiles on its first call and keeps for the next process.

Numba forgets a kept function when its own file changes, but not when a function that it calls lies in another
file and changes there.  So what is kept stands under the digest of all files that use it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.extending import register_jitable

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def _keep_under_digest() -> None:
    here = Path(__file__).parent.parent
    digest = blake2b(digest_size=8)
    for source in sorted(here.rglob("*.py")):
        text = source.read_bytes()
        if b"models.arrays.compiled" in text:
            digest.update(text)
    parent = here / "__pycache__" if os.access(here, os.W_OK) else Path.home() / ".cache" / "wbsim"
    numba.config.CACHE_DIR = str(parent / f"numba-{digest.hexdigest()}")  # type: ignore[attr-defined]


_keep_under_digest()


def compiled(function: FunctionT) -> FunctionT:
    """*function*, compiled in Numba's nopython mode; NUMBA_DISABLE_JIT=1 leaves it as it is.

    It may change arrays and not make any: without Numba's own runtime no references to arrays are counted,
    which took two thirds of the time of a page walk.
    """
    options: dict[str, Any] = {"cache": True, "_nrt": False}
    return cast(FunctionT, numba.njit(**options)(function))


def portable(function: FunctionT) -> FunctionT:
    """*function* as it is, which compiled code may call, too: one rule for objects and for the rows of an
    array.
    """
    return register_jitable(function)
