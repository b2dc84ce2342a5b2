"""`tradewind`: the verbs a person types. Thin: parse, call, print.

nowcast    the wind at places and times, from a trained model and a recent capture
audit      where a published number came from, and whether it still holds
impact     which published numbers rest on a file
benchmark  the simulated wind benchmark, frozen, for use elsewhere
"""

import argparse
import os
import sys
from pathlib import Path

from stages import params
from stages.errors import TradewindError


def nowcast(arguments: argparse.Namespace) -> int:
    """Print wind, direction and spread at the points asked for."""
    from stages.evaluation import nowcast as forecaster
    settings = params.load()
    rows = forecaster.nowcast(arguments.context, at=arguments.at, points=arguments.points, model=arguments.model, settings=settings)
    print(forecaster.render(rows))
    return 0


def audit(arguments: argparse.Namespace) -> int:
    """Print the chain behind a number and the verdict: exit 0 PASS, 1 FAIL, 3 INCONCLUSIVE."""
    from stages.reporting import audit as auditor
    finding = auditor.audit(arguments.metric, arguments.verify, Path.cwd())
    print(auditor.render(finding))
    return finding.exit_code


def impact(arguments: argparse.Namespace) -> int:
    """Print every published metric that rests on a file."""
    from stages.reporting import audit as auditor
    for name in auditor.impact(arguments.file, Path.cwd()):
        print(name)
    return 0


def benchmark(arguments: argparse.Namespace) -> int:
    """Write the frozen benchmark into a new folder."""
    from stages.evaluation import benchmark as frozen
    print(frozen.build(Path("data/mini"), "simulated", Path(arguments.folder)))
    return 0


def added(verbs, name: str, short: str, long: str, example: str) -> argparse.ArgumentParser:
    """A verb whose help ends with an example."""
    return verbs.add_parser(name, help=short, description=f"{long}\n\n  {example}", formatter_class=argparse.RawDescriptionHelpFormatter)


def parser() -> argparse.ArgumentParser:
    """The command line, with examples in each verb's help."""
    top = argparse.ArgumentParser(prog="tradewind", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB")

    verb = added(verbs, "nowcast", "the wind at places and times",
                 "The wind at places and times, from a trained model and a recent capture.",
                 "tradewind nowcast --context data/mini/decoded/simulated/winds.parquet --at 46.5,7.2,34000,2026-01-17T05:00:00Z")
    verb.add_argument("--context", required=True, metavar="FILE",
                      help="a recent capture: winds as parquet or CSV, or raw frames as CSV (time, hex)")
    place = verb.add_mutually_exclusive_group(required=True)
    place.add_argument("--at", action="append", metavar="LAT,LON,ALT_FT,TIME",
                       help="degrees, degrees, feet, ISO 8601 UTC or Unix seconds; may be repeated")
    place.add_argument("--points", metavar="CSV", help="a file with the columns lat_deg, lon_deg, alt_ft, time")
    verb.add_argument("--model", metavar="FOLDER",
                      help="a trained cell (reports/<experiment>/<profile>/runs/<data set>/<cell>); default: the Gaussian one of the "
                      "profile's first data set")
    verb.set_defaults(run=nowcast)

    verb = added(verbs, "audit", "where a number came from, and whether it still holds",
                 "Walk from a published number to its raw bytes and check every step.\nExit status: 0 PASS, 1 FAIL, 3 INCONCLUSIVE.",
                 "tradewind audit wind_nowcast/mini/simulated/msa-shared-20k-s0/rmse_component_kn --verify eval")
    verb.add_argument("metric", metavar="EXPERIMENT/PROFILE/DATASET/CELL/METRIC")
    verb.add_argument("--verify", choices=("record", "hash", "eval", "train"), default="record",
                      help="record: compare the records (default); hash: re-hash every byte; eval: recompute from the checkpoint; "
                      "train: train again")
    verb.set_defaults(run=audit)

    verb = added(verbs, "impact", "which published numbers rest on a file",
                 "Which published numbers rest on a file: every chain that holds it, one address a line.",
                 "tradewind impact data/mini/raw/simulated/frames_00.csv")
    verb.add_argument("file", metavar="FILE")
    verb.set_defaults(run=impact)

    verb = added(verbs, "benchmark", "write the frozen simulated benchmark into a folder",
                 "The winds of the mini profile's simulated set with their truth, splits and a scorer, in a new folder;\nthe same bytes everywhere.",
                 "tradewind benchmark ../wind-benchmark")
    verb.add_argument("folder", metavar="FOLDER")
    verb.set_defaults(run=benchmark)
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
