"""Workloads: programs that make, write, read or remove files, and call sync(2).

A module that has a ``SPEC`` is a program that a configuration can name by its command line.  Read `spec` and
`processes` first.  fio and dd share `file_writers`; find, rm and bulkstat share `trees`.  Left out: reads of
file data and direct I/O.
"""
