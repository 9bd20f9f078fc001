"""`wbsim schema`: what a configuration may say, as a JSON Schema for editors."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from wbsim.experiments.commands.options import print_json

HELP = "what a configuration may say, as a JSON Schema or as a reference"


def add_options(parser: ArgumentParser) -> None:
    """What it takes."""
    parser.add_argument("--reference", action="store_true", help="every key as Markdown instead")


def execute(arguments: Namespace) -> int:
    """Print it; returns the exit status."""
    from wbsim.experiments.config.schema import json_schema, reference

    if arguments.reference:
        print(reference())
    else:
        print_json(json_schema())
    return 0
