"""The rules of English that are counted: headless docstrings, vague actors, long sentences and paragraphs.

Every function takes text without code blocks: `tests.measures.markdown` removes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

LONGEST_SENTENCE: Final = 25
"""Words of the longest sentence of a docstring that is not counted."""
LONGEST_READ: Final = 35
"""Words of the longest sentence of a document that is not counted, if its order carries the reader along."""
LONGEST_PARAGRAPH: Final = 100
"""Words of the longest paragraph of a document that is not counted."""
LONGEST_NAME: Final = 10
"""Words of the longest test name that is not counted."""

HEADLESS: Final = (
    "who", "what", "whom", "whose", "those", "that", "of", "so many", "the same", "how", "which", "where",
    "when", "whether", "as", "with", "from where", "until",
)  # fmt: skip
VAGUE: Final = (
    "nobody", "somebody", "anybody", "whoever", "of one's own", "of one's", "one's own", "of its own", "whom",
    "lives", "told", "tells",
)  # fmt: skip
"""Longer phrases stand before their parts, so that a phrase is counted once."""


def _phrases(phrases: tuple[str, ...]) -> str:
    return "|".join(phrase.replace("'", "['\u2019]").replace(" ", r"\s+") for phrase in phrases)


_HEADLESS: Final = re.compile(rf"""[\s("'\u201c]*(?:{_phrases(HEADLESS)})\b""", re.IGNORECASE)
# A dot, a slash, an underscore or a call next to a word makes a path or an identifier of it.
_VAGUE: Final = re.compile(rf"(?<![\w./-])(?:{_phrases(VAGUE)})(?![\w/(=]|\.\w)", re.IGNORECASE)
_HINT: Final = re.compile(
    "|".join(sorted({phrase.split()[-1] for phrase in VAGUE})).replace("'", "."), re.IGNORECASE
)
_SPAN: Final = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_GROUPS: Final = re.compile(r"(?<![\d.,])\d{1,3}(?: \d{3})+(?!\d)")
_END: Final = re.compile(r"""[.!?]["')\]\u201d*]*\s+""")
_ABBREVIATIONS: Final = frozenset(("e.g", "i.e", "cf", "vs", "approx", "ca", "dr", "mr", "resp", "incl"))
_BEFORE_NUMBERS: Final = frozenset(("no", "fig", "sec", "p"))
_MAY_END: Final = frozenset(("etc", "al"))


class Length(NamedTuple):
    """The words of a sentence or a paragraph, and its first words as a place."""

    words: int
    begins: str


def is_headless(docstring: str) -> bool:
    """Return whether *docstring* begins with a word of `HEADLESS`; a code span counts as a noun."""
    return _HEADLESS.match(docstring) is not None


def without_spans(text: str) -> str:
    """Return *text* with each code span as one word; the line numbers stay."""
    return _SPAN.sub(lambda span: "code" + "\n" * span[0].count("\n"), text)


def vague(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line within *text*, from 0 on, and the words of each vague actor outside of code spans."""
    prose = without_spans(text)
    for found in _VAGUE.finditer(prose):
        yield prose.count("\n", 0, found.start()), " ".join(found[0].split())


def may_be_vague(source: str) -> bool:
    """Return False only if no comment of *source* can be vague; True costs time, not correctness."""
    return _HINT.search(source) is not None


def words(text: str) -> int:
    """Return the number of words: a code span is one, and so is a number with its digits in groups."""
    prose = _GROUPS.sub("1", without_spans(text))
    return sum(any(letter.isalnum() for letter in word) for word in prose.split())


def sentences(paragraph: str) -> list[str]:
    """Return the sentences of *paragraph*; its end ends a sentence, too."""
    prose = " ".join(without_spans(paragraph).split())
    found, start = [], 0
    for end in _END.finditer(prose):
        if not _continues(prose[start : end.start()], prose[end.start()], prose[end.end() :]):
            found.append(prose[start : end.end()].strip())
            start = end.end()
    found.append(prose[start:].strip())
    return [sentence for sentence in found if words(sentence)]


def _continues(before: str, mark: str, after: str) -> bool:
    """Return whether a sentence continues after *mark*: an abbreviation or an ellipsis."""
    if mark != ".":
        return False
    last = before.rsplit(None, 1)[-1].lstrip("(\"'[*").lower() if before.strip() else ""
    if last in _BEFORE_NUMBERS:
        return after[:1].isdigit()
    if last in _MAY_END or last.endswith("."):
        return not after[:1].isupper()
    return last in _ABBREVIATIONS


def sentence_lengths(paragraphs: list[str]) -> list[Length]:
    """Return the length of each sentence of *paragraphs*."""
    return [
        Length(words(sentence), _begin(sentence))
        for paragraph in paragraphs
        for sentence in sentences(paragraph)
    ]


def paragraph_lengths(paragraphs: list[str]) -> list[Length]:
    """Return the length of each of *paragraphs*."""
    return [Length(words(text), _begin(text)) for text in paragraphs if words(text)]


def _begin(text: str) -> str:
    return " ".join(text.split()[:6])


def name_words(name: str) -> str:
    """Return the words of a test name without its ``test_``; a lone s is a possessive ('s)."""
    return re.sub(r"(?<=\w)_s(?=_|$)", "'s", name.removeprefix("test_")).replace("_", " ")
