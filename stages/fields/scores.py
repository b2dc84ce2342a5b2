"""The metrics of predictions on sets of points (thesis 3.4, tables 3.2 and C.2-C.4), named as what
they are.

`mse` and `rmse` are over all targets and components together. The documents report, of their
validation data, the mean over batches of each batch's MSE (or RMSE): `mse_batch_mean`,
`rmse_batch_mean`, here of whole batches of the training's size. With MSE and batches of one size
that is the same number; the mean of the batches' RMSE is a smaller one. `mse_permuted` is the MSE
when the context's values have changed places among their set's points: one equal to `mse` is of a
model that does not use where values were measured. Intervals are 90 % percentile bootstraps over
groups: sets of one trajectory or one file are not independent and are drawn together.
Shapes: S sets, T targets, O components, G groups, K sums, R resamples. Errors are in the problem's
units; r2 has none.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stages.scores import bootstrap
from stages.scores.groups import Sums, drawn, grouped


@dataclass(frozen=True)
class Answers:
    """What a model said of some sets, beside what was measured, in the problem's units."""

    predicted: np.ndarray  # (S, T, O)
    measured: np.ndarray  # (S, T, O)
    group: np.ndarray  # (S,) sets with one number are not independent
    permuted: np.ndarray | None = (
        None  # (S, T, O), predicted from contexts whose values have changed places
    )


def squared(unit: str) -> str:
    """The unit of a square: 'K' -> 'K²', 'm/s' -> '(m/s)²', '1' -> '1'."""
    return unit if unit == "1" else f"{unit}²" if unit.isalnum() else f"({unit})²"


def columns(answers: Answers) -> Sums:
    """What each set adds to the sums: name -> (S,) float64."""
    measured = answers.measured.astype(np.float64)
    error = (answers.predicted - measured) ** 2
    count = measured.shape[1] * measured.shape[2]
    found = {
        "n": np.full(len(measured), float(count)),
        "se": error.sum((1, 2)),
        "squares": (measured**2).sum((1, 2)),
    }
    found |= {f"sum_{k}": measured[:, :, k].sum(1) for k in range(measured.shape[2])}
    if answers.permuted is not None:
        found["se_permuted"] = ((answers.permuted - measured) ** 2).sum((1, 2))
    return found


def batched(found: Sums, size: int) -> Sums:
    """Each batch's MSE and RMSE, of `size` sets in their order (the last may hold fewer), and 1
    to count them: name -> (batches,)."""
    number = np.arange(len(found["n"])) // size
    sums = grouped(found, number)
    mse = sums["se"] / sums["n"]
    return {"batches": np.ones(len(mse)), "n": sums["n"], "mse": mse, "rmse": np.sqrt(mse)}


def _r2(sums: Sums) -> np.ndarray:
    """1 - squared error / squares around the mean of these targets, component by component."""
    components = [name for name in sums if name.startswith("sum_")]
    each = sums["n"] / len(components)
    return 1 - sums["se"] / (sums["squares"] - sum(sums[name] ** 2 / each for name in components))


# name: (power of the unit, formula of the sums)
METRICS: dict[str, tuple[int, Callable[[Sums], np.ndarray]]] = {
    "mse": (2, lambda s: s["se"] / s["n"]),
    "rmse": (1, lambda s: np.sqrt(s["se"] / s["n"])),
    "r2": (0, _r2),
    "mse_permuted": (2, lambda s: s["se_permuted"] / s["n"]),
}
BATCH_METRICS: dict[str, tuple[int, Callable[[Sums], np.ndarray]]] = {
    "mse_batch_mean": (2, lambda s: s["mse"] / s["batches"]),
    "rmse_batch_mean": (1, lambda s: s["rmse"] / s["batches"]),
}


def _summarised(
    sums: Sums,
    table: dict[Any, Any],
    unit: str,
    resamples: int,
    rng: np.random.Generator,
    suffix: str,
) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Metrics of group sums and why one is undefined; without low and high where there is one
    group only."""
    total = {name: column.sum() for name, column in sums.items()}
    replicates = drawn(sums, resamples, rng) if len(sums["n"]) > 1 else None
    units = {0: "1", 1: unit, 2: squared(unit)}
    found, undefined = {}, {}
    for name, (power, formula) in table.items():
        if name == "mse_permuted" and "se_permuted" not in sums:
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            value, values = formula(total), None if replicates is None else formula(replicates)
        if not np.isfinite(value):
            undefined[name + suffix] = "its denominator is zero on these targets"
            continue
        found[name + suffix] = {"value": float(value), "unit": units[power], "n": int(total["n"])}
        if values is not None and np.isfinite(values).all():
            found[name + suffix] |= dict(
                zip(("low", "high"), bootstrap.interval(values), strict=True)
            )
        elif values is not None:
            undefined[f"{name}{suffix} (interval)"] = "its denominator is zero on some resamples"
    return found, undefined


def summarise(
    answers: Answers,
    batch: int,
    unit: str,
    resamples: int,
    rng: np.random.Generator,
    suffix: str = "",
) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Metrics of some sets: name + `suffix` -> {value, unit, n, low, high}, and name -> why it is
    undefined. n counts single values.

    The batch means are resampled by batch, all else by group.
    """
    found = columns(answers)
    metrics, undefined = _summarised(
        grouped(found, answers.group), METRICS, unit, resamples, rng, suffix
    )
    more, why = _summarised(batched(found, batch), BATCH_METRICS, unit, resamples, rng, suffix)
    return metrics | more, undefined | why
