"""Whether what was prepared and evaluated of winds says one thing (stages/audit/agreeing.py).

Prepared rows are decoded ones, by file and record, in the slices and splits of their times; no row
has the values of one in another split. Each error stands three times: in metrics.json, as squared
errors by slice and group (which claims are derived from), and in the predictions beside what was
measured, which is a prepared row's. No model is better than the known optimum. No stage runs this.
Units: m/s; squared errors m²/s², over both components.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stages.audit import agreeing
from stages.files import read_json
from stages.splits import SPLITS
from stages.winds import breakdown
from stages.winds import metrics as measures

RMSE, SE = "rmse_component_m_s", "squared_error_m2_s2"
GROUPS = ("altitude", "day", "distance")  # each holds all points once
CLOCK = 1e-3  # s: float64 tells a time of this century to a millionth
SUMS = 1e-9  # relative: the same numbers, added in another order
ROUNDED = 1e-5  # relative: predictions are kept in float32
SEEN = 1e-4  # relative: of what is made of these, angles and shares among it
UNSEEN = ("along", "hull", "rmse_permuted")  # rests on more than predictions tell
VALUES = ("lat_deg", "lon_deg", "alt_ft", "u_m_s", "v_m_s", "u_true_m_s", "v_true_m_s")
OPTIMUM = "optimum"  # the cell that knows the law of a simulated wind
NEAR = 0.9  # of its error, where a test is too short for its interval: less is impossible
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


def scores(file: Path, entry: dict[str, Any], y_std: np.ndarray) -> Found:
    """A cell's predictions give every metric of metrics.json that they can, of all points, of each
    band of altitudes and of each day."""
    where, table = file.as_posix(), pl.read_parquet(file)
    points = points_of(table, y_std)
    days = (table["t_s"].to_numpy() * 1e6).astype("datetime64[us]").astype("datetime64[D]")
    bands = breakdown.altitude_bands(table["alt_ft"].to_numpy())
    parts = [("metrics", entry["metrics"], np.full(len(table), True))]
    for by, labels in (("altitude", bands), ("day", days.astype(str))):
        told = entry[f"by_{by}"]
        parts += [(f"by_{by} {one}", values, labels == one) for one, values in told.items()]
    for part, told, chosen in parts:
        _, sums = measures.by_slice(measures.columns(points.take(chosen)), points.slice[chosen])
        total = {name: column.sum() for name, column in sums.items()}
        for name, (_, count, formula) in measures.METRICS.items():
            if name not in told or name.startswith(UNSEEN) or count not in total:
                continue
            with np.errstate(divide="ignore", invalid="ignore"):
                value = float(formula(total))
            if told[name]["n"] != int(total[count]) or not near(value, told[name]["value"], SEEN):
                text = f"it gives {name} {value!r} ({part})"
                yield where, f"{text}, metrics.json {told[name]['value']!r}"
                return


def points_of(table: pl.DataFrame, y_std: np.ndarray) -> measures.Points:
    """A table of predictions as the points that metrics are of."""

    def vectors(name: str) -> np.ndarray:
        columns = [f"{axis}{name}_m_s" for axis in "uv"]
        return table.select(pl.col(columns).cast(pl.Float64).fill_null(float("nan"))).to_numpy()

    scale, truth = vectors("_scale"), vectors("_true")
    return measures.Points(
        table["slice"].to_numpy(),
        vectors("_pred"),
        vectors(""),
        scale if np.isfinite(scale).any() else None,
        truth if np.isfinite(truth).any() else None,
        y_std=y_std,
    )


def agree(home: Path, prepared: Path) -> Found:
    """What in the folder of an evaluation contradicts its other files, or the prepared rows."""
    entries = read_json(home / "metrics.json")["cells"]
    slices = pl.read_parquet(home / "slices.parquet")
    rows = pl.read_parquet(prepared / "rows.parquet", columns=list(MEASURED))
    yield from metrics(home, entries, slices)
    yield from breakdowns(home, slices)
    for cell in sorted(entries):
        yield from predictions(home, cell, slices, rows)


def evaluated(home: Path) -> Found:
    """What in the folder of an evaluation contradicts."""
    entries = read_json(home / "metrics.json")["cells"]
    rows = Path("data", home.parts[2], "prepared", home.name)
    yield from agree(home, rows)
    y_std = np.asarray(read_json(rows / "prepared.json")["scaler"]["y_std"], np.float64)
    for cell, entry in sorted(entries.items()):
        yield from scores(home / f"predictions-{cell}.parquet", entry, y_std)
    yield from agreeing.common(home)
    if OPTIMUM in entries:
        best = entries[OPTIMUM]["metrics"][RMSE]
        what = "the optimum, which knows the wind's law"
        low = best.get("low", NEAR * best["value"])
        yield from agreeing.impossible(home, RMSE, what, best["value"], low)


def prepared(home: Path) -> Found:
    """What in prepared rows contradicts the decoded winds, their own times, or each other."""
    where, meta = (home / "rows.parquet").as_posix(), read_json(home / "prepared.json")
    rows = pl.read_parquet(where)
    yield from decoded(where, rows, meta["files"], home)
    starts = meta["t0_s"] + meta["slice_s"] * rows["slice"].cast(pl.Float64)
    into = rows["t_s"] - starts
    if not ((into > -CLOCK) & (into < meta["slice_s"] + CLOCK)).all():
        yield where, "a row stands in a slice that its time is not in"
    for k, name in enumerate(SPLITS):
        mine = rows.filter(pl.col("split") == k)
        if not set(mine["slice"].unique()) <= set(meta["slices"][name]):
            yield where, f"a row of {name} stands in a slice that is none of it"
        if len(mine) != meta["rows"][name]:
            text = f"{len(mine):,} rows of {name}, prepared.json says {meta['rows'][name]:,}"
            yield where, text
    split = rows["split"].to_numpy()
    values = rows.select(VALUES[:5]).to_numpy()
    used = split >= 0
    pairs = agreeing.alike(values[used], split[used] == 0, split[used] > 0)
    yield from agreeing.leaked(where, "rows", pairs)


def decoded(where: str, rows: pl.DataFrame, files: list[str], home: Path) -> Found:
    """Each prepared row is a decoded wind: of its file and record, time and values, truth too."""
    source = home.parents[1] / "decoded" / home.name / "winds.parquet"
    names = ["file", "record", "t_s", *VALUES]
    winds = (
        pl.read_parquet(source)
        .rename({"ts_s": "t_s"})
        .select("file", "record", "t_s", *(pl.col(name).cast(pl.Float32) for name in VALUES))
    )
    named = pl.Series("file", np.array(files, str)[rows["file"].to_numpy()])
    mine = rows.with_columns(named).select(names)
    lone = mine.join(winds, on=names, how="anti", nulls_equal=True)
    if len(lone):
        one = lone.row(0, named=True)
        text = f"{len(lone):,} rows are no decoded winds: {one['file']} record {one['record']}"
        yield where, f"{text} has other values in {source.as_posix()}"


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    judges = {"prepared": prepared, "evaluated": evaluated}
    return agreeing.main("stages.winds.agree", judges, argv)


if __name__ == "__main__":
    sys.exit(main())
