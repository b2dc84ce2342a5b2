"""`python -m tests.benchmarks.bench_flow [--quick]` (`make bench-flow`): what a wind head without
divergence does to a nowcast's field, on the simulated sky.

Two transformers of one form train on reports drawn from one level of the sky at any of its hours: a
plain one and one whose wind is the turned slope of a stream function. Both answer a level that
neither has seen the hours of. Printed beside the truth on the same grid: root mean square of the
divergence and of the shear, their ratio, the slope of the kinetic energy's spectrum, and the error
of a component. Ends with 1 where the stream function's field, differenced as finely as the goal
asks, has more than GOAL of divergence to shear.
"""

import argparse
import sys
from dataclasses import dataclass

import numpy as np
import torch

from stages import params, seeds
from stages.batches import Batch
from stages.fields.models.stream_function import StreamFunction
from stages.fields.models.tnp import TNP
from stages.layers.local import HORIZONTAL_KM
from stages.layers.stream_head import smooth
from stages.units import EARTH_KM
from stages.winds.laws import flow
from stages.winds.sky import wind

GOAL, FINE_DEG = 1e-5, 1e-3  # divergence to shear; step of the differences that it is held to
KNOWN, ASKED, SETS = 48, 48, 4  # reports of a set, targets, sets of a step
SHAPE = (24, 28)  # places of the level that is drawn
HOURS = (0.0, 36.0, 40.0, 48.0)  # train from the first to the second, test from the third on
WIDE = {"width": 32, "heads": 4, "layers": 2}
ALT_M = 10_000.0


