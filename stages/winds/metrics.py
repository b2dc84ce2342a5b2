"""The metrics of a wind forecast (thesis eq. C.5-C.10 as corrected by the errata).

Every metric is a function of sums over points, so one pass over the points gives its value, its
value on any group of slices, and what it is without some of them. `columns` gives what is summed,
`by_slice` sums it, `METRICS` says what is made of the sums. RMSE per component averages over points
AND the two components (the vector's is sqrt(2) larger); `rmse_batch_mean` is the documents' mean
over slices of each slice's RMSE, a smaller number; `rmse_permuted_component` is the RMSE when the
context's winds have changed places among all that are read: one equal to `rmse_component` is of a
model that does not use where they were measured. What is `recalibrated` goes by the validation
minutes (recalibration.py). Sums are in m/s; kn = 1852/3600 m/s.
Shapes: N points, S slices, G runs; vectors are (N, 2): east, north, blowing towards.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.scores import runs, scores
from stages.units import KNOT_M_S

REFERENCE_KT = 450.0  # ground speed at which an along-track wind error is turned into time
Sums = dict[str, np.ndarray]


@dataclass(frozen=True)
class Points:
    """What is known of N forecast points; None where a model or a data set does not give it."""

    slice: np.ndarray  # (N,) int, slice number
    predicted: np.ndarray  # (N, 2) m/s
    measured: np.ndarray  # (N, 2) m/s
    scale: np.ndarray | None = None  # (N, 2) m/s, predicted standard deviation
    truth: np.ndarray | None = None  # (N, 2) m/s, NaN where unknown
    track: np.ndarray | None = (
        None  # (N, 2) unit vector of the aircraft's motion, NaN where unknown
    )
    outside: np.ndarray | None = (
        None  # (N,) bool, prediction outside the hull of its context's values
    )
    outside_measured: np.ndarray | None = None  # (N,) bool, the measurement outside it
    permuted: np.ndarray | None = (
        None  # (N, 2) m/s, predicted from a context whose values have changed places
    )
    y_std: np.ndarray | None = None  # (2,) m/s, the scaler's standard deviations
    spread: np.ndarray | None = None  # (N, 2) m/s, the recalibrated standard deviation

    def take(self, chosen: np.ndarray) -> "Points":
        """The points of a mask or an index."""
        return Points(
            **{
                name: value if value is None or name == "y_std" else value[chosen]
                for name, value in vars(self).items()
            }
        )


def turn(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Angle in degrees, 0 to 180, between vectors (N, 2); NaN where one has no direction."""
    angle = np.degrees(np.arctan2(a[:, 1], a[:, 0]) - np.arctan2(b[:, 1], b[:, 0]))
    wrapped = np.abs((angle + 180.0) % 360.0 - 180.0)
    return np.where((a != 0).any(1) & (b != 0).any(1), wrapped, np.nan)


def along_track_seconds(error: np.ndarray, track: np.ndarray) -> np.ndarray:
    """|time error| in s over 100 NM flown along `track` at REFERENCE_KT, when the wind is wrong by
    `error` m/s (N, 2).

    The component of the error across the track costs no time (to first order), and the speed is a
    stated one, so that the figure measures the wind forecast and not which aircraft happened to
    fly. NaN where the track is unknown.
    """
    off_kt = (error * track).sum(1) / KNOT_M_S
    return 3600.0 * 100.0 * np.abs(1.0 / (REFERENCE_KT + off_kt) - 1.0 / REFERENCE_KT)


