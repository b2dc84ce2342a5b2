"""Whether what was prepared and evaluated of sets of points says one thing (stages/audit/
agreeing.py).

Prepared sets are what the raw files give, prepared once more. No field of validation or test stands
in training, whichever of its points were drawn. An error stands as a mean square, as its root and
as a share of the targets' own squares, which the prepared sets give; what the trivial companion
errs follows from the sets alone; the shown sets are prepared ones. No stage runs this.
Shapes: S sets, T targets, X axes, O components.
"""

import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from safetensors.numpy import load_file

from stages import params, runner
from stages.audit import agreeing
from stages.audit.agreeing import Found, near
from stages.fields import prepare
from stages.files import read_json
from stages.splits import SPLITS

MOST = 4  # sets that may share a point and its value before it tells nothing (a wall, a zero)
SHARED = 0.02  # of a set's points, and at least:
LEAST = 4
ROUNDED = 1e-4  # relative: sums of float32, some of them taken back from standard deviations
BETWEEN = 1e-2  # relative: an interval ends between two draws, whose roots lie elsewhere


def prepared(home: Path) -> Found:
    """How prepared sets are not what the raw files give; fields of validation or test that stand
    in training: by points that have their place and value, but for rounding."""
    names = {"profile": home.parts[1], "dataset": home.name}
    asked = runner.Asked(names, agreeing.parameters(Path.cwd() / params.WHOLE))
    with tempfile.TemporaryDirectory(prefix="agree-") as folder:
        again, raw = Path(folder, home.name), asked.data("raw")
        told = dict(prepare.plan(asked).params)
        prepare.prepare(raw, again, asked.profile.sets[home.name], told)
        yield from agreeing.unlike(home, again, raw)
    where, sets = (home / "sets.safetensors").as_posix(), load_file(home / "sets.safetensors")
    pairs = twins(sets["target_x"], sets["target_y"], sets["split"])
    yield from agreeing.leaked(where, "sets (by their targets)", pairs)


def twins(x: np.ndarray, y: np.ndarray, split: np.ndarray) -> list[tuple[int, int]]:
    """Pairs (of another split, of training) of sets that share points, x (S, T, X), y (S, T, O)."""
    count, points = y.shape[:2]
    columns = [*x.reshape(-1, x.shape[2]).T, *y.reshape(-1, y.shape[2]).T]
    found: set[tuple[int, int]] = set()
    told = sum(agreeing.resolution(column) > 0 for column in columns[x.shape[2] :])
    if not told:
        return []  # values of one or two kinds tell nothing
    for half in (0.0, 0.5):  # values that lie about a step's end fall together in one of the two
        keys = pl.DataFrame({"set": np.repeat(np.arange(count), points)}).with_columns(
            cells(column, half).alias(str(n)) for n, column in enumerate(columns)
        )
        names = [name for name in keys.columns if name != "set"]
        rare = keys.unique().filter(pl.len().over(names).is_between(2, MOST))
        held = rare.filter(pl.col("set").is_in(np.flatnonzero(split > 0)))
        train = rare.filter(pl.col("set").is_in(np.flatnonzero(split == 0)))
        both = held.join(train, on=names, suffix="_train").group_by("set", "set_train").len()
        many = both.filter(pl.col("len") >= max(LEAST, SHARED * points))
        found |= {(a, b) for a, b, _ in many.iter_rows()}
    return sorted(found)


def cells(column: np.ndarray, half: float) -> pl.Series:
    """Whole numbers that values of one step of a column's resolution have in common."""
    step = agreeing.resolution(column) or 1.0
    return pl.Series(np.floor(column.astype(np.float64) / (4 * step) + half).astype(np.int64))


def evaluated(home: Path) -> Found:
    """What in the folder of an evaluation contradicts."""
    told = read_json(home / "metrics.json")
    source = Path("data", home.parts[2], "prepared", home.name)
    meta, sets = read_json(source / "sets.json"), load_file(source / "sets.safetensors")
    where = (home / "metrics.json").as_posix()
    if told["sets"] != meta["counts"]:
        yield where, f"it counts sets {told['sets']}, prepared are {meta['counts']}"
    for cell, entry in told["cells"].items():
        for text in (*errors(entry["metrics"]), *shares(entry["metrics"], sets, meta)):
            yield where, f"{cell}: {text}"
    if "mean" in told["cells"]:
        yield from companion(where, told["cells"]["mean"]["metrics"], sets, meta)
    yield from example_mismatches(home, told, sets, meta)
    yield from agreeing.common(home)


