"""Prepared tasks of the joint nowcast: what preparation writes, and training and evaluation read.

tasks.safetensors: of "val" and "test" SPLIT.NAME, what a task is (tasks.py) and the exact laws and
those of the rivals (both_mean, linear_sd, ...), float64; of real skies `where` (S, 3), too: the
middle's latitude and longitude, and the hour since 1970 that is now. about.json: how the tasks were
drawn, the grid's axes in km, the exact laws' bounds, what the rivals learned. Judges read this
without torch; what models read of it is in batches.py. Shapes: S tasks.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from stages import files
from stages.errors import DataError
from stages.winds.joint import reanalysis
from stages.winds.joint.law import Answer
from stages.winds.joint.layout import ABOUT, MAP, TASKS
from stages.winds.joint.settings import Real, Told
from stages.winds.joint.tasks import Tasks


@dataclass(frozen=True)
class KeptTasks:
    """One split: its tasks, by name what each law that is kept answers, and where real tasks
    are (S, 3)."""

    tasks: Tasks
    laws: dict[str, Answer]
    where: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.tasks.age)

    def some(self, rows: slice) -> Tasks:
        """The tasks of some rows."""
        named = {key: value[rows] for key, value in vars(self.tasks).items() if key != "answers"}
        return replace(self.tasks, **named)

    def over(self, plane: dict[str, np.ndarray]) -> Tasks:
        """The task that is drawn, asked of its plane."""
        row = plane["row"].item()
        x, nothing = plane["x"][None], np.zeros((1, len(plane["x"]), 2))
        return replace(self.some(slice(row, row + 1)), target_x=x, target_y=nothing,
                       target_true=nothing)  # fmt: skip


def read(folder: Path, split: str) -> KeptTasks:
    """A split of a prepared folder. DataError when it is missing or not what preparation writes."""
    path = folder / TASKS
    try:
        found = load_file(path)
        part = {key.partition(".")[2]: one for key, one in found.items()
                if key.startswith(f"{split}.")}  # fmt: skip
        laws = {
            law: (part.pop(f"{law}_mean"), part.pop(f"{law}_sd"))
            for law in sorted(key.removesuffix("_mean") for key in part if key.endswith("_mean"))
        }
        where = part.pop("where", None)
        return KeptTasks(Tasks.of(part), laws, where)
    except (SafetensorError, OSError, KeyError, TypeError) as error:
        raise DataError(
            "prepared tasks cannot be read",
            where=str(path),
            found=f"{type(error).__name__}: {error}",
            remedy="run `dvc repro`",
        ) from None


def together(test: KeptTasks, made: Told) -> np.ndarray:
    """Which test tasks go together (S,): each for itself, but of a real sky those of one block. A
    strip's latitudes are cut into as many equal blocks as are twice `group_km` or longer; its
    width is not cut, for there all areas overlap."""
    if not isinstance(made, Real):
        return np.arange(len(test))
    assert test.where is not None
    low, high = (latitude * reanalysis.DEGREE_KM for latitude in made.latitudes_deg)
    count = max(int((high - low) // (2 * made.group_km)), 1)
    north = test.where[:, 0] - made.latitudes_deg[0]
    # all of a strip counts as one meridian
    meridian = np.stack((north, np.zeros_like(north)), 1)
    block = reanalysis.squares(meridian, (high - low) / count)
    strip = np.searchsorted([east for _, east in made.strips_deg.test], test.where[:, 1])
    found: np.ndarray = strip * count + block
    return found


def plane(folder: Path) -> dict[str, np.ndarray]:
    """What of a real sky is drawn (real.py). DataError where preparation has not written it."""
    try:
        found: dict[str, np.ndarray] = load_file(folder / MAP)
    except (SafetensorError, OSError) as error:
        raise DataError(
            "the plane that is drawn cannot be read",
            where=str(folder / MAP),
            found=type(error).__name__,
            remedy="run `dvc repro`",
        ) from None
    return found


def about(folder: Path) -> dict[str, Any]:
    """What about.json says."""
    return files.read_json(folder / ABOUT)
