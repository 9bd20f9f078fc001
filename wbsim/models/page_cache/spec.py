"""What is configured of the page cache: memory, and the thresholds of dirty pages."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from wbsim.sim.param import BadValue, Bytes, BytesOrNone, CountOrNone, Spec
from wbsim.sim.units import MIB, PAGE_BYTES, parse


class MemorySpec(Spec):
    """Memory: its size, what the kernel keeps, and what a cached inode costs beside its pages.

    ``inode_slab_bytes``: inode, dentry, log item and its part of the inode cluster's buffer.
    """

    memory: Bytes
    kernel_reserve: BytesOrNone
    inode_slab_bytes: BytesOrNone

    @model_validator(mode="after")
    def _check(self) -> MemorySpec:
        if self.memory - self.kernel_reserve < MIB:
            raise BadValue("leaves less than 1 MiB beside kernel_reserve; give more", "memory")
        return self


def _as_sysctl_prints(value: object) -> object:
    """Return a number without a unit as bytes, and None for 0, which says that the ratio counts."""
    if isinstance(value, str):
        return parse(value, "size") or None
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value) or None  # without the mark that says that a unit is missing
    return value


SysctlBytes = Annotated[Bytes | None, BeforeValidator(_as_sysctl_prints)]
"""A size of vm.*_bytes: bytes in Python, text with a unit or a number of bytes in a configuration."""


class DirtyLimits(Spec):
    """vm.dirty_background_ratio and vm.dirty_ratio, in percent, or, for each, vm.*_bytes instead.

    All four may be given as sysctl prints them.  A size without a unit is in bytes; 0 says that the ratio
    counts.  A background threshold that is not below the limit is half of it, as in the kernel
    (global_dirty_limits).
    """

    dirty_background_ratio: Annotated[CountOrNone, Field(le=100)]
    dirty_ratio: Annotated[CountOrNone, Field(le=100)]
    dirty_background_bytes: SysctlBytes = None
    dirty_bytes: SysctlBytes = None

    @model_validator(mode="after")
    def _check(self) -> DirtyLimits:
        if self.dirty_bytes is None and not self.dirty_ratio:
            raise BadValue(
                "is 0, so no page could become dirty; give 1 or more, or dirty_bytes", "dirty_ratio"
            )
        if self.dirty_bytes is not None and self.dirty_bytes < 2 * PAGE_BYTES:
            what = f"{self.dirty_bytes} B: the kernel takes two pages at least, {2 * PAGE_BYTES} B"
            raise BadValue(what, "dirty_bytes")
        return self
