"""The comparison of two commits: equal results, ratios, the order of the runs, unknown commits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench_against import Tree, differing, order_of, ratios_of, tree_of


def test_differing_names_shared_fields_whose_values_differ() -> None:
    """Fields of the host, and fields of one commit alone, are left out."""
    ours = {"wall_time": 1.5, "merges": 3, "cpu_s": 1.0, "peak_rss_mib": 80.0, "on_disk_time": 2.0}
    theirs = {"wall_time": 1.5, "merges": 3, "cpu_s": 2.0, "peak_rss_mib": 90.0}
    assert differing(ours, theirs) == []
    assert differing(ours, {**theirs, "merges": 4, "wall_time": 1.25}) == ["merges", "wall_time"]


def test_unknown_commit_is_reported_before_anything_is_built() -> None:
    """The message gives the commit and the remedy."""
    with pytest.raises(SystemExit, match="git knows no commit 783x; give one that `git log` shows"):
        tree_of("783x")


def test_ratio_is_this_commit_over_the_other() -> None:
    """10 and 20 s against 40 and 20 s have the ratios 0.25 and 1, and together 0.5."""
    ours = {"a": {"cpu_s": 10.0}, "b": {"cpu_s": 20.0}}
    theirs = {"a": {"cpu_s": 40.0}, "b": {"cpu_s": 20.0}}
    assert ratios_of(ours, theirs) == {"a": 0.25, "b": 1.0, "both": 0.5}


def test_order_of_runs_changes_from_pair_to_pair() -> None:
    """This commit is first in the first pair."""
    this, other = Tree("this", Path(), ""), Tree("other", Path("other"), "")
    assert [order_of((this, other), pair) for pair in range(3)] == [
        (this, other),
        (other, this),
        (this, other),
    ]
