"""The toys' tables: `python -m stages.toys.tabulate EXPERIMENT PROFILE` writes metrics.json,
table.md, claims.json and the figure."""

import sys
from pathlib import Path
from typing import Any

from stages.files import atomic_folder
from stages.tables.table import Table, addresses, cells_of, datasets_of, number
from stages.tables.tabulation import Content, Tabulation, gathered, home_of

MAIN = "surprise"


def content_of(experiment: str, profile: str) -> Content:
    """The content of metrics.json; `main` names the numbers of the summary."""
    return gathered(experiment, profile) | {"main": [MAIN]}


def results(content: Content, dataset: str) -> Table:
    """A row an arm: its surprise with the 90 % interval, and the gap to the coins' own chances."""
    arms = {
        name: content["arms"][f"{dataset}/{name}"]["metrics"] for name in arms_of(content, dataset)
    }
    rows = [(arm, number(told[MAIN], True), number(told["gap"])) for arm, told in arms.items()]
    best = min(range(len(rows)), key=lambda place: arms[rows[place][0]][MAIN]["mean"])
    return Table(dataset, ("model", "surprise [nats a toss]", "gap"), tuple(rows), best=best)


def arms_of(content: Content, dataset: str) -> list[str]:
    """The arms of a set, by name."""
    return cells_of(content["arms"], dataset)


def table(experiment: str, profile: str, content: Content) -> str:
    """The text of table.md."""
    lines = [f"# {experiment}, profile {profile}", ""]
    for dataset in datasets_of(content["arms"]):
        lines += [f"## {dataset}", "", *results(content, dataset).markdown()]
        lines += [addresses(experiment, profile, content["cells"], dataset, MAIN), ""]
    return "\n".join(lines)


def draw(experiment: str, profile: str, content: Content) -> None:
    """A figure a set: each model's surprise."""
    from stages.figures.drawing import plt, save  # with matplotlib, which the tables do not need

    with atomic_folder(home_of(experiment, profile) / "figures") as folder:
        for dataset in datasets_of(content["arms"]):
            names = arms_of(content, dataset)
            figure, panel = plt.subplots(figsize=(4, 2))
            told = [content["arms"][f"{dataset}/{name}"]["metrics"][MAIN]["mean"] for name in names]
            panel.barh(names, told)
            panel.set_xlabel("surprise, nats a toss")
            save(figure, folder / f"{dataset}.png")


def claims(experiment: str, profile: str) -> list[dict[str, Any]]:
    """No document claims anything of toys."""
    return []


def inputs(experiment: str, profile: str) -> list[Path]:
    """Nothing is read beside the evaluations."""
    return []


TABULATION = Tabulation(content_of, table, claims, draw, inputs)


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return TABULATION.command("stages.toys.tabulate", argv)


if __name__ == "__main__":
    sys.exit(main())
