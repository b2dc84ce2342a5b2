"""Forecasts of altitude, judged (thesis 4.3.1, D.4, tables 4.2 and D.1): the mean squared error
that the public code never computed.

Its "mse" counts the samples whose error is 50 or more (errata); here it is the mean of squared
differences between the sampled and the true altitude, in ft^2 and in flight levels^2 (100 ft), over
what was produced (`mse`) and, as the thesis words it, over all altitudes with the given ones, whose
error is 0 (`mse_whole`). Altitudes are those of the bins, so the data's own rounding adds nothing
to it.
Habits beside it, a share of the steps produced: `held` repeat the altitude before, `stuck` do so
though the cleared level is not near (the repetition of thesis 4.1), `jumps` are faster than any
airliner.
Prompts: the first altitude alone ("0"), a tenth or half of all steps, or half of the first climb or
descent. A token that is no altitude counts as the altitude before it, and is reported. Companions:
the last altitude kept, and the last rate kept until the cleared level.
Shapes: N flights, K samples of each, S steps, T = 1 + 2 S tokens, G aircraft. Intervals: 90 %,
aircraft drawn with replacement. Units: ft, s.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from stages.errors import DataError, InputError
from stages.scores import bootstrap

PROMPTS = {"0": 0.0, "10": 0.1, "50": 0.5, "mid_climb": None}
LEVEL_FT = 100.0
LIMIT_FT_MIN = 6000.0  # faster than any airliner: a jump
PLATEAU_S, BEGUN_FT = (
    60.0,
    1000.0,
)  # how long a level-off lasts, and how far from the beginning it can be
NEAR_BINS = 3  # of a level: a flight may be easing off
RATE_STEPS = 4  # that a constant rate is measured over, at most
HABITS = {"held": "steps", "stuck": "away", "jumps": "steps"}  # of which steps each is a share
Form = Callable[[np.ndarray], np.ndarray]  # of a ratio of sums


def feet(tokens: np.ndarray, law: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Altitudes (..., S) in ft and which tokens are altitudes (..., S), of tokens (..., T). What is
    none repeats the altitude before it.

    DataError for sequences of another length or without a first altitude.
    """
    steps = law["steps"]
    if tokens.shape[-1] != 1 + 2 * steps:
        raise DataError(
            "sequences are no flights",
            expected=f"{1 + 2 * steps} tokens",
            found=f"{tokens.shape[-1]}",
        )
    altitude = tokens[..., 1 + steps :]
    real = (altitude >= 0) & (altitude < law["bins"])
    if not real[..., 0].all():
        raise DataError(
            "a flight has no first altitude",
            expected=f"a token below {law['bins']}",
            found=f"{altitude[..., 0][~real[..., 0]][0]}",
        )
    last = np.maximum.accumulate(np.where(real, np.arange(steps), 0), axis=-1)
    return np.take_along_axis(altitude, last, -1).astype(np.float64) * law["bin_ft"], real


def cleared(tokens: np.ndarray, law: dict[str, Any]) -> np.ndarray:
    """Cleared levels (N, S) in ft; where none follows, the last one."""
    level = tokens[:, 1 : 1 + law["steps"]]
    last = np.maximum.accumulate(
        np.where(level < law["bins"], np.arange(level.shape[1]), 0), axis=1
    )
    return np.take_along_axis(level, last, 1).astype(np.float64) * law["bin_ft"]


def first_climb(tokens: np.ndarray, law: dict[str, Any]) -> np.ndarray:
    """Steps (N,) until the first climb or descent ends: a plateau of a minute, at least 1000 ft
    from the beginning, or the flight's end."""
    altitude, real = feet(tokens, law)
    plateau = min(max(1, int(np.ceil(PLATEAU_S / law["step_s"]))), altitude.shape[1] - 1)
    ends = real.sum(1) - 1
    for row, line in enumerate(altitude):
        spread = np.lib.stride_tricks.sliding_window_view(line, plateau + 1)
        level = (np.ptp(spread, axis=1) <= law["bin_ft"]) & (
            np.abs(spread[:, 0] - line[0]) >= BEGUN_FT
        )
        found = np.flatnonzero(level[: max(0, ends[row] - plateau + 1)])
        ends[row] = found[0] if found.size else ends[row]
    return ends


