"""The verbs of the winds: a nowcast, the frozen benchmark, captures of the simulated sky."""

import argparse
from pathlib import Path

from stages import params
from stages.errors import InputError
from stages.verbs import Verbs, added


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


def add_nowcast(verbs: Verbs) -> None:
    """`tradewind nowcast`."""
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
        help="a recent capture: winds as parquet or CSV, or raw frames with their times as CSV, "
        "JSON lines or AVR, also .gz",
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


def add_benchmark(verbs: Verbs) -> None:
    """`tradewind benchmark`."""
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


def add_capture(verbs: Verbs) -> None:
    """`tradewind capture`."""
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


def register(verbs: Verbs) -> None:
    """Add these verbs."""
    for add in (add_nowcast, add_benchmark, add_capture):
        add(verbs)
