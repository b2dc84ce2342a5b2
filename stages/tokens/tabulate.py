"""The family's tables: `python -m stages.tokens.tabulate EXPERIMENT PROFILE` writes metrics.json,
table.md, claims.json and the figures."""

import sys
from pathlib import Path
from typing import Any

from stages import spreads
from stages.files import atomic_folder
from stages.tables import ranked
from stages.tables.table import addresses, datasets_of
from stages.tables.tabulation import Content, Tabulation, home_of
from stages.tokens import claims as checks
from stages.tokens import trials
from stages.tokens.printed import companions
from stages.tokens.tables import MAIN, NOTES, costs, edh, results, sentence, spent, tuning


def content_of(experiment: str, profile: str) -> Content:
    """The content of metrics.json; `main` names the numbers of the summary."""
    found = ranked.content_of(experiment, profile, list(MAIN.values()))
    for one in found["about"].values():
        for name in ("costs", "crossings"):
            if counted := one.pop(name, None):
                found[name] = counted
    searched = trials.searched(home_of(experiment, profile))
    found["tuning"] = {
        dataset: {model: trials.search_entry(rows) for model, rows in mine.items()}
        for dataset, mine in searched.items()
    }
    found["edh"] = {dataset: edh(found, dataset) for dataset in found["tuning"]}
    return found


def table(experiment: str, profile: str, content: Content) -> str:
    """The text of table.md."""
    lines, printed = [f"# {experiment}, profile {profile}", "", NOTES, ""], companions(experiment)
    for dataset in datasets_of(content["arms"]):
        about = content["about"][dataset]
        lines += [f"## {dataset}", "", sentence(about), ""]
        lines += results(content, dataset, printed).markdown()
        metric = MAIN[about["task"]]
        lines += [addresses(experiment, profile, content["cells"], dataset, metric), ""]
    if "costs" in content:
        lines += [
            "## Cost of a layer, millions of FLOPs an example",
            "",
            *costs(content).markdown(),
        ]
    for dataset in content["tuning"]:
        lines += [f"## Tuning on {dataset}", "", *tuning(content, dataset).markdown(), ""]
        lines += [f"Cost E · D · H on {dataset}:", "", *spent(content, dataset).markdown()]
    return "\n".join(lines)


def draw(experiment: str, profile: str, content: Content) -> None:
    """All figures."""
    from stages.tokens import figures  # with matplotlib, which the tables do not need

    home = home_of(experiment, profile)
    with atomic_folder(home / "figures") as folder:
        figures.draw(home / "evaluated", folder, content)


def claims(experiment: str, profile: str) -> list[dict[str, Any]]:
    """The entries of claims.json."""
    return checks.check(home_of(experiment, profile))


def inputs(experiment: str, profile: str) -> list[Path]:
    """What is read beside the evaluations: searches and the spread of training, if there are."""
    places = home_of(experiment, profile) / "sweeps", spreads.place(experiment, profile)
    return [place for place in places if place.exists()]


TABULATION = Tabulation(content_of, table, claims, draw, inputs)


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return TABULATION.command("stages.tokens.tabulate", argv)


if __name__ == "__main__":
    sys.exit(main())
