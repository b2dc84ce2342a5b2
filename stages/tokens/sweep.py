"""`python -m stages.tokens.sweep EXPERIMENT PROFILE DATASET MODEL`: a random search for a mixer's
learning rate (`tuning` of stages/params/families/PROFILE/tokens.yaml), as the thesis tunes in
section 2.5.6; its dropout is left out, for the frame has none.

A trial is one short training by the house's loop; its value is the share of the rows that select
that the best weights get wrong. The draws are of the set, not of the model: all mixers of a set are
tried at the same rates. Written to reports/EXPERIMENT/PROFILE/sweeps/DATASET/MODEL: trials.csv. A
killed search goes on.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from stages import code, files, records, runner, seeds
from stages.errors import DivergedError
from stages.sweeps.ledger import Draw, Plan, Report
from stages.sweeps.shell import NAMES, run, workers
from stages.sweeps.space import Arguments
from stages.sweeps.store import Store
from stages.tokens.models import build, model_class
from stages.tokens.sets import ROWS, Sets
from stages.tokens.settings import FAMILY, tokens_of
from stages.tokens.trials import TRIALS
from stages.training import cells, loop
from stages.training.checkpoint import Checkpoints

MODULE = "stages.tokens.sweep"


@dataclass(frozen=True)
class Score:
    """The objective of a model on one prepared set: the share of wrong labels at a learning rate.
    Checkpoints lie in `kept` while a trial lasts."""

    model: str
    arguments: Mapping[str, Any]
    prepared: Path
    settings: loop.Settings
    threads: int
    kept: Path

    def __call__(self, arguments: Arguments, report: Report | None = None) -> float:
        """Train and count. Infinite where training diverged."""
        torch.set_num_threads(self.threads)
        data = Sets.open(self.prepared)
        seeds.everything(self.settings.seed)
        model = build(self.model, self.arguments, data.dimensions)
        asked = replace(self.settings, learning_rate=float(arguments["learning_rate"]))
        kept = Checkpoints(self.kept / records.key("trial", dict(arguments)))
        kept.clear()
        try:
            loop.train(model, data, asked, kept)
        except DivergedError:
            return math.inf
        finally:
            kept.clear()
        return wrong(model, data)


@torch.no_grad()
def wrong(model: Any, data: Sets) -> float:
    """The share of the rows that select whose label is not the model's."""
    numbers, count = data.slices("val"), 0
    for first in range(0, len(numbers), ROWS):
        batch = data.batch(numbers[first : first + ROWS])
        count += int((model(batch).values.argmax(1) != batch.targets).sum())
    return count / len(numbers)


def plan(asked: runner.Asked) -> runner.Work:
    """The search with these names. InputError for names that do not stand in the parameters."""
    parameters, names, count = asked.parameters, asked.names, workers()
    told, dataset, model = tokens_of(parameters, names["profile"]), names["dataset"], names["model"]
    where = f"profiles.{names['profile']}.families.{FAMILY}.tuned"
    runner.known("set that is tuned on", dataset, told.tuned.datasets, where)
    runner.known("model that is tuned", model, told.tuned.models, where)
    wanted, protocol, prepared = told.tuning[dataset], parameters.training, asked.data("prepared")
    cell = cells.Cell(model, wanted.arms[model], wanted.size, protocol.seed)
    arguments = cells.arguments(cell, parameters)
    settings = loop.Settings(
        wanted.steps, wanted.validate_every, wanted.steps, protocol.learning_rate, protocol.clip,
        protocol.seed, slices=wanted.batch, schedule="cosine",
    )  # fmt: skip
    used = {
        "model": model, "arguments": arguments, "protocol": protocol.model_dump(mode="json"),
        "tuning": wanted.model_dump(mode="json", exclude_defaults=True, exclude={"arms"}),
    }  # fmt: skip
    modules, inputs = (MODULE, model_class(model).__module__), records.files_in([prepared])
    store = Store.named(
        records.key(
            "sweep", names["experiment"], used, code.recorded(modules)["digest"],
            {path.as_posix(): records.describe(path) for path in inputs},
            records.environment(threads=protocol.threads),
        )
    )  # fmt: skip
    objective = Score(
        model, arguments, prepared, settings, protocol.threads, files.WORK / "trials" / store.key
    )
    folder = asked.home / "sweeps" / dataset / model
    shared = Plan(wanted.sweep(), protocol.seed, dataset)  # the set's name: every model's draws
    return runner.Work(
        stage="sweep",
        cell=f"{names['profile']}/{dataset}/{model}",
        record=records.location(
            "sweep", names["profile"], dataset, experiment=names["experiment"], cell=model
        ),
        do=partial(swept, shared, store, objective, folder, count),
        inputs=[prepared],
        code=modules,
        params=used,
        seed=protocol.seed,
        threads=protocol.threads,
        clear=store.clear,
    )


def swept(plan: Plan, store: Store, objective: Score, folder: Path, count: int) -> dict[str, Path]:
    """Make all trials by `count` workers and write them."""
    from stages.sweeps import search  # with Optuna, which takes a second

    draws, _ = search.sweep(plan, store, objective, count)
    with files.atomic_folder(folder) as temporary:
        write(temporary, draws)
    return records.outputs_of(folder, folder)


def write(folder: Path, draws: Sequence[Draw]) -> None:
    """trials.csv: a row a draw; no error where training diverged."""
    from stages.sweeps import outputs

    rows = [[one.draw, one.arguments["learning_rate"], one.value, one.state] for one in draws]
    outputs.table(folder / TRIALS, ["draw", "learning_rate", "error_val", "state"], rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    about = "Search a mixer's learning rate at random, by its errors on the rows that select."
    return runner.command(MODULE, about, NAMES, plan, argv, {}, run)


if __name__ == "__main__":
    sys.exit(main())
