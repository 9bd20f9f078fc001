"""The errors of comparable runs, and the guesses that describe a bottleneck."""

from __future__ import annotations

import pytest

from tests.harness import FIO, loop_config
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.why.trust import (
    Error,
    Trust,
    guesses_of_bottleneck,
    kind_of,
    known_errors,
    trust_in,
    trust_lines,
)
from wbsim.models.scenario import Scenario

SMALL = "fs_mark -S0 -n 30 -s 4096 -L 2 -d a"


def scenario(command: str, *changes: str, filesystem: str = "loop-xfs") -> Scenario:
    """Return the scenario of *command* on a loop device."""
    return (
        parse(loop_config(command, filesystem=filesystem, dirty_mib=2), "x.toml", changes).cases[0].scenario
    )


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (SMALL, "small files"),
        ("dd if=/dev/zero of=a/f bs=1M count=4", "sequential writes"),
        ("dd if=/dev/zero of=a/f bs=1M count=4 conv=fsync", "writes that wait for the disk"),
        (f"{FIO} --rw=write --nrfiles=1 --filesize=1m --name=a", "sequential writes"),
        (f"{FIO} --rw=randwrite --nrfiles=1 --filesize=1m --name=a", "random writes"),
        (f"{FIO} --rw=write --fsync=8 --nrfiles=1 --filesize=1m --name=a", "writes that wait for the disk"),
        ("sync", "other programs"),
    ],
)  # fmt: skip
def test_kind_follows_the_command(command: str, kind: str) -> None:
    assert kind_of(scenario(command)) == kind


def test_several_flushers_are_another_kind() -> None:
    parallel = 'kernel.flusher={ kind = "parallel", by = "hash", contexts = 2 }'
    assert kind_of(scenario(SMALL, parallel)) == "several flushers"


def test_errors_are_those_of_the_kind_and_the_filesystem(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of -10, 4 and 30 % have the median 10; a single one on ext4 is too few to be compared alone."""
    rows = [
        ("small files", "xfs", "a", -10.0),
        ("small files", "xfs", "b", 4.0),
        ("small files", "xfs", "a", 30.0),
    ]
    rows += [("small files", "ext4", "c", 50.0), ("random writes", "xfs", "d", 99.0)]
    errors = tuple(Error(kind, filesystem, source, "", error) for kind, filesystem, source, error in rows)
    monkeypatch.setattr("wbsim.experiments.why.trust.known_errors", lambda: errors)
    assert trust_in(scenario(SMALL)) == Trust("small files on xfs", 3, 10.0, 30.0, ("a", "b"))
    assert trust_in(scenario(SMALL, filesystem="loop-ext4")) == Trust(
        "small files on any filesystem", 4, 20.0, 50.0, ("a", "b", "c")
    )
    trust = trust_in(scenario("sync"))
    assert trust.median_percent is None
    assert trust.text().endswith("(other programs); expect errors of tens of percent")


def test_known_errors_cover_each_kind() -> None:
    assert {error.kind for error in known_errors()} == {
        "small files", "sequential writes", "random writes", "several programs", "several flushers",
    }  # fmt: skip


def test_guesses_are_those_of_the_bottleneck() -> None:
    small = scenario(SMALL)
    words, guesses = guesses_of_bottleneck(small, {"device loop0 link": 0.9, "processors": 0.1})
    assert words == "the link of loop0"
    assert all(guess.path.startswith("machine.disks.loop0.") for guess in guesses)
    _, writer = guesses_of_bottleneck(small, {"thread fs_mark/process 0": 0.9})
    paths = [guess.path for guess in writer]
    assert any(".paths.write." in path for path in paths)
    assert not any(".flusher." in path or ".ext4." in path for path in paths)
    ratios = [guess.high / guess.low if guess.low else float("inf") for guess in writer]
    assert ratios == sorted(ratios, reverse=True), "the least certain comes first"
    assert guesses_of_bottleneck(small, {"processors": 0.4}) == ("", [])


def test_lines_name_the_next_command() -> None:
    cases = parse(loop_config(SMALL, dirty_mib=2), "x.toml").cases
    lines = trust_lines(cases, [], "wbsim sensitivity x.toml")
    assert lines[0].startswith("how right: ")
    assert lines[-1] == "what its guesses move: wbsim sensitivity x.toml"
