"""The text, the document and the picture of a replay."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import matplotlib.colors
import pytest

from wbsim.experiments.captures.conditions import Conditions
from wbsim.experiments.captures.report import figure, replay_document, replay_text
from wbsim.experiments.captures.verdict import Mismatch, Verdict
from wbsim.experiments.captures.what_if import Issued
from wbsim.experiments.pictures.plots import COLOURS
from wbsim.models.block.spec import QueueLimits
from wbsim.sim.units import KIB

LIMITS = QueueLimits(max_sectors_bytes=64 * KIB, max_segments=7, max_segment_bytes=64 * KIB, nomerges=1)
OWN = Conditions("6.18.44", "6.17", None, "7,0", "kyber", LIMITS, ("a note",))
ASKED = Conditions("6.18.44", "6.17", "3.11", "7,0", "kyber", LIMITS, ())
ERAS = {
    "3.11": Issued(Counter({8: 1, 64: 2, 4_096: 1})),
    "6.17": Issued(Counter({8: 10, 9: 2, 64: 1})),
}
VERDICT = Verdict(
    bios=13, decisions_equal=11, decisions_total=12, full_flush_equal=3, full_flush_total=4,
    full_flush_unknown=5, by_segments=6, in_dispatch=7, unjudged=8, inside_plug=3, request_unseen=1,
    events_lost=9, uncounted_losses=2, without_sectors=10, requests_kernel=14, requests_simulated=15,
    mismatches=[Mismatch(77, "decision", "getrq", "backmerge")],
)  # fmt: skip


def test_text_of_a_differing_replay_lists_doubts_and_mismatches() -> None:
    """Each count of decisions in doubt has a line, and each mismatch has its place."""
    assert (
        replay_text(Path("/there/c.trace"), OWN, VERDICT, {})
        == """\
c.trace: 13 bios for 7,0, kernel 6.18.44
limits: 64 KiB and 7 segments a request, nomerges 1, scheduler kyber

decisions    11 of 12 equal
full flushes 3 of 4 equal
requests     14 by the kernel, 15 simulated
             9 events were lost; for each task the comparison continues at its next plug
             2 more losses are marked without a number of events
             4 decisions are not compared: after lost events the plug or the queue is unknown
             3 decisions are not compared: the capture begins inside a plug or shows only a part of one
             1 decisions are not compared: the capture does not show the beginning of the request
             10 events are skipped: their requests have no sectors (packets, flushes)
             5 flushes are not compared: each may also be a flush before a sleep
             6 merges show that a bio has fewer segments than pages; the capture does not record segments
             7 bios arrived for a request in dispatch, as its issue directly after them shows

where       what      kernel  simulated
----------  --------  ------  ---------
c.trace:77  decision  getrq   backmerge"""
    )


def test_text_of_an_agreeing_replay_lists_eras() -> None:
    """Each era has the number of its requests, their mean size and the number of each size."""
    agrees = Verdict(bios=2, decisions_equal=2, decisions_total=2, requests_kernel=1, requests_simulated=1)
    assert (
        replay_text(Path("c"), ASKED, agrees, ERAS)
        == """\
c: 2 bios for 7,0, kernel 6.18.44
limits: 64 KiB and 7 segments a request, nomerges 1, scheduler kyber

decisions    2 of 2 equal
full flushes 0 of 0 equal
requests     1 by the kernel, 1 simulated

Requests that the plugs of each era would issue for the same bios:

plug rules of          requests  mean KiB  <=4K  <=8K  <=32K  >1024K
---------------------  --------  --------  ----  ----  -----  ------
3.11 <- --kernel              4     529.0     1     .      2       1
6.17 = this capture's        13       6.2    10     2      1       ."""
    )


