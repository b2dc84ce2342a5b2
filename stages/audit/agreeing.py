"""The command of a family's module that judges what its stages made: `python -m MODULE PLACE...
--out FILE` (twice.py calls it).

A place is `data/PROFILE/prepared/DATASET` or `reports/EXPERIMENT/PROFILE/evaluated/DATASET`. A
family gives for either kind what yields (file, text) of each contradiction, and shares the judges
of this module: values in two splits, histories of trained cells, the least possible error. A family
without a judge of its own names this module, which knows what all evaluations have in common.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from stages import params
from stages.errors import reported
from stages.files import read_json, write_json

parameters = cache(params.load)  # of a file, read once for all places
Found = Iterator[tuple[str, str]]
Judge = Callable[[Path], Found]
FEATURES = 8  # numbers by which examples are looked for; all of their values are compared then
MOST = 0.99  # of a column's values that lie on its file's lattice; others may have been disturbed
SHARE = 1e-3  # of a standard deviation: no rounding that is coarser makes two values alike
FINE = 2.0**-22  # relative: of values on no lattice of decimals (float32 resolves half of that)
SUMS = 1e-9  # relative: the same numbers, added in another order


def main(module: str, judges: Mapping[str, Judge], argv: Sequence[str] | None = None) -> int:
    """Exit code of the command; `judges` by the kind of place ("prepared", "evaluated")."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("places", nargs="+", type=Path, metavar="PLACE")
    parser.add_argument("--out", type=Path, help="where the JSON goes; else it is printed")
    asked = parser.parse_args(argv)

    def work() -> None:
        found = [one for place in asked.places for one in judged(place, judges)]
        write_json(asked.out, found) if asked.out else print(json.dumps(found))

    return reported(work)


def judged(place: Path, judges: Mapping[str, Judge]) -> Found:
    """What a place's judge says. Whatever files of a forger's do to it, it says that."""
    kind = next((part for part in place.parts if part in judges), None)
    if kind is None:
        yield place.as_posix(), "nothing judges a place of this kind"
        return
    try:
        yield from judges[kind](place)
    except Exception as error:  # of any library that reads files
        text = " ".join(str(error).split())
        yield place.as_posix(), f"it cannot be judged ({type(error).__name__}: {text})"


def near(one: float, other: float, within: float = SUMS) -> bool:
    """Whether two numbers are the same but for rounding."""
    return math.isclose(one, other, rel_tol=within, abs_tol=1e-12)


def unlike(home: Path, again: Path, raw: Path) -> Found:
    """How a prepared folder is not the one that the same command makes `again` of the raw files:
    other files, tensors or words, but for how another arithmetic rounds."""
    names = {file.name for place in (home, again) for file in place.iterdir()}
    for file in (home / name for name in sorted(names)):
        where, made = file.as_posix(), again / file.name
        if not file.is_file() or not made.is_file():
            yield where, f"it stands in one of {home.as_posix()} and what {raw.as_posix()} gives"
            continue
        tensors = file.suffix == ".safetensors"
        mine, other = map(load_file if tensors else read_json, (file, made))
        for name in sorted(mine.keys() | other.keys()):
            if name not in mine or name not in other:
                yield where, f"{name} stands in one of it and what {raw.as_posix()} gives"
            elif tensors and (told := of_rows(mine[name], other[name])):
                yield where, f"its {name}{told} is not what {raw.as_posix()} gives"
            elif not tensors and not same(mine[name], other[name]):
                yield where, f"its {name} is not what {raw.as_posix()} gives"


def of_rows(mine: np.ndarray, other: np.ndarray) -> str:
    """In which rows two tensors differ by more than rounding, in words; "" where in none."""
    if mine.shape != other.shape or mine.dtype != other.dtype:
        return f" {mine.shape}"
    apart = mine != other
    if mine.dtype.kind == "f":
        apart = np.abs(mine - other) > FINE * np.abs(other).max(initial=0)
        apart |= ~np.isfinite(mine)
    rows = np.flatnonzero(apart.reshape(len(mine), -1).any(1))
    return f" of {len(rows):,} rows, the first of them {rows[0]}," if rows.size else ""


