"""The voice of a document: the spread of its sentences, their first words, and the use of "you".

These counts guard the documents, as the bounds of `tests.measures.prose` do.  A text can meet them and still
be a bad one, so a reader decides.
"""

from __future__ import annotations

from pathlib import Path
from statistics import pstdev
from typing import Final, NamedTuple

from tests.measures.english import sentences, words
from tests.measures.markdown import paragraphs
from tests.measures.prose import GENERATED, ROOT
from wbsim.experiments.formats.table import table

LEAST_SPREAD: Final = 5.5
"""The standard deviation (words) of the sentence lengths of attrs and requests is 6.3 to 9.4."""
MOST_ARTICLES: Final = 0.25
"""The share of sentences that begin with The, A, An or It; in attrs and requests 6 to 9 %."""
LEAST_YOU: Final = 8
"""The number of "you", "your" and "yours" in each 1 000 words; in attrs and requests 24 to 42."""
_ARTICLES: Final = ("the", "a", "an", "it")
_YOU: Final = ("you", "your", "yours", "you're", "you'll")
LISTS: Final = (
    *GENERATED, "docs/glossary.md", "docs/measurements.md", "docs/drives.md", "docs/README.md",
    "CONTRIBUTING.md",
)  # fmt: skip
"""Documents that list or record, and so have no voice."""


class Voice(NamedTuple):
    """The counts of one document.

    ``spread``: the standard deviation of the lengths of its sentences (words).  ``articles``: the share of
    its sentences that begin with The, A, An or It.  ``you``: so many times in each 1 000 words.
    """

    spread: float
    articles: float
    you: float

    def faults(self) -> list[str]:
        """Return what is below or above its bound, in words."""
        faults = []
        if self.spread < LEAST_SPREAD:
            faults.append(f"its sentences are too equal: spread {self.spread:.1f}, at least {LEAST_SPREAD}")
        if self.articles > MOST_ARTICLES:
            share = f"{100 * self.articles:.0f} %, at most {100 * MOST_ARTICLES:.0f} %"
            faults.append(f"too many sentences begin with The, A or It: {share}")
        if self.you < LEAST_YOU:
            faults.append(f"it speaks past its reader: {self.you:.1f} times you, at least {LEAST_YOU}")
        return faults


def voice_of(text: str) -> Voice:
    """Return the voice of the document *text*; a document without a sentence has zeros.

    >>> voice_of("Give your disk a name. The name is free.")
    Voice(spread=0.5, articles=0.5, you=111.11111111111111)
    """
    all_sentences = [sentence for paragraph in paragraphs(text) for sentence in sentences(paragraph)]
    if not all_sentences:
        return Voice(0.0, 0.0, 0.0)
    lengths = [words(sentence) for sentence in all_sentences]
    first_words = [_letters(sentence.split()[0]) for sentence in all_sentences]
    every_word = [_letters(word) for sentence in all_sentences for word in sentence.split()]
    articles = sum(word in _ARTICLES for word in first_words) / len(first_words)
    return Voice(pstdev(lengths), articles, 1000 * sum(word in _YOU for word in every_word) / sum(lengths))


def _letters(word: str) -> str:
    return word.lower().strip(".,:;!?()[]*\"'").removesuffix("'s")


def spoken_documents(root: Path = ROOT) -> list[Path]:
    """Return README and the documents that explain or instruct."""
    documents = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    return [path for path in documents if str(path.relative_to(root)) not in LISTS]


def report() -> str:
    """Return a table of the voices of all documents that explain or instruct."""
    rows = []
    for path in spoken_documents():
        voice = voice_of(path.read_text())
        faults = "; ".join(voice.faults())
        numbers = (f"{voice.spread:.1f}", f"{100 * voice.articles:.0f}", f"{voice.you:.1f}")
        rows.append((path.name, *numbers, "speaks" if not faults else "misses a bound"))
    return table(("document", "spread, words", "The, A, It %", "you, each 1 000 words", ""), rows)
