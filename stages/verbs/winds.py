"""The verbs of the winds: a nowcast, the frozen benchmark, captures of the simulated sky."""

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stages import params
from stages.errors import InputError
from stages.verbs import Verbs, added, drawable, only_in_clone, writable

EVERY_S = 10.0  # of a stream, between two answers
STEP = 0.25  # degrees, of the example's level
LINES = (".jsonl", ".ndjson", "")  # ends of the name of a stream's answers


def nowcast(arguments: argparse.Namespace) -> int:
    """Print wind, direction and spread at the points asked for, or write them to a file."""
    from stages.winds.nowcast import answers, anywhere, named
    from stages.winds.nowcast import nowcast as forecaster

    if arguments.every is not None and not arguments.follow:
        raise InputError(
            "there is no stream to answer every so often",
            found=f"--every {arguments.every:g} with --context",
            remedy="give --follow, or leave --every out",
        )
    settings, model = anywhere.settings(), arguments.model
    for path in filter(None, (arguments.out, arguments.plot)):
        writable(path)
    if arguments.plot:
        drawable(arguments.plot, ".png", *((".gif",) if arguments.follow else ()))
    if arguments.out:
        (lines_suffix if arguments.follow else answers.check_suffix)(arguments.out)
    refuse_unwritten(arguments)
    if model == "champion":
        from stages.winds.retraining import champions

        model = champions.folder_now(params.load())
    elif model or not anywhere.in_clone():
        model = named.folder(model or anywhere.EXAMPLE)
    if arguments.follow:
        return followed(arguments, model, settings)
    with given(arguments.context) as (context, called):
        rows = forecaster.nowcast(
            context,
            called=called,
            at=arguments.at,
            points=arguments.points,
            grid=arguments.grid,
            route=arguments.route,
            model=model,
            settings=settings,
        )
    tell(arguments, rows)
    return 0


def refuse_unwritten(arguments: argparse.Namespace) -> None:
    """InputError for a text that is no place and time, grid or route: no model has to be found, and
    none to be loaded, to tell."""
    from stages.winds.nowcast import nowcast as forecaster

    at, grid, route = arguments.at or [], arguments.grid, arguments.route
    if arguments.follow:  # whose times may be the model's lead
        from stages.winds.streaming.answering import LEAD

        at = [text.replace(LEAD, "+0") for text in at]
        grid, route = (text and text.replace(LEAD, "+0") for text in (grid, route))
    forecaster.written(at=at, grid=grid, route=route)


def tell(arguments: argparse.Namespace, rows: Any) -> None:
    """Give the answer in the forms that were asked for; beside those that have no place for it,
    what was dropped and what a route takes go to standard error."""
    from stages.winds.nowcast import answers, refusals
    from stages.winds.nowcast import route as routes

    shown = not (arguments.out or arguments.plot or arguments.form)
    route = routes.flown(routes.read(arguments.route), rows) if arguments.route else None
    if not shown and (told := refusals.counted(rows[0].dropped)):
        print(f"dropped: {told}", file=sys.stderr)
    in_json = arguments.form == "json" or (arguments.out and arguments.out.suffix == ".json")
    if not (shown or in_json) and (told := answers.unlike(rows)):
        print(f"spread: {told}", file=sys.stderr)
    if arguments.out:
        answers.write(rows, arguments.out, route, gridded=bool(arguments.grid))
    if arguments.form:
        sys.stdout.write(
            answers.as_json(rows, route) if arguments.form == "json" else answers.as_csv(rows)
        )
    elif shown:
        print(answers.render(rows))
    if route and not in_json:
        end = f"\n{routes.summary(route)}" if shown else routes.summary(route)
        print(end, file=sys.stdout if shown else sys.stderr)
    if arguments.plot:
        from stages.winds.nowcast import picture

        picture.draw(rows, arguments.plot)


