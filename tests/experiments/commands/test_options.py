"""Messages of commands name only options that the same command has."""

from __future__ import annotations

import ast
import importlib
import re
from argparse import ArgumentParser, Namespace
from pathlib import Path

import pytest

from wbsim.experiments import commands
from wbsim.experiments.cli import COMMANDS
from wbsim.experiments.commands.options import shorter_ways

_OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*)")
_OTHER = re.compile(r"wbsim ([a-z-]+)((?: [A-Z.a-z]+)*(?: --[a-z-]+)*)")


def parser_of(name: str) -> ArgumentParser:
    """Return the parser of the command *name*."""
    parser = ArgumentParser(name)
    importlib.import_module(f"wbsim.experiments.commands.{name.replace('-', '_')}").add_options(parser)
    return parser


def options_of(name: str) -> set[str]:
    """Return the options of the command *name*."""
    return {option for action in parser_of(name)._actions for option in action.option_strings}


@pytest.mark.parametrize("name", COMMANDS)
def test_time_left_recommends_only_options_of_the_command(name: str) -> None:
    """The ways to a shorter run follow from the command's own arguments."""
    ways = shorter_ways(Namespace(**{action.dest: None for action in parser_of(name)._actions}))
    assert {word for way in ways for word in _OPTION.findall(way)} <= options_of(name)
    if name == "sweep":
        assert ways == ("fewer files or bytes", "--replications 1", "fewer points")


OF_OTHERS = {
    "capture": {"--from"}, "calibrate": {"--cpu"}, "describe-machine": {"--cpu"}, "plot": {"--out"},
    "describe-drive": {"--output-format"}, "explain": {"--out"}, "timeline": {"--out"}, "status": {"--out"},
}  # fmt: skip
"""Options that the texts of a command name for the program that made its input, or that reads its output."""


@pytest.mark.parametrize("name", COMMANDS)
def test_texts_of_a_command_name_options_that_it_has(name: str) -> None:
    """A text that names an option of another command names that command, too, as ``wbsim run --out``."""
    path = Path(commands.__file__).parent / f"{name.replace('-', '_')}.py"
    known = options_of(name) | OF_OTHERS.get(name, set())
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for command, rest in _OTHER.findall(node.value):
                if command in COMMANDS:
                    assert set(_OPTION.findall(rest)) <= options_of(command), node.value
            assert set(_OPTION.findall(_OTHER.sub("", node.value))) <= known, node.value


SHARED = {
    "why/advise.py": ["advise"], "why/sensitivity.py": ["sensitivity"], "why/explain.py": ["explain"],
    "why/writeback.py": ["run", "sweep", "advise", "sensitivity", "explain"],
    "running/progress.py": ["run", "sweep", "advise", "sensitivity", "reproduce", "calibrate"],
    "running/store.py": ["run", "sweep", "advise", "sensitivity", "reproduce", "calibrate"],
    "running/cluster.py": ["run", "sweep", "advise", "sensitivity", "reproduce", "calibrate"],
    "formats/report.py": ["run", "sweep"], "formats/timeline.py": ["timeline"],
    "pictures/plots.py": ["plot"], "captures/conditions.py": ["replay"],
    "commands/run_output.py": ["run", "sweep"],
}  # fmt: skip
"""Modules with messages of several commands, and the commands that print them."""


@pytest.mark.parametrize("module", SHARED)
def test_shared_messages_name_options_of_each_command(module: str) -> None:
    """A message that several commands print names only options that all of them have."""
    path = Path(commands.__file__).parents[1] / module
    known = set.intersection(*map(options_of, SHARED[module]))
    tree = ast.parse(path.read_text())
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            told = _OTHER.sub("", node.value) if "wbsim " in node.value else node.value
            assert set(_OPTION.findall(told)) <= known, node.value
