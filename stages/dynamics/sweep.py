"""`python -m stages.dynamics.sweep EXPERIMENT PROFILE DATASET MODEL`: search a model's arguments
(searches of stages/params/families/PROFILE/dynamics.yaml) by its mean valid time in free runs on
the part that selects, as document R does (section 2.4.2).

A trial is one short training by the house's loop; after each validation its networks run freely,
and trials that lag behind the median of those before them end there. Written to
reports/EXPERIMENT/PROFILE/sweeps/DATASET/MODEL: what trials.py says. A killed search goes on.
"""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from stages import code, files, params, records, runner, seeds
from stages.dynamics import selection, trials
from stages.dynamics.layout import SERIES
from stages.dynamics.models import build, model_class
from stages.dynamics.settings import FAMILY, Budget, Search, Selection, dynamics_of, parted
from stages.dynamics.train import fit
from stages.dynamics.windows import Windows
from stages.errors import DivergedError
from stages.sweeps import space
from stages.sweeps.ledger import Plan, Report
from stages.sweeps.shell import NAMES, run, workers
from stages.sweeps.space import Arguments
from stages.sweeps.store import Store
from stages.training import loop
from stages.training.checkpoint import Checkpoints
from stages.training.group import ALONE, Group

MODULE = "stages.dynamics.sweep"
Array = np.ndarray


@dataclass(frozen=True)
class Watched(Windows):
    """Windows whose validations are looked at."""

    look: Callable[[Any, dict[str, float]], None] = field(kw_only=True)

    def validate(self, model: Any, group: Group = ALONE) -> dict[str, float]:
        """As of windows; then `look` is given the model and what was found."""
        found = super().validate(model, group)
        self.look(model, found)
        return found


@dataclass(frozen=True)
class Score:
    """The objective of a model on one prepared set: minus the valid time, Lyapunov times, of the
    arguments that it is told. Each trial leaves its row, and its checkpoints while it lasts, in
    `kept`."""

    model: str
    fixed: dict[str, Any]
    prepared: Path
    budget: Budget
    asked: Selection
    threshold: float
    protocol: params.Training
    kept: Path

    def __call__(self, arguments: Arguments, report: Report | None = None) -> float:
        """Train, run freely, tell. Infinite where training diverged."""
        torch.set_num_threads(self.protocol.threads)
        made, budget = parted(arguments, self.budget)
        seed = self.protocol.seed
        row: dict[str, Any] = dict.fromkeys(trials.TOLD)
        windows = Windows.open(self.prepared, budget, seed)
        series = np.load(self.prepared / SERIES, allow_pickle=False)
        runs = {part: self.runs(series, windows, part) for part in ("val", "train", "test")}
        place = trials.place(self.kept, arguments)

        def look(model: Any, found: dict[str, float]) -> None:
            number = int(row["steps"] or 0) // budget.validate_every + 1
            value = float(runs["val"].of(model, windows.length).mean())
            steps = number * budget.validate_every
            row.update(vpt_val=value, loss_val=found["loss"], steps=steps)
            files.write_json(place, row)
            model.train()
            if report and steps < budget.steps:
                report(number, -value)

        seeds.everything(seed)
        scale = float(windows.about["change"])
        network = build(self.model, {**self.fixed, **made}, series.shape[2], scale)
        row["weights"] = sum(one.numel() for one in network.parameters())
        settings = loop.Settings(
            budget.steps, budget.validate_every, budget.patience, budget.learning_rate,
            self.protocol.clip, seed, slices=budget.batch, schedule=budget.schedule,
        )  # fmt: skip
        checkpoints = Checkpoints(place.with_suffix(""))
        checkpoints.clear()
        try:
            watched = Watched(*vars(windows).values(), look=look)
            history = fit(network, watched, budget, settings, checkpoints)
        except DivergedError:
            files.write_json(place, row)
            return math.inf
        finally:
            checkpoints.clear()
        for part, one in runs.items():
            row[f"vpt_{part}"] = float(one.of(network, windows.length).mean())
        row.update(loss_train=history["train"][-1]["loss"], loss_val=history["best_loss"])
        files.write_json(place, row)
        return -float(row["vpt_val"] or 0.0)

    def runs(self, series: Array, windows: Windows, part: str) -> selection.Runs:
        """The free runs of a part, as many of each."""
        return selection.runs(series, windows.about, part, self.asked, self.threshold)


