"""`python -m stages.training EXPERIMENT PROFILE DATASET MODEL [--arm A] [--size S] [--seed N]`: fit
one cell.

Reads data/PROFILE/prepared/DATASET (winds, or sets of points); writes
reports/EXPERIMENT/PROFILE/runs/DATASET/CELL/{weights.safetensors, history.json} and its record.
What a sweep found for the model (reports/EXPERIMENT/PROFILE/sweeps/DATASET/MODEL/best.yaml)
overrides its arm's arguments. TRADEWIND_PROCESSES=W has W processes fit the cell together.
"""

import argparse
import os
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch

from stages import files, params, records, seeds
from stages.batches import device
from stages.errors import DataError, InputError, TradewindError
from stages.fields.batches import SetData
from stages.fields.models import FIELDS, axes, build
from stages.fields.sets import PreparedSets
from stages.training import cells, group, store
from stages.training.checkpoint import Checkpoints
from stages.training.loop import Settings
from stages.winds.contexts.given import Contexts
from stages.winds.contexts.nearby import KINDS
from stages.winds.fitting import fit, fit_sets


def code_of(model: str) -> tuple[str, ...]:
    """The code that a cell of this model rests on: its own file, not those of its siblings (the
    code deps of its DVC stage)."""
    return (
        "stages/batches.py",
        "stages/winds/contexts",
        "stages/layers",
        "stages/training/store.py",
        f"stages/fields/models/{model}.py",
        "stages/neighbours",
        "stages/winds/pairs.py",
        "stages/winds/slices.py",
        "stages/seeds.py",
        "stages/training",
    )


def parsed(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m stages.training", description="Fit one cell of an experiment."
    )
    for name in ("experiment", "profile", "dataset", "model"):
        parser.add_argument(name)
    parser.add_argument("--arm", default=cells.PLAIN)
    parser.add_argument("--size", default=cells.NONE)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(argv)


def run(options: argparse.Namespace, parameters: params.Params) -> None:
    """Check the names, fit, write. Every mistake of the user's is told before any work."""
    for what, name, known in (
        ("experiment", options.experiment, params.experiments()),
        ("profile", options.profile, parameters.profiles),
    ):
        if name not in known:
            raise InputError(
                f"unknown {what}",
                found=repr(name),
                expected=params.nearest(name, known).lstrip("; "),
            )
    profile = parameters.profiles[options.profile]
    known = (*profile.wind, *profile.learning)
    if options.dataset not in known:
        raise InputError(
            "the profile has no such prepared data set",
            found=repr(options.dataset),
            where=f"profiles.{profile.profile}: wind, learning",
            expected=params.nearest(options.dataset, known).lstrip("; "),
        )
    cell = cells.Cell(options.model, options.arm, options.size, options.seed)
    swept = Path(
        "reports",
        options.experiment,
        options.profile,
        "sweeps",
        options.dataset,
        cell.model,
        "best.yaml",
    )
    arguments = cells.arguments(cell, parameters, swept)
    if not 0 <= cell.seed < 2**31:
        raise InputError(
            "the seed is out of range", found=str(cell.seed), expected="0 to 2147483647"
        )
    where, world = device(), group.wanted()
    torch.set_num_threads(parameters.training.threads)
    prepared = Path("data", options.profile, "prepared", options.dataset)
    folder = Path(
        "reports", options.experiment, options.profile, "runs", options.dataset, cell.name
    )
    if world > 1 and not group.inside() and FIELDS[cell.model].learns == "gradient":
        slices, parameter = budget_of(profile, options.dataset)
        group.refuse_unshared(slices, world, parameter)
        files.die_with(os.getppid())
        group.start(world, "stages.training", sys.argv[1:])
    with group.joined(where) as together:
        if together.rank:  # the first process holds the cell's place and writes
            files.die_with(os.getppid())
        with nullcontext() if together.rank else files.guard(folder.as_posix()):
            with records.timed("training", f"{options.profile}/{options.dataset}/{cell.name}"):
                if options.dataset in profile.wind:
                    train(
                        cell,
                        arguments,
                        parameters,
                        profile,
                        prepared,
                        folder,
                        where,
                        [swept] if cell.arm == cells.SWEPT else [],
                        together,
                    )
                else:
                    train_sets(
                        cell, arguments, parameters, profile, prepared, folder, where, together
                    )


def budget_of(profile: params.Profile, dataset: str) -> tuple[int, str]:
    """How many slices, or sets, a step takes, and the parameter that says so."""
    if dataset in profile.wind:
        return profile.training.slices, "training.slices"
    return profile.learning[dataset].batch, f"learning.{dataset}.batch"


