"""The catalogue: named values for machines, drives, filesystems and kernels, each number with its source.

`kernels` has the rules of each release.  `machines` has the machines of the reports, `desks` the machines of
our measurements, and `neutral` machines that were fitted to no report.  `mkfs` makes a filesystem as the
tools do.
"""
