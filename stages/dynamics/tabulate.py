"""The family's tables: `python -m stages.dynamics.tabulate EXPERIMENT PROFILE` writes
metrics.json, table.md, claims.json and the figures."""

import sys
from pathlib import Path
from typing import Any

from stages import spreads
from stages.dynamics import claims as checks
from stages.dynamics.printed import companions
from stages.dynamics.tables import MAIN, NOTES, results, sentence
from stages.files import atomic_folder, read_json
from stages.tables.table import addresses, datasets_of
from stages.tables.tabulation import Content, Tabulation, evaluated, gathered, home_of


def content_of(experiment: str, profile: str) -> Content:
    """The content of metrics.json; `main` names the numbers of the summary."""
    home = home_of(experiment, profile)
    about = {
        name: read_json(home / "evaluated" / name / "metrics.json")["about"]
        for name in evaluated(experiment, profile)
    }
    return gathered(experiment, profile) | {"main": [MAIN], "about": about}


def table(experiment: str, profile: str, content: Content) -> str:
    """The text of table.md."""
    lines, printed = [f"# {experiment}, profile {profile}", "", NOTES, ""], companions(experiment)
    for dataset in datasets_of(content["arms"]):
        lines += [f"## {dataset}", "", sentence(content["about"][dataset]), ""]
        lines += results(content, dataset, printed).markdown()
        lines += [addresses(experiment, profile, content["cells"], dataset, MAIN), ""]
    return "\n".join(lines)


def draw(experiment: str, profile: str, content: Content) -> None:
    """All figures."""
    from stages.dynamics import figures  # with matplotlib, which the tables do not need

    home = home_of(experiment, profile)
    with atomic_folder(home / "figures") as folder:
        for dataset in datasets_of(content["arms"]):
            figures.draw(home / "evaluated" / dataset, folder, content, dataset)


def claims(experiment: str, profile: str) -> list[dict[str, Any]]:
    """The entries of claims.json."""
    return checks.check(home_of(experiment, profile))


def inputs(experiment: str, profile: str) -> list[Path]:
    """What is read beside the evaluations: searches, times, and the spread of training."""
    home, own = home_of(experiment, profile), spreads.place(experiment, profile)
    return [home / "sweeps", home / "benchmarks.json", own]


TABULATION = Tabulation(content_of, table, claims, draw, inputs)


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return TABULATION.command("stages.dynamics.tabulate", argv)


if __name__ == "__main__":
    sys.exit(main())
