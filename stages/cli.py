"""`tradewind`: the verbs a person types; each stands with its kind in stages/verbs.

nowcast    the wind at places and times, from a trained model and a recent capture
score      a file of your own, scored with a trained cell
audit      where a published number came from, and whether it still holds
compare    how the numbers here compare with a commit's
impact     which published numbers rest on a file
why        why a published number is another one at another commit
rows       which rows were trained on, and which stand on both sides
verify     every byte, record, table and figure of this repository; or a bundle
release    a citable bundle of this commit
card       the model card of a trained cell
croissant  metadata of the raw data sets
benchmark  the simulated wind benchmark, frozen, for use elsewhere
champion   which retrained model is in use, and by which numbers
rollback   make an earlier champion the champion again
ledger     what retraining promoted and refused, and why
capture    simulated captures, as receivers would drop them
doctor     what is amiss with this machine and working copy, and what mends it
"""

import argparse
import os
import sys

from stages.errors import TradewindError
from stages.verbs import release, score, trust, unattended, winds


def parser() -> argparse.ArgumentParser:
    """The command line, with examples in each verb's help."""
    top = argparse.ArgumentParser(
        prog="tradewind", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB")
    for kind in (winds, score, trust, release, unattended):
        kind.register(verbs)
    return top


def main() -> int:
    """Entry point; a TradewindError becomes its message and exit code."""
    arguments = parser().parse_args()
    code = 0
    try:
        code = arguments.run(arguments)
        sys.stdout.flush()  # here, where a closed pipe can be met, and not at the interpreter's end
    except TradewindError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # the reader has seen enough (`| head`); what is left goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


if __name__ == "__main__":
    sys.exit(main())
