"""What the evaluation of winds reads: the contexts, the test rows and where they lie, and which
slices each lead of the horizon curve reaches.

The curve over leads gives the same targets from older or newer contexts to the same model, which
was trained at the profile's lead and is not told the lead; a lead at which the weights were trained
on targets newer than the context is left out and named (`causal_lead_s`), so that no point of the
curve knows what its forecaster could not. Shapes: N test rows.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from stages.errors import DataError
from stages.params import Contexts as ContextSettings
from stages.winds import breakdown
from stages.winds import forecasts as field
from stages.winds.contexts.given import Contexts
from stages.winds.pairs import Pairs

COLUMNS = (
    "t_s",
    "lat_deg",
    "lon_deg",
    "alt_ft",
    "u_m_s",
    "v_m_s",
    "u_true_m_s",
    "v_true_m_s",
    "slice",
    "flight",
    "file",
    "record",
)


@dataclass(frozen=True)
class Settings:
    """Leads of the horizon curve (minutes), the seed by which winds are dealt anew, how neighbours
    are found, torch threads, device."""

    leads_min: tuple[float, ...]
    seed: int
    contexts: ContextSettings
    threads: int = 1
    device: str = "cpu"


@dataclass(frozen=True)
class EvaluationData:
    """What all cells of a data set share: their contexts, the rows of a split, the test's where
    nothing else is said, and where they lie."""

    contexts: Contexts
    rows: pl.DataFrame  # rows that are predicted, with their number `row` in rows.parquet
    track: np.ndarray  # (rows, 2)
    bands: np.ndarray  # (rows,) str
    days: np.ndarray  # (rows,) str, UTC
    distance: np.ndarray  # (rows,) str
    reached: dict[
        float, list[int]
    ]  # lead_s -> slices whose slice context at that lead holds a point
    offered: int  # rows in the split's slices, including those whose slice has no context
    not_causal: dict[str, str]  # leads left out of the curve -> why
    validation: "EvaluationData | None" = (
        None  # of the validation minutes; None where there are none
    )

    @property
    def pairs(self) -> Pairs:
        """The prepared data."""
        return self.contexts.pairs

    def places(self, numbers: np.ndarray) -> np.ndarray:
        """Positions in `rows` of row numbers."""
        return np.searchsorted(self.rows["row"].to_numpy(), numbers)

    @classmethod
    def open(cls, prepared: Path, settings: Settings) -> "EvaluationData":
        """Open the prepared data and find what does not depend on a model. DataError where the
        test split holds no pair."""
        torch.set_num_threads(settings.threads)
        contexts = Contexts.open(prepared, settings.contexts)
        contexts.nearby = field.Shared(contexts.nearby.measured, settings.contexts)
        if not contexts.pairs.targets("test"):
            raise DataError(
                "the test split holds no pair of context and target",
                where=str(prepared),
                remedy="widen `split.test` in stages/params/budgets/PROFILE/winds.yaml",
            )
        test = cls.of_split(prepared, contexts, "test", settings.leads_min)
        if not contexts.pairs.targets("val"):
            return test
        return replace(test, validation=cls.of_split(prepared, contexts, "val", ()))

    @classmethod
    def of_split(
        cls, prepared: Path, contexts: Contexts, split: str, leads_min: tuple[float, ...]
    ) -> "EvaluationData":
        """The rows of one split, at its own lead and at the leads asked for."""
        pairs = contexts.pairs
        targets = pairs.targets(split)
        every = split_rows(prepared, pairs, split)
        rows = every.filter(pl.col("slice").is_in(targets))
        reached, not_causal = leads_reached(pairs, targets, leads_min)
        km = nearest_context_km(pairs, targets, rows["row"].to_numpy())
        column = {
            name: rows[name].to_numpy()
            for name in ("slice", "flight", "t_s", "lat_deg", "lon_deg", "alt_ft")
        }
        track = breakdown.tracks(
            *(column[name] for name in ("slice", "flight", "t_s", "lat_deg", "lon_deg"))
        )
        days = (column["t_s"] * 1e6).astype("datetime64[us]").astype("datetime64[D]").astype(str)
        return cls(
            contexts,
            rows,
            track,
            breakdown.altitude_bands(column["alt_ft"]),
            days,
            breakdown.distance_bins(km),
            reached,
            len(every),
            not_causal,
        )


def split_rows(prepared: Path, pairs: Pairs, split: str) -> pl.DataFrame:
    """The rows of a split's slices, with their number `row` in rows.parquet."""
    w, step = pairs.meta["slice_s"], pairs.meta.get("every", {}).get(split, 1)
    inside = [
        pl.col("slice").is_between(first, math.floor(end / w) - 1)
        & ((pl.col("slice") - first) % step == 0)
        for first, end in ((math.ceil(start / w), end) for start, end in pairs.meta["split"][split])
    ]
    table = pl.scan_parquet(prepared / "rows.parquet").select(COLUMNS).with_row_index("row")
    return table.filter(pl.any_horizontal(inside)).collect()


def leads_reached(
    pairs: Pairs, targets: list[int], leads_min: tuple[float, ...]
) -> tuple[dict[float, list[int]], dict[str, str]]:
    """Test slices whose slice context at each lead (s) holds a point; and the leads that are left
    out, with why."""
    main, least = pairs.meta["lead_s"], causal_lead_s(pairs.meta)
    reached, not_causal = {}, {}
    for lead in sorted({main, *(60.0 * minutes for minutes in leads_min)}):
        if lead > least and lead != main:
            not_causal[lead_name(lead)] = (
                f"the weights were fitted on targets up to {least / 60:g} min before a test "
                "target: newer than this lead's context"
            )
            continue
        reached[lead] = [j for j in targets if len(pairs.pair(j, "slice", lead).context_x)]
    return reached, not_causal


def nearest_context_km(pairs: Pairs, targets: list[int], numbers: np.ndarray) -> np.ndarray:
    """Distance (N,) of rows, by their ascending numbers (N,), to the nearest point of their slice
    context at the profile's lead."""
    mean, std = (np.asarray(pairs.meta["scaler"][name], np.float64) for name in ("x_mean", "x_std"))
    km = np.empty(len(numbers))
    for j in targets:
        pair = pairs.pair(j, "slice", pairs.meta["lead_s"])
        km[np.searchsorted(numbers, pair.target_rows)] = breakdown.nearest_km(
            pair.target_x * std + mean, pair.context_x * std + mean
        )
    return km


def lead_name(lead_s: float) -> str:
    """Minutes as text that sorts: 300 s is '005', 450 s is '007.5'."""
    whole, dot, part = f"{lead_s / 60:g}".partition(".")
    return whole.zfill(3) + dot + part


def causal_lead_s(meta: dict[Any, Any]) -> float:
    """The oldest context, in s before a test target, that still ends after all the train and val
    targets that precede the target.

    Training data after the test (the thesis' week 4) count for nothing here; without any before it
    every lead is causal.
    """
    fitted = np.array(sorted({*meta["slices"]["train"], *meta["slices"]["val"]}))
    test = np.array(meta["slices"]["test"])
    before = np.searchsorted(fitted, test)
    ends = np.concatenate(([-np.inf], fitted + 1.0))[before]
    return float(((test - ends) * meta["slice_s"]).min())
