"""The errors of comparable runs, and the guesses that describe a bottleneck."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.harness import FIO, loop_config
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.why.trust import (
    Error,
    Trust,
    guesses_of_bottleneck,
    kind_of,
    known_errors,
    sensitivity_command,
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
        "small files", "sequential writes", "random writes", "mixed work", "several flushers",
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
    assert lines[-1] == "how far the guesses move the answer: wbsim sensitivity x.toml"
    assert not any("sensitivity" in line for line in trust_lines(cases, []))


def test_errors_are_those_of_the_least_trusted_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """A median of 9 % is worse than one of 4 %, though its text sorts before; an unknown kind is worst."""
    rows = [("small files", 4.0)] * 12 + [("sequential writes", 9.0)] * 30
    errors = tuple(Error(kind, "xfs", "a", "", percent) for kind, percent in rows)
    monkeypatch.setattr("wbsim.experiments.why.trust.known_errors", lambda: errors)
    dd = "dd if=/dev/zero of=a/f bs=1M count=4"
    cases = [parse(loop_config(command, dirty_mib=2), "x.toml").cases[0] for command in (SMALL, dd, "sync")]
    assert "by 4 % in the median" in trust_lines(cases[:1], [])[0]
    assert "by 9 % in the median" in trust_lines(cases[:2], [])[0]
    assert "no run like this one" in trust_lines(cases, [])[0]


def test_one_program_of_a_new_kind_makes_no_run_comparable() -> None:
    """A stream next to small files is mixed work; next to a sync(2) it was never compared."""
    both = f'programs.a = "{SMALL}"\nprograms.b = "dd if=/dev/zero of=b/f bs=1M count=4"\n'
    text = loop_config(SMALL, dirty_mib=2).replace(f'workload.command = "{SMALL}"', both)
    assert kind_of(parse(text, "x.toml").cases[0].scenario) == "mixed work"
    third = text.replace("programs.b", 'programs.c = "sync"\nprograms.b')
    assert kind_of(parse(third, "x.toml").cases[0].scenario) == "other programs"


def test_command_names_a_case_that_the_configuration_has() -> None:
    variants = parse(f"{loop_config(SMALL, dirty_mib=2)}[variants.a]\n[variants.b]\n", "x.toml").cases
    assert (
        sensitivity_command("x.toml", variants[:1]) == "wbsim sensitivity x.toml --trajectories 2 --sobol 0"
    )
    assert " --variant a " in sensitivity_command("x.toml", variants)
    point = [replace(variants[0], point={"n": n}) for n in (1, 2)]
    assert " --variant a-1 " in sensitivity_command("x.toml", point)
    assert "--variant" not in sensitivity_command("x.toml", point, swept=True)
    assert " --figure file_rate " in sensitivity_command("x.toml", point, "file_rate")
