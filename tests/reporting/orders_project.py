"""Hand-made results of the experiment on sequences in any order: numbers one can reckon by hand, in
the form that stages/sequences/evaluation writes.

Mazes of 5 x 7 with one way and flights that climb in steps are drawn here; samples are the truth,
spoilt where a test wants it. The printed numbers and the companions are the project's own.
"""

import math
from pathlib import Path

import numpy as np
import results_project
from results_project import PROFILE, ROOT
from safetensors.numpy import save_file

from stages import files

EXPERIMENT = "any_order"
SHOWN = 4
ROWS, COLUMNS = 5, 7
MAZE = ROWS * COLUMNS
STEPS = 20
CLIMB = {"steps": STEPS, "step_s": 30.0, "bin_ft": 100.0, "bins": 400, "types": ["A320", "B738"]}
LAWS = {
    "mazes": {"rows": ROWS, "columns": COLUMNS, "walls": 2, "far": 4},
    "climbs": CLIMB,
    "permutation": {"length": 12},
    "walk": {"starts": [0]},
    "grammar": {},
}
KINDS = {
    "mazes": "maze",
    "climbs": "climb",
    "permutation": "permutation",
    "walk": "walk",
    "grammar": "grammar",
}
LENGTHS = {"mazes": 2 * MAZE, "climbs": 1 + 2 * STEPS, "permutation": 12, "walk": 20, "grammar": 20}
PROMPTS = {"mazes": MAZE, "climbs": 2 + STEPS}
GPT, RANDOM, FRACTAL, CURRICULUM, DIFFUSION = (
    *(f"sigma_gpt-{order}-tiny" for order in ("left_to_right", "random", "fractal", "curriculum")),
    "diffusion-plain-tiny",
)
# What the samples of each arm are worth, a number a seed: accuracy, MSE in FL² with the first
# altitude given, validity.
WORTH = {
    "mazes": {
        "uniform": (0.0,),
        "marginals": (0.0,),
        GPT: (0.97, 0.99),
        RANDOM: (0.96, 0.98),
        FRACTAL: (0.95, 0.93),
        DIFFUSION: (0.92,),
    },
    "climbs": {
        "uniform": (9000.0,),
        "marginals": (4000.0,),
        "persistence": (2000.0,),
        "constant_rate": (300.0,),
        GPT: (200.0, 204.0),
        RANDOM: (100.0, 102.0),
        DIFFUSION: (120.0,),
    },
    "permutation": {
        "uniform": (0.0,),
        "marginals": (0.0,),
        GPT: (1.0, 1.0),
        RANDOM: (0.98, 1.0),
        DIFFUSION: (0.5,),
    },
    "walk": {"uniform": (0.0,), "marginals": (0.0,), RANDOM: (0.9, 0.92)},
    "grammar": {
        "uniform": (0.0,),
        "marginals": (0.1,),
        GPT: (0.9, 0.92),
        RANDOM: (0.8, 0.82),
        CURRICULUM: (0.9, 0.91),
    },
}
NATS = {"uniform": 2.0, "marginals": 1.5, GPT: 0.5, RANDOM: 0.6, FRACTAL: 0.62, CURRICULUM: 0.51}
BY_PROMPT = {
    "0": 1.0,
    "10": 0.8,
    "50": 0.4,
    "mid_climb": 0.3,
}  # of the MSE; GPT's are a quarter of that from half the flight on
ROUNDS = {"burst_1": 4.0, "burst_5": 3.0, "burst_20": 2.5, "exact": 6.0}
MEASURED = {
    "maze": ("correct", "optimal", "copied", "connected", "unbranched"),
    "permutation": ("valid", "different"),
    "walk": ("valid", "steps", "stays"),
    "grammar": ("valid", "legal"),
}


def number(
    value: float, unit: str = "1", low: float | None = None, high: float | None = None, n: int = 100
) -> dict:
    """A metric as evaluation writes it."""
    return {"value": value, "unit": unit, "n": n} | (
        {} if low is None else {"low": low, "high": high}
    )


def share(value: float) -> dict:
    """A share with an interval of four points to either side."""
    return number(value, "share", max(0.0, value - 0.04), min(1.0, value + 0.04))


def costs(rounds: float, passes: float, positions: float) -> dict:
    """What a sampler cost."""
    return {
        name: number(value, name, value, value) | {"sd": 0.5 if name == "rounds" else 0.0}
        for name, value in (("rounds", rounds), ("passes", passes), ("positions", positions))
    }


def samplers_of(arm: str, produced: int) -> dict[str, dict]:
    """Sampler -> its costs, as an arm has them."""
    if arm.startswith("diffusion"):
        return {f"diffusion_{k}": costs(k, k, k * 2 * produced) for k in (1, 4, 16)}
    if not arm.startswith("sigma_gpt"):
        return {arm: costs(0, 0, 0)}
    one = costs(produced, produced, 2 * produced)
    found = {"left_to_right": one} | ({} if arm == GPT else {"own": one})
    if arm in (RANDOM, CURRICULUM):
        found |= {
            name: costs(ROUNDS[name], 2 * ROUNDS[name], 300.0)
            for name in ("burst_1", "burst_5", "burst_20")
        }
    return found | {"exact": costs(ROUNDS["exact"], 6.0, 200.0)}


