"""The data behind each picture: which line has which points, and what it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from experiments.plots import against, extents_against, over_time, plot_directory
from experiments.problems import BadInput


def lines(panel: Any) -> dict[str, list[tuple[float, float]]]:
    """The points of each labelled line, and of those without a label together by their number."""
    found = {}
    for number, line in enumerate(panel.get_lines()):
        label = line.get_label()
        points = list(zip(map(float, line.get_xdata()), map(float, line.get_ydata()), strict=True))
        found[str(number) if label.startswith("_") else label] = points
    return found


def names(panel: Any) -> tuple[str, str]:
    """Of its axes."""
    return panel.get_xlabel(), panel.get_ylabel()


OUTCOMES = pd.DataFrame(
    {
        "variant": ["new", "old", "new", "old"],
        "point": [4, 1, 1, 4],
        "write_iops": [100.0, 800.0, 50.0, 400.0],
        "files": [2_000, 1_000, 4_000, 3_000],
        "wall_time": [2.0, 1.0, 2.0, 1.0],
        "write_bandwidth": [409_600.0, 3_276_800.0, 409_600.0, 1_638_400.0],
        "file_bytes": [4_194_304, 2_097_152, 1_048_576, 8_388_608],
        "extents": [(2, 2), (1, 1), (1, 0), (4, 4)],
        "extents_per_file": [2.0, 1.0, 0.5, 4.0],
    }
)
"""Two variants at two points, not in order."""


def test_a_sweep_s_picture() -> None:
    """Requests, thousands of files a second, KiB a request; each line from the smallest point on."""
    iops, rate, size = against("threads", "A title", OUTCOMES, 16).axes
    assert [names(panel) for panel in (iops, rate, size)] == [
        ("", "write requests / s"), ("", "thousand files / s"), ("threads", "mean request, KiB"),
    ]  # fmt: skip
    held = [(16.0, 0.0), (16.0, 1.0)]
    assert lines(iops) == {"new": [(1, 50), (4, 100)], "old": [(1, 800), (4, 400)], "2": held}
    assert lines(rate) == {"new": [(1, 2), (4, 1)], "old": [(1, 1), (4, 3)], "2": held}
    assert lines(size) == {"new": [(1, 8), (4, 4)], "old": [(1, 4), (4, 4)], "2": held}
    assert [text.get_text() for text in iops.get_legend().get_texts()] == ["new", "old"]
    assert (iops.get_yscale(), rate.get_ylim()[0], iops.get_xscale()) == ("log", 0.0, "log")
    assert list(size.get_xticks()) == [1, 4]
    assert lines(against("threads", "A title", OUTCOMES, None).axes[0]).keys() == {"new", "old"}


def test_a_sweep_s_picture_of_extents() -> None:
    """Extents a file, MiB an extent, MB a second."""
    extents, size, rate = extents_against("streams", "A title", OUTCOMES).axes
    assert [names(panel) for panel in (extents, size, rate)] == [
        ("", "extents per file"), ("", "mean extent, MiB"), ("streams", "file MB / s"),
    ]  # fmt: skip
    assert lines(extents) == {"new": [(1, 0.5), (4, 2)], "old": [(1, 1), (4, 4)]}
    assert lines(size) == {"new": [(1, 1), (4, 1)], "old": [(1, 1), (4, 1)]}
    assert lines(rate) == {
        "new": [(1, 0.524288), (4, 2.097152)], "old": [(1, 2.097152), (4, 8.388608)],
    }  # fmt: skip


def iterations(*rows: tuple[str, str, int, int, float, int, int]) -> pd.DataFrame:
    """Variant, program, replication, end (s), files a second, and the disks' requests and sectors so far."""
    columns = ("variant", "program", "replication", "end_ns", "files_per_sec", "ios", "sectors")
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(end_ns=table["end_ns"] * 10**9)


def test_a_run_over_time() -> None:
    """Rates from one iteration's end to the next; the first from the beginning. One replication is drawn."""
    table = iterations(
        ("a", "mark", 0, 1, 3_000.0, 100, 2_000), ("a", "mark", 0, 3, 2_000.0, 500, 6_000),
        ("a", "mark", 1, 1, 9_000.0, 900, 9_000), ("b", "mark", 0, 2, 1_000.0, 50, 1_000),
        ("b", "mark", 0, 4, 4_000.0, 70, 9_000),
    )  # fmt: skip
    rate, iops, bandwidth = over_time("A title", table).axes
    assert lines(rate) == {"a": [(1, 3), (3, 2)], "b": [(2, 1), (4, 4)]}
    assert lines(iops) == {"0": [(1, 100), (3, 200)], "1": [(2, 25), (4, 10)]}
    assert lines(bandwidth)["0"] == [(1, pytest.approx(1.024)), (3, pytest.approx(1.024))]
    assert lines(bandwidth)["1"] == [(2, pytest.approx(0.256)), (4, pytest.approx(2.048))]
    assert names(bandwidth) == ("simulated time, s", "MB / s")


def test_several_programs_have_a_line_each_and_share_the_disks() -> None:
    """One that reports its end alone has no rate to draw, but its end is one of the disks' points."""
    table = iterations(
        ("a", "mark", 0, 1, 3_000.0, 100, 2_000), ("a", "post", 0, 2, 500.0, 200, 4_000),
        ("a", "fio", 0, 5, 0.1, 900, 10_000), ("a", "mark", 0, 3, 2_000.0, 500, 6_000),
        ("a", "post", 0, 4, 400.0, 700, 8_000),
    )  # fmt: skip
    rate, iops, _ = over_time("A title", table).axes
    assert lines(rate) == {"a, mark": [(1, 3), (3, 2)], "a, post": [(2, 0.5), (4, 0.4)]}
    assert lines(iops) == {"0": [(1, 100), (2, 100), (3, 300), (4, 200), (5, 200)]}


def test_a_fifth_program_is_drawn_too() -> None:
    """Line styles begin anew."""
    rows = [("a", f"p{i}", 0, end, float(i), end, end) for i in range(5) for end in (1, 2)]
    assert len(lines(over_time("A title", iterations(*rows)).axes[0])) == 5


def test_a_result_that_cannot_be_read_is_one_error(tmp_path: Path) -> None:
    """Nothing there, a stump, a table whose foot is broken: each is told with the remedy."""
    (tmp_path / "case.json").write_text('{"outcomes": []}')
    for held in (None, b"PAR1", b"PAR1" + bytes(8) + b"\x08\0\0\0PAR1"):
        if held is not None:
            (tmp_path / "iterations.parquet").write_bytes(held)
        with pytest.raises(BadInput, match=r"holds no result .*make one with wbsim run"):
            plot_directory(tmp_path)
