"""winds.parquet -> rows.parquet + prepared.json: what models read (thesis C.1).

One pass over the winds in time order, in chunks of fixed length (Polars), so that memory does not
grow with the flights and every byte is determined: unusable rows are dropped and counted by reason;
each kept row gets its slice, its split (as a target), its flight (an aircraft's rows without a gap
over 900 s) and keeps its source file and record number. A second pass over the training rows alone
fits the scaler. Units: seconds (Unix), degrees, feet, m/s (towards east, north).
"""

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from stages import files
from stages.errors import DataError
from stages.params import Prepare
from stages.splits import SPLITS
from stages.winds import slices
from stages.winds.decoding import bounds

CHUNK = 1_000_000  # rows read at once; part of what determines the file's bytes
FLIGHT_GAP_S = 900.0
X, Y, TRUTH = ("lat_deg", "lon_deg", "alt_ft"), ("u_m_s", "v_m_s"), ("u_true_m_s", "v_true_m_s")
MEASURED = ("ts_s", "icao", *X, *Y)
SCHEMA = pa.schema(
    [
        ("t_s", pa.float64()),
        *((name, pa.float32()) for name in (*X, *Y, *TRUTH)),
        ("slice", pa.int32()),
        ("split", pa.int8()),
        ("flight", pa.uint32()),
        ("file", pa.uint16()),
        ("record", pa.uint32()),
    ]
)


def prepare(
    winds: Path, folder: Path, settings: Prepare, wind_max_m_s: float, profile: str, dataset: str
) -> dict[Any, Any]:
    """Write rows.parquet and prepared.json into `folder`; returns prepared.json's content.
    DataError names what is amiss."""
    lazy = pl.scan_parquet(winds)
    read, first_s, truth = (
        lazy.select(pl.len(), pl.col("ts_s").min(), pl.col(TRUTH[0]).count() > 0)
        .collect(engine="streaming")
        .row(0)
    )
    if first_s is None or not math.isfinite(first_s):
        raise DataError("no row has a time", where=str(winds), found=f"{read} rows")
    names = sorted(
        lazy.select(pl.col("file").unique()).collect(engine="streaming")["file"].to_list()
    )
    if len(names) > 2**16:
        raise DataError(
            "too many source files for the file column",
            where=str(winds),
            expected="at most 65536",
            found=str(len(names)),
        )
    t0_s = settings.slice_s * math.ceil(
        first_s / settings.slice_s
    )  # slices begin at multiples of slice_s since 1970
    optional = optional_settings(settings)
    settings = rolled(winds, settings, wind_max_m_s, t0_s)
    times, used, dropped = write_rows(
        winds, folder / "rows.parquet", settings, wind_max_m_s, t0_s, names, read
    )
    windows = used_windows(times, used, settings, t0_s, str(winds))
    scaler, area = fit(folder / "rows.parquet", windows["train"])

    def count(role, name):
        return sum(hi - lo for lo, hi, r in windows[name] if r == role)

    meta = {
        "dataset": dataset,
        "profile": profile,
        "t0_s": t0_s,
        "slice_s": settings.slice_s,
        "lead_s": settings.lead_s,
        "embargo_s": settings.embargo_s,
        "split": settings.split.model_dump(mode="json"),
        "scaler": scaler,
        "columns_x": list(X),
        "slices": used,
        "rows": {name: count("targets", name) for name in SPLITS},
        "context_rows": {name: count("context", name) for name in SPLITS},
        "area": area,
        "files": names,
        "truth": truth,
        "dropped": dropped,
        "read": read,
        "kept": len(times),
    } | optional
    files.write_json(folder / "prepared.json", meta)
    return meta


def optional_settings(settings: Prepare) -> dict[str, Any]:
    """The settings that prepared.json tells only where they are given."""
    parts = {name: getattr(settings, name) for name in ("rolling", "every")}
    return {name: part.model_dump(mode="json") for name, part in parts.items() if part}


def rolled(winds: Path, settings: Prepare, wind_max_m_s: float, t0_s: float) -> Prepare:
    """The settings with the rolling split as these winds resolve it. A fixed one stays, and
    costs no look at the data."""
    if settings.rolling is None:
        return settings
    times = (
        pl.scan_parquet(winds)
        .filter(unusable(wind_max_m_s).is_null())
        .select("ts_s")
        .collect(engine="streaming")["ts_s"]
        .to_numpy()
    )
    if not len(times):
        raise DataError("no row can be used", where=str(winds), remedy="drop more captures")
    w = settings.slice_s
    filled: Any = np.unique(np.floor((times - t0_s) / w)).astype(np.int64)
    low, high = (
        np.searchsorted(times, edge)
        for edge in slices.context_window(t0_s, filled, w, settings.lead_s, "slice")
    )
    return slices.resolve(settings, t0_s, times[-1], filled[high > low].tolist())