def worth_of(dataset: str, arm: str, sampler: str, value: float, prompt: str) -> dict:
    """What one sampler's samples are worth: diffusion loses a tenth at 4 steps and half at 1;
    one sampler is as good as another."""
    few = {"diffusion_1": 0.5, "diffusion_4": 0.9}.get(sampler, 1.0)
    if KINDS[dataset] == "climb":
        mse = (
            value
            / few
            * BY_PROMPT[prompt]
            * (0.25 if arm == GPT and prompt in ("50", "mid_climb") else 1)
        )
        squares = {
            "mse_levels": ("FL2", 1),
            "mse": ("ft2", 1e4),
            "mse_whole": ("ft2", 5e3),
            "mse_whole_levels": ("FL2", 0.5),
        }
        found = {
            name: number(mse * scale, unit, mse * scale / 1.1, mse * scale * 1.1)
            for name, (unit, scale) in squares.items()
        }
        return found | {
            "rmse": number(100 * math.sqrt(mse), "ft"),
            "smooth": share(0.9),
            "no_altitude": share(0.0),
        }
    return {name: share(few * value) for name in MEASURED[KINDS[dataset]]}


def likelihood(dataset: str, arm: str) -> dict:
    """The likelihood's metrics of an arm: from left to right, random order is half as long
    again, a curriculum equal to its own order."""
    if arm.startswith("diffusion"):
        return {
            f"nats_bound{split}": number(0.9, "nats/token", 0.85, 0.95) for split in ("", "_val")
        }
    if arm not in NATS:
        return {}
    found, text = {}, KINDS[dataset] == "grammar"
    for suffix, times in {
        "": 1.0,
        "_left_to_right": {RANDOM: 1.5, FRACTAL: 3.0}.get(arm, 1.0),
    }.items():
        if suffix and not arm.startswith("sigma_gpt"):
            continue
        nats = NATS[arm] * times
        for split in ("", "_val"):
            found[f"nats{suffix}{split}"] = number(nats, "nats/token", nats / 1.02, nats * 1.02)
            found[f"perplexity{suffix}{split}"] = number(
                math.exp(nats), "1/token", math.exp(nats / 1.02), math.exp(nats * 1.02)
            )
            if text:
                found[f"bits_per_character{suffix}{split}"] = number(
                    nats / math.log(2), "bits/character"
                )
    return found


def cell(dataset: str, arm: str, seed: int, value: float) -> dict:
    """A cell's entry of metrics.json."""
    known = PROMPTS.get(dataset, 0)
    prompts = list(BY_PROMPT) if KINDS[dataset] == "climb" else ["prompt"]
    entry = {
        "metrics": likelihood(dataset, arm),
        "undefined": {},
        "posteriors": {},
        "parameters": 17_664 if "-" in arm else 0,
        "history": {"val": []},
    }
    entry["samplers"] = {
        name: {
            prompt: {"metrics": worth_of(dataset, arm, name, value, prompt) | cost, "undefined": {}}
            for prompt in prompts
        }
        for name, cost in samplers_of(arm, LENGTHS[dataset] - known).items()
    }
    if KINDS[dataset] in ("maze", "walk", "permutation", "grammar") and (
        arm in (RANDOM, CURRICULUM) or arm in ("uniform", "marginals")
    ):
        apart = {"uniform": 0.5, "marginals": 0.3}.get(arm, 0.03 + 0.01 * seed)
        entry["posteriors"] = {
            part: number(apart * times, "1", 0.9 * apart * times, 1.1 * apart * times)
            for part, times in (("0", 1.0), ("10", 1.1), ("50", 1.2))
        }
        if KINDS[dataset] == "maze":
            entry["path_posteriors"] = {
                part: number(3 * one["value"], "1", 3 * one["low"], 3 * one["high"])
                for part, one in entry["posteriors"].items()
            }
    if arm.startswith(
        "sigma_gpt"
    ):  # falls by a hundredth a step, in random and fractal order a third and a fourth as fast
        slow = {RANDOM: 3.0, FRACTAL: 4.0}.get(arm, 1.0) * (1 + 0.02 * seed)
        entry["history"] = {
            "val": [[step, max(2.0 - 0.01 * step / slow, 0.4)] for step in range(10, 500, 10)]
        }
    return entry


def cells(dataset: str) -> dict[str, dict]:
    """All cells of a data set; companions have no seed."""
    return {
        (f"{arm}-s{seed}" if "-" in arm else arm): cell(dataset, arm, seed, value)
        for arm, values in WORTH[dataset].items()
        for seed, value in enumerate(values)
    }


