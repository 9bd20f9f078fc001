"""fio: buffered writes, random or sequential, into files that are made on opening.

Jobs are processes; each has a directory and files of its own, takes its files in turn, and with ``randwrite`` writes
each block once in the order of fio's random map.  A burst of writes between two calls of the throttle is one
event: nothing else of the process happens in between.  Left out: reads, direct I/O, fsync, verify.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from models.buffered_write import BufferedWriter
from models.seams import Site, Submitter
from sim.cpu import Processors
from sim.engine import PARK, Steps
from sim.param import Bytes, Count, Ns, Spec
from sim.units import PAGE_BYTES

BURST_PAGES: Final = 256
"""The longest burst: what a process writes in a millisecond or two."""


class FioSpec(Spec):
    """fio's options of the same names; ``app_time``: user time of fio itself per write."""

    kind: Literal["fio"] = "fio"
    rw: Literal["write", "randwrite"]
    numjobs: Count
    nrfiles: Count
    filesize: Bytes
    app_time: Ns

    @model_validator(mode="after")
    def _check(self) -> FioSpec:
        if self.filesize % PAGE_BYTES:
            raise ValueError(f"filesize {self.filesize} B is no whole number of 4 KiB blocks")
        return self

    @property
    def total_files(self) -> int:
        """All files of all jobs."""
        return self.numjobs * self.nrfiles

    @property
    def file_size(self) -> int:
        """The length of each (bytes)."""
        return self.filesize


class Fio:
    """A running fio; it ends with its last write."""

    def __init__(
        self,
        *,
        site: Site,
        spec: FioSpec,
        program_scale: float,
        filesystem: Any,
        processors: Processors,
        writer: Callable[[Submitter], BufferedWriter],
        on_end: Callable[[], None],
    ) -> None:
        self._env = site.env
        self._spec = spec
        self._app_ns = round(spec.app_time * program_scale)
        self._fs = filesystem
        self._processors = processors
        self._writer = writer
        self._on_end = on_end
        self._running = spec.numjobs
        self._dice = [site.dice(f"fio job {i}") for i in range(spec.numjobs)]
        self._submitters = [site.thread(f"fio-{i}") for i in range(spec.numjobs)]
        self._parent = site.env.task("fio")
        site.env.start(self._parent, self._wait_for_all())
        for index, submitter in enumerate(self._submitters):
            submitter.task.on_exit = self._exited
            site.env.start(submitter.task, self._job(index))

    def _wait_for_all(self) -> Steps:
        while self._running:
            yield PARK
        self._on_end()

    def _exited(self) -> None:
        self._running -= 1
        if not self._running:
            self._env.wake(self._parent)

    def _job(self, index: int) -> Steps:
        spec, fs, submitter = self._spec, self._fs, self._submitters[index]
        task, processors, writer = submitter.task, self._processors, self._writer(submitter)
        ready = processors.enter(task)
        if ready is not None:
            yield ready
        directory = yield from fs.mkdir(submitter)
        inodes = []
        for _ in range(spec.nrfiles):
            inodes.append((yield from fs.create(submitter, directory, 0, 1.0, 0)))
        orders = [self._order(index) for _ in inodes]
        write_ns = writer.copy_ns(1) + self._app_ns
        done, total = 0, spec.nrfiles * len(orders[0])
        while done < total:
            burst = min(writer.room(), BURST_PAGES, total - done)
            task.system_ns += burst * writer.copy_ns(1)
            task.user_ns += burst * self._app_ns
            yield burst * write_ns
            for file, inode in enumerate(inodes):
                indices = orders[file][_share(done, file, spec.nrfiles) : _share(done + burst, file, spec.nrfiles)]
                if len(indices):
                    yield writer.dirty(inode, inode.pages.write(indices), 0)
            done += burst
            if writer.due():
                yield from writer.balance()
            if (ready := processors.reschedule(task)) is not None:
                yield ready
        for inode in inodes:
            fs.close(inode)
        processors.leave(task)

    def _order(self, index: int) -> NDArray[np.int64]:
        """In which order a file's pages are written."""
        pages = self._spec.filesize // PAGE_BYTES
        return random_map_order(self._dice[index], pages) if self._spec.rw == "randwrite" else np.arange(pages)


def random_map_order(dice: np.random.Generator, blocks: int) -> NDArray[np.int64]:
    """Fio's random map: a random block each time or, if it was written before, the next that was not.

    So blocks cluster as a file fills up, as in a hash table with linear probing (get_next_rand_offset and
    axmap_next_free in fio's io_u.c).
    """
    draws = dice.integers(0, blocks, blocks).tolist()
    following = list(range(1, blocks + 1))
    following[-1] = 0
    free = bytearray(b"\1") * blocks
    order = []
    for block in draws:
        if not free[block]:
            passed = [block]
            block = following[block]
            while not free[block]:
                passed.append(block)
                block = following[block]
            for earlier in passed:
                following[earlier] = block  # path compression: the next search jumps
        free[block] = 0
        order.append(block)
    return np.array(order, np.int64)


def _share(writes: int, file: int, files: int) -> int:
    """How many of the first *writes*, dealt out in turn, go to *file*."""
    return (writes + files - 1 - file) // files


SPEC, COMPONENT = FioSpec, Fio