def train(
    cell: cells.Cell,
    arguments: dict,
    parameters: params.Params,
    profile: params.Profile,
    prepared: Path,
    folder: Path,
    where: torch.device,
    swept: list[Path],
    together: group.Group,
) -> None:
    """Fit one cell and write its folder."""
    seeds.everything(cell.seed)
    model = build(cell.model, arguments)
    cache = Path("data", profile.profile, "contexts", prepared.name)
    sources = [
        prepared,
        *swept,
        *(
            [cache]
            if model.context == "neighbours" and model.learns == "gradient" and cache.exists()
            else []
        ),
    ]
    contexts = Contexts.open(prepared, parameters.contexts, cache if cache in sources else None)
    pairs = contexts.pairs
    protocol, budget = parameters.training, profile.training
    settings = Settings(
        steps=budget.steps,
        validate_every=budget.validate_every,
        patience=budget.patience,
        precision=budget.precision,
        learning_rate=getattr(model, "learning_rate", protocol.learning_rate),
        clip=protocol.clip,
        seed=cell.seed,
        slices=budget.slices,
    )
    used = {
        "model": cell.model,
        "arm": cell.arm,
        "size": cell.size,
        "arguments": cells.arguments(cell, parameters),
        "budget": budget.model_dump(mode="json"),
        "protocol": protocol.model_dump(mode="json"),
    }
    if model.context in KINDS:
        used["contexts"] = parameters.contexts.model_dump(mode="json")
    inputs = {path.as_posix(): records.describe(path) for path in records.files_in(sources)}
    environment = group.environment(records.environment(str(where), protocol.threads), together)
    checkpoints = Checkpoints.of(
        "training", used, cell.seed, records.code_digest(code_of(cell.model)), inputs, environment
    )
    history = fit(model, contexts, settings, checkpoints, where, together)
    if together.rank:
        return
    metadata = {
        "arguments": arguments,
        "x_dim": axes(cell.model),
        "i_dim": 2,
        "o_dim": 2,
        "prepared": {
            key: pairs.meta[key]
            for key in ("scaler", "slice_s", "lead_s", "area")
            if key in pairs.meta
        },
    }
    write(
        cell,
        model,
        metadata,
        history,
        Written(folder, profile.profile, prepared.name, sources, used, environment),
    )
    checkpoints.clear()


def train_sets(
    cell: cells.Cell,
    arguments: dict,
    parameters: params.Params,
    profile: params.Profile,
    prepared: Path,
    folder: Path,
    where: torch.device,
    together: group.Group,
) -> None:
    """Fit one cell to sets of points and write its folder."""
    protocol, budget = parameters.training, profile.learning[prepared.name]
    sets = PreparedSets.open(prepared, where)
    if budget.symmetries and not unit_square(sets):
        raise InputError(
            "these sets do not lie in the unit square, whose symmetries are asked for",
            remedy="set symmetries: false",
            where=f"profiles.{profile.profile}.learning.{prepared.name}.symmetries",
        )
    seeds.everything(cell.seed)
    model = build(cell.model, arguments, **sets.dimensions)
    if model.context != "slice":
        raise InputError(
            "this model reads winds near its target, not sets", where="models", found=cell.model
        )
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
        "arguments": arguments,
        "budget": budget.model_dump(mode="json"),
        "protocol": protocol.model_dump(mode="json"),
    }
    inputs = {path.as_posix(): records.describe(path) for path in records.files_in([prepared])}
    environment = group.environment(records.environment(str(where), protocol.threads), together)
    checkpoints = Checkpoints.of(
        "training", used, cell.seed, records.code_digest(code_of(cell.model)), inputs, environment
    )
    data = SetData(sets, budget, cell.seed)
    history = fit_sets(model, data, settings, checkpoints, together)
    if together.rank:
        return
    metadata = {
        "arguments": arguments,
        **sets.dimensions,
        "targets": data.asked,
        "prepared": {key: sets.meta[key] for key in ("scaler", "loss", "names", "units")},
    }
    write(
        cell,
        model,
        metadata,
        history,
        Written(folder, profile.profile, prepared.name, [prepared], used, environment),
    )
    checkpoints.clear()


def unit_square(sets: PreparedSets) -> bool:
    """Whether all positions are pairs of numbers from 0 to 1."""
    places = (sets.context_x, sets.target_x)
    return all(x.shape[2] == 2 and 0 <= float(x.min()) and float(x.max()) <= 1 for x in places)


@dataclass(frozen=True)
class Written:
    """Where a cell goes, and what its record tells of it."""

    folder: Path
    profile: str
    dataset: str
    sources: list[Path]
    used: dict
    environment: dict


def write(
    cell: cells.Cell, model: torch.nn.Module, metadata: dict, history: dict, told: Written
) -> None:
    """weights.safetensors, history.json and the record of a fitted cell."""
    metadata |= {
        "model": cell.model,
        "arm": cell.arm,
        "size": cell.size,
        "seed": cell.seed,
        "dataset": told.dataset,
        "profile": told.profile,
    }
    folder = told.folder
    with files.atomic_folder(folder) as temporary:
        (temporary / "weights.safetensors").write_bytes(store.dump(model, metadata))
        files.write_json(temporary / "history.json", history)
        record = records.make(
            "train",
            f"{told.profile}/{told.dataset}/{cell.name}",
            inputs=told.sources,
            outputs=records.outputs_of(temporary, folder),
            params=told.used,
            code=code_of(cell.model),
            seed=cell.seed,
        )
        record["environment"] = told.environment
    files.fault("before_record")
    files.write_json(
        records.location(
            "train", told.profile, told.dataset, experiment=folder.parts[1], cell=cell.name
        ),
        record,
    )


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    try:
        run(parsed(argv), params.load())
    except TradewindError as error:
        if (
            os.environ.get("RANK", "0") == "0"
        ):  # all processes of a group meet the same error: told once
            print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(
            f"error: {DataError('a file could not be read or written', found=str(error))}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
