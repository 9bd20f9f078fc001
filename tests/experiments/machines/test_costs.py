"""The costs of a machine from a capture: the lines of a machine file, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.experiments.captures.test_processor import Text
from tests.experiments.outcomes import RUN
from wbsim.experiments.config.problems import BadInput
from wbsim.experiments.machines import costs
from wbsim.experiments.machines.costs import Scales, scales_of


def captured(folder: Path, monkeypatch: pytest.MonkeyPatch, *pages: int, kind: str = "xfs") -> Scales:
    """Return the costs from a capture with a file of each number of *pages*, and one request.

    The flusher takes 23 us for a file and 4 us for the request, of which tracing is 600 and 400 ns.
    The command takes 9 ms; in the model, it takes 2.25 s of system time and 0.5 s of user time.
    """
    monkeypatch.setattr(
        costs, "run_case", lambda *_: replace(RUN, programs={"captured": RUN.programs["mark"]})
    )
    text = Text(kind)
    text.start(0)
    for count in pages:
        text.file(20, 1, 2, pages=count)
    text.request(3, 1)
    return scales_of(text.save(folder))


@pytest.mark.parametrize(("kind", "desk_ns"), [("xfs", 11_578), ("ext4", 9_628)])
def test_desk_takes_the_times_of_lists_extent_log_and_folio(
    kind: str, desk_ns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of four pages, in one folio (docs/measurements.md H).

    filesystem    lists    extent    pages    folio    commit
    xfs             600    10 200    4 * 2      620       150
    ext4            600     8 400    4 * 2      620
    """
    found = captured(tmp_path, monkeypatch, 4, kind=kind)
    assert (found.desk_file_ns, found.desk_request_ns) == (desk_ns, 500 + 100 + 300)
    assert (found.flusher_time.file_ns, found.flusher_time.request_ns) == (22_400, 3_600)
    assert found.flusher == pytest.approx(22_400 / desk_ns)


def test_lines_divide_by_the_scale_that_multiplies_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scale is 22 400 / 11 578 = 1.935, and a request takes 4 times the desk's 900 ns.

    The scale multiplies the times of the block layer again, so each is 4 / 1.935 = 2.0675 times the desk's.
    The desk's 500, 100 and 300 ns become 1 034, 207 and 620 ns.
    """
    found = captured(tmp_path, monkeypatch, 4)
    writer, flusher, *paths = (line.split(", why")[0] for line in found.lines())
    assert writer == "processors.writer_scale = { measured = 0.00327"  # 0.009 s / 2.75 s
    assert flusher == "processors.flusher_scale = { measured = 1.93"
    assert paths == [
        f'processors.paths.block.{name}_ns = {{ measured = "{ns} ns"'
        for name, ns in (("request", 1_034), ("insert", 207), ("dispatch", 620))
    ]


def test_command_takes_system_and_user_time_in_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2.25 s and 0.5 s, as getrusage(2) counts the capture's 9 ms."""
    found = captured(tmp_path, monkeypatch, 4)
    assert found.desk_program_ns == 2_750_000_000
    assert found.writer == pytest.approx(0.009 / 2.75)


def test_files_may_have_four_pages_on_average(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of 3 and 5 pages are small; files of 4 and 5 pages are too large for a capture."""
    assert captured(tmp_path, monkeypatch, 3, 5).flusher_time.pages == 8
    with pytest.raises(BadInput, match=r"has files of 4 pages; capture small files: fs_mark -S0 -n 20000"):
        captured(tmp_path, monkeypatch, 4, 5)
