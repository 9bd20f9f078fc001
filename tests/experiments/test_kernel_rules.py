"""`wbsim list rules` and `wbsim diff`: the rules of kernels as text."""

from __future__ import annotations

import json

import pytest

from tests.experiments.test_commands import printed
from wbsim.experiments.cli import main
from wbsim.experiments.formats.kernel_rules import rule_name, rules_below, value_text
from wbsim.models.kernel_rules.rule import ABSENT, rule
from wbsim.models.kernel_rules.table import RULES


def test_difference_shows_both_values_and_the_effect(capsys: pytest.CaptureFixture[str]) -> None:
    """6.3 has one rule for the order of a plug, in two keys, which went to 6.2.12 as well."""
    assert (
        printed(capsys, "diff", "6.2.11", "6.2.12")
        == """\
2 rules differ between 6.2.11 and 6.2.12, in the order of a page's way:

kernel.plug.order_scheduler: lifo -> fifo
  6.3 (and 6.1.25, 6.2.12 at the latest): The scheduler gets requests in order of arrival.

kernel.plug.order_mixed: lifo -> fifo
  6.3 (and 6.1.25, 6.2.12 at the latest): Queues of an array get requests in order of arrival.

wbsim list rules RULE prints the evidence.
"""
    )


def test_difference_of_a_named_kernel_has_no_release(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "diff", "3.11", "3.11-p13").splitlines()[2:4] == [
        "kernel.writeback.plug_scope: mapping -> slice",
        "  The flusher keeps its plug for a slice of 100 ms.",
    ]


def test_kernels_without_a_difference_run_alike(capsys: pytest.CaptureFixture[str]) -> None:
    said = "5.1 and 5.2 have equal rules: runs under both are equal\n"
    assert printed(capsys, "diff", "5.1", "5.2") == said


def test_difference_has_the_effect_of_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    """The rule of 6.13 is not on the way to 6.12.117, which has that of 6.17."""
    assert printed(capsys, "diff", "5.15", "6.12.117", "plug.tried").splitlines()[2:7] == [
        "kernel.plug.tried: all -> tail",
        "  5.16: Streams that alternate no longer merge in the plug: a bio is tried against one request.",
        "  5.18: A bio is tried against the newest request of its queue: members of an array merge again.",
        "  6.17 (and 6.12.117 at the latest): A bio is tried against the newest request in the plug, or else",
        "  the oldest of its queue.",
    ]


def test_later_kernel_may_lack_a_change_of_a_stable_one(capsys: pytest.CaptureFixture[str]) -> None:
    """6.1.192 has a change of 6.10, which 6.2 lacks."""
    assert printed(capsys, "diff", "6.1.192", "6.2").splitlines()[2:4] == [
        "kernel.filesystems.ext4.write_lock: exclusive -> shared",
        "  6.1.192 has the change of 6.10, and 6.2 does not.",
    ]


def test_difference_of_one_area_has_its_rules_only(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "diff", "5.15", "6.12", "kernel.sched")
    assert text.startswith(
        "4 rules differ in kernel.sched between 5.15 and 6.12, in the order of a page's way:"
    )
    assert text.count("kernel.") == 5
    assert printed(capsys, "diff", "5.1", "6.12", "spinlock") == (
        "5.1 and 6.12 have equal rules in spinlock\n"
    )


def test_last_part_of_a_name_finds_the_difference(capsys: pytest.CaptureFixture[str]) -> None:
    """Each name that is a rule for `list` is one for `diff`."""
    lines = printed(capsys, "diff", "2.6.29", "2.6.30", "dirty_ratio").splitlines()
    assert lines[0].startswith("1 rule differs in dirty_ratio between 2.6.29 and 2.6.30")
    assert lines[2] == "kernel.dirty.dirty_ratio: 10 -> 20"


