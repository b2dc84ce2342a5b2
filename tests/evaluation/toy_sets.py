"""Small sets, prepared as the project prepares them, and untrained cells of them."""

from pathlib import Path

import numpy as np
import torch

from stages import files
from stages.fields import problem as preparation
from stages.fields.evaluation_data import Settings
from stages.fields.models import build
from stages.fields.sets import PreparedSets
from stages.training import store

SETTINGS = Settings(batch=8, resamples=200, seed=0)


COUNTS, POINTS = {"train": 30, "val": 12, "test": 21}, 24


def toy(copies: bool, seed=0) -> preparation.Sets:
    """Copies: targets are the context's points in another order. Else two values in, one other
    quantity out, all standardised."""
    draw = np.random.default_rng(seed)
    count = sum(COUNTS.values())
    split = np.repeat([0, 1, 2], list(COUNTS.values()))
    x = draw.normal(size=(count, POINTS, 2))
    order = np.argsort(draw.random((count, POINTS)), 1)[..., None]
    y = draw.normal(size=(count, POINTS, 1))
    common = {
        "split": split,
        "source": split,
        "record": np.arange(count),
        "files": ("a.npy", "b.npy", "c.npy"),
        "group": np.arange(count) // 3,
    }
    if copies:
        return preparation.Sets(
            x,
            y,
            np.take_along_axis(x, order, 1),
            np.take_along_axis(y, order, 1),
            **common,
            loss="mse",
            standardise=False,
            units={"x": ("1", "1"), "i": ("1",), "o": ("1",)},
            names={"x": ("x", "y"), "i": ("value",), "o": ("value",)},
        )
    heat = np.concatenate([7 + 3 * y, 100 * draw.normal(size=y.shape)], 2)
    return preparation.Sets(
        1000 + 50 * x,
        heat,
        1000 + 50 * draw.normal(size=(count, 10, 2)),
        280 + 5 * draw.normal(size=(count, 10, 1)),
        **common,
        loss="rmse",
        standardise=True,
        units={"x": ("m", "m"), "i": ("W", "Pa"), "o": ("K",)},
        names={"x": ("east", "north"), "i": ("heat", "pressure"), "o": ("temperature",)},
    )


def cell(runs: Path, model="cnp", seed=0, targets=None, **dims):
    """An untrained cell as training writes it."""
    torch.manual_seed(seed)
    built = build(model, {"encoder": "shared"}, {"width": 8}, **dims)
    folder = runs / f"{model}-shared-20k-s{seed}"
    folder.mkdir(parents=True)
    meta = {
        "module": f"stages.fields.models.{model}",
        "model": model,
        "arm": "shared",
        "size": "20k",
        "seed": seed,
        "arguments": {"encoder": "shared", "width": 8},
        **dims,
        "targets": targets,
    }
    (folder / "weights.safetensors").write_bytes(store.dump(built, meta))
    files.write_json(
        folder / "history.json",
        {
            "status": "completed",
            "val": [{"step": 50, "loss": 0.5, "mse": 1.0}, {"step": 100, "loss": 0.25, "mse": 1.0}],
        },
    )
    return folder


def read(project, name):
    return files.read_json(project / "evaluated" / name / "metrics.json")


def heat_again(project, run, permuted=False):
    """Predicted and measured values (S, T, 1) in K of the test sets, by hand."""
    made = toy(False)
    model, _ = store.load(str(project / "runs/heat" / run / "weights.safetensors"))
    scaler = files.read_json(project / "prepared/heat/sets.json")["scaler"]

    def scaled(values, key):
        return torch.tensor(
            (values - scaler[f"{key}_mean"]) / scaler[f"{key}_std"], dtype=torch.float32
        )

    held, answers = PreparedSets.open(project / "prepared/heat"), []
    chosen = np.flatnonzero(made.split == 2)
    asked = 4 if run.startswith("msa") else 10
    for number in chosen:
        batch = held.batch(torch.tensor([number]))
        torch.testing.assert_close(batch.context_x[0], scaled(made.context_x[number], "x"))
        parts = [
            model(held.batch(torch.tensor([number]), torch.arange(10)[first : first + asked])).mean
            for first in range(0, 10, asked)
        ]
        answers.append(torch.cat(parts, 1)[0].detach().numpy() * scaler["o_std"] + scaler["o_mean"])
    return np.stack(answers), made.target_y[chosen]
