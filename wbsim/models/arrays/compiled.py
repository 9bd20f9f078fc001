"""`compiled`: Numba compiles a function over arrays on its first call and keeps it for later processes.

Numba discards the kept code when the file of the function changes.  It does not notice a change in another
file with a function that this function calls.  So code is kept under a digest of all files that use
`compiled`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from fcntl import LOCK_EX, flock
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, Final, TypeVar, cast

import numba

from wbsim.sim import COMPILED

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def kept_in(models: Path, engine: str) -> Path:
    """Return the folder for compiled code: below *models* or, if not writable, in the home directory.

    Its name has a digest of the sources in *models*, the folder of the models, that use `compiled`.  It also
    has *engine*, the engine that runs, so engines do not share compiled code.  The folder is not made.
    """
    digest = blake2b(digest_size=8)
    for source in sorted(models.rglob("*.py")):
        text = source.read_bytes()
        if b"wbsim.models.arrays.compiled" in text:
            digest.update(text)
    parent = models / "__pycache__" if os.access(models, os.W_OK) else Path.home() / ".cache" / "wbsim"
    return parent / f"numba-{engine}-{digest.hexdigest()}"


_KEPT_IN: Final = kept_in(Path(__file__).resolve().parent.parent, "compiled" if COMPILED else "light")
numba.config.CACHE_DIR = str(_KEPT_IN)  # type: ignore[attr-defined]


class OneAtATime:
    """A lock between processes, held during a ``with``; the process that holds it may take it again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._depth = 0
        self._file: IO[str] | None = None

    def __enter__(self) -> None:
        self._depth += 1
        if self._depth == 1:
            os.makedirs(self._path.parent, exist_ok=True)
            self._file = self._path.open("w")
            flock(self._file, LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth and self._file is not None:
            self._file.close()


compiling = OneAtATime(_KEPT_IN / "lock")


def compiled(function: FunctionT) -> FunctionT:
    """Return *function*, compiled in Numba's nopython mode; NUMBA_DISABLE_JIT=1 leaves it as it is.

    The function may change arrays, but not make any.  Numba's runtime is switched off, so references to
    arrays are not counted; the counting took two thirds of the time of a page walk.  Calls between compiled
    functions are inlined, because passing a tuple of arrays took as much time again.  If several processes
    want a function, only one of them compiles it.
    """
    options: dict[str, Any] = {"cache": True, "_nrt": False, "forceinline": True}
    dispatcher: Any = numba.njit(**options)(function)
    if not hasattr(dispatcher, "compile"):
        return cast(FunctionT, dispatcher)
    dispatcher.compile = under_lock(dispatcher.compile)
    return cast(FunctionT, dispatcher if function.__defaults__ else Compiled(dispatcher))


class Compiled:
    """A compiled function without defaults, whose arguments have the same types in most calls from Python.

    Numba's *dispatcher* looks at the types of all arguments, and takes 2.3 us for a tuple of arrays.  So only
    the first call with arrays of other types asks it; a later one takes 0.5 us.  A float in place of an
    integer is not noticed, and is cut.  Other compiled functions call and inline this object as they would
    the dispatcher (``_numba_type_``).
    """

    __slots__ = ("_alternatives", "_call", "_numba_type_", "dispatcher")

    def __init__(self, dispatcher: Any) -> None:
        self.dispatcher = dispatcher
        self._numba_type_ = dispatcher._numba_type_
        self._call: Callable[..., Any] | None = None
        self._alternatives: list[Callable[..., Any]] = []
        """The code for arrays of other types, the latest first."""

    def __call__(self, *arguments: Any) -> Any:
        """Return the result of the function for *arguments*."""
        if self._call is None:
            return self._choose(*arguments)
        try:
            return self._call(*arguments)
        except TypeError:  # raised before the function begins
            return self._call_other(self._call, *arguments)

    def _call_other(self, last: Callable[..., Any], *arguments: Any) -> Any:
        """Call the code for arrays of other types than those of *last*; later calls try it first."""
        for call in self._alternatives:
            try:
                result = call(*arguments)
            except TypeError:
                continue
            self._alternatives.remove(call)
            self._alternatives.insert(0, last)
            self._call = call
            return result
        result = self._choose(*arguments)
        self._alternatives.insert(0, last)
        return result

    def _choose(self, *arguments: Any) -> Any:
        """Call the function by its dispatcher, and choose the compiled code for such arguments."""
        result = self.dispatcher(*arguments)
        types = tuple(self.dispatcher.typeof_pyval(argument) for argument in arguments)
        self._call = self.dispatcher.get_overload(types)
        return result

    @property
    def py_func(self) -> Any:
        """The function in Python, with which tests compare the compiled code."""
        return self.dispatcher.py_func


def under_lock(compile_for: Callable[[object], object]) -> Callable[[object], object]:
    """Return a function that calls *compile_for* with a signature, under the lock `compiling`.

    So one process at a time compiles, and a second one finds the code that the first has kept.
    """

    def compile_or_load(signature: object) -> object:
        with compiling:
            return compile_for(signature)

    return compile_or_load