def test_difference_is_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    """A rule that ended has no value."""
    document = json.loads(printed(capsys, "diff", "6.5", "6.6", "--json"))
    (ahead,) = (each for each in document["rules"] if each["rule"] == "kernel.sched.ahead_time")
    assert (document["before"], document["after"]) == ("6.5", "6.6")
    assert (ahead["before"], ahead["after"]) == (3_000_000, None)
    (step,) = ahead["steps"]
    assert (step["since"], step["value"], step["effect"]) == (["6.6"], None, "EEVDF has no such bound.")


def test_history_of_a_rule_has_its_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    """A name with ``kernel.``, and one without, are the same rule."""
    text = """\
kernel.plug.flush_bytes
  since 2.6.29: none
    docs/kernel/plugs.md#the-plug-of-a-task [V 2.6.39, 4.9]
  since 4.10: 128 KiB
    A new request flushes the plug if another has 128 KiB: large streams that alternate merge less.
    docs/kernel/plugs.md#the-plug-of-a-task [V 4.9, 4.10.17]
"""
    assert printed(capsys, "list", "rules", "kernel.plug.flush_bytes") == text
    assert printed(capsys, "list", "rules", "plug.flush_bytes") == text


def test_area_stands_for_the_rules_below_it() -> None:
    """``rwsem_spin`` is not in front of ``rwsem_spins``."""
    assert {row.key for row in rules_below(RULES, "rwsem_spin")} == {"rwsem_spin"}
    assert {row.key for row in rules_below(RULES, "unwritten")} == {
        "filesystems.xfs.unwritten",
        "filesystems.ext4.unwritten",
    }
    assert {row.key for row in rules_below(RULES, "dirty_ratio")} == {"dirty.dirty_ratio"}
    assert len(rules_below(RULES, "kernel")) > 150
    assert {row.key for row in rules_below(RULES, "kernel.dirty")} == {
        "dirty.dirty_background_ratio", "dirty.dirty_ratio", "dirty.least_dirty_ratio",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["diff", "6.12", "6.1"], "diff: 6.1: is earlier than 6.12; give the earlier kernel first"),
        (
            ["diff", "6.1", "7.1"],
            "diff: 7.1: is unknown; give a release from 2.6.29 to 6.18, or a name of wbsim list kernels",
        ),
        (["diff", "6.1", "6.2", "plug.tryed"], "diff: plug.tryed: unknown key; did you mean plug.tried?"),
        (["list", "rules", "plug.tryed"], "list: plug.tryed: unknown key; did you mean plug.tried?"),
        (
            ["list", "kernels", "plug"],
            "list: plug: is none of the kernels; wbsim list kernels prints them",
        ),
    ],
)
def test_error_names_the_word_and_the_remedy(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err == f"wbsim: {said}\n"


def test_unknown_rule_is_answered_with_the_areas(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "rules", "zzz"]) == 2
    assert "unknown key; use one of dirty, filesystems," in capsys.readouterr().err


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("plug.flush_bytes", 128 << 10, "128 KiB"), ("plug.unplug_time", 3_000_000, "3 ms"),
        ("throttling.initial_bandwidth", 100 << 20, "100 MiB/s"), ("mkfs.x_bytes", 9, "9 B"),
        ("plug.max_requests", 16, "16"), ("plug.max_requests", None, "none"), ("wbt", True, "true"),
        ("wbt", ABSENT, "-"), ("spinlock", "queued", "queued"),
    ],
)  # fmt: skip
def test_value_has_the_unit_of_its_key(key: str, value: object, text: str) -> None:
    assert value_text(rule(key, "", "2.6.29", value, "a test")) == text


def test_name_of_a_rule_is_a_key_of_a_configuration() -> None:
    """Rules of queues and of mkfs cannot be set below ``kernel``."""
    assert rule_name(rule("wbt", "", "4.10", True, "a test")) == "kernel.wbt"
    assert rule_name(rule("queue.blk_mq", "SATA", "4.19", True, "a test")) == "queue.blk_mq (SATA)"
