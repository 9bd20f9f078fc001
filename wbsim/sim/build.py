"""The build that runs: the source, or for the modules in compiled.toml the libraries of `make compiled`.

The libraries are in the package `wbsim_compiled`, next to a digest of the sources that they were made of.
They are imported under the names of their sources.  If a source has changed since, the import is refused.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from hashlib import blake2b
from importlib.machinery import ExtensionFileLoader, ModuleSpec, PathFinder
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

PACKAGE: Final = "wbsim_compiled"
VARIABLE: Final = "WBSIM_ENGINE"
ENGINES: Final = ("simpy", "light", "compiled")
_SOURCES: Final = ("sim", "models")


def digest(root: Path) -> str:
    """Return a digest, as 32 hexadecimal digits, of all sources on which a compiled module may depend.

    The sources are the Python files in ``sim`` and ``models`` below *root*, the folder of wbsim.  Their paths
    and their contents count.  The libraries of a build carry their digest, and the version of the model
    follows from it.
    """
    hasher = blake2b(digest_size=16)
    for folder in _SOURCES:
        for source in sorted((root / folder).rglob("*.py")):
            hasher.update(str(source.relative_to(root)).encode())
            hasher.update(source.read_bytes())
    return hasher.hexdigest()


_ROOT: Final = Path(__file__).resolve().parent.parent


def choose(root: Path = _ROOT) -> bool:
    """Return whether the compiled modules run; if so, later imports take them in place of their sources.

    *root* is the folder of wbsim, with whose sources the libraries must agree.  The environment variable
    `VARIABLE` (WBSIM_ENGINE) names the engine, one of `ENGINES`; ``simpy`` and ``light`` run the sources.
    If the variable is not set or is empty, the compiled modules run if they are built.

    The sources run if Numba is switched off (NUMBA_DISABLE_JIT): rules that both Numba and the libraries
    compile take no arrays in the libraries.

    Raises:
        ImportError: with the name `PACKAGE`: the engine is unknown, needs Numba, was not built, or was made
            of other sources.
    """
    name = os.environ.get(VARIABLE, "")
    if name not in ("", *ENGINES):
        raise _refusal(f"{VARIABLE}={name} is not an engine; use one of {', '.join(ENGINES)}")
    unjitted = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
    if unjitted and name == "compiled":
        raise _refusal(f"the compiled engine needs Numba; unset NUMBA_DISABLE_JIT, or use {VARIABLE}=light")
    built = PathFinder.find_spec(PACKAGE) if name in ("", "compiled") and not unjitted else None
    if built is None or built.origin is None:
        if name == "compiled":
            raise _refusal("the compiled engine is not built; build it with make compiled, or use light")
        return False
    folder = Path(built.origin).parent
    if (folder / "digest").read_text() != digest(root):
        raise _refusal(
            f"the compiled engine in {folder} does not have the sources in {root}; build it again with make"
            f" compiled, or use {VARIABLE}=light"
        )
    sys.meta_path.insert(0, _Libraries(folder))
    return True


def engine(compiled: bool) -> str:
    """Return the name (of `ENGINES`) of the engine that runs the models; *compiled*: the result of `choose`.

    Raises:
        ImportError: the environment variable `VARIABLE` has changed since `choose` was called.
    """
    name = os.environ.get(VARIABLE) or ("compiled" if compiled else "light")
    if compiled != (name == "compiled"):
        raise _refusal(f"{VARIABLE}={name} has no effect after the import of wbsim; set it before the import")
    return name


def _refusal(why: str) -> ImportError:
    return ImportError(why, name=PACKAGE)


class _Libraries:
    """Finds the shared libraries below *folder* by the names of the modules that they replace."""

    def __init__(self, folder: Path) -> None:
        files = {path.relative_to(folder): path for path in folder.rglob("*.so")}
        self._libraries = {
            ".".join((*path.parent.parts, path.name.partition(".")[0])): str(file)
            for path, file in files.items()
        }

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`."""
        library = self._libraries.get(name)
        if library is None:
            return None
        return spec_from_file_location(name, library, loader=ExtensionFileLoader(name, library))
