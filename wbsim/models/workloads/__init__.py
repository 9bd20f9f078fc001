"""Workloads: programs that make, write, read or remove files, and call sync(2).

A module that has a ``SPEC`` is a program that a configuration can name by its command line.  Read `spec`
and `processes` first.  `file_writers` is what fio and dd have in common, `trees` what find, rm and bulkstat
have.  Left out: reads of file data and direct I/O.
"""
