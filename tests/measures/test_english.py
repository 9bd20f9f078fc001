"""The rules of English are counted as they are written: worked examples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.measures import english


@pytest.mark.parametrize(
    ("docstring", "headless"),
    [
        ("Who holds the lock.", True),
        ("So many pages are dirty.", True),
        ("So the flusher sleeps.", False),
        ("The same for a batch.", True),
        ("The\n    same for a batch.", True),
        ("The samples of a run.", False),
        ("From where the walk continues.", True),
        ("From the agenda, the next entry.", False),
        ("What's left in the queue.", True),
        ("Whatever is dirty.", False),
        ("Offer a request.", False),
        ("(Of a plug) the requests.", True),
        ("``of`` is the name of the disk.", False),
        ("with_room: the groups.", False),
        ("Until the device is idle.", True),
        ("Return what is dirty.", False),
        ("", False),
    ],
)
def test_first_words_decide_headless(docstring: str, headless: bool) -> None:
    assert english.is_headless(docstring) is headless


@given(st.sampled_from(english.HEADLESS), st.sampled_from(["  ", " \n ", " ", "\t"]))
def test_headless_words_match_in_any_case_and_spacing(phrase: str, space: str) -> None:
    words = phrase.replace(" ", space)
    assert english.is_headless(f"{words} pages")
    assert english.is_headless(f"{words.upper()}: pages")
    assert not english.is_headless(f"{words}_pages are dirty")
    assert not english.is_headless(f"Return {words} pages")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The writer is told of it.", [(0, "told")]),
        ("Nobody waits;\nthe flusher tells nobody.", [(0, "Nobody"), (1, "tells"), (1, "nobody")]),
        ("a folder of\none's own", [(0, "of one's own")]),
        ("a clock of its\nown", [(0, "of its own")]),
        ("its own clock, on its own", []),
        ("one\u2019s own", [(0, "one\u2019s own")]),
        ("`told`, ``lives`` and ``who\ntells`` are code", []),
        ("``a\nb`` is told", [(1, "told")]),
        ("outcome.lives, told.py, _told, lives(), models/lives, x_lives", []),
        ("how it lives. And whom?", [(0, "lives"), (0, "whom")]),
        ("outlives, tellsome, whomever", []),
    ],
)
def test_vague_actors_have_lines_and_exclude_identifiers(text: str, found: list[tuple[int, str]]) -> None:
    assert list(english.vague(text)) == found
    assert not found or english.may_be_vague(text)


@given(st.sampled_from(english.VAGUE))
def test_hint_covers_every_vague_phrase(phrase: str) -> None:
    assert [said for _, said in english.vague(f"The page, {phrase}, is dirty")] == [phrase]
    assert english.may_be_vague(phrase.replace(" ", "\n# ").upper())
    assert not english.may_be_vague("The flusher writes pages.")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("The flusher writes 4 096 pages.", 5),
        ("It takes 1 024 000 ns, or 1, 2, 3 ticks", 9),
        ("one - two \u2014 three", 3),
        ("``wbsim run CONFIG --quick`` prints", 2),
        ("see fs/xfs/xfs_log.c", 2),
        ("", 0),
    ],
)
def test_words_count_spans_and_grouped_digits_once(text: str, count: int) -> None:
    assert english.words(text) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("The flusher wakes. It writes.", 2),
        ("The flusher wakes.\nIt writes", 2),
        ("A filesystem, e.g. XFS, i.e. a log, has groups.", 1),
        ("Of fs/xfs/xfs_log.c and fs/fs-writeback.c the second is longer. The first is older.", 2),
        ("It stands in fs/xfs/xfs_log.c. fs_mark calls it.", 2),
        ("Linux 6.18 takes 1.5 us. A drive takes 80 us.", 2),
        ("With 1, 2, 4 ... contexts it scales.", 1),
        ("It waits ... Then it wakes.", 2),
        ("Pages, extents, etc. are counted. Bios, requests, etc. Others are not.", 3),
        ("Is it dirty? Write it! (It was.) Done.", 4),
        ("Workload A. Workload B.", 2),
        ("Call `a. B. c` twice. Then stop.", 2),
        ("See no. 5 of the list. The answer is no. It waits.", 3),
        ("**Bold.** Plain.", 2),
        ("...", 0),
    ],
)
def test_sentences_end_at_marks_but_not_at_abbreviations(text: str, count: int) -> None:
    assert len(english.sentences(text)) == count


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.sampled_from([" ", "\n", "  "]))
def test_sentence_lengths_add_up(lengths: list[int], space: str) -> None:
    """Sentences of given numbers of words have these lengths, and their sum is the paragraph's."""
    text = space.join("Page" + " page" * (count - 1) + "." for count in lengths)
    assert [of.words for of in english.sentence_lengths([text])] == lengths
    assert [of.words for of in english.paragraph_lengths([text])] == [sum(lengths)]


def test_length_begins_with_first_six_words() -> None:
    (length,) = english.sentence_lengths(["One two three four five six seven."])
    assert length == (7, "One two three four five six")


@pytest.mark.parametrize(
    ("name", "spoken"),
    [
        ("test_flusher_wakes", "flusher wakes"),
        ("test_the_program_s_numbers", "the program's numbers"),
        ("test_a_clock_of_one_s_own", "a clock of one's own"),
        ("test_it_takes_1_5_s", "it takes 1 5's"),
    ],
)
def test_names_split_into_words(name: str, spoken: str) -> None:
    assert english.name_words(name) == spoken
