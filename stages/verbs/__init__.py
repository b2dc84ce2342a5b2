"""What a person types, one file a kind of question: parse, call, print.

A module adds its verbs to a parser (`register`) and runs them; what a verb needs is imported when
it runs, so that help costs nothing.
"""

import argparse
from typing import Any

Verbs = Any  # what argparse.ArgumentParser.add_subparsers returns; its class has no public name


def added(verbs: Verbs, name: str, short: str, long: str, example: str) -> argparse.ArgumentParser:
    """A verb whose help ends with an example."""
    return verbs.add_parser(
        name,
        help=short,
        description=f"{long}\n\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
