"""The rules and limits of a replay: every value, and the note on it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from wbsim.experiments.captures.conditions import Conditions, Options, conditions_of
from wbsim.experiments.captures.events import Capture, Event, Header
from wbsim.experiments.cli import main
from wbsim.experiments.config.problems import BadInput
from wbsim.models.block.spec import QueueLimits

FULL = Header("6.18.44", "mq-deadline", 1, 64, 7, 4_096, "7,0")


def of(header: Header, *devices: str, **options: Any) -> Conditions:
    """Return the conditions of a capture with *header* and a bio for each of *devices*."""
    events = [Event(1, 1, 0, "block_bio_queue", device) for device in devices or ("7,0",)]
    events.append(Event(2, 1, 0, "block_getrq", "9,9"))  # no bio
    return conditions_of(Capture(Path("c"), "ftrace", header, lambda: iter(events)), Options(**options))


def limits(**changes: Any) -> QueueLimits:
    """Return the limits of `FULL` with *changes*."""
    values = {
        "max_sectors_bytes": 65_536, "max_segments": 7, "max_segment_bytes": 65_536, "nomerges": 1,
        "max_discard_bytes": 4_096,
    }  # fmt: skip
    return QueueLimits.model_validate({**values, **changes})


def test_complete_header_gives_all_conditions() -> None:
    """No value is assumed, so there is no note."""
    assert of(FULL) == Conditions("6.18.44", "6.17", None, "7,0", "mq-deadline", limits(), ())


def test_missing_conditions_are_assumed_and_noted() -> None:
    """The limits come from the options.  Discards of any size are accepted."""
    found = of(Header(), max_sectors_kb=64, max_segments=7)
    assert found == Conditions(
        "6.18", "6.17", None, "7,0", "none", limits(nomerges=0, max_discard_bytes=(1 << 32) - 512),
        (
            "the header has no nomerges; 0 is assumed; give --nomerges if it was different",
            "the header has no scheduler; none is assumed; give --scheduler if it was different",
            "the header has no kernel; 6.18 is assumed; give --kernel if it was different",
        ),
    )  # fmt: skip


def test_options_replace_missing_values_of_the_header() -> None:
    """The kernel of the option is both the kernel of the capture and the kernel that is asked for."""
    given = {"max_sectors_kb": 64, "max_segments": 7, "nomerges": 2, "scheduler": "bfq", "kernel": "3.11"}
    found = of(Header(discard_max_bytes=4_096), "7,0", "8,0", **given, device="8,0")
    assert found == Conditions("3.11", "3.11", "3.11", "8,0", "bfq", limits(nomerges=2), ())


def test_kernel_option_asks_for_another_kernel() -> None:
    """A kernel without its own rules gives a note with the kernel whose rules are used.

    Other options may repeat the header.
    """
    assert of(FULL, kernel="4.9").what_if_era == "4.9"
    assert of(FULL, kernel="4.9").notes == ()
    found = of(FULL, kernel="4.10", scheduler="mq-deadline", nomerges=1, max_segments=7, max_sectors_kb=64)
    assert (found.era, found.what_if_era) == ("6.17", "4.19")
    assert found.notes == ("--kernel is 4.10; its plug has the rules of Linux 4.19",)


@pytest.mark.parametrize(
    ("header", "devices", "options", "problems"),
    [
        (Header(), ["7,0"], {},
         ["c:1: max_sectors_kb: is not in the header; give --max-sectors-kb",
          "c:1: max_segments: is not in the header; give --max-segments"]),
        (FULL, ["7,0"], {"nomerges": 2},
         ["c:1: nomerges: is 1 in the header; leave out --nomerges 2"]),
        (Header("6.18", "none", 3, 64, 7), ["7,0"],
         {}, ["c: nomerges: is 3; give 0, 1 or 2"]),
        (Header("6.18", "none", 0, 0, 7), ["7,0"], {},
         ["c: max_sectors_kb: is 0; give a number from 4 to 1000000"]),
        (Header("6.18", "cfq", 0, 64, 7), ["7,0"], {},
         ["c: scheduler: is cfq; use one of none, kyber, mq-deadline, bfq"]),
        (FULL, ["7,0"], {"scheduler": "none"},
         ["c:1: scheduler: is mq-deadline in the header; leave out --scheduler none"]),
        (Header("6.18", "none", 0, 64, 7), ["7,0", "8,0", "8,0"], {},
         ["c: device: has several devices; give one of them with --device: 8,0 (2 bios), 7,0 (1 bios)"]),
        (FULL, ["8,0"], {}, ["c: device: has no bio for 7,0; the devices with bios are 8,0 (1 bios)"]),
        (FULL, ["7,0"], {"device": "9,9"},
         ["c: device: has no bio for 9,9; the devices with bios are 7,0 (1 bios)"]),
    ],
)  # fmt: skip
def test_problems_of_conditions_are_reported_at_once(
    header: Header, devices: list[str], options: dict[str, Any], problems: list[str]
) -> None:
    """Each problem has its place and its remedy."""
    with pytest.raises(BadInput) as caught:
        of(header, *devices, **options)
    assert str(caught.value).splitlines() == problems


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "max_sectors_kb 99999999999999999999",
            "max_sectors_kb: '99999999999999999999' is not a whole number; give a complete capture",
        ),
        ("max_sectors_kb 3", "max_sectors_kb: is 3; give a number from 4 to 1000000"),
        ("max_segments 1000000000", "max_segments: is 1000000000; give a number from 1 to 1000000"),
        ("max_segments " + "9" * 5_000, "is not a whole number; give a complete capture"),
    ],
)
def test_impossible_limits_in_a_header_are_refused(
    said: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An event with a number of thousands of digits is refused, too."""
    header = "# kernel 6.18 scheduler none nomerges 0 max_sectors_kb 64 max_segments 128 device 7,0"
    key = said.split()[0]
    event = "  dd-9 [000] ..... 1.000001: block_bio_queue: 7,0 W {} + 8 [dd]"
    for line, sector, problem in (
        (re.sub(rf"{key} \d+", said, header), "80", told), (header, "8" * 5_000, "c.trace:2: "),
    ):  # fmt: skip
        (tmp_path / "c.trace").write_text(f"{line}\n{event.format(sector)}\n")
        assert main(["replay", str(tmp_path / "c.trace")]) == 2
        assert problem in capsys.readouterr().err
