"""Score a wind forecast on the frozen aircraft-wind benchmark; needs NumPy only.

    python score.py predictions.csv [--split val|test] [--data FOLDER]

predictions.csv has a header and the columns row, u_m_s, v_m_s and, if you forecast a spread,
u_sd_m_s, v_sd_m_s: one line for every target row of the split (pairs.csv), in any order. Winds are
m/s towards east (u) and north (v). Each error is given against the measurement (what a forecaster
can check) and against the true wind (what the simulator knows), with a 90 % interval: Student's
over six runs of neighbouring one-minute slices; none where the split spans less than six half
hours. Prints JSON; exit code 2 if the file cannot be scored.
Per component: mean over points and the two components, then the root; the vector's error is sqrt(2)
larger.
"""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

KNOT_M_S = 1852 / 3600
BANDS_FT = ((0, 20000), (20000, 30000), (30000, 35000), (35000, 60000))
Z90 = 1.6448536269514722
RUNS, LEAST, T90 = 6, 30, 2.0150483733330233  # runs, minutes of one, Student's 95 % with 5 degrees
NEEDED, SPREAD, TRUE = (
    ("row", "u_m_s", "v_m_s"),
    ("u_sd_m_s", "v_sd_m_s"),
    ("u_true_m_s", "v_true_m_s"),
)


def columns(
    path: Path, names: tuple[str, ...], optional: tuple[str, ...] = ()
) -> dict[str, np.ndarray]:
    """Columns of a CSV with a header, as float64; ValueError names what is missing or not a
    finite number."""
    with Path(path).open(newline="", encoding="utf-8-sig") as stream:
        rows = csv.reader(stream)
        header = next(rows, [])
        missing = [name for name in names if name not in header]
        if missing:
            raise ValueError(
                f"{path}: no column {', '.join(missing)}; found {', '.join(header) or 'nothing'}"
            )
        wanted = [name for name in (*names, *optional) if name in header]
        at = [header.index(name) for name in wanted]
        try:
            values = np.array([[float(row[i]) for i in at] for row in rows], np.float64).reshape(
                -1, len(wanted)
            )
        except (ValueError, IndexError):
            raise ValueError(
                f"{path}: line {rows.line_num} does not hold numbers in {', '.join(wanted)}"
            ) from None
    if not np.isfinite(values).all():
        raise ValueError(
            f"{path}: line {np.flatnonzero(~np.isfinite(values).all(1))[0] + 2} holds a number "
            "that is not finite"
        )
    return dict(zip(wanted, values.T, strict=True))


def targets(folder: Path, split: str) -> tuple[np.ndarray, np.ndarray]:
    """Target row numbers of a split, (N,), and the time slice of each, (N,)."""
    with (folder / "pairs.csv").open(newline="", encoding="utf-8") as stream:
        pairs = [pair for pair in csv.DictReader(stream) if pair["split"] == split]
    if not pairs:
        raise ValueError(f"pairs.csv has no split {split!r}")
    spans = [np.arange(int(pair["target_first"]), int(pair["target_end"])) for pair in pairs]
    return np.concatenate(spans), np.repeat(
        [int(pair["slice"]) for pair in pairs], [len(span) for span in spans]
    )


def align(forecast: dict[str, np.ndarray], rows: np.ndarray) -> dict[str, np.ndarray]:
    """The forecast in the order of `rows`; ValueError unless it has each of them exactly once
    and nothing else."""
    order = np.argsort(forecast["row"], kind="stable")
    given = forecast["row"][order]
    if len(np.unique(given)) != len(given):
        raise ValueError(f"row {given[:-1][np.diff(given) == 0][0]:.0f} is forecast twice")
    absent, extra = np.setdiff1d(rows, given), np.setdiff1d(given, rows)
    if len(absent) or len(extra):
        first = (
            f"row {absent[0]:.0f} has no forecast"
            if len(absent)
            else f"row {extra[0]:.0f} is no target"
        )
        raise ValueError(
            f"{len(absent)} target rows without a forecast, {len(extra)} rows that are no targets: "
            f"{first}"
        )
    return {name: column[order][np.searchsorted(given, rows)] for name, column in forecast.items()}


def errors(
    forecast: np.ndarray, actual: np.ndarray, spread: np.ndarray | None
) -> dict[str, np.ndarray]:
    """What each of N points adds to the means: forecast, actual and spread are (N, 2) in m/s."""
    error = forecast - actual
    turn = np.degrees(
        np.arctan2(forecast[:, 0], forecast[:, 1]) - np.arctan2(actual[:, 0], actual[:, 1])
    )
    found = {
        "square": (error**2).mean(1),
        "norm": np.abs(np.hypot(*forecast.T) - np.hypot(*actual.T)),
        "angle": np.abs((turn + 180) % 360 - 180),
        "east": error[:, 0],
        "north": error[:, 1],
    }
    if spread is not None:
        z = error / spread
        found |= {
            "likelihood": (-0.5 * z**2 - np.log(spread) - 0.5 * np.log(2 * np.pi)).mean(1),
            "covered": (np.abs(z) <= Z90).mean(1),
        }
    return found


