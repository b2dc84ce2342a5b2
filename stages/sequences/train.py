"""`python -m stages.sequences.train EXPERIMENT PROFILE DATASET MODEL --arm A --size S [--seed N]`:
fit one cell to sequences.

Reads data/PROFILE/prepared/DATASET; writes
reports/EXPERIMENT/PROFILE/runs/DATASET/CELL/{weights.safetensors, history.json} and its record. An
arm of a model of sequences has, beside the network's arguments, `order` (the kind it is shown: see
permutations.py of stages/sequences/models) and may have `curriculum`, the share of sequences from
left to right at the first step, in its budget's place. TRADEWIND_PROCESSES=W has W processes fit
the cell together.
"""

import argparse
import os
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from stages import files, params, records, seeds
from stages.batches import device
from stages.errors import InputError, TradewindError, reported
from stages.params.orders import OrderBudget
from stages.sequences.batches import OrderData, Prepared, wrapped
from stages.sequences.models import ORDERS, build
from stages.training import cells, group, store
from stages.training.checkpoint import Checkpoints
from stages.training.loop import Loop, Settings

OWN = ("order", "curriculum")  # what an arm says of training, not of the network


CODE = (
    *(
        f"stages/sequences/models/{name}.py"
        for name in (
            "__init__",
            "permutations",
            "sigma_gpt",
            "diffusion",
            "tiles",
            "tile_kernels",
            "machine_code",
        )
    ),
    "stages/layers/kernels/attention_code.py",
    "stages/layers/kernels/search_code.py",
    "stages/training/store.py",
    "stages/batches.py",
    "stages/seeds.py",
    "stages/sequences",
    *(
        f"stages/training/{name}.py"
        for name in ("cells", "checkpoint", "data", "group", "loop", "losses")
    ),
)


def parsed(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m stages.sequences.train",
        description="Fit one cell of an experiment to sequences.",
    )
    for name in ("experiment", "profile", "dataset", "model"):
        parser.add_argument(name)
    parser.add_argument("--arm", default=cells.PLAIN)
    parser.add_argument("--size", default=cells.NONE)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(argv)


@dataclass(frozen=True)
class Asked:
    """What is fitted, by what means, from where to where."""

    cell: cells.Cell
    arguments: dict  # the arm's and the size's
    budget: OrderBudget
    protocol: params.Training
    prepared: Path
    folder: Path
    profile: str

    @property
    def network(self) -> dict:
        """The arguments of the network alone."""
        return {key: value for key, value in self.arguments.items() if key not in OWN}

    @property
    def plan(self) -> OrderBudget:
        """The budget, with the arm's curriculum where it has one."""
        if "curriculum" not in self.arguments:
            return self.budget
        share = self.arguments["curriculum"]
        if type(share) not in (int, float) or not 0 <= share <= 1:
            raise InputError(
                "the arm's curriculum is no share",
                where=f"models.{self.cell.model}.arms.{self.cell.arm}.curriculum",
                expected="a number from 0 to 1",
                found=repr(share),
            )
        return self.budget.model_copy(update={"curriculum": float(share)})

    @property
    def order(self) -> str:
        """The kind of orders that the arm asks for; diffusion knows none and says so by leaving
        it out."""
        return self.arguments.get("order", "left_to_right")


def run(options: argparse.Namespace, parameters: params.Params) -> None:
    """Check the names, fit, write. Every mistake of the user's is told before any work."""
    for what, name, known in (
        ("experiment", options.experiment, params.experiments()),
        ("profile", options.profile, parameters.profiles),
        ("model of sequences", options.model, ORDERS),
    ):
        if name not in known:
            raise InputError(
                f"unknown {what}",
                found=repr(name),
                expected=params.nearest(name, known).lstrip("; "),
            )
    profile, dataset = parameters.profiles[options.profile], options.dataset
    if dataset not in profile.learning_orders:
        raise InputError(
            "the profile learns no such sequences",
            found=repr(dataset),
            where=f"profiles.{profile.profile}.learning_orders",
            expected=params.nearest(dataset, profile.learning_orders).lstrip("; "),
        )
    cell = cells.Cell(options.model, options.arm, options.size, options.seed)
    asked = Asked(
        cell,
        cells.arguments(cell, parameters),
        profile.learning_orders[dataset],
        parameters.training,
        Path("data", options.profile, "prepared", dataset),
        Path("reports", options.experiment, options.profile, "runs", dataset, cell.name),
        options.profile,
    )
    if not 0 <= cell.seed < 2**31:
        raise InputError(
            "the seed is out of range", found=str(cell.seed), expected="0 to 2147483647"
        )
    where, world = device(), group.wanted()
    torch.set_num_threads(parameters.training.threads)
    if world > 1 and not group.inside():
        group.refuse_unshared(asked.budget.batch, world, f"learning_orders.{dataset}.batch")
        files.die_with(os.getppid())
        group.start(world, "stages.sequences.train", sys.argv[1:])
    with group.joined(where) as together:
        if together.rank:  # the first process holds the cell's place and writes
            files.die_with(os.getppid())
        with nullcontext() if together.rank else files.guard(asked.folder.as_posix()):
            with records.timed("training", f"{options.profile}/{dataset}/{cell.name}"):
                train(asked, where, together)


