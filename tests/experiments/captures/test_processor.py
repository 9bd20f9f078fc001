"""A flusher's processor time in captures with known times, and the costs that follow from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from tests.experiments.outcomes import RUN
from wbsim.experiments.captures.processor import flusher_time
from wbsim.experiments.cli import main
from wbsim.experiments.config.experiment import load
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.machines import costs
from wbsim.experiments.machines.costs import scales_of
from wbsim.models.catalogue.machines import MACHINES

COMMAND = "fs_mark -k -S0 -n 200 -s 4096 -d /mnt/x/a"
EVENT_NS: Final = 200
"""The time of tracing an event."""
HEAD = (
    f"# kernel 6.18.44 scheduler none device 7,0 event_ns {EVENT_NS} program_ns 9000000"
    " filesystem {kind} at /mnt/x\n"
    f"# command: {COMMAND}\n"
)


class Text:
    """A capture that is written event by event.

    Arguments that end in ``_us`` are times since the event before.  The time stamps begin at 5 s.
    """

    def __init__(self, kind: str = "xfs") -> None:
        self.lines = [HEAD.format(kind=kind)]
        self.us = 5_000_000

    def event(self, after_us: int, name: str, fields: str = "", pid: int = 70) -> None:
        """Add an event of the task *pid*."""
        self.us += after_us
        seconds, micros = divmod(self.us, 1_000_000)
        task = f"kworker/u8:1-{pid}"
        self.lines.append(f"{task:>22}    [001] ..... {seconds}.{micros:06}: {name}: {fields}\n")

    def switch(self, after_us: int, leaves: int, comes: int) -> None:
        """Add a switch from task *leaves* to task *comes*."""
        fields = f"prev_comm=a b prev_pid={leaves} prev_prio=120 prev_state=R+ ==> next_comm=kworker/u8:1"
        self.event(after_us, "sched_switch", f"{fields} next_pid={comes} next_prio=120", leaves)

    def start(self, after_us: int, bdi: str = "7:0", pid: int = 70) -> None:
        """Add the beginning of a flusher's work on *bdi*."""
        self.event(after_us, "writeback_start", f"bdi {bdi}: sb_dev 0:0 nr_pages=8 reason=sync", pid)

    def file(self, queue_us: int, merge_us: int, end_us: int, pages: int = 1, pid: int = 70) -> None:
        """Add a file whose bio merges: the bio is queued and merged, and the visit of the inode ends."""
        self.event(queue_us, "block_bio_queue", "7,0 W 8 + 8 [kworker/u8:1]", pid)
        self.event(merge_us, "block_bio_backmerge", "7,0 W 8 + 8 [kworker/u8:1]", pid)
        self.event(end_us, "writeback_single_inode", f"bdi 7:0: ino=1 wrote={pages} cgroup_ino=1", pid)

    def request(self, get_us: int, plug_us: int, pid: int = 70) -> None:
        """Add a request that goes into the plug."""
        self.event(get_us, "block_getrq", "7,0 W 8 + 8 [kworker/u8:1]", pid)
        self.event(plug_us, "block_plug", "[kworker/u8:1]", pid)

    def save(self, folder: Path) -> Path:
        """Write the capture into *folder* and return its path."""
        path = folder / "c.trace"
        path.write_text("".join(self.lines))
        return path


