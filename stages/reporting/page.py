"""reports/index.html and reports/README.md: every result beside what it must be compared with, and where it came from.

The page is one file: styles and pictures inside, no script, no network. The same inputs give the same bytes.
"""

import base64
from pathlib import Path
from typing import Any

import jinja2

from stages.files import atomic_file, read_json
from stages.reporting.lineage import lineage
from stages.reporting.published import companions, shown
from stages.reporting.tabulate import COLUMNS, against, floor_of, number, ordered

EXPERIMENTS = ("wind_nowcast",)
PROFILES = ("mini", "sample", "full")
FIGURES = (
    ("nowcast", "One test minute: the winds known at issue time, and the forecast over what was measured. "
                "Arrows point where the wind blows to; red lines are the model's own spread."),
    ("errors", "Where the error of the wind vector lies, over all test minutes."),
    ("by_lead", "Error against lead time: the same held-out targets, older and older contexts. Bands are 90 % bootstrap intervals."),
    ("by_altitude", "Error by altitude band."),
    ("by_distance", "Error by distance from the nearest measurement the model was given."),
)
BASELINE = "hour_average"


def embedded(path: Path) -> str:
    """A PNG as a data URI."""
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()


def result_rows(arms: dict[str, Any], dataset: str, printed: dict) -> list[dict[str, Any]]:
    """One row an arm, with its three companions: printed value, noise floor, trivial baseline."""
    base = arms.get(f"{dataset}/{BASELINE}", {}).get("metrics", {}).get("rmse_component_kn", {}).get("mean")
    names = ordered(arms, dataset)
    rows = []
    for name in names:
        metrics, arm = arms[name]["metrics"], name.split("/")[1]
        mean = metrics["rmse_component_kn"]["mean"]
        rows.append({"arm": arm, "seeds": arms[name]["seeds"], "best": name == names[-1], "printed": shown(printed.get(arm, [])),
                     "against": against(mean, base),
                     "cells": [number(metrics.get(key), key == "rmse_component_kn") for key, _ in COLUMNS]})
    return rows


def dataset_view(home: Path, arms: dict[str, Any], dataset: str, printed: dict) -> dict[str, Any]:
    """Everything the page shows of one data set in one profile."""
    rows = result_rows(arms, dataset, printed)
    figures = [{"title": text, "name": name, "data": embedded(path)} for name, text in FIGURES
               if (path := home / "figures" / f"{dataset}-{name}.png").exists()]
    return {"name": dataset, "rows": rows, "floor": floor_of(arms, dataset), "figures": figures,
            "n": arms[f"{dataset}/{rows[0]['arm']}"]["metrics"]["rmse_component_kn"]["n"]}


def profile_view(experiment: str, profile: str) -> dict[str, Any] | None:
    """One profile of one experiment, or None where it has not been run."""
    home = Path("reports") / experiment / profile
    if not (home / "metrics.json").exists():
        return None
    arms = read_json(home / "metrics.json")["arms"]
    printed = companions(experiment)
    datasets = [dataset_view(home, arms, dataset, printed) for dataset in sorted({name.split("/")[0] for name in arms})]
    return {"experiment": experiment, "profile": profile, "datasets": datasets, "claims": read_json(home / "claims.json"),
            "lineage": {d["name"]: lineage(experiment, profile, d["name"]) for d in datasets}}


def validations(profile: str) -> list[dict[str, Any]]:
    """The gate's results of every data set of a profile."""
    return [read_json(path) for path in sorted((Path("data") / profile / "validated").glob("*.json"))]


def markdown(views: list[dict[str, Any]]) -> str:
    """reports/README.md: the tables, for those who read in the repository."""
    lines = ["# Results", "", "Made by the `report` stage. The same tables with figures, validation and lineage: `index.html`.", ""]
    for view in views:
        table = (Path("reports") / view["experiment"] / view["profile"] / "table.md").read_text(encoding="utf-8")
        lines.append("#" + table.replace("\n## ", "\n### "))
        lines += ["### Claims of the documents", "", "| claim | data set | verdict | why |", "| --- | --- | --- | --- |"]
        lines += [f"| {c['id']} {c['text']} ({c['source']}) | {c['dataset']} | **{c['verdict']}** | {c['why']} |" for c in view["claims"]]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def report() -> None:
    """Write reports/index.html and reports/README.md from what is in git for every profile that has been run."""
    views = [view for experiment in EXPERIMENTS for profile in PROFILES if (view := profile_view(experiment, profile))]
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((Path(__file__).parent / "page.html").read_text(encoding="utf-8"))
    page = template.render(views=views, columns=[title for _, title in COLUMNS], baseline=BASELINE,
                           validations={view["profile"]: validations(view["profile"]) for view in views})
    with atomic_file("reports/index.html", "w") as stream:
        stream.write(page + "\n")
    with atomic_file("reports/README.md", "w") as stream:
        stream.write(markdown(views))
