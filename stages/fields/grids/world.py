"""One field of the whole globe prepared: read, parted by strips of longitudes, standardised by the
strips that train, its kept tasks drawn and answered by the rivals. What is written beside what
kept.py tells:

world.safetensors: `values` (p, q') float32 at the longitudes (q',) of the strips that train alone,
and `cells` (M,), which are known everywhere. globe.safetensors: `field` (p, q) at all nodes, the
`points` (P,) that the map reads, by their number row by row, and what each rival says of the nodes
of the strips that test, `nodes` (N,), reading those points. tasks.safetensors: `block`, which tasks
go together. about.json: `origin`, what a value of 0 is; `shape`, latitudes and longitudes.
"""

from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from stages import files
from stages.errors import DataError
from stages.fields.grids.layout import ABOUT, GLOBE, TASKS, WORLD
from stages.fields.grids.settings import Whole
from stages.fields.problems.coupled.tasks import Tasks
from stages.fields.problems.functions.plans import Kept
from stages.fields.problems.stale import rivals, world
from stages.fields.problems.stale.world import Field, World

KEPT = ("val", "test")
CHUNK = 4096  # nodes of the map that rivals answer at once
Arrays = dict[str, np.ndarray]


def process(field: Field, cells: np.ndarray, told: Whole, split: str, targets: int) -> World:
    """What draws a split's tasks of a standardised field."""
    window = round(told.window_deg / (world.TURN / len(field.lon)))
    strips = getattr(told.strips_deg, split)
    return World(field.only(strips), cells, strips, told.block, window, told.context, targets)


def write(raw: Path, folder: Path, told: Whole) -> None:
    """Read, part, standardise, draw and write. Raises as world.read; InputError where windows or
    strips do not fit the field."""
    found = world.read(raw, told.block)
    origin, scale = found.only(told.strips_deg.train).moments()
    field = Field(found.lat, found.lon, (found.values - origin) / scale)
    cells = world.cells(field, told.block)
    train = process(field, cells, told, "train", told.targets)
    learned = rivals.carried(train, told.seed)
    tensors: Arrays = {}
    for split in KEPT:
        mine = process(field, cells, told, split, told.targets)
        its = tasks(mine, learned, getattr(told, split), told, split)
        tensors |= {f"{split}.{name}": array for name, array in its.items()}
    (folder / TASKS).write_bytes(save(dict(sorted(tensors.items()))))
    own = world.inside(found.lon, told.strips_deg.train)
    trains = {"values": field.values[:, own], "cells": cells, "lon": found.lon[own]}
    single = {name: np.ascontiguousarray(one, np.float32) for name, one in trains.items()}
    (folder / WORLD).write_bytes(save(single))
    (folder / GLOBE).write_bytes(save(whole(train, field, learned, told)))
    about = {
        "made": told.model_dump(mode="json"),
        "bound": {},
        "prior": {"mean": 0.0, "sd": 1.0},
        "axes": [axis.tolist() for axis in train.axes],
        "sphere": True,
        "unit": [scale, "K"],
        "origin": origin,
        "shape": [len(found.lat), len(found.lon)],
        "lat": found.lat.tolist(),
        "lon": found.lon.tolist(),
        "kriging": {name: float(value) for name, value in vars(learned.shift).items()},
    }
    files.write_json(folder / ABOUT, about)


def tasks(mine: World, learned: rivals.Carried, count: int, told: Whole, split: str) -> Arrays:
    """The kept tasks of a split, by name, with the rivals' laws of them."""
    drawn, middle = mine.placed(count, Kept(told.seed, split))
    found = {
        name: np.ascontiguousarray(array, None if name == "real" else np.float32)
        for name, array in drawn.arrays().items()
    }
    for name, (mean, sd) in rivals.by_points(mine, drawn, learned).items():
        found |= {f"{name}_mean": mean, f"{name}_sd": np.ascontiguousarray(sd)}
    return found | {"block": world.blocks(middle, mine.strips, told.window_deg)}


def places(lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
    """All nodes (N, 2), row by row."""
    return np.stack(np.meshgrid(lat, lon, indexing="ij"), -1).reshape(-1, 2)


def whole(train: World, field: Field, learned: rivals.Carried, told: Whole) -> Arrays:
    """The field, the map's points, drawn by area over the whole globe, and what the rivals that
    read them say of the strips that test."""
    nodes, flat = places(field.lat, field.lon), field.values.ravel()
    area = np.repeat(field.area, len(field.lon))[None]
    points = world.drawn_by(area, told.points, Kept(told.seed, "map").rng())[0]
    asked = np.flatnonzero(world.inside(nodes[:, 1], told.strips_deg.test))
    said: dict[str, list[np.ndarray]] = {}
    for start in range(0, len(asked), CHUNK):
        some = asked[start : start + CHUNK]
        one = Tasks(nodes[points][None], flat[points][None, :, None],
                    np.ones((1, len(points)), dtype=bool), nodes[some][None],
                    flat[some][None, :, None], train.cells[None], {})  # fmt: skip
        for name, law in rivals.by_points(train, one, learned).items():
            for part, values in zip(("mean", "sd"), law, strict=True):
                said.setdefault(f"{name}_{part}", []).append(values[0])
    found = {name: np.concatenate(parts).astype(np.float32) for name, parts in said.items()}
    return found | {"field": field.values.astype(np.float32), "points": points, "nodes": asked}


def loaded(path: Path) -> Arrays:
    """What preparation wrote of the globe. DataError where it is gone or cut short."""
    try:
        found: Arrays = load_file(path)
    except (SafetensorError, OSError) as error:
        raise DataError(
            "the globe's field cannot be read",
            where=str(path),
            found=type(error).__name__,
            remedy="run `dvc repro`",
        ) from None
    return found


def opened(prepared: Path, told: Whole, targets: int) -> World:
    """What training draws from, `targets` a task: no node but of the strips that train has a
    value. DataError where preparation has not written it."""
    about: dict[str, Any] = files.read_json(prepared / ABOUT)
    found = loaded(prepared / WORLD)
    lat, lon = np.array(about["lat"]), np.array(about["lon"])
    values = np.full((len(lat), len(lon)), np.nan)
    values[:, world.inside(lon, told.strips_deg.train)] = found["values"]
    return process(Field(lat, lon, values), found["cells"], told, "train", targets)
