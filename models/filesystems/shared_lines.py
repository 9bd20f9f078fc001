"""Cache lines that all who allocate and convert write: heads and counters of a log.

A line is a resource with one owner and a queue, like a lock; `sim.sync.Line` is what a task uses that comes
by itself.

NOTE: those who allocate and convert do hundreds of operations in one compiled step, so that they cannot queue
one by one.  Each meets the others as an arrival does in a closed queueing network (the approximation of Bard
and Schweitzer): before each line wait the shares of their time that the others spend there.
"""

from __future__ import annotations

from wbsim.sim.engine import Environment


class _User:
    """What one of them does, as far as is known until ``until_ns``: operations a ns, what each takes on each
    line, and which share of the time that is, waiting and writing; what a line takes to come; ``at_work``:
    whether more is to come.
    """

    __slots__ = ("at_work", "comes_ns", "rate", "shares", "times_ns", "until_ns")

    def __init__(self, lines: int) -> None:
        self.until_ns = -1
        self.at_work = False
        self.rate = self.comes_ns = 0.0
        self.times_ns = [0.0] * lines
        self.shares = [0.0] * lines


class SharedLines:
    """Lines that an operation has *transfers* of each: a write takes *own_ns* on the processor that has the
    line, and *far_ns* if it comes from another of the *processors*.
    """

    def __init__(
        self, env: Environment, transfers: tuple[int, ...], own_ns: int, far_ns: int, processors: int
    ) -> None:
        self._env = env
        self._transfers = transfers
        self._own_ns = own_ns
        self._comes_ns = (far_ns - own_ns) * (processors - 1) / processors
        self._users: dict[object, _User] = {}

    def operation_ns(self, user: object) -> int:
        """What the lines add to each of the next operations of *user*, which alone would have them all."""
        users, now, transfers = self._users, self._env.now, self._transfers
        own = users.get(user)
        if own is None:
            own = users[user] = _User(len(transfers))
        own.at_work = True
        rate, written, before = 0.0, 0.0, [0.0] * len(transfers)
        for other, there in list(users.items()):
            if there is own:
                continue
            if there.until_ns < now:
                if not there.at_work:
                    del users[other]
                continue
            rate += there.rate
            written += there.rate * there.comes_ns
            for line, share in enumerate(there.shares):
                before[line] += share
        if not rate:
            own.times_ns, own.comes_ns = [0.0] * len(transfers), 0.0
            return 0
        # A line was last written by one of the others as often as they write in all that is written.
        own.comes_ns = comes_ns = self._own_ns + self._comes_ns * rate / (rate + own.rate)
        # Of a transfer that is under way, half is over.
        own.times_ns = [
            times * comes_ns * (1.0 + queue - min(times * written, 1.0) / 2)
            for times, queue in zip(transfers, before, strict=True)
        ]
        return int(sum(own.times_ns)) - sum(transfers) * self._own_ns

    def used(self, user: object, operations: int, elapsed_ns: int) -> None:
        """*user* does so many *operations* within *elapsed_ns* from now on, or has just done as many."""
        own = self._users[user]
        own.at_work = False
        own.until_ns = self._env.now + elapsed_ns
        own.rate = operations / elapsed_ns if elapsed_ns else 0.0
        own.shares = [time_ns * own.rate for time_ns in own.times_ns]
