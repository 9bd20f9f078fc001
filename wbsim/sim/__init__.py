"""A toolkit for discrete-event simulation on SimPy; it knows nothing about Linux.

Read `engine` first: a clock in nanoseconds, tasks, and light waits.  `sync` has the kernel's kinds of locks,
and `streams` random numbers by name.  `param` has numbers with units and origins.  `agenda`, `heap` and
`entry` order what is to come, and `build` chooses the compiled modules.  `stock_simpy` is the same interface
on plain SimPy, which the tests compare with.
"""

from typing import Final

from wbsim.sim.build import choose

COMPILED: Final = choose()
"""Whether the timed modules are the compiled ones."""
