"""The tables of `python -m tests.measures prose`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from tests.measures.bounds import REMEDY, read, slack
from tests.measures.english import LONGEST_NAME, LONGEST_PARAGRAPH, LONGEST_READ, LONGEST_SENTENCE
from tests.measures.prose import FOLDERS, Prose, measure
from wbsim.experiments.formats.table import table


def report() -> str:
    """Return the tables of today's prose, and by how much the bounds may be lowered."""
    prose = measure()
    below = slack(read(), prose.counts())
    remedy = f"bounds above today's counts: {below} in all" + (f"; lower them: {REMEDY}" if below else "")
    return "\n\n".join((folders_table(prose), documents_table(prose), sizes_table(prose), remedy))


def folders_table(prose: Prose) -> str:
    """Return the findings of each folder: a layer with all that is below it, then each folder by itself."""
    counts, rows = prose.counts(), []
    for layer in FOLDERS:
        below = [name for name in sorted(prose.docstrings | counts) if f"{name}/".startswith(f"{layer}/")]
        rows.append(_cells(f"{layer}, all", below, prose.docstrings, counts))
        rows.extend(_cells(name, [name], prose.docstrings, counts) for name in below)
    header = ("folder", "docstrings", "headless", "share", "vague", "long sentences", "long names")
    return table(header, rows)


def _cells(
    title: str, folders: Sequence[str], docstrings: Counter[str], counts: dict[str, dict[str, int]]
) -> tuple[str, ...]:
    of: Counter[str] = Counter()
    for folder in folders:
        of.update(counts.get(folder, {}))
    total = sum(docstrings[folder] for folder in folders)
    numbers = (of[kind] for kind in ("vague", "long sentences", "long names"))
    return (title, str(total), str(of["headless"]), _share(of["headless"], total), *map(str, numbers))


def documents_table(prose: Prose) -> str:
    """Return the findings of each document that has any."""
    kinds = ("vague", "long sentences", "long paragraphs")
    counts = {name: of for name, of in prose.counts().items() if name.endswith(".md")}
    rows = [(name, *(str(of.get(kind, 0)) for kind in kinds)) for name, of in sorted(counts.items())]
    return table(("document", *kinds), rows)


def sizes_table(prose: Prose) -> str:
    """Return mean, maximum and the number above the limit of the words of sentences, paragraphs and names."""
    groups = (
        ("sentences of the guides", [of.words for of in prose.sentences], LONGEST_READ),
        ("paragraphs of the guides", [of.words for of in prose.paragraphs], LONGEST_PARAGRAPH),
        ("sentences of docstrings", [of.words for of in prose.spoken], LONGEST_SENTENCE),
        ("names of tests", prose.names, LONGEST_NAME),
    )
    rows = [(name, *_lengths(lengths, limit)) for name, lengths, limit in groups]
    return table(("words of", "number", "mean", "max", "limit", "above", "share"), rows)


def _lengths(lengths: Sequence[int], limit: int) -> tuple[str, ...]:
    above = sum(length > limit for length in lengths)
    mean, most = (f"{fmean(lengths):.1f}", str(max(lengths))) if lengths else ("-", "-")
    return str(len(lengths)), mean, most, str(limit), str(above), _share(above, len(lengths))


def _share(part: int, total: int) -> str:
    return f"{100 * part / total:.0f} %" if total else "-"