def same(one: Any, other: Any) -> bool:
    """Whether two contents of JSON are the same, but for how numbers are rounded."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return near(one, other, FINE)
    return bool(one == other)


def resolution(values: np.ndarray) -> float:
    """How far apart two values of a column are at least, as its file writes them: a step of its
    decimals, or of its floating-point numbers; never more than a small share of their spread."""
    known = np.unique(values[np.isfinite(values)].astype(np.float64))
    if len(known) < 3:
        return 0.0
    known = known[:: len(known) // 4096 + 1]
    most, spread = float(np.abs(known).max()), float(known.std())
    for digits in range(7):
        near = np.isclose(known, known.round(digits), rtol=0, atol=FINE * most)
        if near.mean() >= MOST:
            return min(10.0**-digits, SHARE * spread)
    return min(max(FINE * most, 1e-12), SHARE * spread)


def alike(rows: np.ndarray, train: np.ndarray, held: np.ndarray) -> list[tuple[int, int]]:
    """Pairs (of `held`, of `train`) of examples whose values are all alike, but for rounding.

    rows (N, K): the values of each example, in an order that does not depend on how they are
    listed; train, held (N,) bool. Columns of no spread tell nothing and are left out.
    """
    from scipy.spatial import cKDTree

    steps = np.array([resolution(column) for column in rows.T])
    told = np.flatnonzero(steps > 0)
    if not told.size or not train.any() or not held.any():
        return []
    chosen = told[np.linspace(0, len(told) - 1, min(FEATURES, len(told))).astype(int)]
    scaled = rows[:, told].astype(np.float64) / steps[told]
    places = np.searchsorted(told, chosen)
    mine, others = np.flatnonzero(held), np.flatnonzero(train)
    tree = cKDTree(scaled[others][:, places])
    far, nearest = tree.query(scaled[mine][:, places], k=2, p=np.inf, distance_upper_bound=1.5)
    found = []
    for n, k in zip(*np.nonzero(np.isfinite(far)), strict=True):
        pair = mine[n], others[nearest[n, k]]
        if np.abs(scaled[pair[0]] - scaled[pair[1]]).max() <= 1.5:
            found.append((int(pair[0]), int(pair[1])))
    return found


def leaked(where: str, noun: str, pairs: Iterable[tuple[int, int]]) -> Found:
    """What is said of examples that stand in training and in another split."""
    held = sorted({one for one, _ in pairs})
    if held:
        other = next(b for a, b in pairs if a == held[0])
        text = f"{len(held):,} {noun} of val or test have the values of training ones"
        yield where, f"{text}, whatever file and record they name: {held[0]} those of {other}"


def nothing(place: Path) -> Found:
    """Of prepared data nothing is known but by their family."""
    yield from ()


def common(place: Path) -> Found:
    """What contradicts in an evaluation of any family: histories and intervals."""
    yield from trained(place)
    yield from intervals(place)


def trained(place: Path) -> Found:
    """Each trained cell's history in the evaluation is the one that its training wrote, whose best
    loss is its least."""
    for cell, entry in read_json(place / "metrics.json")["cells"].items():
        file = place.parents[1] / "runs" / place.name / cell / "history.json"
        if not file.is_file():
            continue
        wrote = read_json(file)
        losses = [one["loss"] for one in wrote.get("val", ())]
        if losses and wrote.get("best_loss", min(losses)) != min(losses):
            text = (
                f"its best loss is {wrote.get('best_loss')}, the least of its losses {min(losses)}"
            )
            yield file.as_posix(), text
        told = entry.get("history")
        if told and told.get("val") != [[one["step"], one["loss"]] for one in wrote.get("val", ())]:
            text = f"it tells another history of {cell} than {file.as_posix()}"
            yield f"{place.as_posix()}/metrics.json", text


def intervals(place: Path) -> Found:
    """No interval lies farther from its own value than it is wide, and nothing is counted below
    0."""
    for address, one in numbers(read_json(place / "metrics.json")["cells"]):
        value, low, high = (one.get(key) for key in ("value", "low", "high"))
        if None not in (low, high) and low > high + 1e-9 * abs(high):
            yield f"{place.as_posix()}/metrics.json", f"{address}: low {low} is above high {high}"
        elif None not in (low, high) and beyond(value, low, high):
            text = f"{address}: {value} lies far out of its interval, {low} to {high}"
            yield f"{place.as_posix()}/metrics.json", text
        if isinstance(one.get("n"), (int, float)) and one["n"] < 0:
            yield f"{place.as_posix()}/metrics.json", f"{address}: {one['n']} values"
        if not math.isfinite(value):
            yield f"{place.as_posix()}/metrics.json", f"{address}: {value} is no number"


def beyond(value: float, low: float, high: float) -> bool:
    """Whether a value lies farther from its interval than that is wide, and than rounding."""
    return max(low - value, value - high) > high - low + SUMS * max(abs(low), abs(high), 1e-3)


def numbers(content: Any, address: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """(address, entry) of every number below a mapping."""
    if not isinstance(content, dict):
        return
    if isinstance(content.get("value"), (int, float)):
        yield address.strip("/"), content
        return
    for name, part in content.items():
        yield from numbers(part, f"{address}/{name}")


def impossible(
    place: Path, metric: str, what: str, least: float, low: float | None = None
) -> Found:
    """Cells with less error than the best possible: no model can do that, so that something leaked
    or was edited.

    least: the least possible error, exact; or measured on the same points, with the end `low` of
    its interval. A cell is told where its interval ends below the least, twice as wide if that is
    exact, and its error lies below `low`.
    """
    for cell, entry in read_json(place / "metrics.json")["cells"].items():
        one = entry["metrics"].get(metric)
        if one is None:
            continue
        value, wide = one["value"], one.get("high", one["value"]) - one["value"]
        if value + (wide if low is not None else 2 * wide) < least and value < (low or least):
            text = f"{cell} has {metric} {value:.6g}, better than is possible: {what}, {least:.6g}"
            yield f"{place.as_posix()}/metrics.json", text


if __name__ == "__main__":
    sys.exit(main("stages.audit.agreeing", {"prepared": nothing, "evaluated": common}))
