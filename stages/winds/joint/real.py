"""Tasks of a real sky prepared: the reanalysis read, parted into strips, standardised by the nodes
of those that train; the kept tasks drawn, and answered by the rivals. What is written beside what
kept.py tells:

sky.safetensors: `values` (2, h, p, q', k, O) float32 in m/s, at the longitudes (q',) of the strips
that train alone. map.safetensors: of one test task (`row`) a plane of places `x` (N, 4), the wind
there `true` (N, O), and what the rivals say of it. about.json: `mean_m_s` and `unit`, of which a
wind's values are made; the file's hours, heights, latitudes and longitudes.
"""

from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from stages import files
from stages.errors import DataError
from stages.winds.joint import reanalysis, rivals
from stages.winds.joint.law import Answer
from stages.winds.joint.layout import ABOUT, MAP, SKY, SPLITS, TASKS
from stages.winds.joint.operator import Axis
from stages.winds.joint.reanalysis import DEGREE_KM, Field, Sky
from stages.winds.joint.settings import Real
from stages.winds.joint.tasks import Tasks, kept

FIT, EVALUATIONS = 96, 400  # tasks that the rivals' numbers are fitted on, and how often
ACROSS, AHEAD_MIN = 33, 30.0  # places of the map along one axis, and its lead
Arrays = dict[str, np.ndarray]


def sky(field: Field, told: Real, split: str, mean: np.ndarray, sd: float) -> Sky:
    """What draws tasks of one split. DataError where the file is too small for the settings."""
    strips = getattr(told.strips_deg, split)
    grid, first = told.weather, field.hour[0]
    north = np.abs(told.axes[1].nodes).max() / DEGREE_KM
    needs = {
        "latitudes": (told.latitudes_deg[0] - north, told.latitudes_deg[1] + north, field.lat),
        "longitudes": (min(west for west, _ in strips), max(east for _, east in strips), field.lon),
        "hours": (first, first + max(grid.age_h[1], told.memory_min / 60) + told.lead_min[1] / 60,
                  field.hour),
    }  # fmt: skip
    for name, (low, high, axis) in needs.items():
        if low < axis[0] or high > axis[-1]:
            raise DataError(
                f"the file has too few {name} for its tasks",
                where=f"made, {split}",
                expected=f"{low:.2f} to {high:.2f}",
                found=f"{axis[0]:g} to {axis[-1]:g}",
                remedy="lessen what the data set's settings ask",
            )
    return Sky(field.only(strips), strips, told.latitudes_deg, told.traffic, told.axes, mean, sd,
               told.noise_m_s / sd, grid.bias_m_s / sd, grid.noise_m_s / sd)  # fmt: skip


def moments(field: Field, told: Real) -> tuple[np.ndarray, float]:
    """Mean (O,) and standard deviation of what trains, m/s."""
    reach = np.abs(told.axes[1].nodes).max() / DEGREE_KM * np.array([-1.0, 1.0])
    latitudes = np.array(told.latitudes_deg) + reach
    return field.moments(told.strips_deg.train, latitudes, np.array(told.altitude_km))


