"""A model's winds of whole levels, of MINUTES test minutes, and how they flow (flow.py): what a
wind head without divergence does to a nowcast's field, told of every model alike.

A level is that of measure.py's `look`: the area at the usual altitude of a minute's targets, and
the wind of the simulated sky at the same places and moment where the sky is simulated. Differences
on so coarse a grid have a little divergence by themselves, so that of the truth stands beside; of a
model whose field is one function of the place (a "recent" context) the slopes are also taken
exactly, by differentiation in double precision.
Shapes: N places of a level. Units: degrees, feet, m/s, 1/s.
"""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import torch

from stages.params import Simulate
from stages.units import FOOT_M
from stages.winds import measure
from stages.winds.contexts.nearby import KINDS
from stages.winds.evaluation_data import EvaluationData
from stages.winds.forecasts import PLACE
from stages.winds.laws.flow import TRUTH, WINDS
from stages.winds.laws.layout import EXACT, MINUTES
from stages.winds.sky import airspace

Wind = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Truth:
    """The wind of a simulated sky at any place and Unix time."""

    sky: airspace.Sky

    @classmethod
    def of(cls, plan: Simulate | None) -> "Truth | None":
        """That of a data set's plan; None of one that is not simulated."""
        return None if plan is None else cls(airspace.sky(plan))

    def at(self, level: pl.DataFrame, t_s: Any) -> Wind:
        """Towards east and north at a level's places, (N,) each."""
        lat, lon, alt_ft = (level[name].to_numpy().astype(np.float64) for name in PLACE)
        return self.sky.wind(lat, lon, alt_ft * FOOT_M, t_s - self.sky.start_ms / 1000)


def minutes(data: EvaluationData) -> list[int]:
    """MINUTES of the test's slices that have a context, evenly from the first to the last; all
    where there are no more."""
    known = data.reached[data.pairs.meta["lead_s"]]
    chosen = np.linspace(0, len(known) - 1, min(MINUTES, len(known))).round().astype(int)
    return [known[place] for place in chosen]


def middle_s(data: EvaluationData, j: int) -> float:
    """The Unix time that a level of slice `j` is of."""
    lead_s = data.pairs.meta["lead_s"]
    return float(data.pairs.issue_s(j, lead_s) + lead_s + data.pairs.meta["slice_s"] / 2)


def kept(model: torch.nn.Module, data: EvaluationData, truth: Truth | None) -> pl.DataFrame:
    """The levels of a model, one below the other: slice, PLACE, WINDS, and TRUTH (null where the
    sky is not simulated)."""
    found, lead_s = [], data.pairs.meta["lead_s"]
    for j in minutes(data):
        level = measure.look(model, replace(data, reached={lead_s: [j]}))
        true = (None, None) if truth is None else truth.at(level, middle_s(data, j))
        columns = {
            name: pl.Series(values, dtype=pl.Float32) if values is not None else pl.lit(None)
            for name, values in zip(TRUTH, true, strict=True)
        }
        found.append(
            level.select("slice", *PLACE, *WINDS)
            .with_columns(**columns)
            .cast(dict.fromkeys(TRUTH, pl.Float32))
        )
    return pl.concat(found)


def exact(model: torch.nn.Module, data: EvaluationData) -> dict[str, dict[str, Any]]:
    """Divergence over shear of the same levels by differentiation, root mean squares over all
    places; nothing of a model that chooses its context by target or reads standardised places."""
    if model.context not in KINDS or model.context == "neighbours":
        return {}
    double, lead_s = deepcopy(model).double().eval(), data.pairs.meta["lead_s"]
    unit = torch.tensor(data.pairs.meta["scaler"]["y_std"], dtype=torch.float64)
    squares = []
    for j in minutes(data):
        level = measure.look(model, replace(data, reached={lead_s: [j]}))
        here, t_s = level.select(PLACE).to_numpy(), np.full(len(level), middle_s(data, j))
        batch = data.contexts.nearby.at(here, t_s, data.pairs.issue_s(j, lead_s), model)
        place = batch.target_x.double().requires_grad_()
        batch = replace(
            batch, context_x=batch.context_x.double(), context_y=batch.context_y.double(),
            target_x=place,
        )  # fmt: skip
        mean = double(batch).mean * unit
        (u, v) = (
            torch.autograd.grad(mean[..., axis].sum(), place, retain_graph=True)[0][..., :2]
            for axis in (0, 1)
        )
        squares.append(
            ((u[..., 0] + v[..., 1]).square().sum().item(), (u.square() + v.square()).sum().item())
        )
    divergence, shear = np.sum(squares, axis=0)
    ratio = float(np.sqrt(divergence / shear)) if shear else 0.0
    return {EXACT: {"value": ratio, "unit": "1", "n": len(squares)}}
