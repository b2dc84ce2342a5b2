"""The verbs that ask where numbers came from, and whether all is as it was."""

import argparse
import sys
from pathlib import Path

from stages.errors import InputError, advice
from stages.verbs import Verbs, added, drawable, only_in_clone


def audit(arguments: argparse.Namespace) -> int:
    """Print the chain behind a number and the verdict: exit 0 PASS, 1 FAIL, 3 INCONCLUSIVE or
    STALE."""
    from stages.audit import verify
    from stages.audit.render import render

    only_in_clone("there is no published number here")
    finding = verify.audit(arguments.metric, arguments.verify, Path.cwd())
    print(advice(render(finding)))
    return finding.exit_code


def compare(arguments: argparse.Namespace) -> int:
    """Print how the numbers here compare with a commit's: exit 0, or 1 where something fails or
    more moved than training explains."""
    from stages.audit import comparison, comparison_text

    only_in_clone("there are no published numbers to compare here")
    results = Path(arguments.results) if arguments.results else None
    if arguments.measure:
        for path in comparison.keep_spreads(Path.cwd(), arguments.commit, results):
            print(path.relative_to(Path.cwd()))
        return 0
    judged = comparison.of_commit(Path.cwd(), arguments.commit, results)
    print(advice(comparison_text.render(judged, arguments.every)))
    return judged.exit_code


def impact(arguments: argparse.Namespace) -> int:
    """Print every published metric that rests on a file."""
    from stages.audit import impact as resting

    only_in_clone("there is no published number here")
    for name in resting.impact(arguments.file, Path.cwd()):
        print(name)
    return 0


def why(arguments: argparse.Namespace) -> int:
    """Print why a number is another one at another commit: exit 0, or 1 where no run explains
    it."""
    from stages.audit import attribute, telling
    from stages.audit import why as asking

    only_in_clone("there is no published number here")
    answer = asking.why(arguments.commits, arguments.metric, Path.cwd())
    print(telling.render(answer), flush=True)
    if arguments.attribute:
        print("\n" + attribute.render(answer, attribute.attribute(answer, Path.cwd())))
    return answer.exit_code


def trend(arguments: argparse.Namespace) -> int:
    """Print a number at every commit that wrote its table."""
    from stages.audit import trend as over

    if arguments.plot:
        drawable(arguments.plot, ".png")
    only_in_clone("there is no published number here")
    metric, found = over.trend(arguments.metric, Path.cwd())
    print(advice(over.render(metric, found)))
    if note := over.cut(Path.cwd()):
        print(note, file=sys.stderr)
    if arguments.plot:
        over.draw(metric, found, arguments.plot)
        print(f"picture: {arguments.plot}")
    return 0


def gates(arguments: argparse.Namespace) -> int:
    """Write Great Expectations' data docs of every gate and print their first page."""
    only_in_clone("there is no gate here")
    from stages.validation import docs

    page, count = docs.build(arguments.folder, Path.cwd())
    print(f"{page}\n{count} gates")
    return 0


def rows(arguments: argparse.Namespace) -> int:
    """Print where the rows asked for stand, or, where none are asked for, what stands on both
    sides: exit 1 where something leaks."""
    from stages.audit import rows as provenance
    from stages.audit import rows_read, twice

    only_in_clone("there are no prepared rows here")
    held = rows_read.opened(arguments.dataset, Path.cwd())
    asked = {name: getattr(arguments, name) for name in ("day", "aircraft", "flight", "file")}
    if any(value is not None for value in asked.values()):
        print(provenance.render(held, provenance.ask(held, **asked)))
        return 0
    print(provenance.render(held, provenance.ask(held), question=False) + "\n")
    shared = provenance.both(held)
    print(provenance.render_both(shared))
    profile, dataset = arguments.dataset.strip("/").split("/")
    told = twice.of_data(Path.cwd(), f"data/{profile}/prepared/{dataset}")
    for path, text in told:
        print(f"LEAK, by values: {path}: {text}")
    return max(shared.exit_code, int(bool(told)))


