"""fio: buffered writes, random or sequential, into files that are made on opening (create_on_open=1, fallocate=none).

Jobs are processes; each has a directory and files of its own, takes its files in turn (file_service_type=roundrobin), and with
``randwrite`` writes each block once in the order of fio's random map.  Left out: reads, direct I/O, fsync, verify.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from pydantic import model_validator

from models.buffered_write import BufferedWriter
from models.file_writer import FileWriters, Job, sequential
from models.random_map import RandomMap
from models.seams import Site, Submitter
from sim.cpu import Processors
from sim.param import Bytes, Count, Ns, Spec
from sim.units import PAGE_BYTES


class FioSpec(Spec):
    """fio's options of the same names; ``app_time``: user time of fio itself per write; ``fork_time``: of each job."""

    kind: Literal["fio"] = "fio"
    rw: Literal["write", "randwrite"]
    numjobs: Count
    nrfiles: Count
    filesize: Bytes
    app_time: Ns
    fork_time: Ns

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


def fio(
    *,
    site: Site,
    spec: FioSpec,
    program_scale: float,
    filesystem: Any,
    processors: Processors,
    writer: Callable[[Submitter], BufferedWriter],
    on_end: Callable[[], None],
) -> FileWriters:
    """A running fio; it ends with its last write."""
    pages = spec.filesize // PAGE_BYTES
    jobs = []
    for number in range(spec.numjobs):
        dice = site.dice(f"fio job {number}")
        random = spec.rw == "randwrite"
        orders = [RandomMap(dice, pages).take if random else sequential() for _ in range(spec.nrfiles)]
        jobs.append(Job(number, orders, pages))
    return FileWriters(
        name="fio",
        site=site,
        filesystem=filesystem,
        processors=processors,
        writer=writer,
        jobs=jobs,
        call_pages=1,
        app_ns=round(spec.app_time * program_scale),
        fork_ns=round(spec.fork_time * program_scale),
        on_end=on_end,
    )


SPEC, COMPONENT = FioSpec, fio
