"""`tradewind`: the verbs a person types. Thin: parse, call, print.

nowcast    the wind at places and times, from a trained model and a recent capture
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
from pathlib import Path

from stages import params
from stages.errors import InputError, TradewindError


def nowcast(arguments: argparse.Namespace) -> int:
    """Print wind, direction and spread at the points asked for."""
    from stages.winds.nowcast import nowcast as forecaster

    settings, model = params.load(), arguments.model
    if model == "champion":
        from stages.winds.retraining import champions

        model = champions.folder_now(settings)
    rows = forecaster.nowcast(
        arguments.context, at=arguments.at, points=arguments.points, model=model, settings=settings
    )
    print(forecaster.render(rows))
    return 0


def audit(arguments: argparse.Namespace) -> int:
    """Print the chain behind a number and the verdict: exit 0 PASS, 1 FAIL, 3 INCONCLUSIVE."""
    from stages import audit as auditor

    finding = auditor.audit(arguments.metric, arguments.verify, Path.cwd())
    print(auditor.render(finding))
    return finding.exit_code


def compare(arguments: argparse.Namespace) -> int:
    """Print how the numbers here compare with a commit's: exit 0, or 1 where something fails or
    more moved than training explains."""
    from stages.audit import comparison, comparison_text

    results = Path(arguments.results) if arguments.results else None
    if arguments.measure:
        for path in comparison.keep_spreads(Path.cwd(), arguments.commit, results):
            print(path.relative_to(Path.cwd()))
        return 0
    judged = comparison.of_commit(Path.cwd(), arguments.commit, results)
    print(comparison_text.render(judged, arguments.every))
    return judged.exit_code


def impact(arguments: argparse.Namespace) -> int:
    """Print every published metric that rests on a file."""
    from stages import audit as auditor

    for name in auditor.impact(arguments.file, Path.cwd()):
        print(name)
    return 0


def why(arguments: argparse.Namespace) -> int:
    """Print why a number is another one at another commit: exit 0, or 1 where no run explains
    it."""
    from stages.audit import attribute, telling
    from stages.audit import why as asking

    answer = asking.why(arguments.commits, arguments.metric, Path.cwd())
    print(telling.render(answer), flush=True)
    if arguments.attribute:
        print("\n" + attribute.render(answer, attribute.attribute(answer, Path.cwd())))
    return answer.exit_code


def rows(arguments: argparse.Namespace) -> int:
    """Print where the rows asked for stand, or, where none are asked for, what stands on both
    sides: exit 1 where something leaks."""
    from stages.audit import rows as provenance

    held = provenance.opened(arguments.dataset, Path.cwd())
    asked = {name: getattr(arguments, name) for name in ("day", "aircraft", "flight", "file")}
    if any(value is not None for value in asked.values()):
        print(provenance.render(held, provenance.ask(held, **asked)))
        return 0
    print(provenance.render(held, provenance.ask(held), question=False) + "\n")
    shared = provenance.both(held)
    print(provenance.render_both(shared))
    return shared.exit_code


def verify(arguments: argparse.Namespace) -> int:
    """Verify all of this repository, or a bundle: exit 0 PASS, 1 FAIL, 3 INCONCLUSIVE."""
    if arguments.all == bool(arguments.bundle):
        raise InputError("say what to verify", expected="either --all or the path of a bundle")
    if arguments.bundle:
        from stages.exports import recheck

        return recheck.main(arguments.bundle, arguments.commit)
    from stages.audit import everything

    found = everything.everything(Path.cwd())
    print(everything.told(found))
    return found.exit_code


def release(arguments: argparse.Namespace) -> int:
    """Write a citable bundle of the commit and print its path and SHA-256."""
    from stages import exports, files

    path = exports.release(arguments.folder, Path.cwd(), with_data=arguments.with_data)
    print(f"{path}\nsha256 {files.sha256(path)}")
    return 0


def card(arguments: argparse.Namespace) -> int:
    """Print a trained cell's model card."""
    from stages import exports

    print(exports.card(arguments.cell, Path.cwd()))
    return 0


def croissant(arguments: argparse.Namespace) -> int:
    """Write Croissant metadata of the raw data sets and print the files."""
    from stages import exports

    for path in exports.write_croissant(arguments.folder, Path.cwd(), tuple(arguments.names)):
        print(path)
    return 0


def benchmark(arguments: argparse.Namespace) -> int:
    """Write the frozen benchmark into a new folder."""
    from stages.winds.nowcast import benchmark as frozen

    print(frozen.build(Path("data/mini"), "simulated", Path(arguments.folder)))
    return 0


def capture(arguments: argparse.Namespace) -> int:
    """Write simulated captures into a folder and print their names."""
    from stages.winds.sky import capture as receiver

    hours, known = receiver.asked_hours(arguments.hours), params.load().datasets
    plan = known["simulated"].simulate if "simulated" in known else None
    if plan is None:
        raise InputError(
            "there is no simulated sky to capture",
            where="params.yaml",
            expected="a data set `simulated` of kind simulate",
        )
    for path in receiver.capture(plan, Path(arguments.folder), *hours, seed=arguments.seed):
        print(path)
    return 0


