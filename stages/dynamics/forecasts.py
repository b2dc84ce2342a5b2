"""What is measured of free runs (document R, chapter 3): NRMSE(t), valid prediction time, power
spectrum; what left the finite numbers is told as diverged, at its step.

Shapes: B starts, H steps ahead, O observed, standardised. R's equations 37 to 39 as errata have
them: the root of the mean over components of (error / sd)^2; t* is the last time up to which it was
below the threshold; the spectrum is 20 log10(2 |rfft| / H), averaged over components and starts. A
valid time is given as t* times the largest Lyapunov exponent, in Lyapunov times, and as equation 38
prints it, t* over the exponent.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.scores import few

Array = np.ndarray
LEAST = 1e-12  # of an amplitude whose logarithm is taken
LEVELS = (0.05, 0.5, 0.95)  # of the starts, in a curve's band


@dataclass(frozen=True)
class Truth:
    """What forecasts are measured by: the observations (B, H, O), each start's member (B,), time
    between observations, the exponent, the threshold, how many last steps make the spectrum."""

    values: Array
    member: Array
    step: float
    exponent: float
    threshold: float
    spectrum: int


def nrmse(forecast: Array, truth: Array) -> Array:
    """(B, H); infinite from where a forecast is no number."""
    with np.errstate(over="ignore", invalid="ignore"):
        error: Array = np.sqrt(((forecast - truth) ** 2).mean(2))
    return np.where(np.isfinite(error), error, np.inf)


def valid(error: Array, threshold: float) -> Array:
    """How many steps from the first each start's NRMSE (B, H) stays below the threshold (B,)."""
    found: Array = np.cumprod(error < threshold, axis=1).sum(1)
    return found


def spectrum(values: Array) -> Array:
    """The mean power spectrum of values (B, H, O), decibels (H / 2 + 1,)."""
    size = 2.0 * np.abs(np.fft.rfft(values, axis=1)) / values.shape[1]
    found: Array = (20.0 * np.log10(np.maximum(size, LEAST))).mean((0, 2))
    return found


def diverged(forecast: Array) -> Array:
    """The step (from 1) at which each start's forecast (B, H, O) first is no number; 0 where it
    never is (B,)."""
    lost = ~np.isfinite(forecast).all(2)
    return np.where(lost.any(1), lost.argmax(1) + 1, 0)


def forecast_metrics(forecast: Array, truth: Truth) -> dict[str, Any]:
    """The metrics of forecasts (B, H, O) with 90 % intervals over members, and where they
    diverged."""
    error = nrmse(forecast, truth.values)
    steps = valid(error, truth.threshold)
    lost = diverged(forecast)
    time = steps * truth.step

    def mean(values: Array, unit: str) -> dict[str, Any]:
        return few.mean_of(values, truth.member, unit)

    found = {
        "vpt": mean(time * truth.exponent, "Lyapunov times"),
        "vpt_document": mean(time / truth.exponent, "time squared"),
        "valid_time": mean(time, "time"),
        "zero": mean((steps == 0).astype(float), "1"),
        "diverged": mean((lost > 0).astype(float), "1"),
        "capped": mean((steps == forecast.shape[1]).astype(float), "1"),
    }
    first = error[:, 0]
    if np.isfinite(first).all():
        found["nrmse_1"] = mean(first, "standard deviations")
    whole = forecast[lost == 0][:, -truth.spectrum :]
    if len(whole):
        gap = spectrum(whole) - spectrum(truth.values[lost == 0][:, -truth.spectrum :])
        found["psd_db"] = {"value": float(np.abs(gap).mean()), "unit": "dB", "n": len(whole)}
    return {"metrics": found, "diverged_at": sorted(set(lost[lost > 0].tolist()))[:5]}


def curve(error: Array) -> dict[str, list[float | None]]:
    """The band of NRMSE (B, H) over starts: level -> a number a step, None where it is
    infinite."""
    bands = np.quantile(error, LEVELS, axis=0, method="inverted_cdf")
    return {
        f"{level:g}": [float(f"{one:.4g}") if np.isfinite(one) else None for one in band]
        for level, band in zip(LEVELS, bands, strict=True)
    }