def chunks(winds: Path, rows: int) -> Iterator[pl.DataFrame]:
    """The file in order, about CHUNK rows at a time; rows of one instant stay together, so
    copies meet in one chunk."""
    lazy, held = pl.scan_parquet(winds), None
    for offset in tqdm(range(0, rows, CHUNK), disable=None, desc="prepare", unit="chunk"):
        chunk = lazy.slice(offset, CHUNK).collect(engine="streaming")
        chunk = chunk if held is None else held.vstack(chunk).rechunk()
        if not chunk["ts_s"].is_sorted():
            raise DataError(
                "the winds are not in order of time",
                where=str(winds),
                found=f"near row {offset}",
                remedy="decode the data set again",
            )
        ready = (
            pl.Series([True])
            if offset + CHUNK >= rows
            else (chunk["ts_s"] < chunk["ts_s"][-1]).fill_null(True)
        )
        yield chunk.filter(ready)
        held = chunk.filter(~ready)


def unusable(wind_max_m_s: float) -> pl.Expr:
    """Why a row cannot be used, looked at alone (the first that applies), or null: null,
    outside_range, over_wind_max."""
    number = [name for name in MEASURED if name != "icao"]
    absent = pl.col("icao").is_null() | pl.any_horizontal(
        ~pl.col(number).is_finite().fill_null(False)
    )
    fast = pl.col("u_m_s") ** 2 + pl.col("v_m_s") ** 2 > wind_max_m_s**2
    return (
        pl.when(absent)
        .then(pl.lit("null"))
        .when(bounds.outside())
        .then(pl.lit(bounds.REASON))
        .when(fast)
        .then(pl.lit("over_wind_max"))
    )


def reason(wind_max_m_s: float) -> pl.Expr:
    """Why a row cannot be used (the first that applies), or null: as `unusable`, or duplicate."""
    copy = ~pl.struct(MEASURED).is_first_distinct()
    return pl.coalesce(unusable(wind_max_m_s), pl.when(copy).then(pl.lit("duplicate")))


class Flights:
    """Numbers flights in order of their first row, chunk after chunk; remembers only aircraft
    seen in the last 900 s."""

    def __init__(self):
        self.count = 0
        self.last = pl.DataFrame(
            schema={"icao": pl.String, "last_s": pl.Float64, "flight": pl.UInt32}
        )

    def number(self, rows: pl.DataFrame) -> pl.Series:
        """Flight of each row of `rows` (columns ts_s, icao; in time order, later than all
        earlier chunks)."""
        before = pl.col("ts_s").shift(1).over("icao")
        frame = (
            rows.select("ts_s", "icao")
            .join(self.last, on="icao", how="left", maintain_order="left")
            .with_columns(
                first=before.is_null(),
                new=(pl.col("ts_s") - before.fill_null(pl.col("last_s")) > FLIGHT_GAP_S).fill_null(
                    True
                ),
            )
        )
        frame = frame.with_columns(
            fresh=(pl.col("new").cum_sum() + (self.count - 1)).cast(pl.UInt32)
        )
        begun = (
            pl.when("new").then("fresh").when("first").then("flight")
        )  # known at an aircraft's first row or after a gap
        frame = frame.with_columns(flight=begun.forward_fill().over("icao"))
        self.count += frame["new"].sum()
        seen = frame.group_by("icao").agg(
            pl.col("ts_s").last().alias("last_s"), pl.col("flight").last()
        )
        recent = pl.col("last_s") >= rows["ts_s"][-1] - FLIGHT_GAP_S
        self.last = (
            pl.concat([seen, self.last])
            .unique("icao", keep="first", maintain_order=True)
            .filter(recent)
        )
        return frame["flight"]


