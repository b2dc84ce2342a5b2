"""Tasks of the joint nowcast prepared: checked, with the rivals' laws beside the exact ones. Values
are standardised as they were drawn, by the wind's own mean and standard deviation, which its law
tells. Real skies are standardised, and their tasks drawn, here (real.py). What is written:
kept.py."""

import sys
from collections.abc import Sequence
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from safetensors.numpy import save

from stages import files, records, runner
from stages.errors import DataError
from stages.scores.scores import log_likelihood
from stages.winds.joint import real, rivals
from stages.winds.joint.law import READS
from stages.winds.joint.layout import ABOUT, SPLITS, TASKS
from stages.winds.joint.settings import Made, Real, Told, joint_of, made_of
from stages.winds.joint.tasks import Tasks

MODULE = "stages.winds.joint.prepare"
LAWS = tuple(f"{reads}_{part}" for reads in READS for part in ("mean", "sd"))
Arrays = dict[str, np.ndarray]


def plan(asked: runner.Asked) -> runner.Work:
    """data/P/raw/D to data/P/prepared/D. InputError for a data set of another family."""
    profile, dataset = asked["profile"], asked["dataset"]
    runner.known("joint nowcast", dataset, joint_of(asked.parameters, profile).datasets)
    told = made_of(asked.parameters, dataset)
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


def loaded(path: Path, told: Made, tasks: int) -> Arrays:
    """The arrays of a raw split, checked. DataError for what is missing, of another shape, not
    finite, or newer than it may be."""
    names = (*Tasks.__dataclass_fields__.keys() - {"answers"}, *LAWS)
    try:
        with np.load(path, allow_pickle=False) as found:
            arrays = {name: found[name] for name in names}
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise DataError(
            "raw tasks cannot be read",
            where=str(path),
            found=f"{type(error).__name__}: {error}",
            remedy="run `dvc repro`",
        ) from None
    reports, cells = arrays["real"].shape[-1], len(told.law.cell_places)
    shapes = {
        "context_x": (tasks, reports, 4), "context_y": (tasks, reports, 2),
        "real": (tasks, reports), "grid_y": (tasks, cells, 2), "age": (tasks,),
        "target_x": (tasks, told.targets, 4),
    } | dict.fromkeys(("target_y", "target_true"), (tasks, told.targets, 2))  # fmt: skip
    for name, array in arrays.items():
        part = (tasks, told.targets)
        shape = shapes.get(name, (*part, 2) if name.endswith("_mean") else part)
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
    _late(arrays, told, path)
    return arrays


def _late(arrays: Arrays, told: Made, path: Path) -> None:
    """DataError where something is known too early, or asked too early."""
    times = {
        "reports": (arrays["context_x"][..., 3][arrays["real"]], (-told.memory_min, 0.0), "min"),
        "grids": (-arrays["age"], (-told.weather.age_h[1], -told.weather.age_h[0]), "h"),
        "targets": (arrays["target_x"][..., 3], told.lead_min, "min"),
    }
    for name, (found, (low, high), unit) in times.items():
        if found.min() < low or found.max() > high:
            raise DataError(
                f"{name} are not of the times that are declared",
                where=str(path),
                expected=f"from {low:g} to {high:g} {unit} after now",
                found=f"from {found.min():g} to {found.max():g}",
                remedy="acquire the data set again",
            )


def write(raw: Path, folder: Path, told: Told) -> None:
    """Read, check, ask the rivals and write."""
    if isinstance(told, Real):
        real.write(raw, folder, told)
        return
    learned = rivals.Fitted.of(rivals.drawn(told.sky, told.targets, told.seed), told.axes)
    tensors: Arrays = {}
    bounds: dict[str, dict[str, dict[str, float]]] = {}
    for split in SPLITS:
        arrays = loaded(raw / f"{split}.npz", told, getattr(told, split))
        tasks = Tasks.of({name: array for name, array in arrays.items() if name not in LAWS})
        for name, (mean, sd) in rivals.laws(tasks, told.axes, learned).items():
            arrays |= {f"{name}_mean": mean, f"{name}_sd": sd}
        bounds[split] = {}
        for reads in READS:
            sd = arrays[f"{reads}_sd"][..., None]
            reached = log_likelihood(arrays[f"{reads}_mean"], sd, arrays["target_y"]).mean((1, 2))
            error = float(reached.std(ddof=1) / np.sqrt(len(reached)))
            bounds[split][reads] = {"value": float(reached.mean()), "standard_error": error,
                                    "n": len(reached)}  # fmt: skip
        tensors |= {f"{split}.{name}": np.ascontiguousarray(one) for name, one in arrays.items()}
    (folder / TASKS).write_bytes(save(dict(sorted(tensors.items()))))
    files.write_json(
        folder / ABOUT,
        {
            "made": told.model_dump(mode="json"),
            "bound": bounds,
            "axes": [axis.middles.tolist() for axis in told.axes],
            "unit": [told.sd_m_s, "m/s"],
            "fitted": learned.numbers,
        },
    )


def main(argv: Sequence[str] | None = None) -> int:
    """The stage's command line; its exit code."""
    about = "Prepare the joint nowcast's tasks: checked, with the laws of its rivals."
    return runner.command(MODULE, about, ("profile", "dataset"), plan, argv)


if __name__ == "__main__":
    sys.exit(main())
