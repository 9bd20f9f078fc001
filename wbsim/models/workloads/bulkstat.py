"""xfs_io -c bulkstat PATH: reads every inode of an XFS in the order of the numbers, cold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Literal

from wbsim.models.syscalls.process import Process
from wbsim.models.workloads import real_options
from wbsim.models.workloads.command_line import (
    CommandError,
    CommandParser,
    Options,
    one_line,
    options_of,
    words_of,
)
from wbsim.models.workloads.spec import SHELL_FORK, WorkloadFactory
from wbsim.models.workloads.trees import TreeProcesses, TreeSpec
from wbsim.sim.param import Inputs, assumed


class BulkstatSpec(TreeSpec):
    """XFS_IOC_BULKSTAT, with several processes, each for some of the groups."""

    programs: ClassVar = ("xfs_io",)
    purpose: ClassVar = "reads inodes of an XFS in bulk"
    example: ClassVar = "xfs_io -c 'bulkstat' /mnt"
    needs_bulkstat: ClassVar = True
    costs: ClassVar = {
        "app_user_time": assumed(100, "copying a struct from the buffer", 30, 300),
        "app_system_time": assumed(100, "the share of one inode in a call that returns many", 30, 300),
        "fork_time": SHELL_FORK,
    }
    kind: Literal["bulkstat"] = "bulkstat"

    @classmethod
    def options(cls) -> dict[str, Options]:
        """See `WorkloadSpec.options`."""
        return {"xfs_io": options_of(("-c",), real_options.XFS_IO)}

    @classmethod
    def fields_of(cls, lines: Sequence[str]) -> Inputs:
        """See `WorkloadSpec.fields_of`."""
        return parse_command(one_line(lines, "xfs_io"))


def parse_command(line: str) -> Inputs:
    """Return the fields of a `BulkstatSpec` that a command line gives.

    >>> parse_command("xfs_io -c bulkstat /mnt")
    {'kind': 'bulkstat', 'directories': ['/mnt']}

    Raises:
        CommandError: the line cannot be read, or gives another command than bulkstat.
    """
    parser = CommandParser(real_options.XFS_IO)
    parser.add_argument("-c", dest="command", required=True)
    parser.add_argument("paths", nargs=1)
    options = parser.parse_args(words_of(line)[1:])
    if options.command.split()[:1] != ["bulkstat"]:
        raise CommandError(f"{line!r} is not modelled; write xfs_io -c bulkstat PATH")
    return {"kind": "bulkstat", "directories": options.paths}


SPEC = BulkstatSpec
COMPONENT: WorkloadFactory = partial(TreeProcesses, operation=Process.bulkstat)
