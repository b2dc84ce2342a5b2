"""Whether what was prepared and evaluated of dynamical systems says one thing (stages/audit/
agreeing.py).

Prepared series are the raw observations; no state stands in two parts. One horizon has three units;
what knows no law (persistence, the mean) follows from the series; no forecast is valid for longer
than its own curve of errors allows, or than the solver's of a system that is observed in part. No
stage runs this.
Shapes: E members, T times, O observed, B starts, H steps ahead.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stages.audit import agreeing
from stages.audit.agreeing import Found, near
from stages.dynamics import forecasts
from stages.dynamics.layout import ABOUT, CURVES, IMAGES, OBSERVED, SERIES, STARTS, STATES
from stages.files import read_json

SOLVER, VALID = "solver", "valid_time"
SUMS = agreeing.SUMS
ROUNDED = 2e-3  # relative: curves are kept with four digits
LEVELS = ("0.95", "0.5", "0.05")  # of the errors, in a curve


def prepared(home: Path) -> Found:
    """What in a prepared system contradicts the raw one, or itself."""
    about, raw = read_json(home / ABOUT), home.parents[1] / "raw" / home.name
    series = np.load(home / SERIES, allow_pickle=False)  # E T O
    seen = np.load(raw / OBSERVED, mmap_mode="r", allow_pickle=False)
    where = (home / SERIES).as_posix()
    yield from standardised(where, series, seen, seen, about)
    starts = np.load(home / STARTS, allow_pickle=False)
    if not within(starts, about["parts"]["test"], series.shape):
        yield (home / STARTS).as_posix(), "a forecast starts outside of the part that tests"
    whole = np.load(raw / STATES, mmap_mode="r", allow_pickle=False)
    kept = whole[starts[:, 0], starts[:, 1] // about["system"]["keep"]]
    if not np.array_equal(kept, np.load(home / STATES, allow_pickle=False)):
        yield (home / STATES).as_posix(), f"its states are not those of {raw.as_posix()}"
    yield from states(where, series, about["parts"])


def standardised(
    where: str, series: np.ndarray, seen: np.ndarray, known: np.ndarray, about: dict[str, Any]
) -> Found:
    """How a series (E, T, O) is not what was `seen`, standardised by what trains. known: the same,
    and no number where it is masked."""
    mean, sd = np.asarray(about["mean"]), np.asarray(about["sd"])
    if series.shape != seen.shape or not np.allclose((seen - mean) / sd, series, 0, 1e-12):
        yield where, "it is not what was observed, standardised as about.json says"
    first, end = about["parts"]["train"]
    train, axes = known[:, first:end], None if mean.ndim == 0 else (0, 1)
    found = np.nanmean(train, axes), np.nanstd(train, axes)
    if not all(np.allclose(*both, SUMS, SUMS) for both in zip(found, (mean, sd), strict=True)):
        yield where, "its mean and deviation are not those of the part that trains"


def within(starts: np.ndarray, part: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether starts (B, 2), the members and the last given times, lie in a part of a series."""
    member, time = starts.T
    first, end = part[0] - 1, part[1] - 1
    return bool(((member >= 0) & (member < shape[0]) & (time >= first) & (time < end)).all())


def states(where: str, series: np.ndarray, parts: dict[str, Sequence[int]]) -> Found:
    """States of validation or test that have the values of training ones."""
    cut = {
        name: series[:, low:high].reshape(-1, series.shape[2])
        for name, (low, high) in parts.items()
    }
    states = np.concatenate([cut["train"], cut["val"], cut["test"]])
    train = np.arange(len(states)) < len(cut["train"])
    pairs = agreeing.alike(states, train, ~train)
    yield from agreeing.leaked(where, "states", pairs)


