"""`python -m stages.sweeps EXPERIMENT PROFILE DATASET MODEL [--join]`: choose a model's arguments
on the validation slices.

Reads data/PROFILE/prepared/DATASET; writes
reports/EXPERIMENT/PROFILE/sweeps/DATASET/MODEL/{best.yaml, trials.csv, importance.csv} (in git:
read them in a diff) and the record. Training reads best.yaml. Draws made are kept until then
(store.py): a killed sweep goes on. TRADEWIND_SWEEP_WORKERS processes work here; with the study in
PostgreSQL (TRADEWIND_SWEEPS_URL) `--join` helps from any machine.
"""

import argparse
import os
import sys
from pathlib import Path

import optuna

from stages import files, params, records
from stages.errors import DataError, InputError, TradewindError
from stages.fields.models import build
from stages.sweeps import outputs, search, space
from stages.sweeps.ledger import Plan
from stages.sweeps.store import URL, Store
from stages.training.__main__ import code_of
from stages.training.cells import SWEPT, Cell, arguments

WORKERS = "TRADEWIND_SWEEP_WORKERS"
MOST = 256


def workers() -> int:
    """How many processes the environment asks for. InputError for what is no such number."""
    text = os.environ.get(WORKERS) or "1"
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MOST):
        raise InputError(
            "not a number of workers", where=WORKERS, found=repr(text[:40]), expected=f"1 to {MOST}"
        )
    return int(text)


def run(options: argparse.Namespace, parameters: params.Params) -> None:
    """Check the names, search, write. Every mistake of the user's is told before any work."""
    for what, name, known in (
        ("experiment", options.experiment, params.experiments()),
        ("profile", options.profile, parameters.profiles),
        ("sweep", options.model, parameters.sweeps),
    ):
        if name not in known:
            raise InputError(
                f"unknown {what}",
                found=repr(name),
                expected=params.nearest(name, known).lstrip("; "),
            )
    profile = parameters.profiles[options.profile]
    if options.dataset not in profile.wind:
        raise InputError(
            "the profile has no such prepared data set",
            found=repr(options.dataset),
            where=f"profiles.{profile.profile}.wind",
            expected=params.nearest(options.dataset, profile.wind).lstrip("; "),
        )
    wanted, training, count = parameters.sweeps[options.model], parameters.training, workers()
    arm, code = (
        arguments(Cell(options.model, SWEPT), parameters),
        ("stages/sweeps", *code_of(options.model)),
    )
    plan = Plan(wanted, training.seed, options.model)
    build(
        options.model, {**arm, **space.proposed(wanted, training.seed, options.model, 0)}
    )  # names and types, before any work
    prepared = Path("data", options.profile, "prepared", options.dataset)
    used = {
        "model": options.model,
        "arm": arm,
        "sweep": wanted.model_dump(mode="json"),
        "seed": training.seed,
        "contexts": parameters.contexts.model_dump(mode="json"),
    }
    inputs = {path.as_posix(): records.describe(path) for path in records.files_in([prepared])}
    environment = records.environment(threads=training.threads)
    store = Store.named(
        records.key(
            "sweep", options.experiment, used, records.code_digest(code), inputs, environment
        )
    )
    objective = search.Score(
        options.model, arm, prepared, parameters.contexts, wanted.val_every, training.threads
    )
    if options.join:
        if store.local:
            raise InputError(
                "workers join a sweep through a database",
                found=f"no {URL}",
                remedy=f"set {URL} as where the sweep was started",
            )
        search.join(plan, store, objective)
        return
    cell = f"{options.profile}/{options.dataset}/{options.model}"
    folder = Path(
        "reports", options.experiment, options.profile, "sweeps", options.dataset, options.model
    )
    with files.guard(folder.as_posix()), records.timed("sweep", cell):
        draws, joined = search.sweep(plan, store, objective, count)
        with files.atomic_folder(folder) as temporary:
            outputs.write(temporary, draws, wanted)
        record = records.make(
            "sweep",
            cell,
            inputs=[prepared],
            outputs=records.outputs_of(folder, folder),
            code=code,
            seed=training.seed,
            params={**used, "workers": count, "joined_draws": joined},
            threads=training.threads,
        )
        files.fault("before_record")
        place = records.location(
            "sweep",
            options.profile,
            options.dataset,
            experiment=options.experiment,
            cell=options.model,
        )
        files.write_json(place, record)
        files.fault("before_clear")
        store.clear()


def main(argv: list[str] | None = None) -> int:
    """Exit code of the command."""
    parser = argparse.ArgumentParser(
        prog="python -m stages.sweeps",
        description="Choose a model's arguments on the validation slices.",
    )
    for name in ("experiment", "profile", "dataset", "model"):
        parser.add_argument(name)
    parser.add_argument(
        "--join",
        action="store_true",
        help=f"only help with a sweep that was started elsewhere, through {URL}",
    )
    try:
        run(parser.parse_args(argv), params.load())
    except TradewindError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(
            f"error: {DataError('a file could not be read or written', found=str(error))}",
            file=sys.stderr,
        )
        return 1
    except (
        optuna.exceptions.StorageInternalError
    ) as error:  # its cause, which Optuna chains, may name the database's user
        lost = DataError(
            "the sweep lost its store",
            found=str(error),
            remedy="run the same command again to go on",
        )
        print(f"error: {lost}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
