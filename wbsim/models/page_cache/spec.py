"""The specs of the page cache: memory, and the thresholds of dirty pages."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from wbsim.sim.param import BadValue, Bytes, BytesOrNone, CountOrNone, Spec, Unit
from wbsim.sim.units import MIB, PAGE_BYTES, parse


class MemorySpec(Spec):
    """Memory: its size, the part that the kernel keeps, and the size of a cached inode without its pages.

    * ``memory``: the size of the memory; at least 1 MiB more than ``kernel_reserve``.
    * ``kernel_reserve``: the part of the memory that the kernel keeps.  A configuration that sets only
      ``memory`` gets the same share of it as on the machine that ``like`` names.
    * ``inode_slab_bytes``: the memory of a cached inode: the inode, the dentry, the log item and a share of
      the buffer of the inode cluster.
    """

    memory: Bytes
    kernel_reserve: BytesOrNone
    inode_slab_bytes: BytesOrNone

    @model_validator(mode="after")
    def _check(self) -> MemorySpec:
        if self.memory - self.kernel_reserve < MIB:
            raise BadValue(
                f"{self.memory} B leaves less than 1 MiB after kernel_reserve, which is"
                f" {self.kernel_reserve} B; give {self.kernel_reserve + 2 * MIB} B, or a smaller"
                " kernel_reserve",
                "memory",
            )
        return self


def _as_sysctl_prints(value: object) -> object:
    """Return a number without a unit as bytes, and None for 0, because then the ratio counts."""
    if isinstance(value, str):
        return parse(value, "size") or None
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value) or None  # a plain int: a `ByHand` would be refused for its missing unit
    return value


SysctlBytes = Annotated[Bytes | None, BeforeValidator(_as_sysctl_prints), Unit("B", optional=True)]
"""A size of vm.*_bytes: bytes in Python, text with a unit or a number of bytes in a configuration."""


class DirtyLimits(Spec):
    """The thresholds of dirty pages: vm.dirty_background_ratio and vm.dirty_ratio, or vm.*_bytes in place of
    them.

    All four may be given as sysctl prints them.  A background threshold that is not below the limit becomes
    half of the limit, as in the kernel (global_dirty_limits).

    * ``dirty_background_ratio``: the percentage of the available memory from which on the flusher writes
      back.
    * ``dirty_ratio``: the percentage of the available memory from which on writers are throttled; 0 only with
      ``dirty_bytes``.
    * ``least_dirty_ratio``: a ``dirty_ratio`` below this percentage counts as it: 5 to 2.6.36, later none.
    * ``dirty_background_bytes``: the size from which on the flusher writes back.  A number without a unit is
      in bytes, and with 0 the ratio counts.
    * ``dirty_bytes``: the size from which on writers are throttled; two pages or more.  A number without a
      unit is in bytes, and with 0 the ratio counts.
    """

    dirty_background_ratio: Annotated[CountOrNone, Field(le=100)]
    dirty_ratio: Annotated[CountOrNone, Field(le=100)]
    least_dirty_ratio: Annotated[CountOrNone, Field(le=100)] = 0
    dirty_background_bytes: SysctlBytes = None
    dirty_bytes: SysctlBytes = None

    @model_validator(mode="after")
    def _check(self) -> DirtyLimits:
        if self.dirty_bytes is None and not self.dirty_ratio:
            raise BadValue("is 0, which allows no dirty page; give 1 or more, or dirty_bytes", "dirty_ratio")
        if self.dirty_bytes is not None and self.dirty_bytes < 2 * PAGE_BYTES:
            message = f"{self.dirty_bytes} B is less than the kernel allows; give at least {2 * PAGE_BYTES} B"
            raise BadValue(message, "dirty_bytes")
        return self
