"""The line on stderr: the progress of all runs, and the time that is left."""

from __future__ import annotations

import pytest

from wbsim.experiments.running import progress
from wbsim.experiments.running.progress import Meter, Progress


def test_line_shows_share_and_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three eighths of four runs are done after 30 s, so 50 s are left: one run is over and one half done.

    The line is written at most five times a second, and not when all runs are over.
    """
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    meter = Meter(4, "always")
    meter.note(0, Progress("a", 0.0, 1.0))
    assert capsys.readouterr().err == "", "without progress no message is printed"
    now[0] = 129.9
    meter.note(0, Progress("a", 0.2, 1.0))
    capsys.readouterr()
    meter.note(0, Progress("a", 1.0, 9.0))
    meter.finish(0)
    assert capsys.readouterr().err == ""
    now[0] = 130.1
    meter.note(1, Progress("b", 0.5, 12.4))
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "\r\x1b[K1 of 4 runs, 38 %, about 50 s left: b 12 s simulated")
    now[0] = 140
    meter.note(2, Progress("c" * 200, 0.1, 1.0))
    assert len(capsys.readouterr().err) == len("\r\x1b[K") + 150
    now[0] = 100_000
    meter.finish(1)
    meter.finish(2)
    capsys.readouterr()
    now[0] = 200_000
    meter.finish(3)
    assert capsys.readouterr().err == "", "all runs are done"
    meter.clear()
    assert capsys.readouterr().err == "\r\x1b[K"


@pytest.mark.parametrize(
    ("s", "said"), [(99.4, "99 s"), (100.0, "2 min"), (5_999.0, "100 min"), (6_000.0, "1.7 h")]
)
def test_span_is_in_seconds_minutes_or_hours(s: float, said: str) -> None:
    """Minutes begin at 100 s, and hours begin at 100 min."""
    assert progress.span(s) == said


def test_a_single_run_is_not_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line has only the share of the run."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    meter = Meter(1, "always")
    now[0] = 10.0
    meter.note(0, Progress("a", 0.5, 3.0))
    assert capsys.readouterr().err == "\r\x1b[K50 %, about 10 s left: a 3 s simulated"


@pytest.mark.parametrize(
    ("share", "told"),
    [(0.5, ""), (0.1, "wbsim: about 92 s left; for a shorter run use --quick or fewer points\n"), (0.0, "")],
    ids=["soon over", "long", "not begun"],
)
def test_pipe_gets_one_message_if_runs_take_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], share: float, told: str
) -> None:
    """The message comes after ten seconds and suggests a smaller experiment.

    No text in a pipe is rewritten.
    """
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    meter = Meter(1, "long", ("--quick", "fewer points"))
    now[0] = 9.9
    meter.note(0, Progress("a", share, 3.0))
    assert capsys.readouterr().err == ""
    for now[0] in (10.2, 20.0, 30.0):
        meter.note(0, Progress("a", share * now[0] / 10.2, 3.0))
    meter.clear()
    said = capsys.readouterr().err
    assert said[: len(told)] == told
    assert said.count("\n") == bool(told)
    assert "\r" not in said
