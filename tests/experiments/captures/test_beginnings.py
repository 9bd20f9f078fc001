"""Captures that begin inside a plug or have gaps: hidden decisions are not judged and never differ."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.experiments.captures.test_replay import HEAD, bio, line, named
from tests.experiments.captures.test_replay import judged as judged_file
from wbsim.experiments.captures.conditions import Conditions, Options, conditions_of
from wbsim.experiments.captures.events import LOST, Event
from wbsim.experiments.captures.merge_decisions import steps_of
from wbsim.experiments.captures.reader import open_capture
from wbsim.experiments.captures.replay import replay
from wbsim.experiments.captures.verdict import Verdict
from wbsim.experiments.cli import main
from wbsim.models.catalogue.kernels import PLUG_RULES

INSIDE = """\
  8,16   1        4     0.000000000   900  Q   W 5008 + 8 [flush]
  8,16   1        5     0.000001000   900  M   W 5008 + 8 [flush]
  8,16   1        6     0.000002000   900  U   N [flush] 1
"""
THEN = """\
  8,16   1        7     0.000003000   900  I   W 5000 + 16 [flush]
  8,16   1        8     0.000004000   900  D   W 5000 + 16 [flush]
  8,16   1        9     0.000005000   900  Q   W 6000 + 8 [flush]
  8,16   1       10     0.000006000   900  G   W 6000 + 8 [flush]
  8,16   1       11     0.000007000   900  P   N [flush]
  8,16   1       12     0.000008000   900  Q   W 6008 + 8 [flush]
  8,16   1       13     0.000009000   900  M   W 6008 + 8 [flush]
  8,16   1       14     0.000010000   900  U   N [flush] 1
  8,16   1       15     0.000011000   900  D   W 6000 + 16 [flush]
"""


def counts(verdict: Verdict) -> tuple[int, int, int, int]:
    """Return the numbers of judged decisions, of decisions not judged, and of two kinds of the latter.

    These kinds are decisions inside a plug and decisions on a request that was not seen.
    """
    assert verdict.agrees
    assert verdict.mismatches == []
    assert verdict.requests_simulated == verdict.requests_kernel
    return verdict.decisions_total, verdict.unjudged, verdict.inside_plug, verdict.request_unseen


def test_replay_reports_a_beginning_inside_a_plug(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The merge joined a request that began before the capture.  The next plug is judged again."""
    path = tmp_path / "c"
    for text, equal in ((INSIDE, "0 of 0"), (INSIDE + THEN, "2 of 2")):
        path.write_text(text)
        assert main(["replay", str(path), "--max-sectors-kb", "512", "--max-segments", "128"]) == 0
        out = capsys.readouterr().out
        assert f"decisions    {equal} equal" in out
        assert "1 decisions are not compared: the capture begins inside a plug" in out
        assert out.count("not compared") == 1


PLUG, UNPLUG = line("block_plug", "[flush]"), "[flush] {}"


def unplug(requests: int) -> str:
    """Return the line of an unplug of *requests* requests."""
    return line("block_unplug", UNPLUG.format(requests))


def moved(event: str, sector: int, sectors: int, task: str = "flush-9") -> str:
    """Return the line of a request that is inserted, merged or issued."""
    return line(f"block_rq_{event}", f"7,0 W {512 * sectors} () {sector} + {sectors} be,0,4 [flush]", task)


