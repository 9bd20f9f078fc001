"""Captures of Linux 6.18, replayed bio by bio: each decision is the kernel's."""

from __future__ import annotations

import gzip
import json
import lzma
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from wbsim.experiments.captures import report as report_module
from wbsim.experiments.captures.conditions import Options, conditions_of
from wbsim.experiments.captures.events import Header, header_of, rwbs_of
from wbsim.experiments.captures.merge_decisions import Emptied, Piece, Placed, steps_of
from wbsim.experiments.captures.reader import open_capture
from wbsim.experiments.captures.replay import replay
from wbsim.experiments.captures.verdict import Verdict
from wbsim.experiments.captures.what_if import Issued, what_if
from wbsim.experiments.cli import main
from wbsim.experiments.config.problems import BadInput
from wbsim.models.block.spec import PlugRules
from wbsim.models.catalogue.kernels import PLUG_RULES, era_of

CAPTURES = Path(__file__).parents[2] / "captures"
EVERY = sorted(CAPTURES.glob("*.trace.xz"))
GIVEN = {
    "fiorand-xfs": (3_152, 2_909),
    "fsmark-ext4": (23_262, 167),
    "fsmark-xfs-ag2": (20_228, 781),
    "fsmark-xfs-ag8": (40_773, 20_629),
    "untar-xfs": (9_998, 4_802),
}
"""The decisions and full flushes of the captures that were given to the project.

All other captures were recorded with `wbsim capture`.
"""


def judged(path: Path, changes: Mapping[str, Any] | None = None, options: Options | None = None) -> Verdict:
    """Return the verdict on *path*, with *changes* of the rules of its era."""
    capture = open_capture(path)
    of = conditions_of(capture, options or Options())
    rules: PlugRules = PLUG_RULES[of.era].model_copy(update=dict(changes or {}))
    return replay(steps_of(capture.events(), of.scheduler), rules, of.limits, of.scheduler, of.device)


@cache
def as_captured(path: Path) -> Verdict:
    """Return the verdict on *path* under the capture's own rules; each capture is replayed once."""
    return judged(path)


def named(name: str) -> Path:
    """Return the path of a committed capture."""
    return CAPTURES / f"{name}.trace.xz"


def text_of(name: str) -> str:
    """Return the text of a committed capture."""
    with lzma.open(named(name), "rt") as file:
        return file.read()


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.name.split(".")[0])
def test_every_decision_and_full_flush_equals_the_kernel_s(path: Path) -> None:
    """All decisions are judged.  At most 1 % of them concern a request in dispatch, which no event shows."""
    verdict = as_captured(path)
    assert verdict.mismatches == []
    assert verdict.agrees
    assert verdict.requests_simulated == verdict.requests_kernel
    assert verdict.decisions_total >= max(verdict.bios, 200)
    assert verdict.unjudged == verdict.full_flush_unknown == 0
    assert verdict.in_dispatch <= 0.01 * verdict.decisions_total


def test_given_captures_hold_97413_decisions() -> None:
    """The numbers were counted with grep, so no decision is left out."""
    verdicts = {name: as_captured(named(name)) for name in GIVEN}
    assert {name: (v.decisions_total, v.full_flush_total) for name, v in verdicts.items()} == GIVEN
    assert sum(verdict.decisions_equal for verdict in verdicts.values()) == 97_413


@pytest.mark.parametrize(
    ("changes", "of"),
    [
        ({"flush_of": "newest"}, "edges"),
        ({"max_requests": 31}, "btrfs"),
        ({"max_requests": 33}, "btrfs"),
        ({"flush_bytes": 124 * 1024}, "edges"),
        ({"flush_bytes": 132 * 1024}, "edges"),
        ({"tried": "all"}, "max64"),
        ({"tried": "oldest"}, "fsmark-xfs-ag2"),
    ],
    ids=str,
)
def test_planted_error_shows_as_mismatches(changes: dict[str, Any], of: str) -> None:
    """Each mismatch has the line of the kernel's decision."""
    verdict = judged(named(of), changes)
    assert not verdict.agrees
    lines = text_of(of).splitlines()
    for mismatch in verdict.mismatches:
        assert "block_getrq" in lines[mismatch.line - 1] or "merge" in lines[mismatch.line - 1]


def test_wrong_limits_show_as_mismatches(tmp_path: Path) -> None:
    """The events are replayed under a header with half of max_sectors_kb."""
    text = text_of("max64")
    (tmp_path / "wrong").write_text(text.replace("max_sectors_kb 64", "max_sectors_kb 32", 1))
    assert not judged(tmp_path / "wrong").agrees


