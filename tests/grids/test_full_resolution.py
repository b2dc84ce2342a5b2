"""A field of the whole globe at 0.25 degrees, 721 x 1440 nodes with both poles: cells are found by
index arithmetic, and a model reads and answers it in memory that no token of every cell fits in.

Where the mirror is named the field is the real one of 2 m temperature (ERA5), else a simulated one.
"""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from stages import seeds
from stages.fields import gridded
from stages.fields.grids.regular import regular
from stages.fields.models import build
from stages.fields.problems.coupled.globe import Earth
from stages.fields.processes.laws import Peak
from stages.layers import grid as on
from stages.layers import gridding
from stages.layers.grid import Grid, GriddedBatch

WHERE = Path(os.environ.get("TRADEWIND_MIRROR", "")) / "era5/earthkit/era5.grib"
NAMES = ("latitude", "longitude")
ROWS, COLUMNS, WIDTH, ASKED = 721, 1440, 32, 4096


def field():
    """South to north, from the date line: latitudes, longitudes, kelvin."""
    if WHERE.is_file():
        told = gridded.read(WHERE, ["t2m"])
        return told.lat, told.lon, told.values["t2m"][0]
    lat, lon = np.linspace(-90, 90, ROWS), np.arange(COLUMNS) * 0.25 - 180
    rows = np.stack(np.meshgrid(lat[::20], lon, indexing="ij"), -1)
    coarse = 279 + 21 * Earth(0).mean(0, rows)
    return lat, lon, np.repeat(coarse, 20, 0)[:ROWS]


@pytest.fixture(scope="module")
def globe():
    lat, lon, values = field()
    found = regular(NAMES, lat, lon, (values - 279) / 21, Path("globe"))
    assert found.shape == (ROWS, COLUMNS) and found.sphere and found.mask.all()
    return found


def test_nearest_cells_are_those_of_brute_force_at_poles_and_the_date_line(globe):
    rng = seeds.stream(0, "full resolution")
    north = np.r_[rng.uniform(-90, 90, 8), rng.uniform(89, 90, 4), -89.99, 90.0, 0.1, -45.05]
    east = np.r_[rng.uniform(-180, 180, 12), 179.99, 12.3, -179.99, 179.9]
    x = torch.from_numpy(np.stack((north, east), 1)).float()[None]
    near = on.nearest(globe, x)[0]
    places = globe.places().double()
    for place, cell in zip(x[0].double(), near, strict=True):
        gaps = on.angle(place, places)
        # columns meet at a pole: as near as the nearest, if not that one
        assert gaps[cell] <= gaps.min() + 1e-7
    values = globe.values.flatten(1, 2)[0, near, 0]
    assert torch.isfinite(values).all() and values.min() >= globe.values.min()


def asked(globe, x):
    """One set: the grid without its southernmost row (720 divide into blocks), some points."""
    part = Grid((globe.axes[0][1:], globe.axes[1]), globe.values[:, 1:], globe.mask[:, 1:], True)
    some = torch.tensor([[[48.0, 9.0], [-33.0, 151.0], [89.9, 0.0]]])
    known = torch.ones(1, 3, dtype=torch.bool)
    every = torch.ones(1, len(x), dtype=torch.bool)
    return GriddedBatch(some, torch.tensor([[[0.2], [0.5], [-1.0]]]), known, x[None], every, None,
                        part)  # fmt: skip


def built():
    seeds.everything(0)
    arm = {"encoder": "mhca", "coarsen": "encoder", "patch": 60, "window": 4}
    size = {"surface": "sphere", "width": WIDTH, "heads": 4, "layers": 1, "nearest": 3}
    return build("grid_tnp", arm, size, 2, 1, 1).eval()


@torch.no_grad()
def test_a_model_reads_all_of_it_in_bounded_memory(globe):
    batch = asked(globe, globe.places()[-ASKED:])
    with Peak() as peak:
        law = built()(batch)
    assert torch.isfinite(law.mean).all() and (law.scale > 0).all()
    # what the numbers of a cell and its place take; five tokens of every cell would be 640
    assert peak.most < 320 * ROWS * COLUMNS


@torch.no_grad()
def test_the_plain_way_takes_a_multiple_and_answers_the_same(globe, monkeypatch):
    rows, columns = globe.axes[0][1::3], globe.axes[1][::6]
    part = Grid((rows, columns), globe.values[:, 1::3, ::6], globe.mask[:, 1::3, ::6], True)
    batch, model = replace(asked(globe, globe.places()[:200]), grid=part), built()
    found, most = [], []
    for chunk in (gridding.CHUNK, 1 << 30):
        monkeypatch.setattr(gridding, "CHUNK", chunk)
        with Peak() as peak:
            found.append(model(batch).mean)
        most.append(peak.most)
    torch.testing.assert_close(*found, atol=1e-5, rtol=1e-4)
    assert most[0] < 0.5 * most[1]