def test_document_has_a_key_for_each_figure() -> None:
    """The requests are those of another kernel if --kernel asks for it."""
    plain = {
        "capture": "/there/c", "kernel": "6.18.44", "device": "7,0", "bios": 13, "decisions_equal": 11,
        "decisions_total": 12, "full_flush_equal": 3, "full_flush_total": 4, "full_flush_unknown": 5,
        "by_segments": 6, "in_dispatch": 7, "unjudged": 8, "inside_plug": 3, "request_unseen": 1,
        "events_lost": 9, "uncounted_losses": 2, "without_sectors": 10,
        "mismatches": [{"line": 77, "what": "decision", "kernel": "getrq", "simulated": "backmerge"}],
        "requests_kernel": 14, "requests_simulated": 15,
    }  # fmt: skip
    assert replay_document(Path("/there/c"), OWN, VERDICT, ERAS) == plain
    assert replay_document(Path("/there/c"), ASKED, VERDICT, {}) == plain
    assert replay_document(Path("/there/c"), ASKED, VERDICT, ERAS) == {
        **plain,
        "requests_simulated": 4,
        "what_if": {
            "3.11": {"requests": 4, "histogram_kib": {"<=4K": 1, "<=32K": 2, ">1024K": 1}},
            "6.17": {"requests": 13, "histogram_kib": {"<=4K": 10, "<=8K": 2, "<=32K": 1}},
        },
    }


def bars(panel: Any) -> list[tuple[float, float, str]]:
    """Return the position, the length and the colour of each bar, in the order of drawing."""
    upright = panel.get_xlabel() == "request size, bytes"
    return [
        (
            round(bar.get_x() if upright else bar.get_y(), 3),
            bar.get_height() if upright else bar.get_width(),
            matplotlib.colors.to_hex(bar.get_facecolor()),
        )
        for bar in panel.patches
    ]


def test_picture_compares_the_requests_of_eras() -> None:
    """The left panel has a bar for each era, with the two compared eras in colour.

    The right panel has the MiB in requests of each size.

    * 3.11: one request of 4 KiB, two of 32 KiB and one of 2 MiB
    * 6.17: ten requests of 4 KiB, two of 4.5 KiB and one of 32 KiB
    """
    drawing = figure("A title", ASKED, {"2.6.39": ERAS["3.11"], **ERAS})
    assert drawing.get_suptitle() == "A title"
    assert drawing.get_layout_engine() is not None
    counts, sizes = drawing.axes
    own, asked = COLOURS[:2]
    assert [colour for *_, colour in bars(counts)] == ["#cccccc", asked, own]
    assert [length for _, length, _ in bars(counts)] == [4, 4, 13]
    assert [text.get_text() for text in counts.get_yticklabels()] == ["2.6.39", "3.11", "6.17"]
    assert [(text.get_text(), text.get_fontsize()) for text in counts.texts] == [
        ("4", 8),
        ("4", 8),
        ("13", 8),
    ]
    assert counts.yaxis_inverted()
    assert (counts.get_xlabel(), counts.get_ylabel()) == ("requests issued", "plug rules of Linux")
    kib = 1 / 1_024
    assert bars(sizes) == [
        (-0.4, 40 * kib, own), (0.6, 9 * kib, own), (1.6, 32 * kib, own), (2.6, 0, own),
        (0.0, 4 * kib, asked), (1.0, 0, asked), (2.0, 64 * kib, asked), (3.0, 2, asked),
    ]  # fmt: skip
    assert [text.get_text() for text in sizes.get_xticklabels()] == ["≤ 4K", "≤ 8K", "≤ 32K", ">1024K"]
    assert [text.get_text() for text in sizes.get_legend().get_texts()] == ["6.17, this capture's", "3.11"]
    assert not sizes.get_legend().get_frame_on()
    assert (sizes.get_xlabel(), sizes.get_ylabel()) == (
        "request size, bytes", "MiB written in such requests",
    )  # fmt: skip
    for panel, axis in ((counts, counts.xaxis), (sizes, sizes.yaxis)):
        assert panel.get_axisbelow()
        assert axis.get_gridlines()[0].get_visible()
        assert not panel.spines["top"].get_visible()


def test_picture_without_another_kernel_has_one_colour() -> None:
    """The bars of the capture's sizes stand in the middle of their places.

    A number has a gap at thousands.
    """
    drawing = figure("A title", OWN, {"6.17": Issued(Counter({8: 12_345}))})
    counts, sizes = drawing.axes
    assert [text.get_text() for text in counts.texts] == ["12 345"]
    assert bars(sizes) == [(-0.4, pytest.approx(12_345 * 4 / 1_024), COLOURS[0])]