def write(raw: Path, folder: Path, told: Real) -> None:
    """Read, part, standardise, draw and write. Raises as reanalysis.read and sky."""
    field = reanalysis.read(raw, told.levels_hpa, told.members)
    mean, sd = moments(field, told)
    fit = rivals.drawn(sky(field, told, "train", mean, sd), told.targets, told.seed, FIT)
    learned = rivals.Fitted.of(fit, told.axes, EVALUATIONS)
    alone = rivals.likeliest(fit, fit.context_y, EVALUATIONS)
    tensors: Arrays = {}
    plane: Arrays = {}
    for split in SPLITS:
        mine = sky(field, told, split, mean, sd)
        tasks, where = mine.placed(getattr(told, split), told.targets, kept(told.seed, split))
        told_of = (
            tasks.arrays() | {"where": where} | named(answers(tasks, told.axes, learned, alone))
        )
        tensors |= {f"{split}.{name}": np.ascontiguousarray(one) for name, one in told_of.items()}
        if split == "test":
            plane = pictured(mine, tasks, where, told)
            row = Tasks.of(one_of(tasks, int(plane["row"])) | {"target_x": plane["x"][None]})
            plane |= {key: one[0] for key, one in
                      named(answers(row, told.axes, learned, alone)).items()}  # fmt: skip
    (folder / TASKS).write_bytes(save(dict(sorted(tensors.items()))))
    (folder / MAP).write_bytes(
        save({key: np.ascontiguousarray(plane[key]) for key in sorted(plane)})
    )
    train = np.isfinite(field.only(told.strips_deg.train).values).all((0, 1, 2, 4, 5))
    values = np.ascontiguousarray(field.values[:, :, :, train].astype(np.float32))
    (folder / SKY).write_bytes(save({"values": values, "lon": field.lon[train]}))
    part = {f"winds_{name}": value for name, value in vars(alone[1]).items()}
    about = {
        "made": told.model_dump(mode="json"),
        "bound": {split: {} for split in SPLITS},
        "axes": [axis.middles.tolist() for axis in told.axes],
        "unit": [sd, "m/s"],
        "mean_m_s": mean.tolist(),
        "fitted": learned.numbers | part | {"winds_level": alone[0], "winds_nugget": alone[2]},
        "sky": {name: getattr(field, name).tolist() for name in ("hour", "up", "lat", "lon")},
    }
    files.write_json(folder / ABOUT, about)


def answers(
    tasks: Tasks, axes: tuple[Axis, ...], learned: rivals.Fitted, alone: rivals.Numbers
) -> dict[str, Answer]:
    """What the rivals say of every target."""
    return rivals.laws(tasks, axes, learned) | {
        "winds": rivals.kriged(tasks, alone, tasks.context_y)
    }


def named(laws: dict[str, Answer]) -> Arrays:
    """Means and standard deviations by the law's name."""
    return {f"{law}_{part}": one for law, both in laws.items()
            for part, one in zip(("mean", "sd"), both, strict=True)}  # fmt: skip


def one_of(tasks: Tasks, row: int) -> Arrays:
    """The arrays of one task (1, ...)."""
    return {name: array[row : row + 1] for name, array in tasks.arrays().items()}


def pictured(mine: Sky, tasks: Tasks, where: np.ndarray, told: Real) -> Arrays:
    """Of the test task with the most reports a plane of places at the area's middle height, and
    the wind there."""
    row = int(tasks.real.sum(1).argmax())
    east, north = (np.linspace(-wide / 2, wide / 2, ACROSS) for wide in told.extent_km)
    x = np.stack(np.meshgrid(east, north, indexing="ij"), -1).reshape(-1, 2)
    rest = np.broadcast_to([sum(told.altitude_km) / 2, AHEAD_MIN], x.shape)
    x = np.concatenate((x, rest), 1)
    return {"row": np.array(row), "x": x, "true": mine.winds(x[None], where[row : row + 1])[0],
            "where": where[row]}  # fmt: skip


def opened(prepared: Path, told: Real) -> Sky:
    """What training draws from: no node but of the strips that train has a value. DataError where
    preparation has not written it."""
    about: dict[str, Any] = files.read_json(prepared / ABOUT)
    try:
        found = load_file(prepared / SKY)
        values, lon = found["values"].astype(np.float64), found["lon"]
    except (SafetensorError, OSError, KeyError) as error:
        raise DataError(
            "the sky that trains cannot be read",
            where=str(prepared / SKY),
            found=f"{type(error).__name__}: {error}",
            remedy="run `dvc repro`",
        ) from None
    axes = {name: np.array(one) for name, one in about["sky"].items()}
    whole = np.full((*values.shape[:3], len(axes["lon"]), *values.shape[4:]), np.nan)
    whole[:, :, :, np.searchsorted(axes["lon"], lon)] = values
    field = Field(**axes, values=whole)
    return sky(field, told, "train", np.array(about["mean_m_s"]), about["unit"][0])
