"""Lines that blkparse, ftrace, trace-cmd and perf print around and between the block layer's events."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.experiments.captures.test_readers import Parse, events
from wbsim.experiments.captures import blkparse, ftrace
from wbsim.experiments.captures.events import Event
from wbsim.experiments.captures.line_messages import quoted
from wbsim.experiments.captures.reader import open_capture
from wbsim.experiments.cli import main
from wbsim.experiments.config.problems import BadInput

PACKETS = """\
  8,16   0        0     0.000000000     0  m   N cfq300A insert_request
  8,16   0        1     0.000001000   900  G   N [smartctl]
  8,16   0        2     0.000002000   900  I   R 36 (12 01 00 00 24 00 ..) [smartctl]
  8,16   0        3     0.000003000   900  D   R 36 (12 01 00 00 24 00 ..) [smartctl]
  8,16   0        4     0.000004000   900  C   R (12 01 00 00 24 00 ..) [0]
  8,16   0        5     0.000005000   900  D   N 0 [smartctl]
  8,16   0        6     0.000006000   900  C   N [0]
  8,16   0        7     0.000007000   900  D   N 0 (85 08 0e 00 ..) [smartctl]
  8,16   0        8     0.000008000   901  A   R 2048 + 8 <- (8,17) 0
  8,16   0        9     0.000009000   901  Q   W 2048 + 8 [my [x] y]
  8,16   0       10     0.000010000   903  F   W 2040 + 8 [(null)]
  8,16   0       11     0.000011000   902  S   W 2040 + 8 [kworker/u8:2+flush-8:16]
  8,16   0       12     0.000012000   902  B   W 2040 + 8 [kworker/u8:2+flush-8:16]
  8,16   0       13     0.000013000   901  U   N [my [x] y] 1
  8,16   0       14     0.000014000   901  R   W 2048 + 8 [0]
  8,16   0       15     0.000015000   901  D   D 2048 + 8 [my [x] y]
  8,16   0       16     0.000016000   901  Q FWS [my [x] y]
  8,16   0       17     0.000017000   901  G FWS [my [x] y]
  8,16   0       18     0.000018000   901  I  FN (     900) [my [x] y]
  8,16   0       19     0.000019000   901  D  FN [my [x] y]
  8,16   0       20     0.000020000   901  C  FN 18446744073709551615 [0]
  8,16   0       21     0.000021000   901  C   W 88 + 1 [65531]
"""
"""blkparse 1.2.0 printed these lines from records made by hand."""

SUMMARY = """\
CPU0 (t):
 Reads Queued:           0,        0KiB\t Writes Queued:           2,        4KiB
 PC Reads Compl.:        2\t\t PC Writes Compl.:        0

