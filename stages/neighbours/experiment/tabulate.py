"""The neighbour search, gathered: metrics.json (every cell and arm, and the printed bound's
failures), table.md, claims.json, figures.

`python -m stages.neighbours.experiment.tabulate EXPERIMENT PROFILE`.
"""

import sys
from pathlib import Path
from typing import Any

from stages.files import atomic_folder
from stages.neighbours.experiment import claims
from stages.neighbours.experiment.results import BENCHMARKS, found_in, read_descriptions, table
from stages.tables.tabulation import Content, Tabulation, gathered, home_of


def content_of(experiment: str, profile: str) -> Content:
    """The content of metrics.json: cells, arms, sets, and the bound where it was counted."""
    content = gathered(experiment, profile)
    sets, bound = read_descriptions(home_of(experiment, profile))
    return content | {"sets": sets} | ({"bound": bound} if bound else {})


def claims_of(experiment: str, profile: str) -> list[dict[str, Any]]:
    """The entries of claims.json."""
    return claims.check(home_of(experiment, profile))


def draw(experiment: str, profile: str, content: Content) -> None:
    """All figures."""
    from stages.neighbours.experiment import figures  # with matplotlib

    found, bound = found_in(experiment, profile, content), content.get("bound")
    with atomic_folder(home_of(experiment, profile) / "figures") as folder:
        for name in found.sets():
            figures.surface(found, name, folder / f"{name}-surface.png")
        figures.ratios(found.times, folder / "speed.png")
        if bound:
            figures.bound(bound["counterexample"], folder / "bound.png")


def inputs(experiment: str, profile: str) -> list[Path]:
    """What is read beside the evaluations: times, where they were measured."""
    times = home_of(experiment, profile) / BENCHMARKS
    return [times] if times.exists() else []


KEPT = ("metrics/comparisons_share", "metrics/seen", "metrics/wrong_rows")
TABULATION = Tabulation(content_of, table, claims_of, draw, inputs, KEPT)


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return TABULATION.command("stages.neighbours.experiment.tabulate", argv)


if __name__ == "__main__":
    sys.exit(main())
