"""Times of a training step of the experiment chaos, and how much training moves its numbers: what
its claims rest on and the DAG does not make.

`python -m tests.benchmarks.bench_dynamics times PROFILE` writes
reports/chaos/PROFILE/benchmarks.json: ratios of the transformer's step to those of the recurrent
networks, of equal width, on equal windows, in turn within one run. `... spreads PROFILE` trains the
profile's cells with other seeds in a scratch folder and writes data/spreads/PROFILE/chaos.json.
Both need the prepared sets (`dvc repro`).
"""

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch

from stages import files, seeds
from stages.dynamics import forecasts, free_run, measure
from stages.dynamics.models import build
from stages.dynamics.settings import dynamics_of
from stages.dynamics.train import fit
from stages.dynamics.windows import Windows
from stages.params import load
from stages.spreads import of_seeds, place
from stages.training import cells, loop, shell
from stages.training.checkpoint import Checkpoints
from tests.benchmarks.clock import machine

FAMILY, SET, WARM, ROUNDS = "dynamics", "l96_f10", 5, 40
RECURRENT = ("lstm", "gru", "rhn")
FURTHER = (1,)  # seeds beside the cells' own


def prepared(profile: str, dataset: str) -> Path:
    return Path("data", profile, "prepared", dataset)


def timed(profile: str) -> dict:
    """Milliseconds of a step by model, one after the other in every round, and their ratios."""
    parameters = load()
    told = dynamics_of(parameters, profile)
    size = next(iter(parameters.trained("chaos", profile).cells.values())).size
    data = Windows.open(prepared(profile, SET), told.training[SET], 0)
    numbers = data.slices("train")[: told.training[SET].batch]
    steps = {}
    for model, variant in (*((one, "base") for one in RECURRENT), ("transformer", "pre")):
        chosen = cells.arguments(cells.Cell(model, variant, size, 0), parameters)
        network = build(model, chosen, data.series.shape[2], float(data.about["change"]))
        adam = torch.optim.Adam(network.parameters())

        def step(network=network, adam=adam) -> float:
            begun = time.perf_counter()
            adam.zero_grad()
            batch = data.batch(numbers, None)
            data.loss(network(batch), batch).backward()
            adam.step()
            return 1e3 * (time.perf_counter() - begun)

        steps[model] = step
    taken = {model: [] for model in steps}
    for number in range(WARM + ROUNDS):
        for model, step in steps.items():
            spent = step()
            if number >= WARM:
                taken[model].append(spent)
    rng, ratios = seeds.stream(0, FAMILY, "times"), {}
    for model in RECURRENT:
        each = np.array(taken["transformer"]) / np.array(taken[model])
        again = np.median(rng.choice(each, (2000, len(each))), 1)
        low, high = np.quantile(again, (0.05, 0.95))
        middle = float(np.median(each))
        ratios[f"transformer / {model}"] = {"value": middle, "low": float(low), "high": float(high)}
    return {
        "machine": machine()["cpu"],
        "ms": {model: statistics.median(times) for model, times in taken.items()},
        "ratios": ratios,
        "size": size,
        "rounds": ROUNDS,
        "load": os.getloadavg()[0],
    }


def moved(profile: str) -> dict:
    """Spreads over seeds, by kind of model, of all metrics of the profile's cells."""
    parameters = load()
    told, found = dynamics_of(parameters, profile), {}
    opened = {
        name: measure.Data.open(prepared(profile, name), told, parameters.training.seed)
        for name in told.datasets
    }
    for cell in parameters.trained("chaos", profile).cells.values():
        for seed in (cell.seed, *FURTHER):
            named = cells.Cell(cell.model, cell.arm, cell.size, seed, cell.training or {})
            budget = shell.varied(named, told.training[cell.dataset])
            data = opened[cell.dataset]
            windows = Windows.open(prepared(profile, cell.dataset), budget, seed)
            seeds.everything(seed)
            chosen = cells.arguments(named, parameters)
            scale = float(windows.about["change"])
            network = build(cell.model, chosen, windows.series.shape[2], scale)
            settings = loop.Settings(
                budget.steps,
                budget.validate_every,
                budget.patience,
                budget.learning_rate,
                parameters.training.clip,
                seed,
                slices=budget.batch,
                schedule=budget.schedule,
            )
            kept = Checkpoints(files.WORK / "spreads" / named.name)
            kept.clear()
            fit(network, windows, budget, settings, kept)
            kept.clear()
            ahead = free_run.forecast(network, data.context, data.asked.horizon, windows.length)
            entry = forecasts.forecast_metrics(ahead, data.truth)
            found[f"{cell.dataset}/{named.name}"] = {"metrics": entry["metrics"]}
            print(cell.dataset, named.name, entry["metrics"]["vpt"]["value"], flush=True)
    return {"seeds": of_seeds({"cells": found})}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("times", "spreads"))
    parser.add_argument("profile")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.what == "times":
        files.write_json(
            Path("reports/chaos", asked.profile, "benchmarks.json"), timed(asked.profile)
        )
    else:
        file = place("chaos", asked.profile)  # of rounding it tells what it told
        known = files.read_json(file) if file.exists() else {"between": [], "rounding": {}}
        files.write_json(file, known | moved(asked.profile))
    return 0


if __name__ == "__main__":
    sys.exit(main())
