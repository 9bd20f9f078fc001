"""`wbsim calibrate --from`: what a capture with ``--cpu`` says of a machine's processors, for a machine file.

The paths of the desk (docs/measurements.md H) keep their proportions.  ``flusher_scale`` is the flusher's
time a file over the desk's; the block layer's paths are the capture's time a request; ``writer_scale`` is
the command's processor time over what the desk's model takes for the same command.
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
"""Pages a file, at most: of larger ones the capture does not tell how often blocks were given."""
_BLOCK: Final = ("request_ns", "insert_ns", "dispatch_ns")


class Scales(NamedTuple):
    """A machine's costs beside the desk's (ns): of the flusher per file and per request, and of the command's
    processor time (None: the model cannot run it, for the reason in ``why``).
    """

    found: FlusherTime
    desk_file_ns: float
    desk_request_ns: float
    desk_program_ns: float | None
    why: str

    @property
    def flusher(self) -> float:
        """``flusher_scale``."""
        return self.found.file_ns / self.desk_file_ns

    @property
    def writer(self) -> float | None:
        """``writer_scale``."""
        return self.found.recording.program_ns / self.desk_program_ns if self.desk_program_ns else None

    def lines(self) -> list[str]:
        """The keys for a machine file that is like the desk."""
        why = f"wbsim capture --cpu: {self.found.files} files on {self.found.recording.filesystem}"
        request = self.found.request_ns / self.desk_request_ns / self.flusher
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
        """What was found beside the desk's, for people."""
        found, of = self.found, self.found.recording
        rows = [
            f"# Linux {of.kernel}, {of.filesystem} on {of.device}: {found.files} files of"
            f" {found.pages / found.files:.1f} pages, {found.requests} requests;"
            f" tracing's own {of.event_ns} ns an event are taken off",
            f"# the flusher: {found.file_ns / 1e3:.2f} us a file (desk {self.desk_file_ns / 1e3:.2f}),"
            f" {found.request_ns / 1e3:.2f} us a request (desk {self.desk_request_ns / 1e3:.2f})",
        ]
        if self.desk_program_ns:
            rows.append(
                f"# the command: {of.program_ns / 1e9:.3f} s of processor time"
                f" (desk's model {self.desk_program_ns / 1e9:.3f} s)"
            )
        return rows


def scales_of(capture: Path) -> Scales:
    """The costs that *capture* tells.

    Raises:
        BadInput: it was not recorded with --cpu, of a filesystem that the desk has not, or of large files.
    """
    found = flusher_time(capture)
    paths: Any = MACHINES[DESK].processors.paths
    kind, pages = found.recording.filesystem, found.pages / found.files
    if kind not in paths.filesystems:
        raise bad(f"{capture}:1", f"is of {kind}; capture on one of {', '.join(sorted(paths.filesystems))}")
    if pages > _SMALL:
        raise bad(
            str(capture),
            f"its files have {pages:.0f} pages each; capture small ones: fs_mark -S0 -n 20000 -s 4096 -d DIR",
        )
    flusher, lists = paths.filesystems[kind].flusher, paths.writeback
    log_ns = flusher.log.commit_ns if hasattr(flusher, "log") else 0
    pages_ns = flusher.page_ns * pages + (flusher.folio_ns or 0)  # one write(2) made them: one folio
    file_ns = lists.take_ns + lists.inode_ns + lists.requeue_ns + flusher.map_ns + log_ns + pages_ns
    request_ns = sum(getattr(paths.block, name) for name in _BLOCK)
    program_ns, why = _program_ns(found.recording)
    return Scales(found, file_ns, request_ns, program_ns, why)


def _program_ns(of: Recording) -> tuple[float | None, str]:
    """What the command's program takes in the desk's model, or why it cannot be run there."""
    text = f"""
title = "the command of a capture"
[scenario]
machine.like = "{DESK}"
kernel.like = "6.18"
mounts.captured = {{ disk = "loop0", at = {json.dumps(of.at)}, like = "desk-{of.filesystem}" }}
programs.captured = {json.dumps(of.command)}
"""
    try:
        (case,) = parse(text, "the capture's command").cases
    except BadInput as error:
        return None, f"times the desk's; the model cannot run the command: {error}".split("\n")[0]
    program = run_case(case, 1, 0).programs["captured"]
    return (program.system_cpu_time + program.user_cpu_time) * S, ""