def given(tokens: np.ndarray, law: dict[str, Any], prompt: str) -> np.ndarray:
    """How many tokens (N,) of each flight are given: its type, its levels, its first altitude,
    and what PROMPTS says of the others."""
    if prompt not in PROMPTS:
        raise InputError("no such prompt", found=repr(prompt), expected=", ".join(PROMPTS))
    _, real = feet(tokens, law)
    share = PROMPTS[prompt]
    steps = (
        first_climb(tokens, law) // 2
        if share is None
        else np.round(share * real.sum(1)).astype(np.int64)
    )
    return 1 + law["steps"] + np.maximum(1, steps)


def persistence(tokens: np.ndarray, known: np.ndarray, law: dict[str, Any]) -> np.ndarray:
    """Sequences (N, T) whose altitudes stay what the last given one is; `known` (N,): tokens
    given."""
    made, place = tokens.copy(), np.arange(tokens.shape[1])
    held = np.take_along_axis(tokens, known[:, None] - 1, 1)
    return np.where(place >= known[:, None], held, made)


def rates(tokens: np.ndarray, law: dict[str, Any]) -> dict[int, float]:
    """Mean |rate| in ft/step of every type's token among training sequences, while the cleared
    level is not near; -1: of all types."""
    altitude, real = feet(tokens, law)
    change = np.abs(np.diff(altitude, axis=1))
    moving = (np.abs(cleared(tokens, law) - altitude)[:, :-1] > NEAR_BINS * law["bin_ft"]) & real[
        :, 1:
    ]
    found = {-1: float(change[moving].mean()) if moving.any() else 0.0}
    for kind in np.unique(tokens[:, 0]):
        own = (tokens[:, 0] == kind)[:, None] & moving
        if own.any():
            found[int(kind)] = float(change[own].mean())
    return found


def constant_rate(
    tokens: np.ndarray, known: np.ndarray, law: dict[str, Any], usual: dict[int, float]
) -> np.ndarray:
    """Sequences (N, T) that go on at the last rate until the cleared level, and stay there. Where
    the altitudes given are level or one alone, at the type's usual rate (`rates`) towards it."""
    altitude, _ = feet(tokens, law)
    level, first = cleared(tokens, law), 1 + law["steps"]
    made = tokens.copy()
    for row, count in enumerate(known - first):
        back = min(RATE_STEPS, count - 1)
        speed = (
            abs(altitude[row, count - 1] - altitude[row, count - 1 - back]) / back if back else 0.0
        )
        speed = speed if speed > 0 else usual.get(int(tokens[row, 0]), usual[-1])
        now = altitude[row, count - 1]
        for step in range(count, law["steps"]):
            now += np.clip(level[row, step] - now, -speed, speed)
            made[row, first + step] = int(
                np.clip(np.floor(now / law["bin_ft"] + 0.5), 0, law["bins"] - 1)
            )
    return made


def tallies(
    samples: np.ndarray, truth: np.ndarray, known: np.ndarray, law: dict[str, Any]
) -> dict[str, np.ndarray]:
    """Sums (N,) of each flight over its K samples (N, K, T): squared error, and how many
    altitudes it is a sum over, and the like."""
    altitude, real = feet(samples, law)
    true, flown = feet(truth, law)
    produced = flown & (np.arange(law["steps"]) >= (known - 1 - law["steps"])[:, None])
    square = (altitude - true[:, None]) ** 2
    count = samples.shape[1]
    limit = LIMIT_FT_MIN * law["step_s"] / 60.0 + law["bin_ft"]
    change = np.abs(np.diff(altitude, axis=2))
    jump = (change > limit) & produced[:, None, 1:]
    step = produced[:, None, 1:] & real[:, :, 1:]
    away = step & (
        np.abs(cleared(truth, law)[:, None, 1:] - altitude[:, :, :-1]) > NEAR_BINS * law["bin_ft"]
    )
    return {
        "steps": step.sum((1, 2)),
        "away": away.sum((1, 2)),
        "held": (step & (change == 0)).sum((1, 2)),
        "stuck": (away & (change == 0)).sum((1, 2)),
        "jumps": (step & jump).sum((1, 2)),
        "square": (square * produced[:, None]).sum((1, 2)),
        "produced": produced.sum(1) * count,
        "whole": (square * flown[:, None]).sum((1, 2)),
        "flown": flown.sum(1) * count,
        "smooth": (~jump.any(2)).sum(1),
        "samples": np.full(len(samples), count),
        "none": (~real & produced[:, None]).sum((1, 2)),
    }


