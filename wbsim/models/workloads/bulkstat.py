"""xfs_io -c bulkstat PATH: reads every inode of an XFS in the order of the numbers, cold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

from wbsim.models.interfaces import Filesystem, Thread
from wbsim.models.parts import Parts
from wbsim.models.vfs.sync import SystemCalls
from wbsim.models.workloads import real_options
from wbsim.models.workloads.command_line import CommandError, CommandParser, one_line, words_of
from wbsim.models.workloads.spec import SHELL_FORK, WorkloadFactory
from wbsim.models.workloads.trees import TreeProcesses, TreeSpec
from wbsim.sim.engine import Steps
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
    def fields_of(cls, lines: Sequence[str]) -> Inputs:
        """See `WorkloadSpec.fields_of`."""
        return parse_command(one_line(lines, "xfs_io"))


def parse_command(line: str) -> Inputs:
    """Return the fields of a `BulkstatSpec` that a command line gives.

    Raises:
        CommandError: the line cannot be read, or gives another command than bulkstat.
    """
    parser = CommandParser(real_options.XFS_IO)
    parser.add_argument("-c", dest="command", required=True)
    parser.add_argument("paths", nargs=1)
    given = parser.parse_args(words_of(line)[1:])
    if given.command.split()[:1] != ["bulkstat"]:
        raise CommandError(f"{line!r} is not modelled; write xfs_io -c bulkstat PATH")
    return {"kind": "bulkstat", "directories": given.paths}


def bulkstat(
    *,
    parts: Parts,
    spec: BulkstatSpec,
    program_scale: float,
    start_ns: int,
    calls: SystemCalls,
    on_end: Callable[[], None],
) -> TreeProcesses:
    """Return a running xfs_io, or several."""
    return TreeProcesses(
        parts=parts, spec=spec, program_scale=program_scale, start_ns=start_ns, calls=calls, on_end=on_end,
        operation=_operation,
    )  # fmt: skip


def _operation(filesystem: Filesystem, thread: Thread, lead_ns: int, factor: float) -> Steps:
    return filesystem.names.bulkstat(thread, lead_ns, factor)


SPEC = BulkstatSpec
COMPONENT: WorkloadFactory = bulkstat
