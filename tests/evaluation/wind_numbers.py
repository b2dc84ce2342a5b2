"""Metrics of models of wind, made by hand."""

import json

import numpy as np
import polars as pl
from known_spreads import WINDS, keep

from stages import files
from stages.units import KNOT_M_S
from stages.winds import claims

ALL = {"day_average": 12.0, "hour_average": 10.0, "knn": 8.0, "kernel": 6.0}
ONE, NEAREST, LEARNED = "gka_tnn-cached-none", "knn_tnn-swept-none", "gka_mlp_tnn-cached-none"
CHAPTER_1 = {
    "day_average": 12.0,
    "hour_average": 10.0,
    "persistence": 9.0,
    f"{NEAREST}-s0": 8.0,
    f"{ONE}-s0": 6.0,
}


NARROW = 1e-3  # a spread of training that decides nothing here

SLICES = {
    "cell": pl.String,
    "by": pl.String,
    "bin": pl.String,
    "slice": pl.Int32,
    "n": pl.Int32,
    "squared_error_m2_s2": pl.Float64,
}


def made(
    project,
    rmse,
    leads=None,
    distances=None,
    hulls=None,
    slices=40,
    jitter=0.02,
    seed=0,
    spread=NARROW,
    freedom=20,
    hardness=0.6,
    kinds=WINDS,
    step=5,
):
    """An evaluation folder: cell -> RMSE in kn; leads and distances: cell -> {bin: RMSE}; every
    `step`-th minute is a slice, of 50 points.

    Slices differ in difficulty by a common factor, and by `jitter` from model to model.
    `spread`: measured of the training of `kinds`, with `freedom` degrees; None: nothing was.
    """
    rng = np.random.default_rng(seed)
    hard = rng.lognormal(0, hardness, slices)
    home = project / "reports/wind_nowcast/mini"
    if spread is not None:
        keep(home, kinds, spread, freedom)
    folder = home / "evaluated/toy"
    folder.mkdir(parents=True)

    def squares(value):
        square = (value * KNOT_M_S) ** 2 * 2 * 50 * hard * rng.lognormal(0, jitter, slices)
        return [(step * s, 50, float(e)) for s, e in enumerate(square)]

    rows = []
    for cell in rmse:
        groups = {
            "all": {"all": rmse[cell]},
            "lead": (leads or {}).get(cell, {}),
            "distance": (distances or {}).get(cell, {}),
        }
        for by, bins in groups.items():
            for name, value in bins.items():
                rows += [(cell, by, name, *one) for one in squares(value)]
    pl.DataFrame(rows, orient="row", schema=SLICES).write_parquet(folder / "slices.parquet")
    shares = {cell: (hulls or {}).get(cell, (0.0, 0.0, 0.0)) for cell in rmse}
    files.write_json(
        folder / "metrics.json",
        {
            "cells": {
                cell: {
                    "slices": slices,
                    "metrics": {
                        "hull_share": dict(zip(("value", "low", "high"), share, strict=True))
                    },
                }
                for cell, share in shares.items()
            }
        },
    )
    return home


def entry(home, name):
    found = [
        claim
        for claim in claims.check(home, "wind_baselines" if name == "W-1" else "wind_nowcast")
        if claim["id"] == name
    ]
    assert len(found) == 1
    assert set(found[0]) == {
        "id",
        "dataset",
        "text",
        "source",
        "verdict",
        "compared",
        "seeds",
        "slices",
        "interval",
        "why",
    }
    json.dumps(found[0], allow_nan=False)
    return found[0]


# --- what training adds


def compared(project, left, right, rmse, **more):
    """The part that says which of two arms errs less."""
    home = made(project, rmse, **more)
    return claims.below(claims.WindEvaluation(home / "evaluated/toy"), left, right)
