"""An evaluation of winds agrees with itself, and whatever stands in two places is found where it
stands in one only: made in a folder, and this project's own where it is here."""

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stages.files import read_json, write_json
from stages.winds import agree

HOME = Path(__file__).parents[2]
WINDS = ("u_m_s", "v_m_s", "u_true_m_s", "v_true_m_s")
REAL = [
    (f"reports/{experiment}/mini/evaluated/simulated", "data/mini/prepared/simulated")
    for experiment in ("wind_nowcast", "wind_baselines")
]


def evaluation(root: Path) -> tuple[Path, Path]:
    """Two cells of 40 targets in four slices, with one breakdown of two bins for each kind."""
    rng, n = np.random.default_rng(0), 40
    home, prepared = root / "evaluated", root / "prepared"
    home.mkdir()
    prepared.mkdir()
    rows = pl.DataFrame({"t_s": np.arange(2.0 * n), "file": np.uint16([0] * 2 * n)}).with_columns(
        pl.Series("record", np.arange(2 * n, dtype=np.uint32)),
        *(pl.Series(name, rng.normal(size=2 * n).astype(np.float32)) for name in WINDS),
    )
    rows.write_parquet(prepared / "rows.parquet")
    entries, slices = {}, []
    for cell in ("knn", "msa"):
        table = rows[n:].with_columns(
            pl.Series("row", np.arange(n, 2 * n, dtype=np.uint32)),
            pl.Series("slice", np.repeat(np.arange(4, dtype=np.int32), 10)),
            *(pl.Series(f"{x}_pred_m_s", rng.normal(size=n).astype(np.float32)) for x in "uv"),
        )
        table.write_parquet(home / f"predictions-{cell}.parquet")
        parts = [(table[f"{x}_pred_m_s"] - table[f"{x}_m_s"]).cast(pl.Float64) ** 2 for x in "uv"]
        points = table.select("slice", se=parts[0] + parts[1], half=pl.col("t_s") % 2 < 1)
        entries[cell] = {"metrics": {}}
        for by in ("all", "altitude", "day", "distance", "lead"):
            half = pl.when(pl.col("half")).then(pl.lit("low")).otherwise(pl.lit("high"))
            bins = points.with_columns(bin=pl.lit("all") if by in ("all", "lead") else half)
            sums = bins.group_by("bin", "slice", maintain_order=True)
            sums = sums.agg(n=pl.len().cast(pl.Int32), squared_error_m2_s2=pl.col("se").sum())
            slices.append(sums.select(pl.lit(cell).alias("cell"), pl.lit(by).alias("by"), pl.all()))
            whole = sums.group_by("bin").agg(pl.col("n").sum(), pl.col(agree.SE).sum())
            groups = {
                label: {agree.RMSE: {"value": float(np.sqrt(se / (2 * count))), "n": count}}
                for label, count, se in whole.iter_rows()
            }
            if by == "all":
                entries[cell]["metrics"] = groups["all"]
            else:
                entries[cell][f"by_{by}"] = groups
    pl.concat(slices).write_parquet(home / "slices.parquet")
    write_json(home / "metrics.json", {"cells": entries})
    return home, prepared


def squared(home: Path, change: pl.Expr, which: pl.Expr) -> None:
    """Some errors of slices edited."""
    table = pl.read_parquet(home / "slices.parquet")
    new = pl.when(which).then(change).otherwise(pl.col(agree.SE)).alias(agree.SE)
    table.with_columns(new).write_parquet(home / "slices.parquet")


def metric(home: Path) -> None:
    """A cell's error made smaller in metrics.json."""
    content = read_json(home / "metrics.json")
    cell = next(iter(content["cells"].values()))
    cell["metrics"][agree.RMSE]["value"] *= 0.99
    (home / "metrics.json").write_text(json.dumps(content))


def column(name: str, by: float):
    """A number of a cell's predictions edited."""

    def work(home: Path) -> None:
        file = home / "predictions-knn.parquet"
        table = pl.read_parquet(file)
        first = pl.int_range(pl.len()) == 0
        new = pl.when(first).then(pl.col(name) + by).otherwise(pl.col(name)).cast(pl.Float32)
        table.with_columns(new.alias(name)).write_parquet(file)

    return work


ALL, DAY = pl.col("by") == "all", pl.col("by") == "day"
EDITS = {
    "errors of slices": (lambda home: squared(home, pl.col(agree.SE) * 0.9, ALL), "slices.parquet"),
    "errors of a breakdown": (
        lambda home: squared(home, pl.col(agree.SE).reverse().over("cell", "bin"), DAY),
        "slices.parquet",
    ),
    "a metric": (metric, "slices.parquet"),
    "a prediction": (column("u_pred_m_s", 9.0), "predictions-knn.parquet"),
    "what was measured": (column("v_m_s", 9.0), "predictions-knn.parquet"),
    "the truth": (column("u_true_m_s", 9.0), "predictions-knn.parquet"),
}


def test_what_was_written_at_once_agrees(tmp_path):
    assert list(agree.agree(*evaluation(tmp_path))) == []


@pytest.mark.parametrize("name", EDITS)
def test_what_was_edited_in_one_place_is_found_by_its_file(tmp_path, name):
    home, prepared = evaluation(tmp_path)
    edit, file = EDITS[name]
    edit(home)
    found = list(agree.agree(home, prepared))
    assert {Path(path).name for path, _ in found} >= {file}, found


@pytest.mark.parametrize("place, prepared", REAL)
def test_the_projects_own_evaluations_agree_and_edited_ones_do_not(place, prepared, tmp_path):
    if not (HOME / place / "slices.parquet").is_file():
        pytest.skip(f"{place} is not on disk: `make repro` makes it")
    assert list(agree.agree(HOME / place, HOME / prepared)) == []
    home = Path(shutil.copytree(HOME / place, tmp_path / "home"))
    squared(home, pl.col(agree.SE) * (1 - 1e-6), pl.col("by") == "lead")
    assert any("slices.parquet" in path for path, _ in agree.agree(home, HOME / prepared))
