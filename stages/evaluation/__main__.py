"""`python -m stages.evaluation EXPERIMENT PROFILE DATASET`: evaluate every trained cell of a data
set in one process.

Reads reports/EXPERIMENT/PROFILE/runs/DATASET and data/PROFILE/prepared/DATASET, winds or sets of
points; writes reports/EXPERIMENT/PROFILE/evaluated/DATASET and its record. TRADEWIND_DEVICE chooses
the device; without it CUDA is used where present.
"""

import argparse
import sys
from pathlib import Path

from stages import files, params, records
from stages.errors import DataError, InputError, TradewindError


def parsed(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m stages.evaluation", description="Evaluate the trained cells of a data set."
    )
    for name, what in (
        ("experiment", "a folder of reports/"),
        ("profile", "a profile of params.yaml"),
        ("dataset", "a data set of its winds or sets"),
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
    known = (*profile.wind, *profile.learning)
    if dataset not in known:
        raise InputError(
            "the profile has no such prepared data set",
            found=repr(dataset),
            where=f"profiles.{profile.profile}: wind, learning",
            expected=params.nearest(dataset, known).lstrip("; "),
        )
    from stages.batches import (
        device,  # with torch, which takes a second: help and mistakes are told before
    )
    from stages.fields import evaluate as sets
    from stages.winds import evaluate

    home = Path("reports", options.experiment, options.profile)
    runs, final, prepared = (
        home / "runs" / dataset,
        home / "evaluated" / dataset,
        Path("data", options.profile, "prepared", dataset),
    )
    where = str(device())
    wanted, training = profile.evaluation, parameters.training
    cell = f"{options.profile}/{dataset}"
    told = {
        "evaluation": wanted.model_dump(mode="json"),
        "seed": training.seed,
        "threads": training.threads,
    }
    with files.guard(final.as_posix()), records.timed("evaluate", cell):
        evaluate.refuse_strays(runs, parameters, profile)
        if dataset in profile.wind:
            told["contexts"] = parameters.contexts.model_dump(mode="json")
            evaluate.evaluate(
                runs,
                prepared,
                final,
                evaluate.Settings(
                    wanted.leads_min,
                    wanted.bootstrap,
                    training.seed,
                    parameters.contexts,
                    training.threads,
                    where,
                ),
            )
        else:
            settings = sets.Settings.of(
                parameters, options.experiment, options.profile, dataset, where
            )
            told |= {"batch": settings.batch, "probed": settings.probed}
            sets.evaluate(runs, prepared, final, settings)
        record = records.make(
            "evaluate",
            cell,
            inputs=[runs, prepared],
            outputs={p.as_posix(): p for p in records.files_in([final])},
            params=told,
            code=sets.CODE,
            seed=training.seed,
            device=where,
            threads=training.threads,
        )
        files.write_json(
            records.location("evaluate", options.profile, dataset, experiment=options.experiment),
            record,
        )


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    try:
        run(parsed(argv), params.load())
    except TradewindError as error:
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