def champion(arguments: argparse.Namespace) -> int:
    """Print who is champion, since when and by which numbers; exit 1 where nobody is."""
    from stages.winds.retraining import champions

    told = champions.describe(params.load())
    if told is None:
        print("there is no champion yet: nothing was promoted", file=sys.stderr)
        return 1
    print(told)
    return 0


def rollback(arguments: argparse.Namespace) -> int:
    """Make an earlier champion the champion again."""
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


def added(verbs, name: str, short: str, long: str, example: str) -> argparse.ArgumentParser:
    """A verb whose help ends with an example."""
    return verbs.add_parser(
        name,
        help=short,
        description=f"{long}\n\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def parser() -> argparse.ArgumentParser:
    """The command line, with examples in each verb's help."""
    top = argparse.ArgumentParser(
        prog="tradewind", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB")

    verb = added(
        verbs,
        "nowcast",
        "the wind at places and times",
        "The wind at places and times, from a trained model and a recent capture.",
        "tradewind nowcast --context data/mini/decoded/simulated/winds.parquet --at "
        "46.5,7.2,34000,2026-01-17T05:00:00Z",
    )
    verb.add_argument(
        "--context",
        required=True,
        metavar="FILE",
        help="a recent capture: winds as parquet or CSV, or raw frames as CSV (time, hex)",
    )
    place = verb.add_mutually_exclusive_group(required=True)
    place.add_argument(
        "--at",
        action="append",
        metavar="LAT,LON,ALT_FT,TIME",
        help="degrees, degrees, feet, ISO 8601 UTC or Unix seconds; may be repeated",
    )
    place.add_argument(
        "--points", metavar="CSV", help="a file with the columns lat_deg, lon_deg, alt_ft, time"
    )
    verb.add_argument(
        "--model",
        metavar="FOLDER",
        help="a trained cell (reports/<experiment>/<profile>/runs/<data set>/<cell>), or the word "
        "champion; default: the Gaussian one of the profile's first data set",
    )
    verb.set_defaults(run=nowcast)

    verb = added(
        verbs,
        "benchmark",
        "write the frozen simulated benchmark into a folder",
        "The winds of the mini profile's simulated set with their truth, splits and a scorer, in a "
        "new folder;\nthe same bytes everywhere.",
        "tradewind benchmark ../wind-benchmark",
    )
    verb.add_argument("folder", metavar="FOLDER")
    verb.set_defaults(run=benchmark)
    trust(verbs)
    published(verbs)
    unattended(verbs)
    return top


def trust(verbs) -> None:
    """The verbs that ask where numbers came from, and whether all is as it was."""
    verb = added(
        verbs,
        "audit",
        "where a number came from, and whether it still holds",
        "Walk from a published number to its raw bytes and check every step.\n"
        "Exit status: 0 PASS, 1 FAIL, 3 INCONCLUSIVE.",
        "tradewind audit wind_nowcast/mini/simulated/msa-shared-20k-s0/rmse_component_kn --verify "
        "eval",
    )
    verb.add_argument("metric", metavar="EXPERIMENT/PROFILE/DATASET/CELL/METRIC")
    verb.add_argument(
        "--verify",
        choices=("record", "hash", "eval", "train"),
        default="record",
        help="record: compare the records (default); hash: re-hash every byte; eval: recompute "
        "from the checkpoint; train: train again",
    )
    verb.set_defaults(run=audit)

    verb = added(
        verbs,
        "compare",
        "how the numbers here compare with a commit's",
        "Judge every published number of the working copy, or of a folder, by that of a commit: "
        "identical, reproduced (within what\n"
        "training does by itself), moved; and each claim's verdict. Exit status: 0, or 1 where "
        "something fails or too much moved.",
        "tradewind compare HEAD",
    )
    verb.add_argument(
        "commit",
        nargs="?",
        default="HEAD",
        metavar="COMMIT",
        help="a branch, a tag, a hash or HEAD~N; default: HEAD",
    )
    verb.add_argument(
        "--results",
        metavar="FOLDER",
        help="results of another run, laid out as in the repository; default: those here",
    )
    verb.add_argument(
        "--every", action="store_true", help="name every number that moved, not the farthest alone"
    )
    verb.add_argument(
        "--measure",
        action="store_true",
        help="write the spread of training between the two runs (of one code, on two arithmetics) "
        "into data/spreads",
    )
    verb.set_defaults(run=compare)

    verb = added(
        verbs,
        "impact",
        "which published numbers rest on a file",
        "Which published numbers rest on a file: every chain that holds it, one address a line.",
        "tradewind impact data/mini/raw/simulated/frames_00.csv",
    )
    verb.add_argument("file", metavar="FILE")
    verb.set_defaults(run=impact)

    verb = added(
        verbs,
        "why",
        "why a published number is another one at another commit",
        "Why a published number changed between two commits: data, parameters, code, environment "
        "and seed of its own cone, each with the\n"
        "stage where it enters. Both commits are read from git; nothing is checked out or "
        "written.\n"
        "Exit status: 0, or 1 where the number changed and no run explains it (an edit by hand, or "
        "non-determinism).",
        "tradewind why HEAD~1..HEAD wind_nowcast/mini/simulated/msa-shared-20k-s0/"
        "rmse_component_kn",
    )
    verb.add_argument(
        "commits",
        metavar="A..B",
        help="two commits: branches, tags, hashes or HEAD~N; an end left out is HEAD",
    )
    verb.add_argument("metric", metavar="EXPERIMENT/PROFILE/DATASET/CELL/METRIC")
    verb.add_argument(
        "--attribute",
        action="store_true",
        help="make the number again from A with one kind of cause switched at a time, in a "
        "temporary project (trains again)",
    )
    verb.set_defaults(run=why)

    verb = added(
        verbs,
        "rows",
        "which rows were trained on, and which stand on both sides",
        "Was this day, aircraft, flight or file in training? With none of them: what stands in "
        "train and in validation or test.\n"
        "Answered from the file and record that each prepared row carries. Exit status: 0, or 1 "
        "where something leaks.",
        "tradewind rows --dataset mini/simulated --day 2026-01-17",
    )
    verb.add_argument("--dataset", required=True, metavar="PROFILE/DATASET")
    verb.add_argument("--day", metavar="YYYY-MM-DD", help="rows of that day (UTC)")
    verb.add_argument("--aircraft", metavar="ICAO24", help="rows of that aircraft")
    verb.add_argument(
        "--flight", type=int, metavar="N", help="rows of that flight, as numbered in rows.parquet"
    )
    verb.add_argument("--file", metavar="NAME", help="rows of that raw file")
    verb.set_defaults(run=rows)

    verb = added(
        verbs,
        "verify",
        "every byte, record, table and figure; or a bundle",
        "Verify all of this repository: hash every file and cache object, check every record, "
        "derive every table and claim again.\n"
        "Or re-check a bundle, without the repository, DVC or data.\n"
        "Exit status: 0 PASS, 1 FAIL, 3 INCONCLUSIVE.",
        "tradewind verify --all",
    )
    verb.add_argument(
        "bundle", nargs="?", metavar="BUNDLE", help="a file that `tradewind release` wrote"
    )
    verb.add_argument("--all", action="store_true", help="this repository, whole")
    verb.add_argument(
        "--commit", metavar="NAME", help="the commit that was cited: the bundle must be of it"
    )
    verb.set_defaults(run=verify)


def published(verbs) -> None:
    """The verbs that give results away."""
    verb = added(
        verbs,
        "release",
        "a citable bundle of this commit",
        "One zip of the commit's files, results, records and metadata; its bytes depend on the "
        "commit alone.\n"
        "Refused while anything is dirty or stale.",
        "tradewind release ../releases",
    )
    verb.add_argument("folder", metavar="FOLDER")
    verb.add_argument(
        "--with-data",
        action="store_true",
        help="add the raw files of profiles that are simulated as a whole (mini)",
    )
    verb.set_defaults(run=release)

    verb = added(
        verbs,
        "card",
        "the model card of a trained cell",
        "The model card of a trained cell, as Markdown.",
        "tradewind card wind_nowcast/mini/simulated/msa-shared-20k-s0",
    )
    verb.add_argument("cell", metavar="EXPERIMENT/PROFILE/DATASET/CELL")
    verb.set_defaults(run=card)

    verb = added(
        verbs,
        "croissant",
        "metadata of the raw data sets",
        "Croissant (JSON-LD) of every acquired data set, or of those named.",
        "tradewind croissant ../metadata mini/simulated",
    )
    verb.add_argument("folder", metavar="FOLDER")
    verb.add_argument("names", nargs="*", metavar="PROFILE/DATASET")
    verb.set_defaults(run=croissant)


def unattended(verbs) -> None:
    """The verbs of a laboratory that runs by itself: its captures, champions and ledger, and its
    health."""
    verb = added(
        verbs,
        "champion",
        "which retrained model is in use, and why",
        "Which retrained model is champion, since when, and by which numbers; its bytes are hashed "
        "and loaded anew.\n"
        "Exit status 1 where nothing was promoted yet. `tradewind nowcast --model champion` asks "
        "it.",
        "tradewind champion",
    )
    verb.set_defaults(run=champion)

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

    verb = added(
        verbs,
        "ledger",
        "what was promoted, refused and rolled back",
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

    verb = added(
        verbs,
        "capture",
        "write simulated captures, as receivers would drop them",
        "Raw frame files of the simulated sky, one an hour, each written under another name and "
        "then renamed.",
        "tradewind capture data/live/drop --hours 0:6",
    )
    verb.add_argument("folder", metavar="FOLDER")
    verb.add_argument(
        "--hours",
        required=True,
        metavar="A:B",
        help="hours A <= h < B from the start of the simulated set; B up to 1000",
    )
    verb.add_argument(
        "--seed", type=int, metavar="N", help="of another sky; default: that of the simulated set"
    )
    verb.set_defaults(run=capture)

    verb = added(
        verbs,
        "doctor",
        "what is amiss here, and what mends it",
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