def evaluated(home: Path) -> Found:
    """What in the folder of an evaluation contradicts."""
    where = (home / "metrics.json").as_posix()
    told = read_json(home / "metrics.json")
    cells, about = told["cells"], told["about"]
    own = read_json(Path("data", home.parts[2], "prepared", home.name) / ABOUT)
    for key in ("exponent", "step", "system", "printed_exponent", "change"):
        if about[key] != own[key]:
            yield where, f"it tells another {key} of the system than what was prepared"
    for cell, entry in cells.items():
        found = {name: one["value"] for name, one in entry["metrics"].items()}
        time, unit = found.get(VALID), about["unit"]
        others = {} if time is None else {"vpt": time * unit, "vpt_document": time / unit}
        for name, value in others.items():
            if name in found and not near(found[name], value):
                yield where, f"{cell} is valid for {time}, which is not its {name} {found[name]}"
    yield from runs(home, told)
    yield from agreeing.common(home)
    if SOLVER in cells and about["system"]["system"] == "lorenz96":  # observed in part
        best = cells[SOLVER]["metrics"][VALID]
        for cell, entry in cells.items():
            one = entry["metrics"].get(VALID)
            if one and one["value"] > best["high"] and one["low"] > best["value"]:
                text = (
                    f"{cell} is valid for {one['value']:.6g}, longer than is possible: the solver"
                )
                yield where, f"{text} at a finer step for {best['value']:.6g}"


def runs(home: Path, told: dict[str, Any], whole: bool = False) -> Found:
    """What in the numbers, curves and forecasts of free runs contradicts. vpt is valid time in
    about's `unit`. `whole`: rivals learn from all that trains."""
    cells, about = told["cells"], told["about"]
    curves, images = read_json(home / CURVES), np.load(home / IMAGES, allow_pickle=False)
    where = (home / "metrics.json").as_posix()
    if {*curves["order"]} != cells.keys() or len(images) != len(cells) + 1:
        yield (home / CURVES).as_posix(), "it is of other cells than metrics.json"
        return
    source = Path("data", home.parts[2], "prepared", home.name)
    series, starts = (np.load(source / name, allow_pickle=False) for name in (SERIES, STARTS))
    times = starts[:, 1:] + np.arange(1, about["horizon"] + 1)
    truth = series[starts[:, :1], times]  # B H O
    if len(starts) != about["starts"] or not np.allclose(images[0], truth[0], 1e-6, 1e-6):
        yield (home / IMAGES).as_posix(), "its truth is not the first start's"
    first, end = read_json(source / ABOUT)["parts"]["train"]
    plain = {"persistence": series[starts[:, 0], starts[:, 1]][:, None]}
    plain |= {"mean": series[:, first:end].mean((0, 1))} if whole else {}
    for cell, entry in cells.items():
        curve = curves["curves"][cell]
        if cell in plain:
            forecast = np.broadcast_to(plain[cell], truth.shape)
            for text in trivial(forecast, truth, entry["metrics"], curve, about):
                yield where, f"{cell}: {text}"
        for text in longest(entry["metrics"]["vpt"], curve, about):
            yield where, f"{cell}: {text}"


def trivial(
    forecast: np.ndarray,
    truth: np.ndarray,
    metrics: dict[str, Any],
    curve: dict[str, Any],
    about: dict[str, Any],
) -> Iterator[str]:
    """How a forecast (B, H, O) that follows from the series errs otherwise than it is told to."""
    error = forecasts.nrmse(forecast, truth)
    steps = forecasts.valid(error, about["threshold"])
    mine = {"vpt": steps.mean() * about["step"] * about["unit"], "nrmse_1": error[:, 0].mean()}
    for name, value in mine.items():
        if not near(value, metrics[name]["value"]):
            yield f"the prepared series give {name} {value}, not {metrics[name]['value']}"
    if forecasts.curve(error) != curve:
        yield "its curve is not that of the prepared series"


def longest(vpt: dict[str, Any], curve: dict[str, Any], about: dict[str, Any]) -> Iterator[str]:
    """How a valid time is longer than its curve allows: where a level of the errors is above the
    threshold, fewer starts than its share are valid."""
    share = np.ones(about["horizon"])
    for level in LEVELS:
        band = np.array([np.inf if one is None else one for one in curve[level]])
        share[band > about["threshold"] * (1 + ROUNDED)] = float(level)
    most = np.minimum.accumulate(share).sum() * about["step"] * about["unit"]
    if vpt["value"] > most * (1 + SUMS) or vpt["n"] != about["starts"]:
        yield f"it is valid for {vpt['value']:.6g}, its curve allows {most:.6g} at most"


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    judges = {"prepared": prepared, "evaluated": evaluated}
    return agreeing.main("stages.dynamics.agree", judges, argv)


if __name__ == "__main__":
    sys.exit(main())
