"""Context and target of any slice, read from prepared rows: exact, columnar, by time stamp (thesis
C.1).

Columns are loaded once as flat arrays (float32; times float64) and every set of points is a slice
of them found by binary search, so a pair costs what it holds. C context points, T target points;
x = (lat, lon, alt), y = (u, v) towards east and north, both standardised with the training rows'
mean and standard deviation (prepared.json has the units).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stages import files
from stages.errors import DataError, ParamsError
from stages.splits import SPLITS
from stages.winds import slices

TRUTH = ("u_true_m_s", "v_true_m_s")


@dataclass(frozen=True)
class Pair:
    """One context set and one target set. Context may be empty (C = 0) at leads other than the
    split's own."""

    context_x: np.ndarray  # C 3, float32, standardised
    context_y: np.ndarray  # C 2, float32, standardised
    target_x: np.ndarray  # T 3
    target_y: np.ndarray  # T 2
    target_rows: np.ndarray  # T, int64, row numbers in rows.parquet
    target_true: np.ndarray | None  # T 2, standardised like y; None unless the set is simulated
    context_rows: np.ndarray  # C, int64


class Pairs:
    """The pairs of one prepared data set; `meta` is prepared.json, `t_s` (N,) the times of all
    rows."""

    def __init__(self, meta: dict[Any, Any], t_s: np.ndarray, columns: dict[str, np.ndarray]):
        self.meta, self.t_s = meta, t_s
        scaler = meta["scaler"]
        self._x = [columns[name] for name in meta["columns_x"]]
        self._y = [columns[name] for name in ("u_m_s", "v_m_s")]
        self._truth = [columns[name] for name in TRUTH] if meta["truth"] else None
        self._scale_x = list(zip(scaler["x_mean"], scaler["x_std"], strict=True))
        self._scale_y = list(zip(scaler["y_mean"], scaler["y_std"], strict=True))
        self._day: tuple[tuple[int, int], tuple[np.ndarray, np.ndarray]] | None = None

    @classmethod
    def open(cls, folder: str | Path) -> "Pairs":
        """Read data/P/prepared/D. DataError if a file is missing or the rows are not those that
        prepared.json counts."""
        meta = files.read_json(Path(folder) / "prepared.json")
        rows = Path(folder) / "rows.parquet"
        if not rows.exists():
            raise DataError(
                "a file is missing", where=str(rows), remedy="run `dvc repro` (or `dvc pull`)"
            )
        names = ["t_s", *meta["columns_x"], "u_m_s", "v_m_s", *(TRUTH if meta["truth"] else ())]
        # one column at a time: peak memory is the arrays and one column more
        columns = {name: pl.read_parquet(rows, columns=[name])[name].to_numpy() for name in names}
        t_s = columns.pop("t_s")
        if len(t_s) != meta["kept"]:
            raise DataError(
                "rows.parquet and prepared.json do not belong together",
                where=str(folder),
                expected=f"{meta['kept']} rows",
                found=str(len(t_s)),
                remedy="run `dvc repro`",
            )
        return cls(meta, t_s, columns)

    def targets(self, split: str) -> list[int]:
        """Slice numbers used as targets in `split`, ascending: each holds rows and has a context
        at the split's lead."""
        if split not in SPLITS:
            raise ParamsError("unknown split", expected=" | ".join(SPLITS), found=repr(split))
        return list(self.meta["slices"][split])

    def pair(self, slice: int, context: str = "slice", lead_s: float | None = None) -> Pair:
        """Target slice and its context: "slice" (one slice, lead_s before), "hour" (the hour that
        ends there), or "day".

        lead_s None is the lead of the split; "day" is the target's UTC day and knows no lead. The
        arrays of a day are shared between the pairs of that day: do not write to them.
        """
        w, t0_s = self.meta["slice_s"], self.meta["t0_s"]
        lead = self.meta["lead_s"] if lead_s is None else lead_s
        if not lead > 0:
            raise ParamsError(
                "a lead must be positive, or the context would hold its own target",
                found=f"{lead} s",
            )
        target = self._between((t0_s + w * slice, t0_s + w * (slice + 1)))
        past = self._between(slices.context_window(t0_s, slice, w, lead, context))
        context_x, context_y = self._day_arrays(past) if context == "day" else self._arrays(past)
        target_x, target_y = self._arrays(target)
        true = None if self._truth is None else _stack(self._truth, self._scale_y, target)
        return Pair(
            context_x, context_y, target_x, target_y, np.arange(*target), true, np.arange(*past)
        )

    def rows_of(self, slice: int) -> tuple[int, int]:
        """First and one past the last row of a slice."""
        start = self.meta["t0_s"] + self.meta["slice_s"] * slice
        return self._between((start, start + self.meta["slice_s"]))

    def issue_s(self, slice: int, lead_s: float | None = None) -> float:
        """Unix seconds at which the forecast of a slice is issued: what was measured before, and
        nothing else, is known."""
        return (
            self.meta["t0_s"]
            + self.meta["slice_s"] * slice
            - (self.meta["lead_s"] if lead_s is None else lead_s)
        )

    def places(self, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Where rows (R...) were measured, (R... 3) float64: degrees north, degrees east, feet."""
        return np.stack([column[rows].astype(np.float64) for column in self._x], axis=-1)

    def winds(self, rows: np.ndarray | slice) -> np.ndarray:
        """Winds of rows (R...), (R... 2) float32, standardised."""
        parts = [
            (column[rows].astype(np.float64) - mean) / std
            for column, (mean, std) in zip(self._y, self._scale_y, strict=True)
        ]
        return np.stack(parts, axis=-1).astype(np.float32)

    def _between(self, edges: tuple[float, float]) -> tuple[int, int]:
        low, high = np.searchsorted(self.t_s, edges)
        return int(low), int(high)

    def _arrays(self, rows: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        return _stack(self._x, self._scale_x, rows), _stack(self._y, self._scale_y, rows)

    def _day_arrays(self, rows: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """A day of traffic is a million rows and serves 1440 slices: the last one is kept."""
        if self._day is None or self._day[0] != rows:
            self._day = rows, self._arrays(rows)
        return self._day[1]


def _stack(
    columns: list[np.ndarray], scale: list[tuple[float, float]], rows: tuple[int, int]
) -> np.ndarray:
    """Rows [low, high) of flat columns, standardised, as (rows, columns) float32."""
    low, high = rows
    found = np.empty((high - low, len(columns)), dtype=np.float32)
    for i, (column, (mean, std)) in enumerate(zip(columns, scale, strict=True)):
        found[:, i] = (column[low:high].astype(np.float64) - mean) / std
    return found
