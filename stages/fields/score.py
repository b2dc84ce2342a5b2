"""A lone file of a problem on sets scored with a trained cell: each sample one set of as many
points as the cell's test sets have, drawn as theirs are.

The problem's own reader takes the file, the scaler is the one kept with the weights, predictions
and metrics are those of the evaluation (measure.py). Shapes: S sets, C context points, T targets.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from stages import files, runner
from stages.errors import DataError
from stages.fields import measure, problem
from stages.fields.evaluation_data import EvaluationData, Settings, finite, shuffled
from stages.fields.problems.darcy import lone as darcy
from stages.fields.sets import TABLES, PreparedSets
from stages.scores import lone, shell
from stages.splits import SPLITS
from stages.training import store

READERS = {"darcy": darcy}  # problems of which one file alone can be read
SHOWN = ("rmse", "mse", "r2", "mse_permuted", "rmse_batch_mean", "mse_batch_mean")


def score(asked: lone.Asked) -> lone.Scored:
    """The errors on the file's samples. InputError for a problem whose files cannot be read alone,
    a file of another kind, or one that the cell was trained on."""
    machine, name = asked.machine, asked.dataset
    runner.known("data set of fields", name, asked.profile.learning, "the cell's profile")
    torch.set_num_threads(machine.threads)
    meta = files.read_json(asked.prepared / "sets.json")
    reader: Any = READERS.get(meta["settings"].get("reader"))
    if reader is None:
        raise asked.refuse(
            "a lone file of this problem cannot be read",
            "a cell of " + ", ".join(READERS),
            f"a cell of {meta['settings'].get('reader')}",
            "name another cell",
        )
    model: Any
    model, trained = store.load(str(asked.run / shell.WEIGHTS))
    kept = trained.get("prepared", {})
    if "scaler" not in kept:
        raise DataError(
            "the checkpoint does not say how its values are scaled",
            where=str(asked.run / shell.WEIGHTS),
            remedy="train it again",
        )
    made: darcy.Lone = reader.read(asked, meta)
    seen = reader.trained_on(made, fitted(asked.prepared, meta))
    asked.refuse_seen(seen, f"{seen:,} of {len(made.sets.split):,} samples")
    sets = prepared_of(made.sets, {**meta, **kept}, machine.device)
    settings = Settings.of(
        asked.parameters, asked.cell.partition("/")[0], asked.profile.profile, name, machine
    )
    found = scored(model.to(machine.device).eval(), trained, EvaluationData(sets, settings))
    return lone.Scored(
        metrics=found["metrics"],
        shown=SHOWN,
        counts={
            "samples": len(made.sets.split),
            "context points of each": made.sets.context_x.shape[1],
            "targets of each": made.sets.target_x.shape[1],
        }
        | ({lone.TRAINED_ON: seen} if seen else {}),
        dropped=made.dropped,
        undefined=found["undefined"],
        notes=made.notes,
    )


def scored(model: Any, trained: dict[str, Any], data: EvaluationData) -> dict[Any, Any]:
    """The evaluation's metrics of sets that all are to be tested; targets are asked as many at a
    time as in training."""
    sets, numbers = data.sets, data.sets.split("test")
    count = min(trained.get("targets") or sets.target_y.shape[1], sets.target_y.shape[1])
    predicted = finite(sets.predict(model, numbers, count), "the file's sets")
    permuted = finite(
        sets.predict(model, numbers, count, shuffled(sets, numbers, data.settings.seed)),
        "the file's sets, permuted contexts",
    )
    return measure.scored(data, {"test": predicted}, permuted)


def prepared_of(sets: problem.Sets, meta: dict[str, Any], device: str) -> PreparedSets:
    """The sets standardised by the scaler in `meta`, on a device."""
    tables = {
        name: torch.from_numpy(array).to(device)
        for name, array in problem.arrays(sets, meta["scaler"]).items()
    }
    unit = torch.tensor(meta["scaler"]["o_std"], dtype=torch.float32, device=device)
    places = {"placed": tables["split"], "group": tables["group"]}
    return PreparedSets(**{name: tables[name] for name in TABLES}, **places, unit=unit, meta=meta)


def fitted(folder: Path, meta: dict[str, Any]) -> dict[str, np.ndarray]:
    """The training and validation sets, in the problem's units (float64): TABLES by name."""
    held = PreparedSets.open(folder)
    chosen = (held.placed < SPLITS.index("test")).numpy()
    keys = dict(zip(TABLES, ("x", "i", "x", "o"), strict=True))
    return {
        name: getattr(held, name).numpy()[chosen].astype(np.float64)
        * np.array(meta["scaler"][f"{key}_std"])
        + np.array(meta["scaler"][f"{key}_mean"])
        for name, key in keys.items()
    }
