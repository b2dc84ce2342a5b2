"""Rooms with heaters as sets: measurements on heaters and border, temperatures asked for inside
(thesis C.1.2, table C.1).

Raw: k-X.npy (R, 256, 2), k-y.npy (R, 256, 1), both float64, and desc_k.json, R rooms of
{unnorm_boxes, exterior_temp, ...}; real (Alet et al. 2019) or simulated. Context of a room: nine
points of each heater (corners, edge middles, centre) with (0, heat, 1), and as many as are left,
equally spaced on the border from (0, 0) along y = 0, with (exterior, 0, 0): the coding of the data
set's own code, with 64 points; the thesis prints another. Targets: its 256 points, or fewer of them
at random. The rooms of a file share their heaters' places, so whole files are drawn for training,
validation and test: a tenth of them for each of the last two. Not standardised. Shapes: S rooms, C
context points, T targets. Units: none; positions in the unit square.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from stages.arrays import load
from stages.errors import DataError, InputError
from stages.fields.problem import Counts, Sets
from stages.files import read_json
from stages.seeds import stream

POINTS = 256  # of a room, in its files
PER_HEATER = 9
LEAST_BORDER = 4  # points on the border: one a side
KINDS = {"X": r"(\d+)-X\.npy", "y": r"(\d+)-y\.npy", "description": r"desc_(\d+)\.json"}
BORDER_TOLERANCE = 1e-9  # between a target on the border and the exterior
AGAIN = "acquire the data set again"


def numbers(raw: Path) -> list[int]:
    """The numbers k of a folder's files, ascending. DataError unless each has its X, y and
    description, and there are three or more."""
    names = [path.name for path in raw.iterdir()] if raw.is_dir() else []
    found = {
        kind: {int(match[1]) for name in names if (match := re.fullmatch(pattern, name))}
        for kind, pattern in KINDS.items()
    }
    every = set().union(*found.values())
    for kind, there in found.items():
        if there != every:
            missing = sorted(every - there)
            raise DataError(
                f"{len(missing)} file(s) of rooms are missing",
                where=str(raw),
                expected=f"{kind} of number {missing[0]}",
                found=f"{kind} of {len(there)} numbers of {len(every)}",
                remedy=AGAIN,
            )
    if len(every) < 3:
        raise DataError(
            "too few files of rooms for three splits",
            where=str(raw),
            expected="3 or more of k-X.npy, k-y.npy and desc_k.json",
            found=str(len(every)),
            remedy="simulate more `files`, or acquire the data set again",
        )
    return sorted(every)


def _number(value: Any) -> bool:
    return type(value) in (int, float) and np.isfinite(value)


def read_rooms(path: Path) -> list[dict[str, Any]]:
    """The rooms of one description: `exterior_temp` and `unnorm_boxes` of (x0, y0, x1, y1,
    heat). DataError names the room."""
    rooms = read_json(path, list)
    if not isinstance(rooms, list) or not rooms:
        raise DataError(
            "a description holds no rooms",
            where=str(path),
            expected="a list of rooms",
            found=repr(rooms)[:80],
            remedy=AGAIN,
        )
    for at, room in enumerate(rooms):
        boxes = room.get("unnorm_boxes") if isinstance(room, dict) else None
        if not (isinstance(boxes, list) and boxes and _number(room.get("exterior_temp"))):
            raise DataError(
                "a room has no heaters or no exterior temperature",
                where=f"{path}, room {at}",
                found=repr(room)[:120],
                expected="unnorm_boxes, a list, and exterior_temp, a finite number",
                remedy=AGAIN,
            )
        for box in boxes:
            sound = isinstance(box, list) and len(box) == 5 and all(map(_number, box))
            if not (sound and 0 <= box[0] < box[2] <= 1 and 0 <= box[1] < box[3] <= 1):
                raise DataError(
                    "a heater is no box within the room",
                    where=f"{path}, room {at}",
                    found=repr(box)[:120],
                    expected="x0 < x1, y0 < y1 within 0 to 1, and a heat",
                    remedy=AGAIN,
                )
    return rooms


def border(count: int) -> np.ndarray:
    """`count` places equally spaced on the unit square's border, counter-clockwise from (0, 0):
    (count, 2)."""
    way = 4.0 * np.arange(count) / count
    side, along = way.astype(int), way % 1.0
    x = np.choose(side, [along, np.ones(count), 1.0 - along, np.zeros(count)])
    y = np.choose(side, [np.zeros(count), along, np.ones(count), 1.0 - along])
    return np.stack([x, y], 1)


def context(room: dict[str, Any], count: int) -> tuple[np.ndarray, np.ndarray]:
    """A room's measurements: positions (count, 2) and values (exterior, heat, 1 on a heater)
    (count, 3), heaters first, then the border."""
    x, y = [], []
    for x0, y0, x1, y1, heat in room["unnorm_boxes"]:
        across, up = (x0, (x0 + x1) / 2, x1), (y0, (y0 + y1) / 2, y1)
        x += [(a, b) for a in across for b in up]
        y += [(0.0, heat, 1.0)] * PER_HEATER
    left = count - len(x)
    y += [(room["exterior_temp"], 0.0, 0.0)] * left
    return np.concatenate([np.array(x), border(left)]), np.array(y)


def targets(raw: Path, k: int, rooms: list[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Positions (R, 256, 2) and temperatures (R, 256, 1) of file k.

    DataError for other shapes, places outside the room, or a border that has not the exterior's
    temperature.
    """
    x, y = (
        load(raw / f"{k}-{kind}.npy", (len(rooms), POINTS, width), "float64")
        for kind, width in (("X", 2), ("y", 1))
    )
    if not ((x >= 0) & (x <= 1)).all():
        raise DataError(
            "a target lies outside its room",
            where=str(raw / f"{k}-X.npy"),
            expected="0 to 1",
            found=f"{x.min():g} to {x.max():g}",
            remedy=AGAIN,
        )
    outside = np.array([room["exterior_temp"] for room in rooms])[:, None]
    off = np.where(((x == 0) | (x == 1)).any(-1), np.abs(y[..., 0] - outside), 0.0)
    if off.max() > BORDER_TOLERANCE:
        at = int(off.max(1).argmax())
        raise DataError(
            "temperatures and description of a room do not belong together",
            where=f"{raw}, file {k}, room {at}",
            expected=f"the exterior's {outside[at, 0]:g} on the border",
            found=f"a difference of {off[at].max():g}",
            remedy=AGAIN,
        )
    return x, y


