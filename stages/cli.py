"""`tradewind`: the verbs a person types. Thin: parse, call, print.

nowcast    the wind at places and times, from a trained model and a recent capture
audit      where a published number came from, and whether it still holds
impact     which published numbers rest on a file
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
from pathlib import Path

from stages import params
from stages.errors import InputError, TradewindError


def nowcast(arguments: argparse.Namespace) -> int:
    """Print wind, direction and spread at the points asked for."""
    from stages.evaluation import nowcast as forecaster
    settings, model = params.load(), arguments.model
    if model == "champion":
        from stages.retraining import champions
        model = champions.folder_now(settings)
    rows = forecaster.nowcast(arguments.context, at=arguments.at, points=arguments.points, model=model, settings=settings)
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


def capture(arguments: argparse.Namespace) -> int:
    """Write simulated captures into a folder and print their names."""
    from stages.acquisition import capture as receiver
    hours, known = receiver.asked_hours(arguments.hours), params.load().datasets
    plan = known["simulated"].simulate if "simulated" in known else None
    if plan is None:
        raise InputError("there is no simulated sky to capture", where="params.yaml", expected="a data set `simulated` of kind simulate")
    for path in receiver.capture(plan, Path(arguments.folder), *hours, seed=arguments.seed):
        print(path)
    return 0


def champion(arguments: argparse.Namespace) -> int:
    """Print who is champion, since when and by which numbers; exit 1 where nobody is."""
    from stages.retraining import champions
    told = champions.describe(params.load())
    if told is None:
        print("there is no champion yet: nothing was promoted", file=sys.stderr)
        return 1
    print(told)
    return 0


def rollback(arguments: argparse.Namespace) -> int:
    """Make an earlier champion the champion again."""
    from stages.retraining import champions
    entry = champions.rollback(params.load(), arguments.number)
    print(f"{entry['reasons'][0]} Ledger entry {entry['number']}; commit reports/ledger.jsonl to keep it.")
    return 0


def ledger(arguments: argparse.Namespace) -> int:
    """Print the promotions and refusals; with --verify check their chain and every champion's bytes."""
    from stages.retraining import champions
    from stages.retraining import ledger as book
    settings, last = params.load(), arguments.last
    if last is not None and last < 1:
        raise InputError("no entry was asked for", where="--last", expected="a number of at least 1", found=str(last))
    print(book.render(book.read()[-(last or 0):]))
    if arguments.verify:
        print(champions.verified(settings))
    return 0


def doctor(arguments: argparse.Namespace) -> int:
    """Print what was examined, its state and its remedy; exit 1 when something failed."""
    from stages import doctor as surgery
    return surgery.main(Path.cwd(), dict(os.environ), arguments.json)


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
                      help="a trained cell (reports/<experiment>/<profile>/runs/<data set>/<cell>), or the word champion; default: the "
                      "Gaussian one of the profile's first data set")
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
    unattended(verbs)
    return top


def unattended(verbs) -> None:
    """The verbs of a laboratory that runs by itself: its captures, champions and ledger, and its health."""
    verb = added(verbs, "champion", "which retrained model is in use, and why",
                 "Which retrained model is champion, since when, and by which numbers; its bytes are hashed and loaded anew.\n"
                 "Exit status 1 where nothing was promoted yet. `tradewind nowcast --model champion` asks it.", "tradewind champion")
    verb.set_defaults(run=champion)

    verb = added(verbs, "rollback", "make an earlier champion the champion again",
                 "Make an earlier champion the champion again. Its bytes are hashed and loaded before the ledger says so.",
                 "tradewind rollback 1")
    verb.add_argument("number", metavar="NUMBER", nargs="?", type=int,
                      help="restore the champion as it was after this ledger entry; default: the one that the present one replaced when promoted")
    verb.set_defaults(run=rollback)

    verb = added(verbs, "ledger", "what was promoted, refused and rolled back",
                 "What scheduled retraining promoted and refused, and what was rolled back: errors, intervals, drift, reasons.",
                 "tradewind ledger --last 5 --verify")
    verb.add_argument("--last", metavar="N", type=int, help="only the last N entries")
    verb.add_argument("--verify", action="store_true",
                      help="check the chain of entries, that it continues the committed one, and the bytes of every champion")
    verb.set_defaults(run=ledger)

    verb = added(verbs, "capture", "write simulated captures, as receivers would drop them",
                 "Raw frame files of the simulated sky, one an hour, each written under another name and then renamed.",
                 "tradewind capture data/live/drop --hours 0:6")
    verb.add_argument("folder", metavar="FOLDER")
    verb.add_argument("--hours", required=True, metavar="A:B", help="hours A <= h < B from the start of the simulated set; B up to 1000")
    verb.add_argument("--seed", type=int, metavar="N", help="of another sky; default: that of the simulated set")
    verb.set_defaults(run=capture)

    verb = added(verbs, "doctor", "what is amiss here, and what mends it",
                 "Examine this machine and this working copy: versions, disks, GPU, DVC, Prefect, the mirror, what killed runs left behind.\n"
                 "Exit status: 1 when something failed, else 0. Nothing is written, no network is asked, no secret is shown.",
                 "tradewind doctor --json")
    verb.add_argument("--json", action="store_true", help="print the findings as JSON")
    verb.set_defaults(run=doctor)


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
