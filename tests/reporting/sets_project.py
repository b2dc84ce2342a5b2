"""Hand-made results of the experiments on sets of points: cells, histories, probes and one
predicted set, with numbers one can reckon by hand.

The printed numbers and the companions are the project's own, so that the page is tested with what
really stands beside ours.
"""

import math
from pathlib import Path

import numpy as np
import results_project
from results_project import PROFILE, ROOT
from safetensors.numpy import save_file

from stages import files

FIELDS, FAILURES = "sparse_fields", "failure_modes"
N = 4_096
# MSE over seeds; the intervals lie a tenth to either side. `mean` leaves 0.4.
POISSON = {
    "mean": (0.4,),
    "nearest": (0.3,),
    "cnp-traditional-20k": (0.1, 0.104),
    "cnp-shared-20k": (0.16, 0.15),
    "gen-traditional-20k": (0.05, 0.055),
    "gen-shared-20k": (0.05, 0.04),
    "tfs-shared-20k": (0.02, 0.021),
    "tfs-traditional-20k": (0.03, 0.031),
    "msa-shared-20k": (0.0078, 0.0082),
    "tfs-distance-20k": (0.05, 0.052),
    "tfs-decoder_4-20k": (0.02, 0.0205),
    "gen-decoder_4-20k": (0.2, 0.21),
    "msa-traditional-20k": (0.032,),
    "geofno-plain-20k": (0.06,),
}
DARCY = {"mean": (1.0e-3,), "msa-shared-20k": (5.0e-4, 5.2e-4), "cnp-shared-20k": (9.0e-4,)}
COPIES = {
    "mean": (1.0,),
    "msa-tied-5k": (0.002, 0.004),
    "tfs-traditional-5k": (0.003,),
    "gng-plain-5k": (0.008, 0.0082),
    "cnp-traditional-5k": (0.9,),
    "gen-lattice_2-5k": (0.8,),
    "gen-lattice_7-5k": (0.3,),
    "perceiver-p49-5k": (0.5,),
}
SINES = {name: tuple(value / 10 for value in values) for name, values in COPIES.items()}
LATENTS = {
    "msa": (64, 1.0, 1.0),
    "tfs": (64, 1.0, 1.0),
    "gen": (49, 12.0, 0.2),
    "cnp": (1, 1.0, 1.0),
}  # count, effective, largest share
STEPS = {
    "msa-tied-5k": 100.0,
    "tfs-traditional-5k": 110.0,
    "gen-lattice_2-5k": 400.0,
    "gen-lattice_7-5k": 200.0,
}


def number(value: float, unit: str = "1", spread: float = 1.1, n: int = N) -> dict:
    """A metric as evaluation writes it."""
    return {"value": value, "unit": unit, "n": n, "low": value / spread, "high": value * spread}


def cell(mse: float, step: int = 500, probes: dict | None = None, parameters: int = 18_506) -> dict:
    """A cell's entry: validation is 1.1 times, the context shuffled 10 times the test's error."""
    metrics = {
        "mse": number(mse),
        "rmse": number(math.sqrt(mse)),
        "r2": number(1 - mse),
        "mse_val": number(1.1 * mse),
        "mse_batch_mean_val": number(1.1 * mse),
        "mse_permuted": number(10 * mse),
    }
    history = [[step * k, mse * (1 + 20 * math.exp(-k))] for k in range(1, 8)]
    return {"metrics": metrics, "history": {"val": history}, "parameters": parameters} | (
        {"probes": probes} if probes else {}
    )


def probes(arm: str, seed: int) -> dict:
    """What a smooth set's cells are asked beside their error."""
    found = {}
    if arm.split("-", maxsplit=1)[0] in LATENTS:
        count, effective, largest = LATENTS[arm.split("-", maxsplit=1)[0]]
        found["latents"] = {
            "count": {"value": count, "unit": "latents", "n": 32},
            "effective": number(effective, "latents", 1.05, 32),
            "largest_share": number(largest, "1", 1.0, 32),
        }
    if arm in STEPS:
        found["correction"] = {"steps": number(STEPS[arm] + 2 * seed, "updates", 1.1, 8)}
    if arm.startswith("msa"):
        found["overlap"] = {
            share: number(value)
            for share, value in (("0", 0.02), ("25", 0.015), ("50", 0.008), ("100", 0.001))
        }
    return found