Throughput (R/W): 0KiB/s / 0KiB/s
Events (t): 29 entries
Skips: 0 forward (0 -   0.0%)
Input file t.blktrace.0 added
"""


def test_blkparse_events_without_sectors_are_passed_over() -> None:
    """Packet commands and flush requests become one kind of event; the bio of an empty flush stays."""
    found = events(blkparse.parse, PACKETS + SUMMARY)
    passed = "without sectors"
    assert [(event.line, event.name) for event in found] == [
        (2, passed), (3, passed), (4, passed), (6, passed), (8, passed), (10, "block_bio_queue"),
        (11, "block_bio_frontmerge"), (14, "block_unplug"), (16, "block_rq_issue"), (17, "block_bio_queue"),
        (18, "block_getrq"), (19, passed), (20, passed),
    ]  # fmt: skip
    assert found[0] == Event(2, 900, 0, passed, "8,16", "N")
    assert found[5] == Event(10, 901, 0, "block_bio_queue", "8,16", "W", 2_048, 8)


@pytest.mark.parametrize("sequence", ["0", "7", "-12", "4294967295"])
def test_a_message_leaves_the_sequence_alone(sequence: str) -> None:
    """The kernel does not set the number of a message, so the number is 0 or a leftover of the buffer."""
    line = "  8,16   0 {:>8}     0.000001000   900  {}\n"
    text = line.format(1, "Q   W 0 + 8 [a]") + line.format(sequence, "m   N hello (there)")
    text += line.format(2, "G   W 0 + 8 [a]")
    assert [event.name for event in events(blkparse.parse, text)] == ["block_bio_queue", "block_getrq"]
    skips = text + line.format(4, "D   W 0 + 8 [a]")
    assert events(blkparse.parse, skips)[2] == Event(4, 0, 0, "lost", size=1)


@pytest.mark.parametrize(
    ("lines", "lost"),
    [
        ([("8,17", 1, "Q"), ("8,16", 2, "A"), ("8,17", 3, "G")], []),  # the partition is traced
        ([("8,16", 1, "Q"), ("8,16", 2, "A"), ("8,16", 3, "G")], []),  # the disk is traced
        ([("8,16", 9, "A"), ("8,17", 1, "Q"), ("8,17", 3, "G")], [1]),  # the remap begins the text
        ([("8,17", 1, "Q"), ("8,16", 4, "A"), ("8,17", 5, "G")], [2]),  # a gap before the remap
        ([("8,17", 1, "Q"), ("8,16", 2, "A"), ("8,17", 5, "G")], [2]),  # a gap after the remap
        ([("8,16", 7, "Q"), ("8,17", 1, "Q"), ("8,16", 2, "A"), ("8,17", 3, "G"), ("8,16", 8, "G")], []),
        ([("8,16", 7, "Q"), ("8,17", 1, "Q"), ("8,16", 8, "A"), ("8,17", 2, "G"), ("8,16", 9, "G")], []),
    ],
)  # fmt: skip
def test_remap_counts_in_the_trace_of_its_origin(lines: list[tuple[str, int, str]], lost: list[int]) -> None:
    """blkparse prints a remap with its target, also in the trace of the partition that the bio comes from."""
    rest = {"A": "A   W 2048 + 8 <- (8,17) 0", "Q": "Q   W 0 + 8 [a]", "G": "G   W 0 + 8 [a]"}
    text = "".join(
        f"  {disk}   0 {n:>8}     0.000001000   900  {rest[action]}\n" for disk, n, action in lines
    )
    assert [event.size for event in events(blkparse.parse, text) if event.name == "lost"] == lost


_Q = "  8,16   0        1     0.000001000   900  Q   W 0 + 8 [a]\n"


@pytest.mark.parametrize(
    "summary",
    [
        SUMMARY,
        "^C" + SUMMARY,
        "fio (1234)\n Reads Queued:   0,  0KiB\n\nkworker (7, ...)\n Reads Queued:  0,   0KiB\nCPU0 (sda):\n",
        "Total (8,0):\n Reads Queued:   0,  0KiB\n",
        "Throughput (R/W): 0KiB/s / 0KiB/s\n",
        "Events (8,0): 1'029 entries\n",
        "Skips: 0 forward (0 -   0.0%)\n",
    ],
)
def test_every_summary_ends_the_events(summary: str) -> None:
    """A summary is by processor, by process (``-s``) or of totals only.

    An event after a summary is refused.
    """
    assert [event.line for event in events(blkparse.parse, _Q + summary)] == [1]
    with pytest.raises(
        BadInput, match="is an event after the summary; give the output of a single run of blkparse"
    ):
        events(blkparse.parse, _Q + summary + _Q)


@pytest.mark.parametrize(
    "note",
    [
        "Input file sda.blktrace.0 added\n", "(8,16): skipping 3 -> 5\n",
        "sector alias (88) on device 8,16!\n",
        "issue not found for (8,16): 2048\n", "complete not found for (8,16): 2048\n",
        "merge not found for (8,16): 2048\n",
    ],
)  # fmt: skip
def test_remarks_of_blkparse_are_passed_over(note: str, tmp_path: Path) -> None:
    """A text that also holds stderr has remarks before and between the events."""
    (tmp_path / "c").write_text(note + _Q + note)
    capture = open_capture(tmp_path / "c")
    assert (capture.format, [event.line for event in capture.events()]) == ("blkparse", [2])


BIO = Event(1, 1_234, 2, "block_bio_queue", "8,16", "W", 2_048, 8)


@pytest.mark.parametrize(
    "line",
    [
        "            fio-1234  [002]  1234.567890: block_bio_queue:      8,16 W 2048 + 8 [fio]",  # trace-cmd
        "            fio-1234  [002] .....  1234.567890: block_bio_queue:      8,16 W 2048 + 8 [fio]",
        "             fio-1234    [002] d..1.  1234.567890123: block_bio_queue: 8,16 W 2048 + 8 [fio]",
        "           <...>-1234  [002]  1234.567890: block_bio_queue: 8,16 W 2048 + 8 [<...>]",
        "             fio-1234    (-------) [002] .....  1234.567890: block_bio_queue: 8,16 W 2048 + 8 [fio]",
        "             fio-1234  (-----) [002]  1234.567890: block_bio_queue: 8,16 W 2048 + 8 [fio]",
        "fio  1234 [002] 1234.567890: block:block_bio_queue: 8,16 W 2048 + 8 [fio]",  # perf script
        "             fio  1234 [002]  1234.567890:     1    block:block_bio_queue: 8,16 W 2048 + 8 [fio]",
        "my fio-2 3  1200/1234  [002]  1234.567890:  block:block_bio_queue: 8,16 W 2048 + 8 [my fio-2 3]",
        "        my fio-2-1234  [002]  1234.567890: block_bio_queue: 8,16 W 2048 + 8 [my fio-2]\r",
    ],
)
def test_each_printer_of_tracepoints_is_read(line: str, tmp_path: Path) -> None:
    """The kernel, trace-cmd and perf differ in padding, flags, TGID and the system's name."""
    (tmp_path / "c").write_text(line + "\n")
    capture = open_capture(tmp_path / "c")
    assert (capture.format, list(capture.events())) == ("ftrace", [BIO])


