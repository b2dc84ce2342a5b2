"""The point sets in which neighbours are searched: winds as prepared, smoothed random walks, random
points (thesis section 1.4.2).

A prepared set: its first `points` rows in order of time; latitude, longitude, altitude and time
each standardised by mean and standard deviation of those rows (section 1.3.3), a trajectory a
flight, the window the set's own lead in that unit of time. The synthetic sets come from
stages/neighbours/walks.py with the window of params.yaml; simultaneous_points are the document's
random points, all measured at one time: every query sees them all. Queries are points of the set,
drawn without replacement.
Shapes: N points, M queries; columns x, y, z, t, float32, no unit.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import torch
from jaxtyping import Float, Int
from torch import Tensor

from stages import files, seeds
from stages.errors import DataError
from stages.neighbours import walks
from stages.params import Search

COLUMNS = ("lat_deg", "lon_deg", "alt_ft", "t_s")  # x, y, z, t
LENGTH = 500  # points of one synthetic trajectory
SMOOTH, RANDOM, SIMULTANEOUS = "smoothed_random_walk", "random_points", "simultaneous_points"


@dataclass(frozen=True)
class PointSet:
    """Points, whose they are, which of them ask, and how much older (in the unit of t) than the
    asking point the found ones must be."""

    name: str
    points: Float[Tensor, "N 4"]
    trajectory: Int[Tensor, " N"]
    queries: Int[Tensor, " M"]
    window: float

    @property
    def asked(self) -> Tensor:
        """(M, 4) the queries' own points."""
        return self.points[self.queries]

    def seen(self) -> np.ndarray:
        """(M,) how many points each query sees: what linear search must look at."""
        times = self.points[:, 3].double().numpy()
        return np.searchsorted(
            np.sort(times), times[self.queries.numpy()] - self.window, side="right"
        )


def standardised(values: np.ndarray, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Columns (N, 4) with mean 0 and standard deviation 1, and the deviations (4,). DataError
    for a column that does not vary."""
    std = values.std(0) if len(values) else np.zeros(len(COLUMNS))
    if not (std > 0).all():
        raise DataError(
            "a column does not vary, so it has no unit to search in",
            where=where,
            found=", ".join(name for name, s in zip(COLUMNS, std, strict=True) if not s > 0),
        )
    return (values - values.mean(0)) / std, std


def original(prepared: Path, most: int) -> tuple[Tensor, Tensor, float]:
    """Points, trajectories and window of a prepared data set (its folder): its first `most` rows
    in order of time."""
    try:
        rows = (
            pl.scan_parquet(prepared / "rows.parquet")
            .select(*COLUMNS, "flight")
            .head(most)
            .collect()
        )
    except (FileNotFoundError, pl.exceptions.PolarsError) as error:
        raise DataError(
            "the prepared rows cannot be read",
            where=str(prepared / "rows.parquet"),
            found=str(error).splitlines()[0],
            expected=", ".join((*COLUMNS, "flight")),
            remedy="run `dvc repro`",
        ) from None
    values, std = standardised(rows.select(COLUMNS).to_numpy().astype(np.float64), str(prepared))
    lead_s = files.read_json(prepared / "prepared.json")["lead_s"]
    return (
        torch.from_numpy(values.astype(np.float32)),
        torch.from_numpy(rows["flight"].to_numpy().astype(np.int64)),
        float(lead_s / std[3]),
    )


def synthetic(name: str, points: int, seed: int) -> tuple[Tensor, Tensor]:
    """Points (N, 4) and trajectories (N,) of a synthetic set: whole walks of LENGTH points, or
    random points grouped by as many."""
    rng = seeds.stream(seed, "search", name)
    if name == SMOOTH:
        table, trajectory = walks.smoothed_random_walk(
            max(1, points // LENGTH), min(LENGTH, points), rng
        )
    else:
        table, trajectory = walks.random_points(points, rng, LENGTH)
    if name == SIMULTANEOUS:
        table[:, 3] = 0
    return torch.from_numpy(table), torch.from_numpy(trajectory)


def build(name: str, prepared: Path | None, search: Search) -> PointSet:
    """The point set of that name as the parameters want it; `prepared` is the folder of a
    prepared set, None for a synthetic one."""
    if prepared is None:
        (points, trajectory), window = (
            synthetic(name, search.points, search.seed),
            0.0 if name == SIMULTANEOUS else search.window,
        )
    else:
        points, trajectory, window = original(prepared, search.points)
    rng = seeds.stream(search.seed, "search", name, "queries")
    queries = rng.choice(len(points), min(search.queries, len(points)), replace=False)
    return PointSet(name, points, trajectory, torch.from_numpy(queries), window)