def plan(asked: runner.Asked) -> runner.Work:
    """The search with these names. InputError for names that do not stand in the parameters."""
    parameters, names, count = asked.parameters, asked.names, workers()
    told, dataset, model = (
        dynamics_of(parameters, asked["profile"]),
        names["dataset"],
        names["model"],
    )
    where = f"profiles.{asked['profile']}.families.{FAMILY}.searches"
    runner.known("set that is searched on", dataset, told.searches, where)
    wanted = told.searches[dataset][runner.known("search", model, told.searches[dataset], where)]
    forecasts, prepared = told.forecasts[dataset], asked.data("prepared")
    budget = trained(told.training[dataset], wanted)
    fixed = dict(parameters.models[model].sizes["swept"])
    first = space.proposed(wanted.sweep(), parameters.training.seed, model, 0)
    build(model, {**fixed, **parted(first, budget)[0]}, 8, 1.0)  # names and types, before any work
    used = {
        "model": model, "fixed": fixed,
        "search": wanted.model_dump(mode="json", exclude_defaults=True),
        "budget": told.training[dataset].model_dump(mode="json"),
        "selection": forecasts.selection.model_dump(mode="json"),
        "threshold": forecasts.threshold, "protocol": parameters.training.model_dump(mode="json"),
    }  # fmt: skip
    modules, inputs = (MODULE, model_class(model).__module__), records.files_in([prepared])
    store = Store.named(
        records.key(
            "sweep", names["experiment"], used, code.recorded(modules)["digest"],
            {path.as_posix(): records.describe(path) for path in inputs},
            records.environment(threads=parameters.training.threads),
        )
    )  # fmt: skip
    objective = Score(
        model, fixed, prepared, budget, forecasts.selection, forecasts.threshold,
        parameters.training, files.WORK / "trials" / store.key,
    )  # fmt: skip
    folder = asked.home / "sweeps" / dataset / model
    plan = Plan(wanted.sweep(), parameters.training.seed, model)
    return runner.Work(
        stage="sweep",
        cell=f"{asked['profile']}/{dataset}/{model}",
        record=records.location(
            "sweep", asked["profile"], dataset, experiment=names["experiment"], cell=model
        ),
        do=partial(swept, plan, store, objective, folder, count),
        inputs=[prepared],
        code=modules,
        params=used,
        seed=plan.seed,
        threads=parameters.training.threads,
        clear=store.clear,
    )


def trained(budget: Budget, wanted: Search) -> Budget:
    """A trial's budget: the cell's, as short as the search says, to its end."""
    changed = {"steps": wanted.steps, "validate_every": wanted.validate_every}
    return Budget(**(budget.model_dump() | changed | {"patience": wanted.steps}))


def swept(plan: Plan, store: Store, objective: Score, folder: Path, count: int) -> dict[str, Path]:
    """Make all trials by `count` workers and write what was found."""
    from stages.sweeps import search  # with Optuna, which takes a second

    objective.kept.mkdir(parents=True, exist_ok=True)
    draws, _ = search.sweep(plan, store, objective, count)
    rows = {}
    for draw in draws:
        told = trials.place(objective.kept, draw.arguments)
        rows[draw.draw] = files.read_json(told) if told.exists() else {}
    with files.atomic_folder(folder) as temporary:
        trials.write(temporary, draws, plan.wanted, rows)
    return records.outputs_of(folder, folder)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code of the command."""
    about = "Search a network's arguments by its valid times on the part that selects."
    return runner.command(MODULE, about, NAMES, plan, argv, {}, run)


if __name__ == "__main__":
    sys.exit(main())
