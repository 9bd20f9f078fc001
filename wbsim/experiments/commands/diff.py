"""`wbsim diff`: the rules that changed between two kernels, and what each change does."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from wbsim.experiments.commands.options import add_json, print_json

HELP = "print what changed between two kernels, and what each change does"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command to *parser*; `cli` calls this, and then `execute`."""
    for name, order in (("before", "the earlier"), ("after", "the later")):
        parser.add_argument(
            name,
            metavar=name.upper(),
            help=f"{order} kernel: a release such as 6.1.25, or a name",
        )
    help_text = "only this rule, such as plug.tried, or those below plug"
    parser.add_argument("rule", nargs="?", default="", metavar="RULE", help=help_text)
    add_json(parser)


def execute(arguments: Namespace) -> int:
    """Print the rules that differ between two kernels, or their JSON; return 0.

    *arguments* are the parsed options of `add_options`.  With RULE, print only this rule and those below it,
    such as plug.tried or plug.  An unknown kernel or rule, or a later kernel before an earlier one, raises
    `BadInput`: `cli` ends with status 2.
    """
    from wbsim.experiments.commands.list import named_rules
    from wbsim.experiments.config.problems import BadInput, Problem
    from wbsim.experiments.formats.kernel_rules import difference_document, difference_text
    from wbsim.models.catalogue.kernels import FIRST, KERNELS, LAST
    from wbsim.models.release import release_of

    kernels = arguments.before, arguments.after
    bad_names = [name for name in kernels if name not in KERNELS]
    if bad_names:
        message = f"is unknown; give a release from {FIRST} to {LAST}, or a name of wbsim list kernels"
        raise BadInput([Problem("diff", name, message) for name in bad_names])
    if release_of(arguments.after) < release_of(arguments.before):
        message = f"is earlier than {arguments.before}; give the earlier kernel first"
        raise BadInput([Problem("diff", arguments.after, message)])
    if arguments.rule:
        named_rules(arguments.rule, "diff")
    if arguments.json:
        print_json(difference_document(*kernels, arguments.rule))
    else:
        print(difference_text(*kernels, arguments.rule))
    return 0
