"""A small project whose profile `live` stands ready to be judged: captures, prepared winds,
records, trained cells, a clean commit.

Everything lies in the working folder. Winds are a smooth field with noise of 1.5 m/s, so the mean
of the eight nearest reports beats the nearest one; cells are baselines in the real checkpoint
format, and every record is made by the project's own code.
"""

import subprocess
from pathlib import Path

import numpy as np
import polars as pl

from stages import files, params, records
from stages.fields.models import axes, build
from stages.params import Prepare
from stages.training import store
from stages.winds import rows as preparation

ROOT = Path(__file__).parents[2]
START = 1_768_456_800.0  # a full minute, 2026-01-15 06:00 UTC
LEAD = 600
RAW, DECODED, PREPARED = (
    Path("data/live", part, "captures") for part in ("raw", "decoded", "prepared")
)
RUNS = Path("reports/wind_nowcast/live/runs/captures")
GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false")
BETTER, WORSE = {"neighbours": [8]}, {"neighbours": [64]}  # of knn; persistence is k = 1


def split(seconds: int) -> Prepare:
    """The last forty minutes test, ten select, the first slices with a context train."""
    test = seconds - 2400
    return Prepare(
        slice_s=60,
        lead_s=LEAD,
        embargo_s=0,
        split={
            "train": ((LEAD + 60, test - 2 * LEAD - 720),),
            "val": ((test - LEAD - 660, test - LEAD - 60),),
            "test": ((test, seconds),),
        },
    )


def winds(
    seconds: int, seed: int = 0, aircraft: int = 14, shift: float = 0.0, field: bool = True
) -> pl.DataFrame:
    """Aircraft that fly straight through a smooth wind (`field` False: through one of noise
    alone), `shift` m/s stronger."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, seconds, 12.0)
    parts = []
    for k in range(aircraft):
        course = rng.uniform(0, 2 * np.pi)
        lat0 = rng.uniform(45, 48)
        lon0 = rng.uniform(5, 9)
        alt = rng.uniform(12_000, 38_000)
        along = ((220.0 * t + 1e5 * k) % 2e5 - 1e5) / 111_195
        parts.append(
            pl.DataFrame(
                {
                    "ts_s": START + t + 0.37 * k,
                    "icao": f"{k:06X}",
                    "lat_deg": lat0 + along * np.cos(course),
                    "lon_deg": lon0 + along * np.sin(course) / np.cos(np.radians(46.5)),
                    "alt_ft": alt + 0 * t,
                }
            )
        )
    frame = pl.concat(parts).sort("ts_s", "icao")
    lat, lon, alt = (frame[name].to_numpy() for name in ("lat_deg", "lon_deg", "alt_ft"))
    true = np.stack(
        [18 + shift + field * (alt / 2000 + 4 * np.sin(lat)), -6 + field * 5 * np.cos(lon)], 1
    )
    seen = true + rng.normal(0, 1.5, true.shape)
    return frame.with_columns(
        u_m_s=seen[:, 0],
        v_m_s=seen[:, 1],
        u_true_m_s=pl.lit(None, pl.Float64),
        v_true_m_s=pl.lit(None, pl.Float64),
        file=pl.lit("a.csv"),
        record=pl.int_range(pl.len(), dtype=pl.UInt32),
    )


def settings(**retraining) -> params.Params:
    """The project's own parameters, with a challenger that needs no training, and what is asked."""
    everything = params.load(ROOT / "params.yaml")
    asked = everything.retraining.model_copy(
        update={
            "challengers": ("wind_nowcast/knn",),
            "first_against": "wind_nowcast/persistence",
            "slices_least": 20,
        }
        | retraining
    )
    return everything.model_copy(update={"retraining": asked})


def git(*arguments: str) -> str:
    """A git command in the working folder."""
    return subprocess.run([*GIT, *arguments], capture_output=True, text=True, check=True).stdout


def commit() -> None:
    """Everything in the working folder but data and results."""
    Path(".gitignore").write_text(".work/\ndata/\nreports/wind_nowcast/\nreports/wind_baselines/\n")
    Path("code.py").write_text("1\n")
    Path("params.yaml").write_text("a: 1\nrun: *mini\n")
    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "first")


def record(
    stage: str,
    inputs: list[Path],
    outputs: list[Path],
    cell: str | None = None,
    experiment: str = "wind_nowcast",
) -> None:
    """The record of a stage, from the bytes as they are."""
    made = records.make(
        stage,
        f"live/captures{cell or ''}",
        inputs=inputs,
        outputs={p.as_posix(): p for p in records.files_in(outputs)},
        params={},
        code={"modules": [], "digest": "0" * 64, "files": {}},
    )
    files.write_json(
        records.location(
            stage, "live", "captures", experiment=experiment if cell else None, cell=cell
        ),
        made,
    )


def capture(name: str, table: pl.DataFrame, seconds: int) -> None:
    """Take a capture in (its content does not matter here) and make everything up to the
    prepared data from `table`."""
    for folder in (RAW, DECODED, PREPARED):
        folder.mkdir(parents=True, exist_ok=True)
    (RAW / name).write_text(name)
    hashes = {path.name: {"sha256": files.sha256(path)} for path in sorted(RAW.glob("*.csv"))}
    files.write_json(
        RAW / "manifest.json",
        {"dataset": "captures", "entry": "frames", "kind": "captures", "files": hashes},
    )
    table.write_parquet(DECODED / "winds.parquet")
    record("decode", [RAW], [DECODED])
    gate = Path("data/live/validated/captures.json")
    files.write_json(gate, {"success": True})
    record("validate", [RAW, DECODED], [gate])
    preparation.prepare(
        DECODED / "winds.parquet", PREPARED, split(seconds), 128.61, "live", "captures"
    )
    record("prepare", [DECODED / "winds.parquet", gate], [PREPARED])


def cell(
    name: str,
    model: str | None = None,
    seed: int = 0,
    experiment: str = "wind_nowcast",
    **arguments,
) -> Path:
    """A trained cell of an experiment and its record; its checkpoint knows the prepared data as
    training would have told it."""
    import torch

    torch.manual_seed(seed)
    model = model or name.partition("-")[0]
    net, meta = build(model, arguments), files.read_json(PREPARED / "prepared.json")
    metadata = {
        "model": model,
        "arm": "plain",
        "size": "none",
        "seed": seed,
        "arguments": arguments,
        "x_dim": axes(model),
        "i_dim": 2,
        "o_dim": 2,
        "dataset": "captures",
        "profile": "live",
        "prepared": {key: meta[key] for key in ("scaler", "slice_s", "lead_s", "area")},
    }
    if model == "knn":
        net.neighbours.fill_(arguments["neighbours"][0])
    folder = Path("reports", experiment, "live/runs/captures", name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "weights.safetensors").write_bytes(store.dump(net, metadata))
    files.write_json(folder / "history.json", {"status": "completed", "seed": seed})
    record("train", [PREPARED], [folder], name, experiment)
    return folder


def build_first(seconds: int = 7200, **arguments) -> None:
    """The state after the first captures: data, a challenger `knn` and the baseline
    `persistence`, in a clean commit."""
    capture("20260115T060000Z-aaaa.csv", winds(seconds), seconds)
    cell("persistence")
    cell("knn", **(arguments or BETTER))
    commit()
