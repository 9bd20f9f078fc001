"""A toolkit for discrete-event simulation on SimPy; it knows nothing about Linux."""

from typing import Final

from wbsim.sim.build import choose

COMPILED: Final = choose()
"""Whether the timed modules are the compiled ones."""
