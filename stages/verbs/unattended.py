"""The verbs of a laboratory that runs by itself: its champions and ledger, and its health."""

import argparse
import os
import sys
from pathlib import Path

from stages import params
from stages.errors import InputError
from stages.verbs import Verbs, added, only_in_clone


def champion(arguments: argparse.Namespace) -> int:
    """Print who is champion, since when and by which numbers; exit 1 where nobody is."""
    only_in_clone("there is no champion here")
    from stages.winds.retraining import champions

    told = champions.describe(params.load())
    if told is None:
        print("there is no champion yet: nothing was promoted", file=sys.stderr)
        return 1
    print(told)
    return 0


def rollback(arguments: argparse.Namespace) -> int:
    """Make an earlier champion the champion again."""
    only_in_clone("there is no champion here")
    from stages.winds.retraining import champions

    entry = champions.rollback(params.load(), arguments.number)
    print(
        f"{entry['reasons'][0]} Ledger entry {entry['number']}; commit reports/ledger.jsonl to "
        "keep it."
    )
    return 0


def ledger(arguments: argparse.Namespace) -> int:
    """Print the promotions and refusals; with --verify check their chain and every champion's
    bytes."""
    only_in_clone("there is no ledger here")
    from stages.winds.retraining import champions
    from stages.winds.retraining import ledger as book

    settings, last = params.load(), arguments.last
    if last is not None and last < 1:
        raise InputError(
            "no entry was asked for",
            where="--last",
            expected="a number of at least 1",
            found=str(last),
        )
    print(book.render(book.read()[-(last or 0) :]))
    if arguments.verify:
        print(champions.verified(settings))
    return 0


def doctor(arguments: argparse.Namespace) -> int:
    """Print what was examined, its state and its remedy; exit 1 when something failed."""
    from stages import doctor as surgery

    if arguments.arithmetic:
        return surgery.arithmetic.main(arguments.json)
    return surgery.main(Path.cwd(), dict(os.environ), arguments.json)


def add_champion(verbs: Verbs) -> None:
    """`tradewind champion`."""
    verb = added(
        verbs,
        "champion",
        "which retrained model is in use, and by which numbers",
        "Which retrained model is champion, since when, and by which numbers; its bytes are hashed "
        "and loaded anew.\n"
        "Exit status 1 where nothing was promoted yet. `tradewind nowcast --model champion` asks "
        "it.",
        "tradewind champion",
    )
    verb.set_defaults(run=champion)


def add_rollback(verbs: Verbs) -> None:
    """`tradewind rollback`."""
    verb = added(
        verbs,
        "rollback",
        "make an earlier champion the champion again",
        "Make an earlier champion the champion again. Its bytes are hashed and loaded before the "
        "ledger says so.",
        "tradewind rollback 1",
    )
    verb.add_argument(
        "number",
        metavar="NUMBER",
        nargs="?",
        type=int,
        help="restore the champion as it was after this ledger entry; default: the one that the "
        "present one replaced when promoted",
    )
    verb.set_defaults(run=rollback)


def add_ledger(verbs: Verbs) -> None:
    """`tradewind ledger`."""
    verb = added(
        verbs,
        "ledger",
        "what retraining promoted and refused, and why",
        "What scheduled retraining promoted and refused, and what was rolled back: errors, "
        "intervals, drift, reasons.",
        "tradewind ledger --last 5 --verify",
    )
    verb.add_argument("--last", metavar="N", type=int, help="only the last N entries")
    verb.add_argument(
        "--verify",
        action="store_true",
        help="check the chain of entries, that it continues the committed one, and the bytes of "
        "every champion",
    )
    verb.set_defaults(run=ledger)


def add_doctor(verbs: Verbs) -> None:
    """`tradewind doctor`."""
    verb = added(
        verbs,
        "doctor",
        "what is amiss with this machine and working copy, and what mends it",
        "Examine this machine and this working copy: versions, disks, GPU, DVC, Prefect, the "
        "mirror, what killed runs left behind.\n"
        "Exit status: 1 when something failed, else 0. Nothing is written, no network is asked, no "
        "secret is shown.",
        "tradewind doctor --json",
    )
    verb.add_argument("--json", action="store_true", help="print the findings as JSON")
    verb.add_argument(
        "--arithmetic",
        action="store_true",
        help="instead: what each probed operation of NumPy and torch answers here, "
        "as a hash, and which are other than the reference; exit status 0",
    )
    verb.set_defaults(run=doctor)


def register(verbs: Verbs) -> None:
    """Add these verbs."""
    for add in (add_champion, add_rollback, add_ledger, add_doctor):
        add(verbs)
