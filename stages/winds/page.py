"""The page of an experiment with forecasts of winds: `python -m stages.winds.page EXPERIMENT
PROFILE`."""

import sys
from pathlib import Path
from typing import Any

from stages.figures.colours import colour
from stages.files import read_json
from stages.neighbours.experiment.tables import epoch
from stages.page import charts
from stages.page import experiment as page
from stages.page.blocks import (
    Block,
    Cells,
    Chart,
    Grid,
    Line,
    Link,
    Opening,
    Pair,
    Part,
    Section,
    Short,
    Words,
    lineage_block,
    pictures,
)
from stages.page.lineage import lineage
from stages.page.result import NO_BOUND, NOT_PUBLISHED, Result
from stages.tables.table import Table, against, cells_of, datasets_of, label
from stages.tables.tabulation import home_of
from stages.winds import tables
from stages.winds.printed import companions, epochs, format_printed, weather
from stages.winds.tabulate import OPTIMUM

FAMILY = "winds"
TIMES = Path("reports/neighbours")  # where `make bench-neighbours` timed an epoch
SPREADS = (
    "± is the sample standard deviation over seeds; [ ] the 90 % interval, Student's over six runs "
    "of test minutes; a test of less than six half hours is too short for one."
)
BESIDE = (
    "Printed values are the documents', on their own data: a level to compare with, not a target "
    "on this set. Context shuffled deals the context's values anew among all points that a "
    "minute's targets read: an error that stays the same says that the model does not use where "
    "the winds were measured. day_average is not causal."
)
WIDE = {
    "nowcast": "One test minute: the winds known at issue time, and the forecast over what was "
    "measured. Arrows point where the wind blows to; red lines are the model's own spread.",
    "errors": "Where the error of the wind vector lies, over all test minutes.",
    "sweeps": "The sweeps, on validation slices: each draw's error and the least so far; the best "
    "to be expected of k draws (Dodge et al. 2019); what the error depends on; error by argument. "
    "Draws at the upper edge lie beyond it; ticks at the foot have no error.",
}
NARROW = {
    "by_lead": "Error against lead time: the same held-out targets, older and older contexts. "
    "Bands are 90 % intervals.",
    "by_distance": "Error by distance from the nearest measurement the model was given.",
    "by_altitude": "Error by altitude.",
}
TITLES = {
    "vs hour_average": "against the hour average",
    "printed RMSE [kn]": "printed in the thesis [kn]",
}
Content = dict[str, Any]


def results(experiment: str, profile: str, content: Content) -> list[Result]:
    """RMSE per component, kn: beside the printed one, the sensors' noise or the optimum, and the
    hour's average."""
    arms, printed, found = content["arms"], companions(experiment), []
    for dataset in datasets_of(arms):
        floor, best = tables.floor_of(arms, dataset), tables.error_of(arms, dataset, tables.OPTIMUM)
        trivial = tables.error_of(arms, dataset, tables.BASELINE)
        noise = f"sensor noise {floor:.2f}" if floor else NO_BOUND
        bound = f"optimum {best:.2f}" if best else noise
        for name in tables.ordered(arms, dataset):
            arm, one = name.split("/")[1], arms[name]
            error = one["metrics"][tables.RMSE]
            left = tables.diverged(arms, name)
            share = "" if left else f" ({against(error['mean'], trivial)})"
            found.append(
                Result(
                    experiment=experiment,
                    profile=profile,
                    dataset=dataset,
                    arm=arm,
                    name=label(arm),
                    seeds=str(one["seeds"]),
                    measure="RMSE per component [kn]",
                    value=tables.LEFT if left else tables.number(error, True),
                    published=format_printed(printed[arm]) if printed.get(arm) else NOT_PUBLISHED,
                    bound=bound,
                    trivial=f"{tables.BASELINE} {trivial:.2f}{share}"
                    if trivial
                    else f"{tables.BASELINE} was not run",
                    metric=tables.RMSE,
                )
            )
    return found


def durations(experiment: str, profile: str) -> tuple[dict[str, dict[str, str]], str]:
    """The columns of epoch durations (s) of table 1.2, ours where `make bench-neighbours` timed
    one, and a sentence on where."""
    file = TIMES / profile / "benchmarks.json"
    times, printed = read_json(file) if file.exists() else {}, epochs(experiment)
    timed = times.get("epoch")
    ours = {
        arm: f"{timed['seconds']:.0f}"
        for arm in printed
        if timed and arm.startswith("gka_mlp_tnn-cached")
    }
    columns = {"epoch [s]": ours} if ours else {}
    if ours:
        said = f"{epoch(times)} Printed epochs: the document's machine, one day of a million points"
    else:
        said = "Printed epochs: one day of a million points, on the document's machine"
    theirs = {arm: f"{seconds:,.0f}" for arm, seconds in printed.items()}
    return columns | {"printed epoch [s]": theirs}, said


