"""An experiment on sets of points, gathered: metrics.json (every cell and its arm over seeds),
table.md, claims.json, figures.

`python -m stages.fields.tabulate EXPERIMENT PROFILE`.
"""

import sys
from pathlib import Path
from typing import Any

from stages import spreads
from stages.fields import claims, costs
from stages.fields.printed import sets
from stages.fields.results import table
from stages.tables.tabulation import Content, Tabulation, evaluated, gathered, home_of


def claims_of(experiment: str, profile: str) -> list[dict[str, Any]]:
    """The entries of claims.json."""
    return claims.check(home_of(experiment, profile), experiment)


def draw(experiment: str, profile: str, content: Content) -> None:
    """All figures."""
    from stages.fields import figures, scans  # with matplotlib, which the tables do not need

    home, arms, cells = home_of(experiment, profile), content["arms"], content["cells"]
    prepared = Path("data") / profile / "prepared"

    def scanned(folder: Path) -> None:
        scans.draw(home, arms, cells, folder)

    figures.draw(home, prepared, arms, cells, sets(experiment), scanned)


def inputs(experiment: str, profile: str) -> list[Path]:
    """What is read beside the evaluations: names and units for the figures, and times."""
    prepared, times = Path("data") / profile / "prepared", home_of(experiment, profile) / costs.FILE
    described = [prepared / name / "sets.json" for name in evaluated(experiment, profile)]
    return [*described, *([times] if times.exists() else []), *spreads.files(profile)]


# Most of what the tables tell of a cell; all that words.csv and FINDINGS.md do.
KEPT = (
    *("metrics/mse", "metrics/mse_permuted", "metrics/mse_val"),
    *("metrics/rmse", "metrics/rmse_val"),
    *("probes/correction/steps", "probes/latents/effective"),
)
TABULATION = Tabulation(gathered, table, claims_of, draw, inputs, KEPT)


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return TABULATION.command("stages.fields.tabulate", argv)


if __name__ == "__main__":
    sys.exit(main())
