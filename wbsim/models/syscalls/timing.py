"""The time of a process: its own work and pauses, and when each of its system calls begins and ends.

Where one wait covers the end of a call and the next call, the next call counts the first.
"""

from __future__ import annotations

from mypy_extensions import i64

from wbsim.models.interfaces import Caller, Thread
from wbsim.models.scheduler.cpu import cond_resched, sleep, work
from wbsim.models.syscalls.latency import Latencies, Latency
from wbsim.models.time_accounting import PAUSE
from wbsim.sim.engine import Environment, Park, Steps, Wait
from wbsim.sim.streams import Draws


class TimedCaller(Caller):
    """A process that works and calls; *factors* are the factors by which the work of calls varies.

    ``latencies`` are those of its program.  ``returning`` is the call that `returns` ends.
    """

    __slots__ = ("_ahead_ns", "_began_ns", "_env", "_factors", "_own_ns", "latencies", "returning")

    def __init__(self, env: Environment, thread: Thread, factors: Draws, latencies: Latencies) -> None:
        super().__init__(thread)
        self._env = env
        self._factors = factors
        self.latencies = latencies
        self._ahead_ns = 0  # the program's work before its next call, with what it owes to interrupts
        self._own_ns = 0  # the same without what it owes
        self._began_ns: i64 = 0  # when the current call began
        self.returning: Latency | None = None

    def vary(self) -> float:
        """Draw the factor (1 in the mean) by which the next calls vary, and return it."""
        self.factor = self._factors.next()
        return self.factor

    def works(self, user_ns: int, system_ns: int) -> None:
        """Note the program's work before its next call, and draw the factor by which the next calls vary.

        No time passes yet: the first wait of the call that `begins` covers it.  The program works for
        *user_ns* itself, and for *system_ns* in calls that have no method here.  Use this at most once before
        a call.
        """
        self.spent.user += user_ns
        self.spent.program += system_ns
        self._own_ns = user_ns + system_ns
        self._ahead_ns = self._own_ns + self.task.owed_ns
        self.task.owed_ns = 0
        self.factor = self._factors.next()

    def runs(self, user_ns: int, system_ns: int = 0, write_ns: int = 0) -> Wait:
        """Let the program work for *user_ns* and *system_ns*, as in `works`, and *write_ns* in write(2).

        Yield the result.  The time passes now, with what the task owes to interrupts.
        """
        self.spent.user += user_ns
        self.spent.program += system_ns
        self.spent.write += write_ns
        return work(self.task, user_ns + system_ns + write_ns)

    def pause(self, ns: int, spin_ns: int = 0) -> Steps:
        """Pause for *ns*, as the program's options say.  Use: `yield from`.

        The task spins if *ns* is below *spin_ns*, and else sleeps.  The pause counts as time that the program
        itself sets (`Spent.paced`).
        """
        if ns < spin_ns:
            self.spent.pause += ns
            yield work(self.task, ns)
        else:
            yield from sleep(self.task, ns, PAUSE)
        self.spent.paced += ns

    def is_on_schedule(self, since_ns: int) -> None:
        """Count all time since *since_ns* as paced: the program has just waited for its own schedule.

        This replaces `Spent.paced`.  A program with a rate calls it after each pause.
        """
        self.spent.paced = self._env.now - since_ns

    def begins(self) -> None:
        """Begin a call, behind the program's work that `works` noted: move that work to ``lead_ns``.

        The first wait of the call must cover ``lead_ns``; the latency counts from its end.
        """
        self._began_ns = self._env.now + self._own_ns
        self.task.waited_ns = self.task.longest_wait_ns = 0
        self.lead_ns, self._ahead_ns, self._own_ns = self._ahead_ns, 0, 0

    def began(self, ago_ns: i64) -> None:
        """Set the begin of the present call to *ago_ns* before now, for its latency.

        One wait has covered the call and the program's work before it.  Waits of the call count from now on.
        """
        self._began_ns = self._env.now - ago_ns
        self.task.waited_ns = self.task.longest_wait_ns = 0

    def leaves_out(self, ns: int) -> None:
        """Leave *ns* of the program's own time, within a call of several steps, out of the call's latency."""
        self._began_ns += ns

    def end_call(self, latency: Latency, ago_ns: i64 = 0) -> None:
        """Count in *latency* the call that ended *ago_ns* before now, with its waits.

        The next call may begin at the end of this one.
        """
        task, now = self.task, i64(self._env.now)
        end_ns = now - ago_ns
        latency.add(end_ns - self._began_ns, task.waited_ns, task.longest_wait)
        self._began_ns = end_ns
        task.waited_ns = task.longest_wait_ns = 0

    def ends(self, latency: Latency, ready: Park | None) -> Wait | None:
        """End a call, which *latency* counts, at once or after the wait *ready*.

        Yield the result, unless it is None.
        """
        if ready is not None:
            return self.ends_after(latency, ready)
        self.end_call(latency)
        return None

    def ends_after(self, latency: Latency, wait: Wait) -> Steps:
        """Wait for *wait*, which may be 0, and end the call, which *latency* counts.  Yield the result."""
        yield wait
        self.end_call(latency)

    def returns(self) -> Wait | None:
        """Return to user mode: give the processor to another task that should have it (cond_resched).

        Yield the result, unless it is None.  A stat, bulkstat or unlink, which this must follow, ends then.
        """
        ready, latency = cond_resched(self.task), self.returning
        if latency is None:
            return ready
        self.returning = None
        return self.ends(latency, ready)