def write_rows(
    winds: Path,
    path: Path,
    settings: Prepare,
    wind_max_m_s: float,
    t0_s: float,
    names: list[str],
    rows: int,
) -> tuple[np.ndarray, dict[str, list[int]], dict[str, int]]:
    """The streaming pass. Returns the kept rows' times (N,), the target slices of each split,
    the drops by reason."""
    times, kept = np.empty(rows), 0
    dropped, flights = Counter(null=0, outside_range=0, over_wind_max=0, duplicate=0), Flights()
    used: dict[str, list[int]] = {name: [] for name in SPLITS}
    options = {
        "compression": "zstd",
        "compression_level": 3,
        "use_dictionary": ["slice", "split", "file"],
    }
    with pq.ParquetWriter(path, SCHEMA, **options) as writer:
        for chunk in chunks(winds, rows):
            chunk = chunk.with_columns(reason=reason(wind_max_m_s))
            dropped.update(chunk["reason"].drop_nulls().to_list())
            chunk = chunk.filter(pl.col("reason").is_null())
            if chunk.is_empty():
                continue
            times[kept : kept + len(chunk)] = chunk["ts_s"].to_numpy()
            kept += len(chunk)
            numbers = ((chunk["ts_s"] - t0_s) / settings.slice_s).floor().cast(pl.Int32)
            split = splits(numbers.unique().sort().to_list(), times[:kept], settings, t0_s)
            for j, code in split.items():
                if code >= 0:
                    used[SPLITS[code]].append(j)
            chunk = chunk.with_columns(
                pl.col("ts_s").alias("t_s"),
                numbers.alias("slice"),
                numbers.replace_strict(split, return_dtype=pl.Int8).alias("split"),
                flights.number(chunk).alias("flight"),
                pl.col("file").cast(pl.Enum(names)).to_physical().cast(pl.UInt16),
            )
            table = chunk.select(pl.col(field.name) for field in SCHEMA).to_arrow().cast(SCHEMA)
            writer.write_table(table, row_group_size=CHUNK)
    used = {name: sorted(set(found)) for name, found in used.items()}
    return times[:kept], used, dict(dropped)


def splits(numbers: list[int], times: np.ndarray, settings: Prepare, t0_s: float) -> dict[int, int]:
    """Split code of each slice number: -1 unless it lies in an interval and has a row in its
    slice context."""
    found = dict.fromkeys(numbers, -1)
    for code, name in enumerate(SPLITS):
        for inside in slices.target_ranges(settings, name):
            for j in numbers:
                if j in inside:
                    window = slices.context_window(
                        t0_s, j, settings.slice_s, settings.lead_s, "slice"
                    )
                    low, high = np.searchsorted(times, window)
                    found[j] = code if high > low else -1
    return found


def used_windows(
    times: np.ndarray, used: dict[str, list[int]], settings: Prepare, t0_s: float, where: str
) -> dict[str, list[tuple[int, int, str]]]:
    """Row ranges (low, high, role) of each split's target slices and contexts, after checking
    the law on the rows."""
    w, lead = settings.slice_s, settings.lead_s
    windows: dict[str, list[tuple[int, int, str]]] = {}
    spans = []
    for name in SPLITS:
        if not used[name]:
            raise DataError(
                "a split has no pair of a target slice and a context that both hold rows",
                where=f"{where}, split {name}",
                expected=f"rows in {list(getattr(settings.split, name))} s after {t0_s:.0f}, and "
                f"{lead:.10g} s before",
                found=f"{len(times)} rows, last at {times[-1] - t0_s:.10g} s"
                if len(times)
                else "no row kept",
                remedy="move the split's intervals to where the data are, in "
                "stages/params/budgets/PROFILE/winds.yaml",
            )
        windows[name] = []
        for j in used[name]:
            for role, edges in (
                ("targets", (t0_s + w * j, t0_s + w * (j + 1))),
                ("context", slices.context_window(t0_s, j, w, lead, "slice")),
            ):
                low, high = map(int, np.searchsorted(times, edges))
                windows[name].append((low, high, role))
                spans.append(slices.Span(times[low], times[high - 1], name, role))
    slices.check_rows(spans, settings.embargo_s, where)
    return windows


def fit(rows: Path, windows: list[tuple[int, int, str]]) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Mean and standard deviation (population) of each column over the training rows, each row
    once, and their extent.

    Rounded to ten significant digits, so that a sum taken in another order gives the same bytes.
    """
    edges: list[list[int]] = []
    for low, high, _ in sorted(windows):
        if edges and low <= edges[-1][1]:
            edges[-1][1] = max(high, edges[-1][1])
        else:
            edges.append([low, high])

    def digits(value):
        return float(f"{value:.10g}")

    mean, std, area = {}, {}, {}
    for name in (*X, *Y):
        column = pl.read_parquet(rows, columns=[name])[name].to_numpy()
        values = np.concatenate([column[low:high] for low, high in edges])
        mean[name] = digits(values.mean(dtype=np.float64))
        std[name] = digits(values.std(dtype=np.float64))
        area[name] = [float(f"{values.min():.9g}"), float(f"{values.max():.9g}")]
        if not std[name] > 0:
            raise DataError(
                "a column is constant over the training rows",
                where=f"{rows.name}, column {name}",
                found=f"{values[0]:.6g}",
                remedy="this set cannot train a model: was the column measured?",
            )
    scaler = {
        f"{axis}_{what}": [table[name] for name in columns]
        for axis, columns in (("x", X), ("y", Y))
        for what, table in (("mean", mean), ("std", std))
    }
    return scaler, {name: area[name] for name in X}