def test_replay_needs_the_scheduler_of_the_capture(tmp_path: Path) -> None:
    """Bios merge in a full mq-deadline queue.  A replay without a scheduler misses these merges."""
    text = text_of("deadline-full")
    (tmp_path / "wrong").write_text(text.replace("scheduler mq-deadline", "scheduler none", 1))
    assert not judged(tmp_path / "wrong").agrees


def test_blkparse_text_gives_the_verdict_of_ftrace_text() -> None:
    """The text is blkparse's print of the events in the capture max64."""
    options = Options(max_sectors_kb=64, max_segments=128)
    assert judged(CAPTURES / "max64.blkparse.gz", options=options) == judged(named("max64"))


def test_packed_capture_gives_the_verdict_of_plain_text(tmp_path: Path) -> None:
    """The text is plain, or packed with gzip or xz."""
    text = text_of("btrfs").encode()
    (tmp_path / "plain").write_bytes(text)
    (tmp_path / "packed").write_bytes(gzip.compress(text))
    assert judged(tmp_path / "plain") == judged(tmp_path / "packed") == judged(named("btrfs"))


# -- what a capture shows --------------------------------------------------------------------------------

HEAD = "# kernel 6.18.44 scheduler none nomerges 0 max_sectors_kb 1280 max_segments 128 device 7,0\n"


def line(event: str, fields: str = "", task: str = "flush-9", stamp: str = "1.000001") -> str:
    """Return one line of an ftrace text."""
    return f"  {task}   [000] .....  {stamp}: {event}: {fields}\n"


def bio(sector: int, fate: str, op: str = "W", task: str = "flush-9", sectors: int = 8) -> str:
    """Return the lines of a bio that is queued, and of the decision *fate* on it."""
    fields = f"7,0 {op} {sector} + {sectors} [flush]"
    return line("block_bio_queue", fields, task) + line(fate, fields, task)


PLUG, FLUSHED = line("block_plug", "[flush]"), line("block_unplug", "[flush] 1")
DIRECT = line("block_rq_issue", "7,0 W 4096 () 0 + 8 be,0,4 [flush]")
INSERTED = line("block_rq_insert", "7,0 W 4096 () 0 + 8 be,0,4 [flush]")


def placed(path: Path, text: str) -> list[tuple[bool, bool | None]]:
    """Return whether each new request of *text* went into the plug, and whether it flushed the plug."""
    path.write_text(HEAD + text)
    steps = steps_of(open_capture(path).events(), "none")
    return [(step.plugged, step.flushed) for step in steps if isinstance(step, Placed)]


@pytest.mark.parametrize(
    ("then", "second"),
    [
        (FLUSHED + DIRECT + PLUG, (True, True)),  # the second flushed the first, and opens the next plug
        (FLUSHED + INSERTED + PLUG, (True, None)),  # inserted: the task slept before it plugged the second
        (line("block_unplug", "[flush] 2"), (True, False)),  # the second joined the first, both left together
        (bio(64, "block_bio_backmerge"), (True, False)),
    ],
    ids=["full", "asleep", "joined", "kept"],
)
def test_events_after_a_request_show_where_it_went(
    tmp_path: Path, then: str, second: tuple[bool, bool | None]
) -> None:
    """The events of the plug distinguish a full flush from a sleep and from the plug's end."""
    text = bio(0, "block_getrq") + PLUG + bio(800, "block_getrq") + then
    assert placed(tmp_path / "c", text) == [(True, None), second]


