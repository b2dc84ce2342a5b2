"""The tables of neural processes on winds: `python -m stages.winds.laws.tabulate EXPERIMENT
PROFILE` writes metrics.json, table.md, claims.json and the figures."""

import sys
from pathlib import Path
from typing import Any

from stages.tables.table import addresses, datasets_of
from stages.tables.tabulation import Content, Tabulation, evaluated, gathered
from stages.winds import tables, tabulate
from stages.winds.laws.layout import DIVERGENCE, EXACT, RATIO, SHEAR, SLOPE, TRUE
from stages.winds.laws.tables import FLOWS, NATS, NOTES, flows, laws
from stages.winds.printed import companions

MODULE = "stages.winds.laws.tabulate"


def content_of(experiment: str, profile: str) -> Content:
    """metrics.json, with what the summary shows."""
    return gathered(experiment, profile) | {"main": [tables.RMSE, NATS, "crps_kn"]}


def table(experiment: str, profile: str, content: Content) -> str:
    """Markdown: of each data set the errors beside the printed ones, then the laws."""
    arms, printed = content["arms"], companions(experiment)
    lines = [f"# {experiment}, profile {profile}", "", tabulate.LEGEND, "", NOTES, ""]
    for dataset in datasets_of(arms):
        names, floor = tables.ordered(arms, dataset), tables.floor_of(arms, dataset)
        n = arms[names[0]]["metrics"][tables.RMSE]["n"]
        noise = f" Noise floor of the sensors: {floor:.2f} kn per component." if floor else ""
        noise += tables.without_intervals(content["cells"], dataset)
        lines += [f"## {dataset}", "", f"{n:,} held-out points.{noise}", ""]
        lines += tables.results(arms, dataset, printed).markdown()
        lines += ["As laws:", "", *laws(content, dataset).markdown()]
        lines += ["How they flow:", "", FLOWS, "", *flows(content, dataset).markdown()]
        lines += [addresses(experiment, profile, content["cells"], dataset, tables.RMSE), ""]
    return "\n".join(lines)


def claims_of(experiment: str, profile: str) -> list[dict[str, Any]]:
    """None: no document claims anything of neural processes on winds."""
    return []


def inputs(experiment: str, profile: str) -> list[Path]:
    """What is read beside the evaluations: the winds that the figures show."""
    return [Path("data", profile, "prepared", name) for name in evaluated(experiment, profile)]


FLOWING = (DIVERGENCE, SHEAR, RATIO, SLOPE)
KEPT = tuple(f"metrics/{name}" for name in (*FLOWING, *(name + TRUE for name in FLOWING), EXACT))
TABULATION = Tabulation(content_of, table, claims_of, tabulate.draw, inputs, (*tables.KEPT, *KEPT))


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return TABULATION.command(MODULE, argv)


if __name__ == "__main__":
    sys.exit(main())