def test_time_between_two_events_belongs_to_the_second(tmp_path: Path) -> None:
    """Time of other tasks and of tracing is subtracted.

    Time before writeback_start and up to writeback_written belongs to no file and no request.
    """
    text = Text()
    text.event(3, "block_bio_queue", "7,0 W 8 + 8 [x]")  # no file: the task is not a flusher yet
    text.start(1_000)
    text.file(7, 1, 2)
    text.switch(1, 70, 9)
    text.switch(50, 9, 70)
    text.file(8, 1, 2)  # its first event comes after 59 us, of which the flusher ran 1 + 8
    text.request(3, 1)
    text.event(4, "block_rq_complete", "7,0 W () 8 + 8 [0]")  # an interrupt does not end the flusher's step
    text.event(2, "block_unplug", "[kworker/u8:1] 1")
    text.event(5, "block_rq_issue", "7,0 W 4096 () 8 + 8 be,0,4 [kworker/u8:1]")
    text.event(9, "writeback_written", "bdi 7:0: nr_pages=6")  # these 9 us count nowhere
    text.event(400, "block_unplug", "[kworker/u8:1] 1")
    found = flusher_time(text.save(tmp_path))
    assert (found.files, found.pages, found.requests) == (2, 2, 1)
    first_us, second_us = 7 + 1 + 2, (1 + 8) + 1 + 2
    assert found.file_ns == pytest.approx((first_us + second_us) * 1_000 / 2 - 3 * EVENT_NS)
    get_us, plug_us, unplug_us, issue_us, last_unplug_us = 3, 1, 4 + 2, 5, 400
    request_us = get_us + plug_us + unplug_us + issue_us + last_unplug_us
    assert found.request_ns == pytest.approx(request_us * 1_000 - 5 * EVENT_NS)
    assert found.recording.program_ns == 9_000_000
    assert found.recording.command == COMMAND


def test_each_flusher_has_its_own_times(tmp_path: Path) -> None:
    """Work of a flusher for another device is left out."""
    text = Text()
    text.start(0)
    text.start(0, pid=71)
    text.event(4, "block_bio_queue", "7,0 W 8 + 8 [x]", 70)
    text.event(2, "block_bio_queue", "7,0 W 8 + 8 [x]", 71)
    text.event(1, "writeback_single_inode", "bdi 7:0: ino=1 wrote=3 cgroup_ino=1", 71)
    text.event(1, "writeback_single_inode", "bdi 7:0: ino=1 wrote=1 cgroup_ino=1", 70)
    text.event(1, "writeback_single_inode", "bdi 7:0: ino=1 wrote=0 cgroup_ino=1", 70)
    text.request(1, 1)
    text.start(30, "8:0")
    text.file(90, 90, 90)
    found = flusher_time(text.save(tmp_path))
    assert (found.files, found.pages, found.requests) == (2, 4, 1)
    assert found.file_ns == pytest.approx((4 + 6 + 1 + 4 + 1) * 1_000 / 2 - 2.5 * EVENT_NS)


_LISTS_NS = {"take_ns": 150, "inode_ns": 300, "requeue_ns": 150}
_PAGES_NS = {"page_ns of 4 pages": 4 * 2, "folio_ns": 620}
DESK_FILE_NS: Final = {
    "xfs": {**_LISTS_NS, "log.commit_ns": 150, "map_ns": 10_200, **_PAGES_NS},
    "ext4": {**_LISTS_NS, "map_ns": 8_400, **_PAGES_NS},
}
"""The flusher's times for a file of 4 pages on the desk, by key."""


@pytest.mark.parametrize("kind", ["xfs", "ext4"])
def test_desk_costs_are_scaled_to_the_capture(kind: str, tmp_path: Path) -> None:
    """The flusher's scale is the captured time of a file divided by the desk's.

    The writer's scale is the captured time of the command divided by its time in the model.
    """
    text = Text(kind)
    text.start(0)
    for _ in range(20):
        text.file(20, 1, 2, pages=4)
    for _ in range(4):
        text.request(3, 1)
    found = scales_of(text.save(tmp_path))
    desk_ns = sum(DESK_FILE_NS[kind].values())
    assert found.desk_file_ns == desk_ns
    assert found.flusher == pytest.approx(((20 + 1 + 2) * 1_000 - 3 * EVENT_NS) / desk_ns)
    assert found.desk_program_ns is not None
    assert found.writer == pytest.approx(9_000_000 / found.desk_program_ns)
    own = tmp_path / "mine.toml"
    own.write_text("\n".join(['like = "desk-vm"', *found.lines()]))
    config = tmp_path / "x.toml"
    config.write_text(
        'title = "t"\n[scenario]\nmachine.like = "./mine.toml"\nkernel.like = "6.18"\n'
        f'mounts.x = {{ like = "desk-{kind}", disk = "loop0", at = "/mnt/x" }}\nprograms.p = "{COMMAND}"\n'
    )
    (case,) = load(config).cases
    processors: Any = case.scenario.machine.processors
    assert processors.flusher_scale == pytest.approx(found.flusher, rel=0.01)
    assert processors.writer_scale == pytest.approx(found.writer, rel=0.01)
    assert processors.provenance("writer_scale").origin.value == "measured"
    block = processors.paths.block
    total_ns = (block.request_ns + block.insert_ns + block.dispatch_ns) * processors.flusher_scale
    assert total_ns == pytest.approx((3 + 1) * 1_000 - 2 * EVENT_NS, rel=0.01)
    desk: Any = MACHINES["desk-vm"].processors.paths.block
    assert block.request_ns / block.insert_ns == pytest.approx(desk.request_ns / desk.insert_ns, rel=0.01)


