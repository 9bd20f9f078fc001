"""A toolkit for discrete-event simulation on SimPy; it knows nothing about Linux.

Read `engine` first: a clock in nanoseconds, tasks, and light waits.  `sync` has the kernel's kinds of locks,
and `streams` random numbers by name.  `param` has numbers with units and origins.  `agenda`, `heap` and
`entry` order the events to come.  `build` chooses between the compiled modules and their source.
`stock_simpy` is the same interface on plain SimPy, with which the tests compare.
"""

from typing import Final

from wbsim.sim.build import choose

COMPILED: Final = choose()
"""True if the compiled modules run in place of their source."""
