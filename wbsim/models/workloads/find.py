"""find PATH -ctime 1: reads every inode below a directory, cold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Literal

from wbsim.models.syscalls.process import Process
from wbsim.models.workloads.command_line import CommandError, Options, one_line, words_of
from wbsim.models.workloads.spec import SHELL_FORK, WorkloadFactory
from wbsim.models.workloads.trees import TreeProcesses, TreeSpec
from wbsim.sim.param import Inputs, measured


class FindSpec(TreeSpec):
    """find(1) with a test that needs the inode."""

    programs: ClassVar = ("find",)
    purpose: ClassVar = "reads the inode of each file"
    example: ClassVar = "find /mnt/0 -ctime 1"
    costs: ClassVar = {
        "app_user_time": measured(600, "docs/measurements.md L: user time of find"),
        "app_system_time": measured(1_900, "docs/measurements.md L: lstat and getdents of cached inodes"),
        "fork_time": SHELL_FORK,
    }
    kind: Literal["find"] = "find"

    @classmethod
    def options(cls) -> dict[str, Options]:
        """See `WorkloadSpec.options`."""
        return {"find": Options(("-ctime", "-mtime", "-atime", "-size"))}

    @classmethod
    def fields_of(cls, lines: Sequence[str]) -> Inputs:
        """See `WorkloadSpec.fields_of`."""
        return parse_command(one_line(lines, "find"))


def parse_command(line: str) -> Inputs:
    """Return the fields of a `FindSpec` that a command line gives.

    >>> parse_command("find /mnt/0 -ctime 1")
    {'kind': 'find', 'directories': ['/mnt/0']}

    Raises:
        CommandError: the line cannot be read, or its test needs no inode.
    """
    words = words_of(line)[1:]
    paths = []
    while words and not words[0].startswith("-"):
        paths.append(words.pop(0))
    if not paths:
        raise CommandError(f"{line!r} has no path; write find PATH -ctime 1")
    if len(words) != 2 or words[0] not in ("-ctime", "-mtime", "-atime", "-size"):
        raise CommandError(f"{line!r} is not modelled; give one test that needs the inode, such as -ctime 1")
    return {"kind": "find", "directories": paths}


SPEC = FindSpec
COMPONENT: WorkloadFactory = partial(TreeProcesses, operation=Process.stat)
