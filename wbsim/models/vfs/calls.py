"""What a running program asks of the kernel, other than of a filesystem alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wbsim.models.seams import Thread
from wbsim.models.vfs.superblock import MountedSuperblock
from wbsim.models.vfs.sync import Syncs
from wbsim.models.vfs.write import BufferedWriter


@dataclass(frozen=True)
class SystemCalls:
    """``mount_of`` a path, ``writer`` for a thread that is to write, and ``syncs``."""

    mount_of: Callable[[str], MountedSuperblock]
    writer: Callable[[Thread], BufferedWriter]
    syncs: Syncs
