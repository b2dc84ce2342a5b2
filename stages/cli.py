"""`tradewind VERB`: the verbs and the help that groups them."""

import argparse
import io
import os
import re
import sys
import warnings
from collections.abc import Mapping
from importlib import metadata
from itertools import takewhile
from typing import Any, NoReturn

from stages import interrupted, params
from stages.errors import InputError, advice, told_of
from stages.verbs import biases, init, release, score, trust, unattended, winds

ABOUT = "`tradewind VERB --help` tells all of a verb, with an example."
GROUPS = {
    "use it": ("try", "nowcast", "biases", "score", "init", "capture", "benchmark"),
    "check it": ("audit", "why", "trend", "compare", "impact", "rows", "verify", "gates", "doctor"),
    "keep it running": ("champion", "rollback", "ledger"),
    "publish it": ("release", "card", "croissant", "export"),
}
LAB = ("matplotlib", "PIL", "jinja2", "optuna", "great_expectations", "dvc", "prefect")  # an extra


class Completion(argparse.Action):
    """Print a script that completes verbs and options in a shell."""

    def __call__(self, parser: argparse.ArgumentParser, *given: Any) -> NoReturn:
        """`given`: the namespace, the shell, the option."""
        try:
            import shtab
        except ImportError:
            parser.error("completion needs the package shtab: pip install shtab")
        for action in parser._actions:
            if action.dest == "verb":
                action.help = "what to do"  # shtab passes over what help does not show
        print(shtab.complete(parser, given[1]))
        parser.exit()


class Parser(argparse.ArgumentParser):
    """A parser that takes a place south of the equator for what it is, and that suggests the verb
    or the option that was meant."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        # -33.9,151.2,FL340,TIME is a value, not an option
        self._negative_number_matcher = re.compile(r"-\d")

    def error(self, message: str) -> NoReturn:
        """As argparse, with the nearest verb where an unknown one was typed."""
        unknown = re.search(r"argument VERB: invalid choice: '([^']*)'", message)
        if unknown:
            message = f"there is no verb '{unknown[1]}'{params.nearest(unknown[1], self.verbs())}"
        super().error(message)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse, but an option that there is not is told first: what is required and lacks
        may be what it was meant for."""
        words = sys.argv[1:] if args is None else list(args)
        if self.verbs():  # what follows the verb is another parser's
            words = list(takewhile(lambda word: word.startswith("-"), words))
        if unknown := next(
            filter(self.is_unknown, takewhile(lambda word: word != "--", words)), ""
        ):
            name = unknown.partition("=")[0]
            known = self._option_string_actions
            super().error(f"there is no option '{name}'{params.nearest(name, known)}")
        return super().parse_known_args(args, namespace)

    def is_unknown(self, word: str) -> bool:
        """Whether argparse takes the word for an option, but has none of that name or with that
        beginning."""
        name = word.partition("=")[0]
        value = not word.startswith("-") or word == "-" or " " in name
        return not (
            value
            or self._negative_number_matcher.match(word)
            or name in self._option_string_actions
            or self._get_option_tuples(word)
        )

    def verbs(self) -> list[str]:
        """The verbs of this parser."""
        return [
            name
            for action in self._actions
            if isinstance(action.choices, dict)
            for name in action.choices
        ]


def parser() -> argparse.ArgumentParser:
    """The command line, with examples in each verb's help."""
    top = Parser(
        prog="tradewind",
        usage="tradewind [-h] [--version] [--completion SHELL] VERB ...",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument(
        "--version", action="version", version=f"tradewind {metadata.version('tradewind')}"
    )
    top.add_argument(
        "--completion",
        action=Completion,
        choices=("bash", "zsh", "tcsh"),
        help="print what completes verbs and options in this shell, and exit",
    )
    verbs = top.add_subparsers(
        dest="verb", required=True, metavar="VERB", help=argparse.SUPPRESS, prog=top.prog
    )
    for kind in (winds, biases, score, init, trust, release, unattended):
        kind.register(verbs)
    top.description = grouped({one.dest: one.help or "" for one in verbs._choices_actions})
    return top


def grouped(short: Mapping[str, str]) -> str:
    """The verbs by what they are for, each with the words that it was registered with."""
    wide = max(map(len, short))
    told = [
        "\n".join((group, *(f"{name:<{wide}}  {short[name]}" for name in names)))
        for group, names in GROUPS.items()
    ]
    return "\n\n".join((ABOUT, *told))


def print_warning(
    message: Warning | str, category: type[Warning], *where: Any, **rest: Any
) -> None:
    """A warning of ours as a line for a person; where another's stands in its code, too."""
    place = "" if category is UserWarning else f" ({category.__name__}, {where[0]}:{where[1]})"
    print(f"warning: {message}{place}", file=sys.stderr)


def main() -> int:
    """Entry point; a TradewindError becomes its message and exit code, Ctrl-C a line and 130."""
    for stream in (sys.stdout, sys.stderr):  # no answer is lost for a sign that an encoding lacks
        if isinstance(stream, io.TextIOWrapper) and stream.errors != "surrogateescape":
            stream.reconfigure(errors="replace")
    code = 0
    try:
        arguments = parser().parse_args()
        with warnings.catch_warnings():
            warnings.showwarning = print_warning
            code = arguments.run(arguments)
        sys.stdout.flush()  # here, where a closed pipe can be met, and not at the interpreter's end
    except KeyboardInterrupt:
        code = interrupted.tell()
    except BrokenPipeError:
        pass  # the reader has seen enough (`| head`)
    except ModuleNotFoundError as error:
        if (missing := (error.name or "").partition(".")[0]) not in LAB:
            raise
        refused = InputError(
            "this needs a package of the laboratory",
            found=f"no {missing}",
            remedy="pip install 'tradewind[lab]'",
        )
        print(f"error: {refused}", file=sys.stderr)
        code = refused.exit_code
    except Exception as error:
        if (told := told_of(error)) is None:  # a bug of ours
            raise
        print(f"error: {advice(str(told))}", file=sys.stderr)
        code = told.exit_code
    try:
        sys.stdout.flush()
    except OSError:  # what is left goes nowhere: the interpreter's end would complain again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


if __name__ == "__main__":
    sys.exit(main())