def columns(points: Points) -> Sums:
    """What each point adds to the sums: name -> (N,) float64. A column and its count are absent
    where nothing is known."""
    p, t = points.predicted.astype(np.float64), points.measured.astype(np.float64)
    error = p - t
    found: Sums = {"n": np.ones(len(p))}
    for i, axis in enumerate(("east", "north")):
        found |= {
            f"se_{axis}": error[:, i] ** 2,
            f"error_{axis}": error[:, i],
            f"measured_{axis}": t[:, i],
        }
    found |= {"predicted": p.sum(1), "predicted_2": (p**2).sum(1), "measured_2": (t**2).sum(1)}
    found["norm"] = np.abs(np.hypot(*p.T) - np.hypot(*t.T))
    _known(found, "angle", turn(p, t))
    if points.truth is not None:
        truth = points.truth.astype(np.float64)
        _known(
            found,
            "truth",
            np.stack([((p - truth) ** 2).sum(1), ((t - truth) ** 2).sum(1)], 1),
            ("se_truth", "se_noise"),
        )
    if points.track is not None:
        _known(found, "along", along_track_seconds(error, points.track))
    if points.scale is not None:
        scale = points.scale.astype(np.float64)
        likelihood = scores.log_likelihood(p, scale, t).mean(1)
        found |= {
            "n_scale": found["n"],
            "likelihood_m_s": likelihood,
            "crps": scores.crps(p, scale, t).mean(1),
            "covered": scores.covered(p, scale, t).mean(1),
        }
        if points.y_std is not None:
            found["likelihood"] = likelihood + np.log(points.y_std.astype(np.float64)).mean()
    if points.spread is not None:
        found |= {
            "n_spread": found["n"],
            "covered_spread": scores.covered(p, points.spread, t).mean(1),
            "spread": points.spread.mean(1),
        }
    if points.permuted is not None:
        found |= {
            "n_permuted": found["n"],
            "se_permuted": ((points.permuted.astype(np.float64) - t) ** 2).sum(1),
        }
    for name in ("outside", "outside_measured"):
        if getattr(points, name) is not None:
            found[name] = getattr(points, name).astype(np.float64)
    return found


def _known(found: Sums, name: str, values: np.ndarray, names: tuple[str, ...] = ()) -> None:
    """Add values (N,) or (N, k) and their count, with 0 where they are not known; nothing at all
    if none is."""
    values = values.reshape(len(values), -1)
    known = np.isfinite(values).all(1)
    if known.any():
        found[f"n_{name}"] = known.astype(np.float64)
        found |= {
            part: np.where(known, values[:, i], 0.0) for i, part in enumerate(names or (name,))
        }


def by_slice(found: Sums, slices: np.ndarray) -> tuple[np.ndarray, Sums]:
    """Sum columns within each slice: the slice numbers (S,) in order, and name -> (S,)."""
    numbers, which = np.unique(slices, return_inverse=True)
    sums: dict[str, Any] = {
        name: np.bincount(which, column, minlength=len(numbers)) for name, column in found.items()
    }
    sums["slices"] = np.ones(len(numbers))
    sums["slice_rmse"] = np.sqrt((sums["se_east"] + sums["se_north"]) / (2 * sums["n"]))
    return numbers, sums


