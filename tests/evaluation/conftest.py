"""A small airspace, prepared by the real preparation, with untrained cells in the real
checkpoint format."""

import numpy as np
import polars as pl
import pytest
import torch

from stages import files, params
from stages.fields.models import axes, build
from stages.params import Prepare
from stages.training import store
from stages.winds import rows as preparation

START = 1_768_456_800.0  # a full minute, 2026-01-15 06:00 UTC
SETTINGS = Prepare(
    slice_s=60,
    lead_s=600,
    embargo_s=0,
    split={"train": ((660, 1800),), "val": ((2460, 3000),), "test": ((3660, 4500),)},
)
MSA = {"width": 12, "heads": 2, "layers": 3}
NOISE = 1.5  # m/s per component, of the measurements


def winds(seed=0, aircraft=14, seconds=4500, quiet=()) -> pl.DataFrame:
    """Aircraft that fly straight through a smooth wind; `quiet` lists intervals (s) without any
    measurement."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, seconds, 12.0)
    parts = []
    for k in range(aircraft):
        course, speed = rng.uniform(0, 2 * np.pi), 220.0
        lat0, lon0, alt = rng.uniform(45, 48), rng.uniform(5, 9), rng.uniform(12_000, 38_000)
        along = ((speed * t + 1e5 * k) % 2e5 - 1e5) / 111_195
        lat = lat0 + along * np.cos(course)
        lon = lon0 + along * np.sin(course) / np.cos(np.radians(46.5))
        parts.append(
            pl.DataFrame(
                {
                    "ts_s": START + t + 0.37 * k,
                    "icao": f"{k:06X}",
                    "lat_deg": lat,
                    "lon_deg": lon,
                    "alt_ft": alt + 2 * t,
                    "record": (np.arange(len(t)) * aircraft + k).astype(np.uint32),
                }
            )
        )
    frame = pl.concat(parts)
    lat, lon, alt, s = (frame[c].to_numpy() for c in ("lat_deg", "lon_deg", "alt_ft", "ts_s"))
    true = np.stack(
        [
            18 + alt / 2000 + 4 * np.sin(lat + (s - START) / 3000),
            -6 + 5 * np.cos(lon - (s - START) / 4000),
        ],
        1,
    )
    seen = true + rng.normal(0, NOISE, true.shape)
    frame = frame.with_columns(
        u_m_s=seen[:, 0],
        v_m_s=seen[:, 1],
        u_true_m_s=true[:, 0],
        v_true_m_s=true[:, 1],
        file=pl.lit("frames_00.csv"),
    )
    for low, high in quiet:
        frame = frame.filter(~pl.col("ts_s").is_between(START + low, START + high))
    return frame.sort("ts_s", "icao")


def write_cell(folder, name, seed=0, arm="plain", size="none", **arguments):
    """A cell's folder with the checkpoint of an untrained model, which knows what training would
    have told it."""
    torch.manual_seed(seed)
    model = build(name, arguments)
    folder.mkdir(parents=True)
    prepared = files.read_json(folder.parents[5] / "data/mini/prepared/toy/prepared.json")
    metadata = {
        "prepared": {key: prepared[key] for key in ("scaler", "slice_s", "lead_s", "area")},
        "module": f"stages.fields.models.{name}",
        "model": name,
        "arm": arm,
        "size": size,
        "seed": seed,
        "arguments": arguments,
        "x_dim": axes(name),
        "i_dim": 2,
        "o_dim": 2,
    }
    (folder / "weights.safetensors").write_bytes(store.dump(model, metadata))
    return folder


@pytest.fixture(scope="session")
def airspace(tmp_path_factory):
    """root/data/mini/prepared/toy and root/reports/wind_nowcast/mini/runs/toy/CELL."""
    root = tmp_path_factory.mktemp("airspace")
    prepared = root / "data/mini/prepared/toy"
    prepared.mkdir(parents=True)
    winds(quiet=[(3000, 3130)]).write_parquet(
        root / "winds.parquet"
    )  # the context of the first test minutes is missing
    preparation.prepare(root / "winds.parquet", prepared, SETTINGS, 128.61, "mini", "toy")
    runs = root / "reports/wind_nowcast/mini/runs/toy"
    for name in ("day_average", "hour_average", "kernel"):
        write_cell(runs / name, name)
    write_cell(runs / "knn", "knn", neighbours=[4])
    write_cell(
        runs / "gka-swept-none-s0",
        "gka",
        0,
        "swept",
        places=8,
        horizontal_km=80.0,
        vertical_km=2.0,
        time_min=30.0,
    )
    write_cell(runs / "kriging", "kriging", places=8)
    for seed in (0, 1):
        write_cell(
            runs / f"msa-shared-5k-s{seed}",
            "msa",
            seed,
            "shared",
            "5k",
            encoder="shared",
            head="mean",
            **MSA,
        )
    write_cell(
        runs / "msa-gaussian-5k-s0",
        "msa",
        0,
        "gaussian",
        "5k",
        encoder="shared",
        head="gaussian",
        **MSA,
    )
    return root


@pytest.fixture(scope="session")
def settings():
    everything = params.load()
    return everything.model_copy(update={"run": everything.profiles["mini"]})


@pytest.fixture(scope="session")
def runs(airspace):
    return airspace / "reports/wind_nowcast/mini/runs/toy"