def verify(arguments: argparse.Namespace) -> int:
    """Verify all of this repository, or a bundle: exit 0 PASS, 1 FAIL, 3 INCONCLUSIVE."""
    if arguments.all == bool(arguments.bundle):
        raise InputError("say what to verify", expected="either --all or the path of a bundle")
    if arguments.bundle:
        from stages.exports import recheck

        return recheck.main(arguments.bundle, arguments.commit)
    if arguments.commit is not None:
        raise InputError(
            "all of this repository is verified as it stands here, not as a commit is",
            found="--all with --commit",
            expected="--all alone, or a bundle with --commit",
            remedy="check that commit out and verify it there",
        )
    from stages.audit import everything

    only_in_clone("there is nothing to verify here")
    found = everything.everything(Path.cwd())
    print(advice(everything.report_text(found)))
    return found.exit_code


def add_audit(verbs: Verbs) -> None:
    """`tradewind audit`."""
    verb = added(
        verbs,
        "audit",
        "where a published number came from, and whether it still holds",
        "Walk from a published number to its raw bytes and check every step.\n"
        "Exit status: 0 PASS, 1 FAIL, 3 INCONCLUSIVE or STALE.",
        "tradewind audit wind_nowcast/mini/simulated/msa-shared-20k-s0/rmse_component_kn --verify "
        "eval",
    )
    verb.add_argument("metric", metavar="EXPERIMENT/PROFILE/DATASET/CELL/METRIC")
    verb.add_argument(
        "--verify",
        choices=("record", "hash", "eval", "train", "raw"),
        default="record",
        help="record: compare the records (default); hash: re-hash every byte; eval: recompute "
        "from the checkpoint; train: train again; raw: acquire or simulate and prepare again, too",
    )
    verb.set_defaults(run=audit)


def add_compare(verbs: Verbs) -> None:
    """`tradewind compare`."""
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


def add_impact(verbs: Verbs) -> None:
    """`tradewind impact`."""
    verb = added(
        verbs,
        "impact",
        "which published numbers rest on a file",
        "Which published numbers rest on a file of data or of parameters, one address a line; of "
        "code the stages that it belongs\nto, with how many numbers rest on each.",
        "tradewind impact data/mini/raw/simulated/frames_00.csv",
    )
    verb.add_argument("file", metavar="FILE")
    verb.set_defaults(run=impact)


def add_why(verbs: Verbs) -> None:
    """`tradewind why`."""
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


def add_trend(verbs: Verbs) -> None:
    """`tradewind trend`."""
    verb = added(
        verbs,
        "trend",
        "a published number over the commits",
        "A published number at every commit that wrote its table, oldest first, with its interval "
        "and its change.\n"
        "Read from git; nothing is checked out or made again. `tradewind why` tells the causes of "
        "a change.",
        "tradewind trend wind_baselines/mini/simulated/kalman-swept-none/rmse_component_kn "
        "--plot trend.png",
    )
    verb.add_argument("metric", metavar="EXPERIMENT/PROFILE/DATASET/CELL/METRIC")
    verb.add_argument("--plot", type=Path, metavar="FILE", help="draw it, too, as a PNG")
    verb.set_defaults(run=trend)


def add_gates(verbs: Verbs) -> None:
    """`tradewind gates`."""
    verb = added(
        verbs,
        "gates",
        "the data sets' gates as Great Expectations' data docs",
        "Great Expectations' own data docs of every data set's gate, a static site, from the "
        "verdicts that git keeps.\n"
        "Its pages load their styles and scripts from the network; reports/index.html#validation "
        "tells the same without.",
        "tradewind gates ../gates",
    )
    verb.add_argument("folder", metavar="FOLDER", type=Path)
    verb.set_defaults(run=gates)


def add_rows(verbs: Verbs) -> None:
    """`tradewind rows`."""
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


def add_verify(verbs: Verbs) -> None:
    """`tradewind verify`."""
    verb = added(
        verbs,
        "verify",
        "every byte, record, table and figure of this repository; or a bundle",
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


def register(verbs: Verbs) -> None:
    """Add these verbs."""
    for add in (
        add_audit,
        add_compare,
        add_impact,
        add_why,
        add_trend,
        add_gates,
        add_rows,
        add_verify,
    ):
        add(verbs)
