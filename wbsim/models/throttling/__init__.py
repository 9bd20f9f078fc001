"""Throttling: how writers are held back when too much memory is dirty.

Each module is one design.  In `caller_writes` (to 3.1) a writer writes back itself; in `io_less` it sleeps.
"""