def followed(arguments: argparse.Namespace, model: Any, settings: params.Inference) -> int:
    """Answer a stream line by line, and tell at its end what was counted."""
    from stages.winds.streaming import follow

    if arguments.form == "csv":
        raise InputError("a stream is answered in JSON lines", found="--csv")
    moving = None
    if arguments.plot and arguments.plot.suffix.lower() == ".gif":
        from stages.winds.streaming.film import Film  # a library of the laboratory

        moving = Film()

    def emit(answering: Any, line: dict[str, Any]) -> None:
        text = follow.written(line)
        if arguments.out:
            follow.append(arguments.out, text)
        else:
            print(text, end="", flush=True)
        if arguments.plot and "winds" in line:
            from stages.winds.nowcast import picture

            drawn = arguments.plot.with_name(f".{arguments.plot.name}.tmp")
            picture.draw(answering.rows, drawn)
            if moving is None:
                os.replace(drawn, arguments.plot)
                return
            moving.add(drawn)
            moving.write(arguments.plot)

    ended = follow.follow(
        arguments.follow,
        emit,
        model=model,
        settings=settings,
        every_s=EVERY_S if arguments.every is None else arguments.every,
        at=arguments.at,
        points=arguments.points,
        grid=arguments.grid,
        route=arguments.route,
    )
    print(follow.summary(ended), file=sys.stderr)
    return 0


@contextlib.contextmanager
def given(context: str) -> Iterator[tuple[str, str]]:
    """A regular file with what the context holds, which may be opened again and again, and what
    errors call it: "-" is standard input; that, a pipe or a device is read once, into a temporary
    file."""
    if not context.strip():
        raise InputError("no file is named", where="--context", found=repr(context))
    path = Path(context)
    if context != "-" and (path.is_file() or path.is_dir() or not path.exists()):
        yield context, context
        return
    with tempfile.NamedTemporaryFile(prefix="context-") as file:
        with contextlib.ExitStack() as opened:
            stream = sys.stdin.buffer if context == "-" else opened.enter_context(path.open("rb"))
            shutil.copyfileobj(stream, file)
        file.flush()
        yield file.name, "standard input" if context == "-" else context


def lines_suffix(path: Path) -> None:
    """InputError for a file whose name tells another form than the lines of a stream's answers."""
    if path.suffix not in LINES:
        raise InputError(
            "a stream is answered in JSON lines, which that name does not tell",
            where=str(path),
            found=path.suffix,
            expected=" | ".join(filter(None, LINES)) + " | no suffix",
        )


