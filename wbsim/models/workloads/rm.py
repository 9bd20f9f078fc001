"""rm -rf PATH: removes every file below a directory.  rm FILE is a program of `one_call`."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Literal

from wbsim.models.syscalls.process import Process
from wbsim.models.workloads import real_options
from wbsim.models.workloads.command_line import CommandParser, Options, one_line, options_of, words_of
from wbsim.models.workloads.spec import SHELL_FORK, WorkloadFactory, plain_path
from wbsim.models.workloads.trees import TreeProcesses, TreeSpec
from wbsim.sim.param import Inputs, assumed, measured


class RmSpec(TreeSpec):
    """rm(1) of directories."""

    programs: ClassVar = ("rm",)
    purpose: ClassVar = "removes all files of directories"
    example: ClassVar = "rm -rf /mnt/0"
    costs: ClassVar = {
        "app_user_time": assumed(
            500, "docs/measurements.md L: rm takes 1 us on ext4, find 0.6 us", 200, 1_000
        ),
        "app_system_time": measured(200, "docs/measurements.md L: getdents"),
        "fork_time": SHELL_FORK,
    }
    kind: Literal["rm"] = "rm"

    @classmethod
    def options(cls) -> dict[str, Options]:
        """See `WorkloadSpec.options`."""
        return {
            "rm": options_of(
                ("-r", "-R", "--recursive", "-f", "--force"), real_options.RM, (), "help version"
            )
        }

    @classmethod
    def fields_of(cls, lines: Sequence[str]) -> Inputs:
        """See `WorkloadSpec.fields_of`."""
        return parse_command(one_line(lines, "rm"))


def parse_command(line: str) -> Inputs:
    """Return the fields of a `RmSpec` that a command line gives; without -r, those of a `OneCallSpec`.

    >>> parse_command("rm -rf /mnt/0"), parse_command("rm /mnt/f")["call"]
    ({'kind': 'rm', 'directories': ['/mnt/0']}, 'unlink')

    Raises:
        CommandError: the line cannot be read.
    """
    parser = CommandParser(real_options.RM)
    parser.add_argument("-r", "-R", "--recursive", dest="recursive", action="store_true")
    parser.add_argument("-f", "--force", dest="force", action="store_true")
    parser.add_argument("paths", nargs="+")
    options = parser.parse_args(_split_options(words_of(line)[1:]))
    if not options.recursive:
        paths = [plain_path(path) for path in options.paths]
        directories = list(dict.fromkeys(posixpath.dirname(path) or "." for path in paths))
        return {"kind": "one_call", "call": "unlink", "paths": paths, "directories": directories}
    return {"kind": "rm", "directories": options.paths}


def _split_options(words: Sequence[str]) -> list[str]:
    """Return *words* with options that share a dash as separate options.

    >>> _split_options(["-rf", "--force", "/mnt"])
    ['-r', '-f', '--force', '/mnt']
    """
    parts = []
    for word in words:
        short = word.startswith("-") and not word.startswith("--") and word != "-"
        parts += [f"-{letter}" for letter in word[1:]] if short else [word]
    return parts


SPEC = RmSpec
COMPONENT: WorkloadFactory = partial(TreeProcesses, operation=Process.unlink)