@dataclass(frozen=True)
class Level:
    """One level of a sky: its wind and its area, standardised by `mean` and `std` (2,) m/s."""

    sky: wind.Wind
    south: float
    west: float
    span: tuple[float, float]  # degrees
    mean: np.ndarray
    std: np.ndarray

    @classmethod
    def of(cls) -> "Level":
        """That of the data set `simulated`."""
        plan = params.load().datasets["simulated"].simulate
        south, west = plan.south_west
        north_m, east_m = plan.extent_km[1] * 1e3, plan.extent_km[0] * 1e3
        tall = np.degrees(north_m / wind.EARTH_M)
        lat0 = south + tall / 2
        wide = np.degrees(east_m / wind.EARTH_M / np.cos(np.radians(lat0)))
        sky = wind.make(plan.seed, lat0, west + wide / 2, north_m, *plan.altitude_m)
        one = cls(sky, south, west, (tall, wide), np.zeros(2), np.ones(2))
        rng = seeds.stream(0, "bench", "flow", "scaler")
        lat, lon, t_s = one.drawn(rng, 4000, HOURS[:2])
        known = one.truth(lat, lon, t_s)
        return cls(sky, south, west, (tall, wide), known.mean(0), known.std(0))

    def drawn(self, rng: np.random.Generator, count: int, hours: tuple[float, ...]):
        """Places (N,) and seconds (N,), uniform."""
        lat = self.south + self.span[0] * rng.random(count)
        lon = self.west + self.span[1] * rng.random(count)
        return lat, lon, 3600 * rng.uniform(hours[0], hours[1], count)

    def truth(self, lat: np.ndarray, lon: np.ndarray, t_s: np.ndarray | float) -> np.ndarray:
        """The wind (N, 2), m/s."""
        return np.stack(self.sky(lat, lon, ALT_M, t_s), 1)

    def local(self, lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
        """Places as local coordinates (N, 4): east and north, no height, no time."""
        degree = np.radians(1.0) * EARTH_KM / HORIZONTAL_KM
        found = np.zeros((len(lat), 4))
        found[:, 0] = (lon - self.sky.lon0) * degree * np.cos(np.radians(self.sky.lat0))
        found[:, 1] = (lat - self.sky.lat0) * degree
        return found

    def batch(self, rng: np.random.Generator, sets: int, hours: tuple[float, ...]) -> Batch:
        """Sets of reports of one moment each, and targets."""
        x, y = [], []
        for _ in range(sets):
            lat, lon, t_s = self.drawn(rng, KNOWN + ASKED, hours)
            x.append(self.local(lat, lon))
            y.append((self.truth(lat, lon, t_s[0]) - self.mean) / self.std)
        place, value = (torch.from_numpy(np.stack(part)).float() for part in (x, y))
        mask = torch.ones(sets, KNOWN, dtype=torch.bool)
        return Batch(place[:, :KNOWN], value[:, :KNOWN], mask, place[:, KNOWN:],
                     torch.ones(sets, ASKED, dtype=torch.bool), value[:, KNOWN:])  # fmt: skip


def trained(model: torch.nn.Module, level: Level, steps: int) -> torch.nn.Module:
    """The model after so many steps of Adam, cosine schedule."""
    adam = torch.optim.Adam(model.parameters(), 0.005)
    plan = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
    for step in range(steps):
        batch = level.batch(seeds.stream(0, "bench", "flow", step), SETS, HOURS[:2])
        loss = model(batch).loss(batch.target_y).mean()
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        plan.step()
    return model.eval()


def field(model, level: Level, known: Batch, lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
    """A model's wind (P, Q, 2) on axes, m/s, float64, from what the first set of `known` tells."""
    north, east = np.meshgrid(lat, lon, indexing="ij")
    place = torch.from_numpy(level.local(north.ravel(), east.ravel()))[None]
    batch = Batch(
        known.context_x[:1].double(), known.context_y[:1].double(), known.context_mask[:1], place,
        torch.ones(1, place.shape[1], dtype=torch.bool),
    )  # fmt: skip
    with torch.no_grad():
        mean = model.double()(batch).mean[0].numpy()
    return (mean * level.std + level.mean).reshape(len(lat), len(lon), 2)


def divergence(values: np.ndarray, lat: np.ndarray, lon: np.ndarray) -> float:
    """Divergence to shear, root mean squares, on the plane of local coordinates."""
    scale = np.array([np.cos(np.radians((lat[0] + lat[-1]) / 2)), 1.0])
    east, north = (np.gradient(values, lon, axis=1), np.gradient(values, lat, axis=0))
    east, north = east[1:-1, 1:-1] / scale[0], north[1:-1, 1:-1]
    spread = np.square(east[..., 0] + north[..., 1]).mean()
    return float(np.sqrt(spread / (np.square(east) + np.square(north)).sum(2).mean()))


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_flow")
    parser.add_argument("--quick", action="store_true", help="a tenth of the steps")
    steps = 40 if parser.parse_args(argv).quick else 400
    level = Level.of()
    seeds.everything(0)
    plain = smooth(TNP(4, 2, 2, "hyper", **WIDE))
    seeds.everything(0)
    stream = StreamFunction(4, 2, 2, "hyper", **WIDE)
    stream.set_scaler(torch.from_numpy(level.mean), torch.from_numpy(level.std))
    models = {"plain head": plain, "stream function": stream}
    models = {name: trained(one, level, steps) for name, one in models.items()}
    rng = seeds.stream(0, "bench", "flow", "test")
    lat = level.south + level.span[0] * np.linspace(0.1, 0.9, SHAPE[0])
    lon = level.west + level.span[1] * np.linspace(0.1, 0.9, SHAPE[1])
    print(f"{'field':16}  divergence  shear [1e-5/s]   ratio   spectrum  RMSE [m/s]")
    fine = np.arange(-6, 7) * FINE_DEG
    worst, parts = 0.0, {name: [] for name in ("truth", *models)}
    for _ in range(6):
        t_s = 3600 * rng.uniform(*HOURS[2:])
        known = level.batch(rng, 1, (t_s / 3600, t_s / 3600))
        north, east = np.meshgrid(lat, lon, indexing="ij")
        true = level.truth(north.ravel(), east.ravel(), t_s).reshape(*SHAPE, 2)
        for name, rows in parts.items():
            found = true if name == "truth" else field(models[name], level, known, lat, lon)
            told = flow.flow(lat, lon, found[..., 0], found[..., 1])
            error = np.square(found - true).mean()
            rows.append((told.divergence_per_s, told.shear_per_s, told.slope, error))
        near = (level.sky.lat0 + fine, level.sky.lon0 + fine)
        worst = max(worst, divergence(field(stream, level, known, *near), *near))
    for name, rows in parts.items():
        spread, shear, slope, error = np.mean(rows, 0)
        print(
            f"{name:16}  {1e5 * spread:10.3f}  {1e5 * shear:14.3f}  {spread / shear:6.3f}  "
            f"{slope:9.2f}  {np.sqrt(error):10.2f}"
        )
    print(f"stream function, differenced over {FINE_DEG:g} degrees: {worst:.1e} of the shear, "
          f"goal {GOAL:g}: {'met' if worst < GOAL else 'missed'}")  # fmt: skip
    return 0 if worst < GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
