"""The sentence that answers a sweep, and the words for a bottleneck."""

from __future__ import annotations

import pytest

from wbsim.experiments.why.answer import UNWRITTEN, answer_of, cause_of, in_words

WRITER, FLUSHER, DISK = "a process of fs_mark", "the flusher of sda", "the head of sda"
FROM_TWO = f"From n = 2 on, {FLUSHER} holds the run back; below, {WRITER}."
DIFFERS, ALONG = "What holds the run back differs:", "What holds the run back changes along n:"


@pytest.mark.parametrize(
    ("resource", "words"),
    [
        ("thread sda/flusher", "the flusher of sda"),
        ("thread sda:12/flusher", "a flusher of sda"),
        ("thread fio/process 3", "a process of fio"),
        ("thread mnt/kworker/xfs-data", "the thread mnt/kworker/xfs-data"),
        ("device md0 md0_raid5", "the md0_raid5 of md0"),
        ("lock mnt/xc_cil_lock", "the lock mnt/xc_cil_lock"),
        ("pauses of fio/process 2", "the pauses of fio"),
        ("start of fio", "the start of fio"),
        ("processors", "the processors together"),
    ],
)
def test_resource_has_words_without_numbers(resource: str, words: str) -> None:
    assert in_words(resource) == words


def test_cause_needs_half_of_the_run() -> None:
    assert cause_of({"device sda head": 0.5}) == DISK
    assert cause_of({"device sda head": 0.499}) == "nothing in particular"
    assert cause_of({"device sda head": 0.9}, written_back=False) == UNWRITTEN


@pytest.mark.parametrize(
    ("points", "causes", "sentence"),
    [
        ([[1], [2], [4]], [DISK] * 3, "The head of sda holds the run back at every point."),
        ([[1], [2], [4]], [WRITER, FLUSHER, FLUSHER], FROM_TWO),
        (
            [["1 MiB"], ["2 MiB"], ["1 GiB"]], [WRITER, FLUSHER, DISK],
            f"{ALONG} {WRITER} at 1 MiB, {FLUSHER} at 2 MiB, {DISK} at 1 GiB.",
        ),
        (
            [[1], [2], [4], [8]], [WRITER, WRITER, FLUSHER, WRITER],
            f"What holds the run back changes along n: {WRITER} from 1 to 2, {FLUSHER} at 4, {WRITER} at 8.",
        ),
        (
            [[1], [2], [3], [4], [5]], [WRITER, DISK, WRITER, DISK, WRITER],
            f"What holds the run back differs: {WRITER} at 1 and at 3 and at 5, {DISK} at 2 and at 4.",
        ),
        ([[4], [2]], [WRITER, DISK], f"What holds the run back differs: {WRITER} at 4, {DISK} at 2."),
        ([["3.11"], ["6.1"]], [WRITER, DISK], f"{DIFFERS} {WRITER} at 3.11, {DISK} at 6.1."),
        ([[1]], ["the processors together"], "The processors together hold the run back at every point."),
        ([[1], [2]], [UNWRITTEN] * 2, "Nothing was written back at every point."),
    ],
)  # fmt: skip
def test_sentence_follows_the_sweep(points: list[list[object]], causes: list[str], sentence: str) -> None:
    """Rising numbers have an order; texts, falling numbers and many changes have only places."""
    assert answer_of(["n"], points, causes) == sentence


def test_two_axes_have_no_order() -> None:
    points = [[a, b] for a in (1, 2) for b in (1, 2)]
    assert answer_of(["a", "b"], points, [WRITER, WRITER, WRITER, DISK]) == (
        f"What holds the run back differs: {WRITER} at 1, 1 and at 1, 2 and at 2, 1, {DISK} at 2, 2."
    )
    many = answer_of(["n"], [["x"], ["y"], ["z"], ["w"], ["v"]], [DISK] * 4 + [WRITER])
    assert many == f"What holds the run back differs: {DISK} at 4 of 5 points, {WRITER} at v."