NEW, BACK, FRONT = "block_getrq", "block_bio_backmerge", "block_bio_frontmerge"
OWN = bio(9_000, NEW) + PLUG + bio(9_008, BACK) + unplug(1) + moved("issue", 9_000, 16)
"""Two decisions that are judged in any case."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # a new request joined a plug that is not shown, and the next bio merged with this request
        (bio(0, NEW) + bio(8, BACK) + unplug(2) + OWN, (2, 2, 2, 0)),
        (bio(0, NEW) + bio(800, NEW) + unplug(3) + OWN, (2, 2, 2, 0)),
        (bio(0, NEW) + bio(800, NEW) + bio(9_600, NEW, task="other-8") + unplug(3) + OWN, (3, 2, 2, 0)),
        # the text ends before the unplug, but the merge proves a plug
        (bio(0, NEW) + bio(8, BACK) + bio(16, BACK) + bio(800, NEW), (0, 4, 4, 0)),
        (bio(0, NEW) + bio(8, BACK) + unplug(2) + bio(0, NEW, task="other-8"), (1, 2, 2, 0)),
        (bio(8, BACK) + bio(16, BACK) + unplug(1) + OWN, (2, 2, 2, 0)),
        (bio(8, BACK) + unplug(1) + bio(88, BACK) + OWN, (2, 2, 1, 1)),
        # the bio joined a request that began before the capture, in a plug or in the queue
        (bio(8, BACK) + bio(16, BACK) + bio(0, FRONT) + OWN, (2, 3, 0, 3)),
        (bio(8, BACK) + bio(16, NEW) + OWN, (2, 2, 0, 2)),  # the hidden request may have been full
        (bio(8, FRONT) + bio(0, NEW) + OWN, (2, 2, 0, 2)),
        (bio(8, BACK) + bio(16, NEW, task="other-8") + OWN, (3, 1, 0, 1)),  # another task's plug
        # an insertion shows where the hidden request ends
        (moved("insert", 0, 16) + bio(16, BACK) + bio(24, BACK) + OWN, (2, 2, 0, 2)),
        (moved("insert", 0, 16) + bio(16, NEW) + OWN, (2, 1, 0, 1)),
        (moved("insert", 0, 16) + moved("issue", 0, 16) + bio(16, NEW) + OWN, (3, 0, 0, 0)),
        (moved("insert", 8, 8) + moved("merge", 16, 8) + bio(24, BACK) + OWN, (2, 1, 0, 1)),
        (bio(8, BACK) + moved("insert", 0, 16) + moved("issue", 0, 16) + bio(16, NEW) + OWN, (3, 1, 0, 1)),
        # a full plug is flushed, the next one is known
        (bio(0, NEW) + unplug(9) + moved("issue", 800, 8) + PLUG + bio(8, BACK) + bio(800, NEW) + unplug(2),
         (2, 1, 1, 0)),
        # a request that is issued or inserted without its getrq changes nothing
        (moved("issue", 700, 8) + line("block_rq_complete", "7,0 W () 900 + 8 be,0,4 [0]") + OWN,
         (2, 0, 0, 0)),
        # everything is shown
        (bio(0, NEW) + PLUG + bio(8, BACK) + bio(800, NEW) + unplug(2) + OWN, (5, 0, 0, 0)),
    ],
)  # fmt: skip
def test_decision_is_judged_only_if_the_capture_shows_it(
    text: str, expected: tuple[int, int, int, int], tmp_path: Path
) -> None:
    """Every other decision is counted with the reason."""
    path = tmp_path / "c"
    path.write_text(HEAD + text)
    assert counts(judged_file(path)) == expected


def test_differences_inside_a_hidden_plug_are_withdrawn(tmp_path: Path) -> None:
    """The kernel did not merge a bio with the newest request.

    With all requests shown the decision is a mismatch.  With a hidden request the kernel may be right.
    """
    path = tmp_path / "c"
    shown = bio(0, NEW) + PLUG + bio(8, NEW) + bio(1_600, NEW)
    path.write_text(HEAD + shown + unplug(3) + OWN)
    differs = judged_file(path)
    assert [(m.line, m.kernel, m.simulated) for m in differs.mismatches] == [(6, "getrq", "backmerge")]
    assert (differs.decisions_total, differs.decisions_equal, differs.full_flush_total) == (5, 4, 1)
    path.write_text(HEAD + shown + unplug(4) + OWN)
    hidden = judged_file(path)
    assert counts(hidden) == (3, 2, 2, 0)
    assert (hidden.full_flush_total, hidden.full_flush_equal) == (0, 0)


def test_a_plug_that_outlasts_the_capture_is_not_judged(
    tmp_path: Path,
) -> None:
    """The text ends after the getrq that finds a request of 128 KiB, so the unplug is not shown."""
    path = tmp_path / "c"
    text = bio(0, NEW, sectors=256) + PLUG + bio(8_000, NEW)
    path.write_text(HEAD + text)
    verdict = judged_file(path)
    assert counts(verdict) == (2, 0, 0, 0)
    assert (verdict.full_flush_total, verdict.full_flush_unknown) == (0, 1)
    path.write_text(HEAD + text + bio(16_000, NEW))
    assert not judged_file(path).agrees


def test_bio_that_waited_before_the_capture_was_tried_there(
    tmp_path: Path,
) -> None:
    """The getrq is the first event of its task, so a request that came later could not be joined."""
    path = tmp_path / "c"
    other = "other-8"
    came = bio(0, NEW, task=other) + line("block_plug", "[o]", other) + line("block_unplug", "[o] 1", other)
    came += moved("insert", 0, 8, other)
    waited = line("block_getrq", "7,0 W 8 + 8 [flush]")
    runs = [moved("issue", 700, 8, "kblockd-5") + bio(at, NEW, task="kblockd-5") for at in (5_000, 6_000)]
    ends = "".join(runs) + moved("issue", 0, 8, "kblockd-5")
    path.write_text(HEAD + came + waited + ends + OWN)
    verdict = judged_file(path)
    assert (counts(verdict), verdict.in_dispatch) == ((6, 0, 0, 0), 0)
    path.write_text(HEAD + came + bio(8, NEW) + ends + OWN)
    assert not judged_file(path).agrees
    # the decision is withdrawn with its plug, before or after the issue that refutes it
    following = bio(9_500, NEW)  # shows that the unplug is complete
    for text in (bio(8, NEW) + unplug(2) + following + ends, bio(8, NEW) + ends + unplug(2) + following):
        path.write_text(HEAD + came + text + OWN)
        assert counts(judged_file(path)) == (6, 1, 1, 0)


@pytest.mark.parametrize(
    ("text", "sector"),
    [
        (bio(0, NEW) + bio(8, BACK) + unplug(2) + moved("insert", 0, 16), 8),
        (moved("insert", 0, 16) + bio(16, BACK), 16),
    ],
)
def test_a_hidden_request_waits_with_all_of_its_sectors(text: str, sector: int, tmp_path: Path) -> None:
    """A bio inside these sectors does not continue the request, so no dispatch of the request is assumed."""
    path = tmp_path / "c"
    path.write_text(HEAD + text + bio(sector, NEW, task="other-8"))
    verdict = judged_file(path)
    assert verdict.agrees
    assert (verdict.decisions_total, verdict.in_dispatch) == (1, 0)


def test_losses_and_requests_without_sectors_are_counted(tmp_path: Path) -> None:
    """Requests of other devices do not count.  A loss without a number of events counts separately."""
    path = tmp_path / "c"
    packet = line("block_rq_issue", "7,0 N 36 (12 01 00 00 24 00) 0 + 0 none,0,0 [smartctl]")
    lost = "CPU:0 [EVENTS DROPPED]\nCPU:0 [7 EVENTS DROPPED]\n"
    text = bio(0, NEW) + packet + packet.replace("7,0", "8,0") + PLUG + lost + bio(8, BACK) + bio(16, NEW)
    path.write_text(HEAD + text + OWN)
    verdict = judged_file(path)
    assert (verdict.uncounted_losses, verdict.events_lost, verdict.without_sectors) == (1, 7, 1)
    assert (verdict.decisions_total, verdict.unjudged, verdict.inside_plug) == (2, 3, 0)
    assert verdict.agrees


# -- real captures, cut --------------------------------------------------------------------------------


@cache
def capture(name: str) -> tuple[Conditions, list[Event]]:
    """Return the conditions and the events of a committed capture."""
    opened = open_capture(named(name))
    return conditions_of(opened, Options()), list(opened.events())


def verdict_on(of: Conditions, events: Sequence[Event]) -> Verdict:
    """Return the verdict on *events*."""
    return replay(steps_of(events, of.scheduler), PLUG_RULES[of.era], of.limits, of.scheduler, of.device)


@pytest.mark.parametrize(
    "name",
    ["edges", "kyber-full", "deadline-full", "fsmark-xfs-ag2", "dd12", "nomerges1-full", "fiorand-xfs"],
)
def test_real_capture_agrees_wherever_it_is_cut(name: str) -> None:
    """The capture is cut at the beginning, at the end and by a gap, at random places with a fixed seed."""
    of, events = capture(name)
    draw = random.Random(name)
    judged, unjudged = 0, 0
    for _ in range(12):
        start = draw.randrange(len(events))
        kept = events[start : start + draw.randrange(200, 4_000)]
        at = draw.randrange(len(kept))
        gap = draw.randrange(1, 200)
        lost = Event(kept[at].line, 0, 0, LOST, size=gap)
        for cut in (kept, [*kept[:at], lost, *kept[at + gap :]]):
            verdict = verdict_on(of, cut)
            assert verdict.mismatches == []
            assert verdict.agrees
            judged += verdict.decisions_total
            unjudged += verdict.unjudged
    assert judged > unjudged > 0
