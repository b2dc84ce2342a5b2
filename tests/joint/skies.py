"""A small joint nowcast for tests: a few aircraft, eight cells, two processes."""

from stages.params import checked
from stages.winds.joint.settings import Budget, Made

MADE = {
    "seed": 0,
    "mean_m_s": (20.0, 5.0),
    "parts": (
        {"sd_m_s": 8.0, "horizontal_km": 400.0, "vertical_km": 2.5, "time_min": 4320.0},
        {"sd_m_s": 4.0, "horizontal_km": 150.0, "vertical_km": 2.0, "time_min": 90.0},
    ),
    "noise_m_s": 1.1,
    "extent_km": (300.0, 400.0),
    "altitude_km": (6.0, 12.0),
    "aircraft": 4,
    "every_min": 5.0,
    "memory_min": 20.0,
    "weather": {
        "cells": (2, 3, 2),
        "smooth_km": 60.0,
        "bias_m_s": 1.5,
        "noise_m_s": 0.5,
        "age_h": (1.0, 6.0),
    },
    "lead_min": (5.0, 120.0),
    "targets": 12,
    "val": 8,
    "test": 60,
}
BUDGET = Budget(
    steps=80, validate_every=40, patience=9, learning_rate=0.01, schedule="cosine", tasks=8,
    targets=16,
)  # fmt: skip


def told(**others) -> Made:
    """How the skies are drawn, with other settings."""
    return checked(Made, MADE | others, "made")
