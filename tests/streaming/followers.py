"""Untrained models beside a stream of the small sky."""

from pathlib import Path

import torch
from sky_frames import SETTINGS

from stages.fields.models import build
from stages.winds.streaming.answering import Answering, asked

PREPARED = {
    "slice_s": 60.0,
    "lead_s": 600.0,
    "area": {"lat_deg": [44.0, 49.4], "lon_deg": [4.0, 10.5], "alt_ft": [13_000.0, 40_000.0]},
    "scaler": {
        "x_mean": [46.7, 7.2, 30_000.0],
        "x_std": [1.5, 1.8, 7000.0],
        "y_mean": [15.0, -5.0],
        "y_std": [12.0, 10.0],
    },
}
WINDOW_S = 600.0  # of the Kalman filter, so that winds are let go within the sky's hour
MSA = {"width": 12, "heads": 2, "layers": 2}
MODELS = {
    "kalman": {},
    "kriging": {"places": 8},
    "msa": {"encoder": "shared", "head": "gaussian", **MSA},
    "persistence": {},
    "trend": {},
}
PLACE = "46.5,7.2,FL340,+lead"


def given(*at, **more):
    return {"at": list(at) or [PLACE], "points": None, "grid": None, "route": None, **more}


def follower(name="persistence", *at, every_s=60.0, **more) -> Answering:
    torch.manual_seed(0)
    net = build(name, MODELS[name]).eval()
    if name == "kalman":
        net.window_s = WINDOW_S
    points = asked(PREPARED, **given(*at, **more))
    cell = (net, PREPARED, Path("nowhere") / name, "")
    return Answering(cell, points, SETTINGS, every_s=every_s)
