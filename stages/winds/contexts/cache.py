"""Neighbours of every training target, computed once and streamed to disk: (R, C) row numbers, read
back by slice.

neighbours.npy (R, C) int32, -1 where there are fewer; contexts.json says of which rows, slices and
metric. The work goes to `.work/contexts` chunk by chunk and is continued from there after a kill;
the finished folder appears by a rename. A row costs 4 C bytes on disk and none in memory: the file
is mapped. Shapes: R targets of the training split, C neighbours, T targets of one slice.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from stages import files, params
from stages.errors import DataError
from stages.winds.contexts.nearby import MeasuredWinds, Nearby
from stages.winds.pairs import Pairs

CHUNK = (
    16_384  # targets between two words of progress: at most this much is done again after a kill
)
NAME = "neighbours.npy"


class Asker:
    """What a search needs of a model: how many neighbours, under the project's own metric."""

    context = "neighbours"

    def __init__(self, places: int):
        self.places = places

    def metric(self, target_x: torch.Tensor) -> None:
        """The project's own."""


class Cache:
    """Neighbours computed beforehand; `starts` maps a training slice to its first line."""

    def __init__(self, neighbours: np.ndarray, starts: dict[int, tuple[int, int]]):
        self.neighbours, self.starts = neighbours, starts

    @classmethod
    def open(cls, folder: str | Path, pairs: Pairs, settings: params.Contexts) -> "Cache":
        """The finished folder. DataError if it was made for other rows, slices or another
        metric."""
        folder = Path(folder)
        told = files.read_json(folder / "contexts.json")
        expected = facts(pairs, settings)
        if told != expected:
            raise DataError(
                "cached contexts do not belong to this data",
                where=str(folder),
                remedy="run `dvc repro`",
                found=", ".join(
                    f"{key} {told.get(key)!r}" for key in expected if told.get(key) != expected[key]
                ),
            )
        neighbours = np.load(folder / NAME, mmap_mode="r", allow_pickle=False)
        if (
            neighbours.shape != (expected["targets"], settings.places)
            or neighbours.dtype != np.int32
        ):
            raise DataError(
                "cached contexts are not whole",
                where=str(folder / NAME),
                found=f"{neighbours.shape} {neighbours.dtype}",
                expected=f"({expected['targets']}, {settings.places}) int32",
                remedy="run `dvc repro`",
            )
        return cls(neighbours, lines(pairs))

    def rows(self, slice: int) -> np.ndarray | None:
        """Neighbours (T, C) of a slice's targets; None for a slice outside the training split."""
        return (
            self.neighbours[self.starts[slice][0] : self.starts[slice][1]]
            if slice in self.starts
            else None
        )


def lines(pairs: Pairs) -> dict[int, tuple[int, int]]:
    """Training slice -> its lines [first, end) in the file."""
    found, end = {}, 0
    for j in pairs.targets("train"):
        low, high = pairs.rows_of(j)
        found[j], end = (end, end + high - low), end + high - low
    return found


def facts(pairs: Pairs, settings: params.Contexts) -> dict[str, Any]:
    """What the cache rests on."""
    return {
        "rows": len(pairs.t_s),
        "lead_s": pairs.meta["lead_s"],
        "slices": len(pairs.targets("train")),
        "targets": max((end for _, end in lines(pairs).values()), default=0),
        **settings.model_dump(mode="json"),
    }


def compute(pairs: Pairs, settings: params.Contexts, work: Path, final: Path) -> None:
    """Find the neighbours of every training target and put the folder `final`; resumes what
    `work` holds of the same run."""
    told, where = facts(pairs, settings), lines(pairs)
    work.mkdir(parents=True, exist_ok=True)
    progress, shape = work / "progress.json", (told["targets"], settings.places)
    done = files.read_json(progress)["slices"] if progress.exists() else 0
    mode = (
        {"mode": "r+"} if progress.exists() else {"mode": "w+", "dtype": np.int32, "shape": shape}
    )
    table = np.lib.format.open_memmap(work / NAME, **mode)
    nearby = Nearby(
        MeasuredWinds(pairs.t_s, pairs.places, pairs.winds, tuple(pairs.meta["scaler"]["x_mean"])),
        settings,
    )
    asker, slices, since = Asker(settings.places), list(where), 0
    for number in tqdm(
        range(done, len(slices)),
        desc="contexts",
        unit="slice",
        initial=done,
        total=len(slices),
        disable=None,
    ):
        j = slices[number]
        targets = np.arange(*pairs.rows_of(j))
        table[slice(*where[j])] = nearby.neighbours(
            pairs.places(targets), pairs.t_s[targets], pairs.issue_s(j), asker
        )
        since += len(targets)
        if since >= CHUNK:
            table.flush()
            files.write_json(progress, {"slices": number + 1})
            files.fault("contexts")
            since = 0
    table.flush()
    del table
    progress.unlink(
        missing_ok=True
    )  # first: without it a killed move is begun anew, never continued on half a file
    with files.atomic_folder(final) as folder:
        os.replace(work / NAME, folder / NAME)
        files.write_json(folder / "contexts.json", told)
