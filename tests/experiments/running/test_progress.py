"""The line on stderr: how far all runs are, and what is left."""

from __future__ import annotations

import pytest

from wbsim.experiments.running import progress
from wbsim.experiments.running.progress import Meter, Progress


def test_the_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Of four runs one is over and one is half done after 30 s: three eighths, so that 50 s are left."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    meter = Meter(4)
    meter.show()
    assert capsys.readouterr().err == ""
    now[0] = 130.0
    meter.note("a 0", Progress("a", 0.2, 1.0))
    meter.note("a 0", Progress("a", 1.0, 9.0))
    meter.note("b 0", Progress("b", 0.5, 12.4))
    meter.show()
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "\r\x1b[K 38 %, about 50 s left: b 12 s simulated")
    meter.note("c" * 200, Progress("c" * 200, 0.1, 1.0))
    meter.show()
    assert len(capsys.readouterr().err) == len("\r\x1b[K") + 150
    meter.clear()
    assert capsys.readouterr().err == "\r\x1b[K"
