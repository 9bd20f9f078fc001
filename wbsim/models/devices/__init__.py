"""Devices, which decide how long a request takes.

A module that has a ``SPEC`` is a device.  `disk` and `ssd` are media, and `loop` and `null` have no medium.
`write_cache` and `raid0` are made of other devices.  The parts of an `ssd` are `planes`, `ftl` with its
`page_map`, and `slc`; a `disk` has `platters`.  `intake` is the way into a cache, over a `link`.  Left out:
failures.
"""