def cells(values: dict[str, tuple[float, ...]], asked: bool = False) -> dict[str, dict]:
    """All cells of a data set; models without parameters have no seed and no history."""
    found = {}
    for arm, errors in values.items():
        trained = arm not in ("mean", "nearest")
        for seed, mse in enumerate(errors):
            one = cell(mse, probes=probes(arm, seed) if asked and trained else None)
            found[f"{arm}-s{seed}" if trained else arm] = (
                one if trained else {"metrics": one["metrics"], "history": {}, "parameters": 0}
            )
    return found


def evaluated(
    experiment: str, dataset: str, found: dict[str, dict], i_dim: int = 1, seed: int = 0
) -> None:
    """metrics.json, one predicted set, and what the preparation says of the set."""
    home = Path("reports", experiment, PROFILE, "evaluated", dataset)
    rng = np.random.default_rng(seed)
    files.write_json(home / "metrics.json", {"cells": found})
    x, t = rng.uniform(0, 1, (2, 64, 2)), rng.uniform(0, 1, (2, 256, 2))
    truth = np.sin(3 * t[..., :1]) * np.cos(4 * t[..., 1:])
    known = np.sin(3 * x[..., :1]) * np.cos(4 * x[..., 1:])
    if i_dim == 3:
        flag = (rng.uniform(size=(2, 64, 1)) < 0.3).astype(float)
        known = np.concatenate([known * (1 - flag), 0.5 * known * flag, flag], -1)
    tensors = {"context_x": x, "context_y": known, "target_x": t, "target_y": truth}
    tensors |= {
        name: truth + rng.normal(0, math.sqrt(one["metrics"]["mse"]["value"]), truth.shape)
        for name, one in found.items()
    }
    save_file(
        {name: tensor.astype(np.float32) for name, tensor in tensors.items()},
        home / "predictions.safetensors",
    )
    names = ["exterior", "heat", "heater"] if i_dim == 3 else ["value"]
    files.write_json(
        Path("data", PROFILE, "prepared", dataset, "sets.json"),
        {
            "names": {"x": ["x", "y"], "i": names, "o": ["temperature" if i_dim == 3 else "value"]},
            "loss": "mse",
            "standardised": False,
            "units": {"x": ["1", "1"], "i": ["1"] * i_dim, "o": ["1"]},
        },
    )


def stage_records(experiment: str, dataset: str, found: dict[str, dict]) -> None:
    """A record of every stage from acquire to tabulate (sets of points are not decoded), and the
    gate's result."""
    results_project.gate(dataset)
    for stage in ("acquire", "prepare", "validate"):
        results_project.record(stage, dataset)
    for name in found:
        if name not in ("mean", "nearest"):
            results_project.record("train", dataset, name, experiment)
    results_project.record("evaluate", dataset, experiment=experiment)
    results_project.record("tabulate", experiment=experiment)


def build(root: Path) -> None:
    """Both experiments into `root`, which must be the working folder."""
    (root / "stages").symlink_to(ROOT / "stages")
    (root / "data").mkdir()
    (root / "data/published").symlink_to(ROOT / "data/published")
    for experiment, sets in (
        (FIELDS, {"poisson": (POISSON, False), "darcy": (DARCY, False)}),
        (FAILURES, {"copies": (COPIES, False), "sines_5": (SINES, True)}),
    ):
        for seed, (dataset, (values, asked)) in enumerate(sets.items()):
            found = cells(values, asked)
            evaluated(experiment, dataset, found, 3 if dataset == "poisson" else 1, seed)
            stage_records(experiment, dataset, found)
        (root / "reports" / experiment / "companions.csv").write_text(
            (ROOT / "reports" / experiment / "companions.csv").read_text()
        )
