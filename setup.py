"""The optional build: mypyc compiles the modules that a run spends its time in.

The build compiles only if WBSIM_COMPILE is set, as `make compiled` and `make wheel` do.  Otherwise it needs
no compiler.
"""

import os
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))
os.environ["WBSIM_ENGINE"] = "light"  # an older build may not match the sources
from wbsim.sim.build import PACKAGE, digest  # noqa: E402


def timed_modules() -> list[str]:
    """Return the sources that are compiled, relative to the root: compiled.toml lists them."""
    lists = tomllib.loads((ROOT / "compiled.toml").read_text())
    return [f"wbsim/{module}" for module in lists["compiled"]]


# With -flto gcc optimises all modules as one program.  Without it, mypyc's helpers for lists, ints and dicts
# are called through the procedure linkage table, which takes about a tenth of the time of a run.
WHOLE_PROGRAM = ["-O2", "-flto=auto", "-fvisibility=hidden", "-fno-semantic-interposition"]


class BuildEngine(build_ext):
    """Put the libraries into a package of their own, with the digest of their sources next to them."""

    def get_ext_fullpath(self, ext_name: str) -> str:
        """Return the path of a module's library: in `PACKAGE`, at the path of the module."""
        *folders, last = self.get_ext_fullname(ext_name).split(".")
        return str(Path(self.build_lib, PACKAGE, *folders, self.get_ext_filename(last)))

    def build_extension(self, ext: Extension) -> None:
        """Compile on all processors."""

        def compile_one(source: str) -> list[str]:
            return self.compiler.compile(
                [source], output_dir=self.build_temp, include_dirs=ext.include_dirs, depends=ext.depends,
                extra_postargs=[*ext.extra_compile_args, *WHOLE_PROGRAM],
            )  # fmt: skip

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for objects in pool.map(compile_one, ext.sources):
                ext.extra_objects += objects
        ext.sources = []
        ext.extra_link_args += [*WHOLE_PROGRAM, "-Wl,-Bsymbolic"]
        super().build_extension(ext)

    def run(self) -> None:
        """Build, and write the digest of the sources next to the libraries."""
        super().run()
        package = Path(self.build_lib, PACKAGE)
        (package / "digest").write_text(digest(ROOT / "wbsim"))
        (package / "__init__.py").write_text('"""The libraries of `make compiled`: see `sim.build`."""\n')


def extensions() -> list[Extension]:
    """Return one library, and a stub for each module; return nothing without WBSIM_COMPILE."""
    if "WBSIM_COMPILE" not in os.environ:
        return []
    from mypyc.build import mypycify

    options = ["--config-file=", "--ignore-missing-imports", "--always-true=COMPILED", *timed_modules()]
    return mypycify(
        options, opt_level="2", debug_level="0", multi_file=True, group_name="wbsim", target_dir="build"
    )


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildEngine})