def fit(
    model: nn.Module,
    data: OrderData,
    settings: Settings,
    checkpoints: Checkpoints,
    together: group.Group = group.ALONE,
) -> dict:
    """Fit the model in place; returns its history (strict JSON). DivergedError, DataError."""
    model.to(data.device)
    return Loop(wrapped(model), data, settings, checkpoints, together).run()


def train(asked: Asked, where: torch.device, together: group.Group) -> None:
    """Fit one cell and write its folder."""
    cell, budget, protocol = asked.cell, asked.plan, asked.protocol
    prepared = Prepared.open(asked.prepared, where)
    data = OrderData(prepared, budget, asked.order, cell.seed, together)
    dimensions = {key: prepared.meta[key] for key in ("vocabulary", "length")}
    seeds.everything(cell.seed)
    network = (
        {"axes": prepared.axes} if asked.network.get("positions") == "grid" else {}
    ) | asked.network
    model = build(cell.model, network, None, **dimensions)
    settings = Settings(
        steps=budget.steps,
        validate_every=budget.validate_every,
        patience=budget.patience,
        clip=protocol.clip,
        seed=cell.seed,
        learning_rate=budget.rates.get(cell.model, budget.learning_rate),
        slices=budget.batch,
        schedule=budget.schedule,
    )
    used = {
        "model": cell.model,
        "arm": cell.arm,
        "size": cell.size,
        "arguments": asked.arguments,
        "budget": budget.model_dump(mode="json"),
        "protocol": protocol.model_dump(mode="json"),
    }
    inputs = {
        path.as_posix(): records.describe(path) for path in records.files_in([asked.prepared])
    }
    environment = group.environment(records.environment(str(where), protocol.threads), together)
    checkpoints = Checkpoints.of(
        "training", used, cell.seed, records.code_digest(CODE), inputs, environment
    )
    history = fit(model, data, settings, checkpoints, together)
    if together.rank:
        return
    metadata = {
        "family": "orders",
        "model": cell.model,
        "arm": cell.arm,
        "size": cell.size,
        "seed": cell.seed,
        "arguments": network,
        "order": asked.order,
        "dataset": asked.prepared.name,
        "profile": asked.profile,
        **dimensions,
    }
    write(asked, model, metadata, history, used, environment)
    checkpoints.clear()


def write(
    asked: Asked, model: nn.Module, metadata: dict, history: dict, used: dict, environment: dict
) -> None:
    """weights.safetensors, history.json and the record of a fitted cell."""
    folder, dataset, name = asked.folder, asked.prepared.name, asked.cell.name
    with files.atomic_folder(folder) as temporary:
        (temporary / "weights.safetensors").write_bytes(store.dump(model, metadata))
        files.write_json(temporary / "history.json", history)
        record = records.make(
            "train",
            f"{asked.profile}/{dataset}/{name}",
            inputs=[asked.prepared],
            outputs=records.outputs_of(temporary, folder),
            params=used,
            code=CODE,
            seed=asked.cell.seed,
        )
        record["environment"] = environment
    files.fault("before_record")
    files.write_json(
        records.location("train", asked.profile, dataset, experiment=folder.parts[1], cell=name),
        record,
    )


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    if os.environ.get("RANK", "0") == "0":
        return reported(lambda: run(parsed(argv), params.load()))
    try:  # all processes of a group meet the same error: told once
        run(parsed(argv), params.load())
    except TradewindError as error:
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
