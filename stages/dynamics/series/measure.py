"""A series' cells and rivals, run freely from the same starts and measured alike: valid times in
days. Written: what measure.py of the family writes of systems."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stages import files
from stages.dynamics import forecasts
from stages.dynamics.forecasts import Array, Truth
from stages.dynamics.layout import ABOUT, CURVES, IMAGES, STARTS
from stages.dynamics.layout import SERIES as ARRAY
from stages.dynamics.series.rivals import NAMES, build
from stages.dynamics.series.settings import Ahead, Rules, Series
from stages.scores import few, shell

SELECTS = "vpt_val"
FOREIGN = ("vpt_document", "valid_time")  # of systems: of series all three are days


@dataclass(frozen=True)
class Data:
    """A prepared series and what is asked of it: series (1, T, O), starts (B, 2), the truth."""

    series: Array
    starts: Array
    about: dict[Any, Any]
    asked: Ahead
    rivals: Rules
    seed: int
    truth: Truth

    @classmethod
    def open(cls, prepared: Path, told: Series, seed: int) -> "Data":
        """That of a prepared folder."""
        series, starts = (np.load(prepared / name, allow_pickle=False) for name in (ARRAY, STARTS))
        about, asked = files.read_json(prepared / ABOUT), told.forecasts[prepared.name]
        ahead = np.stack([series[e, t + 1 : t + 1 + asked.horizon] for e, t in starts])
        block = np.arange(len(starts)) * asked.blocks // len(starts)
        truth = Truth(ahead, block, about["step"], 1.0, asked.threshold, asked.spectrum)
        rivals = told.rivals[prepared.name]
        return cls(series, starts, about, asked, rivals, seed, truth)

    @property
    def context(self) -> Array:
        """The rows given before each forecast, the last one at its start (B, C, O)."""
        count = self.asked.context
        return np.stack([self.series[e, t - count + 1 : t + 1] for e, t in self.starts])

    @property
    def period(self) -> int:
        """Rows of a day."""
        return max(1, round(1.0 / self.about["step"]))

    def description(self) -> dict[str, Any]:
        """What the set is, for tables and figures."""
        kept = ("step", "change", "columns", "mended", "rows", "masked", "convention", "parts")
        return {key: self.about[key] for key in kept} | {
            "unit": 1.0,
            "horizon": self.asked.horizon,
            "threshold": self.asked.threshold,
            "starts": len(self.starts),
            "blocks": self.asked.blocks,
        }


@dataclass(frozen=True)
class CellResult:
    """A cell's entry, its curves, and its forecast of the first start (H, O)."""

    entry: dict[str, Any]
    curve: dict[str, Any]
    image: Array


def evaluate_forecast(forecast: Array, data: Data, more: Mapping[str, Any]) -> CellResult:
    """What is told of forecasts (B, H, O)."""
    entry = forecasts.forecast_metrics(forecast, data.truth) | dict(more)
    kept = {name: one for name, one in entry["metrics"].items() if name not in FOREIGN}
    kept["vpt"] |= {"unit": "days"}
    curve = forecasts.curve(forecasts.nrmse(forecast, data.truth.values))
    return CellResult(entry | {"metrics": kept}, curve, forecast[0].astype(np.float32))


def rival(name: str, data: Data) -> CellResult:
    """A rival, trained on what trains, and measured."""
    rule = build(name, data.rivals, data.period, data.seed)
    first, end = data.about["parts"]["train"]
    rule.train(data.series[:, first:end])
    return evaluate_forecast(rule.forecast(data.context, data.asked.horizon), data, {})


def network(run: Path, data: Data, threads: int, device: str) -> CellResult:
    """A trained cell, measured, and its valid time where cells are chosen."""
    import torch

    from stages.dynamics import free_run, selection

    torch.set_num_threads(threads)
    model, length = free_run.loaded(run / shell.WEIGHTS, device)
    forecast = free_run.forecast(model, data.context, data.asked.horizon, length)
    weights = sum(one.numel() for one in model.parameters())
    more = {"weights": weights, "history": shell.validation_losses(run)}
    found, asked = evaluate_forecast(forecast, data, more), data.asked
    chosen = selection.runs(data.series, data.about, "val", asked.selection, asked.threshold)
    block = np.arange(len(chosen.context)) * asked.blocks // len(chosen.context)
    found.entry["metrics"][SELECTS] = few.mean_of(chosen.of(model, length), block, "days")
    return found


def companions(data: Data) -> dict[str, CellResult]:
    """All rivals; where a row is a day or more, yesterday is persistence and stands once."""
    return {name: rival(name, data) for name in NAMES if name != "yesterday" or data.period > 1}


def write(found: Mapping[str, CellResult], data: Data, final: Path) -> None:
    """Write an evaluated folder, whole."""
    with files.atomic_folder(final) as folder:
        cells = {name: one.entry for name, one in found.items()}
        files.write_json(folder / "metrics.json", {"cells": cells, "about": data.description()})
        curves = {name: one.curve for name, one in found.items()}
        files.write_json(folder / CURVES, {"curves": curves, "order": list(found)})
        first = data.truth.values[0].astype(np.float32)
        with files.atomic_file(folder / IMAGES) as stream:
            np.save(stream, np.stack([first, *(one.image for one in found.values())]))
