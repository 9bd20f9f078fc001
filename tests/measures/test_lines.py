"""Code lines are counted without comments, docstrings and empty lines."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.measures.lines import code_lines, report, sizes

_SOURCE = '''\
"""Docstring
of two lines."""

import os  # 1

# A comment.
LIMIT = """2
3
4"""
"""Docstring of LIMIT."""


def f(a, b):  # 5
    "Docstring."
    return [  # 6
        a,  # 7

        # A comment between.
        b,  # 8
    ]  # 9
'''


def test_code_lines_leave_comments_and_docstrings_out() -> None:
    assert code_lines(_SOURCE) == 9
    assert code_lines("") == 0
    assert code_lines("class C:\n    '''Docstring.'''\n    x = 1; y = 2\n") == 2


@given(
    st.lists(st.sampled_from(["x = 1", "", "# comment", "    ", '"""text"""', "if x: y = 2"]), max_size=12)
)
def test_code_lines_of_simple_statements_add_up(lines: list[str]) -> None:
    assert code_lines("\n".join([*lines, ""])) == sum("=" in line for line in lines)


def test_sizes_sum_up_by_folder(tmp_path: Path) -> None:
    """A layer holds the files in all its folders; tests is one figure."""
    files = {
        "wbsim/sim/a.py": "x = 1\n", "wbsim/models/b.py": "x = 1\n", "wbsim/models/c/d.py": "x = 1\ny = 2\n",
        "wbsim/models/c/e/f.py": "x = 1\ny = 2\nz = 3\n", "wbsim/experiments/__init__.py": "",
        "tests/g/h.py": "x = 1\n",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = sizes(tmp_path)
    assert {name: tuple(of) for name, of in found.items()} == {
        "wbsim/sim": (1, 1),
        "wbsim/models": (3, 6),
        "wbsim/models/c": (2, 5),
        "wbsim/experiments": (1, 0),
        "tests": (1, 1),
    }
    assert found["wbsim/models/c"].mean == 2.5
    assert report(tmp_path).splitlines()[3].split() == ["wbsim/models", "3", "6", "2"]
