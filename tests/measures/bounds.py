"""The upper bounds of the counts of `tests.measures.prose`, kept by folder in prose.toml.

A folder or a kind that the file does not name has the bound 0, so a new folder starts at zero.  A count below
its bound is no failure: several people may edit at once, and `lowered` brings the file up to date.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

from tests.measures.prose import KINDS, ROOT, Finding

Counts = dict[str, dict[str, int]]
"""Numbers of findings by folder and kind."""

PATH: Final = Path(__file__).parent / "prose.toml"
REMEDY: Final = "python -m tests.measures --write"
SHOWN: Final = 25
"""Findings of one folder and kind that a failure names."""
_HEAD: Final = f"""\
# Upper bounds of the findings in English prose, by folder and by document: see `tests.measures.prose`.
# Written by `{REMEDY}`, which lowers bounds and raises none.
"""


def read(path: Path = PATH) -> Counts:
    """Return the committed bounds."""
    found: Counts = tomllib.loads(path.read_text())
    return found


def text_of(bounds: Counts) -> str:
    """Return the content of prose.toml: a line for each folder, without bounds of 0."""
    lines = [_HEAD]
    for folder, of in sorted(bounds.items()):
        given = ", ".join(f'"{kind}" = {of[kind]}' for kind in KINDS if of.get(kind))
        if given:
            lines.append(f'"{folder}" = {{ {given} }}\n')
    return "".join(lines)


def lowered(bounds: Counts, counts: Counts) -> Counts:
    """Return *bounds*, each lowered to its count: no bound rises."""
    return {
        folder: {kind: min(most, counts.get(folder, {}).get(kind, 0)) for kind, most in of.items()}
        for folder, of in bounds.items()
    }


def slack(bounds: Counts, counts: Counts) -> int:
    """Return the sum of the differences between *bounds* and lower *counts*."""
    return total(bounds) - total(lowered(bounds, counts))


def total(bounds: Counts) -> int:
    """Return the sum of *bounds*."""
    return sum(most for of in bounds.values() for most in of.values())


def breaches(findings: list[Finding], bounds: Counts, root: Path = ROOT) -> list[str]:
    """Return a message for each folder and kind with more *findings* than its bound.

    A message names the findings of that folder; the findings in the files that were changed last come first.
    """
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.folder, finding.kind), []).append(finding)
    return [
        _message(folder, kind, found, most, root)
        for (folder, kind), found in sorted(groups.items())
        if len(found) > (most := bounds.get(folder, {}).get(kind, 0))
    ]


def _message(folder: str, kind: str, found: list[Finding], most: int, root: Path) -> str:
    def age(finding: Finding) -> float:
        path = root / finding.path
        return -path.stat().st_mtime if path.exists() else 0.0

    shown = [f"  {finding}" for finding in sorted(found, key=age)[:SHOWN]]
    more = [f"  and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    head = f"{folder}: {len(found)} findings of kind {kind!r}, at most {most} are allowed; rewrite one of"
    return "\n".join([head, *shown, *more])
