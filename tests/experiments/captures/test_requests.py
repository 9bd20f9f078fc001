"""Requests as the kernel's decisions show them: the request that a bio joined, and its hidden part."""

from __future__ import annotations

import pytest

from wbsim.experiments.captures.episodes import Episode
from wbsim.experiments.captures.merge_decisions import Moved, Piece
from wbsim.experiments.captures.requests import Requests, Seen
from wbsim.experiments.captures.verdict import Mismatch, Verdict
from wbsim.models.block.merge import BACK, FRONT, NEW, Merge


def piece(sector: int, merge: Merge, pid: int = 9, sectors: int = 8) -> Piece:
    """Return a bio of task *pid*."""
    return Piece(1, pid, 1, "7,0", "W", sector, sectors, merge, True, False, 1, True)


def moved(sector: int, sectors: int, *, merged: bool = False, issued: bool = False) -> Moved:
    """Return the step of a request of task 9 that is inserted, merged or issued."""
    return Moved(1, 9, 1, "7,0", sector, sectors, merged, issued, "W")


def ends(seen: Seen | None) -> tuple[int, int, bool] | None:
    """Return the first sector, the sector after the last, and whether the request is hidden."""
    return None if seen is None else (seen.start, seen.end, seen.hidden)


def test_a_bio_extends_the_request_that_it_joined() -> None:
    """Bios extend both ends of the request.  A bio does not find a request in the plug of another task."""
    requests = Requests()
    own = requests.begin(piece(100, NEW), hidden=False)
    assert requests.joined_by(piece(108, BACK)) is requests.joined_by(piece(92, FRONT)) is own
    assert ends(own) == (92, 116, False)
    assert ends(requests.joined_by(piece(116, BACK, pid=8))) == (116, 124, True)
    assert requests.move(moved(92, 24)) is own
    assert requests.joined_by(piece(84, FRONT, pid=8)) is own
    assert requests.move(moved(84, 32, issued=True)) is own
    assert ends(requests.joined_by(piece(76, FRONT))) == (76, 84, True)


@pytest.mark.parametrize("hidden", [[True, False], [False, True]])
def test_a_request_that_is_shown_comes_before_a_hidden_one(hidden: list[bool]) -> None:
    """Two requests end at the sector.  The bio may have joined the request that is shown."""
    requests = Requests()
    both = [requests.begin(piece(0, NEW), hidden=one) for one in hidden]
    assert requests.joined_by(piece(8, BACK)) is both[hidden.index(False)]


@pytest.mark.parametrize("own_first", [True, False])
def test_a_task_joins_its_own_plug_before_the_queue(own_first: bool) -> None:
    """blk_attempt_plug_merge comes before the scheduler's merges."""
    requests = Requests()
    if own_first:
        own = requests.begin(piece(0, NEW), hidden=False)
    waiting = requests.begin(piece(0, NEW, pid=8, sectors=4), hidden=False)
    requests.move(moved(0, 4))
    requests.joined_by(piece(4, BACK, pid=8, sectors=4))
    if not own_first:
        own = requests.begin(piece(0, NEW), hidden=False)
    assert requests.joined_by(piece(8, BACK)) is own
    assert ends(waiting) == (0, 8, False)


def test_a_hidden_request_shows_its_ends_when_it_moves() -> None:
    """Two bios of a request of 32 sectors are known.  The insertion of the request shows all sectors."""
    requests = Requests()
    part = requests.joined_by(piece(16, BACK))
    assert requests.joined_by(piece(24, BACK)) is part
    assert requests.hidden_beside(piece(32, NEW))
    assert not requests.hidden_beside(piece(32, NEW, pid=8))
    assert requests.move(moved(0, 32)) is part
    assert ends(part) == (0, 32, True)
    assert requests.hidden_beside(piece(32, NEW, pid=8))
    assert requests.move(moved(0, 32, issued=True)) is part
    assert not requests.hidden_beside(piece(32, NEW))
    assert requests.move(moved(0, 32, issued=True)) is None


@pytest.mark.parametrize("hidden", ["none", "first", "second"])
def test_a_request_that_merges_extends_the_one_before_it(hidden: str) -> None:
    """block_rq_merge: the result is hidden if one of the two is."""
    requests = Requests()
    first = requests.begin(piece(0, NEW), hidden=hidden == "first")
    requests.move(moved(0, 8))
    if hidden != "second":
        requests.begin(piece(8, NEW), hidden=False)
    requests.move(moved(8, 8, merged=True))
    assert ends(first) == (0, 16, hidden != "none")
    assert requests.joined_by(piece(16, BACK, pid=8)) is first
    assert ends(requests.move(moved(0, 24, issued=True))) == (0, 24, hidden != "none")


def test_a_withdrawn_episode_leaves_no_judgement() -> None:
    """The counts of the episode are removed, and its decisions and unseen requests count as inside a plug.

    A second call changes nothing.
    """
    seen = Seen(9, 0, 8, hidden=False)
    episode = Episode(
        decisions=5, decisions_equal=4, flushes=3, flushes_equal=2, requests_more=1, request_unseen=6,
        differing={7}, requests=[seen],
    )  # fmt: skip
    kept = Mismatch(8, "decision", "getrq", "backmerge")
    verdict = Verdict(
        decisions_total=10, decisions_equal=9, full_flush_total=8, full_flush_equal=7, unjudged=6,
        request_unseen=6, requests_simulated=5, mismatches=[kept._replace(line=7), kept],
    )  # fmt: skip
    for _ in range(2):
        episode.withdraw(verdict)
        assert verdict == Verdict(
            decisions_total=5, decisions_equal=5, full_flush_total=5, full_flush_equal=5, unjudged=11,
            inside_plug=11, requests_simulated=4, mismatches=[kept],
        )  # fmt: skip
    assert episode.hidden
    assert seen.hidden
