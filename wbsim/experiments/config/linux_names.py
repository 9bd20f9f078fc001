"""The names of settings in sysctl and sysfs, and the keys of a configuration for the same settings."""

from __future__ import annotations

from typing import Final

_DIRTY: Final = ("dirty_ratio", "dirty_background_ratio", "dirty_bytes", "dirty_background_bytes")
_OF_A_QUEUE: Final = {
    "scheduler": "elevator.scheduler",
    "fifo_batch": "elevator.fifo_batch",
    "async_depth": "elevator.async_depth",
    "nr_requests": "nr_requests",
    "queue_depth": "queue_depth and driver_depth",
    "write_cache": "write_cache, which follows the device",
    "fua": "fua",
    "wbt_lat_usec": "wbt, which is true where wbt_lat_usec is not 0",
    "nomerges": "limits.nomerges",
    "max_sectors_kb": 'limits.max_sectors_bytes, a size such as "512 KiB"',
    "max_segments": "limits.max_segments",
    "max_segment_size": "limits.max_segment_bytes",
    "discard_max_bytes": "limits.max_discard_bytes",
}
_KEYS: Final = {
    **{name: f"kernel.dirty.{name}" for name in _DIRTY},
    "dirty_expire_centisecs": 'kernel.writeback.expire, a time such as "30 s"',
    "dirty_writeback_centisecs": 'kernel.writeback.interval, a time such as "5 s"',
    **{name: f"{key}, in machine.queue or in a disk's queue" for name, key in _OF_A_QUEUE.items()},
}
_NOT_MODELLED: Final = {
    "dirtytime_expire_seconds", "hw_sector_size", "io_poll", "iostats", "laptop_mode", "max_hw_sectors_kb",
    "max_ratio", "min_ratio", "read_ahead_kb", "rotational", "rq_affinity", "strict_limit", "swappiness",
    "vfs_cache_pressure",
}  # fmt: skip


def key_of(name: str) -> str | None:
    """Return the message for *name*, Linux's name of a setting; None for any other name.

    *name* may begin with the directory that sysctl prints: ``vm.dirty_bytes``.  Errors on unknown keys use
    it.

    >>> key_of("vm.dirty_bytes")
    "is Linux's name; the key is kernel.dirty.dirty_bytes"
    """
    name = name.removeprefix("vm.")
    if name in _KEYS:
        return f"is Linux's name; the key is {_KEYS[name]}"
    if name in _NOT_MODELLED:
        return "is Linux's name of a setting that is not modelled; leave it out"
    if name in ("vm", "sysctl"):
        return "unknown key; the settings of vm.* are keys of kernel.dirty and kernel.writeback"
    return None
