"""Cache lines that all threads which allocate and convert write: heads and counters of a log.

A line is a resource with one owner and a queue, like a lock.  All operations write the lines in the same
order, so a task that comes first to the first line comes first to all of them.  The time at the lines is
therefore known when an operation begins, and no event is needed for it.

NOTE: an operation of the kernel writes the lines when it reserves log space, when its transaction rolls and
when it commits.  Here it writes all of them at its beginning.
"""

from __future__ import annotations

from wbsim.sim.engine import Environment, Task


class SharedLines:
    """Lines that an operation writes *writes* times each, in this order.

    A write takes *own_ns* on the processor that wrote the line last, and *far_ns* if the line comes from
    another processor.  A line that is busy when a task asks for it is gone after each write; else the line
    comes once.
    """

    def __init__(self, env: Environment, writes: tuple[int, ...], own_ns: int, far_ns: int) -> None:
        self._env = env
        self._writes = list(writes)
        self._own_ns, self._far_ns = own_ns, far_ns
        self._alone_ns = sum(writes) * own_ns
        self._free_ns = [0] * len(writes)
        self._last_cpu = [-1] * len(writes)

    def operation_ns(self, task: Task) -> int:
        """Return what the lines add to the operation that *task* begins now.

        A task that always has the lines on its own processor adds nothing.
        """
        own_ns, far_ns, cpu, now = self._own_ns, self._far_ns, task.cpu, self._env.now
        at_ns = now
        for line in range(len(self._writes)):
            writes, free_ns = self._writes[line], self._free_ns[line]
            if free_ns > at_ns:
                at_ns = free_ns + writes * far_ns
            elif self._last_cpu[line] == cpu:
                at_ns += writes * own_ns
            else:
                at_ns += far_ns + (writes - 1) * own_ns
            self._free_ns[line] = at_ns
            self._last_cpu[line] = cpu
        return at_ns - now - self._alone_ns
