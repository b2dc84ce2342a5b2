"""Metrics of models of sets, made by hand."""

from stages.fields.comparisons import Evaluated
from stages.spreads import NOWHERE


def number(value, spread=1.05, **more):
    return {
        "value": value,
        "unit": "1",
        "n": 100,
        "low": value / spread,
        "high": value * spread,
        **more,
    }


def made(errors, probes=None, dataset="poisson", spread=1.05, known=NOWHERE):
    """A data set of cells: arm -> MSE by seed; `known`: spreads; `probes`: arm -> group -> name ->
    value, alike for all its seeds."""
    cells = {}
    for arm, values in errors.items():
        for seed, value in enumerate(values):
            cell = {"metrics": {"mse": number(value, spread)}}
            if probes and arm in probes:
                cell["probes"] = {
                    group: {
                        name: one if isinstance(one, dict) else number(one)
                        for name, one in named.items()
                    }
                    for group, named in probes[arm].items()
                }
            cells[f"{arm}-s{seed}"] = cell
    return Evaluated(dataset, cells, known)


def near(value):
    """Three seeds close to a value."""
    return (0.98 * value, value, 1.02 * value)
