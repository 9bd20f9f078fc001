"""Small texts by hand with each kind of line of each format, and lines that are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from wbsim.experiments.captures import blkparse, ftrace
from wbsim.experiments.captures.events import Event, header_of, rwbs_of
from wbsim.experiments.config.problems import BadInput, bad

Parse = Callable[[Iterator[tuple[int, str]], Callable[[int, str], BadInput]], Iterator[Event]]


def events(parse: Parse, text: str) -> list[Event]:
    """Return the events that *parse* yields for *text*."""
    lines = enumerate(text.splitlines(keepends=True), 1)
    return list(parse(iter(lines), lambda number, message: bad(f"c:{number}", message)))


BLKPARSE = """\
# a comment

  7,0    1        1     0.000000000 20527  Q  WS 32 + 16 [fs_mark]
  7,0    1        2     0.000000001 20527  X  WS 32 / 40 [fs_mark]
  7,0    1        3     0.000000002 20527  G  WS 32 + 8 [fs_mark]
  7,0    1        4     0.000000003 20527  P   N [fs_mark]
  7,0    1        5     0.000000004 20527  M  WS 40 + 8 [fs_mark]
  7,0    1        6     0.000000005 20527  F   W 24 + 8 [fs_mark]
  7,0    0        9     0.000000006    14  C  WS 32 + 8 [0]
  7,0    1        7     0.000000007 20527  U   N [fs_mark] 3
  7,0    1        8     0.000000008 20527 UT   N [fs_mark] 1
  7,0    1        9     0.000000009 20527  I  WS 24 + 24 [fs_mark]
  7,0    1       12     0.000000010 20527  D  WS 24 + 24 (    4100) [fs_mark]
  7,0    0       10     0.000000011 20527  m   N cfq20527 insert_request
  8,16   1       99     0.000000012     7  G   D 0 + 2048 [fstrim]
  7,0    1       11     0.000000013 20527  Q FWFS [fs_mark]
CPU0 (bp):
 Reads Queued:          41,      148KiB
"""


def test_blkparse_lines_become_events() -> None:
    """Bios, requests and plugs are read up to the summary.

    A sequence number that jumps from 9 to 12 shows two lost events, and a step back shows no loss.  Each
    device and each processor has its own sequence.  A flush has no sectors.
    """
    pid, cpu, disk = 20_527, 1, "7,0"
    assert events(blkparse.parse, BLKPARSE) == [
        Event(3, pid, cpu, "block_bio_queue", disk, "WS", 32, 16),
        Event(4, pid, cpu, "block_split", disk, "WS", 32, 40),
        Event(5, pid, cpu, "block_getrq", disk, "WS", 32, 8),
        Event(6, pid, cpu, "block_plug", disk),
        Event(7, pid, cpu, "block_bio_backmerge", disk, "WS", 40, 8),
        Event(8, pid, cpu, "block_bio_frontmerge", disk, "W", 24, 8),
        Event(10, pid, cpu, "block_unplug", disk, size=3, asleep=False),
        Event(11, pid, cpu, "block_unplug", disk, size=1, asleep=True),
        Event(12, pid, cpu, "block_rq_insert", disk, "WS", 24, 24),
        Event(13, 0, cpu, "lost", size=2),
        Event(13, pid, cpu, "block_rq_issue", disk, "WS", 24, 24),
        Event(15, 7, 1, "block_getrq", "8,16", "D", 0, 2_048),
        Event(16, pid, cpu, "block_bio_queue", disk, "FWFS", 0, 0),
    ]


FTRACE = """\
# tracer: nop
#
# entries-in-buffer/entries-written: 12/15   #P:2
         fs_mark-20527   [001] ..... 15110.264608: block_bio_queue: 7,0 RM 32 + 16 [fs_mark]
     my task-1-20528   (  20528) [000] d..1. 15110.264609: block_split: 7,0 W 32 / 40 [my task-1]
         fs_mark-20527   [001] ..... 15110.264610: block_getrq: 7,0 RM 32 + 8 [fs_mark]
         fs_mark-20527   [001] ..... 15110.264611: block_bio_backmerge: 7,0 RM 40 + 8 [fs_mark]
         fs_mark-20527   [001] ..... 15110.264612: block_bio_frontmerge: 7,0 RM 24 + 8 [fs_mark]
         fs_mark-20527   [001] ..... 15110.264613: block_plug: [fs_mark]
         fs_mark-20527   [001] ..... 15110.264614: block_unplug: [fs_mark] 7
         fs_mark-20527   [001] ..... 15110.264615: block_rq_insert: 7,0 W 12288 () 24 + 24 be,0,4 [fs_mark]
         fs_mark-20527   [001] ..... 15110.264616: block_rq_issue: 7,0 W 12288 () 24 + 24 be,0,4 [fs_mark]
         fs_mark-20527   [001] ..... 15110.264617: block_rq_merge: 7,0 WS 12288 () 48 + 8 be,0,4 [fs_mark]
     ksoftirqd/0-14      [000] ..s.. 15110.264668: block_rq_complete: 7,0 RM () 32 + 8 be,0,4 [0]