@pytest.mark.parametrize(
    ("line", "lost"),
    [
        ("CPU:1 [LOST 123 EVENTS]", [(1, 123)]), ("CPU:1 [LOST EVENTS]", [(1, 0)]),
        ("CPU:1 [1234 EVENTS DROPPED]", [(1, 1_234)]), ("CPU:1 [EVENTS DROPPED]", [(1, 0)]),
        ("[EVENTS DROPPED]", [(0, 0)]), ("##### CPU 2 buffer started ####", [(2, 0)]),
        ("# entries-in-buffer/entries-written: 100/200   #P:4", [(0, 100)]),
        ("# entries-in-buffer/entries-written: 200/200   #P:4", []),
        ("fio  1234 [003] 1234.567890: PERF_RECORD_LOST lost 12", [(3, 12)]),
        ("fio  1234 [003] 1234.567890: PERF_RECORD_LOST_SAMPLES lost 7", [(3, 7)]),
        ("cpus=4", []), ("version = 7", []), ("CPU 0 is empty", []),
        ("# TASK-PID    CPU#     TIMESTAMP  FUNCTION", []),
        ("            fio-1234  [002]  1234.567890: block_rq_complete: 8,16 W () 2048 + 8 [0]", []),
        ("            fio-1234  [002]  1234.567890: block_bio_remap: 8,16 W 2048 + 8 <- (8,17) 0", []),
    ],
)  # fmt: skip
def test_losses_of_tracepoints_become_events(line: str, lost: list[tuple[int, int]], tmp_path: Path) -> None:
    """Each marked loss is an event, with its count if the recorder has one.  Headers are passed over."""
    text = f"{line}\n            fio-1234  [002]  1234.567890: block_bio_queue:      8,16 W 2048 + 8 [fio]\n"
    (tmp_path / "c").write_text(text)
    *before, last = open_capture(tmp_path / "c").events()
    assert [(event.name, event.cpu, event.size) for event in before] == [("lost", *loss) for loss in lost]
    assert last == BIO._replace(line=2)


_T = "            fio-1234  [002]  1234.567890: "


def test_tracepoints_without_sectors_are_passed_over() -> None:
    """Packet commands and flush requests have sector 0 or -1.  A write without a sector is refused."""
    passed = Event(1, 1_234, 2, "without sectors", "8,16", "N")
    for fields in (
        "block_rq_issue: 8,16 N 36 (12 01 00 00 24 00) 0 + 0 none,0,0 [smartctl]",
        "block_rq_insert: 8,16 N 0 () 18446744073709551615 + 0 [smartctl]",
        "block_getrq: 8,16 N 0 + 0 [smartctl]",
    ):
        assert events(ftrace.parse, _T + fields) == [passed]
    flush = Event(1, 1_234, 2, "block_bio_queue", "8,16", "FWS")
    assert events(ftrace.parse, f"{_T}block_bio_queue: 8,16 FWS 18446744073709551615 + 0 [a]") == [flush]
    with pytest.raises(BadInput, match="block_bio_queue has no fields; expected: 7,0 W 1053824"):
        events(ftrace.parse, f"{_T}block_bio_queue: 8,16 W 18446744073709551615 + 8 [a]")


@pytest.mark.parametrize("fields", ["block_getrq: ", "block_rq_issue: ", "block_unplug: "])
def test_fields_that_trace_cmd_cannot_print_are_refused(fields: str) -> None:
    """The error asks for the text that the kernel prints."""
    with pytest.raises(BadInput, match="trace-cmd could not print them; give the text of /sys/kernel"):
        events(ftrace.parse, f"{_T}{fields}[FAILED TO PARSE] dev=8388624 sector=2048")


@pytest.mark.parametrize(("parse", "event"), [(blkparse.parse, _Q), (ftrace.parse, f"{_T}block_plug: [a]\n")])
@pytest.mark.parametrize("remark", ["...", "[...]", "Here it flushes (see below):", "[snip]", "\u2026"])
def test_a_listing_with_cuts_is_refused(parse: Parse, event: str, remark: str) -> None:
    """The error names the line, repeats it, and says that a capture must be complete."""
    with pytest.raises(BadInput) as caught:
        events(parse, event + remark + "\n" + event)
    message = str(caught.value)
    assert message.startswith("c:2: is not a line of ")
    assert f": {remark!r}; a capture must be complete" in message


def test_a_listing_that_begins_with_prose_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The status is 2, and the error has the line and its text."""
    path = tmp_path / "c"
    path.write_text("\nWe see the following:\n" + _Q)
    assert main(["replay", str(path)]) == 2
    assert (
        f"{path}:2: is neither a line of ftrace nor of blkparse's default format: 'We see the following:'"
        in capsys.readouterr().err
    )


def test_a_message_repeats_the_beginning_of_a_long_line() -> None:
    """The message has the first 60 characters, with escapes for unprintable ones."""
    assert quoted("  a\x00b\n") == r"'a\x00b'"
    assert quoted("x" * 60) == f"'{'x' * 60}'"
    assert quoted("x" * 61) == f"'{'x' * 60}' ..."
