"""`python -m stages.winds.agree EXPERIMENT PROFILE DATASET --out FILE`: whether the files of an
evaluation of winds say one thing.

Each error stands three times: in metrics.json, as squared errors by slice and group (which claims
are derived from), and in the predictions beside what was measured, which is a prepared row's. What
contradicts is written to FILE as a JSON list of [file, text]. The audit runs this; no stage does.
Units: m/s; squared errors m²/s², over both components.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from stages.errors import reported
from stages.files import read_json, write_json

RMSE, SE = "rmse_component_m_s", "squared_error_m2_s2"
GROUPS = ("altitude", "day", "distance")  # each holds all points once
SUMS = 1e-9  # relative: the same numbers, added in another order
ROUNDED = 1e-5  # relative: predictions are kept in float32
MEASURED = ("t_s", "file", "record", "u_m_s", "v_m_s", "u_true_m_s", "v_true_m_s")
Found = Iterator[tuple[str, str]]


def near(one: float, other: float, within: float) -> bool:
    """Whether two numbers are the same but for rounding."""
    return math.isclose(one, other, rel_tol=within, abs_tol=1e-9)


def metrics(home: Path, entries: dict[str, Any], slices: pl.DataFrame) -> Found:
    """Every error and count of metrics.json is that of its slices."""
    where = (home / "slices.parquet").as_posix()
    sums = slices.group_by("cell", "by", "bin").agg(pl.col("n").sum(), pl.col(SE).sum())
    known = {(cell, by, label): (n, se) for cell, by, label, n, se in sums.iter_rows()}
    told = {
        (cell, by, label): values.get(RMSE)
        for cell, entry in entries.items()
        for by, groups in groups_of(entry).items()
        for label, values in groups.items()
    }
    for key in sorted(known.keys() ^ told.keys()):
        yield where, f"{' '.join(key)} stands in {'it' if key in known else 'metrics.json'} alone"
    for key in sorted(known.keys() & told.keys()):
        (n, squared), one = known[key], told[key]
        if one is not None and not near(math.sqrt(squared / (2 * n)), one["value"], SUMS):
            said = f"{math.sqrt(squared / (2 * n))!r}, metrics.json {one['value']!r}"
            yield where, f"its errors of {' '.join(key)} give {said}"


def groups_of(entry: dict[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """Breakdown -> label -> its metrics, the whole among them."""
    found = {"all": {"all": entry["metrics"]}}
    return found | {by: entry.get(f"by_{by}", {}) for by in (*GROUPS, "lead")}


def breakdowns(home: Path, slices: pl.DataFrame) -> Found:
    """In each slice the groups of a breakdown hold all of its points and errors."""
    where = (home / "slices.parquet").as_posix()
    key = ["cell", "slice"]
    whole = slices.filter(pl.col("by") == "all").select(*key, "n", SE)
    for by in GROUPS:
        groups = slices.filter(pl.col("by") == by).group_by(key)
        parts = groups.agg(pl.col("n").sum().alias("of"), pl.col(SE).sum().alias("parts"))
        both = whole.join(parts, on=key, how="full", coalesce=True).sort(key)
        for cell, number, n, squared, of, added in both.iter_rows():
            if n != of or not near(squared, added, SUMS):
                yield where, f"slice {number} of {cell} has other errors by {by} than in all"
                break


def predictions(home: Path, cell: str, slices: pl.DataFrame, rows: pl.DataFrame) -> Found:
    """A cell's predictions give the errors of its slices, against the prepared rows."""
    file = home / f"predictions-{cell}.parquet"
    if not file.is_file():
        yield file.as_posix(), "it is not here"
        return
    table = pl.read_parquet(file)
    given = rows[table["row"]].select(MEASURED)
    if not given.equals(table.select(MEASURED), null_equal=True):
        yield file.as_posix(), "what it says was measured is not what the prepared rows say"
    east, north = (
        (table[f"{name}_pred_m_s"].cast(pl.Float64) - table[f"{name}_m_s"].cast(pl.Float64)) ** 2
        for name in "uv"
    )
    found = table.select("slice").with_columns(pl.Series("se", east + north)).group_by("slice")
    sums = found.agg(pl.len().alias("of"), pl.col("se").sum())
    mine = slices.filter((pl.col("cell") == cell) & (pl.col("by") == "all"))
    both = mine.select("slice", "n", SE).join(sums, on="slice", how="full", coalesce=True)
    for number, n, told, of, se in both.sort("slice").iter_rows():
        if n != of or not near(told, se, ROUNDED):
            yield file.as_posix(), f"its errors of slice {number} are not those of slices.parquet"
            return


def agree(home: Path, prepared: Path) -> Found:
    """What in the folder of an evaluation contradicts."""
    entries = read_json(home / "metrics.json")["cells"]
    slices = pl.read_parquet(home / "slices.parquet")
    rows = pl.read_parquet(prepared / "rows.parquet", columns=list(MEASURED))
    yield from metrics(home, entries, slices)
    yield from breakdowns(home, slices)
    for cell in sorted(entries):
        yield from predictions(home, cell, slices, rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    parser = argparse.ArgumentParser(prog="python -m stages.winds.agree", description=__doc__)
    for name in ("experiment", "profile", "dataset"):
        parser.add_argument(name)
    parser.add_argument("--out", type=Path, help="where the JSON goes; else it is printed")
    asked = parser.parse_args(argv)

    def work() -> None:
        home = Path("reports", asked.experiment, asked.profile, "evaluated", asked.dataset)
        found = list(agree(home, Path("data", asked.profile, "prepared", asked.dataset)))
        write_json(asked.out, found) if asked.out else print(json.dumps(found))

    return reported(work)


if __name__ == "__main__":
    sys.exit(main())
