"""`python -m stages.toys.evaluate EXPERIMENT PROFILE DATASET`: how surprised every trained cell is
by the tosses that test.

surprise: mean over the tosses of -ln(chance of what was seen), nats; gap: mean over coins of the
distance between the predicted chance of heads and the coin's own, which we know.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stages import files, seeds
from stages.runner import Asked, Work, known
from stages.scores import groups, shell
from stages.toys.settings import FAMILY, toys_of

MODULE = "stages.toys.evaluate"


def plan(asked: Asked) -> Work:
    """What is evaluated with these names. InputError for a set that the profile does not have."""
    toys = toys_of(asked.parameters, asked["profile"])
    known("set of toys", asked["dataset"], toys.datasets)
    machine, prepared = shell.Machine.of(asked), asked.data("prepared")

    def entry(run: Path) -> dict[str, Any]:
        return measured(run, prepared, toys.resamples, machine)

    def evaluate(cells: list[Path], final: Path) -> None:
        found = {run.name: entry(run) for run in cells}
        with files.atomic_folder(final) as folder:
            files.write_json(folder / "metrics.json", {"cells": found})

    told = shell.Evaluation(evaluate, entry, "stages.toys.models", {"resamples": toys.resamples})
    return shell.work(MODULE, asked, told, machine)


def measured(run: Path, prepared: Path, resamples: int, machine: shell.Machine) -> dict[str, Any]:
    """A cell's entry of metrics.json."""
    import torch

    from stages.toys.contract import Batch
    from stages.toys.tosses import Tosses
    from stages.training import store

    torch.set_num_threads(machine.threads)
    model, _ = store.load(str(run / shell.WEIGHTS))
    data = Tosses.open(prepared)
    tested, coins = data.slices("test"), torch.arange(len(data.chances))
    batch = data.batch(tested)
    with torch.no_grad():
        surprise = -model(batch).log_prob(batch.heads).double().numpy()
        chance = model(Batch(coins, torch.zeros(len(coins)))).mean.double().numpy()
    numbers, rng = data.split.new_tensor(tested).numpy(), seeds.stream(machine.seed, FAMILY)
    gap = abs(chance - data.chances)
    return {
        "metrics": {
            "surprise": groups.mean_of(surprise, numbers, "nats", resamples, rng),
            "gap": {"value": float(gap.mean()), "unit": "1", "n": len(gap)},
        },
        "chances": chance.tolist(),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    return shell.main(MODULE, "Evaluate the trained cells of a set of toys.", plan, argv)


if __name__ == "__main__":
    sys.exit(main())
