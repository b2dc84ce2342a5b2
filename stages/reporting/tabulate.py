"""One experiment's numbers, gathered: metrics.json (every cell and its arm over seeds), table.md, claims.json, figures.

A cell is one trained model; an arm is the same model over its seeds. An arm's interval is the mean over seeds of the
cells' 90 % slice-bootstrap bounds; `std` is the sample standard deviation over seeds (absent for one seed).
"""

import re
import statistics
from pathlib import Path
from typing import Any

from stages import records
from stages.errors import DataError
from stages.files import atomic_file, read_json, write_json
from stages.reporting.published import PUBLISHED, companions, shown

CODE = ("stages/seeds.py", *(f"stages/evaluation/{name}.py" for name in ("claims", "bootstrap", "metrics", "scores")),
        *(f"stages/reporting/{name}.py" for name in ("tabulate", "figures", "published")))
COLUMNS = (
    ("rmse_component_kn", "RMSE per component [kn]"), ("rmse_component_m_s", "[m/s]"), ("rmse_batch_mean_kn", "mean of slices [kn]"),
    ("rmse_vector_kn", "vector [kn]"), ("angle_mae_deg", "angle MAE [°]"), ("nse", "NSE"), ("crps_kn", "CRPS [kn]"),
    ("coverage_90", "90 % cover"), ("rmse_permuted_component_kn", "context shuffled [kn]"),
    ("rmse_truth_component_kn", "against truth [kn]"),
)


def arm_of(cell: str) -> str:
    """'msa-shared-5k-s0' -> 'msa-shared-5k'; baselines have one cell and the same name."""
    return re.sub(r"-s\d+$", "", cell)


def gather(home: Path) -> dict[str, Any]:
    """All cells of all data sets: {'simulated/knn': {'metrics': ..., 'by_lead': ...}}."""
    cells = {}
    for file in sorted((home / "evaluated").glob("[!.]*/metrics.json")):
        for cell, content in read_json(file)["cells"].items():
            cells[f"{file.parent.name}/{cell}"] = content
    if not cells:
        raise DataError("there is nothing to tabulate", where=str(home / "evaluated"), remedy="run `dvc repro`")
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
            summary = {"mean": statistics.fmean(r["value"] for r in rows), "unit": rows[0]["unit"], "n": rows[0]["n"]}
            if len(rows) > 1:
                summary["std"] = statistics.stdev(r["value"] for r in rows)
            for bound in ("low", "high"):
                if all(bound in r for r in rows):
                    summary[bound] = statistics.fmean(r[bound] for r in rows)
            result[arm]["metrics"][metric] = summary
    return result


def number(summary: dict[str, Any] | None, interval: bool = False) -> str:
    """'7.42 ± 0.05 [6.9, 8.0]': mean, spread over seeds where there are several, interval if asked."""
    if summary is None:
        return "–"
    text = f"{summary['mean']:.2f}" + (f" ± {summary['std']:.2f}" if "std" in summary else "")
    return text + (f" [{summary['low']:.2f}, {summary['high']:.2f}]" if interval and "low" in summary else "")


def against(mean: float, base: float | None) -> str:
    """How far a mean lies from the baseline's: '-57 %'; '–' without a baseline."""
    return f"{round(100 * (mean / base - 1)) or 0:+d} %" if base else "–"


def floor_of(arms: dict[str, Any], dataset: str) -> float | None:
    """The data set's noise floor (kn per component): what a perfect forecast would still miss of the measurements."""
    values = [arm["metrics"]["noise_floor_component_kn"]["mean"] for name, arm in arms.items()
              if name.startswith(dataset + "/") and "noise_floor_component_kn" in arm["metrics"]]
    return values[0] if values else None


def ordered(arms: dict[str, Any], dataset: str) -> list[str]:
    """The data set's arms, worst RMSE first, so that the eye ends on the best."""
    mine = [name for name in arms if name.startswith(dataset + "/")]
    return sorted(mine, key=lambda name: -arms[name]["metrics"]["rmse_component_kn"]["mean"])


def table(experiment: str, profile: str, arms: dict[str, Any]) -> str:
    """Markdown: a row an arm, the printed value and the noise floor beside ours."""
    printed, titles = companions(experiment), [title for _, title in COLUMNS]
    lines = [f"# {experiment}, profile {profile}", "",
             "± is the sample standard deviation over seeds; [ ] the 90 % bootstrap interval over runs of test slices (an hour, at most a sixth of the test). "
             "RMSE is over points and both components unless a column says otherwise; 'printed' is the document's RMSE in knots on its own "
             "data. 'Context shuffled' permutes the context's values among its points: an error that stays the same says that the model "
             "does not use where the winds were measured. day_average is not causal: it is the mean of the whole day, test minutes "
             "included; on a capture shorter than a day or an hour the averages are over what there is.", ""]
    for dataset in sorted({name.split("/")[0] for name in arms}):
        names = ordered(arms, dataset)
        n = arms[names[0]]["metrics"]["rmse_component_kn"]["n"]
        floor = floor_of(arms, dataset)
        noise = f" Noise floor of the sensors: {floor:.2f} kn per component." if floor else ""
        lines += [f"## {dataset}", "", f"{n:,} held-out points.{noise}", "",
                  "| model | seeds | " + " | ".join([*titles[:2], "printed RMSE [kn]", *titles[2:]]) + " |",
                  "| --- | --- | ---: | ---: | --- | " + " | ".join("---:" for _ in titles[2:]) + " |"]
        for name in names:
            arm = name.split("/")[1]
            values = [number(arms[name]["metrics"].get(key), key == "rmse_component_kn") for key, _ in COLUMNS]
            values.insert(2, shown(printed.get(arm, [])))
            lines.append(f"| {arm} | {arms[name]['seeds']} | " + " | ".join(values) + " |")
        lines.append("")
    return "\n".join(lines)


def tabulate(experiment: str, profile: str) -> None:
    """Write metrics.json, table.md, claims.json, figures/ and the record of one experiment and profile."""
    from stages.evaluation import claims
    from stages.reporting import figures

    home = Path("reports") / experiment / profile
    cells = gather(home)
    arms = over_seeds(cells)
    write_json(home / "metrics.json", {"experiment": experiment, "profile": profile, "cells": cells, "arms": arms})
    with atomic_file(home / "table.md", "w") as stream:
        stream.write(table(experiment, profile, arms))
    write_json(home / "claims.json", claims.check(home))
    figures.draw(home, Path("data") / profile / "prepared", arms, cells)
    outputs = [home / name for name in ("metrics.json", "table.md", "claims.json", "figures")]
    record = records.make("tabulate", f"{experiment}/{profile}", params={}, code=CODE,
                          inputs=[home / "evaluated", Path("data") / profile / "prepared", home.parent / "companions.csv", PUBLISHED],
                          outputs={path.as_posix(): path for path in records.files_in(outputs)})
    write_json(records.location("tabulate", profile, experiment=experiment), record)
