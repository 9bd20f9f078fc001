"""The RAID levels: the places of data and parity, and the reads that a write needs first.  Pure.

`models.md` (the kernel) and `models.devices.controller` make arrays of it.
"""
