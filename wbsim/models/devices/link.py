"""The link to a device's cache, which carries one command at a time."""

from __future__ import annotations

from wbsim.sim.engine import Environment
from wbsim.sim.units import SECTOR_BYTES, S


class Link:
    """A link of *rate* B/s; each command takes *command_ns* in addition to its transfer."""

    def __init__(self, env: Environment, rate: int, command_ns: int = 0) -> None:
        self._env = env
        self._rate = rate
        self._command_ns = command_ns
        self._free_ns = self._busy_ns = 0

    @property
    def busy_ns(self) -> int:
        """The time (ns) that the link was in use until now."""
        return self._busy_ns - max(self._free_ns - self._env.now, 0)

    def take(self, sectors: int) -> int:
        """Carry a command of *sectors* sectors when the link is free; return when it ends (ns on the clock).

        The link is busy until then, so a device calls this once for each command, in order.
        """
        took_ns = self._command_ns + sectors * SECTOR_BYTES * S // self._rate
        self._busy_ns += took_ns
        self._free_ns = max(self._free_ns, self._env.now) + took_ns
        return self._free_ns
