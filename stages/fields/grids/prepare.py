"""Tasks on and off the grid prepared: checked, as models read them, with the bound of each split.
Nothing is standardised: values have about unit variance; but real fields are, and their tasks drawn
here (stale.py, world.py). What is written: kept.py."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from safetensors.numpy import save

from stages import files, records, runner
from stages.errors import DataError
from stages.fields.grids import stale, world
from stages.fields.grids.acquire import SPLITS
from stages.fields.grids.layout import ABOUT, TASKS
from stages.fields.grids.settings import Coupled, Stale, Told, Whole, coupled_of, grids_of
from stages.fields.problems.coupled.tasks import READS
from stages.scores.scores import log_likelihood

MODULE = "stages.fields.grids.prepare"
SINGLE = ("context_x", "context_y", "target_x", "target_y", "grid_y")  # float32: what networks read
LAWS = tuple(f"{reads}_{part}" for reads in READS for part in ("mean", "sd"))
Arrays = dict[str, np.ndarray]


def plan(asked: runner.Asked) -> runner.Work:
    """data/P/raw/D to data/P/prepared/D. InputError for a data set of another family."""
    profile, dataset = asked["profile"], asked["dataset"]
    known = grids_of(asked.parameters, profile).datasets
    runner.known("set of tasks on a grid", dataset, known)
    told = coupled_of(asked.parameters, dataset)
    raw, final = asked.data("raw"), asked.data("prepared")

    def do() -> dict[str, Path]:
        with files.atomic_folder(final) as folder:
            write(raw, folder, told)
        return records.outputs_of(final, final)

    return runner.Work(
        stage="prepare",
        cell=f"{profile}/{dataset}",
        record=records.location("prepare", profile, dataset),
        do=do,
        inputs=[raw],
        code=[MODULE],
        params={"made": told.model_dump(mode="json")},
    )


def loaded(path: Path, told: Coupled, tasks: int) -> Arrays:
    """The arrays of a raw split, checked. DataError for what is missing, of another shape or not
    finite."""
    try:
        with np.load(path, allow_pickle=False) as found:
            arrays = {name: found[name] for name in (*SINGLE, *LAWS, "real")}
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise DataError(
            "raw tasks cannot be read",
            where=str(path),
            found=f"{type(error).__name__}: {error}",
            remedy="run `dvc repro`",
        ) from None
    cells, points = len(told.made().places), (tasks, told.context)
    shapes = {
        "context_x": (*points, told.axes), "context_y": (*points, 1), "real": points,
        "target_x": (tasks, told.targets, told.axes), "target_y": (tasks, told.targets, 1),
        "grid_y": (tasks, cells),
    } | dict.fromkeys(LAWS, (tasks, told.targets))  # fmt: skip
    for name, array in arrays.items():
        if array.shape != shapes[name]:
            raise DataError(
                "a raw array has another shape",
                where=f"{path}: {name}",
                expected=str(shapes[name]),
                found=str(array.shape),
            )
        if not np.isfinite(array).all():
            at = tuple(np.argwhere(~np.isfinite(array))[0].tolist())
            raise DataError(
                "a raw array holds numbers that are not finite",
                where=f"{path}: {name}",
                expected="finite numbers",
                found=f"{array[at]} at {at}",
                remedy="acquire the data set again",
            )
    return arrays


def write(raw: Path, folder: Path, told: Told) -> None:
    """Read, check and write."""
    if isinstance(told, Stale):
        stale.write(raw, folder, told)
        return
    if isinstance(told, Whole):
        world.write(raw, folder, told)
        return
    tensors: Arrays = {}
    bounds: dict[str, Any] = {}
    for split in SPLITS:
        arrays = loaded(raw / f"{split}.npz", told, getattr(told, split))
        for name, array in arrays.items():
            tensors[f"{split}.{name}"] = array.astype(np.float32) if name in SINGLE else array
        bounds[split] = {}
        for reads in READS:
            law = arrays[f"{reads}_mean"], arrays[f"{reads}_sd"]
            reached = log_likelihood(*law, arrays["target_y"][..., 0]).mean(1)
            error = float(reached.std(ddof=1) / np.sqrt(len(reached)))
            found = {"value": float(reached.mean()), "standard_error": error, "n": len(reached)}
            bounds[split][reads] = found
    made = told.made()
    (folder / TASKS).write_bytes(save(dict(sorted(tensors.items()))))
    mean, sd = made.prior
    files.write_json(
        folder / ABOUT,
        {
            "made": told.model_dump(mode="json"),
            "bound": bounds,
            "prior": {"mean": mean, "sd": sd},
            "axes": [axis.tolist() for axis in made.axes],
            "sphere": made.sphere,
            "unit": list(told.unit),
        },
    )


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Prepare the tasks that are kept: checked, with their bounds."
    return runner.command(MODULE, about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
