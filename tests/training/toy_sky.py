"""A toy prepared set: a still wind field that depends on place, seen at random places each
minute, with sensor noise of 0.5 m/s."""

from types import SimpleNamespace

import numpy as np
import torch

from stages import params
from stages.winds.batches import Data
from stages.winds.contexts.given import Contexts
from stages.winds.pairs import Pairs

NOISE_M_S = 0.5
LEAD = 3  # slices
NEARBY = params.Contexts(
    method="linear", places=8, horizontal_km=100.0, vertical_km=2.0, time_min=60.0
)


def columns(slices: int, points: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Rows sorted by time, `points` a slice."""
    draw = np.random.default_rng(seed)
    n = slices * points
    lat, lon, alt = draw.uniform(44, 49, n), draw.uniform(4, 10, n), draw.uniform(15e3, 38e3, n)
    wind = np.stack(
        (20 + 10 * np.sin(1.2 * lat) + alt / 2000, 10 * np.cos(0.9 * lon)), 1
    ) + draw.normal(0, NOISE_M_S, (n, 2))
    t_s = 1.6e9 + np.sort(60.0 * np.repeat(np.arange(slices), points) + draw.uniform(0, 59.9, n))

    def f32(a):
        return a.astype(np.float32)

    return {
        "t_s": t_s,
        "lat_deg": f32(lat),
        "lon_deg": f32(lon),
        "alt_ft": f32(alt),
        "u_m_s": f32(wind[:, 0]),
        "v_m_s": f32(wind[:, 1]),
    }


def meta(table: dict[str, np.ndarray], slices: int) -> dict:
    """prepared.json's content: three quarters of the minutes train, the others validate."""

    def scale(names, how):
        return [float(how(table[name])) for name in names]

    x, y = ["lat_deg", "lon_deg", "alt_ft"], ["u_m_s", "v_m_s"]
    border = LEAD + 1 + 3 * (slices - LEAD) // 4
    return {
        "t0_s": 1.6e9,
        "slice_s": 60,
        "lead_s": 60 * LEAD,
        "columns_x": x,
        "truth": False,
        "kept": len(table["t_s"]),
        "scaler": {
            "x_mean": scale(x, np.mean),
            "x_std": scale(x, np.std),
            "y_mean": scale(y, np.mean),
            "y_std": scale(y, np.std),
        },
        "slices": {
            "train": list(range(LEAD + 1, border)),
            "val": list(range(border, slices)),
            "test": [],
        },
    }


def sky(slices: int = 24, points: int = 12, seed: int = 0) -> Pairs:
    """The toy set in memory."""
    table = columns(slices, points, seed)
    told = meta(table, slices)
    return Pairs(told, table.pop("t_s"), table)


def contexts(pairs: Pairs) -> Contexts:
    """Its contexts."""
    return Contexts(pairs, NEARBY)


def data(pairs: Pairs, context: str = "slice") -> Data:
    """The set as the loop reads it, for a model of that context."""
    return Data(contexts(pairs), SimpleNamespace(context=context), torch.device("cpu"))
