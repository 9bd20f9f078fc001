"""The prose of the repository stays within its bounds, and small sources have the expected findings."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.measures import bounds, prose
from tests.measures.__main__ import main
from tests.measures.bounds import breaches, lowered, read, slack, text_of
from tests.measures.prose import KINDS, Finding, Prose, measure, of_document, of_source

_SOURCE = '''\
"""Model a disk."""

LIMIT = 3
"""Nobody reads this."""

# The queue is
# of its
# own.
x = "told"  # told again
# tells

class Head:
    """What the disk does.

    It is told.
    """

    def look(self) -> None:
        """Return the head."""
        self.lives = 1
        """Somebody's."""

        async def inner() -> None:
            """Which request is first."""


def bare() -> None:
    "So many requests."
    if x:
        def deep() -> None:
            """Where it lies."""
    try:
        pass
    except OSError:
        def deeper() -> None:
            """How it fails."""


def no_docstring(told: int) -> str:
    return """Who is told"""
'''


def found(of: Prose, kind: str) -> list[int]:
    """Return the lines of the findings of *kind*, in their order."""
    return sorted(finding.line for finding in of.findings if finding.kind == kind)


def test_findings_name_the_lines_of_a_source() -> None:
    """Docstrings of classes and of nested functions count; strings and identifiers do not."""
    of = of_source(_SOURCE, "wbsim/sim/disk.py")
    assert dict(of.docstrings) == {"wbsim/sim": 9}
    assert found(of, "headless") == [13, 24, 28, 31, 36]
    assert found(of, "vague") == [4, 7, 9, 10, 15, 21]
    assert found(of, "long names") == []
    assert {str(finding) for finding in of.findings} >= {
        "wbsim/sim/disk.py:13: headless: What the disk does.",
        "wbsim/sim/disk.py:7: vague: of its own",
    }


def test_docstrings_of_attributes_need_a_subject() -> None:
    """A string below an assignment is a docstring of its attribute."""
    source = 'SHOWN = 20\n"""How many are kept."""\nLEFT: int = 1\n"""Number of the others."""\n'
    of = of_source(source, "wbsim/sim/a.py")
    assert found(of, "headless") == [2]
    assert dict(of.docstrings) == {"wbsim/sim": 2}


def test_comments_join_on_successive_lines_of_one_column() -> None:
    """A comment behind code and one below it are two; an empty line separates comments."""
    assert found(of_source("# of its\n# own\n", "wbsim/sim/a.py"), "vague") == [1]
    assert found(of_source("x = 1  # of its\n# own\n", "wbsim/sim/a.py"), "vague") == []
    assert found(of_source("# of its\n\n# own\n# own\n", "wbsim/sim/a.py"), "vague") == []


def test_findings_of_test_names_need_a_test_file() -> None:
    """A name of eleven words is long, one of ten is not; a vague actor in a name is found."""
    source = """\
def test_one_two_three_four_five_six_seven_eight_nine_ten() -> None: ...
class Tests:
    async def test_one_two_three_four_five_six_seven_eight_nine_ten_eleven(self) -> None: ...
def test_a_clock_of_one_s_own_is_told() -> None: ...
def testing_nobody() -> None: ...
"""
    of = of_source(source, "tests/sim/test_clock.py")
    assert sorted(of.names) == [7, 10, 11]
    assert found(of, "long names") == [3]
    assert found(of, "vague") == [4, 4]
    assert of_source(source, "wbsim/sim/clock.py") == Prose([], of.docstrings, [], [], [], [])


@pytest.mark.parametrize(("words", "long"), [(25, 0), (26, 1)])
def test_sentence_above_25_words_is_long_in_docstrings(words: int, long: int) -> None:
    sentence = "Return " + "page " * (words - 1)
    of = of_source(f'"""{sentence}.\n\nShort.\n"""', "wbsim/sim/a.py")
    assert found(of, "long sentences") == [1] * long
    assert [length.words for length in of.spoken] == [words, 1]


@pytest.mark.parametrize(("words", "long"), [(100, 0), (101, 1)])
def test_paragraph_above_100_words_is_long_in_documents(words: int, long: int) -> None:
    """The paragraph stands on line 3, and three sentences of 20 words or so are short enough."""
    paragraph = "Pages. " * (words - 40) + "page " * 20 + ". " + "page " * 19 + "page."
    of = of_document(f"# Title\n\n{paragraph}\n\nNobody.\n", "docs/a.md")
    assert found(of, "long paragraphs") == [3] * long
    assert found(of, "long sentences") == []
    assert found(of, "vague") == [5]
    assert [length.words for length in of.paragraphs] == [words, 1]


def test_long_sentence_of_a_document_has_its_line() -> None:
    sentence = "A call of `write(2)` " + "page " * 40
    of = of_document(f"Text.\n\n* {sentence}.\n", "docs/a.md")
    assert found(of, "long sentences") == [3]


def test_generated_reference_counts_vague_words_only() -> None:
    of = of_document("Nobody " + "page " * 70 + ".", "docs/reference.md")
    assert [(finding.kind, finding.folder) for finding in of.findings] == [("vague", "docs/reference.md")]
    assert of.sentences == of.paragraphs == []


def test_measure_reads_sources_and_documents(tmp_path: Path) -> None:
    """Every folder and every document counts alone; the changelog does not count."""
    files = {
        "wbsim/sim/a.py": '"""Who."""', "wbsim/models/b/c.py": '"""Of."""\n# told',
        "wbsim/experiments/d.py": "",
        "README.md": "Told.", "tests/e/test_f.py": "def test_nobody(): ...", "CONTRIBUTING.md": "",
        "CHANGELOG.md": "Told.",
        "docs/g.md": "It lives.", "notebooks/h.py": '"""Who."""',
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert measure(tmp_path).counts() == {
        "wbsim/sim": {"headless": 1},
        "wbsim/models/b": {"headless": 1, "vague": 1},
        "tests/e": {"vague": 1},
        "README.md": {"vague": 1},
        "docs/g.md": {"vague": 1},
    }


@pytest.fixture(scope="module")
def today() -> Prose:
    """Return the prose of the repository."""
    return measure()


def test_prose_stays_within_its_bounds(today: Prose) -> None:
    """No folder and no document has more findings of a kind than prose.toml allows."""
    raised = breaches(today.findings, read())
    assert not raised, "\n".join(raised)


def test_repository_has_docstrings_in_all_layers(today: Prose) -> None:
    """The check above reads the sources: more than a thousand docstrings and a hundred sentences."""
    assert {
        "wbsim/sim",
        "wbsim/models/block",
        "wbsim/experiments/config",
        "tests/measures",
    } <= today.docstrings.keys()
    assert today.docstrings.total() > 1_000
    assert len(today.sentences) > 100
    assert len(today.names) > 500


def test_bounds_name_existing_folders_and_known_kinds() -> None:
    for folder, of in read().items():
        assert (prose.ROOT / folder).exists(), f"{folder} does not exist: {bounds.REMEDY}"
        assert set(of) <= set(KINDS), folder


def test_breach_names_the_findings_of_its_folder_only(tmp_path: Path) -> None:
    """Two findings where one is allowed are both named; other kinds and folders are not."""
    findings = [
        Finding("vague", "wbsim/sim/a.py", 3, "told"),
        Finding("vague", "wbsim/sim/b.py", 4, "lives"),
        Finding("headless", "wbsim/sim/a.py", 1, "Who."),
        Finding("vague", "wbsim/models/c.py", 5, "nobody"),
    ]
    (tmp_path / "wbsim/sim").mkdir(parents=True)
    for name in ("a", "b"):
        (tmp_path / f"wbsim/sim/{name}.py").touch()
    allowed = {"wbsim/sim": {"vague": 1, "headless": 1}, "wbsim/models": {"vague": 1}}
    (message,) = breaches(findings, allowed, tmp_path)
    first, *places = message.splitlines()
    assert first.startswith("wbsim/sim: 2 findings of kind 'vague', at most 1 are allowed")
    assert sorted(places) == ["  wbsim/sim/a.py:3: vague: told", "  wbsim/sim/b.py:4: vague: lives"]
    assert breaches(findings, {"wbsim/sim": {"vague": 2, "headless": 1}, "wbsim/models": {"vague": 1}}) == []


def test_breach_lists_the_latest_files_first(tmp_path: Path) -> None:
    (tmp_path / "wbsim/sim").mkdir(parents=True)
    for modified, name in enumerate(("old", "middle", "new")):
        path = tmp_path / f"wbsim/sim/{name}.py"
        path.touch()
        os.utime(path, (0, modified))
    findings = [Finding("vague", f"wbsim/sim/{name}.py", 1, "told") for name in ("old", "new", "middle")]
    (message,) = breaches(findings, {}, tmp_path)
    assert [line.split(":")[0].strip() for line in message.splitlines()[1:]] == [
        "wbsim/sim/new.py",
        "wbsim/sim/middle.py",
        "wbsim/sim/old.py",
    ]


def test_new_folder_starts_at_zero() -> None:
    finding = Finding("long names", "tests/new/test_a.py", 1, "11 words")
    (message,) = breaches([finding], {"tests": {"long names": 5}})
    assert message.startswith("tests/new: 1 findings of kind 'long names', at most 0 are allowed")


def test_breach_shows_at_most_25_findings() -> None:
    findings = [Finding("vague", "wbsim/sim/a.py", line, "told") for line in range(30)]
    (message,) = breaches(findings, {})
    assert len(message.splitlines()) == 1 + bounds.SHOWN + 1
    assert message.endswith("and 5 more")


_COUNTS = st.dictionaries(
    st.sampled_from(["wbsim/sim", "wbsim/models/a", "docs/b.md"]),
    st.dictionaries(st.sampled_from(KINDS), st.integers(0, 5)),
)


@given(_COUNTS, _COUNTS)
def test_lowered_bounds_never_rise(before: bounds.Counts, counts: bounds.Counts) -> None:
    """A lowered bound is the smaller one of bound and count; the slack is what it was lowered by."""
    after = lowered(before, counts)
    assert after.keys() == before.keys()
    for folder, of in before.items():
        for kind, most in of.items():
            assert after[folder][kind] == min(most, counts.get(folder, {}).get(kind, 0))
    assert slack(before, counts) == bounds.total(before) - bounds.total(after) >= 0
    assert slack(after, counts) == 0


@given(_COUNTS)
def test_bounds_survive_writing(counts: bounds.Counts) -> None:
    """Written bounds are read back unchanged, except bounds of 0."""
    written = tomllib.loads(text_of(counts))
    assert written == {
        folder: {kind: most for kind, most in of.items() if most}
        for folder, of in counts.items()
        if any(of.values())
    }


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--write"], {"wbsim/sim": {"vague": 1}}),
        (["--write", "--raise"], {"wbsim/sim": {"vague": 1, "headless": 2}, "wbsim/models": {"vague": 4}}),
    ],
)
def test_write_lowers_and_raises_on_request_only(
    options: list[str], expected: bounds.Counts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "prose.toml"
    path.write_text(text_of({"wbsim/sim": {"vague": 3}, "gone": {"vague": 2}}))
    numbers = {("wbsim/sim", "vague"): 1, ("wbsim/sim", "headless"): 2, ("wbsim/models", "vague"): 4}
    given = prose.nothing()
    for (folder, kind), count in numbers.items():
        given.findings.extend([Finding(kind, f"{folder}/a.py", 1, "")] * count)
    monkeypatch.setattr(bounds, "PATH", path)
    monkeypatch.setattr(prose, "measure", lambda: given)
    main(options)
    assert read(path) == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["verse"], "there is no section 'verse'; use one of prose, voice, lines, ways, costs, rows"),
        (["--raise"], "--raise changes what --write does; give both"),
        (["--write", "prose"], "--write prints no section; leave the sections out"),
    ],
)
def test_wrong_options_end_with_status_2(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(options)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
