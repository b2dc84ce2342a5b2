"""An experiment on sequences in any order, gathered: metrics.json (every cell and its arm over
seeds), table.md, claims.json, figures.

`python -m stages.sequences.tabulate EXPERIMENT PROFILE`.
"""

import sys
from pathlib import Path
from typing import Any

from stages import spreads
from stages.sequences import claims
from stages.sequences.reporting import texts
from stages.sequences.reporting.results import read_descriptions, table
from stages.tables.tabulation import Content, Tabulation, evaluated, gathered, home_of


def content_of(experiment: str, profile: str) -> Content:
    """The content of metrics.json: cells, arms, what each data set is, what the models write."""
    home, content = home_of(experiment, profile), gathered(experiment, profile)
    about = read_descriptions(home)
    prepared = Path("data") / profile / "prepared"
    told = texts.gathered(home, prepared, content["cells"], about)
    return content | {"about": about, "texts": told}


def claims_of(experiment: str, profile: str) -> list[dict[str, Any]]:
    """The entries of claims.json."""
    return claims.check(home_of(experiment, profile))


def draw(experiment: str, profile: str, content: Content) -> None:
    """All figures."""
    from stages.sequences.reporting import gallery  # with matplotlib

    gallery.draw(home_of(experiment, profile), Path("data") / profile / "prepared", content)


def inputs(experiment: str, profile: str) -> list[Path]:
    """What is read beside the evaluations: sizes and units, for the figures."""
    prepared = Path("data") / profile / "prepared"
    laws = [prepared / name / "sequences.json" for name in evaluated(experiment, profile)]
    return [*laws, *spreads.files(profile)]


# What metrics.json keeps of a cell, with what words.csv tells of samplers; what was measured on
# validation sequences stands in breakdowns.json.
LOSSES = ("nats", "perplexity", "perplexity_per_word", "bits_per_character")
KEPT = (
    "metrics/nats_bound",
    *(f"metrics/{name}{order}" for name in LOSSES for order in ("", "_left_to_right")),
    *(f"samplers/*/prompt/metrics/{name}" for name in ("correct", "passes")),
)
TABULATION = Tabulation(content_of, table, claims_of, draw, inputs, KEPT)


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return TABULATION.command("stages.sequences.tabulate", argv)


if __name__ == "__main__":
    sys.exit(main())
