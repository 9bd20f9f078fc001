"""Names are nouns for things and verbs for acts: no preposition, pronoun or bare participle is a name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]


def words(text: str) -> frozenset[str]:
    """Return the words of *text*."""
    return frozenset(text.split())


PREPOSITIONS: Final = words("""
    of at on to by before after between behind beside below above under over since until along within without
    into out off near around through against during per than upon onto beyond across ahead apart
""")
PRONOUNS: Final = words("""
    what which who it its one other others another this that these those they them mine ours every both same
    such there here only all any each some something anything everything nothing none itself
""")
PARTICIPLES: Final = words("""
    known joined asked given found made said told shown seen taken held kept named used wanted written moved
    merged scaled placed expanded chosen changed drawn begun gone got left lost meant met paid ran sent sold
    spoken thought thrown understood won came come counted added removed sorted tried allowed needed ended
    started finished waited waiting issued completed fitted stated bounded limited derived computed printed
    listed stored loaded parsed checked refused rejected accepted skipped missing lacking remaining existing
    following matching touching leaving going running beginning unknown unseen unfolded unused
""")
NO_NAMES: Final = PREPOSITIONS | PRONOUNS | PARTICIPLES
ALLOWED: Final = dict.fromkeys(words("after at behind by each every tried"), "a key of configurations") | {
    "out": "the option --out, also in Python",
    "what": "a key of the JSON of replay",
    "others": "a key of the JSON of status",
    "other": "the argument of object.__eq__",
    "until": "the argument of simpy.Environment.run",
}
"""Names that stay, with the reason."""
MOST_IN_TESTS: Final = 1_922
"""The findings in tests, which may only become fewer."""


def bound_names(source: str) -> Iterator[tuple[str, int]]:
    """Yield each name that *source* binds, and its line: functions, classes, arguments, variables, fields."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno


def findings(folder: str) -> list[str]:
    """Return the place of each forbidden name in *folder*."""
    return [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name, line in bound_names(path.read_text())
        if name.strip("_") in NO_NAMES - ALLOWED.keys() and not name.startswith("__")
    ]


def test_names_of_the_package_are_nouns_and_verbs() -> None:
    assert findings("wbsim") == []


def test_names_of_tests_become_better() -> None:
    """Lower the bound with each name that you replace."""
    assert len(findings("tests")) <= MOST_IN_TESTS


def test_each_kind_of_name_is_found() -> None:
    """A function, an argument, a variable, a field and a loop bind names; a use and a call do not."""
    source = """
def of(at, _on=1): pass
class A:
    given: int
what = self._left = f(found=by)
for it in x: pass
"""
    names = ["A", "_left", "_on", "at", "given", "it", "of", "what"]
    assert sorted(name for name, _ in bound_names(source)) == names
