"""The result tables in README.md, between `<!-- results:PROFILE -->` and `<!-- /results -->`:
`python -m stages.page readme`.

README.md is written by hand; only these blocks are made, from the metrics in git, so that no number
in it is typed. A block holds a table a data set of each experiment with forecasts that was run in
the profile; the caption of those after the first names its experiment.
"""

import re
from pathlib import Path

from stages.errors import DataError
from stages.files import atomic_file, read_json
from stages.tables.published import companions
from stages.winds import tables

BLOCK = re.compile(r"<!-- results:(\w+) -->\n.*?<!-- /results -->", re.S)
EXPERIMENTS = ("wind_nowcast", "wind_baselines")
TITLES = {
    "vs hour_average": "against the hour average",
    "printed RMSE [kn]": "printed in the thesis [kn]",
}


def short(experiment: str, profile: str) -> list[str]:
    """The lines of one experiment's tables: RMSE per component in knots, beside its companions."""
    arms = read_json(Path("reports") / experiment / profile / "metrics.json")["arms"]
    printed, lines = companions(experiment), []
    for dataset in tables.datasets_of(arms):
        names, floor = tables.ordered(arms, dataset), tables.floor_of(arms, dataset)
        n = arms[names[0]]["metrics"][tables.RMSE]["n"]
        which = "" if experiment == EXPERIMENTS[0] else f", {experiment}"
        lines += [
            f"*{profile}, {dataset}{which}*: {n:,} held-out points"
            + (f", sensor noise {floor:.2f} kn" if floor else ""),
            "",
        ]
        rows = []
        for name in tables.leading(names):
            beside = tables.compared(arms, dataset, name, printed)
            value = tables.number(arms[name]["metrics"][tables.RMSE], interval=True)
            rows.append((tables.label(name.split("/")[1]), value, *beside.values()))
        titles = (
            "model",
            "RMSE per component [kn]",
            *(TITLES.get(title, title) for title in beside),
        )
        lines += tables.Table("", titles, tuple(rows), frozenset({0, len(titles) - 1})).markdown()
    return lines


def block(profile: str) -> str:
    """All tables of one profile. DataError where its first experiment was not run."""
    first, *others = EXPERIMENTS
    found = [
        name for name in others if (Path("reports") / name / profile / "metrics.json").exists()
    ]
    lines = [line for experiment in (first, *found) for line in short(experiment, profile)]
    return "\n".join([f"<!-- results:{profile} -->", *lines, "<!-- /results -->"])


def readme(path: Path = Path("README.md")) -> None:
    """Rewrite the blocks of README.md. DataError if it has none."""
    text = path.read_text(encoding="utf-8")
    if not BLOCK.search(text):
        raise DataError(
            "README.md has no results block",
            where=str(path),
            expected="<!-- results:PROFILE --> ... <!-- /results -->",
        )
    with atomic_file(path, "w") as stream:
        stream.write(BLOCK.sub(lambda found: block(found[1]), text))
