"""One experiment's forecasts, gathered: metrics.json (every cell and its arm over seeds), table.md,
claims.json, figures.

A cell is one trained model; an arm is the same model over its seeds. An arm's interval is the mean
over seeds of the cells' 90 % slice-bootstrap bounds; `std` is the sample standard deviation over
seeds (absent for one seed).
"""

import statistics
from pathlib import Path
from typing import Any

from stages import records
from stages.errors import DataError
from stages.files import atomic_file, read_json, write_json
from stages.tables.published import PUBLISHED, companions, epochs, weather
from stages.winds import tables
from stages.winds.tables import arm_of

CODE = (
    "stages/seeds.py",
    "stages/spreads.py",
    *(f"stages/evaluation/{name}.py" for name in ("claims", "bootstrap", "metrics", "scores")),
    *(
        f"stages/page/{name}.py"
        for name in ("tabulate", "tables", "figures", "sweep_figures", "published")
    ),
)
LEGEND = (
    "± is the sample standard deviation over seeds; [ ] the 90 % bootstrap interval over runs of "
    "test slices (an hour, at most a sixth of the test). RMSE is over points and both components "
    "unless a column says otherwise; 'printed' is the document's RMSE in knots on its own data. "
    "'Context shuffled' permutes the context's values among its points: an error that stays the "
    "same says that the model does not use where the winds were measured. day_average is not "
    "causal: it is the mean of the whole day, test minutes included; on a capture shorter than a "
    "day or an hour the averages are over what there is."
)
OPTIMUM = (
    "The wind of this set is drawn from a known Gaussian process, so `optimum`, the exact process, "
    "is the best forecast there is in mean square; 'of the optimum' is its RMSE over the model's."
)


def gather(home: Path) -> dict[str, Any]:
    """All cells of all data sets: {'simulated/knn': {'metrics': ..., 'by_lead': ...}}."""
    cells = {}
    for file in sorted((home / "evaluated").glob("[!.]*/metrics.json")):
        for cell, content in read_json(file)["cells"].items():
            cells[f"{file.parent.name}/{cell}"] = content
    if not cells:
        raise DataError(
            "there is nothing to tabulate", where=str(home / "evaluated"), remedy="run `dvc repro`"
        )
    return cells


def over_seeds(cells: dict[str, Any]) -> dict[str, Any]:
    """Each arm's metrics over its seeds."""
    arms: dict[str, dict[str, Any]] = {}
    for name, content in cells.items():
        arms.setdefault(arm_of(name), {})[name] = content["metrics"]
    result = {}
    for arm, members in sorted(arms.items()):
        shared = set.intersection(*(set(metrics) for metrics in members.values()))
        result[arm] = {"seeds": len(members), "metrics": {}}
        for metric in sorted(shared):
            rows = [metrics[metric] for metrics in members.values()]
            summary = {
                "mean": statistics.fmean(r["value"] for r in rows),
                "unit": rows[0]["unit"],
                "n": rows[0]["n"],
            }
            if len(rows) > 1:
                summary["std"] = statistics.stdev(r["value"] for r in rows)
            for bound in ("low", "high"):
                if all(bound in r for r in rows):
                    summary[bound] = statistics.fmean(r[bound] for r in rows)
            result[arm]["metrics"][metric] = summary
    return result


def addresses(experiment: str, profile: str, cells: dict[str, Any], dataset: str) -> str:
    """How to audit a number of a data set: its cells' names whole, as `tradewind audit` wants
    them."""
    mine = ", ".join(
        f"`{name.partition('/')[2]}`" for name in sorted(cells) if name.startswith(dataset + "/")
    )
    return (
        f"Audit a number: `tradewind audit {experiment}/{profile}/{dataset}/CELL/{tables.RMSE}`, "
        f"with CELL one of {mine}."
    )


def table(experiment: str, profile: str, arms: dict[str, Any], cells: dict[str, Any]) -> str:
    """Markdown: a row an arm, the printed value, the noise floor, the baseline and the optimum
    beside ours; then days, leads and sweeps."""
    printed, durations = (
        companions(experiment),
        {"printed epoch [s]": {arm: f"{s:,.0f}" for arm, s in epochs(experiment).items()}},
    )
    lines = [f"# {experiment}, profile {profile}", "", LEGEND, ""]
    for dataset in tables.datasets_of(arms):
        names, floor = tables.ordered(arms, dataset), tables.floor_of(arms, dataset)
        n = arms[names[0]]["metrics"][tables.RMSE]["n"]
        noise = f" Noise floor of the sensors: {floor:.2f} kn per component." if floor else ""
        lines += [f"## {dataset}", "", f"{n:,} held-out points.{noise}", ""]
        lines += [OPTIMUM, ""] if tables.error_of(arms, dataset, tables.OPTIMUM) else []
        lines += tables.results(arms, dataset, printed).markdown()
        folder = Path("reports", experiment, profile, "sweeps", dataset)
        for title, found in (
            (
                (
                    "By day, beside the document's three days (thesis, table 1.2); epochs are "
                    "printed for one day of a million points"
                ),
                tables.by_day(arms, cells, dataset, printed, durations),
            ),
            ("Kernel averaging by lead (thesis, figure 3.3)", tables.by_lead(arms, cells, dataset)),
            (
                (
                    "By the weather service's metrics, the printed rows (about 100,000 parameters; "
                    "thesis, table 3.3) below"
                ),
                tables.weather(arms, dataset, weather()),
            ),
            ("What the sweeps chose on validation slices", tables.sweeps(folder, dataset)),
        ):
            lines += [f"{title}:", "", *found.markdown()] if found else []
        lines += [addresses(experiment, profile, cells, dataset), ""]
    return "\n".join(lines)


def tabulate(experiment: str, profile: str) -> None:
    """Write metrics.json, table.md, claims.json, figures/ and the record of one experiment and
    profile."""
    from stages import spreads
    from stages.winds import claims, figures

    home = Path("reports") / experiment / profile
    cells = gather(home)
    arms = over_seeds(cells)
    write_json(
        home / "metrics.json",
        {"experiment": experiment, "profile": profile, "cells": cells, "arms": arms},
    )
    with atomic_file(home / "table.md", "w") as stream:
        stream.write(table(experiment, profile, arms, cells))
    write_json(home / "claims.json", claims.check(home, experiment))
    figures.draw(home, Path("data") / profile / "prepared", arms, cells)
    outputs = [home / name for name in ("metrics.json", "table.md", "claims.json", "figures")]
    swept = [home / "sweeps"] if (home / "sweeps").exists() else []
    record = records.make(
        "tabulate",
        f"{experiment}/{profile}",
        params={},
        code=CODE,
        inputs=[
            home / "evaluated",
            *swept,
            Path("data") / profile / "prepared",
            home.parent / "companions.csv",
            PUBLISHED,
            *spreads.files(profile),
        ],
        outputs={path.as_posix(): path for path in records.files_in(outputs)},
    )
    write_json(records.location("tabulate", profile, experiment=experiment), record)