def test_flush_goes_past_the_plug(tmp_path: Path) -> None:
    """A bio with PREFLUSH or FUA takes a separate path and never merges."""
    text = bio(0, "block_getrq") + PLUG + bio(8, "block_getrq", "FWFS") + bio(16, "block_getrq") + FLUSHED
    assert placed(tmp_path / "c", text)[1] == (False, None)
    assert [rwbs_of(letters).flushes for letters in ("W", "WS", "FWFS", "WFS", "FF", "RAM")] == [
        False, False, True, True, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize(("kernel", "equal"), [("6.18", True), ("5.17", False)])
def test_readahead_does_not_merge_with_metadata_since_5_18(tmp_path: Path, kernel: str, equal: bool) -> None:
    """The plug holds an RM request, and the RA bio starts at its end.

    From 5.18 on the bio gets a new request, which was seen on 6.18.  Before 5.18 the two merged.
    """
    text = (
        bio(0, "block_getrq", "RM")
        + PLUG
        + bio(8, "block_getrq", "RA")
        + bio(16, "block_bio_backmerge", "RA")
    )
    (tmp_path / "c").write_text(HEAD.replace("6.18", kernel) + text + FLUSHED)
    assert judged(tmp_path / "c").agrees == equal


def test_lost_events_leave_unknown_decisions_unjudged(tmp_path: Path) -> None:
    """Decisions count as not judged until the task's next plug, and give no mismatch."""
    text = text_of("fsmark-xfs-ag2").splitlines(keepends=True)
    middle = next(n for n in range(20_000, len(text)) if "block_bio_backmerge" in text[n])
    gap = [*text[:middle], "CPU:1 [LOST 100 EVENTS]\n", *text[middle + 100 :]]
    (tmp_path / "gap").write_text("".join(gap))
    verdict = judged(tmp_path / "gap")
    assert verdict.events_lost == 100
    assert verdict.agrees
    assert 0 < verdict.unjudged < 1_000  # until the next sleep of the flusher
    assert verdict.decisions_total > 19_000


def test_overwritten_buffer_is_a_loss(tmp_path: Path) -> None:
    """The header has fewer entries in the buffer than entries written."""
    text = text_of("dd12")
    start = text.index("entries-in-buffer/entries-written: ")
    written = text[start:].split()[1]
    (tmp_path / "c").write_text(text.replace(written, f"{written.split('/')[0]}/999999", 1))
    verdict = judged(tmp_path / "c")
    assert verdict.events_lost > 900_000
    assert verdict.unjudged > 0


def test_bios_of_other_devices_are_not_judged(tmp_path: Path) -> None:
    """The device of the header is judged.  A header without a device needs the option --device."""
    other = bio(0, "block_getrq", task="other-8").replace("7,0", "8,0")
    text = bio(0, "block_getrq") + PLUG + other + bio(8, "block_bio_backmerge") + FLUSHED
    path = tmp_path / "c"
    path.write_text(HEAD + text)
    assert judged(path).decisions_total == judged(path).decisions_equal == 2
    path.write_text(HEAD.replace(" device 7,0", "") + text)
    with pytest.raises(
        BadInput, match=r"several devices; give one of them with --device: 7,0 \(2 bios\), 8,0 \(1 bios\)"
    ):
        judged(path)
    assert judged(path, options=Options(device="8,0")).decisions_total == 1


def test_the_header_is_read_word_by_word() -> None:
    """Unknown words are skipped.  A device MAJ:MIN is read as MAJ,MIN."""
    text = (
        "# kernel 6.18.44-x fs xfs mkfs '-d agcount=4' scheduler none max_sectors_kb 64 cpus 2 device 7:0"
        " loop on tmpfs"
    )
    assert header_of(text, "c:1") == Header("6.18.44-x", "none", max_sectors_kb=64, device="7,0")
    assert header_of("# tracer: nop", "c:1") == Header()


# -- bad input -------------------------------------------------------------------------------------------


def _cut(path: Path) -> bytes:
    return path.read_bytes()[:-1000]


def broken() -> Iterator[tuple[str, bytes, str]]:
    """Yield the name, the bytes and the error message of captures that cannot be read."""
    good = (HEAD + bio(0, "block_getrq") + PLUG).encode()
    no_limits = good.replace(b"max_segments 128 ", b"")
    yield "empty", b"", ":1: is empty"
    yield "rubbish", bytes(range(256)) * 9, ":1: is neither"
    yield "rubbish inside", good + b"\x00\xff\xfe\n" + good, ":5: is not a line of an ftrace text"
    yield (
        "cut line",
        good + b"  flush-9   [000] .....  1.0: block_getrq: 7,0 W 1",
        ":5: block_getrq has no fields",
    )
    yield "cut xz", _cut(named("dd12")), "the compressed text is damaged"
    yield "cut gz", gzip.compress(good * 999)[:-40], "the compressed text is damaged"
    yield "blktrace", b"\x07\x74\x61\x65" + bytes(60), "convert them to text with blkparse"
    yield "no limits", no_limits, ":1: max_segments: is not in the header; give --max-segments"
    yield (
        "no number",
        good.replace(b"segments 128", b"segments many"),
        ":1: max_segments: 'many' is not a whole number; give a complete capture",
    )
    yield "old", good.replace(b"6.18.44", b"2.6.32"), "kernel: Linux 2.6.32 has no plug"
    yield "scheduler", good.replace(b"scheduler none", b"scheduler cfq"), "scheduler: is cfq; use one of"
    yield (
        "no number at all",
        good.replace(b"segments 128", "segments \u00b2".encode()),
        "is not a whole number; give a complete capture",
    )
    yield (
        "not its device",
        good.replace(b"device 7,0", b"device 9,9"),
        "has no bio for 9,9; the devices with bios are 7,0 (1 bios)",
    )
    yield "no bio", HEAD.replace(" device 7,0", "").encode() + PLUG.encode(), "has no bio"


@pytest.mark.parametrize(
    ("content", "message"), [(c, m) for _, c, m in broken()], ids=[n for n, _, _ in broken()]
)
def test_unreadable_capture_is_refused_with_its_place(
    content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The status is 2, the error names the file and the line, and stdout is empty."""
    path = tmp_path / "capture"
    path.write_bytes(content)
    assert main(["replay", str(path)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert str(path) in told.err
    assert message in told.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--device", "7"], "is '7'; give MAJ:MIN, such as 7:0"),
        (["--device", "9:9"], "has no bio for 9,9"),
        (["--kernel", "linux"], "is not a kernel version"),
        (["--max-segments", "64"], "is 128 in the header; leave out --max-segments 64"),
        (["--scheduler", "bfq"], "scheduler: is none in the header; leave out --scheduler bfq"),
        (["--out", "there"], "give --kernel"),
    ],
)
def test_wrong_options_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """No capture is replayed, and no file is written."""
    assert main(["replay", str(named("dd12")), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not Path("there").exists()


# -- what if ---------------------------------------------------------------------------------------------


def issued(name: str, *eras: str) -> dict[str, Issued]:
    """Return the requests that the rules of *eras* would issue for a capture."""
    capture = open_capture(named(name))
    of = conditions_of(capture, Options())
    rules = {era: PLUG_RULES[era] for era in eras}
    return what_if(steps_of(capture.events(), of.scheduler), rules, of.limits, of.device)


@pytest.mark.parametrize(("kernel", "notes"), [("9.9", 1), ("3.12.7", 1), ("3.11", 0), ("6.18.44", 1)])
def test_kernel_without_its_own_rules_is_noted(kernel: str, notes: int) -> None:
    """The note names the kernel whose rules are used in its place."""
    of = conditions_of(open_capture(named("dd12")), Options(kernel=kernel))
    said = [note for note in of.notes if note.startswith(f"--kernel is {kernel};")]
    assert len(said) == notes
    assert all(note.endswith(f"rules of Linux {of.what_if_era}") for note in said)


def test_interleaved_streams_need_a_walk_of_the_complete_list() -> None:
    """Bios of eight groups interleave, so a rule that tries only the newest request loses most merges.

    The bytes are the same in all eras.
    """
    eras = issued("fsmark-xfs-ag8", "3.11", "6.1", "6.17")
    assert eras["6.17"].requests == 22_452  # as the kernel itself, from whose source the rules are
    assert eras["3.11"].requests < eras["6.17"].requests / 6
    assert len({sum(length * n for length, n in era.lengths.items()) for era in eras.values()}) == 1


def test_replay_command_prints_a_document_and_draws_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The option --kernel asks for the requests of another era.  The folder of --out holds the picture."""
    assert main(["replay", str(named("max64")), "--kernel", "3.11", "--json", "--out", str(tmp_path)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["decisions_equal"] == document["decisions_total"] == document["bios"] == 2_469
    assert (
        document["requests_simulated"]
        == document["what_if"]["3.11"]["requests"]
        < document["requests_kernel"]
    )
    assert (tmp_path / "requests.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("release", "era"),
    [
        ("3.11", "3.11"),
        ("3.16.0", "3.11"),
        ("6.12", "6.17"),
        ("6.12.5", "6.1"),
        ("6.18.44-fc", "6.17"),
        ("5.4.0", "5.4"),
        ("6.12.116", "6.1"),
        ("6.12.117", "6.17"),
        ("6.13.0", "6.14"),
        ("6.16", "6.14"),
        ("6.17.0", "6.17"),
    ],
)
def test_release_belongs_to_an_era(release: str, era: str) -> None:
    """The era has the latest rules that were read in a version up to the release."""
    assert era_of(release) == era


def test_pieces_of_a_split_bio_come_in_order(tmp_path: Path) -> None:
    """The first piece and the pieces before the last are marked, because only the last piece may merge."""
    queued = line("block_bio_queue", "7,0 W 0 + 24 [flush]")
    parts = [
        line("block_split", f"7,0 W {n} / {n + 8} [flush]")
        + line("block_getrq", f"7,0 W {n} + 8 [flush]")
        + PLUG * (n == 0)
        for n in (0, 8)
    ]
    path = tmp_path / "c"
    path.write_text(HEAD + queued + "".join(parts) + line("block_getrq", "7,0 W 16 + 8 [flush]"))
    steps = list(steps_of(open_capture(path).events(), "none"))
    pieces = [(step.sector, step.first, step.split_off) for step in steps if isinstance(step, Piece)]
    assert pieces == [(0, True, True), (8, False, True), (16, False, False)]
    assert not any(isinstance(step, Emptied) for step in steps)


def test_mean_size_without_requests_is_zero() -> None:
    """A capture may end before a request leaves its plug."""
    conditions: Any = SimpleNamespace(era="6.18", what_if_era="3.11")
    told = report_module._era_table(conditions, {"6.18": Issued(Counter()), "3.11": Issued(Counter())})
    assert told.splitlines()[-1].split() == ["3.11", "<-", "--kernel", "0", "0.0"]
