"""Real hourly fields prepared: read, parted, standardised by the hours that train, their kept tasks
drawn and answered by the rivals. What is written beside what kept.py tells:

hours.safetensors: `values` (n, p, q) float32, the hours that train alone, and their `runs`.
tasks.safetensors: of each split `now`, `then`, `day`, whole hours and days since 1970; of "test"
`field` (S, N), the present at all nodes. about.json: `origin`, what a value of 0 is; `shape` of the
nodes, where they are, and their latitudes and longitudes.
"""

from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from stages import files
from stages.errors import DataError
from stages.fields.grids.layout import ABOUT, HOURS, TASKS
from stages.fields.grids.settings import Stale
from stages.fields.problems.functions.plans import Kept
from stages.fields.problems.stale import month, rivals
from stages.fields.problems.stale.tasks import Month

KEPT = ("val", "test")
Arrays = dict[str, np.ndarray]


def joined(values: np.ndarray, runs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The hours of some runs alone, and the runs among them."""
    lengths = runs[:, 1] - runs[:, 0]
    ends = np.cumsum(lengths)
    parts = [values[first:end] for first, end in runs]
    return np.concatenate(parts), np.stack((ends - lengths, ends), 1)


def write(raw: Path, folder: Path, told: Stale) -> None:
    """Read, part, standardise, draw and write. Raises as month.read and month.runs; InputError
    where the fields have too few nodes."""
    found = month.read(raw)
    runs = month.runs(len(found.hour), told.lengths)
    train = joined(found.values, runs["train"])[0]
    origin, scale = float(train.mean()), float(train.std())
    parts, hours = {}, {}
    for split in month.SPLITS:
        values, own = joined((found.values - origin) / scale, runs[split])
        hours[split] = joined(found.hour, runs[split])[0]
        parts[split] = Month(values, own, found.lat, found.lon, told.block, told.age_h,
                             told.context, told.targets)  # fmt: skip
    learned = rivals.fitted(parts["train"], hours["train"], told.seed)
    tensors: Arrays = {}
    for split in KEPT:
        its = tasks(parts[split], hours[split], learned, getattr(told, split), told.seed, split)
        tensors |= {f"{split}.{name}": array for name, array in its.items()}
    kept = parts["train"]
    values = kept.values.astype(np.float32)
    (folder / HOURS).write_bytes(
        save({"values": values, "runs": kept.runs, "hour": hours["train"]})
    )
    (folder / TASKS).write_bytes(save(dict(sorted(tensors.items()))))
    shift = learned.shift
    about = {
        "made": told.model_dump(mode="json"),
        "bound": {},
        "prior": {"mean": 0.0, "sd": 1.0},
        "axes": [axis.tolist() for axis in kept.axes],
        "sphere": False,
        "unit": [scale, "K"],
        "origin": origin,
        "shape": [len(found.lat), len(found.lon)],
        "lat": found.lat.tolist(),
        "lon": found.lon.tolist(),
        "nodes": kept.nodes.tolist(),
        "hours": {split: len(its) for split, its in hours.items()},
        "kriging": {name: float(value) for name, value in vars(shift).items()},
    }
    files.write_json(folder / ABOUT, about)


def tasks(
    part: Month, hour: np.ndarray, learned: rivals.Fitted, count: int, seed: int, split: str
) -> Arrays:
    """The kept tasks of a split, by name, with the rivals' laws of them."""
    asked = part.asked(count, Kept(seed, split))
    found = {
        name: np.ascontiguousarray(array if name == "real" else array.astype(np.float32))
        for name, array in part.tasks_of(asked).arrays().items()
    }
    for name, (mean, sd) in rivals.laws(part, asked, hour, learned).items():
        found |= {f"{name}_mean": mean, f"{name}_sd": np.ascontiguousarray(sd)}
    now = hour[asked.now]
    found |= {"now": now, "then": hour[asked.then], "day": now // rivals.DAY}
    if split == "test":
        flat = part.values.reshape(len(part.values), -1)
        found["field"] = flat[asked.now].astype(np.float32)
    return found


def opened(prepared: Path, told: Stale, targets: int) -> Month:
    """What training draws from: `targets` a task. DataError where preparation has not written
    it."""
    about = files.read_json(prepared / ABOUT)
    try:
        found = load_file(prepared / HOURS)
    except (SafetensorError, OSError) as error:
        raise DataError(
            "the hours that train cannot be read",
            where=str(prepared / HOURS),
            found=type(error).__name__,
            remedy="run `dvc repro`",
        ) from None
    lines = np.array(about["lat"]), np.array(about["lon"])
    return Month(found["values"], found["runs"], *lines, told.block, told.age_h, told.context,
                 targets)  # fmt: skip


def truth(prepared: Path, row: int, about: dict[str, Any]) -> Arrays:
    """Of a test task's picture the present at all nodes, its stamp and the grid's, and the
    latitudes and longitudes."""
    found = load_file(prepared / TASKS)
    told = {name: np.array(about[name]) for name in ("lat", "lon")}
    stamps = np.array([found["test.now"][row], found["test.then"][row]])
    return told | {"field": found["test.field"][row], "stamps": stamps}
