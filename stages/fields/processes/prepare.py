"""Tasks prepared: checked, as models read them, with the bound of each split.

Nothing is standardised: functions have a variance of about one, or lie in [0, 1]. What is written:
kept.py.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from stages import files, records, runner
from stages.errors import DataError
from stages.fields.processes.acquire import SPLITS
from stages.fields.processes.layout import ABOUT, TASKS
from stages.fields.processes.settings import Functions, functions_of, processes_of
from stages.scores.scores import log_likelihood

MODULE = "stages.fields.processes.prepare"

SINGLE = ("context_x", "context_y", "target_x", "target_y")  # float32: what networks read
KNOWN = (*SINGLE, "real", "exact_mean", "exact_sd")
Arrays = dict[str, np.ndarray]


def plan(asked: runner.Asked) -> runner.Work:
    """data/P/raw/D to data/P/prepared/D. InputError for a data set of another family."""
    profile, dataset = asked["profile"], asked["dataset"]
    runner.known("set of functions", dataset, processes_of(asked.parameters, profile).datasets)
    told = functions_of(asked.parameters, dataset)
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


def loaded(path: Path, told: Functions, tasks: int) -> Arrays:
    """The arrays of a raw split, checked. DataError for what is missing, of another shape or not
    finite."""
    try:
        with np.load(path, allow_pickle=False) as found:
            function = [name for name in found if name.startswith("function_")]
            arrays = {name: found[name] for name in (*KNOWN, *function)}
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise DataError(
            "raw tasks cannot be read",
            where=str(path),
            found=f"{type(error).__name__}: {error}",
            remedy="run `dvc repro`",
        ) from None
    points = {"context": told.context, "target": told.targets}
    for name, array in arrays.items():
        width = told.axes if name.endswith("_x") else 1
        count = points["context" if name in ("context_x", "context_y", "real") else "target"]
        whole = (tasks, count, width)
        function = name.startswith("function_")
        shape = whole[: 1 if function else 3 if name in SINGLE else 2]
        if array.shape != shape:
            raise DataError(
                "a raw array has another shape",
                where=f"{path}: {name}",
                expected=str(shape),
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


def write(raw: Path, folder: Path, told: Functions) -> None:
    """Read, check and write."""
    tensors: Arrays = {}
    bounds: dict[str, Any] = {}
    for split in SPLITS:
        arrays = loaded(raw / f"{split}.npz", told, getattr(told, split))
        for name, array in arrays.items():
            tensors[f"{split}.{name}"] = array.astype(np.float32) if name in SINGLE else array
        reached = log_likelihood(
            arrays["exact_mean"], arrays["exact_sd"], arrays["target_y"][..., 0]
        ).mean(1)
        error = float(reached.std(ddof=1) / np.sqrt(len(reached)))
        bounds[split] = {"value": float(reached.mean()), "standard_error": error, "n": len(reached)}
    (folder / TASKS).write_bytes(save(dict(sorted(tensors.items()))))
    mean, sd = told.made().prior
    files.write_json(
        folder / ABOUT,
        {"made": told.model_dump(mode="json"), "bound": bounds, "prior": {"mean": mean, "sd": sd}},
    )


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Prepare the tasks that are kept: checked, with their bound."
    return runner.command(MODULE, about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