def judge(
    samples: np.ndarray,
    truth: np.ndarray,
    known: np.ndarray,
    law: dict[str, Any],
    aircraft: np.ndarray,
    rng: np.random.Generator,
    resamples: int = 1000,
) -> dict[str, dict[str, Any]]:
    """Metrics with 90 % intervals of samples (N, T) or (N, K, T) for flights `truth` (N, T) of
    `aircraft` (N,), the first known (N,) given.

    DataError where a sample changed what was given, or nothing was left to produce.
    """
    samples = samples[:, None] if samples.ndim == 2 else samples
    refuse_other_flights(samples, truth, known, aircraft)
    sums = tallies(samples, truth, known, law)
    if not sums["produced"].sum():
        raise DataError(
            "no altitude was left to produce", expected="prompts shorter than the flights"
        )
    group = np.unique(aircraft, return_inverse=True)[1]
    by_aircraft = {name: np.bincount(group, weights=one) for name, one in sums.items()}
    table = np.stack(list(by_aircraft.values()), 1)  # G, sums
    times = rng.multinomial(len(table), np.full(len(table), 1 / len(table)), resamples)
    drawn = np.einsum("rg,gs->rs", times.astype(np.float64), table)
    resampled = dict(zip(by_aircraft, drawn.T, strict=True))

    def metric(top: str, bottom: str, unit: str, form: Form = np.asarray) -> dict[str, Any]:
        # aircraft whose flights were given whole have nothing to be judged by
        usable = resampled[bottom] > 0
        low, high = bootstrap.interval(form(resampled[top][usable] / resampled[bottom][usable]))
        count = by_aircraft[bottom].sum()
        value = float(form(by_aircraft[top].sum() / count))
        return {"value": value, "unit": unit, "n": int(count), "low": low, "high": high}

    return {
        "mse": metric("square", "produced", "ft2"),
        "mse_levels": metric("square", "produced", "FL2", levels),
        "rmse": metric("square", "produced", "ft", np.sqrt),
        "mse_whole": metric("whole", "flown", "ft2"),
        "mse_whole_levels": metric("whole", "flown", "FL2", levels),
        "smooth": metric("smooth", "samples", "share"),
        "no_altitude": metric("none", "produced", "share"),
        **{name: metric(name, of, "share") for name, of in HABITS.items() if sums[of].sum()},
    }


def habits(
    truth: np.ndarray,
    known: np.ndarray,
    law: dict[str, Any],
    aircraft: np.ndarray,
    rng: np.random.Generator,
    resamples: int = 1000,
) -> dict[str, dict[str, Any]]:
    """HABITS of the flights themselves, at the steps that a sample produces: see `judge`."""
    found = judge(truth, truth, known, law, aircraft, rng, resamples)
    return {name: found[name] for name in HABITS if name in found}


def levels(squares: np.ndarray) -> np.ndarray:
    """Squared feet in squared flight levels."""
    return squares / LEVEL_FT**2


def refuse_other_flights(
    samples: np.ndarray, truth: np.ndarray, known: np.ndarray, aircraft: np.ndarray
) -> None:
    """DataError where samples (N, K, T) are not of the flights (N, T), or changed what was
    given."""
    if samples.shape[::2] != truth.shape or len(known) != len(truth) or len(aircraft) != len(truth):
        raise DataError(
            "samples and flights disagree",
            expected=f"samples of {truth.shape}",
            found=f"{samples.shape}, {len(known)} prompts, {len(aircraft)} aircraft",
        )
    kept = (samples == truth[:, None]) | (np.arange(truth.shape[1]) >= known[:, None])[:, None]
    if not kept.all():
        raise DataError(
            "a sample does not begin with what was given",
            where=f"flight {np.flatnonzero(~kept.all((1, 2)))[0]}",
        )