def attempt(arguments: argparse.Namespace) -> int:
    """Ask the model that git keeps for a level; print the middle of it, draw it all."""
    from stages import files
    from stages.winds.nowcast import answers, anywhere, picture
    from stages.winds.nowcast import nowcast as forecaster

    writable(arguments.plot)
    drawable(arguments.plot, ".png")
    home, model = anywhere.example(), anywhere.example_cell()
    told = files.read_json(home / "example.json")
    context, grid = home / "winds.parquet", f"{told['alt_ft']},{told['time_s']:.0f},{STEP}"
    rows = forecaster.nowcast(context, grid=grid, model=model, settings=anywhere.settings())
    picture.draw(rows, arguments.plot)
    print(f"{told['cell']} is {told['why']}. A level over its area, and the middle of it:\n")
    print(answers.render([rows[len(rows) // 2]]))
    print(f"\nThe whole level: {arguments.plot}. The same by hand:\n")
    command = f"  tradewind nowcast --context {context} --model {anywhere.EXAMPLE} \\\n"
    print(f"{command}    --grid {grid} --plot {arguments.plot}")
    if os.environ.get("DISPLAY") and sys.stdout.isatty():
        webbrowser.open(arguments.plot.absolute().as_uri())
    return 0


def benchmark(arguments: argparse.Namespace) -> int:
    """Write the frozen benchmark into a new folder."""
    from stages.winds.nowcast import benchmark as frozen

    only_in_clone("there is no simulated set to freeze here")
    print(frozen.build(Path("data/mini"), "simulated", Path(arguments.folder)))
    return 0


def capture(arguments: argparse.Namespace) -> int:
    """Write simulated captures into a folder and print their names."""
    from stages.winds.nowcast import anywhere
    from stages.winds.sky import capture as receiver

    hours, plan = receiver.asked_hours(arguments.hours), anywhere.sky()
    for path in receiver.capture(plan, Path(arguments.folder), *hours, seed=arguments.seed):
        print(path)
    return 0


def add_nowcast(verbs: Verbs) -> None:
    """`tradewind nowcast`."""
    verb = added(
        verbs,
        "nowcast",
        "the wind at places and times, from a trained model and a recent capture",
        "The wind at places and times, from a trained model and a recent capture.",
        "tradewind nowcast --context data/mini/decoded/simulated/winds.parquet --at "
        "46.5,7.2,34000,2026-01-17T05:00:00Z",
    )
    add_sources(verb)
    place = verb.add_mutually_exclusive_group(required=True)
    place.add_argument(
        "--at",
        action="append",
        metavar="LAT,LON,ALT,TIME",
        help="degrees, degrees, feet (or FL340, 10363m), ISO 8601 UTC or Unix seconds; may be "
        "repeated",
    )
    place.add_argument(
        "--points",
        metavar="FILE",
        help="a table as CSV, parquet or JSON with the columns lat_deg, lon_deg, alt_ft and time "
        "or ts_s",
    )
    place.add_argument(
        "--grid",
        metavar="ALT,TIME,STEP",
        help="a level over the model's whole area, STEP degrees apart",
    )
    place.add_argument(
        "--route",
        metavar="ALT,TIME,AIRSPEED_KN,LAT,LON,LAT,LON,...",
        help="a route from waypoint to waypoint: the wind along it, the time that it takes, and "
        "what the wind's error may cost; it must end within the model's lead",
    )
    verb.add_argument(
        "--model",
        metavar="CELL",
        help="a trained cell: its folder, EXPERIMENT/PROFILE/DATASET/CELL or a shorter name that "
        "fits no other, champion, or example (the small one that is installed, too); default: the "
        "best on the validation minutes of the profile's first data set; outside of a clone the "
        "example",
    )
    form = verb.add_mutually_exclusive_group()
    for name, text in (("json", "print one JSON object"), ("csv", "print CSV")):
        form.add_argument(f"--{name}", dest="form", action="store_const", const=name, help=text)
    verb.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write the answer to FILE.csv, .json, .parquet or .nc (NetCDF, CF conventions; of a "
        "level a grid)",
    )
    verb.add_argument("--plot", type=Path, metavar="FILE", help="draw the answer, as FILE.png")
    verb.set_defaults(run=nowcast)


def add_sources(verb: argparse.ArgumentParser) -> None:
    """What a nowcast is made from: a capture, or a stream."""
    source = verb.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--context",
        metavar="FILE",
        help="a recent capture: winds as parquet, CSV or JSON, or raw frames with their times as "
        "CSV, JSON lines or AVR, also .gz; - is standard input",
    )
    source.add_argument(
        "--follow",
        metavar="SOURCE",
        help="raw frames as they come (as of --context, or Beast): a growing file, - or "
        "tcp://HOST:PORT; a JSON line each --every seconds, which --out FILE.jsonl appends and "
        "--plot draws (as FILE.gif the last ones move). TIME is +SECONDS after the stream's, or "
        "+lead, as far as the model's lead reaches",
    )
    verb.add_argument(
        "--every",
        type=float,
        metavar="SECONDS",
        help=f"of the stream's time, between two answers of --follow; default: {EVERY_S:g}",
    )


def add_try(verbs: Verbs) -> None:
    """`tradewind try`."""
    verb = added(
        verbs,
        "try",
        "a nowcast from what git keeps, before anything was trained",
        "The best model of the simulated sky and half an hour of its winds lie in the repository: "
        "a nowcast of\na whole level, as a picture.",
        "tradewind try --plot nowcast.png",
    )
    verb.add_argument(
        "--plot",
        type=Path,
        default=Path("nowcast.png"),
        metavar="FILE",
        help="where the picture goes; default: %(default)s",
    )
    verb.set_defaults(run=attempt)


def add_benchmark(verbs: Verbs) -> None:
    """`tradewind benchmark`."""
    verb = added(
        verbs,
        "benchmark",
        "the simulated wind benchmark, frozen, for use elsewhere",
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
        "simulated captures, as receivers would drop them",
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
    for add in (add_nowcast, add_try, add_benchmark, add_capture):
        add(verbs)
