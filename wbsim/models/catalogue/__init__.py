"""The catalogue: named values for machines, drives, filesystems and kernels, each number with its source.

`kernels` has the rules of each release.  The machines of the reports are in `machines`, those of our own
measurements in `desks`, and those that were fitted to no report in `neutral`.  `mkfs` makes a filesystem as
the tools do.
"""
