"""The voice of documents: worked counts, and the bounds that every explaining document meets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.measures.voice import LISTS, Voice, spoken_documents, voice_of


@pytest.mark.parametrize("path", spoken_documents(), ids=lambda path: path.name)
def test_document_speaks_to_its_reader(path: Path) -> None:
    faults = voice_of(path.read_text()).faults()
    assert not faults, f"{path.name}: {'; '.join(faults)}"


def test_sentence_lengths_spread_by_their_deviation() -> None:
    """Sentences of 2, 4 and 6 words: the squared deviations are 4, 0 and 4, their mean 8 / 3."""
    voice = voice_of("Pages wait. Two pages wait here. Two pages of yours wait here.")
    assert voice.spread == pytest.approx((8 / 3) ** 0.5)
    assert voice.you == pytest.approx(1000 / 12)
    assert voice.articles == 0


def test_articles_count_at_the_start_only() -> None:
    voice = voice_of("The disk is a disk.\n\n* It waits.\n* An end.\n* Wait for it.\n")
    assert voice.articles == 3 / 4


def test_code_and_tables_have_no_voice() -> None:
    assert voice_of("# Your title\n\n    your code\n\n| your | table |\n") == Voice(0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("voice", "words"),
    [
        (Voice(5.4, 0.2, 9), "too equal: spread 5.4, at least 5.5"),
        (Voice(6, 0.26, 9), "26 %, at most 25 %"),
        (Voice(6, 0.2, 7.9), "7.9 times you, at least 8"),
    ],
)
def test_fault_names_its_bound(voice: Voice, words: str) -> None:
    (fault,) = voice.faults()
    assert words in fault
    assert Voice(5.5, 0.25, 8).faults() == []


def test_lists_have_no_bound() -> None:
    names = {path.name for path in spoken_documents()}
    assert {"README.md", "plug.md", "start.md"} <= names
    assert not {Path(name).name for name in LISTS if name != "docs/README.md"} & names
