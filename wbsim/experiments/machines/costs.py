"""`wbsim calibrate --from`: the processor times for a machine file, from a capture with ``--cpu``.

The times of kernel paths keep the proportions that they have on the desk, the reference machine
(docs/measurements.md H).

* ``flusher_scale``: the flusher's time a file, divided by the desk's.
* The paths of the block layer: the capture's time a request, shared as on the desk.
* ``writer_scale``: the command's processor time, divided by that of the same command in the desk's model.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

from wbsim.experiments.captures.processor import FlusherTime, Recording, flusher_time
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.config.problems import BadInput, bad
from wbsim.experiments.running.simulate import run_case
from wbsim.models.catalogue.machines import MACHINES
from wbsim.sim.units import S

DESK: Final = "desk-vm"
_SMALL: Final = 4
"""The largest mean number of pages a file.  For larger files, a capture does not show each allocation."""
_BLOCK: Final = ("request_ns", "insert_ns", "dispatch_ns")


class Scales(NamedTuple):
    """The costs of a machine (``flusher_time``) and the costs of the desk (ns).

    * ``desk_file_ns`` and ``desk_request_ns``: the flusher's time per file and per request.
    * ``desk_program_ns``: the processor time of the capture's command in the desk's model; None: the model
      cannot run the command, and ``why`` has the reason.
    """

    flusher_time: FlusherTime
    desk_file_ns: float
    desk_request_ns: float
    desk_program_ns: float | None
    why: str

    @property
    def flusher(self) -> float:
        """``flusher_scale`` of the machine file: the flusher's time per file, divided by the desk's."""
        return self.flusher_time.file_ns / self.desk_file_ns

    @property
    def writer(self) -> float | None:
        """``writer_scale`` of the machine file: the command's processor time, divided by the desk's.

        None: the model cannot run the command.
        """
        return self.flusher_time.recording.program_ns / self.desk_program_ns if self.desk_program_ns else None

    def lines(self) -> list[str]:
        """Return lines (TOML) for a machine file whose ``like`` is the desk.

        The lines have the two scales and the times of the block layer (ns).  Without `writer` an assumed
        scale of 1 with a range is written.
        """
        time = self.flusher_time
        why = f"wbsim capture --cpu: {time.files} files on {time.recording.filesystem}"
        request = self.flusher_time.request_ns / self.desk_request_ns / self.flusher
        block: object = MACHINES[DESK].processors.paths.block
        if self.writer is None:
            writer = f"{{ assumed = 1.0, low = 0.3, high = 3.0, why = {json.dumps(self.why)} }}"
        else:
            writer = f"{{ measured = {self.writer:.3g}, why = {json.dumps(f'{why}, its command')} }}"
        measured = f'{{ measured = {self.flusher:.3g}, why = "{why}" }}'
        paths = [
            f'processors.paths.block.{name} = {{ measured = "{round(getattr(block, name) * request)} ns",'
            f' why = "{why}; the desk\'s shares, times flusher_scale" }}'
            for name in _BLOCK
        ]
        return [f"processors.writer_scale = {writer}", f"processors.flusher_scale = {measured}", *paths]

    def table(self) -> list[str]:
        """Return the costs of the machine and of the desk (us, s), as comment lines above the `lines`."""
        times, recording = self.flusher_time, self.flusher_time.recording
        rows = [
            f"# Linux {recording.kernel}, {recording.filesystem} on {recording.device}: {times.files} files"
            f" of {times.pages / times.files:.1f} pages, {times.requests} requests;"
            f" {recording.event_ns} ns of tracing are subtracted for each event",
            f"# the flusher: {times.file_ns / 1e3:.2f} us a file (desk {self.desk_file_ns / 1e3:.2f}),"
            f" {times.request_ns / 1e3:.2f} us a request (desk {self.desk_request_ns / 1e3:.2f})",
        ]
        if self.desk_program_ns:
            rows.append(
                f"# the command: {recording.program_ns / 1e9:.3f} s of processor time"
                f" (desk's model {self.desk_program_ns / 1e9:.3f} s)"
            )
        return rows


def scales_of(capture: Path) -> Scales:
    """Return the costs of the machine that made the file *capture*; the capture's command is simulated, too.

    Raises:
        BadInput: *capture* cannot be read, was not recorded with --cpu, or has no write by a flusher.  Or its
            files have more than 4 pages on average, the desk lacks its filesystem, or the simulated command
            does not end.
    """
    times = flusher_time(capture)
    paths: Any = MACHINES[DESK].processors.paths
    kind, pages = times.recording.filesystem, times.pages / times.files
    if kind not in paths.filesystems:
        raise bad(
            f"{capture}:1", f"was made on {kind}; capture on one of {', '.join(sorted(paths.filesystems))}"
        )
    if pages > _SMALL:
        raise bad(
            str(capture),
            f"has files of {pages:.0f} pages; capture small files: fs_mark -S0 -n 20000 -s 4096 -d DIR",
        )
    flusher, lists = paths.filesystems[kind].flusher, paths.writeback
    log_ns = flusher.log.commit_ns if hasattr(flusher, "log") else 0
    pages_ns = flusher.page_ns * pages + (flusher.folio_ns or 0)  # one write(2) a file, so one folio
    file_ns = lists.take_ns + lists.inode_ns + lists.requeue_ns + flusher.map_ns + log_ns + pages_ns
    request_ns = sum(getattr(paths.block, name) for name in _BLOCK)
    program_ns, why = _program_ns(times.recording)
    return Scales(times, file_ns, request_ns, program_ns, why)


def _program_ns(recording: Recording) -> tuple[float | None, str]:
    """Return the processor time of the command in the desk's model, or None and why it cannot be run."""
    path = json.dumps(recording.mount_point)
    text = f"""
title = "the command of a capture"
[scenario]
machine.like = "{DESK}"
kernel.like = "6.18"
mounts.captured = {{ disk = "loop0", at = {path}, like = "desk-{recording.filesystem}" }}
programs.captured = {json.dumps(recording.command)}
"""
    try:
        (case,) = parse(text, "the capture's command").cases
    except BadInput as error:
        return None, f"times the desk's; the model cannot run the command: {error}".split("\n")[0]
    program = run_case(case, 1, 0).programs["captured"]
    return (program.system_cpu_time + program.user_cpu_time) * S, ""
