"""Devices: how long a request takes.

A module that has a ``SPEC`` is a device.  `disk` and `ssd` are media; `write_cache` and `raid0` are made of
other devices; `loop` and `null` have no medium.  `intake` is the way into a cache.  Left out: failures.
"""