def _spread(s: Sums, total: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Variance of 2n values from their sum and sum of squares, not below zero by rounding."""
    return np.maximum(squares / (2 * s["n"]) - (total / (2 * s["n"])) ** 2, 0.0)


def _rstd(s: Sums) -> np.ndarray:
    measured = _spread(s, s["measured_east"] + s["measured_north"], s["measured_2"])
    return np.sqrt(_spread(s, s["predicted"], s["predicted_2"]) / measured)


def _nse(s: Sums) -> np.ndarray:
    around_mean = s["measured_2"] - (s["measured_east"] ** 2 + s["measured_north"] ** 2) / s["n"]
    return 1 - (s["se_east"] + s["se_north"]) / around_mean


def _root(squares: str, count: str, components: int) -> Callable[[Sums], np.ndarray]:
    return lambda s: np.sqrt(sum(s[name] for name in squares.split()) / (components * s[count]))


def _mean(total: str, count: str) -> Callable[[Sums], np.ndarray]:
    return lambda s: s[total] / s[count]


# name: (unit, count, formula). Speeds are given in m/s here and doubled into kn below.
_SPEEDS = {
    "rmse_component": ("n", _root("se_east se_north", "n", 2)),
    "rmse_vector": ("n", _root("se_east se_north", "n", 1)),
    "rmse_batch_mean": ("n", _mean("slice_rmse", "slices")),
    "rmse_east": ("n", _root("se_east", "n", 1)),
    "rmse_north": ("n", _root("se_north", "n", 1)),
    "rmse_permuted_component": ("n_permuted", _root("se_permuted", "n_permuted", 2)),
    "norm_mae": ("n", _mean("norm", "n")),
    "rmse_truth_component": ("n_truth", _root("se_truth", "n_truth", 2)),
    "noise_floor_component": ("n_truth", _root("se_noise", "n_truth", 2)),
    "crps": ("n_scale", _mean("crps", "n_scale")),
    "spread_recalibrated": ("n_spread", _mean("spread", "n_spread")),
}
METRICS: dict[str, tuple[str, str, Callable[[Sums], np.ndarray]]] = {
    **{f"{name}_m_s": ("m/s", count, formula) for name, (count, formula) in _SPEEDS.items()},
    **{
        f"{name}_kn": ("kn", count, lambda s, f=formula: f(s) / KNOT_M_S)
        for name, (count, formula) in _SPEEDS.items()
    },
    "angle_mae_deg": ("degree", "n_angle", _mean("angle", "n_angle")),
    "relative_bias_east": ("1", "n", _mean("error_east", "measured_east")),
    "relative_bias_north": ("1", "n", _mean("error_north", "measured_north")),
    "rstd": ("1", "n", _rstd),
    "nse": ("1", "n", _nse),
    "along_track_s_per_100nm": ("s", "n_along", _mean("along", "n_along")),
    "log_likelihood": ("nat", "n_scale", _mean("likelihood", "n_scale")),
    "log_likelihood_m_s": ("nat", "n_scale", _mean("likelihood_m_s", "n_scale")),
    "log_likelihood_kn": (
        "nat",
        "n_scale",
        lambda s: s["likelihood_m_s"] / s["n_scale"] + np.log(KNOT_M_S),
    ),
    "coverage_90": ("1", "n_scale", _mean("covered", "n_scale")),
    "coverage_90_recalibrated": ("1", "n_spread", _mean("covered_spread", "n_spread")),
    "hull_share": ("1", "n", _mean("outside", "n")),
    "hull_share_measured": ("1", "n", _mean("outside_measured", "n")),
}
# In groups (bands, leads, distances) only what a mean over few points can bear.
_WHOLE = (
    "relative_bias",
    "rstd",
    "nse",
    "rmse_east",
    "rmse_north",
    "rmse_permuted",
    "hull",
    "spread",
)
_SHARES = ("coverage", "hull")
GROUP_METRICS = tuple(name for name in METRICS if not name.startswith(_WHOLE))


def _formula(name: str, sums: Sums) -> np.ndarray | None:
    """The metric of these sums, or None where the sums it needs are absent."""
    try:
        with np.errstate(divide="ignore", invalid="ignore"):
            return METRICS[name][2](sums)
    except KeyError:
        return None


def summarise(
    numbers: np.ndarray, sums: Sums, names: Sequence[str] = tuple(METRICS)
) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Metrics of slice sums (S,), by the slices' numbers (S,): name -> {value, unit, low, high, n},
    and name -> why a metric is undefined.

    low and high are the 90 % interval over six runs of slices (stages/scores/runs.py), a share's
    cut to 0 and 1; absent where the test is too short for one, and `intervals` says so.
    """
    total = {name: column.sum() for name, column in sums.items()}
    short = runs.too_short(numbers)
    without = runs.without_each(np.stack(list(sums.values()), 1))
    left = dict(zip(sums, without.T, strict=True))
    metrics: dict[Any, Any] = {}
    undefined: dict[Any, Any] = {"intervals": short} if short else {}
    for name in names:
        value = _formula(name, total)
        if value is None:
            continue
        unit, count, _ = METRICS[name]
        if not np.isfinite(value):
            undefined[name] = "its denominator is zero on these points"
            continue
        metrics[name] = {"value": float(value), "unit": unit, "n": int(total[count])}
        if short:
            continue
        others = _formula(name, left)
        if others is not None and np.isfinite(others).all():
            ends = runs.interval(float(value), others)
            if name.startswith(_SHARES):
                ends = max(ends[0], 0.0), min(ends[1], 1.0)
            metrics[name]["low"], metrics[name]["high"] = ends
        else:
            undefined[f"{name} (interval)"] = "its denominator is zero without some run"
    return metrics, undefined
