"""The rules of filesystems by release: each rule has its value on both sides of each bound."""

from __future__ import annotations

from typing import Any

import pytest

from wbsim.models.filesystems.ext4.spec import ext4_rules
from wbsim.models.filesystems.xfs.spec import xfs_rules

BOUNDS: dict[Any, dict[str, list[tuple[str, Any]]]] = {
    ext4_rules: {
        "bump_pages": [("2.6.31", 16), ("2.6.32", 32_768), ("3.10", 32_768), ("3.11", 0), ("6.18", 0)],
        "page_bios": [("2.6.29", True), ("2.6.36", True), ("2.6.37", False), ("2.6.39", False)],
        "by_order": [("2.6.39", False), ("5.12", False), ("5.13", True), ("6.18", True)],
        "packs_closed": [("3.11", False), ("5.19", False), ("6.0", True), ("6.18", True)],
        "goals": [("2.6.29", "one"), ("6.16", "one"), ("6.17", "per_processor"), ("6.18", "per_processor")],
        "large_folios": [("5.18", False), ("6.15", False), ("6.16", True), ("6.18", True)],
        "unwritten": [("4.20", False), ("5.5", False), ("5.6", True), ("6.18", True)],
        "sync_data": [("2.6.29", False), ("2.6.30", True), ("6.18", True)],
    },
    xfs_rules: {
        "prealloc": [
            ("2.6.29", "fixed"), ("2.6.37", "fixed"), ("2.6.38", "size"), ("3.8", "size"),
            ("3.9.0", "preceding"), ("6.18", "preceding"),
        ],
        "nr_to_write_counts": [
            ("2.6.31", "pages"), ("2.6.32", "calls_x4"), ("2.6.34", "calls_x4"), ("2.6.35", "pages"),
            ("2.6.34-n10", "pages"), ("6.18", "pages"),
        ],
        "whole_calls": [("3.11", False), ("4.7", False), ("4.8", True), ("6.18", True)],
        "wraps": [("2.6.29", True), ("4.19", True), ("4.20", False), ("6.18", False)],
        "unwritten": [("4.20", False), ("5.9", False), ("5.10", True), ("6.18", True)],
        "zeroing_converts": [("5.10", False), ("6.9", False), ("6.10", True), ("6.18", True)],
        "large_folios": [("5.10", False), ("5.17", False), ("5.18", True), ("6.18", True)],
        "spans_calls": [("3.11", False), ("4.5", False), ("4.6", True), ("6.18", True)],
        "cil": [("3.11", "spinlock"), ("5.19", "spinlock"), ("6.0", "per_cpu"), ("6.18", "per_cpu")],
        "sync_data": [("2.6.33", False), ("2.6.34", True), ("2.6.34-n10", True), ("6.18", True)],
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("rules", "name"), [(rules, name) for rules, names in BOUNDS.items() for name in names]
)
def test_a_rule_changes_with_its_release(rules: Any, name: str) -> None:
    """The value changes from that release on, and not before."""
    for kernel, value in BOUNDS[rules][name]:
        assert rules(kernel)[name].value == value, kernel


def test_each_rule_has_its_bounds_here() -> None:
    """A new rule must be added to `BOUNDS`."""
    for rules, names in BOUNDS.items():
        assert rules("6.18").keys() == names.keys()
