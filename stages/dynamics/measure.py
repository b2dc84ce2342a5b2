"""A data set's cells and rivals, run freely from the same starts and measured alike.

Written: metrics.json (entries by cell, and what the set is), curves.json (the band of NRMSE a step)
and images.npy (cells + 1, H, O): the truth of the first start and each cell's forecast of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stages import files
from stages.dynamics import forecasts
from stages.dynamics.forecasts import Array, Truth
from stages.dynamics.layout import ABOUT, CURVES, IMAGES, SERIES, STARTS, STATES
from stages.dynamics.rivals.build import NAMES, build
from stages.dynamics.settings import Dynamics, Forecasts, Rivals, Simulated
from stages.dynamics.systems.simulate import carry_on
from stages.params import checked
from stages.scores import few, shell

SELECTS = "vpt_val"  # the valid time within the part that selects, by which networks are chosen
SOLVER = "solver"  # the solver against itself at a finer step


@dataclass(frozen=True)
class Data:
    """A prepared set and what is asked of it: series (E, T, O), starts (B, 2), whole states there
    (B, D), the given observations (B, C, O), the truth."""

    series: Array
    starts: Array
    states: Array
    about: dict[Any, Any]
    asked: Forecasts
    rivals: Rivals
    seed: int
    truth: Truth

    @classmethod
    def open(cls, prepared: Path, told: Dynamics, seed: int) -> "Data":
        """That of a prepared folder."""
        series, starts, states = (
            np.load(prepared / name, allow_pickle=False) for name in (SERIES, STARTS, STATES)
        )
        about, asked = files.read_json(prepared / ABOUT), told.forecasts[prepared.name]
        ahead = np.stack([series[e, t + 1 : t + 1 + asked.horizon] for e, t in starts])
        unit = about["printed_exponent"] or about["exponent"]["value"]
        truth = Truth(ahead, starts[:, 0], about["step"], unit, asked.threshold, asked.spectrum)
        rivals = told.rivals[prepared.name]
        return cls(series, starts, states, about, asked, rivals, seed, truth)

    @property
    def context(self) -> Array:
        """The observations given before each forecast, the last one at its start (B, C, O)."""
        count = self.asked.context
        return np.stack([self.series[e, t - count + 1 : t + 1] for e, t in self.starts])

    def description(self) -> dict[str, Any]:
        """What the set is, for tables and figures."""
        kept = {key: self.about[key] for key in ("step", "exponent", "printed_exponent", "change")}
        return kept | {
            "unit": self.truth.exponent,
            "system": self.about["system"],
            "horizon": self.asked.horizon,
            "threshold": self.asked.threshold,
            "starts": len(self.starts),
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
    curve = forecasts.curve(forecasts.nrmse(forecast, data.truth.values))
    return CellResult(entry, curve, forecast[0].astype(np.float32))


def rival(name: str, data: Data) -> CellResult:
    """A rival, trained and measured; `solver` is the system's own, at a finer step."""
    if name == SOLVER:
        told = checked(Simulated, dict(data.about["system"]), "about.json")
        every, dt = told.every * data.asked.finer, told.dt / data.asked.finer
        seen = carry_on(told.made(), data.states, dt, every, data.asked.horizon)
        forecast = (seen.transpose(1, 0, 2) - data.about["mean"]) / data.about["sd"]
    else:
        rule = build(name, data.rivals, data.seed)
        rule.train(data.series[:, : data.rivals.train])
        forecast = rule.forecast(data.context, data.asked.horizon)
    return evaluate_forecast(forecast, data, {})


def network(run: Path, data: Data, threads: int, device: str) -> CellResult:
    """A trained cell, measured."""
    import torch

    from stages.dynamics import free_run, selection

    torch.set_num_threads(threads)
    model, length = free_run.loaded(run / shell.WEIGHTS, device)
    forecast = free_run.forecast(model, data.context, data.asked.horizon, length)
    weights = sum(one.numel() for one in model.parameters())
    says = "change" if model.change else "next"
    more = {"weights": weights, "history": shell.validation_losses(run), "output": says}
    found, asked = evaluate_forecast(forecast, data, more), data.asked
    chosen = selection.runs(data.series, data.about, "val", asked.selection, asked.threshold)
    times = chosen.of(model, length)
    found.entry["metrics"][SELECTS] = few.mean_of(times, chosen.member, "Lyapunov times")
    return found


def companions(data: Data) -> dict[str, CellResult]:
    """All rivals, and the solver."""
    return {name: rival(name, data) for name in (*NAMES, SOLVER)}


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