def section(experiment: str, profile: str, content: Content, dataset: str) -> Section:
    """Everything that the page shows of one data set."""
    home, arms, cells = home_of(experiment, profile), content["arms"], content["cells"]
    printed, (columns, said) = companions(experiment), durations(experiment, profile)
    more = (
        (
            "By day, beside the document's three (thesis, table 1.2)",
            tables.by_day(arms, cells, dataset, printed, columns),
            f"{said}.",
        ),
        ("Kernel averaging by lead (thesis, figure 3.3)", tables.by_lead(arms, cells, dataset), ""),
        (
            (
                "By the weather service's metrics; the printed rows (about 100,000 parameters; "
                "thesis, table 3.3) below"
            ),
            tables.weather(arms, dataset, weather()),
            "",
        ),
        (
            "What the sweeps chose",
            tables.sweeps(home / "sweeps" / dataset, dataset),
            "On validation slices: not the numbers of the test above.",
        ),
    )
    named = [{f"{dataset}-{name}": words for name, words in one.items()} for one in (WIDE, NARROW)]
    wide, narrow = (pictures(home, one) for one in named)
    compared = charts.over(
        narrow, {f"{dataset}-{group}": breakdown(arms, cells, dataset, group) for group in NARROW}
    )
    blocks: list[Block] = [
        Words(about(arms, dataset) + tables.without_intervals(cells, dataset)),
        Grid(tables.results(arms, dataset, printed)),
        Words(BESIDE, quiet=True),
        *(Grid(table, title, words) for title, table, words in more if table),
        *wide,
        Pair(compared),
        lineage_block(dataset, f"{experiment}, {profile}", lineage(experiment, profile, dataset)),
        Cells(tables.RMSE, tuple(cells_of(cells, dataset))),
    ]
    return Section(dataset, dataset, tuple(blocks), dataset)


def breakdown(
    arms: dict[str, Any], cells: dict[str, Any], dataset: str, group: str
) -> Chart | None:
    """RMSE against lead, altitude or distance, a line an arm with its 90 % band; None where there
    are no two bins, of which no figure was drawn either."""
    from stages.winds.figures import GROUPS, dash  # with matplotlib

    names = tables.leading(tables.ordered(arms, dataset))
    found = {name: tables.curve(cells, name, group) for name in names}
    keys = max((list(one) for one in found.values()), key=len, default=[])
    if len(keys) < 2:
        return None
    numeric = all(key.replace(".", "", 1).isdigit() for key in keys)
    places = {key: float(key) if numeric else float(place) for place, key in enumerate(keys)}
    lines = []
    for name, points in found.items():
        arm, here = name.split("/")[1], [key for key in keys if key in points]
        if here:
            value, low, high = zip(*(points[key] for key in here), strict=True)
            x = tuple(places[key] for key in here)
            lines.append(Line(label(arm), colour(arm), x, value, low, high, dash(arm) != "-"))
    floor = tables.floor_of(arms, dataset)
    return Chart(
        caption=NARROW[group],
        x=GROUPS[group],
        y="RMSE per component [kn]",
        lines=tuple(lines),
        levels=(("noise floor of the sensors", floor),) if floor else (),
        names=() if numeric else tuple(keys),
    )


def about(arms: dict[str, Any], dataset: str) -> str:
    """How many points a data set holds out, the noise of its sensors, and the optimum."""
    floor, best = tables.floor_of(arms, dataset), tables.ordered(arms, dataset)[-1]
    said = f"{arms[best]['metrics'][tables.RMSE]['n']:,} held-out points."
    if floor:
        said += (
            " Noise floor of the sensors (what a perfect forecast would still miss): "
            f"{floor:.2f} kn per component."
        )
    known = tables.error_of(arms, dataset, tables.OPTIMUM)
    return said + (f" {OPTIMUM.replace('`', '')}" if known else "")


def short(experiment: str, arms: dict[str, Any], dataset: str) -> Short:
    """A data set's table among the findings: RMSE per component in knots, beside its companions."""
    printed, names = companions(experiment), tables.ordered(arms, dataset)
    floor, rows = tables.floor_of(arms, dataset), []
    beside: dict[str, str] = {}
    for name in tables.leading(names):
        beside = tables.compared(arms, dataset, name, printed)
        value = tables.number(arms[name]["metrics"][tables.RMSE], interval=True)
        rows.append((label(name.split("/")[1]), value, *beside.values()))
    titles = ("model", "RMSE per component [kn]", *(TITLES.get(one, one) for one in beside))
    n = arms[names[0]]["metrics"][tables.RMSE]["n"]
    said = f"{n:,} held-out points" + (f", sensor noise {floor:.2f} kn" if floor else "")
    return Short(dataset, said, Table("", titles, tuple(rows), frozenset({0, len(titles) - 1})))


def part(experiment: str, profile: str, content: Content) -> Part:
    """What the family tells of an experiment in a profile; `content` is its metrics.json."""
    arms = content["arms"]
    datasets = datasets_of(arms)
    labels: dict[str, dict[str, str]] = {dataset: {} for dataset in datasets}
    for dataset, arm in (name.split("/") for name in arms):
        labels[dataset] |= {arm: label(arm)} if label(arm) != arm else {}
    return Part(
        family=FAMILY,
        results=results(experiment, profile, content),
        intro=(Words(SPREADS, quiet=True),),
        sections=tuple(section(experiment, profile, content, name) for name in datasets),
        labels=labels,
        start=(
            Link(
                f"The winds of {experiment}",
                page.question(experiment).partition("?")[0] + "?",
                datasets[0],
            ),
        ),
        short=tuple(short(experiment, arms, name) for name in datasets),
        opening=opening(experiment, profile, arms),
    )


def opening(experiment: str, profile: str, arms: dict[str, Any]) -> Opening | None:
    """A nowcast to open the front page with, of the data set that holds most points out; None
    where none was drawn."""
    points = {
        name.partition("/")[0]: arm["metrics"][tables.RMSE]["n"] for name, arm in arms.items()
    }
    dataset = max(points, key=lambda name: points[name])
    figure = f"{dataset}-nowcast.png"
    if not (home_of(experiment, profile) / "figures" / figure).exists():
        return None
    words = (
        "One minute that was held out. Left: the nowcast of a level, its spread as lines, made "
        "from the winds that orange dots show. Right: what aircraft then measured, and what was "
        "forecast for them."
    )
    return Opening(dataset, figure, words)


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return page.command("stages.winds.page", part, argv)


if __name__ == "__main__":
    sys.exit(main())
