"""`python -m stages.sequences.evaluation EXPERIMENT PROFILE DATASET`: evaluate every trained cell
of a data set of sequences.

Reads reports/EXPERIMENT/PROFILE/runs/DATASET and data/PROFILE/prepared/DATASET; writes
metrics.json, passes.json and samples.safetensors into reports/EXPERIMENT/PROFILE/evaluated/DATASET,
and a record. TRADEWIND_DEVICE chooses the device; without it CUDA is used where present.
"""

import argparse
import sys
from pathlib import Path

from stages import files, params, records
from stages.errors import DataError, InputError, reported


def parsed(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m stages.sequences.evaluation",
        description="Evaluate the trained cells of sequences.",
    )
    for name, what in (
        ("experiment", "a folder of reports/"),
        ("profile", "a profile of params.yaml"),
        ("dataset", "a data set of its sequences"),
    ):
        parser.add_argument(name, help=what)
    return parser.parse_args(argv)


def run(options: argparse.Namespace, parameters: params.Params) -> None:
    """Check the names, evaluate, write the record. Every mistake of the user's is told before
    any work."""
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
    profile, dataset = parameters.profiles[options.profile], options.dataset
    if dataset not in profile.learning_orders:
        raise InputError(
            "the profile learns no such sequences",
            found=repr(dataset),
            where=f"profiles.{profile.profile}.learning_orders",
            expected=params.nearest(dataset, profile.learning_orders).lstrip("; "),
        )
    from stages.batches import (
        device,  # with torch, which takes a second: help and mistakes are told before
    )
    from stages.sequences import evaluate

    home = Path("reports", options.experiment, options.profile)
    runs, final, prepared = (
        home / "runs" / dataset,
        home / "evaluated" / dataset,
        Path("data", options.profile, "prepared", dataset),
    )
    training, where, cell = parameters.training, str(device()), f"{options.profile}/{dataset}"
    settings = evaluate.Settings(profile.orders, training.seed, training.threads, where)
    told = {
        "orders": profile.orders.model_dump(mode="json"),
        "seed": training.seed,
        "threads": training.threads,
    }
    with files.guard(final.as_posix()), records.timed("evaluate", cell):
        refuse_strays(runs, profile, dataset)
        evaluate.evaluate(runs, prepared, final, settings)
        record = records.make(
            "evaluate",
            cell,
            inputs=[runs, prepared],
            outputs={p.as_posix(): p for p in records.files_in([final])},
            params=told,
            code=evaluate.CODE,
            seed=training.seed,
            device=where,
            threads=training.threads,
        )
        files.write_json(
            records.location("evaluate", options.profile, dataset, experiment=options.experiment),
            record,
        )


def refuse_strays(runs: Path, profile: params.Profile, dataset: str) -> None:
    """DataError naming every folder under `runs` that is none of the profile's cells, or holds
    another cell's checkpoint."""
    from stages.sequences import evaluate

    asked = {
        f"{one.model}-{one.arm}-{one.size}-s{one.seed}"
        for one in profile.order_cells
        if one.dataset == dataset
    }
    problems = []
    for run in evaluate.cells_of(runs):
        name = "{model}-{arm}-{size}-s{seed}".format_map(evaluate.load(run)[1])
        if run.name not in asked:
            problems.append(f"{run}: not in profiles.{profile.profile}.order_cells")
        elif run.name != name:
            problems.append(f"{run}: its checkpoint is that of {name}")
    if problems:
        raise DataError(
            "a trained cell does not belong to the current parameters",
            where=str(runs),
            found="; ".join(problems),
            expected=", ".join(sorted(asked)),
            remedy="delete the folders named above, or put them back into params.yaml",
        )


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    return reported(lambda: run(parsed(argv), params.load()))


if __name__ == "__main__":
    sys.exit(main())