CPU:1 [LOST 100 EVENTS]
CPU:0 [LOST EVENTS]

        flush-9-31       [000] ..... 15110.264700: writeback_start: bdi 7:0: sb_dev 0:0 nr_pages=1
"""


def test_ftrace_lines_become_events() -> None:
    """Bios, requests, plugs and losses are read, and other events are skipped.

    The header shows three events that were overwritten.
    """
    pid, disk = 20_527, "7,0"
    assert events(ftrace.parse, FTRACE) == [
        Event(3, 0, 0, "lost", size=3),
        Event(4, pid, 1, "block_bio_queue", disk, "RM", 32, 16),
        Event(5, 20_528, 0, "block_split", disk, "W", 32, 40),
        Event(6, pid, 1, "block_getrq", disk, "RM", 32, 8),
        Event(7, pid, 1, "block_bio_backmerge", disk, "RM", 40, 8),
        Event(8, pid, 1, "block_bio_frontmerge", disk, "RM", 24, 8),
        Event(9, pid, 1, "block_plug"),
        Event(10, pid, 1, "block_unplug", size=7),
        Event(11, pid, 1, "block_rq_insert", disk, "W", 24, 24),
        Event(12, pid, 1, "block_rq_issue", disk, "W", 24, 24),
        Event(13, pid, 1, "block_rq_merge", disk, "WS", 48, 8),
        Event(15, 0, 1, "lost", size=100),
        Event(16, 0, 0, "lost", size=0),
    ]


def test_buffer_with_all_entries_lost_nothing() -> None:
    """The header has as many entries in the buffer as were written."""
    assert events(ftrace.parse, "# entries-in-buffer/entries-written: 12/12   #P:2\n") == []


_B = "  7,0    1        1     0.000000000 20527  "
_F = "         fs_mark-20527   [001] ..... 15110.264608: "


@pytest.mark.parametrize(
    ("parse", "line", "message"),
    [
        (
            blkparse.parse, "7,0 W 3 + 4",
            "c:1: is not a line of blkparse's default format: '7,0 W 3 + 4'; a capture must be complete:"
            " give the tool's output without cuts or remarks",
        ),
        (blkparse.parse, f"{_B}Q  WS 32 16", "c:1: Q has no place; expected: sector + sectors [task]"),
        (blkparse.parse, f"{_B}D  WS 32 16", "c:1: D has no place; expected: sector + sectors [task]"),
        (blkparse.parse, f"{_B}UT   N [x]", "c:1: UT has no count; expected: [task] 1"),
        (
            blkparse.parse, f"{_B}D  WS 32 + 16 [fs_mark] # the flusher",
            "c:1: D is followed by '# the flusher'; remove this text from the line",
        ),
        (
            blkparse.parse, f"{_B}Q FWS [fs_mark] <- flush",
            "c:1: Q is followed by '<- flush'; remove this text from the line",
        ),
        (
            blkparse.parse, f"{_B}U   N [fs_mark] 7 // full",
            "c:1: U is followed by '// full'; remove this text from the line",
        ),
        (
            ftrace.parse, "hello",
            "c:1: is not a line of an ftrace text (TASK-PID [CPU] FLAGS TIMESTAMP: event: fields): 'hello';"
            " a capture must be complete: give the tool's output without cuts or remarks",
        ),
        (
            ftrace.parse, f"{_F}block_getrq: 7,0 W 32",
            "c:1: block_getrq has no fields; expected: 7,0 W 1053824 + 8 [task]",
        ),
        (
            ftrace.parse, f"{_F}block_rq_issue: 7,0 W 32",
            "c:1: block_rq_issue has no fields; expected: 7,0 W 12288 () 536 + 24 be,0,4 [task]",
        ),
        (
            ftrace.parse, f"{_F}block_getrq: 7,0 W 32 + 8 [fs_mark] ; one page",
            "c:1: block_getrq is followed by '; one page'; remove this text from the line",
        ),
        (
            ftrace.parse, f"{_F}block_rq_issue: 7,0 W 12288 () 536 + 24 be,0,4 [fs_mark] (late)",
            "c:1: block_rq_issue is followed by '(late)'; remove this text from the line",
        ),
        (
            ftrace.parse, f"{_F}block_unplug: [fs_mark] 7 # full",
            "c:1: block_unplug is followed by '# full'; remove this text from the line",
        ),
        (
            ftrace.parse, f"{_F}block_unplug: [x]",
            "c:1: block_unplug has no count; expected: [task] 1",
        ),
    ],
)  # fmt: skip
def test_malformed_line_is_refused(parse: Parse, line: str, message: str) -> None:
    """The error has the place and the expected form."""
    with pytest.raises(BadInput) as caught:
        events(parse, line)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("letters", "op", "sync", "flushes"),
    [
        ("R", "R", True, False), ("RA", "R", True, False), ("W", "W", False, False),
        ("WS", "W", True, False), ("WSM", "W", True, False), ("WFS", "W", True, True),
        ("FWFS", "W", True, True), ("FWS", "W", True, True), ("F", "F", True, True),
        ("FF", "F", True, True), ("FW", "W", False, True), ("D", "D", False, False), ("DS", "D", True, False),
        ("DE", "DE", False, False), ("DES", "DE", True, False), ("ZE", "ZE", False, False),
        ("RM", "R", True, False), ("N", "N", False, False),
    ],
)  # fmt: skip
def test_letters_of_a_bio_give_operation_and_flags(letters: str, op: str, sync: bool, flushes: bool) -> None:
    """Flags stand before and after the operation.  Reads and bare flushes are synchronous."""
    assert tuple(rwbs_of(letters)) == (op, sync, "M" in letters, flushes)


HEADERS: list[tuple[str, dict[str, Any]]] = [
    ("# kernel 6.18", {"kernel": "6.18"}),
    ("# scheduler none nomerges 2", {"scheduler": "none", "nomerges": 2}),
    (
        "# max_sectors_kb 64 max_segments 7 discard_max_bytes 4096",
        {"max_sectors_kb": 64, "max_segments": 7, "discard_max_bytes": 4_096},
    ),
    ("# mkfs 'it is' kernel 3.11", {"kernel": "3.11"}),
    ("# it's kernel 3.11", {"kernel": "3.11"}),  # the apostrophe opens no quotation
    ("# device 7:0", {"device": "7,0"}),
    ("kernel 6.18", {}),
    ("# fs xfs", {}),
]


@pytest.mark.parametrize(("line", "says"), HEADERS)
def test_header_is_read_word_by_word(line: str, says: dict[str, Any]) -> None:
    """Unknown words are skipped.  A line without # is no header."""
    found = header_of(line, "c:1")
    assert {name: value for name, value in vars(found).items() if value is not None} == says


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("# nomerges two", "c:1: nomerges: 'two' is not a whole number; give a complete capture"),
        ("# device seven", "c:1: device: 'seven' is not a device; write it as MAJ,MIN, such as 7,0"),
    ],
)
def test_header_with_a_bad_value_is_refused(line: str, message: str) -> None:
    """The error names the key."""
    with pytest.raises(BadInput) as caught:
        header_of(line, "c:1")
    assert str(caught.value) == message
