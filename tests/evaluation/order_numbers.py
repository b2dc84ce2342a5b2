"""Metrics of models of sequences, made by hand."""

from known_spreads import content

from stages.sequences import comparisons
from stages.sequences.comparisons import Ordered
from stages.spreads import Spreads

GPT, RANDOM, FRACTAL, CURRICULUM, DIFFUSION = (
    *(f"sigma_gpt-{order}-tiny" for order in ("left_to_right", "random", "fractal", "curriculum")),
    "diffusion-plain-tiny",
)
NARROW = Spreads(content(("sigma_gpt", "diffusion"), 1e-9))  # of training; decides nothing here
ROUNDS = {"burst_1": 5.0, "burst_5": 3.0, "burst_20": 2.5}


def number(value: float, half: float = 0.0, n: int = 1000) -> dict:
    return {"value": value, "unit": "1", "n": n, "low": value - half, "high": value + half}


def samplers(
    arm: str, metric: str, value: float, rounds: dict[str, float], prompts: dict[str, float]
) -> dict:
    """Of each sampler the quality (times a prompt's factor) and its costs; one by one takes 60
    passes."""
    names = (
        {"left_to_right": 60.0}
        if arm == GPT
        else {"diffusion_1": 1.0, "diffusion_4": 4.0, "diffusion_16": 16.0}
        if arm == DIFFUSION
        else {"left_to_right": 60.0, "own": 60.0}
    )
    names |= rounds if arm in (RANDOM, CURRICULUM) else {}
    return {
        name: {
            prompt: {
                "metrics": {
                    metric: number(value * times),
                    "rounds": number(count),
                    "passes": number(2 * count if "burst" in name else count),
                }
            }
            for prompt, times in prompts.items()
        }
        for name, count in names.items()
    }


def made(
    kind: str, worth: dict[str, tuple[float, ...]], rounds=ROUNDS, prompts=None, **more
) -> Ordered:
    """A data set; `more`: perplexity (arm -> pair of own order and left to right), apart (total
    variations), steps (arm -> to a loss of 1), bounds."""
    metric, cells = comparisons.share_of(kind), {}
    for arm, values in worth.items():
        for seed, value in enumerate(values):
            entry = {
                "metrics": {},
                "samplers": samplers(
                    arm,
                    metric,
                    value,
                    rounds,
                    (prompts or {}).get(arm, {"0" if kind == "climb" else "prompt": 1.0}),
                ),
            }
            if arm in more.get("perplexity", {}):
                own, left = more["perplexity"][arm]
                entry["metrics"] = {
                    "perplexity": number(own * value),
                    "perplexity_left_to_right": number(left * value),
                }
            if arm == RANDOM and "apart" in more:
                entry["posteriors"] = {
                    share: number(one * value) for share, one in more["apart"].items()
                }
            if arm in more.get("steps", {}):
                entry["history"] = {
                    "val": [
                        [step, 2 - step / (more["steps"][arm] * value)]
                        for step in range(10, 2000, 10)
                    ]
                }
            cells[f"{arm}-s{seed}"] = entry
    about = {"cells": cells, "kind": kind, "bounds": more.get("bounds", {})}
    return Ordered("set", about, more.get("known", NARROW))


def near(value: float, spread: float = 0.005) -> tuple[float, ...]:
    """Three seeds close to a value."""
    return (value * (1 - spread), value, value * (1 + spread))