def mazes(count: int) -> np.ndarray:
    """Mazes (count, 2 R K) with a wall across the middle and one gap in it, start on its left
    and goal on its right, and the one path drawn."""
    made = np.zeros((count, 2, ROWS, COLUMNS), np.int32)
    made[:, :, [0, -1]] = made[:, :, :, [0, -1]] = 1
    for k in range(count):
        made[k, :, 1:-1, 3] = 1
        made[k, :, 1 + k % 3, 3] = 0
        made[k, :, 2, 1], made[k, :, 2, 5] = 2, 3
        path = made[k, 1]
        for column in (2, 3, 4):
            path[1 + k % 3, column] = 4
        for column in (2, 4):
            path[min(2, 1 + k % 3) : max(2, 1 + k % 3) + 1, column] = 4
    return made.reshape(count, -1)


def flights(count: int) -> np.ndarray:
    """Flights (count, 1 + 2 S) that climb ten levels a step to their cleared level."""
    level = 250 + 10 * np.arange(count)[:, None]
    altitude = np.minimum(100 + 10 * np.arange(STEPS) + 0 * level, level)
    return np.concatenate(
        [np.full((count, 1), 400), np.repeat(level, STEPS, 1), altitude], 1
    ).astype(np.int32)


def truth_of(dataset: str) -> np.ndarray:
    """The shown test sequences."""
    rng = np.random.default_rng(3)
    if dataset == "mazes":
        return mazes(SHOWN)
    return (
        flights(SHOWN)
        if dataset == "climbs"
        else np.stack([rng.permutation(LENGTHS[dataset]) for _ in range(SHOWN)]).astype(np.int32)
    )


def samples(dataset: str, found: dict[str, dict]) -> dict[str, np.ndarray]:
    """samples.safetensors: the truth for all but companions and diffusion, whose mazes lose a
    path cell and whose flights are off by a level or two."""
    truth, tensors = truth_of(dataset), {"truth": truth_of(dataset)}
    rng = np.random.default_rng(5)
    for name, entry in found.items():
        for sampler, prompts in entry["samplers"].items():
            for prompt in prompts:
                made = truth.copy()
                order = np.stack([rng.permutation(truth.shape[1]) for _ in range(SHOWN)]).astype(
                    np.int32
                )
                if dataset == "mazes":
                    order = np.concatenate(
                        [
                            np.tile(np.arange(MAZE), (SHOWN, 1)),
                            MAZE + np.stack([rng.permutation(MAZE) for _ in range(SHOWN)]),
                        ],
                        1,
                    ).astype(np.int32)
                    if not name.startswith("sigma"):
                        made[:, MAZE:][made[:, MAZE:] == 4] = 0
                if dataset == "climbs":
                    made[:, 2 + STEPS :] += rng.integers(-2, 3, (SHOWN, STEPS - 1)).astype(np.int32)
                tensors |= {
                    f"{name}/{sampler}/{prompt}/tokens": made,
                    f"{name}/{sampler}/{prompt}/order": order,
                }
    return tensors


def about(dataset: str) -> dict:
    """What evaluation writes of a data set beside its cells."""
    found = {
        "kind": KINDS[dataset],
        "prompt": PROMPTS.get(dataset, 0),
        "sequences": {"train": 1000, "val": 50, "test": 100},
        "shown": list(range(SHOWN)),
    }
    if dataset == "permutation":
        found |= {
            "entropy": math.lgamma(13) / 12,
            "bounds": {k: {"mean": 3.2, "sd": 0.5} for k in ("1", "5", "20")},
        }
    if dataset == "mazes":
        found["uncertain"] = {part: {"cells": 400, "between": 7} for part in ("0", "10", "50")}
    return found | ({"entropy": 0.4} if dataset in ("walk", "grammar") else {})


def evaluated(dataset: str) -> None:
    """metrics.json, some samples, and what the preparation says of the sequences."""
    home, found = Path("reports", EXPERIMENT, PROFILE, "evaluated", dataset), cells(dataset)
    files.write_json(home / "metrics.json", {"cells": found} | about(dataset))
    save_file(samples(dataset, found), home / "samples.safetensors")
    files.write_json(
        Path("data", PROFILE, "prepared", dataset, "sequences.json"),
        {"kind": KINDS[dataset], "law": LAWS[dataset]},
    )


def stage_records(dataset: str) -> None:
    """A record of every stage from acquire to tabulate (sequences are not decoded), and the
    gate's result."""
    results_project.gate(dataset)
    for stage in ("acquire", "prepare", "validate"):
        results_project.record(stage, dataset)
    for name in (name for name in cells(dataset) if "-" in name):
        results_project.record("train", dataset, name, EXPERIMENT)
    results_project.record("evaluate", dataset, experiment=EXPERIMENT)
    results_project.record("tabulate", experiment=EXPERIMENT)


def build(root: Path, datasets: tuple[str, ...] = tuple(WORTH)) -> None:
    """The experiment into `root`, which must be the working folder."""
    (root / "stages").symlink_to(ROOT / "stages")
    (root / "data").mkdir()
    (root / "data/published").symlink_to(ROOT / "data/published")
    for dataset in datasets:
        evaluated(dataset)
    (root / "reports" / EXPERIMENT).mkdir(parents=True, exist_ok=True)
    (root / "reports" / EXPERIMENT / "companions.csv").write_text(
        (ROOT / "reports" / EXPERIMENT / "companions.csv").read_text()
    )
