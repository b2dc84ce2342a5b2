"""`python -m stages.winds.example PROFILE DATASET`: what a nowcast can be tried with before
anything was trained, small enough for git.

The cell that a nowcast would ask (nowcast/choice.py), its part of the evaluation that tells its
spread, and the half hour of winds that was known at a test minute: data/PROFILE/example, laid out
so that `tradewind try` asks it like any other cell; and a record.
"""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from stages import files, records
from stages.runner import Asked, Work, command, known

MODULE = "stages.winds.example"
PAST_S = 1800.0  # of winds that are kept, up to the moment of the forecast
COLUMNS = ("ts_s", "lat_deg", "lon_deg", "alt_ft", "u_m_s", "v_m_s")
LEVEL_FT = 34_000
TOLD = ("rmse_component_kn", "coverage_90", "coverage_90_recalibrated")  # of the evaluation


def place(profile: str) -> Path:
    """The folder of a profile's example."""
    return Path("data", profile, "example")


def evaluated(cell: Path) -> Path:
    """The evaluation that a trained cell stands in."""
    return cell.parents[2] / "evaluated" / cell.parent.name / "metrics.json"


def gather(cell: Path, why: str, data: Path, final: Path) -> None:
    """Write the folder `final`, whole or not at all, from a trained cell and the profile's
    `data`."""
    dataset = cell.parent.name
    meta = files.read_json(data / "prepared" / dataset / "prepared.json")
    tests = meta["slices"]["test"]
    target_s = meta["t0_s"] + meta["slice_s"] * tests[len(tests) // 2]
    issue_s = target_s - meta["lead_s"]
    winds = (
        pl.scan_parquet(data / "decoded" / dataset / "winds.parquet")
        .select(COLUMNS)
        .filter(pl.col("ts_s").is_between(issue_s - PAST_S, issue_s, closed="left"))
        .sort("ts_s")
        .collect()
    )
    entry = files.read_json(evaluated(cell))["cells"][cell.name]
    told = {"metrics": {name: entry["metrics"][name] for name in TOLD if name in entry["metrics"]}}
    if "recalibration" in entry:
        told["recalibration"] = entry["recalibration"]
    with files.atomic_folder(final) as folder:
        home = folder / "runs" / dataset / cell.name
        for made in (home, folder / "evaluated" / dataset):
            made.mkdir(parents=True)
        shutil.copyfile(cell / "weights.safetensors", home / "weights.safetensors")
        files.write_json(
            folder / "evaluated" / dataset / "metrics.json", {"cells": {cell.name: told}}
        )
        winds.write_parquet(folder / "winds.parquet", compression="zstd", statistics=False)
        asked = {"dataset": dataset, "cell": cell.name, "why": why}
        files.write_json(folder / "example.json", {**asked, "time_s": target_s, "alt_ft": LEVEL_FT})


def plan(asked: Asked) -> Work:
    """The work of the stage. InputError for a data set that is no example of the profile's, or
    where no cell may answer."""
    from stages.winds.nowcast import choice

    profile, dataset = asked["profile"], asked["dataset"]
    known("data set", dataset, asked.profile.example, f"profiles.{profile}.example")
    cell, why = choice.best(profile, (dataset,))
    data, final = Path("data") / profile, place(profile)
    read = choice.homes(Path("reports"), profile, dataset)
    codes = [file for home in read for file in home.glob(f"runs/{dataset}/*/code.json")]
    models = {name for file in codes for name in files.read_json(file)["modules"]}

    def do() -> dict[str, Path]:
        gather(cell, why, data, final)
        return {path.as_posix(): path for path in records.files_in([final])}

    return Work(
        stage="example",
        cell=f"{profile}/{dataset}",
        record=records.location("example", profile, dataset),
        do=do,
        inputs=[
            *(data / layer / dataset for layer in ("decoded", "prepared")),
            *(home / part / dataset for home in read for part in ("runs", "evaluated")),
        ],
        code=[MODULE, *sorted(models)],
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    about = "Keep what a nowcast can be tried with."
    return command(MODULE, about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
