"""The result tables in README.md, between `<!-- results:PROFILE -->` and `<!-- /results -->`: `python -m stages.reporting readme`.

README.md is written by hand; only these blocks are made, from the metrics in git, so that no number in it is typed.
"""

import re
from pathlib import Path

from stages.errors import DataError
from stages.files import atomic_file, read_json
from stages.reporting.published import companions, shown
from stages.reporting.tabulate import against, floor_of, number, ordered

BLOCK = re.compile(r"<!-- results:(\w+) -->\n.*?<!-- /results -->", re.S)
EXPERIMENT = "wind_nowcast"


def block(profile: str) -> str:
    """The short table of one profile: RMSE per component in knots, against the hour average, and the printed value."""
    arms = read_json(Path("reports") / EXPERIMENT / profile / "metrics.json")["arms"]
    printed = companions(EXPERIMENT)
    lines = [f"<!-- results:{profile} -->"]
    for dataset in sorted({name.split("/")[0] for name in arms}):
        names, floor = ordered(arms, dataset), floor_of(arms, dataset)
        base = arms.get(f"{dataset}/hour_average", {}).get("metrics", {}).get("rmse_component_kn", {}).get("mean")
        n = arms[names[0]]["metrics"]["rmse_component_kn"]["n"]
        lines += [f"*{profile}, {dataset}*: {n:,} held-out points" + (f", sensor noise {floor:.2f} kn" if floor else ""), "",
                  "| model | RMSE per component [kn] | against the hour average | printed in the thesis [kn] |", "| --- | ---: | ---: | --- |"]
        for name in names:
            arm, summary = name.split("/")[1], arms[name]["metrics"]["rmse_component_kn"]
            lines.append(f"| {arm} | {number(summary, interval=True)} | {against(summary['mean'], base)} | {shown(printed.get(arm, []))} |")
        lines.append("")
    return "\n".join([*lines, "<!-- /results -->"])


def readme(path: Path = Path("README.md")) -> None:
    """Rewrite the blocks of README.md. DataError if it has none."""
    text = path.read_text(encoding="utf-8")
    if not BLOCK.search(text):
        raise DataError("README.md has no results block", where=str(path), expected="<!-- results:PROFILE --> ... <!-- /results -->")
    with atomic_file(path, "w") as stream:
        stream.write(BLOCK.sub(lambda found: block(found[1]), text))