def metrics(means: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Means of `errors` (scalars, or one a resample) to metrics by name."""
    root = np.sqrt(means["square"])
    found = {
        "rmse_component_m_s": root,
        "rmse_component_kn": root / KNOT_M_S,
        "rmse_vector_m_s": root * np.sqrt(2),
        "rmse_vector_kn": root * np.sqrt(2) / KNOT_M_S,
        "norm_mae_m_s": means["norm"],
        "angle_mae_deg": means["angle"],
        "bias_east_m_s": means["east"],
        "bias_north_m_s": means["north"],
    }
    return found | {
        new: means[old]
        for old, new in (("likelihood", "log_likelihood_m_s"), ("covered", "coverage_90"))
        if old in means
    }


def summary(found: dict[str, np.ndarray], slices: np.ndarray) -> dict[str, dict[str, float]]:
    """Each metric's value over all points, with its 90 % interval: Student's over what the metric
    is without each of six runs of neighbouring slices."""
    number, which = np.unique(slices, return_inverse=True)
    n = np.bincount(which)
    value = metrics({name: column.mean() for name, column in found.items()})
    told = {name: {"value": float(one)} for name, one in value.items()}
    if number[-1] - number[0] + 1 < RUNS * LEAST or len(number) < RUNS:
        return told
    sums = {name: without_each(np.bincount(which, column)) for name, column in found.items()}
    others = metrics({name: column / without_each(n) for name, column in sums.items()})
    for name, one in others.items():
        half = T90 * np.sqrt(np.square(one - one.mean()).sum() * (RUNS - 1) / RUNS)
        told[name] |= {"low": float(value[name] - half), "high": float(value[name] + half)}
    return told


def without_each(column: np.ndarray) -> np.ndarray:
    """The sum of a column (S,) without each of its runs (RUNS,)."""
    runs = np.array([part.sum() for part in np.array_split(column, RUNS)])
    return runs.sum() - runs


def score(predictions: Path, folder: Path, split: str) -> dict[Any, Any]:
    """All scores of a predictions file; ValueError says why it cannot be scored."""
    rows, slices = targets(folder, split)
    forecast = align(columns(predictions, NEEDED, SPREAD), rows)
    if any(name in forecast for name in SPREAD) and not all(
        (forecast.get(name, np.zeros(1)) > 0).all() for name in SPREAD
    ):
        raise ValueError(f"a spread needs {' and '.join(SPREAD)}, all positive")

    def pair(table, names):
        return np.stack([table[name] for name in names], 1)

    wind = pair(forecast, NEEDED[1:])
    spread = pair(forecast, SPREAD) if SPREAD[0] in forecast else None
    measured = columns(folder / "rows.csv", ("alt_ft", *NEEDED[1:]))
    true = columns(folder / "truth.csv", TRUE)
    seen, real = pair(measured, NEEDED[1:])[rows], pair(true, TRUE)[rows]
    against = {"measured": errors(wind, seen, spread), "true": errors(wind, real, spread)}
    bands = {}
    for low, high in BANDS_FT:
        inside = (measured["alt_ft"][rows] >= low) & (measured["alt_ft"][rows] < high)
        if inside.any():
            within = {
                name: summary({k: c[inside] for k, c in found.items()}, slices[inside])
                for name, found in against.items()
            }
            bands[f"{low}-{high}"] = {
                name: found["rmse_component_m_s"] for name, found in within.items()
            } | {"points": int(inside.sum())}
    noise = summary(errors(seen, real, None), slices)["rmse_component_m_s"]
    return {
        "split": split,
        "points": len(rows),
        "slices": len(np.unique(slices)),
        "noise_floor_component_m_s": noise,
        "by_altitude_ft": bands,
        **{name: summary(found, slices) for name, found in against.items()},
    }


def main(arguments: list[str]) -> int:
    """The command line of the docstring."""
    if {"-h", "--help"} & {*arguments}:
        print(__doc__.strip())
        return 0
    options = {"--split": "test", "--data": str(Path(__file__).resolve().parent)}
    files = []
    while arguments:
        word, *arguments = arguments
        if word in options and arguments:
            options[word], *arguments = arguments
        else:
            files.append(word)
    if len(files) != 1 or files[0].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        result = score(Path(files[0]), Path(options["--data"]), options["--split"])
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(result, indent=2, sort_keys=True, allow_nan=False))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