def test_modelled_time_of_a_command_is_system_plus_user_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model takes 2.25 s and 0.5 s, the capture 0.009 s.

    The time of the capture comes from getrusage(2), and is also system plus user time.
    """
    ran = replace(RUN, programs={"captured": RUN.programs["mark"]})
    monkeypatch.setattr(costs, "run_case", lambda *_: ran)
    text = Text()
    text.start(0)
    text.file(10, 1, 1)
    text.request(2, 1)
    found = scales_of(text.save(tmp_path))
    assert found.desk_program_ns == 2.75e9
    assert found.writer == pytest.approx(0.009 / 2.75)


def test_costs_are_printed_and_written_to_a_machine_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`wbsim calibrate` prints them, and `wbsim describe-machine` adds them to a machine file."""
    text = Text()
    text.lines[0] = HEAD.format(kind="xfs").replace(COMMAND, "tar xf x.tar")
    text.start(0)
    text.file(10, 1, 1, pages=2)
    text.request(2, 1)
    capture = text.save(tmp_path)
    assert main(["calibrate", "--from", str(capture)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == (
        "# Linux 6.18.44, xfs on 7,0: 1 files of 2.0 pages, 1 requests; 200 ns of tracing are subtracted for"
        " each event"
    )
    assert printed[1] == "# the flusher: 11.40 us a file (desk 11.57), 2.60 us a request (desk 0.90)"
    assert printed[2].startswith(
        "processors.writer_scale = { assumed = 1.0, low = 0.3, high = 3.0,"
        " why = \"times the desk's; the model cannot run the command: "
    )
    assert main(["describe-machine", "--costs", str(capture)]) == 0
    assert "\n".join(printed[2:]) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("event_ns 200 ", ""), ":1: lacks event_ns; record the capture with wbsim capture --cpu"),
        (
            ("program_ns 9", "program_ns x9"),
            ":1: program_ns: 'x9000000' is not a whole number; record the capture with",
        ),
        (("# command", "# cmd"), ":2: lacks the command"),
        (("filesystem xfs", "filesystem btrfs"), ":1: was made on btrfs; capture on one of ext4, xfs"),
        (("wrote=1", "wrote=5"), "has files of 5 pages; capture small files"),
        (("bdi 7:0", "bdi 8:0"), "has no write by a flusher of 7,0;"),
    ],
)
def test_capture_without_costs_is_refused(change: tuple[str, str], told: str, tmp_path: Path) -> None:
    """The error states what to record instead."""
    text = Text()
    text.start(0)
    text.file(10, 1, 1)
    text.request(2, 1)
    path = text.save(tmp_path)
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(BadInput) as refused:
        scales_of(path)
    assert told in str(refused.value)


def test_flusher_is_not_charged_while_switched_out(tmp_path: Path) -> None:
    """A flusher is switched out for 50 us and for 30 us between two of its events.

    The two files take 10 us and 14 us on the processor.
    """
    text = Text()
    text.start(1000)
    text.file(7, 1, 2)
    text.request(1, 1)
    text.switch(1, 70, 9)
    text.switch(50, 9, 70)
    text.switch(2, 70, 9)
    text.switch(30, 9, 70)
    text.file(8, 1, 2)
    assert flusher_time(text.save(tmp_path)).file_ns == (10 + 14) * 1_000 / 2 - 3 * EVENT_NS
