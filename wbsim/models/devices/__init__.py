"""Devices, which decide how long a request takes.

A module that has a ``SPEC`` is a device.  `disk` and `ssd` are media, and `loop` and `null` have no medium.
`write_cache` and `raid0` are made of other devices.  `intake` is the way into a cache.  Left out: failures.
"""
