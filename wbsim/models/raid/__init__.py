"""What md and the controllers know of RAID levels: where data and parity lie, and what a write must read.

Pure: arrays are made of it in `models.md` (the kernel) and in `models.devices.controller`.
"""
