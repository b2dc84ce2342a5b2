"""The experiment's tables: `python -m stages.fields.grids.tabulate EXPERIMENT PROFILE` writes
metrics.json, table.md, claims.json and the figures."""

import sys
from pathlib import Path
from typing import Any

from stages import spreads
from stages.fields.grids import claims as checks
from stages.fields.grids.printed import companions
from stages.fields.grids.tables import MAIN, NOTES, results, sentence
from stages.files import atomic_folder, read_json
from stages.tables.table import addresses, datasets_of
from stages.tables.tabulation import Content, Tabulation, evaluated, gathered, home_of

MODULE = "stages.fields.grids.tabulate"


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
        found, notes = results(content, dataset, printed)
        lines += [f"## {dataset}", "", sentence(content["about"][dataset]), ""]
        lines += found.markdown() + ([f"{notes}.", ""] if notes else [])
        lines += [addresses(experiment, profile, content["cells"], dataset, MAIN), ""]
    return "\n".join(lines)


def draw(experiment: str, profile: str, content: Content) -> None:
    """All figures."""
    from stages.fields.grids import figures  # with matplotlib, which the tables do not need

    home = home_of(experiment, profile)
    with atomic_folder(home / "figures") as folder:
        for dataset in datasets_of(content["arms"]):
            figures.draw(home / "evaluated" / dataset, folder, content, dataset)


def claims(experiment: str, profile: str) -> list[dict[str, Any]]:
    """The entries of claims.json."""
    return checks.check(home_of(experiment, profile))


def inputs(experiment: str, profile: str) -> list[Path]:
    """What is read beside the evaluations: the spread of training."""
    return spreads.files(profile)


TABULATION = Tabulation(content_of, table, claims, draw, inputs)


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return TABULATION.command(MODULE, argv)


if __name__ == "__main__":
    sys.exit(main())
