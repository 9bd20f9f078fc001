"""A loop device: a worker that copies the written data into its file.

Stands for drivers/block/loop.c on a file in tmpfs.  loop_queue_rq puts a command on the list of one worker
(rootcg_work).  The worker writes command after command, and completes each command itself.

Left out: workers of other cgroups, direct I/O, pages that the file does not have yet, and files on a disk.
ksoftirqd is left out, too: the worker is charged for completions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from wbsim.models.bio import BlockDevice, Request, Write
from wbsim.models.devices.spec import LoopSpec
from wbsim.models.factories import DeviceFactory
from wbsim.models.interfaces import Thread
from wbsim.models.scheduler.cpu import cond_resched
from wbsim.sim.engine import PARK, Environment, Steps
from wbsim.sim.units import PAGE_SECTORS


class LoopDevice(BlockDevice):
    """A loop device: *worker*, a thread, does all of its work."""

    def __init__(self, *, env: Environment, spec: LoopSpec, name: str, worker: Thread) -> None:
        self._env = env
        self._worker = worker
        self._command_ns, self._page_ns = spec.command_time, spec.page_time
        self._commands: deque[tuple[Write, Callable[[], None]]] = deque()
        self._asleep = False
        env.start(worker.task, self._run())

    def submit(self, request: Write, done: Callable[[], None]) -> None:
        """Queue *request* for the worker; *done* is called when the worker has copied its data."""
        self._commands.append((request, done))
        if self._asleep:
            self._asleep = False
            self._env.wake(self._worker.task)

    def _run(self) -> Steps:
        commands, task, spent = self._commands, self._worker.task, self._worker.spent
        while True:
            while commands:
                request, done = commands.popleft()
                sectors = request.end_sector - request.start_sector
                work_ns = self._command_ns + sectors * self._page_ns // PAGE_SECTORS
                spent.device += work_ns
                yield work_ns
                if isinstance(request, Request):
                    request.cpu = task.cpu
                done()
                if (ready := cond_resched(task)) is not None:
                    yield ready
            self._asleep = True
            yield PARK


SPEC = LoopSpec
COMPONENT: DeviceFactory = LoopDevice
