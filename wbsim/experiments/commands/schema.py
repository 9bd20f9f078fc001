"""`wbsim schema`: the keys of a configuration, as a JSON Schema for editors or as a reference."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from wbsim.experiments.commands.options import print_json

HELP = "print the keys of a configuration, as a JSON Schema or as a reference"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*; `cli` calls this, and then `execute`."""
    parser.add_argument("--reference", action="store_true", help="print every key as Markdown instead")


def execute(arguments: Namespace) -> int:
    """Print the keys as a JSON Schema, or with --reference as Markdown; return 0.

    *arguments* are the parsed options of `add_options`.
    """
    if arguments.reference:
        from wbsim.experiments.formats.reference import reference

        print(reference())
    else:
        from wbsim.experiments.config.schema import json_schema

        print_json(json_schema())
    return 0