def named(metrics: dict[str, Any], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(split, entry) of a metric of each split that has it."""
    for split in SPLITS:
        one = metrics.get(name if split == "test" else f"{name}_{split}")
        if one is not None:
            yield split, one


def errors(metrics: dict[str, Any]) -> Iterator[str]:
    """How an error's root is not its root."""
    roots = dict(named(metrics, "rmse"))
    for split, one in named(metrics, "mse"):
        for key, within in (("value", 1e-9), ("low", BETWEEN), ("high", BETWEEN)):
            root = roots.get(split, {}).get(key)
            if root is not None and not near(root**2, one[key], within):
                yield f"the {key} of its RMSE on {split} is {root}, of its MSE {one[key]}"


def in_units(sets: dict[str, np.ndarray], meta: dict[str, Any], part: str) -> np.ndarray | None:
    """Values of the "target" or "context" in the problem's units; None for targets of several."""
    side = {"target": "o", "context": "i"}[part]
    if side == "o" and len({*meta["units"]["o"]}) > 1:
        return None
    values = sets[f"{part}_y"].astype(np.float64)
    if not meta["standardised"]:
        return values
    scale, shift = (np.array(meta["scaler"][f"{side}_{key}"]) for key in ("std", "mean"))
    return values * scale + shift


def shares(metrics: dict[str, Any], sets: dict[str, np.ndarray], meta: dict[str, Any]) -> Found:
    """How an MSE is not what its share of the targets' squares says. Of training only a part is
    evaluated."""
    measured, r2 = in_units(sets, meta, "target"), dict(named(metrics, "r2"))
    for split, one in named(metrics, "mse"):
        if measured is None or split == "train":
            continue
        y = measured[sets["split"] == SPLITS.index(split)]
        if one["n"] != y.size:
            yield f"it counts {one['n']:,} values of {split}, prepared are {y.size:,}"
        squares = ((y - y.mean((0, 1))) ** 2).sum()
        share = one["value"] * one["n"] / squares
        if split in r2 and not near(share, 1 - r2[split]["value"], ROUNDED):
            told = f"{one['value']}, is not what its r2 says, {r2[split]['value']}"
            yield f"its MSE on {split}, {told}"


def companion(
    where: str, metrics: dict[str, Any], sets: dict[str, np.ndarray], meta: dict[str, Any]
) -> Found:
    """How the companion `mean` errs otherwise than the training targets' mean."""
    measured = in_units(sets, meta, "target")
    for split, one in named(metrics, "mse") if measured is not None else ():
        mean = measured[sets["split"] == 0].mean((0, 1))
        y = measured[sets["split"] == SPLITS.index(split)]
        error = ((y - mean) ** 2).mean()
        if not near(error, one["value"], ROUNDED):
            text = f"the training mean has MSE {error} on {split}, not {one['value']}"
            yield where, text


def example_mismatches(
    home: Path, told: dict[str, Any], sets: dict[str, np.ndarray], meta: dict[str, Any]
) -> Found:
    """How the shown sets are not the prepared ones, or err more than all sets together."""
    file = home / "predictions.safetensors"
    tensors = load_file(file)
    for part in ("context", "target"):
        values = in_units(sets, meta, part)
        alike = values is None or np.allclose(
            tensors[f"{part}_y"], values[told["shown"]], ROUNDED, ROUNDED * np.abs(values).max()
        )
        if not alike or tensors[f"{part}_x"].shape != sets[f"{part}_x"][told["shown"]].shape:
            yield file.as_posix(), f"its {part} is not that of the prepared sets {told['shown']}"
    for cell, entry in told["cells"].items():
        one = entry["metrics"].get("mse")
        if cell not in tensors:
            yield file.as_posix(), f"it holds nothing of {cell}"
        elif one is not None and len({*meta["units"]["o"]}) == 1:
            error = ((tensors[cell].astype(np.float64) - tensors["target_y"]) ** 2).sum()
            if not math.isfinite(error) or error > one["value"] * one["n"] * (1 + ROUNDED):
                yield file.as_posix(), f"its predictions of {cell} err more than its MSE allows"


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    judges = {"prepared": prepared, "evaluated": evaluated}
    return agreeing.main("stages.fields.agree", judges, argv)


if __name__ == "__main__":
    sys.exit(main())