def apart(raw: Path, files: dict[int, list[dict[str, Any]]]) -> None:
    """DataError where the same room stands in two files: it could be learned from in one and
    asked for in the other."""
    seen: dict[str, int] = {}
    for k, rooms in files.items():
        for room in rooms:
            other = seen.setdefault(json.dumps([room["unnorm_boxes"], room["exterior_temp"]]), k)
            if other != k:
                raise DataError(
                    "the same room stands in two files",
                    where=str(raw),
                    expected="files of different rooms",
                    found=f"desc_{other}.json and desc_{k}.json share one",
                    remedy=AGAIN,
                )


def parts(seed: int, count: int) -> np.ndarray:
    """The split of `count` files, 0 train, 1 validation, 2 test (count,): a tenth each, at least
    one, of the last two, at random."""
    tenth = max(1, count // 10)
    return stream(seed, "poisson", "split").permutation(
        np.repeat([0, 1, 2], [count - 2 * tenth, tenth, tenth])
    )


def read(raw: Path, seed: int, counts: Counts) -> Sets:
    """All rooms (or `counts.sets` of them, drawn at random) as sets.

    InputError where heaters and border need more context points, or a room has fewer targets, than
    asked; DataError for damaged files.
    """
    every = numbers(raw)
    rooms = {k: read_rooms(raw / f"desc_{k}.json") for k in every}
    most = max(len(room["unnorm_boxes"]) for file in rooms.values() for room in file)
    if counts.context < PER_HEATER * most + LEAST_BORDER:
        raise InputError(
            "too few context points for a room's heaters and border",
            where=str(raw),
            found=str(counts.context),
            expected=f"{PER_HEATER * most + LEAST_BORDER} or more for {most} heaters",
            remedy="raise `context` of this data set",
        )
    if counts.targets > POINTS:
        raise InputError(
            "a room has fewer targets than asked",
            where=str(raw),
            expected=f"at most {POINTS}",
            found=str(counts.targets),
            remedy="lower `targets` of this data set",
        )
    apart(raw, rooms)
    x, y = (
        np.concatenate(arrays)
        for arrays in zip(*(targets(raw, k, rooms[k]) for k in every), strict=True)
    )
    source = np.repeat(np.arange(len(every)), [len(rooms[k]) for k in every])
    record = np.concatenate([np.arange(len(rooms[k])) for k in every])
    kept = np.sort(stream(seed, "poisson", "sets").permutation(len(x))[: counts.sets])
    order = stream(seed, "poisson", "targets").permuted(
        np.tile(np.arange(POINTS), (len(x), 1)), axis=1
    )[kept, : counts.targets, None]
    flat = [room for k in every for room in rooms[k]]
    context_x, context_y = (
        np.stack(arrays)
        for arrays in zip(*(context(flat[s], counts.context) for s in kept), strict=True)
    )
    layouts = {json.dumps([box[:4] for box in flat[s]["unnorm_boxes"]]) for s in kept}
    return Sets(
        context_x=context_x,
        context_y=context_y,
        target_x=np.take_along_axis(x[kept], order, 1),
        target_y=np.take_along_axis(y[kept], order, 1),
        split=parts(seed, len(every))[source[kept]],
        source=source[kept],
        record=record[kept],
        files=tuple(f"desc_{k}.json" for k in every),
        units={"x": ("1", "1"), "i": ("1", "1", "1"), "o": ("1",)},
        names={"x": ("x", "y"), "i": ("exterior", "heat", "heater"), "o": ("temperature",)},
        loss="mse",
        standardise=False,
        facts={"layouts": len(layouts), "most_heaters": most},
    )
