"""`python -m stages.page tabulate EXPERIMENT PROFILE`, `... summary PROFILE`, `... report`; by
hand, `... readme`."""

import argparse
import sys

from stages import files, records
from stages.errors import DataError, TradewindError


def main() -> int:
    """Parse, call, turn a TradewindError into its message and exit code."""
    parser = argparse.ArgumentParser(prog="python -m stages.page", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    tabulate = verbs.add_parser(
        "tabulate", help="gather one experiment's numbers, claims and figures"
    )
    tabulate.add_argument("experiment")
    tabulate.add_argument("profile")
    summary = verbs.add_parser("summary", help="write reports/summary-PROFILE.json")
    summary.add_argument("profile")
    verbs.add_parser(
        "report", help="write reports/index.html, the pages beside it and reports/README.md"
    )
    verbs.add_parser("readme", help="write the result tables of README.md anew")
    arguments = parser.parse_args()
    try:
        if arguments.verb == "tabulate":
            from stages.fields import results as set_results
            from stages.neighbours.experiment import results as searches
            from stages.sequences.reporting import results as order_results
            from stages.winds import tabulate

            cell = f"{arguments.experiment}-{arguments.profile}"
            with records.timed("tabulate", cell), files.guard(f"tabulate-{cell}"):
                if arguments.experiment == searches.EXPERIMENT:
                    searches.tabulate(arguments.profile)
                elif arguments.experiment in set_results.EXPERIMENTS:
                    set_results.tabulate(arguments.experiment, arguments.profile)
                elif arguments.experiment in order_results.EXPERIMENTS:
                    order_results.tabulate(arguments.experiment, arguments.profile)
                else:
                    tabulate.tabulate(arguments.experiment, arguments.profile)
        elif arguments.verb == "summary":
            from stages.page.summary import summary as run

            with (
                records.timed("summary", arguments.profile),
                files.guard(f"summary-{arguments.profile}"),
            ):
                run(arguments.profile)
        elif arguments.verb == "readme":
            from stages.page.readme import readme

            readme()
        else:
            from stages.page.page import report

            with records.timed("report", "all"), files.guard("report"):
                report()
    except TradewindError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(
            f"error: {DataError('a file could not be read or written', found=str(error))}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
